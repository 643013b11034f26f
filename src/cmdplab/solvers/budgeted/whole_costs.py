"""Costs as whole numbers of one unit, so that their sums are exact: 0.1 + 0.2 is 0.3.

A table of doubles is read as the fractions that a person means: 0.1 is a tenth, 1 - 0.9 too.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor, lcm
from typing import NamedTuple

import numpy as np

from cmdplab.errors import InputError
from cmdplab.types import Array, Indices, Mask

SAME = 1e-12  # of the largest cost: numbers that differ by less are the same
FINEST = 100_000  # steps of the grid in the largest cost; a finer one has to be asked for
LARGEST = 2**52  # whole numbers up to here are exact in doubles
ON_THE_GRID = 1e-9  # of a step: a budget so close below a multiple is that multiple


class WholeCosts(NamedTuple):
    """c_h(x, a) = unit * step_h(x, a), but for a rounding error."""

    unit: Fraction
    step: Indices  # [H, X, A]
    error: float  # by how much the cost of an episode may differ from the counted one

    @property
    def tiny(self) -> float:
        """What is less than this apart is the same total."""
        return ON_THE_GRID * float(self.unit)

    def floor(self, budget: float) -> int:
        """The largest whole number of units within a budget."""
        return floor(Fraction(budget) / self.unit + Fraction(ON_THE_GRID))

    def values(self, steps: Indices) -> Array:
        """Numbers of units, in the units of the cost."""
        return np.asarray(steps * float(self.unit), dtype=np.float64)

    def value(self, steps: int) -> float:
        """So many units, in the units of the cost."""
        return float(self.unit * steps)


def whole_costs(cost: Array, opened: Mask, grid: float | None, rounding: str) -> WholeCosts:
    """Costs [H, X, A] counted on their own grid, or on a given one, rounded up or down.

    Costs without a grid are refused with the place of the first that does not fit.
    """
    if grid is None:
        unit = _unit(cost, opened)
        step = np.rint(_quotient(cost, unit, "the cost"))
        return WholeCosts(unit, step.astype(np.int64), 0.0)
    quotient = _quotient(cost, Fraction(grid), "the cost")
    up = rounding == "up"
    step = np.ceil(quotient - ON_THE_GRID) if up else np.floor(quotient + ON_THE_GRID)
    off = np.abs(cost - grid * step)
    error = float(off.max(axis=(1, 2)).sum())
    exact = error <= SAME * max(float(np.abs(cost).max()), grid) * len(cost)
    return WholeCosts(_nearby(grid), step.astype(np.int64), 0.0 if exact else error)


def _unit(cost: Array, opened: Mask) -> Fraction:
    """The largest unit of which all costs are whole multiples."""
    largest = float(np.abs(cost).max())
    if largest == 0.0:
        return Fraction(1)
    distinct = np.unique(cost)
    if largest <= LARGEST and np.array_equal(distinct, np.rint(distinct)):
        return Fraction(int(np.gcd.reduce(distinct.astype(np.int64))))
    common = 1
    for each in distinct:
        ratio = Fraction(float(each)) / Fraction(largest)
        near = ratio.limit_denominator(FINEST)
        common = lcm(common, near.denominator)
        if abs(near - ratio) > SAME or common > FINEST:
            h, x, a = np.argwhere((cost == each) & opened)[0]
            raise InputError(
                f"the cost {each:.12g} at [{h}, {x}, {a}] is on no grid with the others, of which "
                f"the largest is {largest:.12g}: round them, with grid=..."
            )
    return _nearby(largest) / common


def _nearby(number: float) -> Fraction:
    """The simple fraction that a double stands for, itself where there is none."""
    simple = Fraction(number).limit_denominator(FINEST)
    return simple if abs(simple - Fraction(number)) <= SAME * number else Fraction(number)


def _quotient(cost: Array, unit: Fraction, what: str) -> Array:
    quotient = np.asarray(cost / float(unit))
    if np.abs(quotient).max() > LARGEST:
        raise InputError(f"{what} has {np.abs(quotient).max():.3g} steps of {float(unit):g}")
    return quotient
