"""Labels of algorithms, and paired comparisons of all algorithms with one of them.

A comparison pairs the runs of equal seeds (`statistics.paired`), since on one seed all algorithms
have the same random numbers. It compares strong regret and strong violation regret: sums of losses
and of violations over the episodes. Smaller values are better.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cmdplab.errors import InputError

if TYPE_CHECKING:
    from cmdplab.algorithms.row import Row
    from cmdplab.experiments.play import Run
    from cmdplab.experiments.run_settings import RunSettings
    from cmdplab.statistics import Paired

_NOT_OF_A_KIND = {"problem", "fingerprint", "algorithm", "preset", "seed"}


class Kind(NamedTuple):
    """Algorithm, preset and settings: all that runs of one label have in common."""

    algorithm: str
    preset: str
    settings: tuple[tuple[str, Any], ...] = ()


def kind_of(run: RunSettings) -> Kind:
    """Return algorithm, preset and settings of a recorded run."""
    settings = {k: v for k, v in dict(run).items() if k not in _NOT_OF_A_KIND}
    return Kind(run.algorithm, run.preset, tuple(settings.items()))


def kind_of_row(row: Row) -> Kind:
    """Return algorithm, preset and settings of a row."""
    return Kind(row.name, row.preset, tuple(row.settings().items()))


def labels(kinds: Sequence[Kind]) -> dict[Kind, str]:
    """Return labels NAME, NAME:PRESET or NAME (setting value, ...) that distinguish the kinds.

    A label names a setting if the setting differs within a preset, and the preset if there are
    several.
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
    """Return {label: runs}. Labels distinguish algorithms, presets and settings."""
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


MEASURES = {
    "strong_regret": "strong regret",
    "strong_violation_regret": "strong violation regret",
}

Numbers = Mapping[int, Mapping[str, float | None]]  # seed -> measure -> value


class Rival(NamedTuple):
    """Label, name and preset of an algorithm: `label_of` accepts each of them."""

    label: str  # the name in tables
    name: str
    preset: str


def label_of(versus: str, rivals: Iterable[Rival]) -> str:
    """Return the label of the one rival that `versus` names: a label, NAME:PRESET or NAME."""
    rivals = list(rivals)
    wanted = versus.strip().lower()
    for spelled in ("{0.label}", "{0.name}:{0.preset}", "{0.name}"):
        found = [each.label for each in rivals if spelled.format(each).lower() == wanted]
        if len(found) > 1:
            raise InputError(f"versus {versus} is more than one: choose {' or '.join(found)}")
        if found and len(rivals) < 2:
            raise InputError(f"versus {versus} takes at least one other algorithm")
        if found:
            return found[0]
    known = ", ".join(each.label for each in rivals)
    raise InputError(f"versus {versus} is none of the algorithms compared: choose from {known}")


def paired_with(versus: str | None, numbers: Mapping[str, Numbers]) -> list[Paired]:
    """Compare the label `versus` with every other label in each measure, on their common seeds.

    numbers : by label and seed, the values of the measures. Return [] if `versus` is None or has no
    numbers, or if there is no other label.
    """
    if versus is None or versus not in numbers or len(numbers) < 2:
        return []
    from cmdplab.statistics import compare_with  # half a second, for which labels have no use

    common = set.intersection(*(set(each) for each in numbers.values()))
    seeds = sorted(common)
    measured: dict[str, Any] = {}
    for field, words in MEASURES.items():
        samples = {label: [mine[seed][field] for seed in seeds] for label, mine in numbers.items()}
        if seeds and not any(None in each for each in samples.values()):
            measured[words] = samples
    return compare_with(versus, measured)


def too_few_seeds(algorithms: int, seeds: int, constrained: bool = True) -> str:
    """Return a sentence if so few seeds cannot give a significant comparison, else "".

    algorithms : their number. constrained : True if violations are compared too.
    """
    from cmdplab.statistics import seeds_needed

    comparisons = (algorithms - 1) * (2 if constrained else 1)
    needed = seeds_needed(comparisons) if comparisons else 0
    if seeds >= needed:
        return ""
    return f"{comparisons} comparisons on {seeds} seeds can claim nothing: --seeds {needed} could"
