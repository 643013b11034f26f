"""The natural forms of what a learner has counted, as its state keeps them.

A table [L, X, A, X] of visits to (layer, x, a, y); lists [L, X, A, S] where a known kernel has few
successors; or rows [M, 5] of (layer, x, a, y, visits), one for each transition that was seen, where
nobody knows the kernel and a table would be large. L is H, or 1 where steps share their counts.
"""

from __future__ import annotations

import numpy as np

from cmdplab.types import Array, Indices


def as_rows(counts: Array) -> Array:
    """A table as rows [M, 5]; rows as they are."""
    if counts.ndim == 2:
        return counts
    at = np.nonzero(counts)
    return np.stack([*at, counts[at]], axis=1).astype(np.float64)


def as_table(counts: Array, layers: int, states: int, actions: int) -> Array:
    """Rows as a table [L, X, A, X]; a table as it is."""
    if counts.ndim == 4:
        return counts
    table = np.zeros((layers, states, actions, states))
    table[*_places(counts, 4)] = counts[:, 4]
    return table


def visits_of(counts: Array, layers: int, states: int, actions: int) -> Array:
    """[L, X, A], the visits of pairs, whatever the form."""
    if counts.ndim == 4:
        return np.asarray(counts.sum(axis=-1))
    visits = np.zeros((layers, states, actions))
    np.add.at(visits, tuple(_places(counts, 3)), counts[:, 4])
    return visits


def no_rows() -> Array:
    """Rows of nothing seen."""
    return np.zeros((0, 5))


def _places(rows: Array, columns: int) -> Indices:
    return np.asarray(rows[:, :columns].T, dtype=np.int64)
