"""Mistakes for every epsilon at once: the number of worse episodes, and the last of them.

N_eps = sum_k 1{x^k > eps} of a series x (Section 2.2) is counted exactly on a logarithmic grid of
eps from H 1e-5 to H during a run. A value lies between two points of the grid. Only a histogram of
these places is kept. Its cumulative sums are the counts at every point of the grid.
"""

from __future__ import annotations

import numpy as np

from cmdplab.types import Array

DECADES = 5
PER_DECADE = 40
SERIES = ("gap", "violation", "either")  # either: the larger of the two


def epsilons(horizon: int) -> Array:
    """Return the grid of epsilon from H 10^-5 to H, with forty points a decade: [201]."""
    powers = np.arange(-DECADES * PER_DECADE, 1) / PER_DECADE
    return np.asarray(horizon * 10.0**powers)


class Mistakes:
    """Numbers of mistakes and last mistakes of several series, at each epsilon of a grid."""

    def __init__(self, grid: Array, series: int) -> None:
        self._grid = grid
        self._counts = np.zeros((series, len(grid) + 1))
        self._last = np.zeros((series, len(grid) + 1))

    def add(self, values: Array, episodes: Array) -> None:
        """Add the next E episodes: values [E, series] and ascending episode numbers [E]."""
        for n, series in enumerate(values.T):
            wrong = series > self._grid[0]
            # A value is a mistake for each point of the grid below it.
            places = np.searchsorted(self._grid, series[wrong], side="left")
            self._counts[n] += np.bincount(places, minlength=len(self._grid) + 1)
            self._last[n, places] = episodes[wrong]  # NumPy keeps the last of equal places

    def counts(self) -> Array:
        """Return the number of episodes whose value exceeds each epsilon: [series, epsilons]."""
        return _from_above(np.add, self._counts)

    def last(self) -> Array:
        """Return the last episode whose value exceeds each epsilon, or 0: [series, epsilons]."""
        return _from_above(np.maximum, self._last)

    def arrays(self) -> dict[str, Array]:
        """Return the histograms as named arrays, from which `resume` continues."""
        return {"mistakes": self._counts, "last_mistakes": self._last}

    def resume(self, arrays: dict[str, Array]) -> None:
        """Continue from the arrays of an earlier part of a run."""
        self._counts = arrays["mistakes"].copy()
        self._last = arrays["last_mistakes"].copy()


def _from_above(combine: np.ufunc, histogram: Array) -> Array:
    """Combine a histogram [series, places] over the places above each epsilon."""
    return np.asarray(combine.accumulate(histogram[:, ::-1], axis=1)[:, ::-1][:, 1:])
