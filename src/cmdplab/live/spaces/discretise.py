"""How a Box becomes cells: a grid of equal widths, or quantiles of what a warm-up has seen.

A cell is one state to the learner. What is optimal for the cells may be far from optimal for the
numbers: the world is no longer Markov, and a finer grid needs more episodes for every cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cmdplab.checks import whole_number
from cmdplab.cmdp.checks import floats
from cmdplab.errors import InputError
from cmdplab.live.spaces.codecs import Cells, Levels, Several
from cmdplab.types import Array

Each = int | Sequence[int]  # one for all dimensions, or one for each


@dataclass(frozen=True)
class Grid:
    """Cells of equal width between `low` and `high`; beyond them the outer cells go on.

    bins : cells of each dimension. low, high : where the space has no bounds, or wider ones.
    actions : points of each dimension of a Box of actions, its ends included.
    """

    bins: Each = 10
    low: npt.ArrayLike | None = None
    high: npt.ArrayLike | None = None
    actions: Each | None = None
    episodes: ClassVar[int] = 0  # of a warm-up

    def code(self, what: str, space: Any, seen: Array) -> Several:
        """The cells of a Box; `seen` is not read."""
        low, high = bounds(what, space, self.low, self.high)
        for d, (a, b) in enumerate(zip(low, high, strict=True)):
            if not (np.isfinite([a, b]).all() and a < b):
                raise InputError(
                    f"dimension {d} of the {what} lies in [{a:g}, {b:g}]: give Grid(low=, high=) "
                    "finite numbers, or take Quantiles"
                )
        bins = per_dimension("bins", self.bins, len(low), 1)
        edges = [np.linspace(a, b, n + 1)[1:-1] for a, b, n in zip(low, high, bins, strict=True)]
        return _cells(edges, low, high, np.shape(space.low))


@dataclass(frozen=True)
class Quantiles:
    """Cells that hold equal shares of what a warm-up with random actions has seen.

    bins : cells of each dimension, fewer where values repeat. episodes : of the warm-up, which
    come before the learning and teach it nothing else. actions : as in `Grid`.
    """

    bins: Each = 10
    episodes: int = 100
    actions: Each | None = None

    def code(self, what: str, space: Any, seen: Array) -> Several:
        """The cells of a Box of which [n, dimensions] values were seen."""
        bins = per_dimension("bins", self.bins, seen.shape[1], 1)
        edges = []
        for column, n in zip(seen.T, bins, strict=True):
            inner = np.quantile(column, np.arange(1, n) / n) if n > 1 else np.zeros(0)
            edges.append(np.unique(inner))
        return _cells(edges, seen.min(axis=0), seen.max(axis=0), np.shape(space.low))


Discretiser = Grid | Quantiles


def levels(space: Any, actions: Each) -> Several:
    """The points of a Box of actions, equally far apart, its ends included."""
    low, high = bounds("action space", space, None, None)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise InputError("the action space has no bounds: its points cannot be chosen")
    counts = per_dimension("actions", actions, len(low), 2)
    parts = []
    for a, b, n in zip(low, high, counts, strict=True):
        points = np.linspace(a, b, n)
        middles = (points[1:] + points[:-1]) / 2.0
        parts.append(Levels(tuple(middles.tolist()), tuple(points.tolist())))
    return Several(tuple(parts), "array", (), tuple(np.shape(space.low)))


def bounds(
    what: str, space: Any, low: npt.ArrayLike | None, high: npt.ArrayLike | None
) -> tuple[Array, Array]:
    """[d] each: the ends of a Box, or those that a person gives."""
    size = int(np.size(space.low))
    found = []
    for name, given, own in (("low", low, space.low), ("high", high, space.high)):
        ends = np.ravel(floats(name, own if given is None else given))
        ends = np.repeat(ends, size) if ends.size == 1 else ends
        if ends.shape != (size,):
            raise InputError(f"{name} has {ends.size} numbers for {size} dimensions of the {what}")
        found.append(ends)
    return found[0], found[1]


def per_dimension(what: str, given: Each, size: int, least: int) -> list[int]:
    """One whole number for each dimension."""
    listed = list(given) if isinstance(given, Sequence) else [given] * size
    if len(listed) != size:
        raise InputError(f"{what} has {len(listed)} numbers for {size} dimensions")
    return [whole_number(what, each, least=least) for each in listed]


def _cells(edges: list[Array], low: Array, high: Array, shape: tuple[int, ...]) -> Several:
    parts = []
    for inner, a, b in zip(edges, low, high, strict=True):
        ends = np.sort(np.concatenate([[a], inner, [b]]))
        points = (ends[1:] + ends[:-1]) / 2.0
        parts.append(Cells(tuple(inner.tolist()), tuple(points.tolist())))
    return Several(tuple(parts), "array", (), shape)
