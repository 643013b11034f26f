"""The natural forms of a learner's counts, as its state keeps them.

A table [L, X, A, X] has the visits to (layer, x, a, y). If a known kernel has few successors, lists
[L, X, A, S] replace it. If the kernel is unknown and a table would be large, rows [M, 5] do: one
(layer, x, a, y, visits) for each transition seen. L is H, or 1 if steps share their counts.

Outside, the last of H steps has no known successor: many environments end there because the time
is over. If steps share their counts, that would be a wrong transition of the other steps. Hence
`ends` counts such a visit: it is one to the pair, with its rewards, and none to any successor.
"""

from __future__ import annotations

import numpy as np

from cmdplab.types import Array, Indices

NOWHERE = -1  # the state after the last step, if it is unknown
NO_ENDS = np.zeros((0, 0, 0))  # no visit lacks its successor


def as_rows(counts: Array) -> Array:
    """Return a table as rows [M, 5], and rows as they are."""
    if counts.ndim == 2:
        return counts
    at = np.nonzero(counts)
    return np.stack([*at, counts[at]], axis=1).astype(np.float64)


def as_table(counts: Array, layers: int, states: int, actions: int) -> Array:
    """Return rows as a table [L, X, A, X], and a table as it is."""
    if counts.ndim == 4:
        return counts
    table = np.zeros((layers, states, actions, states))
    table[*_places(counts, 4)] = counts[:, 4]
    return table


def visits_of(counts: Array, layers: int, states: int, actions: int) -> Array:
    """Return [L, X, A], the visits of pairs, for every form."""
    if counts.ndim == 4:
        # Where they are a known kernel, no whole numbers, a resumed run must add in the same order.
        return np.asarray(np.ascontiguousarray(counts).sum(axis=-1))
    visits = np.zeros((layers, states, actions))
    np.add.at(visits, tuple(_places(counts, 3)), counts[:, 4])
    return visits


def with_end(ends: Array, shape: tuple[int, ...], place: tuple[int, ...], visit: float) -> Array:
    """Return the visits [L, X, A] without a known successor, after one more such visit."""
    ends = ends.copy() if len(ends) else np.zeros(shape)
    ends[place] += visit
    return ends


def all_visits(moves: Array, ends: Array) -> Array:
    """Return [L, X, A], all visits of pairs: those with a known successor and those without."""
    return moves + ends if len(ends) else moves


def no_rows() -> Array:
    """Return rows of no visits."""
    return np.zeros((0, 5))


def _places(rows: Array, columns: int) -> Indices:
    return np.asarray(rows[:, :columns].T, dtype=np.int64)
