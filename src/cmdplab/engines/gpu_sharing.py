"""What runs of a batch have in common is computed, and put on the card, once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.gpu_arrays import Card
from cmdplab.engines.gpu_philox import round_keys
from cmdplab.engines.gpu_setup import cuda
from cmdplab.types import Places


class Told(NamedTuple):
    """What runs are told of their problems, in the order of a kernel's arguments."""

    threshold: Card  # [B, N'], doubles
    starts: Card  # [I], 32-bit whole numbers
    instance: Card  # [B], likewise: which of the problems each run has


def distinct(keys: Sequence[Hashable]) -> tuple[Places, list[int]]:
    """Which of the distinct keys each run has, and the first run that has each."""
    places: dict[Hashable, int] = {}
    first: list[int] = []
    which = np.empty(len(keys), np.int32)
    for b, key in enumerate(keys):
        if key not in places:
            places[key] = len(first)
            first.append(b)
        which[b] = places[key]
    return which, first


def streams(which: Places, seeds: Sequence[int]) -> tuple[Card, Card]:
    """On the card: which schedule each run has [B], and the keys of its random numbers [B, 20]."""
    keys = np.stack([round_keys(seed) for seed in seeds])
    return cuda.to_device(which), cuda.to_device(keys)


def told(
    problems: Sequence[CMDP], tasks: Sequence[Task], columns: int
) -> tuple[Told, list[CMDP], list[Task]]:
    """On the card; and the distinct problems, each with the task of one of its runs."""
    instance, chosen = distinct([id(each) for each in problems])
    threshold = np.zeros((len(tasks), columns))
    for b, task in enumerate(tasks):
        threshold[b, : len(task.threshold)] = task.threshold
    starts = np.array([tasks[b].start for b in chosen], np.int32)
    sent = Told(*(cuda.to_device(each) for each in (threshold, starts, instance)))
    return sent, [problems[b] for b in chosen], [tasks[b] for b in chosen]
