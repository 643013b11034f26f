"""Limits of the GPU engine: rows, precisions, and the number of runs that fit the card.

`precision` is a name of `PRECISIONS`. A form is the layout that a family chooses for a problem.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.engines.gpu.arrays import episode_bytes
from cmdplab.engines.gpu.device import free_memory
from cmdplab.engines.gpu.families import CARD_FAMILIES, CardFamily
from cmdplab.engines.gpu.measures import measure_bytes
from cmdplab.errors import EngineError, InputError

PRECISIONS = {"float64": np.float64, "float32": np.float32}
SINGLE_TOLERANCE = 1e-2  # error of gaps and violations of a run in float32 (benchmarks/gpu.py)
MOST_EPISODES = (1 << 31) - 1  # counts are 32-bit whole numbers
_IN_FLIGHT = 4_000_000  # episodes of one launch, over all runs: a fifth of a second
_LONGEST = 4096  # episodes of one launch, of one run
_SPARE = 0.9  # the share of the free memory that may be used


def check_precision(precision: str, tolerance: float | None = None) -> None:
    """Refuse an unknown precision, and a precision that cannot meet a tolerance for gaps."""
    if precision not in PRECISIONS:
        raise InputError(f"unknown precision {precision!r}: choose one of {', '.join(PRECISIONS)}")
    if precision == "float32" and tolerance is not None and tolerance < SINGLE_TOLERANCE:
        raise InputError(
            f"float32 keeps to {SINGLE_TOLERANCE:g}, not to {tolerance:g}: take float64"
        )


def check_run(
    problem: CMDP, row: Row, task: Task, episodes: float = 0, precision: str = "float64"
) -> None:
    """Refuse a run that this engine cannot play, and name another engine.

    `episodes` is the number of episodes to play, or infinite for a run until it is stopped.
    """
    check_precision(precision)
    check_row(row, task, precision)
    if isinstance(problem.transition, Sparse):  # whose states hold lists too
        raise InputError("the engine gpu has no lists of successors: take the engine cpu")
    if episodes < math.inf:
        check_count(episodes)
    family, itemsize = CARD_FAMILIES[type(row)], np.dtype(PRECISIONS[precision]).itemsize
    form = family.form(task.reward.shape)
    family.check(form, itemsize)
    _check_fits(family, form, precision)


def check_count(episodes: float) -> None:
    """Refuse more episodes than counts of 32 bits can hold."""
    if episodes > MOST_EPISODES:
        raise InputError(f"the engine gpu counts to {MOST_EPISODES:,} episodes a run, no more")


def _check_fits(family: CardFamily, form: Any, precision: str) -> None:
    if foreseen_memory(family, form, precision, 1) > int(_SPARE * free_memory()):
        raise EngineError("one run is too large for this card: take the engine cpu")


def check_row(row: Row, task: Task, precision: str = "float64") -> None:
    """Refuse algorithms and tasks that this engine does not support, and name another engine."""
    family = CARD_FAMILIES.get(type(row))
    if family is None:
        raise InputError(f"the engine gpu has no {row.name}: take the engine cpu")
    if precision not in family.precisions:
        raise InputError(f"{row.name} runs in {family.precisions[0]} only, not in {precision}")
    if row.pooled:
        raise InputError("the engine gpu counts each step by itself: take the engine cpu to pool")
    if task.observed:
        raise InputError("the engine gpu knows its rewards: take the engine cpu to observe them")
    if task.kernel is not None:
        raise InputError("the engine gpu counts visits: take the engine cpu for a known kernel")
    row.check(task)


def foreseen_memory(
    family: CardFamily, form: Any, precision: str, runs: int, problems: int = 1
) -> int:
    """Return the bytes on the card for a batch, with its measures and one launch of episodes.

    runs, problems : the numbers of runs and of distinct problems.
    """
    itemsize, chunk = np.dtype(PRECISIONS[precision]).itemsize, chunk_size(runs)
    each = family.run_bytes(form, itemsize) + chunk * episode_bytes(form)
    each += measure_bytes(form.rewards - 1, chunk)
    return runs * each + problems * family.world_bytes(form, itemsize)


def chunk_size(runs: int) -> int:
    """Return the number of episodes of one launch of this number of runs."""
    return max(1, min(_LONGEST, _IN_FLIGHT // runs))


def batches(row: Row, task: Task, precision: str, runs: int, problems: int) -> list[slice]:
    """Return slices that split runs like this one into batches that fit the card.

    runs, problems : the numbers of runs and of distinct problems.
    """
    family = CARD_FAMILIES[type(row)]
    form = family.form(task.reward.shape)
    _check_fits(family, form, precision)
    free, size = int(_SPARE * free_memory()), runs
    while size > 1 and foreseen_memory(family, form, precision, size, min(problems, size)) > free:
        size = -(-size // 2)
    return [slice(first, min(first + size, runs)) for first in range(0, runs, size)]


def check_room(family: CardFamily, form: Any, precision: str, runs: int, problems: int) -> None:
    """Refuse a batch of `runs` runs of `problems` distinct problems that the card cannot hold."""
    wanted, free = foreseen_memory(family, form, precision, runs, problems), free_memory()
    if wanted > _SPARE * free:
        raise EngineError(
            f"{runs} runs need {wanted / 2**30:.1f} GiB on the card and {free / 2**30:.1f} are "
            "free: take fewer at a time"
        )
