"""Content of a report: its problems, and for each problem the algorithms with their numbers.

Curves are thinned to the points that a page can hold. A column keeps the median over seeds and a
band that no episode leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cmdplab.errors import InputError
from cmdplab.experiments.records.tables import check_columns
from cmdplab.measures.measures import NUMBERS
from cmdplab.measures.safety import SafetyOverSeeds, over_seeds as over_runs, summary
from cmdplab.measures.verdict import common_verdict
from cmdplab.statistics import Paired
from cmdplab.types import Array

CURVES = ("episode", "gap", "gap_min", "gap_max", "strong_regret", "weak_regret")
MISTAKES = ("epsilon", "gap_mistakes", "gap_last_mistake")
POINTS = 1200  # of a column, at most
FEWEST = 120  # of a column, at least
BYTES = 3_300_000  # for all curves of a page, encoded


class Spread(NamedTuple):
    """Median, smallest and largest value of a number over seeds."""

    median: float
    low: float
    high: float


class About(NamedTuple):
    """Settings, needs and claims of an algorithm, and remarks on its runs."""

    preset: str
    settings: dict[str, Any]
    needs: Sequence[str] = ()
    heuristic: str = ""
    unverified: str = ""
    remarks: Sequence[str] = ()
    safe: bool = False  # True if it promises that no episode violates
    promise_heuristic: str = ""  # why that promise is not proved for the runs


class OneRun(NamedTuple):
    """The records of one run."""

    seed: int
    curves: dict[str, Array]
    mistakes: dict[str, Array]
    summary: dict[str, float | None]
    us_per_episode: float | None


class Thinned(NamedTuple):
    """A column at the kept points: median over seeds, and extremes since the point before."""

    median: Array
    low: Array
    high: Array
    sums: bool  # a running sum: the band is over seeds, at the point itself


class Entry(NamedTuple):
    """One algorithm with one setting on one problem, over its seeds."""

    label: str
    about: About
    seeds: list[int]
    planned: int  # number of seeds of the experiment
    episodes: int
    verdict: str
    numbers: dict[str, Spread | None]
    rate: float | None  # episodes per second of one run, the median
    episode: Array
    curves: dict[str, Thinned]
    mistakes: dict[str, Array]  # [3, epsilons] each: median, smallest and largest over seeds
    safety: SafetyOverSeeds | None  # while learning; None without a constraint


class Section(NamedTuple):
    """One problem."""

    problem: str
    entries: list[Entry]
    epsilons: Array
    optimum: float | None
    threshold: list[float] | None
    slater_gap: float | None
    versus: Sequence[Paired] = ()  # every algorithm against `versus` of the comparison

    @property
    def horizon(self) -> float:
        """Return H, the largest epsilon."""
        return float(self.epsilons[-1])


class Trouble(NamedTuple):
    """A run that is missing from the numbers, or not as planned, with the reason."""

    run: str
    problem: str
    algorithm: str
    seed: int
    status: str
    why: str


class Report(NamedTuple):
    """Content of a folder's report page: a section for each problem, runs in trouble, notes."""

    title: str
    folder: str
    sections: list[Section]
    troubles: list[Trouble]
    notes: list[str]
    versions: dict[str, str]
    machine: dict[str, str]


