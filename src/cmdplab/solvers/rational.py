"""Optima without rounding, for cases that doubles leave open.

The program over mixtures (mixtures.py) is solved in fractions, and pricing is exact too (whole.py):
only the policy and the displayed numbers are rounded. This is for small problems near the edge of
feasibility, or with prices so large that doubles have no digits left.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np

from cmdplab.solvers.mixtures import Column, Found, Pool
from cmdplab.solvers.units import above
from cmdplab.types import Array

SHORT = Fraction(1, 10**10)  # of the range of what policies earn: less than it is missed by none
ROUNDING = 2.0**-51  # of a threshold: doubles say it no better
UNSEEN = Fraction(1, 2**180)  # what pricing with a fixed number of digits may miss
HAIR = Fraction(1, 2**100)  # by which thresholds give way: prices are then slopes


class Whole(Protocol):
    """The policies of a problem without rounding."""

    def __call__(self, weights: Sequence[Fraction]) -> Column:
        """Return the best policy for weights of any sign."""

    def played(self, mixture: Found) -> tuple[Array, Array]:
        """Return the policy of a mixture, rounded, and its visits."""

    def returns(self, policy: Array) -> Sequence[Fraction]:
        """Return the returns of a policy."""

    @property
    def unsure(self) -> Fraction:
        """Return the most that rows which do not quite sum to one change the last best value."""


class Optimum(NamedTuple):
    """A policy with bounds, and the largest smallest slack. Without policies, it is infeasible."""

    policy: Array | None  # None where it is the only one that is mixed
    returns: Array  # [1 + N]
    multiplier: Array  # [N]
    dual: float  # the optimum lies between dual and dual - doubt
    doubt: float  # infinite where a threshold is missed
    slack: float | None = None  # of the safest mixture; None for N = 0
    mixed: tuple[Any, ...] = ()  # the policies of the mixture
    occupancy: Array | None = None

    @property
    def feasible(self) -> bool:
        """Return True if some policy meets the thresholds, but for rounding."""
        return self.policy is not None or len(self.mixed) > 0


def infeasible(slack: float) -> Optimum:
    """Return the answer that no policy meets the thresholds, from the largest smallest slack."""
    return Optimum(None, np.zeros(0), np.zeros(0), 0.0, 0.0, slack)


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
        units = 1 if even is None else [Fraction(each) for each in even.tolist()]
        slack = Pool(price, limits, gain=UNSEEN, even=units).widest().value
        if slack <= 0:
            least = Pool(price, limits, gain=UNSEEN, even=short).widest().value
            if least < -1:
                return infeasible(float(slack))
            lowered = [max(-least, none) * each for each in short]
    wanted = [b - less - HAIR * s for b, less, s in zip(limits, lowered, short, strict=True)]
    mixture = Pool(price, wanted, gain=UNSEEN).best()
    policy, pairs = price.played(mixture)
    returns = price.returns(policy)
    multiplier = np.array([float(each) for each in mixture.multiplier])
    prices = [Fraction(each) for each in multiplier.tolist()]
    bound = price([Fraction(1), *prices]).returns
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
        np.array([float(each) for each in returns]),
        multiplier,
        above(dual),
        float(doubt) if met else np.inf,
        float(slack) if limits else None,
        tuple(each.policy for each in mixture.columns),
        pairs,
    )


def _tolerances(price: Whole, rounding: Array) -> list[Fraction]:
    """Return the largest miss of each threshold that still counts as met."""
    found = []
    for n, each in enumerate(rounding.tolist()):
        unit = [Fraction(int(m == n + 1)) for m in range(len(rounding) + 1)]
        most = price(unit).returns[n + 1]
        least = price([-m for m in unit]).returns[n + 1]
        found.append(SHORT * (most - least) + Fraction(each) or HAIR)
    return found
