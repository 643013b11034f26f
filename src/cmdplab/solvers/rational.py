"""The program over mixtures of policies in rational arithmetic, for cases that doubles leave open.

The returns of policies are floats, hence fractions. The program over the policies found so far (see
simplex.py) is therefore solved exactly: Bland's rule ends, a zero share is zero, and nearly
parallel constraints stay distinct. The program has N + 1 rows, which is little work. If pricing is
exact too (whole.py), only the policy and the displayed numbers are rounded. `optimum` is for small
problems near the edge of feasibility, or with prices so large that doubles have no digits left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np

from cmdplab.solvers.units import above
from cmdplab.types import Array

MOST_POLICIES = 2_000  # some ten are needed
LARGEST_PENALTY = 2**80
SHORT = Fraction(1, 10**10)  # of the range of what policies earn: less than it is missed by none
ROUNDING = 2.0**-51  # of a threshold: doubles say it no better
UNSEEN = Fraction(1, 2**180)  # what pricing with a fixed number of digits may miss
HAIR = Fraction(1, 2**100)  # by which thresholds give way: prices are then slopes


class Vertex(NamedTuple):
    """A policy that a mixture may use."""

    returns: tuple[Fraction, ...]  # 1 + N
    policy: Any  # whatever the pricing calls it


class Mixture(NamedTuple):
    """The optimum of the program over all policies that pricing offers."""

    vertices: list[Vertex]
    shares: list[Fraction]
    multiplier: list[Fraction]  # N
    value: Fraction  # of the program: the penalty for falling short included
    bound: Fraction  # on the program's value over all policies, as far as pricing is exact
    shortfall: Fraction


Pricing = Callable[[Fraction, list[Fraction]], Vertex]  # the best policy for these weights


class Program:
    """max w sum_j s_j v_j - M y over mixtures with sum_j s_j (u_j - b) + e y >= 0.

    e [N] are the units in which shortfalls are compared, one unless given. With a `penalty` M the
    shortfall y is nonnegative and w is 1. Without a penalty y is free, w = 0 and M = 1, which gives
    the largest margin -y. Columns are the N surpluses, the shortfall, then the policies.
    """

    def __init__(
        self,
        threshold: Sequence[Fraction],
        known: Sequence[Vertex] = (),
        even: Sequence[Fraction] | None = None,
    ) -> None:
        self.threshold = list(threshold)
        self.vertices: list[Vertex] = []
        self.columns: list[list[Fraction]] = []
        size = len(self.threshold)
        for n in range(size):
            self.columns.append([Fraction(0)] + [Fraction(-int(m == n)) for m in range(size)])
        self.columns.append([Fraction(0), *(even or [Fraction(1)] * size)])
        for vertex in known:
            self.add(vertex)

    def add(self, vertex: Vertex) -> bool:
        """Offer a policy. Return False if a policy with equal returns is already there."""
        if any(vertex.returns == each.returns for each in self.vertices):
            return False
        self.vertices.append(vertex)
        over = [u - b for u, b in zip(vertex.returns[1:], self.threshold, strict=True)]
        self.columns.append([Fraction(1), *over])
        return True

    def best(self, penalty: Fraction | None, price: Pricing, tolerance: Fraction) -> Mixture:
        """Generate policies until none is better by more than the tolerance, times the weights."""
        weight = Fraction(int(penalty is not None))
        if not self.vertices:
            even = Fraction(1, max(len(self.threshold), 1))
            self.add(price(weight, [even] * len(self.threshold)))
        basis = self._first_basis(penalty is None)
        for _ in range(MOST_POLICIES):
            inverse = self._optimise(basis, penalty)
            prices = self._prices(basis, inverse, penalty)
            multiplier = [max(-each, Fraction(0)) for each in prices[1:]]
            found = price(weight, multiplier)
            gain = weight * found.returns[0] - prices[0]
            for m, u, b in zip(multiplier, found.returns[1:], self.threshold, strict=True):
                gain += m * (u - b)
            if gain <= tolerance * (weight + sum(multiplier)) or not self.add(found):
                break
        bound = prices[0] + max(gain, Fraction(0))
        return self._mixture(basis, inverse, multiplier, prices[0], bound)

    def _first_basis(self, free: bool) -> list[int]:
        """Return a policy, the surpluses, and the shortfall in place of the one that lacks most."""
        size = len(self.threshold)
        columns = zip(self.columns[size + 1][1:], self.columns[size][1:], strict=True)
        slack = [over / unit for over, unit in columns]
        basis = [*range(size), size + 1]
        worst = min(range(size), key=lambda n: slack[n], default=-1)
        if worst >= 0 and (free or slack[worst] < 0):
            basis[worst] = size
        return basis

    def _cost(self, column: int, penalty: Fraction | None) -> Fraction:
        size = len(self.threshold)
        if column < size:
            return Fraction(0)
        if column == size:
            return Fraction(-1) if penalty is None else -penalty
        return self.vertices[column - size - 1].returns[0] if penalty is not None else Fraction(0)

    def _prices(
        self, basis: list[int], inverse: list[list[Fraction]], penalty: Fraction | None
    ) -> list[Fraction]:
        costs = [self._cost(j, penalty) for j in basis]
        return [_dot(costs, [row[k] for row in inverse]) for k in range(len(basis))]

    def _optimise(self, basis: list[int], penalty: Fraction | None) -> list[list[Fraction]]:
        """Pivot over the known columns, by Bland's rule. Return the inverse of the basis."""
        free = len(self.threshold) if penalty is None else -1  # a column that never leaves
        inverse = inverted([self.columns[j] for j in basis])
        while True:
            prices = self._prices(basis, inverse, penalty)
            entering = next(
                (
                    j
                    for j, column in enumerate(self.columns)
                    if j not in basis and self._cost(j, penalty) > _dot(prices, column)
                ),
                -1,
            )
            if entering < 0:
                return inverse
            direction = [_dot(row, self.columns[entering]) for row in inverse]
            ratios = [
                (row[0] / d, j, r)
                for r, (row, d, j) in enumerate(zip(inverse, direction, basis, strict=True))
                if d > 0 and j != free
            ]
            leaving = min(ratios)[2]  # the program is bounded: some column leaves
            basis[leaving] = entering
            _pivot(inverse, direction, leaving)

    def _mixture(
        self,
        basis: list[int],
        inverse: list[list[Fraction]],
        multiplier: list[Fraction],
        value: Fraction,
        bound: Fraction,
    ) -> Mixture:
        size = len(self.threshold)
        shares = {j: row[0] for j, row in zip(basis, inverse, strict=True)}
        used = [j for j in basis if j > size and shares[j] > 0]
        vertices = [self.vertices[j - size - 1] for j in used]
        shortfall = shares.get(size, Fraction(0))
        return Mixture(vertices, [shares[j] for j in used], multiplier, value, bound, shortfall)


