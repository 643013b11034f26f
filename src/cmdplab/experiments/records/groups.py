"""Groups of recorded runs: one algorithm with one setting, over seeds and instances."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.row import Row
from cmdplab.errors import InputError
from cmdplab.experiments.durable import CURVES, MISTAKES
from cmdplab.experiments.folder import works_of
from cmdplab.experiments.records.columns import Columns, columns_of
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.experiments.status import Index, RunStatus
from cmdplab.experiments.work import Work, problem_of
from cmdplab.types import Array


class Group(NamedTuple):
    """Group of runs that differ only in seed and problem instance."""

    label: str  # the algorithm, and differing settings
    environment: str
    row: Row
    episodes: int
    seeds: list[int]
    instance: list[str]  # fingerprint of each run's problem
    curves: list[dict[str, Array]]  # columns by name, for each run
    mistakes: list[dict[str, Array]]

    @property
    def instances(self) -> int:
        """Number of different instances."""
        return len(set(self.instance))

    @property
    def horizon(self) -> int:
        """Horizon H, which is the largest epsilon of the grid of mistakes."""
        return round(float(self.mistakes[0]["epsilon"][-1]))


def gather(folder: str | Path, partial: bool = False) -> tuple[list[Group], list[str]]:
    """Return the groups of an experiment's folder, and notes on missing runs.

    Runs that are not done raise an `InputError`. If `partial` is True, they are left out and the
    notes count them for each group.
    """
    folder = Path(folder)
    works = works_of(folder)
    index = Index(works)
    states = {work.folder: index.status(work) for work in works}
    index.save()
    undone = [status for status in states.values() if status.status != "done"]
    if undone and not partial:
        raise InputError(f"{_missing(folder, undone, len(works))}: {_advice(undone)}")
    if len(undone) == len(works):
        raise InputError(f"{folder} holds no finished run: {_first(undone)}")
    grouped: dict[tuple[str, str], list[Work]] = {}
    for work in works:
        grouped.setdefault((environment_of(work.settings), work.label), []).append(work)
    notes = [_missing(folder, undone, len(works))] if undone else []
    groups = []
    with columns_of(works) as columns:
        for place, mine in grouped.items():
            done = [work for work in mine if states[work.folder].status == "done"]
            if len(done) < len(mine):
                notes.append(f"{place[1]} on {place[0]} has {len(done)} of its {len(mine)} runs")
            if done:
                groups.append(_group(*place, done, columns, index))
    return groups, notes


def _missing(folder: Path, undone: Sequence[RunStatus], of: int) -> str:
    kinds = Counter(status.status for status in undone)
    each = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    return f"{len(undone)} of {of} runs of {folder} are not done ({each}; {_first(undone)})"


def _first(undone: Sequence[RunStatus]) -> str:
    one = min(undone, key=lambda status: status.status != "failed")
    reason = one.error.strip().splitlines()[-1:]
    return " ".join([f"{one.folder} is {one.status}", *(f"({line})" for line in reason)])


def _advice(undone: Sequence[RunStatus]) -> str:
    if any(status.of is None for status in undone):
        return "an unlimited run is never done: an audit needs a number of episodes"
    running = any(status.status == "running" for status in undone)
    remedy = "wait for those that run" if running else "`cmdplab resume` them"
    return f"{remedy}, or audit what is there: --partial"


def environment_of(settings: RunSettings) -> str:
    """Return the name of the problem of a run, without the seed of its instance."""
    return re.sub(r" \(seed \d+\)$", "", settings.problem)


def _group(
    environment: str, label: str, works: list[Work], columns: Columns, index: Index
) -> Group:
    _check_sizes(environment, works)
    curves: list[dict[str, Array]] = []
    mistakes: list[dict[str, Array]] = []
    for work in works:
        known = index.sha256[work.folder.name]
        for name, tables in ((CURVES, curves), (MISTAKES, mistakes)):
            tables.append(columns.table(work, name, known.get(name, "")))
    first = works[0].settings
    return Group(
        label=label,
        environment=environment,
        row=first.row(),
        episodes=int(curves[0]["episode"][-1]),
        seeds=[work.settings.seed for work in works],
        instance=[work.settings.fingerprint for work in works],
        curves=curves,
        mistakes=mistakes,
    )


def _check_sizes(environment: str, works: Sequence[Work]) -> None:
    files = {work.settings.fingerprint: work for work in works}
    problems = [problem_of(work.settings, work.problem_file) for work in files.values()]
    sizes = {(p.states, p.actions, p.horizon, p.constraints) for p in problems}
    if len(sizes) > 1:
        one, other = sorted(sizes)[:2]
        raise InputError(
            f"the runs on {environment} are of different problems, with (X, A, H, N) = "
            f"{one} and {other}: give them different names"
        )


class Units(NamedTuple):
    """Independent samples of a group: its instances if it has several, else its seeds."""

    instance: list[int]  # number of each run's instance, by appearance
    noun: str  # "instances" or "seeds"

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(set(self._places()))

    @property
    def over(self) -> str:
        """Number and kind of the samples, in words."""
        if self.noun == "instances":
            return f"{self.samples} instances"
        return "one run" if self.samples == 1 else f"{self.samples} seeds of one instance"

    def reduced(self, values: Array) -> Array:
        """Reduce `values` [runs, ...] to [samples, ...]: the median over each instance's seeds."""
        return self._each(values, np.median)

    def worst(self, values: Array) -> Array:
        """Reduce `values` [runs, ...] to [samples, ...]: the maximum over each instance's seeds."""
        return self._each(values, np.max)

    def _places(self) -> list[int]:
        return self.instance if self.noun == "instances" else list(range(len(self.instance)))

    def _each(self, values: Array, statistic: Callable[..., Array]) -> Array:
        places = np.array(self._places())
        if len(set(self._places())) == len(places):
            return np.array(values, dtype=np.float64)  # one run per sample
        return np.array([statistic(values[places == unit], axis=0) for unit in np.unique(places)])


def units_of(instances: Sequence[str]) -> Units:
    """Return the independent samples of runs. instances : the name of each run's instance."""
    numbers = {name: n for n, name in enumerate(dict.fromkeys(instances))}
    noun = "instances" if len(numbers) > 1 else "seeds"
    return Units([numbers[name] for name in instances], noun)
