"""Transition kernels as tables, or as lists of successors if rows have few.

Both classes have three functions, which dynamic programs use:

    ahead(h, v)[x, a] = sum_y P_h(y | x, a) v(y)
    forward(h, w)[y] = sum_{x, a} w(x, a) P_h(y | x, a)
    successors(h, x, a) = the states y with P_h(y | x, a) > 0, ascending, and these probabilities
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab.errors import InputError
from cmdplab.types import Ahead, Array, Indices, Mask, frozen

ROW_SUM_TOLERANCE = 1e-8  # largest difference of a row's sum from 1; the row is then normalised
LARGEST_DENSE = 200_000_000  # the most entries that `Sparse.dense` writes out


@frozen
@dataclass(frozen=True, eq=False)
class Dense:
    """Kernel as a table: P_h(y | x, a) = table[h, x, a, y]."""

    table: Array  # [H, X, A, X]; a view with stride zero along h if the kernel is stationary

    def ahead(self, h: int, value: Array) -> Array:
        """Return the expected value of the next state, [X, A], from values [X] of states."""
        return np.asarray(self.table[h] @ value)

    def forward(self, h: int, pairs: Array) -> Array:
        """Return the mass of the next states, [X], from the mass of pairs [X, A]."""
        return np.asarray(np.einsum("xa,xay->y", pairs, self.table[h]))

    def successors(self, h: int, x: int, a: int) -> tuple[Indices, Array]:
        """Return the possible next states of a pair, ascending, and their probabilities."""
        row = self.table[h, x, a]
        states = np.flatnonzero(row > 0.0)
        return states, row[states]


@frozen
@dataclass(frozen=True, eq=False)
class Sparse:
    """Kernel as lists of successors, for rows with few of them.

    P_h(y | x, a) = sum of probability[h, x, a, s] over the places s with successor[x, a, s] = y.

    successor : [X, A, S], the same at every step.
    probability : [H, X, A, S], or [X, A, S] if the kernel is stationary.

    S is the largest number of successors; places that are not needed have probability zero at every
    step. A row lists a state once. The arrays are checked here, sorted by successor with empty
    places last, and read-only afterwards.
    """

    successor: Indices
    probability: Array

    def __post_init__(self) -> None:
        successor, probability = np.array(self.successor), _real(self.probability)
        if successor.ndim != 3 or successor.dtype.kind not in "iu" or 0 in successor.shape:
            raise InputError(f"successor must be whole numbers [X, A, S], not {successor.shape}")
        if probability.shape[-3:] != successor.shape or probability.ndim not in (3, 4):
            raise InputError(
                f"probability has the shape {probability.shape}, the successors {successor.shape}"
            )
        states = len(successor)
        unknown = f"successor[{{}}] is {{}}, but the states are 0..{states - 1}"
        refuse_first(unknown, successor, (successor < 0) | (successor >= states))
        used = _possible(probability)
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
        object.__setattr__(self, "successor", successor)
        object.__setattr__(self, "probability", probability)

    @property
    def stationary(self) -> bool:
        """True if the probabilities are equal at every step."""
        return self.probability.ndim == 3

    @cached_property
    def by_pair(self) -> Ahead:
        """Successors of each pair for compiled loops, [X * A, S]."""
        return self.successor.reshape(-1, self.successor.shape[-1]).astype(np.uint32)

    def at(self, h: int) -> Array:
        """Return the probabilities of the successors at step h, [X, A, S]."""
        return self.probability if self.stationary else self.probability[h]

    def ahead(self, h: int, value: Array) -> Array:
        """Return the expected value of the next state, [X, A], from values [X] of states."""
        return np.asarray(np.einsum("xas,xas->xa", self.at(h), value[self.successor]))

    def forward(self, h: int, pairs: Array) -> Array:
        """Return the mass of the next states, [X], from the mass of pairs [X, A]."""
        flow = pairs[..., None] * self.at(h)
        mass = np.bincount(self.successor.ravel(), flow.ravel(), len(self.successor))
        return np.asarray(mass, dtype=np.float64)

    def successors(self, h: int, x: int, a: int) -> tuple[Indices, Array]:
        """Return the possible next states of a pair, ascending, and their probabilities."""
        row = self.at(h)[x, a]
        return self.successor[x, a, row > 0.0], row[row > 0.0]

    @classmethod
    def of(cls, table: Array) -> Sparse:
        """Return lists of successors from a table [X, A, X] or [H, X, A, X]."""
        possible = _possible(table)
        count, (x, a, y) = possible.sum(axis=-1), np.nonzero(possible)
        first = np.cumsum(count).reshape(count.shape) - count
        place, most = np.arange(len(y)) - first[x, a], max(int(count.max()), 1)
        successor = np.zeros((*count.shape, most), np.int64)
        probability = np.zeros((*table.shape[:-1], most))
        successor[x, a, place], probability[..., x, a, place] = y, table[..., x, a, y]
        return cls(successor, probability)

    @classmethod
    def from_matrices(cls, matrices: Sequence[Any], mask: Mask | None = None) -> Sparse:
        """Return lists from one matrix [X, X] for each action: P(y | x, a) = matrices[a][x, y].

        matrices : SciPy's sparse matrices of any format, or tables; no sparse one is written out.
        mask : [X, A], True for open actions; the rows of closed ones are not read.
        """
        if not len(matrices):
            raise InputError("there must be one matrix for each action, and there is none")
        for a, shape in enumerate(map(np.shape, matrices)):
            if len(shape) != 2 or shape[0] != shape[1] or shape != np.shape(matrices[0]):
                raise InputError(f"the matrix of action {a} has the shape {shape}, not [X, X]")
        parts = [_entries(each) for each in matrices]
        action = np.repeat(np.arange(len(parts)), [len(state) for state, _, _ in parts])
        state, following, probability = (np.concatenate(each) for each in zip(*parts, strict=True))
        sizes = (np.shape(matrices[0])[0], len(matrices))
        return cls.from_triplets(state, action, following, probability, sizes, mask)

    @classmethod
    def from_triplets(
        cls,
        state: npt.ArrayLike,
        action: npt.ArrayLike,
        following: npt.ArrayLike,
        probability: npt.ArrayLike,
        sizes: tuple[int, int],
        mask: Mask | None = None,
        step: npt.ArrayLike | None = None,
    ) -> Sparse:
        """Return lists from entries P(following[i] | state[i], action[i]) = probability[i].

        sizes : (X, A). Entries of the same place are added.
        mask : [X, A], True for open actions; closed rows are not read and become "stay".
        step : the step of each entry, if the kernel changes; the mask is then [H, X, A].
        """
        shape, (X, A) = np.shape(probability), sizes
        weight, opened = _real(probability), np.ones(sizes, np.bool_) if mask is None else mask
        opened = np.asarray(opened)
        H = 1 if step is None else len(opened)
        wanted = (X, A) if step is None else (H, X, A)
        if opened.dtype != np.bool_ or opened.shape != wanted:
            raise InputError(f"mask must hold booleans of the shape {wanted}, not {opened.shape}")
        given = {"state": (state, X), "action": (action, A), "next state": (following, X)}
        given |= {} if step is None else {"step": (step, H)}
        if len(shape) != 1 or any(np.shape(each) != shape for each, _ in given.values()):
            raise InputError("states, actions, next states and probabilities differ in number")
        x, a, to, *h = (_whole(what, *each) for what, each in given.items())
        row = (h[0] * X if h else 0) * A + x * A + a
        closed = np.flatnonzero(~opened)
        kept = opened.ravel()[row]
        row = np.concatenate([row[kept], closed])
        to = np.concatenate([to[kept], closed // A % X])
        weight = np.concatenate([weight[kept], np.ones(len(closed))])
        successor, found = _listed(row, to, weight, H, X, A)
        return cls(successor, found[0] if step is None else found)

    def dense(self) -> Array:
        """Return the kernel as a table [X, A, X] or [H, X, A, X]. Refuse too large a table."""
        X, A, S = self.successor.shape
        shape = (*self.probability.shape[:-1], X)
        if np.prod(shape, dtype=np.float64) > LARGEST_DENSE:
            raise InputError(f"a dense kernel of {X} states would have the shape {shape}")
        table = np.zeros(shape)
        x, a = np.ogrid[:X, :A]
        for s in range(S):  # empty places add nothing, to state 0
            table[..., x, a, self.successor[..., s]] += self.probability[..., s]
        return table


def _real(given: npt.ArrayLike) -> Array:
    array = np.asarray(given)
    if array.dtype.kind not in "biuf":
        raise InputError("probability is not an array of real numbers")
    return np.array(array, dtype=np.float64)


def _possible(table: Array) -> Mask:
    return table > 0.0 if table.ndim == 3 else np.asarray((table > 0.0).any(axis=0))


def _entries(matrix: Any) -> tuple[Indices, Indices, Array]:
    if hasattr(matrix, "tocoo"):
        listed = matrix.tocoo()
        return listed.row, listed.col, listed.data
    table = np.asarray(matrix)
    x, y = np.nonzero(table)
    return x, y, table[x, y]


def _whole(what: str, given: npt.ArrayLike, size: int) -> Indices:
    numbers = np.asarray(given)
    if numbers.dtype.kind not in "iu":
        raise InputError(f"the {what}s are not whole numbers")
    wrong = np.flatnonzero((numbers < 0) | (numbers >= size))
    if len(wrong):
        at = int(wrong[0])
        raise InputError(f"entry {at}: the {what} is {numbers[at]}, but they are 0..{size - 1}")
    return numbers.astype(np.int64)


def _listed(
    row: Indices, to: Indices, weight: Array, H: int, X: int, A: int
) -> tuple[Indices, Array]:
    """Return successor [X, A, S] and probability [H, X, A, S] from entries of equal length.

    row : (h X + x) A + a. to : the next state. weight : the probability. Equal entries are added.
    """
    wrong = np.flatnonzero(~(weight >= 0.0))
    if len(wrong):
        at = int(wrong[0])
        where = f"{row[at] // A % X}, {row[at] % A}, {to[at]}"
        raise InputError(f"transition[{where}] is {weight[at]:g}, not a probability")
    used = weight > 0.0
    row, to, weight = row[used], to[used], weight[used]
    order = np.lexsort((to, row))
    row, to, weight = row[order], to[order], weight[order]
    first = np.flatnonzero(np.diff(row, prepend=-1) | np.diff(to, prepend=-1))
    row, to = row[first], to[first]
    weight = np.add.reduceat(weight, first) if len(first) else weight
    listed, entry = np.unique(row % (X * A) * X + to, return_inverse=True)
    pair = listed // X  # equal ones are neighbours; a place is how many of a pair come before
    size = np.bincount(pair, minlength=X * A)
    most = max(int(size.max(initial=0)), 1)
    if H * X * A * most > LARGEST_DENSE:
        x, a = divmod(int(size.argmax()), A)
        raise InputError(f"transition[{x}, {a}] has {most} successors: too many for lists")
    place = np.arange(len(pair)) - (np.cumsum(size) - size)[pair]
    successor = np.zeros((X * A, most), dtype=np.int64)
    successor[pair, place] = listed % X
    probability = np.zeros((H * X * A, most))
    probability[row, place[entry]] = weight
    return successor.reshape(X, A, most), probability.reshape(H, X, A, most)


Kernel = Dense | Sparse

# Lists pay from about 50 states on: an episode of UOpt-RPGPD takes 101 us instead of 130 with 64
# states, 155 instead of 1,346 with 121, 212 instead of 6,548 with 324 (four or five successors).
SPARSE_FROM = 48  # states
SPARSE_SHARE = 8  # a row has at most one in so many states as successors


def lists(kernel: Kernel) -> Sparse | None:
    """Return the kernel as lists if rows have few successors, else None."""
    if isinstance(kernel, Sparse):
        return kernel
    table = kernel.table
    states = table.shape[-1]
    if states < SPARSE_FROM or np.count_nonzero(table[0, 0, 0]) * SPARSE_SHARE > states:
        return None
    if table.strides[0] == 0:
        table = table[0]
    few = _possible(table).sum(axis=-1).max() * SPARSE_SHARE <= states
    return Sparse.of(table) if few else None


def checked_rows(table: Array, what: str = "transition") -> Array:
    """Return the table with normalised rows. Refuse a row that is not a distribution.

    table : [..., Y], which is changed in place. Sums may differ from 1 by `ROW_SUM_TOLERANCE`. what
    : the name of the table, for the error.
    """
    right = (table >= 0.0) & (table <= 1.0 + ROW_SUM_TOLERANCE)
    refuse_first(f"{what}[{{}}] is {{:g}}, not a probability", table, ~right)
    total = table.sum(axis=-1)
    wrong = ~(np.abs(total - 1.0) <= ROW_SUM_TOLERANCE)
    refuse_first(f"{what}[{{}}] sums to {{:.9g}}, not 1", total, wrong)
    loose = np.abs(total - 1.0) > 1e-12  # leave rows alone that are already as exact as floats get
    table[loose] /= total[loose][:, None]
    return table


def refuse_first(sentence: str, array: npt.NDArray[Any], wrong: Mask) -> None:
    """Raise an `InputError` if `wrong` is True anywhere.

    sentence : the text of the error, into which index and value of the first wrong entry are put.
    """
    if wrong.any():
        index = tuple(np.argwhere(wrong)[0].tolist())
        raise InputError(sentence.format(", ".join(map(str, index)), array[index]))
