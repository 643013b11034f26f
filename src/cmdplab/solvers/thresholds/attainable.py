"""The returns that policies attain, as a convex set with a search for best points.

For a problem with N constraints it is a polytope in 1 + N dimensions, with or without an end. The
sweep of known.py or the policy iteration of stationary/ prices a policy. Mixtures are found by
mixtures.py and, if a doubt is left, in fractions by rational.py. Every answer has the distance
between an attained point and a bound that holds for every policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Average, StationaryCMDP
from cmdplab.errors import OpenCertificateError
from cmdplab.solvers import certified
from cmdplab.solvers.known import Known
from cmdplab.solvers.mixtures import Column, Found, Pool, Pricing, in_doubles, in_fractions
from cmdplab.types import Array, Indices

if TYPE_CHECKING:
    from cmdplab.solvers.stationary import average_optima, discounted_optima as stationary

SHARP = 1e-12  # of the largest return: a doubt below it is not looked at again
CLOSED = 1e-8  # of the same: the largest gap of a certificate


class Margin(NamedTuple):
    """The largest smallest slack that thresholds leave, each slack divided by its scale."""

    value: float  # of a mixture that exists
    bound: float  # on that of every policy
    weights: Array  # [N], of the slacks in the bound; they sum to one
    returns: Array  # [1 + N], of the mixture
    points: tuple[Array, ...]  # what it mixes, each [1 + N]


class Point(NamedTuple):
    """The best attainable returns in a direction, under thresholds."""

    returns: Array  # [1 + N]
    multiplier: Array  # [N], zero where there is no threshold
    doubt: float  # how far the direction's value may be from the best
    points: tuple[Array, ...]  # what it mixes, each [1 + N]


class Attainable:
    """The returns [1 + N] of all policies of a problem.

    size : the largest possible return of any reward. short : the largest miss of a threshold that
    still counts as met, as in `solve`.
    """

    def __init__(self, problem: CMDP | StationaryCMDP) -> None:
        self.problem = problem
        self._search: Known | stationary.Search | average_optima.Prices
        if isinstance(problem, StationaryCMDP):
            from cmdplab.solvers.stationary import average_optima, discounted_optima as stationary

            averaged = isinstance(problem.criterion, Average)
            self._search = (average_optima.Prices if averaged else stationary.Search)(problem)
            self.size, self.short = self._search.scale, stationary.SHORT * self._search.scale
        else:
            self._search = Known(problem, problem.threshold)
            self.size, self.short = float(problem.horizon), certified.SHORT * problem.horizon

    def best(self, weights: Array) -> Array:
        """Return the returns [1 + N] of a best policy for weights [1 + N] of any sign."""
        return np.asarray(self._search.best(weights).returns)

    def bound(self, weights: Array) -> float:
        """Return an upper bound on weights times the returns of every policy."""
        if isinstance(self._search, Known):
            return self._search.proved(weights, self._search.swept(weights)[0])
        over = float(weights[1:] @ self.problem.threshold)
        return self._search.bound(float(weights[0]), weights[1:]) + over

    def margin(
        self,
        which: Sequence[int] | Indices,
        scale: Array | None = None,
        begun: Iterable[Array] = (),
    ) -> Margin:
        """Return the largest smallest slack of thresholds `which`, from 0, over scales [N]."""
        chosen, sizes = np.asarray(which), np.ones(self.problem.constraints)
        sizes = sizes if scale is None else scale
        limits = (self.problem.threshold / sizes)[chosen]

        def priced(weights: Array) -> Column:
            returns = self.best(self._weights(np.zeros(len(sizes) + 1), chosen, weights[1:], sizes))
            return Column(np.array([0.0, *(returns[1:] / sizes)[chosen]]), returns)

        known = [Column(np.array([0.0, *(each[1:] / sizes)[chosen]]), each) for each in begun]
        unit = float(np.max(self.size / sizes[chosen]))
        found = self._margin(Pool(priced, limits, (1.0, unit), known).widest(), chosen, sizes)
        if not found.bound - found.value <= SHARP * unit:
            exact, gain = list(map(Fraction, limits.tolist())), Fraction(unit) / (1 << 52)
            widest = Pool(in_fractions(priced), exact, gain=gain).widest()
            again = self._margin(in_doubles(widest), chosen, sizes)
            found = min(found, again, key=lambda each: each.bound - each.value)
        return found

    def _margin(self, found: Found, chosen: Indices, sizes: Array) -> Margin:
        """Return the margin of a mixture, with the bound that it proves."""
        points = tuple(each.policy for each in found.columns)
        weights = np.zeros(len(sizes))
        weights[chosen] = found.multiplier / (found.multiplier.sum() or 1.0)
        returns = found.shares @ np.array(points)
        slack = (returns[1:] - self.problem.threshold)[chosen] / sizes[chosen]
        bound = self.bound(np.array([0.0, *(weights / sizes)]))
        bound -= float(weights / sizes @ self.problem.threshold)
        return Margin(float(slack.min()), bound, weights, returns, points)

    def optimum(self, direction: Array, limits: Array, begun: Iterable[Array] = ()) -> Point:
        """Return the best returns for weights [1 + N], with utilities of at least limits [N].

        A limit of -inf is none. Some policy must meet the other limits, but for rounding. begun :
        returns that are known to be attained.
        """
        chosen = np.flatnonzero(np.isfinite(limits))
        if not len(chosen):
            returns = self.best(direction)
            doubt = abs(self.bound(direction) - float(direction @ returns))
            return Point(returns, np.zeros(len(limits)), doubt, (returns,))

        def column(returns: Array) -> Column:
            return Column(np.array([direction @ returns, *returns[1:][chosen]]), returns)

        def priced(weights: Array) -> Column:
            scaled = weights[0] * direction
            return column(
                self.best(self._weights(scaled, chosen, weights[1:], np.ones(len(limits))))
            )

        known = [column(each) for each in begun]
        unit = self.size * (float(np.abs(direction).sum()) or 1.0)
        pool = Pool(priced, limits[chosen], (unit, self.size), known)
        found = self._judged(pool.best(), direction, limits, chosen)
        if not found.doubt <= SHARP * unit:
            exact = self._exactly(in_fractions(priced), limits[chosen], unit)
            again = self._judged(in_doubles(exact), direction, limits, chosen)
            found = min(found, again, key=lambda each: each.doubt)
        return found

    def _exactly(self, price: Pricing, limits: Array, unit: float) -> Found:
        """Return the best mixture in fractions, with thresholds lowered if missed by a rounding."""
        thresholds = [Fraction(b) for b in limits.tolist()]
        tolerance = Fraction(self.size) / (1 << 52)
        pool = Pool(price, thresholds, gain=tolerance)
        slack = pool.widest().value
        lowered = max(-slack, Fraction(0))
        # Without slack the multipliers are not unique. A hair's breadth makes them the slope.
        hair = Fraction(self.size) / (1 << 60) if slack <= SHARP * self.size else Fraction(0)
        pool.gain = Fraction(unit) / (1 << 52)
        return pool.lowered(lowered + hair).best()

    def _judged(self, found: Found, direction: Array, limits: Array, chosen: Indices) -> Point:
        """Return a mixture with its doubt, in which a missed threshold counts at its price."""
        points = tuple(each.policy for each in found.columns)
        returns = found.shares @ np.array(points)
        multiplier = np.zeros(len(limits))
        multiplier[chosen] = found.multiplier
        weights = direction + np.array([0.0, *multiplier])
        most = self.bound(weights) - float(multiplier[chosen] @ limits[chosen])
        short = float(np.max(limits[chosen] - returns[1:][chosen], initial=0.0))
        missed = max(short, 0.0) * float(found.multiplier.sum())
        doubt = abs(most - float(direction @ returns)) + missed
        return Point(returns, multiplier, doubt if short <= self.short else np.inf, points)

    def _weights(self, direction: Array, chosen: Indices, weights: Array, sizes: Array) -> Array:
        """Return weights [1 + N]: a direction plus the chosen utilities' over their scales."""
        full = np.array(direction, dtype=np.float64)
        full[chosen + 1] += weights / sizes[chosen]
        return full

    def refusal(self, why: str) -> OpenCertificateError:
        """Return the error to raise if no answer can be certified."""
        return OpenCertificateError(f"{self.problem.name}: {why}")
