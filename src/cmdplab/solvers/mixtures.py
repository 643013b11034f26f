"""The best mixture of policies under constraints, for any kind of policies and any pricing.

This is the program of simplex.py over a pool of policies, in which every policy found stays. The
multipliers are optimal for the pool before the search for a new policy, and another threshold
begins with all known policies. Pricing is a function of the caller, which returns the best policy
for weights on the returns. A search may end without closing, because other code judges its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from cmdplab.solvers import rational
from cmdplab.solvers.rational import Mixture, Vertex
from cmdplab.types import Array, Mask

MOST_PIVOTS = 2_000
MOST_STALLS = 60  # pivots in a row that gain nothing: from then on Bland's rule
MOST_SEARCHES = 8  # with penalties that grow
ROUNDING = 1e-13  # relative: a gain below it is none
GAIN = 1e-14  # relative: a policy that is better by less is none
PIVOT = 1e-11  # a smaller one is rounding


class Column(NamedTuple):
    """A policy that a mixture may use, and its returns."""

    returns: Array  # [1 + N]
    policy: Any  # whatever the caller calls it


class Found(NamedTuple):
    """The best mixture that a search found."""

    columns: list[Column]
    shares: Array  # of the columns; they sum to one
    multiplier: Array  # [N]
    value: float  # of the objective, or the margin
    shortfall: float  # by which the mixture misses a threshold

    @property
    def returns(self) -> Array:
        """Return the returns [1 + N] of the mixture."""
        return np.asarray(self.shares @ np.array([each.returns for each in self.columns]))


Pricing = Callable[[Array], Column]  # the best policy for weights [1 + N] on the returns


def in_doubles(mixture: Mixture) -> Found:
    """Return a mixture that was found in fractions, rounded."""

    def rounded(numbers: Iterable[Fraction]) -> Array:
        return np.array([float(each) for each in numbers])

    columns = [Column(rounded(each.returns), each.policy) for each in mixture.vertices]
    shares, multiplier = rounded(mixture.shares), rounded(mixture.multiplier)
    return Found(columns, shares, multiplier, float(mixture.value), float(mixture.shortfall))


def in_fractions(price: Pricing) -> rational.Pricing:
    """Convert pricing in doubles to pricing for a program in fractions."""

    def priced(weight: Fraction, multiplier: list[Fraction]) -> Vertex:
        found = price(np.array([float(weight), *map(float, multiplier)]))
        return Vertex(tuple(map(Fraction, found.returns.tolist())), found.policy)

    return priced


def fits(actions: Any, opened: Mask) -> bool:
    """Return True if a policy of one action a state has the problem's shape and open actions."""
    if actions.shape != opened.shape[:-1] or actions.max() >= opened.shape[-1]:
        return False
    chosen = np.take_along_axis(opened, actions[..., None].astype(np.int64), axis=-1)
    return bool(chosen.all())


