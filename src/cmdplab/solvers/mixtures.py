"""The best mixture of policies under constraints, for any kind of policies and any pricing.

Over the policies j found so far, with returns v_j of the objective and u_j^n of the utilities:

    max  w sum_j s_j v_j - M y
    s.t. sum_j s_j (u_j^n - b^n) + e^n y - t^n = 0  (n = 1..N),   sum_j s_j = 1,   s, t >= 0

y is the shortfall, in units e. With an objective, y is nonnegative and costs M. Without one, y is
free, w = 0 and M = 1, which gives the largest margin -y. Every policy found stays in the program:
the multipliers are optimal for all of them before the search for a new policy. Pricing is a
function of the caller, which returns the best policy for weights on the returns. A search may end
without closing, because other code judges its result.

The simplex method is written once. It runs compiled in doubles, and as Python in fractions: then
Bland's rule ends, a zero share is zero, and nearly parallel constraints stay distinct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from cmdplab.errors import OpenCertificateError
from cmdplab.solvers.pivots import optimise
from cmdplab.types import Array, Mask

MOST_POLICIES = 2_000
MOST_STALLS = 60  # pivots in a row that gain nothing: from then on Bland's rule
MOST_SEARCHES = (8, 16)  # with penalties that grow, in doubles and in fractions
ROUNDING = 1e-13  # relative: a gain below it is none
GAIN = 1e-14  # relative: a policy that is better by less is none
PIVOT = 1e-11  # a smaller one is rounding
NEAR = 1e-12  # ratios that are equal but for rounding


class Column(NamedTuple):
    """A policy that a mixture may use, and its returns."""

    returns: Any  # [1 + N], doubles or fractions
    policy: Any  # whatever the caller calls it


class Found(NamedTuple):
    """The best mixture that a search found, in doubles or in fractions."""

    columns: list[Column]
    shares: Array  # of the columns; they sum to one
    multiplier: Array  # [N]
    value: Any  # of the objective, or the margin
    shortfall: Any  # by which the mixture misses a threshold

    @property
    def returns(self) -> Array:
        """Return the returns [1 + N] of the mixture."""
        return np.asarray(self.shares @ np.array([each.returns for each in self.columns]))


Pricing = Callable[[Any], Column]  # the best policy for weights [1 + N] on the returns


def in_doubles(found: Found) -> Found:
    """Return a mixture that was found in fractions, rounded."""
    columns = [Column(np.array(each.returns, np.float64), each.policy) for each in found.columns]
    shares, multiplier = found.shares.astype(np.float64), found.multiplier.astype(np.float64)
    return Found(columns, shares, multiplier, float(found.value), float(found.shortfall))


def in_fractions(price: Pricing) -> Pricing:
    """Convert pricing in doubles to pricing for a program in fractions."""

    def priced(weights: Iterable[Fraction]) -> Column:
        found = price(np.array([float(each) for each in weights]))
        return Column(tuple(map(Fraction, found.returns.tolist())), found.policy)

    return priced


def fits(actions: Any, opened: Mask) -> bool:
    """Return True if a policy of one action a state has the problem's shape and open actions."""
    if actions.shape != opened.shape[:-1] or actions.max() >= opened.shape[-1]:
        return False
    chosen = np.take_along_axis(opened, actions[..., None].astype(np.int64), axis=-1)
    return bool(chosen.all())


