"""Policies in whole numbers: nothing rounds, or nothing that matters.

Large multipliers weigh utilities against each other that nearly cancel, and a double then has no
digits left for the objective. With an end, probabilities, rewards and weights are multiples of
2^-BITS. Discounted linear systems of a few dozen states are solved without fractions (Bareiss).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Discounted, StationaryCMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.solvers.mixtures import Column, Found
from cmdplab.types import Array

MOST_STATES = 40  # 0.3 s for the values of one policy
BITS = 240
MOST_PRODUCTS = 2_000_000  # of a sweep: a second or two

Whole = Any  # arrays of Python's integers


def scaled(number: Any) -> int:
    """Return a number as a multiple of 2^-BITS, rounded down."""
    top, bottom = Fraction(number).as_integer_ratio()
    return (top << BITS) // bottom


as_whole = np.frompyfunc(scaled, 1, 1)


def products(problem: CMDP, reward: Array) -> int:
    """Return the products of a sweep."""
    row = problem.transition
    return int(reward.size) * (
        row.successor.shape[-1] if isinstance(row, Sparse) else problem.states
    )


def affordable(problem: CMDP, reward: Array) -> bool:
    """Return True if a sweep is a matter of seconds."""
    return products(problem, reward) <= MOST_PRODUCTS


class WholeEpisodes:
    """The best policy for given weights on the rewards [1 + N, H, X, A], and its returns."""

    def __init__(self, problem: CMDP, reward: Array) -> None:
        self._problem, self._reward = problem, as_whole(reward)
        kernel = problem.transition
        self._listed = isinstance(kernel, Sparse)
        table = kernel.probability if isinstance(kernel, Sparse) else kernel
        stationary = problem.stationary
        if not isinstance(kernel, Sparse) and stationary:
            table = table[0]
        whole = as_whole(table)
        self._lacking = int(abs((1 << BITS) - whole.sum(axis=-1)).max())
        self.unsure = Fraction(0)
        self._rows = [whole if whole.ndim == 3 else whole[h] for h in range(problem.horizon)]

    def __call__(self, weights: Sequence[Fraction]) -> Column:
        """Return the best policy by one backward sweep. Ties go to the first action."""
        p = self._problem
        factors = [scaled(each) for each in weights]
        value = np.zeros((len(factors), p.states), dtype=object)
        policy = np.zeros((p.horizon, p.states, p.actions))
        everywhere, most = np.arange(p.states), 0
        for h in reversed(range(p.horizon)):
            q = self._reward[:, h] + np.stack([self._ahead(h, each) for each in value])
            total = sum(w * each for w, each in zip(factors, q, strict=True))
            lowest = min(total.ravel()) - 1
            best = np.argmax(np.where(p.opened[h], total, lowest), axis=-1)
            policy[h, everywhere, best] = 1.0
            value = q[:, everywhere, best]
            most += int(abs(total[everywhere, best]).max())
        self.unsure = Fraction(self._lacking * most, 1 << 3 * BITS)
        returns = tuple(Fraction(int(each), 1 << BITS) for each in value[:, p.start])
        return Column(returns, policy)

    def returns(self, policy: Array) -> tuple[Fraction, ...]:
        """Return the returns of a policy [H, X, A], with rows normalised to sum to one."""
        shares = as_whole(policy)
        value = np.zeros((len(self._reward), self._problem.states), dtype=object)
        for h in reversed(range(self._problem.horizon)):
            q = self._reward[:, h] + np.stack([self._ahead(h, each) for each in value])
            value = (shares[h] * q).sum(axis=-1) // shares[h].sum(axis=-1)
        return tuple(Fraction(int(each), 1 << BITS) for each in value[:, self._problem.start])

    def played(self, mixture: Found) -> tuple[Array, Array]:
        """Return a mixture's policy [H, X, A] and visits. Without mass, use its first column."""
        pairs = sum(
            float(share) * exact.occupancy(self._problem, each.policy)
            for each, share in zip(mixture.columns, mixture.shares, strict=True)
        )
        return exact.policy_of(np.asarray(pairs), mixture.columns[0].policy), np.asarray(pairs)

    def _ahead(self, h: int, value: Whole) -> Whole:
        kernel = self._problem.transition
        at = value[kernel.successor] if isinstance(kernel, Sparse) else value
        return (self._rows[h] * at).sum(axis=-1) >> BITS


Guess = Callable[[Array], Any]  # the best policy [X] for weights [1 + N], as doubles have it


