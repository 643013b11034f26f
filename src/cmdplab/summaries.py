"""The numbers of several runs, by the label of their algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cmdplab.labels import kind_of_row, labels
from cmdplab.measures import Summary
from cmdplab.running import Run


def by_label(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each algorithm; those that come in several settings are told apart by them."""
    kinds = [kind_of_row(run.algorithm) for run in runs]
    named = labels(kinds)
    grouped: dict[str, list[Run]] = {}
    for run, kind in zip(runs, kinds, strict=True):
        grouped.setdefault(named[kind], []).append(run)
    return grouped


def numbers_of(runs: Sequence[Run]) -> dict[str, Any]:
    """Every number of `Summary` as a list over seeds, and the median time per episode."""
    numbers: dict[str, Any] = {
        field: [getattr(run.summary, field) for run in runs]
        for field in Summary._fields
        if field != "episodes"
    }
    numbers["us_per_episode"] = float(np.median([run.us_per_episode for run in runs]))
    return numbers


def median(runs: Sequence[Run], field: str) -> float | None:
    """The median over seeds of a number of `Summary`; None where it does not exist."""
    values = [getattr(run.summary, field) for run in runs]
    return None if values[0] is None else float(np.median(values))
