"""Curves for a page: the median over seeds, and a band from which no episode can escape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cmdplab.types import Array

POINTS = 1200
FEWEST = 120
BYTES = 3_300_000  # for all curves of a page, encoded


class Thinned(NamedTuple):
    """A column at the points kept: median over seeds, lowest and highest since the point before."""

    median: Array
    low: Array
    high: Array
    sums: bool  # a running sum: the band is over seeds, at the point itself


def points_for(columns: int) -> int:
    """The number of points that each of so many columns may have."""
    each = 3 * 4 * 4 // 3  # bytes: three singles, in base64
    return max(FEWEST, min(POINTS, BYTES // (columns * each)))


def kept(episodes: Array, points: int) -> NDArray[np.intp]:
    """Which rows to keep: half of them evenly spaced for a linear axis, half for a logarithmic one.

    The first and the last are always among them.
    """
    if len(episodes) <= points:
        return np.arange(len(episodes))
    first, last = float(episodes[0]), float(episodes[-1])
    half = points // 2
    wanted = np.concatenate(
        [np.linspace(first, last, points - half), np.geomspace(max(first, 1.0), last, half)]
    )
    ends = np.searchsorted(episodes, wanted * (1.0 - 1e-12))
    return np.unique(np.concatenate([[0], np.minimum(ends, len(episodes) - 1)]))


def thinned(curves: Sequence[dict[str, Array]], points: int) -> tuple[Array, dict[str, Thinned]]:
    """The episodes kept, and every column there.

    Gap and violations come with their extremes over all episodes; multipliers and weak regrets are
    known at the grid of the records, and no grid point between two kept ones is lost.
    """
    episodes = curves[0]["episode"]
    ends = kept(episodes, points)
    starts = np.concatenate([[0], ends[:-1] + 1])
    columns: dict[str, Thinned] = {}
    for name in curves[0]:
        if name == "episode" or name.endswith(("_min", "_max")):
            continue
        values = np.stack([each[name] for each in curves])
        low = np.min([each.get(f"{name}_min", each[name]) for each in curves], axis=0)
        high = np.max([each.get(f"{name}_max", each[name]) for each in curves], axis=0)
        sums = name.startswith("strong_")
        columns[name] = Thinned(
            median=np.median(values, axis=0)[ends],
            low=low[ends] if sums else np.minimum.reduceat(low, starts),
            high=high[ends] if sums else np.maximum.reduceat(high, starts),
            sums=sums,
        )
    return episodes[ends], columns
