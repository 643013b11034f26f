"""One matrix per action: SciPy's sparse matrices, read entry by entry and never written out.

    P_a [S, S] with P_a[x, y] = P(y | x, a), in any of SciPy's formats

SciPy itself is not imported: whatever has `tocoo` is one of its matrices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.labels import Labels, checked_labels
from cmdplab.cmdp.transitions import ROW_SUM_TOLERANCE, Sparse
from cmdplab.errors import InputError
from cmdplab.formats.kernels import Transitions, normalised, stored
from cmdplab.types import Array, Indices


def is_sparse(given: Any) -> bool:
    """Whether something is a list of matrices of which one is sparse."""
    listed = isinstance(given, list | tuple) or getattr(given, "dtype", None) == np.dtype(object)
    return listed and any(hasattr(each, "tocoo") for each in given)


def per_action(given: Any, actions: int) -> bool:
    """Whether something is a list with a vector or a matrix for each action, not one array."""
    listed = isinstance(given, list | tuple) and len(given) == actions
    return listed and all(hasattr(each, "shape") and len(each.shape) == 1 for each in given)


def columns(what: str, given: Any) -> Array:
    """[S, A] of A vectors [S]."""
    vectors = [floats(what, each) for each in given]
    if len({each.shape for each in vectors}) != 1:
        raise InputError(f"the vectors of the {what} have shapes {[e.shape for e in vectors]}")
    return np.stack(vectors, axis=1)


class Entries(NamedTuple):
    """The entries of a matrix that are not zero, each place once."""

    row: Indices  # [E]
    column: Indices  # [E]
    value: Array  # [E]


def entries(matrix: Any, what: str, shape: tuple[int, int] | None = None) -> Entries:
    """The entries of a sparse or dense matrix; those that share a place are added."""
    if not hasattr(matrix, "tocoo"):
        table = floats(what, matrix)
        given, value = table.shape, table[table != 0.0] if table.ndim == 2 else table
        place = np.nonzero(table)
    else:
        added = matrix.tocsr().copy()
        added.sum_duplicates()
        found = added.tocoo()
        given, value, place = found.shape, found.data, (found.row, found.col)
    if len(given) != 2 or (shape is not None and given != shape):
        raise InputError(f"{what} has the shape {given}, not {shape or '[S, S]'}")
    if value.dtype.kind not in "biuf":
        raise InputError(f"{what} is not a matrix of real numbers")
    row, column = (each.astype(np.int64) for each in place)
    return Entries(row, column, value.astype(np.float64))


class Matrices(NamedTuple):
    """The transitions of all actions, in the order of the actions."""

    states: int
    actions: int
    every: Transitions
    labels: Labels

    def kernel(self, reward: Any) -> Array | Sparse:
        """The kernel, in which what a reward of -inf closes leads nowhere."""
        mask = ~np.isneginf(self.expected("reward", reward))
        every = self.every.within(mask)
        return stored(normalised(every, mask, self.labels, ROW_SUM_TOLERANCE), mask, "P")

    def expected(self, what: str, given: Any) -> Array:
        """[S, A]: a reward for each pair, the expected one where it depends on the next state."""
        S, A = self.states, self.actions
        listed = isinstance(given, list | tuple) and len(given) == A
        if is_sparse(given) or (listed and all(np.ndim(each) == 2 for each in given)):
            return self._following(what, given)
        if per_action(given, A):
            given = columns(what, given)
        table = floats(what, given.toarray() if hasattr(given, "toarray") else given)
        if table.ndim == 1 and table.shape == (S,):
            return np.repeat(table[:, None], A, axis=1)
        if table.shape == (A, S, S):
            return self._following(what, list(table))
        if table.shape != (S, A):
            raise InputError(f"{what} has the shape {table.shape}, and there are {(S, A)} pairs")
        return table

    def _following(self, what: str, given: Any) -> Array:
        """[S, A]: sum_y P_a(x, y) R_a(x, y), of a matrix for each action."""
        if len(given) != self.actions:
            raise InputError(f"{what} has {len(given)} matrices, and there are {self.actions}")
        table = np.zeros((self.states, self.actions))
        for a, matrix in enumerate(given):
            paid = entries(matrix, f"{what}[{a}]", (self.states, self.states))
            here = self.every.action == a
            row, column = self.every.state[here], self.every.target[here]
            known = paid.row * self.states + paid.column  # ascending, as rows of CSR are
            order = np.argsort(known)
            known, value = known[order], paid.value[order]
            wanted = row * self.states + column
            at = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
            pay = np.where(known[at] == wanted, value[at], 0.0) if len(known) else 0.0
            np.add.at(table[:, a], row, self.every.probability[here] * pay)
        return table


def read(transition: Any, labels: Labels) -> Matrices:
    """The transitions of A matrices [S, S]."""
    parts: list[Entries] = []
    shape: tuple[int, int] | None = None
    for a, matrix in enumerate(transition):
        parts.append(entries(matrix, f"transition[{a}]", shape))
        shape = (matrix.shape[0], matrix.shape[0])
        if matrix.shape != shape or 0 in shape:
            raise InputError(f"transition[{a}] has the shape {matrix.shape}, not [S, S]")
    assert shape is not None  # a list with a sparse matrix has a matrix
    action = np.repeat(np.arange(len(parts)), [len(each.row) for each in parts])
    row, column, value = (np.concatenate(each) for each in zip(*parts, strict=True))
    every = Transitions(row, action, column, value)
    checked_labels(labels, (shape[0], len(parts)), 0, None)
    return Matrices(shape[0], len(parts), checked(every, labels), labels)


def checked(every: Transitions, labels: Labels) -> Transitions:
    """These transitions, if each is a probability; a refusal names the place."""
    wrong = np.flatnonzero(~((every.probability >= 0.0) & (every.probability <= 1.0 + 1e-8)))
    if len(wrong):
        x, a, y = (int(each[wrong[0]]) for each in every[:3])
        where = f"from state {labels.state(x)} by action {labels.action(a)} to {labels.state(y)}"
        raise InputError(f"{every.probability[wrong[0]]:g} {where} is not a probability")
    return every
