"""Transition kernels: dense rows, or lists of successors where rows have few.

Both answer the same three questions, so that no dynamic program needs to know which it has:

    ahead(h, v)[x, a] = sum_y P_h(y | x, a) v(y)
    forward(h, w)[y] = sum_{x, a} w(x, a) P_h(y | x, a)
    successors(h, x, a) = the states y with P_h(y | x, a) > 0, ascending, and these probabilities
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmdplab.errors import InputError
from cmdplab.types import Array, Indices, Mask

ROW_SUM_TOLERANCE = 1e-8  # a row of probabilities may be off by this much; it is then normalised
LARGEST_DENSE = 200_000_000  # entries that `Sparse.dense` is willing to write out


@dataclass(frozen=True, eq=False)
class Dense:
    """P_h(y | x, a) = table[h, x, a, y]."""

    table: Array  # [H, X, A, X]; a view with stride zero along h where the kernel is stationary

    def ahead(self, h: int, value: Array) -> Array:
        """[X, A]: the expected value of the next state."""
        return np.asarray(self.table[h] @ value)

    def forward(self, h: int, pairs: Array) -> Array:
        """[X]: where the mass of pairs [X, A] goes."""
        return np.asarray(np.einsum("xa,xay->y", pairs, self.table[h]))

    def successors(self, h: int, x: int, a: int) -> tuple[Indices, Array]:
        """The possible next states, ascending, and their probabilities."""
        row = self.table[h, x, a]
        states = np.flatnonzero(row > 0.0)
        return states, row[states]


@dataclass(frozen=True, eq=False)
class Sparse:
    """P_h(y | x, a) = sum of probability[h, x, a, s] over the places s with successor[x, a, s] = y.

    successor : [X, A, S], the same at every step. probability : [H, X, A, S], or [X, A, S] where
    the kernel is stationary. S is the largest number of successors; places that are not needed
    have probability zero at every step. A row lists a state once. The arrays are checked here,
    sorted by successor with empty places last, and read-only afterwards.
    """

    successor: Indices
    probability: Array

    def __post_init__(self) -> None:
        successor = np.array(self.successor)
        given = np.asarray(self.probability)
        if given.dtype.kind not in "biuf":
            raise InputError("probability is not an array of real numbers")
        probability = np.array(given, dtype=np.float64)
        if successor.ndim != 3 or successor.dtype.kind not in "iu" or 0 in successor.shape:
            raise InputError(f"successor must be whole numbers [X, A, S], not {successor.shape}")
        if probability.shape[-3:] != successor.shape or probability.ndim not in (3, 4):
            raise InputError(
                f"probability has the shape {probability.shape}, the successors {successor.shape}"
            )
        states = len(successor)
        wrong = np.argwhere((successor < 0) | (successor >= states))
        if len(wrong):
            index = tuple(int(i) for i in wrong[0])
            place, found = ", ".join(map(str, index)), successor[index]
            raise InputError(f"successor[{place}] is {found}, but the states are 0..{states - 1}")
        used = (probability > 0.0) if probability.ndim == 3 else (probability > 0.0).any(axis=0)
        order = np.argsort(np.where(used, successor, states), axis=-1, kind="stable")
        successor = np.take_along_axis(successor, order, -1).astype(np.int64)
        used = np.take_along_axis(used, order, -1)
        order = order if probability.ndim == 3 else order[None]
        probability = checked_rows(np.take_along_axis(probability, order, -1))
        twice = (successor[..., 1:] == successor[..., :-1]) & used[..., 1:]
        if twice.any():
            x, a, s = (int(i) for i in np.argwhere(twice)[0])
            raise InputError(f"successor[{x}, {a}] lists the state {successor[x, a, s]} twice")
        successor[~used] = 0
        for field, array in (("successor", successor), ("probability", probability)):
            array.flags.writeable = False
            object.__setattr__(self, field, array)

    @property
    def stationary(self) -> bool:
        """Whether one kernel serves every step."""
        return self.probability.ndim == 3

    def at(self, h: int) -> Array:
        """[X, A, S], the probabilities of step h."""
        return self.probability if self.stationary else self.probability[h]

    def ahead(self, h: int, value: Array) -> Array:
        """[X, A]: the expected value of the next state."""
        return np.asarray(np.einsum("xas,xas->xa", self.at(h), value[self.successor]))

    def forward(self, h: int, pairs: Array) -> Array:
        """[X]: where the mass of pairs [X, A] goes."""
        flow = pairs[..., None] * self.at(h)
        mass = np.bincount(self.successor.ravel(), flow.ravel(), len(self.successor))
        return np.asarray(mass, dtype=np.float64)

    def successors(self, h: int, x: int, a: int) -> tuple[Indices, Array]:
        """The possible next states, ascending, and their probabilities."""
        row = self.at(h)[x, a]
        return self.successor[x, a, row > 0.0], row[row > 0.0]

    @classmethod
    def of(cls, table: Array) -> Sparse:
        """The lists of a dense kernel [X, A, X] or [H, X, A, X]."""
        possible = table > 0.0 if table.ndim == 3 else (table > 0.0).any(axis=0)
        most = max(int(possible.sum(axis=-1).max()), 1)
        successor = np.argsort(~possible, axis=-1, kind="stable")[..., :most]
        index = successor if table.ndim == 3 else successor[None]
        return cls(successor, np.take_along_axis(table, index, -1))

    def dense(self) -> Array:
        """[X, A, X] or [H, X, A, X]; refused where that would be enormous."""
        X, A, S = self.successor.shape
        shape = (*self.probability.shape[:-1], X)
        if np.prod(shape, dtype=np.float64) > LARGEST_DENSE:
            raise InputError(f"a dense kernel of {X} states would have the shape {shape}")
        table = np.zeros(shape)
        x, a = np.ogrid[:X, :A]
        for s in range(S):  # empty places add nothing, to state 0
            table[..., x, a, self.successor[..., s]] += self.probability[..., s]
        return table


Kernel = Dense | Sparse

# Lists pay from about 50 states on: an episode of UOpt-RPGPD takes 101 us instead of 130 with 64
# states, 155 instead of 1,346 with 121, 212 instead of 6,548 with 324 (four or five successors).
SPARSE_FROM = 48  # states
SPARSE_SHARE = 8  # a row has at most one in so many states as successors


def lists(kernel: Kernel) -> Sparse | None:
    """The kernel as lists of successors where it has few, else None: the data decide."""
    if isinstance(kernel, Sparse):
        return kernel
    table = kernel.table
    states = table.shape[-1]
    if states < SPARSE_FROM:
        return None
    if table.strides[0] == 0:
        table = table[0]
    reached = table > 0.0 if table.ndim == 3 else (table > 0.0).any(axis=0)
    if reached.sum(axis=-1).max() * SPARSE_SHARE > states:
        return None
    return Sparse.of(table)


def checked_rows(table: Array, what: str = "transition") -> Array:
    """A table of rows [..., Y] in which every row is a distribution, normalised in place."""
    wrong = ~((table >= 0.0) & (table <= 1.0 + ROW_SUM_TOLERANCE))
    if wrong.any():
        index, number = first_wrong(table, wrong)
        raise InputError(f"{what}[{index}] is {number:g}, not a probability")
    total = table.sum(axis=-1)
    wrong = ~(np.abs(total - 1.0) <= ROW_SUM_TOLERANCE)
    if wrong.any():
        index, number = first_wrong(total, wrong)
        raise InputError(f"{what}[{index}] sums to {number:.9g}, not 1")
    loose = np.abs(total - 1.0) > 1e-12  # leave rows alone that are already as exact as floats get
    table[loose] /= total[loose][:, None]
    return table


def first_wrong(array: Array, wrong: Mask) -> tuple[str, float]:
    """The index of the first wrong entry, as text, and the entry."""
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return ", ".join(map(str, index)), float(array[index])