def spread(values: Sequence[float | None]) -> Spread | None:
    """Return the spread of a number over seeds; None if a seed has no such number."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return Spread(float(np.median(known)), float(min(known)), float(max(known)))


def entry(
    label: str, about: About, runs: Sequence[OneRun], planned: int, points: int, where: str
) -> Entry:
    """Check the runs of an algorithm, and reduce them to the data of a page."""
    first = runs[0]
    for run in runs:
        check_columns(run.curves, [*CURVES, *_of_violation(run.curves)], where)
        check_columns(run.mistakes, [*MISTAKES], where)
        for table, column in ((run.curves, "episode"), (run.mistakes, "epsilon")):
            mine = first.curves if column == "episode" else first.mistakes
            if not len(table[column]) or set(table) != set(mine):
                raise InputError(f"{where}: the seeds of {label} do not have the same columns")
            if not np.array_equal(table[column], mine[column]):
                raise InputError(f"{where}: the seeds of {label} do not share one {column} grid")
        _check_numbers(run, label, where)
    times = [run.us_per_episode for run in runs if run.us_per_episode]
    curves = [run.curves for run in runs]
    episode, columns = thinned(curves, points)
    horizon = round(float(first.mistakes["epsilon"][-1]))
    return Entry(
        label=label,
        about=about,
        seeds=[run.seed for run in runs],
        planned=planned,
        episodes=int(first.curves["episode"][-1]),
        verdict=common_verdict(curves, horizon),
        numbers={name: spread([run.summary.get(name) for run in runs]) for name in NUMBERS},
        rate=1e6 / float(np.median(times)) if times else None,
        episode=episode,
        curves=columns,
        mistakes={
            name: over_seeds([run.mistakes[name] for run in runs])
            for name in first.mistakes
            if name != "epsilon"
        },
        safety=over_runs(
            [summary(run.curves, run.mistakes) for run in runs], about.safe, about.promise_heuristic
        ),
    )


def _check_numbers(run: OneRun, label: str, where: str) -> None:
    """Refuse numbers that are not finite, and curves that end at another gap than the summary."""
    for name, values in (run.curves | run.mistakes).items():
        if not np.isfinite(values).all():
            raise InputError(f"{where}: {name} of {label} (seed {run.seed}) is not finite")
    if run.summary.get("final_gap") != run.curves["gap"][-1]:
        raise InputError(
            f"{where}: the curves of {label} (seed {run.seed}) and its summary are not of one run"
        )


def _of_violation(columns: dict[str, Array]) -> list[str]:
    """Return the columns that must come with a violation: its envelope and its regrets."""
    needed = ("violation_min", "violation_max", "strong_violation_regret", "weak_violation_regret")
    return list(needed) if "violation" in columns else []


def over_seeds(values: Sequence[Array]) -> Array:
    """Return median, smallest and largest over seeds: [3, ...]."""
    stack = np.stack(values)
    return np.stack([np.median(stack, axis=0), stack.min(axis=0), stack.max(axis=0)])


def points_for(columns: int) -> int:
    """Return the number of points that each column may have, if there are so many columns."""
    point = 3 * 4 * 4 // 3  # bytes: three singles, in base64
    return max(FEWEST, min(POINTS, BYTES // (columns * point)))


def kept(episodes: Array, points: int) -> NDArray[np.intp]:
    """Return the rows to keep: half of them evenly spaced, half evenly on a logarithmic axis.

    The first and the last row are always kept.
    """
    if len(episodes) <= points:
        return np.arange(len(episodes))
    first, last = float(episodes[0]), float(episodes[-1])
    half = points // 2
    wanted = np.concatenate(
        [np.linspace(first, last, points - half), np.geomspace(max(first, 1.0), last, half)]
    )
    ends = np.searchsorted(episodes, wanted * (1.0 - 1e-12))
    return np.unique(np.concatenate([[0], np.minimum(ends, len(episodes) - 1)]))


def thinned(curves: Sequence[dict[str, Array]], points: int) -> tuple[Array, dict[str, Thinned]]:
    """Return the kept episodes, and every column there.

    Gap and violations come with their extremes over all episodes. Multipliers and weak regrets are
    known at the grid points of the records, and their bands include every grid point between two
    kept ones.
    """
    episodes = curves[0]["episode"]
    ends = kept(episodes, points)
    starts = np.concatenate([[0], ends[:-1] + 1])
    columns: dict[str, Thinned] = {}
    for name in curves[0]:
        if name == "episode" or name.endswith(("_min", "_max")):
            continue
        values = np.stack([run[name] for run in curves])
        low = np.min([run.get(f"{name}_min", run[name]) for run in curves], axis=0)
        high = np.max([run.get(f"{name}_max", run[name]) for run in curves], axis=0)
        sums = name.startswith("strong_")
        columns[name] = Thinned(
            median=np.median(values, axis=0)[ends],
            low=low[ends] if sums else np.minimum.reduceat(low, starts),
            high=high[ends] if sums else np.maximum.reduceat(high, starts),
            sums=sums,
        )
    return episodes[ends], columns
