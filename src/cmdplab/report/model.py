"""The content of a report: problems, and on each of them algorithms with their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdplab.errors import InputError
from cmdplab.experiments.records.tables import check_columns
from cmdplab.measures.measures import NUMBERS
from cmdplab.measures.safety import SafetyOverSeeds, over_seeds as over_runs, summary
from cmdplab.measures.verdict import common_verdict
from cmdplab.report.curves import Thinned, thinned
from cmdplab.statistics import Paired
from cmdplab.types import Array

CURVES = ("episode", "gap", "gap_min", "gap_max", "strong_regret", "weak_regret")
MISTAKES = ("epsilon", "gap_mistakes", "gap_last_mistake")


class Spread(NamedTuple):
    """A number over seeds."""

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
    safe: bool = False  # whether it promises that no episode violates
    promise_heuristic: str = ""  # why that is not proved as it was run


class OneRun(NamedTuple):
    """The records of one run."""

    seed: int
    curves: dict[str, Array]
    mistakes: dict[str, Array]
    summary: dict[str, float | None]
    us_per_episode: float | None


class Entry(NamedTuple):
    """One algorithm with one setting on one problem, over its seeds."""

    label: str
    about: About
    seeds: list[int]
    planned: int  # seeds that there should be
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
    versus: Sequence[Paired] = ()  # every algorithm against the one that a comparison names

    @property
    def horizon(self) -> float:
        """H, the largest epsilon."""
        return float(self.epsilons[-1])


class Trouble(NamedTuple):
    """A run that is not in the numbers, or not as it was meant, and why."""

    run: str
    problem: str
    algorithm: str
    seed: int
    status: str
    why: str


class Report(NamedTuple):
    """All of it."""

    title: str
    folder: str
    sections: list[Section]
    troubles: list[Trouble]
    notes: list[str]
    versions: dict[str, str]
    machine: dict[str, str]


def on_baseline(counts: Sequence[float], episodes: int) -> str:
    """How long the runs of an algorithm played their safe baseline."""
    share = f"{float(np.median(counts)):,.0f} of {episodes:,} episodes"
    return f"played its safe baseline in {share} (median over seeds)"


def spread(values: Sequence[float | None]) -> Spread | None:
    """Over seeds; None where the number does not exist."""
    known = [each for each in values if each is not None]
    if not known or len(known) < len(values):
        return None
    return Spread(float(np.median(known)), float(min(known)), float(max(known)))


def entry(
    label: str, about: About, runs: Sequence[OneRun], planned: int, points: int, where: str
) -> Entry:
    """Reduce the runs of one algorithm to what a page can hold."""
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
    """Finite, and the end of the curves is the end that the summary speaks of."""
    for name, values in (run.curves | run.mistakes).items():
        if not np.isfinite(values).all():
            raise InputError(f"{where}: {name} of {label} (seed {run.seed}) is not finite")
    if run.summary.get("final_gap") != run.curves["gap"][-1]:
        raise InputError(
            f"{where}: the curves of {label} (seed {run.seed}) and its summary are not of one run"
        )


def _of_violation(columns: dict[str, Array]) -> list[str]:
    """With a violation come its envelope and its regrets."""
    needed = ("violation_min", "violation_max", "strong_violation_regret", "weak_violation_regret")
    return list(needed) if "violation" in columns else []


def over_seeds(values: Sequence[Array]) -> Array:
    """[3, ...]: median, smallest, largest."""
    stack = np.stack(values)
    return np.stack([np.median(stack, axis=0), stack.min(axis=0), stack.max(axis=0)])
