"""Optima in fractions: nothing rounds but the policy and the numbers that are shown.

For small problems near the edge of what can be met, or with prices so large that doubles have no
digits left. Whoever prices, plays and evaluates policies does so without rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np

from cmdplab.solvers.rational import Mixture, Program, Vertex, penalised
from cmdplab.solvers.units import above
from cmdplab.types import Array

SHORT = Fraction(1, 10**10)  # of the range of what policies earn: less than it is missed by none
ROUNDING = 2.0**-51  # of a threshold: doubles say it no better
UNSEEN = Fraction(1, 2**180)  # what pricing with a fixed number of digits may miss
HAIR = Fraction(1, 2**100)  # by which thresholds give way: prices are then slopes


class Whole(Protocol):
    """The policies of a problem without rounding."""

    def __call__(self, weight: Fraction, multiplier: Sequence[Fraction]) -> Vertex:
        """Return the best policy for weights of any sign."""

    def played(self, mixture: Mixture) -> tuple[Array, Array]:
        """Return the policy of a mixture, rounded, and its visits."""

    def returns(self, policy: Array) -> Sequence[Fraction]:
        """Return what a policy earns."""

    @property
    def unsure(self) -> Fraction:
        """Return by how much rows that do not quite sum to one may change the last best value."""


class Answer(NamedTuple):
    """A policy with bounds; None where no policy meets the thresholds."""

    policy: Array | None
    pairs: Array | None  # its visits
    returns: Array  # [1 + N]
    multiplier: Array  # [N]
    dual: float
    slack: float | None  # the largest smallest one; None for N = 0
    doubt: float  # infinite where rounding a policy made it miss a threshold
    mixed: tuple[Any, ...]


def optimum(
    price: Whole, threshold: Array, unsure: Array | None = None, even: Array | None = None
) -> Answer:
    """Return the optimum under thresholds [N].

    unsure : [N], what doubles leave unsure of the thresholds. even : [N], units in which slacks
    are compared, where they differ. A threshold counts as met if it is missed by less than `SHORT`
    of the range of what policies earn, or by less than doubles can say.
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
                return Answer(None, None, np.zeros(0), np.zeros(0), 0.0, float(slack), 0.0, ())
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
    return Answer(
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
    """Return by how much each threshold may be missed and still count as met."""
    found = []
    for n, each in enumerate(rounding.tolist()):
        unit = [Fraction(int(m == n)) for m in range(len(rounding))]
        most = price(Fraction(0), unit).returns[n + 1]
        least = price(Fraction(0), [-m for m in unit]).returns[n + 1]
        found.append(SHORT * (most - least) + Fraction(each) or HAIR)
    return found
