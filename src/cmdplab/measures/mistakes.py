"""Mistakes for every epsilon at once: how many episodes were worse, and which was the last.

N_eps = sum_k 1{x^k > eps} of a series x (Section 2.2), counted exactly on a logarithmic grid of eps
from H 1e-5 to H while a run goes on. A value falls between two points of the grid; a histogram of
those places is all that is kept, and sums over it are the counts at every point.
"""

from __future__ import annotations

import numpy as np

from cmdplab.types import Array

DECADES = 5
PER_DECADE = 40
SERIES = ("gap", "violation", "either")  # either: the larger of the two


def epsilons(horizon: int) -> Array:
    """[201]: H 10^-5 ... H, forty points a decade."""
    powers = np.arange(-DECADES * PER_DECADE, 1) / PER_DECADE
    return np.asarray(horizon * 10.0**powers)


class Mistakes:
    """Counts and last episodes for several series, streaming and exact at the grid."""

    def __init__(self, grid: Array, series: int) -> None:
        self._grid = grid
        self._counts = np.zeros((series, len(grid) + 1))
        self._last = np.zeros((series, len(grid) + 1))

    def add(self, values: Array, episodes: Array) -> None:
        """The next episodes: values [E, series], their numbers [E] in ascending order."""
        for n, series in enumerate(values.T):
            wrong = series > self._grid[0]
            # How many points of the grid lie below a value: it is a mistake for each of them.
            places = np.searchsorted(self._grid, series[wrong], side="left")
            self._counts[n] += np.bincount(places, minlength=len(self._grid) + 1)
            self._last[n, places] = episodes[wrong]  # of several, NumPy keeps the last one

    def counts(self) -> Array:
        """[series, epsilons]: the number of episodes whose value exceeds epsilon."""
        return _from_above(np.add, self._counts)

    def last(self) -> Array:
        """[series, epsilons]: the last such episode; 0 if there was none."""
        return _from_above(np.maximum, self._last)

    def arrays(self) -> dict[str, Array]:
        """All that is needed to go on."""
        return {"mistakes": self._counts, "last_mistakes": self._last}

    def resume(self, arrays: dict[str, Array]) -> None:
        """Go on where others stopped."""
        self._counts = arrays["mistakes"].copy()
        self._last = arrays["last_mistakes"].copy()


def _from_above(combine: np.ufunc, histogram: Array) -> Array:
    """What is at place j or above is a mistake for epsilon j - 1."""
    return np.asarray(combine.accumulate(histogram[:, ::-1], axis=1)[:, ::-1][:, 1:])
