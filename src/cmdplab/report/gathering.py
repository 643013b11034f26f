"""Records into a report: of `cmdplab reproduce` and `compare`, of a sweep, or of a single run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cmdplab import manifest
from cmdplab.algorithms import algorithm
from cmdplab.errors import InputError
from cmdplab.problem import Array
from cmdplab.records import LARGEST, read_tables
from cmdplab.report.model import FIELDS, About, Entry, OneRun, Report, entry, section
from cmdplab.report.sweeps import gather_sweep
from cmdplab.report.thinning import points_for
from cmdplab.summary_file import SUMMARY, read_summary
from cmdplab.surviving import CURVES, MISTAKES
from cmdplab.sweeping import EXPERIMENT


def gather(folder: Path) -> Report:
    """Everything that a report shows, from the records of a folder."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    survives = (folder / EXPERIMENT).exists() or (folder / manifest.NAME).exists()
    if survives and (folder / SUMMARY).exists():
        raise InputError(f"{folder} holds both a sweep and a {SUMMARY}: which of them is unclear")
    if survives:
        return gather_sweep(folder)
    for name in (SUMMARY, CURVES):
        if not (folder / name).exists():
            raise InputError(f"{folder} holds no records: it has neither {EXPERIMENT} nor {name}")
    if not (folder / MISTAKES).exists():
        raise InputError(
            f"{folder} has no {MISTAKES}: it is of a version that counted none, so run it again"
        )
    return _gather_comparison(folder)


def _gather_comparison(folder: Path) -> Report:
    """What `reproduce` and `compare` leave."""
    summary = read_summary(folder / SUMMARY)
    curves, mistakes = read_tables(folder / CURVES), read_tables(folder / MISTAKES)
    if {k: set(v) for k, v in curves.items()} != {k: set(v) for k, v in mistakes.items()}:
        raise InputError(f"{folder}: {CURVES} and {MISTAKES} are not of the same runs")
    names = [name for name, _ in curves]
    columns = sum(len(next(iter(each.values()))) for each in curves.values())
    entries = []
    for (name, preset), by_seed in curves.items():
        label = f"{name}:{preset}" if names.count(name) > 1 else name
        if label not in summary["algorithms"]:
            raise InputError(f"{folder}: {CURVES} has {label!r}, and {SUMMARY} does not")
        runs = _runs(summary["algorithms"][label], by_seed, mistakes[name, preset], label, folder)
        about = _about(name, preset, summary)
        entries.append(entry(label, about, runs, len(runs), points_for(columns), str(folder)))
    missing = sorted(set(summary["algorithms"]) - {each.label for each in entries})
    if missing:
        raise InputError(f"{folder}: {SUMMARY} has {missing[0]!r}, and {CURVES} does not")
    _check_same_runs(entries, summary, folder)
    grids = [each["epsilon"] for by_seed in mistakes.values() for each in by_seed.values()]
    if any(not np.array_equal(grids[0], each) for each in grids):
        raise InputError(f"{folder}: {MISTAKES} mixes grids of epsilon")
    known = {k: summary.get(k) for k in ("optimum", "threshold", "slater_gap")}
    one = section(str(summary["instance"]), entries, grids[0], **known)
    compared = any("settings" in each for each in summary["algorithms"].values())
    what = "Comparison" if compared else "Reproduction"
    ran = {part: summary.get(part, {}) for part in ("versions", "machine")}
    return Report(f"{what} on {one.problem}", folder.resolve().name, [one], [], [], **ran)


def _runs(
    numbers: dict[str, Any],
    curves: dict[int, dict[str, Array]],
    mistakes: dict[int, dict[str, Array]],
    label: str,
    folder: Path,
) -> list[OneRun]:
    for name in FIELDS:
        values = numbers.get(name)
        good = isinstance(values, list) and len(values) == len(curves)
        if not good or not all(_is_number(v) for v in values or []):
            raise InputError(f"{folder / SUMMARY}: {name} of {label!r} is not a number per seed")
    time = numbers.get("us_per_episode")
    return [
        OneRun(seed, curves[seed], mistakes[seed], {f: numbers[f][n] for f in FIELDS}, time)
        for n, seed in enumerate(curves)
    ]


def _is_number(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and abs(value) <= LARGEST)


def _check_same_runs(entries: list[Entry], summary: dict[str, Any], folder: Path) -> None:
    """The tables and summary.json must be of one and the same command."""
    for each in entries:
        if each.episodes != summary["episodes"] or len(each.seeds) != summary["seeds"]:
            raise InputError(f"{folder}: {CURVES} and {SUMMARY} are not of the same runs")


def _about(name: str, preset: str, summary: dict[str, Any]) -> About:
    """What the records say; for `reproduce`, whose records say little, what the row says."""
    numbers = summary["algorithms"].get(name) or summary["algorithms"][f"{name}:{preset}"]
    if numbers.get("settings") is not None:
        remarks = [str(numbers["tuned"])] if numbers.get("tuned") else []
        played = numbers.get("baseline_episodes")
        if played:
            share = f"{float(np.median(played)):,.0f} of {summary['episodes']:,} episodes"
            remarks.append(f"played its safe baseline in {share} (median over seeds)")
        return About(
            preset,
            numbers["settings"],
            [str(each) for each in numbers.get("needs") or []],
            str(numbers.get("heuristic") or ""),
            str(numbers.get("unverified") or ""),
            remarks,
        )
    scale = summary.get("bonus_scale")
    with suppress(InputError, TypeError):  # an algorithm that is not registered here
        row = algorithm(name, preset).overridden({"bonus_scale": scale})
        settings = {k: v for k, v in row.settings().items() if v is not None}
        remarks = [row.beyond(summary["episodes"])] if row.beyond(summary["episodes"]) else []
        return About(preset, settings, row.needs, row.heuristic, row.unverified, remarks)
    return About(preset, {} if scale is None else {"bonus_scale": scale})
