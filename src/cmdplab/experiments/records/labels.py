"""The one place where runs get their names: what tells them apart, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from cmdplab.algorithms.row import Row
    from cmdplab.experiments.play import Run
    from cmdplab.experiments.run_settings import RunSettings

_NOT_OF_A_KIND = {"problem", "fingerprint", "algorithm", "preset", "seed"}


class Kind(NamedTuple):
    """All that the runs of one line have in common: not the problem, not the seed."""

    algorithm: str
    preset: str
    settings: tuple[tuple[str, Any], ...] = ()


def kind_of(run: RunSettings) -> Kind:
    """The kind of a recorded run."""
    settings = {k: v for k, v in dict(run).items() if k not in _NOT_OF_A_KIND}
    return Kind(run.algorithm, run.preset, tuple(settings.items()))


def kind_of_row(row: Row) -> Kind:
    """The kind of a run in memory."""
    return Kind(row.name, row.preset, tuple(row.settings().items()))


def labels(kinds: Sequence[Kind]) -> dict[Kind, str]:
    """NAME, NAME:PRESET or NAME (setting value, ...): only what differs among those of one name.

    A setting is named where it differs within a preset; presets differ in many, and are named.
    """
    different = dict.fromkeys(kinds)
    presets: dict[str, dict[str, None]] = {}
    values: dict[tuple[str, str, str], dict[Any, None]] = {}
    for each in different:
        presets.setdefault(each.algorithm, {})[each.preset] = None
        for name, value in each.settings:
            values.setdefault((each.algorithm, each.preset, name), {})[value] = None
    found = {}
    for each in different:
        name = each.algorithm
        name += f":{each.preset}" if len(presets[name]) > 1 else ""
        differ = [
            _words(setting, value)
            for setting, value in each.settings
            if len(values[each.algorithm, each.preset, setting]) > 1
        ]
        found[each] = f"{name} ({', '.join(differ)})" if differ else name
    return found


def by_label(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each algorithm; those that come in several settings are told apart by them."""
    kinds = [kind_of_row(run.algorithm) for run in runs]
    named = labels(kinds)
    grouped: dict[str, list[Run]] = {}
    for run, kind in zip(runs, kinds, strict=True):
        grouped.setdefault(named[kind], []).append(run)
    return grouped


def _words(setting: str, value: Any) -> str:
    if setting == "episodes":
        return "unlimited" if value is None else f"{value:,} episodes"
    usual: Mapping[str, str] = {"rewards": "known", "precision": "float64"}
    return f"{setting} {usual.get(setting, 'none') if value is None else value}"
