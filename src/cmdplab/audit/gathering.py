"""From a folder of runs to groups: one algorithm with one setting, over seeds and instances."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cmdplab.algorithms.row import Row
from cmdplab.errors import InputError
from cmdplab.experiment import OVERRIDES, RunSettings
from cmdplab.pool import Work
from cmdplab.problem import Array
from cmdplab.records import read_curves
from cmdplab.surviving import CURVES, MISTAKES
from cmdplab.sweeping import status_of, works_of


class Group(NamedTuple):
    """Runs that differ in seed and instance only."""

    label: str  # the algorithm, with what tells it from others of the same name
    environment: str
    row: Row
    episodes: int
    seeds: list[int]
    instances: int
    curves: list[dict[str, Array]]  # of each run
    mistakes: list[dict[str, Array]]

    @property
    def horizon(self) -> int:
        """H, the largest epsilon of the grid."""
        return round(float(self.mistakes[0]["epsilon"][-1]))


def gather(folder: Path, partial: bool = False) -> tuple[list[Group], list[str]]:
    """The groups of an experiment's folder, and what is missing of it.

    Runs that failed or are not done are an error that names them, unless `partial` says to go on
    without; they are then named in the notes.
    """
    works = works_of(folder)
    states = {work.folder: status_of(work).status for work in works}
    undone = [work for work in works if states[work.folder] != "done"]
    notes = []
    if undone:
        first = f"{undone[0].folder.name} is {states[undone[0].folder]}"
        words = f"{len(undone)} of {len(works)} runs of {folder} are not done ({first})"
        if not partial:
            raise InputError(f"{words}: `cmdplab resume` them, or audit what is there: --partial")
        notes.append(words)
    done = [work for work in works if states[work.folder] == "done"]
    if not done:
        raise InputError(f"{folder} holds no finished run")
    grouped: dict[tuple[str, str], list[Work]] = {}
    differing = _differing([work.settings for work in done])
    for work in done:
        place = environment_of(work.settings), _label(work.settings, differing)
        grouped.setdefault(place, []).append(work)
    return [_group(*place, mine) for place, mine in grouped.items()], notes


def environment_of(settings: RunSettings) -> str:
    """The name of the problem without the seed of its instance."""
    return re.sub(r" \(seed \d+\)$", "", settings.problem)


def _differing(runs: Sequence[RunSettings]) -> dict[str, list[str]]:
    """For each algorithm, the settings in which its runs differ."""
    found: dict[str, list[str]] = {}
    for name in {run.algorithm for run in runs}:
        mine = [run for run in runs if run.algorithm == name]
        fields = ("preset", *OVERRIDES, "episodes")
        found[name] = [f for f in fields if len({getattr(run, f) for run in mine}) > 1]
    return found


def _label(run: RunSettings, differing: dict[str, list[str]]) -> str:
    words = []
    for field in differing[run.algorithm]:
        value = getattr(run, field)
        words.append(str(value) if field == "preset" else f"{field} {value:g}"
                     if isinstance(value, float) else f"{field} {value}")  # fmt: skip
    return f"{run.algorithm} ({', '.join(words)})" if words else run.algorithm


def _group(environment: str, label: str, works: list[Work]) -> Group:
    curves, mistakes = [], []
    for work in works:
        if not (work.folder / MISTAKES).exists():
            raise InputError(f"{work.folder} was made by a version that counted no mistakes")
        (one,) = read_curves(work.folder / CURVES).values()
        (counts,) = read_curves(work.folder / MISTAKES).values()
        curves.append(one[0])
        mistakes.append(counts[0])
    first = works[0].settings
    return Group(
        label=label,
        environment=environment,
        row=first.row(),
        episodes=int(curves[0]["episode"][-1]),
        seeds=[work.settings.seed for work in works],
        instances=len({work.settings.fingerprint for work in works}),
        curves=curves,
        mistakes=mistakes,
    )
