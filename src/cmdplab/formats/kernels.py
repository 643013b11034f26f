"""Kernels from lists of transitions and from sparse matrices of SciPy.

A sparse matrix is never made dense. Its entries become transitions, and a large kernel becomes
lists of successors. Rewards per matrix entry become expectations. S = X is the number of states, A
that of actions, H that of steps, E that of transitions. `what` is the name of an array in an error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.cmdp.checks import close_rows, floats
from cmdplab.cmdp.labels import Labels, checked_labels
from cmdplab.cmdp.transitions import ROW_SUM_TOLERANCE, Sparse
from cmdplab.errors import InputError
from cmdplab.types import Array, Indices, Mask

LARGEST = 100_000_000  # most numbers of an array that a reader makes
DENSE = 1_000_000  # entries up to which a kernel is stored as a full table
TEXT_TOLERANCE = 1e-5  # a row of text may be off by this much: some tools print six digits


class Transitions(NamedTuple):
    """Transitions P_step(target | state, action) = probability. A pair lists a target once.

    `step` is None if the kernel is the same at every step.
    """

    state: Indices  # [E]
    action: Indices  # [E]
    target: Indices  # [E]
    probability: Array  # [E]
    step: Indices | None = None  # [E]

    @property
    def pair(self) -> tuple[Indices, ...]:
        """Indices of the transitions' pairs in an array [X, A], or [H, X, A] with steps."""
        steps = () if self.step is None else (self.step,)
        return (*steps, self.state, self.action)

    def within(self, mask: Mask) -> Transitions:
        """Return the transitions of open pairs. mask : [X, A] or [H, X, A]."""
        keep = mask[self.pair]
        step = None if self.step is None else self.step[keep]
        pair = self.state[keep], self.action[keep]
        return Transitions(*pair, self.target[keep], self.probability[keep], step)


def stored(given: Transitions, mask: Mask) -> Array | Sparse:
    """Return the kernel: a table [X, A, X] or [H, X, A, X], or lists of successors if large.

    Closed pairs stay in their state. mask : [X, A], or [H, X, A] if the transitions have steps.
    """
    X, A = mask.shape[-2:]
    if mask.size * X > DENSE:
        told = (given.state, given.action, given.target, given.probability)
        return Sparse.from_triplets(*told, (X, A), mask, given.step)
    table = np.zeros((*mask.shape, X))
    table[(*given.pair, given.target)] = given.probability
    close_rows(table, mask if mask.ndim == 3 else mask[None])
    return table


def normalised(given: Transitions, mask: Mask, labels: Labels, tolerance: float) -> Transitions:
    """Return the transitions with sums of 1 up to rounding. Refuse sums off by over `tolerance`.

    mask : the open pairs, whose sums are checked. The error names the pair.
    """
    total = np.zeros(mask.shape)
    np.add.at(total, given.pair, given.probability)
    wrong = np.argwhere(mask & ~(np.abs(total - 1.0) <= tolerance))
    if len(wrong):
        place = tuple(int(each) for each in wrong[0])
        raise InputError(
            f"the probabilities of {pair_named(place, labels)} sum to {total[place]:.9g}, not 1"
        )
    total[np.abs(total - 1.0) <= ROW_SUM_TOLERANCE] = 1.0
    return given._replace(probability=given.probability / total[given.pair])


def pair_named(place: tuple[int, ...], labels: Labels) -> str:
    """Return the words for a pair: place (x, a), or (h, x, a) with a step."""
    *step, state, action = place
    where = f" at step {labels.step(step[0])}" if step else ""
    return f"action {labels.action(action)} in state {labels.state(state)}{where}"


def is_sparse(given: Any) -> bool:
    """Return True for a list of matrices that contains a SciPy matrix."""
    listed = isinstance(given, list | tuple) or getattr(given, "dtype", None) == np.dtype(object)
    return listed and any(hasattr(each, "tocoo") for each in given)


def per_action(given: Any, actions: int) -> bool:
    """Return True for a list of `actions` vectors."""
    listed = isinstance(given, list | tuple) and len(given) == actions
    return listed and all(hasattr(each, "shape") and len(each.shape) == 1 for each in given)


def stacked(what: str, given: Any) -> Array:
    """Return the array [S, A] of A vectors [S]. what : their name, for error messages."""
    vectors = [floats(what, each) for each in given]
    if len({each.shape for each in vectors}) != 1:
        raise InputError(f"the vectors of the {what} have shapes {[e.shape for e in vectors]}")
    return np.stack(vectors, axis=1)


class Entries(NamedTuple):
    """Non-zero entries of a matrix, each place once."""

    row: Indices  # [E]
    column: Indices  # [E]
    value: Array  # [E]


def entries(matrix: Any, what: str, shape: tuple[int, int] | None = None) -> Entries:
    """Return the non-zero entries of a sparse or dense matrix. Entries of one place are added.

    what : its name, for error messages. shape : the required shape, if there is one.
    """
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
    """Transitions read from one matrix per action."""

    states: int
    actions: int
    every: Transitions
    labels: Labels

    def kernel(self, reward: Any) -> Array | Sparse:
        """Return the kernel as `stored` does. A reward of -inf closes a pair."""
        mask = ~np.isneginf(self.expected("reward", reward))
        every = self.every.within(mask)
        return stored(normalised(every, mask, self.labels, ROW_SUM_TOLERANCE), mask)

    def expected(self, what: str, given: Any) -> Array:
        """Return the expected reward of each pair, [S, A].

        given : [S], [S, A], [A, S, S], or a list with one vector [S] or matrix [S, S] per action.
        """
        S, A = self.states, self.actions
        listed = isinstance(given, list | tuple) and len(given) == A
        if is_sparse(given) or (listed and all(np.ndim(each) == 2 for each in given)):
            return self._following(what, given)
        if per_action(given, A):
            given = stacked(what, given)
        table = floats(what, given.toarray() if hasattr(given, "toarray") else given)
        if table.ndim == 1 and table.shape == (S,):
            return np.repeat(table[:, None], A, axis=1)
        if table.shape == (A, S, S):
            return self._following(what, list(table))
        if table.shape != (S, A):
            raise InputError(f"{what} has the shape {table.shape}, and there are {(S, A)} pairs")
        return table

    def _following(self, what: str, given: Any) -> Array:
        """Return sum_y P_a(x, y) R_a(x, y), [S, A], for matrices R_a of rewards."""
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


def read_matrices(transition: Any, labels: Labels) -> Matrices:
    """Return the transitions of a list of A matrices [S, S]."""
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
    return Matrices(shape[0], len(parts), checked_transitions(every, labels), labels)


def checked_transitions(every: Transitions, labels: Labels) -> Transitions:
    """Return the transitions. Refuse a probability outside [0, 1], and name its place."""
    wrong = np.flatnonzero(~((every.probability >= 0.0) & (every.probability <= 1.0 + 1e-8)))
    if len(wrong):
        x, a, y = (int(each[wrong[0]]) for each in every[:3])
        where = f"from state {labels.state(x)} by action {labels.action(a)} to {labels.state(y)}"
        raise InputError(f"{every.probability[wrong[0]]:g} {where} is not a probability")
    return every
