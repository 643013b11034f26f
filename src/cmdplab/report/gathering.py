"""Records into a report: of `cmdplab reproduce` and `compare`, of a sweep, or of a single run."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cmdplab import manifest
from cmdplab.algorithms import algorithm
from cmdplab.errors import InputError
from cmdplab.files import LARGEST_FILE
from cmdplab.problem import Array
from cmdplab.report.model import FIELDS, About, Entry, OneRun, Report, check_columns, entry, section
from cmdplab.report.sweeps import gather_sweep
from cmdplab.report.thinning import points_for
from cmdplab.surviving import CURVES, MISTAKES
from cmdplab.sweeping import EXPERIMENT

SUMMARY = "summary.json"
Tables = dict[tuple[str, str], dict[int, dict[str, Array]]]  # by (algorithm, preset) and seed


def gather(folder: Path) -> Report:
    """Everything that a report shows, from the records of a folder."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    survives = (folder / EXPERIMENT).exists() or (folder / manifest.NAME).exists()
    if survives and (folder / SUMMARY).exists():
        raise InputError(f"{folder} holds both a sweep and a {SUMMARY}: which of them is unclear")
    if survives:
        return gather_sweep(folder, lambda path: list(_read(path).values()))
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
    summary = _summary(folder / SUMMARY)
    curves, mistakes = _read(folder / CURVES), _read(folder / MISTAKES)
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
    ran = {part: _words(summary.get(part)) for part in ("versions", "machine")}
    return Report(f"{what} on {one.problem}", folder.resolve().name, [one], [], [], **ran)


def _words(value: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, dict) else {}


def _summary(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    shape = {"instance": str, "episodes": int, "seeds": int, "algorithms": dict, "threshold": list}
    for name, kind in shape.items():
        if not isinstance(values, dict) or not isinstance(values.get(name), kind):
            raise InputError(f"{path} is of a schema unknown here: it has no good {name!r}")
    if any(not isinstance(each, dict) for each in values["algorithms"].values()):
        raise InputError(f"{path} is of a schema unknown here: an algorithm has no numbers")
    return dict(values)


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
        if not good or any(not isinstance(v, int | float | None) for v in values or []):
            raise InputError(f"{folder / SUMMARY}: {name} of {label!r} is not a number per seed")
    time = numbers.get("us_per_episode")
    time = float(time) if isinstance(time, int | float) else None
    return [
        OneRun(seed, curves[seed], mistakes[seed], {f: numbers[f][n] for f in FIELDS}, time)
        for n, seed in enumerate(curves)
    ]


def _check_same_runs(entries: list[Entry], summary: dict[str, Any], folder: Path) -> None:
    """The tables and summary.json must be of one and the same command."""
    for each in entries:
        if each.episodes != summary["episodes"] or len(each.seeds) != summary["seeds"]:
            raise InputError(f"{folder}: {CURVES} and {SUMMARY} are not of the same runs")


def _about(name: str, preset: str, summary: dict[str, Any]) -> About:
    """What the records say; for `reproduce`, whose records say little, what the row says."""
    numbers = summary["algorithms"].get(name) or summary["algorithms"][f"{name}:{preset}"]
    if isinstance(numbers.get("settings"), dict):
        remarks = [str(numbers["tuned"])] if numbers.get("tuned") else []
        played = numbers.get("baseline_episodes")
        if isinstance(played, list) and played:
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


def _read(path: Path) -> Tables:
    """A table of curves or mistakes, by algorithm, preset and seed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(path)
        groups = (about.row_group(n) for n in range(about.num_row_groups))
        if (size := sum(group.total_byte_size for group in groups)) > LARGEST_FILE:
            raise InputError(f"{path} would unpack to {size} bytes, more than {LARGEST_FILE}")
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if not table.num_rows:
        raise InputError(f"{path} holds no runs")
    labels = ("algorithm", "preset", "seed")
    check_columns(dict.fromkeys(table.column_names, np.zeros(0)), labels, str(path))
    try:
        keys = list(zip(*(table[name].to_pylist() for name in labels), strict=True))
        numbers = {
            name: np.asarray(table[name], dtype=np.float64)
            for name in table.column_names
            if name not in labels
        }
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a table of numbers: {error}") from None
    places: dict[tuple[str, str, int], list[int]] = {}
    for place, (name, preset, seed) in enumerate(keys):
        places.setdefault((str(name), str(preset), int(seed or 0)), []).append(place)
    found: Tables = {}
    for (name, preset, seed), mine in places.items():
        found.setdefault((name, preset), {})[seed] = {k: v[mine] for k, v in numbers.items()}
    return {key: dict(sorted(by_seed.items())) for key, by_seed in found.items()}
