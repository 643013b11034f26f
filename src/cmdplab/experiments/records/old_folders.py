"""Folders that `reproduce` and `compare` of version 0.1 wrote: one table of curves, one summary.

Later versions keep a folder for each run (docs/experiments.md). This module reads, and only that.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cmdplab.errors import InputError
from cmdplab.experiments import manifest
from cmdplab.experiments.records.labels import Kind, labels
from cmdplab.experiments.records.summary import SUMMARY, read_summary
from cmdplab.experiments.records.tables import LARGEST, read_tables
from cmdplab.measures.measures import NUMBERS
from cmdplab.types import Array

CURVES, MISTAKES = "curves.parquet", "mistakes.parquet"
_NEWER = ("experiment.json", manifest.NAME)


class OldGroup(NamedTuple):
    """One algorithm over its seeds."""

    label: str
    algorithm: str
    preset: str
    numbers: dict[str, Any]  # of summary.json
    curves: dict[int, dict[str, Array]]  # by seed
    mistakes: dict[int, dict[str, Array]]

    def settings(self, summary: dict[str, Any]) -> dict[str, Any]:
        """The settings written down: all by `compare`, the bonus scale by `reproduce`."""
        scale = summary.get("bonus_scale")
        known = self.numbers.get("settings")
        return known if isinstance(known, dict) else {} if scale is None else {"bonus_scale": scale}


class OldFolder(NamedTuple):
    """All of it."""

    summary: dict[str, Any]
    groups: list[OldGroup]


def is_old(folder: Path) -> bool:
    """Whether a folder holds what version 0.1 wrote, and nothing newer."""
    newer = any((folder / name).exists() for name in _NEWER)
    return not newer and (folder / SUMMARY).exists() and (folder / CURVES).exists()


def read_old(folder: Path) -> OldFolder:
    """Both tables and the summary, which must be of one and the same command."""
    if not (folder / MISTAKES).exists():
        raise InputError(
            f"{folder} has no {MISTAKES}: it is of a version that counted none, so run it again"
        )
    summary = read_summary(folder / SUMMARY)
    curves, mistakes = read_tables(folder / CURVES), read_tables(folder / MISTAKES)
    if {k: set(v) for k, v in curves.items()} != {k: set(v) for k, v in mistakes.items()}:
        raise InputError(f"{folder}: {CURVES} and {MISTAKES} are not of the same runs")
    named = labels([Kind(*pair) for pair in curves])
    groups = []
    for pair, by_seed in curves.items():
        label = named[Kind(*pair)]
        if label not in summary["algorithms"]:
            raise InputError(f"{folder}: {CURVES} has {label!r}, and {SUMMARY} does not")
        numbers = summary["algorithms"][label]
        _check_numbers(numbers, len(by_seed), f"of {label!r}", folder / SUMMARY)
        groups.append(OldGroup(label, *pair, numbers, by_seed, mistakes[pair]))
    missing = sorted(set(summary["algorithms"]) - {group.label for group in groups})
    if missing:
        raise InputError(f"{folder}: {SUMMARY} has {missing[0]!r}, and {CURVES} does not")
    return OldFolder(summary, groups)


def old_curves(folder: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """An Arrow table for each run, and what is known of the run."""
    import pyarrow as pa

    summary, groups = read_old(folder)
    for group in groups:
        known = {"algorithm": group.algorithm, "preset": group.preset} | group.settings(summary)
        known["problem"] = summary["instance"]
        for seed, columns in group.curves.items():
            table = pa.table(columns | {"episode": columns["episode"].astype(np.int64)})
            yield table, known | {"seed": seed, "run": f"{group.label}-{seed}"}


def _check_numbers(numbers: dict[str, Any], seeds: int, whose: str, path: Path) -> None:
    for name in NUMBERS:
        values = numbers.get(name)
        good = isinstance(values, list) and len(values) == seeds
        if not good or not all(_is_number(v) for v in values or []):
            raise InputError(f"{path}: {name} {whose} is not a number per seed")


def _is_number(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and abs(value) <= LARGEST)