class Pool:
    """Policies found so far, and the search for better mixtures of them.

    sizes : the largest return of the objective and of the utilities. In the program, returns are of
    order one. threshold : [N]. gain : relative gain below which a policy counts as no better. even
    : the units [N] in which slacks are compared.
    """

    def __init__(
        self,
        price: Pricing,
        threshold: Array,
        sizes: tuple[float, float] = (1.0, 1.0),
        known: Iterable[Column] = (),
        gain: float = GAIN,
        even: Array | float = 1.0,
    ) -> None:
        self._price, self.threshold, self.sizes, self.gain = price, threshold, sizes, gain
        N = len(threshold)
        fixed = np.zeros((N + 1, N + 1))  # the surpluses, then the shortfall
        fixed[1:, :N] = -np.eye(N)
        fixed[1:, N] = even
        self._matrix, self._earned = fixed, np.zeros(N + 1)
        self.columns: list[Column] = []
        self._seen: set[bytes] = set()  # returns
        for each in known:
            self.add(each)

    def add(self, column: Column) -> int:
        """Put a policy into the pool. Return its place in the program."""
        over = (column.returns[1:] - self.threshold) / self.sizes[1]
        self._matrix = np.column_stack([self._matrix, np.concatenate([[1.0], over])])
        self._earned = np.append(self._earned, column.returns[0] / self.sizes[0])
        self.columns.append(column)
        self._seen.add(column.returns.tobytes())
        return len(self._earned) - 1

    def widest(self) -> Found:
        """Return the mixture whose smallest slack is largest, for N >= 1."""
        N = len(self.threshold)
        if not self.columns:
            self.add(self._price(np.concatenate([[0.0], np.full(N, 1.0 / N)])))
        return self._generate(0.0, 1.0, self._first(True))

    def best(self, first: Array | None = None) -> Found:
        """Return the best mixture that meets the thresholds, from multipliers [N] to start with."""
        N = len(self.threshold)
        guess = np.zeros(N) if first is None else first
        self.add(self._price(np.concatenate([[1.0], guess])))
        penalty = 4.0 * (1.0 + float(guess.sum()) * self.sizes[1] / self.sizes[0])
        basis = self._first(False)
        for _ in range(MOST_SEARCHES):
            found = self._generate(1.0, penalty, basis)
            if found.shortfall <= ROUNDING * self.sizes[1]:
                break
            penalty *= 32.0
        return found

    def _first(self, free: bool) -> list[int]:
        """Return a basis: a policy, surpluses, and the shortfall for the one that lacks most."""
        N = len(self.threshold)
        basis = [*range(N), len(self._earned) - 1]
        slack = self._matrix[1:, basis[-1]] / self._matrix[1:, N]
        worst = int(np.argmin(slack)) if N else 0
        if N and (free or slack[worst] < 0.0):
            basis[worst] = N
        return basis

    def _generate(self, objective: float, penalty: float, basis: list[int]) -> Found:
        """Price policies until none is better than the pool's best mixture."""
        for _ in range(MOST_PIVOTS):
            share, prices = self._optimise(objective, penalty, basis)
            weights = np.maximum(-prices[1:], 0.0)
            found = self._priced(objective, weights)
            worth, size = self._worth(objective, weights, found)
            if worth - prices[0] <= self.gain * (1.0 + size) or self._has(found):
                break
            self.add(found)
        return self._found(objective, basis, share, prices)

    def _priced(self, objective: float, weights: Array) -> Column:
        """Return the best policy for weights [N] on the utilities, in the program's units."""
        scaled = [objective / self.sizes[0], *(weights / self.sizes[1])]
        return self._price(np.array(scaled))

    def _worth(self, objective: float, weights: Array, column: Column) -> tuple[float, float]:
        """Return w v + sum_n weights[n] (u^n - b^n) of a policy, and the size of its terms."""
        over = (column.returns[1:] - self.threshold) / self.sizes[1]
        earned = objective * float(column.returns[0]) / self.sizes[0]
        return earned + float(weights @ over), abs(earned) + float(weights @ np.abs(over))

    def _has(self, column: Column) -> bool:
        """Return True if the pool already has a policy with equal returns."""
        return column.returns.tobytes() in self._seen

    def _found(self, objective: float, basis: list[int], share: Array, prices: Array) -> Found:
        N = len(self.threshold)
        used = [r for r, j in enumerate(basis) if j > N and share[r] > 0.0]
        shares = np.array([share[r] for r in used])
        columns = [self.columns[basis[r] - N - 1] for r in used]
        multiplier = np.maximum(-prices[1:], 0.0) * (self.sizes[0] if objective else 1.0)
        multiplier /= self.sizes[1] if objective else 1.0
        multiplier[multiplier < GAIN * (1.0 + multiplier.max(initial=0.0))] = 0.0
        value = prices[0] * self.sizes[0 if objective else 1]
        short = float(share[basis.index(N)]) * self.sizes[1] if N in basis else 0.0
        return Found(columns, shares / shares.sum(), multiplier, float(value), short)

    def _optimise(self, objective: float, penalty: float, basis: list[int]) -> tuple[Array, Array]:
        """Pivot over the pool, changing the basis. Return its shares and prices [N + 1]."""
        N, free = len(self.threshold), objective == 0.0
        cost = objective * self._earned
        cost[N] = -penalty
        best, stalls = -np.inf, 0
        for _ in range(MOST_PIVOTS):
            inverse: Array = np.linalg.inv(self._matrix[:, basis]).astype(np.float64, copy=False)
            prices = cost[basis] @ inverse
            stalls = 0 if prices[0] > best + ROUNDING * (1.0 + abs(best)) else stalls + 1
            best = max(best, float(prices[0]))
            gain = cost - prices @ self._matrix
            gain[basis] = 0.0
            worth = gain > ROUNDING * (1.0 + np.abs(prices).max())
            entering = int(np.argmax(worth if stalls > MOST_STALLS else gain))
            if not worth[entering] or stalls > 2 * MOST_STALLS:
                break
            leaving = _leaving(basis, inverse, self._matrix[:, entering], N if free else -1)
            if leaving < 0:
                break
            basis[leaving] = entering
        return inverse[:, 0], prices


def _leaving(basis: list[int], inverse: Array, entering: Array, free: int) -> int:
    """Return the row whose share reaches 0 first, at a tie by the largest pivot, or -1."""
    direction, share = inverse @ entering, np.maximum(inverse[:, 0], 0.0)
    may = direction > PIVOT
    if free in basis:
        may[basis.index(free)] = False
    if not may.any():
        return -1
    ratio = np.where(may, share / np.where(may, direction, 1.0), np.inf)
    near = ratio <= ratio.min() + 1e-12
    return int(np.argmax(np.where(near, direction, -np.inf)))