class WholeDiscounted:
    """The best policy of a discounted problem for given weights of any sign, and its returns."""

    def __init__(self, problem: StationaryCMDP, guess: Guess) -> None:
        assert isinstance(problem.criterion, Discounted)
        self._problem, self._guess = problem, guess
        kernel = problem.transition
        table, digits = whole(kernel.dense() if isinstance(kernel, Sparse) else kernel)
        lacking = summing_to_one(table, digits)
        self._steps = 1 / (1 - Fraction(problem.criterion.discount))
        self.unsure = Fraction(0)
        top, bottom = float(problem.criterion.discount).as_integer_ratio()
        self._one = bottom << digits  # x = gamma P x + r times this: whole numbers
        self._ahead = top * table  # [X, A, X]
        self._reward, self._reward_digits = whole(problem.reward)  # [1 + N, X, A]
        self._start, self._start_digits = whole(np.asarray(problem.start))
        begun = summing_to_one(self._start, self._start_digits)
        self._lacking = self._steps * Fraction(lacking, 1 << digits)
        self._lacking += Fraction(begun, 1 << self._start_digits)
        self._values: dict[bytes, tuple[Any, int]] = {}

    def __call__(self, weights: Sequence[Fraction]) -> Column:
        """Return the best policy by policy iteration from the guess of doubles."""
        actions = np.asarray(self._guess(np.array([float(each) for each in weights]))).astype(int)
        least = math.lcm(*(each.denominator for each in weights))
        factors = np.array([int(each * least) for each in weights], dtype=object)
        reward = np.tensordot(factors, self._reward, axes=1)
        states = np.arange(len(actions))
        while True:
            values, common = self._evaluated(actions)
            value = values @ factors
            q = self._one * common * reward + self._ahead @ value
            best = np.where(self._problem.opened, q, q.min() - 1).argmax(axis=1)
            better = q[states, best] > q[states, actions]
            if not better.any():
                most = Fraction(int(abs(value).max()), common << self._reward_digits)
                self.unsure = 4 * self._lacking * most / least
                return Column(self._earned(values, common), actions)
            actions = np.where(better, best, actions)

    def _evaluated(self, actions: Any) -> tuple[Any, int]:
        """Return the values [X, 1 + N] of a policy of one action a state, and their denominator."""
        key = actions.tobytes()
        if key not in self._values:
            states = np.arange(len(actions))
            matrix = self._one * _unit(len(actions)) - self._ahead[states, actions]
            right = self._one * self._reward[:, states, actions].T
            self._values[key] = solved(matrix, right)
        return self._values[key]

    def _earned(self, values: Any, common: int) -> tuple[Fraction, ...]:
        """Return the returns [1 + N] from values over a denominator."""
        digits = self._start_digits + self._reward_digits
        return tuple(Fraction(int(each), common << digits) for each in self._start @ values)

    def returns(self, policy: Array) -> tuple[Fraction, ...]:
        """Return the returns of any policy [X, A], its rows made to sum to exactly one."""
        shares, _ = whole(policy)
        totals = shares.sum(axis=1)
        follow = (shares[:, :, None] * self._ahead).sum(axis=1)
        matrix = self._one * totals[:, None] * _unit(len(totals)) - follow
        right = self._one * (shares * self._reward).sum(axis=2).T
        return self._earned(*solved(matrix, right))

    def played(self, mixture: Found) -> tuple[Array, Array]:
        """Return the policy [X, A] with the visits of a mixture, and the visits [X, A]."""
        shape = self._reward.shape[1:]
        pairs = np.full(shape, Fraction(0), dtype=object)
        states = np.arange(shape[0])
        for each, share in zip(mixture.columns, mixture.shares, strict=True):
            matrix = self._one * _unit(shape[0]) - self._ahead[states, each.policy]
            visits, common = solved(matrix.T, self._one * self._start[:, None])
            unit = share / (common << self._start_digits)
            pairs[states, each.policy] += visits[:, 0] * unit
        mass = pairs.sum(axis=1, keepdims=True)
        first = np.zeros(shape)
        first[states, mixture.columns[0].policy] = 1.0
        policy = np.where(mass > 0, pairs / np.where(mass > 0, mass, 1), first)
        return policy.astype(np.float64), pairs.astype(np.float64)


def whole(numbers: Array) -> tuple[Any, int]:
    """Return doubles as whole numbers over 2^digits, and digits."""
    ratios = [each.as_integer_ratio() for each in numbers.ravel().tolist()]
    digits = max(bottom.bit_length() for _, bottom in ratios) - 1
    found = [top * ((1 << digits) // bottom) for top, bottom in ratios]
    return np.array(found, dtype=object).reshape(numbers.shape), digits


def summing_to_one(rows: Any, digits: int) -> int:
    """Make rows [..., Y] sum to 2^digits by their largest entries. Return the largest lack."""
    lacking = (1 << digits) - rows.sum(axis=-1)
    at = np.expand_dims(np.asarray(rows.argmax(axis=-1)), -1)
    np.put_along_axis(rows, at, np.take_along_axis(rows, at, -1) + np.expand_dims(lacking, -1), -1)
    return int(np.max(np.abs(lacking)))


def _unit(size: int) -> Any:
    return np.eye(size, dtype=int).astype(object)


def solved(matrix: Any, right: Any) -> tuple[Any, int]:
    """Solve matrix @ x = d * right in whole numbers, where d is the determinant. Return (x, d).

    matrix : [X, X], diagonally dominant, so that no pivot is zero. right : [X, K]. The method is
    Bareiss' elimination in the form of Gauss and Jordan.
    """
    rows, size, before = np.concatenate([matrix, right], axis=1), len(matrix), 1
    for c in range(size):
        pivot, row = rows[c, c], rows[c].copy()
        rows = (pivot * rows - rows[:, c, None] * row) // before
        rows[c] = row
        before = pivot
    return rows[:, size:], before