def penalised(program: Program, price: Pricing, tolerance: Fraction, size: float) -> Mixture:
    """Return the best mixture that does not fall short, from a guess of the multipliers' size."""
    penalty = Fraction(4 + int(4.0 * size))
    mixture = program.best(penalty, price, tolerance)
    while mixture.shortfall > 0 and penalty < LARGEST_PENALTY:
        penalty *= 8
        mixture = program.best(penalty, price, tolerance)
    return mixture


def _dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def _pivot(inverse: list[list[Fraction]], direction: list[Fraction], leaving: int) -> None:
    """Update the inverse of the basis after a column has replaced another."""
    row = [each / direction[leaving] for each in inverse[leaving]]
    for r, factor in enumerate(direction):
        if r != leaving and factor:
            inverse[r] = [a - factor * b for a, b in zip(inverse[r], row, strict=True)]
    inverse[leaving] = row


def inverted(columns: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return the inverse of the matrix with these columns."""
    size = len(columns)
    inverse = [[Fraction(int(r == c)) for c in range(size)] for r in range(size)]
    order = list(range(size))  # which row of `inverse` belongs to which column
    for c, column in enumerate(columns):
        direction = [_dot(row, column) for row in inverse]
        at = next(r for r in order[c:] if direction[r])
        k = order.index(at)
        order[c], order[k] = order[k], order[c]
        _pivot(inverse, direction, at)
    return [inverse[r] for r in order]


class Whole(Protocol):
    """The policies of a problem without rounding."""

    def __call__(self, weight: Fraction, multiplier: Sequence[Fraction]) -> Vertex:
        """Return the best policy for weights of any sign."""

    def played(self, mixture: Mixture) -> tuple[Array, Array]:
        """Return the policy of a mixture, rounded, and its visits."""

    def returns(self, policy: Array) -> Sequence[Fraction]:
        """Return the returns of a policy."""

    @property
    def unsure(self) -> Fraction:
        """Return the most that rows which do not quite sum to one change the last best value."""


class Optimum(NamedTuple):
    """A policy with bounds, and the largest smallest slack. Without policies, it is infeasible."""

    policy: Array | None  # None where it is the only one that is mixed
    occupancy: Array | None
    returns: Array  # [1 + N]
    multiplier: Array  # [N]
    dual: float
    slack: float | None  # of the safest mixture; None for N = 0
    doubt: float  # how far the value may be from the optimum; infinite where a threshold is missed
    mixed: tuple[Any, ...] = ()  # the policies of the mixture


def infeasible(slack: float) -> Optimum:
    """Return the answer that no policy meets the thresholds, from the largest smallest slack."""
    return Optimum(None, None, np.zeros(0), np.zeros(0), 0.0, slack, 0.0)


def optimum(
    price: Whole, threshold: Array, unsure: Array | None = None, even: Array | None = None
) -> Optimum:
    """Return the optimum under thresholds [N].

    unsure : the uncertainty [N] of the thresholds in doubles. even : units [N] in which slacks are
    compared, if they differ. A threshold counts as met if the miss is below a tolerance: `SHORT` of
    the range of returns, or the precision of doubles.
    """
    none, limits = Fraction(0), [Fraction(b) for b in threshold.tolist()]
    rounding = ROUNDING * np.abs(threshold) if unsure is None else unsure
    short, slack, lowered = _tolerances(price, rounding), none, [none] * len(limits)
    if limits:
        units = None if even is None else [Fraction(each) for each in even.tolist()]
        slack = Program(limits, (), units).best(None, price, UNSEEN).value
        if slack <= 0:
            least = Program(limits, (), short).best(None, price, UNSEEN).value
            if least < -1:
                return infeasible(float(slack))
            lowered = [max(-least, none) * each for each in short]
    wanted = [b - less - HAIR * s for b, less, s in zip(limits, lowered, short, strict=True)]
    mixture = penalised(Program(wanted), price, UNSEEN, 0.0)
    policy, pairs = price.played(mixture)
    returns = price.returns(policy)
    multiplier = np.array([float(each) for each in mixture.multiplier])
    prices = [Fraction(each) for each in multiplier.tolist()]
    bound = price(Fraction(1), prices).returns
    dual, doubt = bound[0], none
    for m, u, b, less in zip(prices, bound[1:], limits, lowered, strict=True):
        dual += m * (u - b)
        doubt += m * less
    doubt += abs(dual - returns[0])
    dual += price.unsure + UNSEEN * (1 + sum(prices))
    met = mixture.shortfall == 0
    for u, b, s in zip(returns[1:], limits, short, strict=True):
        met = met and b - u <= 2 * s
    return Optimum(
        policy,
        pairs,
        np.array([float(each) for each in returns]),
        multiplier,
        above(dual),
        float(slack) if limits else None,
        float(doubt) if met else np.inf,
        tuple(each.policy for each in mixture.vertices),
    )


def _tolerances(price: Whole, rounding: Array) -> list[Fraction]:
    """Return the largest miss of each threshold that still counts as met."""
    found = []
    for n, each in enumerate(rounding.tolist()):
        unit = [Fraction(int(m == n)) for m in range(len(rounding))]
        most = price(Fraction(0), unit).returns[n + 1]
        least = price(Fraction(0), [-m for m in unit]).returns[n + 1]
        found.append(SHORT * (most - least) + Fraction(each) or HAIR)
    return found
