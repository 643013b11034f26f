"""Curves that a figure is drawn from: runs in memory, or the records of a study, run or sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cmdplab.errors import InputError
from cmdplab.experiments.durable import CURVES
from cmdplab.experiments.folder import EXPERIMENT
from cmdplab.experiments.manifest import known_digest
from cmdplab.experiments.play import Run
from cmdplab.experiments.records.groups import Group, Units, gather, units_of
from cmdplab.experiments.records.labels import by_label
from cmdplab.experiments.records.tables import Curves, read_curves
from cmdplab.types import Array

Runs = list[dict[str, Array]]  # the columns of each
Source = str | Path | Run | Sequence[Run] | Mapping[str, Sequence[Run]]
Sampling = Callable[[Runs, Units], Runs]


class Plotted(NamedTuple):
    """The runs of one environment."""

    curves: Curves  # of `curves.parquet` or `mistakes.parquet`
    about: str  # which environment, where the folder holds more than its name says
    sample: str  # what a line is over: "seed" or "instance"
    notes: list[str]  # what is missing


def every_run(runs: Runs, units: Units) -> Runs:
    """Return each run as a sample."""
    return runs


def per_instance(runs: Runs, units: Units) -> Runs:
    """Return the median over the seeds of each instance, so that samples are independent.

    Columns `_min` and `_max` become the extremes over the seeds. A single instance stays as it is.
    """
    if units.noun != "instances":
        return runs
    tables = {name: _reduced(name, np.array([run[name] for run in runs]), units)
              for name in runs[0]}  # fmt: skip
    return [{name: table[n] for name, table in tables.items()} for n in range(units.samples)]


def _reduced(name: str, values: Array, units: Units) -> Array:
    if name.endswith("_max"):
        return units.worst(values)
    return -units.worst(-values) if name.endswith("_min") else units.reduced(values)


def in_memory(source: Run | Sequence[Run] | Mapping[str, Sequence[Run]], file: str) -> Plotted:
    """Return the curves (or mistakes, as `file` says) of runs in memory, grouped by label."""
    runs = [source] if isinstance(source, Run) else source
    grouped = runs if isinstance(runs, Mapping) else by_label(runs)
    if not grouped or not all(grouped.values()):
        raise InputError("there is no run to draw")
    curves = {
        label: [run.curves if file == CURVES else run.mistakes for run in mine]
        for label, mine in grouped.items()
    }
    return Plotted(curves, "", "seed", [])


def records_of(
    folder: Path, file: str, environment: str | None = None, sampling: Sampling = per_instance
) -> Plotted:
    """Return the records named `file` of a folder of a study, of a run or of a sweep.

    Of a sweep, one environment and only its finished runs are returned.
    """
    if (folder / EXPERIMENT).exists():
        return _of_sweep(folder, file, environment, sampling)
    if environment is not None:
        raise InputError(f"--environment chooses from a sweep, and {folder} is none")
    if not (folder / file).exists():
        raise InputError(
            f"{folder} has no {file}: give a folder of `reproduce`, `compare` or `sweep`"
        )
    return Plotted(read_curves(folder / file, known_digest(folder, file)), "", "seed", [])


def _of_sweep(folder: Path, file: str, environment: str | None, sampling: Sampling) -> Plotted:
    groups, notes = gather(folder, partial=True)
    place = chosen(environment, [group.environment for group in groups], folder)
    mine = [group for group in groups if group.environment == place]
    curves = {
        g.label: sampling(g.curves if file == CURVES else g.mistakes, units_of(g.instance))
        for g in mine
    }
    several = any(g.instances > 1 for g in mine) and sampling is per_instance
    return Plotted(curves, _about(place, mine), "instance" if several else "seed", notes)


def chosen(environment: str | None, of: Iterable[str], folder: Path) -> str:
    """Return the environment to draw; refuse an unknown one, and a choice that is left open."""
    names = list(dict.fromkeys(of))
    if environment is None and len(names) > 1:
        raise InputError(f"choose one --environment of {folder}: {', '.join(names)}")
    if environment not in (None, *names):
        raise InputError(
            f"{folder} has no environment {environment!r}: choose {' or '.join(names)}"
        )
    return names[0] if environment is None else environment


def _about(environment: str, groups: list[Group]) -> str:
    """Return the environment, and a remark if medians over the seeds of instances are drawn."""
    shared = any(1 < group.instances < len(group.curves) for group in groups)
    return f"{environment}, medians over the seeds of each instance" if shared else environment
