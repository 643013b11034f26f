"""Few of all combinations: enough that every two traits still meet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations, product
from typing import Any

import pytest

Traits = Callable[[Any], Iterable[Hashable]]


def pairwise(*axes: Sequence[Any], traits: Traits = lambda value: [value]) -> list[tuple[Any, ...]]:
    """Combinations of one value from each axis in which each trait of one meets each of another.

    Every value occurs. Greedy, and the same every time: next is the first of those that add most.
    """
    everything = list(product(*(range(len(axis)) for axis in axes)))
    known = [[list(traits(value)) for value in axis] for axis in axes]

    def meetings(chosen: tuple[int, ...]) -> set[Hashable]:
        values: set[Hashable] = set(enumerate(chosen))
        for i, j in combinations(range(len(axes)), 2):
            pairs = product(known[i][chosen[i]], known[j][chosen[j]])
            values |= {(i, j, *pair) for pair in pairs}
        return values

    left = {chosen: meetings(chosen) for chosen in everything}
    missing = set().union(*left.values())
    found = []
    while missing:
        best = max(everything, key=lambda chosen: len(left[chosen] & missing))
        missing -= left[best]
        found.append(best)
    return [tuple(axis[n] for axis, n in zip(axes, each, strict=True)) for each in sorted(found)]


def crossed(*axes: Sequence[Any], traits: Traits, ids: Callable[[Any], str]) -> list[Any]:
    """Parameters of a test: every combination, of which all but the pairwise ones are slow."""
    quick = pairwise(*axes, traits=traits)
    return [
        pytest.param(
            *each,
            id="-".join(map(ids, each)),
            marks=[] if each in quick else [pytest.mark.slow],
        )
        for each in product(*axes)
    ]
