"""Records into a report: of an experiment, of a single run, or of version 0.1."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cmdplab.algorithms import algorithm
from cmdplab.errors import InputError
from cmdplab.experiments import manifest
from cmdplab.experiments.folder import EXPERIMENT, study_in
from cmdplab.experiments.records.old_folders import CURVES, MISTAKES, OldGroup, is_old, read_old
from cmdplab.experiments.records.summary import SUMMARY
from cmdplab.measures.measures import NUMBERS
from cmdplab.report.curves import points_for
from cmdplab.report.model import About, Entry, OneRun, Report, Section, entry, on_baseline
from cmdplab.report.sweeps import gather_sweep


def gather(folder: Path) -> Report:
    """Everything that a report shows, from the records of a folder."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    if is_old(folder):
        return _gather_old(folder)
    listed = (folder / EXPERIMENT).exists()
    if not listed and not (folder / manifest.NAME).exists():
        lacking = next((n for n in (SUMMARY, CURVES) if not (folder / n).exists()), CURVES)
        raise InputError(f"{folder} holds no records: it has neither {EXPERIMENT} nor {lacking}")
    if (folder / SUMMARY).exists() and not study_in(folder):
        raise InputError(f"{folder} holds both a sweep and a {SUMMARY}: which of them is unclear")
    return gather_sweep(folder)


def _gather_old(folder: Path) -> Report:
    summary, groups = read_old(folder)
    points = points_for(sum(len(next(iter(group.curves.values()))) for group in groups))
    entries = []
    for group in groups:
        runs, about = _runs(group), _about(group, summary)
        entries.append(entry(group.label, about, runs, len(runs), points, str(folder)))
    _check_same_runs(entries, summary, folder)
    grids = [each["epsilon"] for group in groups for each in group.mistakes.values()]
    if any(not np.array_equal(grids[0], each) for each in grids):
        raise InputError(f"{folder}: {MISTAKES} mixes grids of epsilon")
    optimum, threshold, slater = (summary.get(k) for k in ("optimum", "threshold", "slater_gap"))
    one = Section(str(summary["instance"]), entries, grids[0], optimum, threshold, slater)
    compared = any("settings" in group.numbers for group in groups)
    what = "Comparison" if compared else "Reproduction"
    ran = {part: _words(summary.get(part)) for part in ("versions", "machine")}
    return Report(f"{what} on {one.problem}", folder.resolve().name, [one], [], [], **ran)


def _words(value: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, dict) else {}


def _runs(group: OldGroup) -> list[OneRun]:
    time = group.numbers.get("us_per_episode")
    time = float(time) if isinstance(time, int | float) else None
    tables = zip(group.curves.values(), group.mistakes.values(), strict=True)
    return [
        OneRun(seed, *both, {f: group.numbers[f][n] for f in NUMBERS}, time)
        for n, (seed, both) in enumerate(zip(group.curves, tables, strict=True))
    ]


def _check_same_runs(entries: list[Entry], summary: dict[str, Any], folder: Path) -> None:
    for each in entries:
        if each.episodes != summary["episodes"] or len(each.seeds) != summary["seeds"]:
            raise InputError(f"{folder}: {CURVES} and {SUMMARY} are not of the same runs")


def _about(group: OldGroup, summary: dict[str, Any]) -> About:
    """From the records; for `reproduce`, whose records said little, from the row."""
    numbers, settings = group.numbers, group.settings(summary)
    if "settings" in numbers:
        remarks = [str(numbers["tuned"])] if numbers.get("tuned") else []
        played = numbers.get("baseline_episodes")
        if isinstance(played, list) and played:
            remarks.append(on_baseline(played, summary["episodes"]))
        needs = [str(each) for each in numbers.get("needs") or []]
        why, which = (str(numbers.get(name) or "") for name in ("heuristic", "unverified"))
        return About(group.preset, settings, needs, why, which, remarks)
    with suppress(InputError, TypeError):  # an algorithm that is not registered here
        row = algorithm(group.algorithm, group.preset).with_settings(**settings)
        settings = {k: v for k, v in row.settings().items() if v is not None}
        remarks = list(filter(None, [row.tuning_warning(summary["episodes"])]))
        return About(group.preset, settings, row.needs, row.heuristic, row.unverified, remarks)
    return About(group.preset, settings)
