"""Units in which every reward of a problem has a range of about one.

A tolerance is a share of the judged value. Solvers see each signal in a unit of its own: a
power of two, so that no digit is lost. Without an end, a level far above the range is subtracted
first, because sums of doubles would spend their digits on the level. Rows of probabilities count
as summing to one, whatever their doubles do. Answers return to the units of the problem.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Discounted, StationaryCMDP
from cmdplab.types import Array

Problem = TypeVar("Problem", CMDP, StationaryCMDP)

LEVEL = 0.125  # a range below this share of the largest reward is separated from its level
TINY, HUGE = 2.0**-200, 2.0**200  # sizes of an objective alone that leave sums in range
ROUNDING = 2.0**-51  # of a sum that a level dominates: what doubles leave unsure of it


class Units(NamedTuple):
    """Scaled reward = factor (reward - level), per signal."""

    factor: Array  # [1 + N], powers of two
    level: Array  # [1 + N], zero where rewards are not far above their range
    steps: Fraction  # the sum of the weights of all steps, if there are levels or thresholds
    threshold: Array  # [N], in these units
    unsure: Array  # [N], what doubles leave unsure of them

    @classmethod
    def of(cls, problem: CMDP | StationaryCMDP) -> Units:
        """Return the units of a problem's open pairs."""
        level, size = np.zeros(len(problem.reward)), problem.largest.copy()
        if isinstance(problem, StationaryCMDP):
            reward, mask = problem.reward, problem.mask
            given = reward.reshape(len(reward), -1) if mask is None else reward[:, mask]
            low, high = given.min(axis=1), given.max(axis=1)
            far = high - low < LEVEL * size
            level[far], size[far] = low[far], (high - low)[far]
        if not problem.constraints and level[0] == 0.0 and TINY < size[0] < HUGE:
            none = np.zeros(0)
            return cls(np.ones(1), level, Fraction(0), none, none)  # nothing to compare
        steps = Fraction(1)
        if isinstance(problem, CMDP):
            steps = Fraction(problem.horizon)
        elif isinstance(problem.criterion, Discounted):
            steps = 1 / (1 - Fraction(problem.criterion.discount))
        limits, unsure = _above_level(problem.threshold, level[1:], size[1:], steps)
        size[1:] = np.maximum(size[1:], np.abs(limits) / float(2 * steps))
        part, exponent = np.frexp(size)
        exponent = np.where(size > 0.0, np.clip(exponent, -900, 900), 0)
        factor = np.ldexp(1.0, (part == 0.5) - exponent)
        return cls(factor, level, steps, factor[1:] * limits, factor[1:] * unsure)

    def scaled(self, problem: Problem) -> Problem:
        """Return the problem in these units. If nothing changes, return the given problem."""
        if set(self.factor.tolist()) == {1.0} and not any(self.level.tolist()):
            return problem
        shape = (-1, *(1,) * (problem.reward.ndim - 1))
        reward = self.factor.reshape(shape) * (problem.reward - self.level.reshape(shape))
        return problem.changed(self.threshold, reward)

    @property
    def even(self) -> Array | None:
        """Return the units of slacks [N], the largest 1, or None if one unit serves all."""
        factor = self.factor[1:]
        return None if (factor == factor[:1]).all() else factor / factor.max()

    def slack(self, scaled: float, problem: CMDP | StationaryCMDP) -> float:
        """Return a smallest slack in the units of the problem, or 0 if it is a rounding."""
        found = scaled / float(self.factor[1:].max())
        rounding = 4.0 * ROUNDING * float(np.abs(problem.threshold).max())
        return 0.0 if abs(found) <= rounding else found

    def value(self, scaled: float, n: int = 0) -> float:
        """Return a value of signal n in the units of the problem."""
        if self.level[n] == 0.0:
            return scaled / float(self.factor[n])
        return float(self._exactly(scaled, n))

    def bound(self, scaled: float, multiplier: Array) -> float:
        """Return an upper bound on the objective in the units of the problem, rounded up.

        multiplier : [N], in these units. Subtracting a level rounds the remainder of a signal.
        """
        if not any(self.level.tolist()):
            found = scaled / float(self.factor[0])
            if found * self.factor[0] == scaled:  # a power of two: nothing rounds
                return found
        most = float(self.steps) + np.array([0.0, *np.abs(self.threshold)])
        unsure = np.array([1.0, *multiplier]) @ np.where(self.level, most, 0.0) * ROUNDING
        return above(self._exactly(scaled + float(unsure), 0))

    def _exactly(self, scaled: float, n: int) -> Fraction:
        level = self.steps * Fraction(float(self.level[n]))
        return level + Fraction(scaled) / Fraction(float(self.factor[n]))

    def multipliers(self, scaled: Array) -> Array:
        """Return multipliers [N] in the units of the problem."""
        return np.asarray(scaled * (self.factor[1:] / self.factor[0])) if len(scaled) else scaled

    def scaled_multipliers(self, given: Array) -> Array:
        """Return the inverse of `multipliers`."""
        return np.asarray(given * (self.factor[0] / self.factor[1:]))


def _above_level(
    threshold: Array, level: Array, size: Array, steps: Fraction
) -> tuple[Array, Array]:
    """Return thresholds [N] less the worth of levels [N], and their uncertainty in doubles."""
    found, unsure = threshold.copy(), ROUNDING * np.abs(threshold)
    for n in np.flatnonzero(level):
        limit, whole = Fraction(float(threshold[n])), steps * Fraction(float(level[n]))
        unsure[n] = Fraction(ROUNDING) * (abs(limit) + abs(whole))
        met = size[n] == 0.0 and abs(limit - whole) <= unsure[n]  # by every policy
        found[n] = 0.0 if met else limit - whole
    return found, unsure


def above(exact: Fraction) -> float:
    """Return the least double that is not below a fraction."""
    found = float(exact)
    return found if Fraction(found) >= exact else math.nextafter(found, math.inf)