class Pool:
    """Policies found so far, and the search for better mixtures of them.

    threshold : [N]. sizes : the largest return of the objective and of the utilities. In the
    program, returns are of order one. gain : relative gain below which a policy counts as no
    better. If it is a fraction, so are thresholds, weights and returns, and nothing rounds. even :
    the units [N] in which slacks are compared.
    """

    def __init__(
        self,
        price: Pricing,
        threshold: Sequence[Fraction] | Array,
        sizes: tuple[float, float] = (1, 1),
        known: Iterable[Column] = (),
        gain: float | Fraction = GAIN,
        even: Sequence[Fraction] | Array | float = 1,
    ) -> None:
        self.exact = isinstance(gain, Fraction)
        kind: Any = object if self.exact else np.float64
        zero: Any = Fraction(0) if self.exact else 0.0
        self._zero = zero
        N = len(threshold)
        self._price, self.sizes, self.gain = price, sizes, gain
        self.threshold: Array = np.array(threshold, kind)
        self._program = np.full((4 * N + 8, N + 1), zero, kind)  # a column in each row
        self._earned = np.full(len(self._program), zero, kind)
        for n in range(N):
            self._program[n, n + 1] -= 1
        self._program[N, 1:] += even
        self._size = N + 1  # the surpluses, the shortfall, then the policies
        self.columns: list[Column] = []
        self._seen: set[tuple[Any, ...]] = set()  # returns
        self._prices = np.full(N + 1, zero, kind)
        self._inverse, self._matrix = np.full((2, N + 1, N + 1), zero, kind)
        for each in known:
            self.add(each)

    def add(self, column: Column) -> None:
        """Put a policy into the pool."""
        if self._size == len(self._program):
            self._program = np.concatenate([self._program, self._program])
            self._earned = np.concatenate([self._earned, self._earned])
        self._program[self._size, 0] = self._zero + 1
        self._program[self._size, 1:] = self._over(column)
        self._earned[self._size] = column.returns[0] / self.sizes[0]
        self._size += 1
        self.columns.append(column)
        self._seen.add(tuple(column.returns))

    def _over(self, column: Column) -> Array:
        """Return the slacks [N] of a policy, in the program's units."""
        return np.asarray((np.asarray(column.returns[1:]) - self.threshold) / self.sizes[1])

    def lowered(self, by: Any) -> Pool:
        """Return a pool for thresholds that are lower by a number or by [N], with all policies."""
        return Pool(self._price, self.threshold - by, self.sizes, self.columns, self.gain)

    def widest(self) -> Found:
        """Return the mixture whose smallest slack is largest, for N >= 1."""
        N = len(self.threshold)
        if not self.columns:
            self.add(self._price(self._weights(0, np.full(N, Fraction(1, N)))))
        return self._generate(0, 1, self._first(True))

    def best(self, first: Sequence[Any] | Array | None = None) -> Found:
        """Return the best mixture that meets the thresholds, from multipliers [N] to start with."""
        guess = self._zero * self.threshold if first is None else np.asarray(first)
        if first is not None or not self.exact or not self.columns:
            self.add(self._price(self._weights(1, guess)))
        penalty = 4 * (1 + guess.sum() * self.sizes[1] / self.sizes[0])
        if self.exact:
            penalty = Fraction(penalty)
        basis = self._first(False)
        for _ in range(MOST_SEARCHES[self.exact]):
            found = self._generate(1, penalty, basis)
            if found.shortfall <= (0 if self.exact else ROUNDING * self.sizes[1]):
                break
            penalty *= 32
        return found

    def _weights(self, objective: int, multiplier: Array) -> Any:
        """Return weights [1 + N] on the returns, of the kind of the program."""
        if self.exact:
            return [Fraction(objective), *multiplier]
        return np.array([objective, *multiplier], np.float64)

    def _first(self, free: bool) -> Array:
        """Return a basis: a policy, surpluses, and the shortfall for the one that lacks most."""
        N, last = len(self.threshold), self._size - 1
        basis = np.array([*range(N), last])
        slack = self._program[last, 1:] / self._program[N, 1:]
        worst = int(np.argmin(slack)) if N else 0
        if N and (free or slack[worst] < 0):
            basis[worst] = N
        return basis

    def _generate(self, objective: int, penalty: Any, basis: Array) -> Found:
        """Price policies until none is better than the pool's best mixture."""
        for _ in range(MOST_POLICIES):
            self._optimise(objective, penalty, basis)
            multiplier = np.maximum(-self._prices[1:], self._zero)
            units = self._scaled(objective, multiplier)
            found = self._price(units)
            worth, over = objective * found.returns[0] / self.sizes[0], self._over(found)
            gain = worth + multiplier @ over - self._prices[0]
            size = 1 + abs(worth) + multiplier @ abs(over)
            if self.exact:
                size = objective + multiplier.sum()
            if gain <= self.gain * size or tuple(found.returns) in self._seen:
                break
            self.add(found)
        return self._found(objective, basis)

    def _scaled(self, objective: int, multiplier: Array) -> Any:
        """Return weights on the returns from multipliers [N] of the program."""
        if self.exact:
            return self._weights(objective, multiplier)
        scaled = np.empty(len(multiplier) + 1)
        scaled[0], scaled[1:] = objective / self.sizes[0], multiplier / self.sizes[1]
        return scaled

    def _found(self, objective: int, basis: Array) -> Found:
        N = len(self.threshold)
        share = {int(j): row[0] for j, row in zip(basis, self._inverse, strict=True)}
        used = [j for j in share if j > N and share[j] > 0]
        shares = np.array([share[j] for j in used])
        columns = [self.columns[j - N - 1] for j in used]
        unit, multiplier = self.sizes[not objective], np.maximum(-self._prices[1:], self._zero)
        if not self.exact:
            multiplier *= unit / self.sizes[1]
            multiplier[multiplier < GAIN * (1.0 + multiplier.max(initial=0.0))] = 0.0
        short = share.get(N, self._zero) * self.sizes[1]
        return Found(columns, shares / shares.sum(), multiplier, self._prices[0] * unit, short)

    def _optimise(self, objective: int, penalty: Any, basis: Array) -> None:
        """Pivot over the pool: change the basis, the inverse of its columns, and the prices."""
        N, cost = len(self.threshold), objective * self._earned[: self._size]
        cost[N] = -penalty
        run: Any = optimise
        tolerances = (MOST_STALLS, ROUNDING, PIVOT, NEAR)
        if self.exact:
            run, tolerances = getattr(optimise, "py_func", optimise), (0, 0, 0, 0)
        free = -1 if objective else N
        given = (self._program[: self._size], cost, free, *tolerances)
        if not run(*given, basis, self._inverse, self._prices, self._matrix):
            raise OpenCertificateError("the program over its policies has no basis in doubles")
