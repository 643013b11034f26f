"""Every algorithm of a study against one of them, seed by seed, in the sums that count harm.

Strong regret and strong violation regret: the sums of what was lost and of what was violated, in
which smaller is better. All algorithms meet the same random numbers on a seed, so that differences
are taken seed by seed (`statistics.paired`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cmdplab.errors import InputError
from cmdplab.statistics import Paired, compare_with, seeds_needed

MEASURES = {
    "strong_regret": "strong regret",
    "strong_violation_regret": "strong violation regret",
}

Numbers = Mapping[int, Mapping[str, float | None]]  # of each seed


class Rival(NamedTuple):
    """An algorithm as a person may call it."""

    label: str  # as tables call it
    name: str
    preset: str


def label_of(versus: str, rivals: Iterable[Rival]) -> str:
    """The label of the one algorithm that `versus` names: a label, NAME:PRESET or NAME."""
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


def paired_with(versus: str, numbers: Mapping[str, Numbers]) -> list[Paired]:
    """The label `versus` with every other, in each measure, on the seeds that all of them have."""
    common = set.intersection(*(set(each) for each in numbers.values()))
    seeds = sorted(common)
    measured: dict[str, Any] = {}
    for field, words in MEASURES.items():
        samples = {label: [mine[seed][field] for seed in seeds] for label, mine in numbers.items()}
        if seeds and not any(None in each for each in samples.values()):
            measured[words] = samples
    return compare_with(versus, measured)


def too_few_seeds(algorithms: int, seeds: int, constrained: bool = True) -> str:
    """Empty, or why so many comparisons can claim nothing on so few seeds."""
    comparisons = (algorithms - 1) * (2 if constrained else 1)
    needed = seeds_needed(comparisons) if comparisons else 0
    if seeds >= needed:
        return ""
    return f"{comparisons} comparisons on {seeds} seeds can claim nothing: --seeds {needed} could"
