"""The costs in whole steps, meters and closed actions that a list of budgets adds to a problem.

Costs are whole numbers of one unit, so that their sums are exact: 0.1 + 0.2 is 0.3. A table of
doubles is read as simple fractions: 0.1 is a tenth, and so is 1 - 0.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, lcm
from typing import NamedTuple

import numpy as np

from cmdplab.cmdp.budgets import AlmostSure, Budget, Chance, CVaR, Forbidden
from cmdplab.cmdp.memory import Counter, Counters
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.solvers.budgeted.augmented import Augmented, augmented, needed
from cmdplab.types import Array, Indices, Mask

SAME = 1e-12  # of the largest cost: numbers that differ by less are the same
FINEST = 100_000  # steps of the grid in the largest cost; a finer one needs `grid`
LARGEST = 2**52  # whole numbers up to here are exact in doubles
ON_THE_GRID = 1e-9  # of a step: a budget so close below a multiple is that multiple


class WholeCosts(NamedTuple):
    """c_h(x, a) = unit * step_h(x, a), but for a rounding error."""

    unit: Fraction
    step: Indices  # [H, X, A]
    error: float  # by how much the cost of an episode may differ from the counted one

    @property
    def tiny(self) -> float:
        """Return the distance below which two totals count as equal."""
        return ON_THE_GRID * float(self.unit)

    def floor(self, budget: float) -> int:
        """Return the largest whole number of units within a budget."""
        return floor(Fraction(budget) / self.unit + Fraction(ON_THE_GRID))

    def values(self, steps: Indices) -> Array:
        """Convert numbers of grid units to the units of the cost."""
        return np.asarray(steps * float(self.unit), dtype=np.float64)

    def value(self, steps: int) -> float:
        """Convert `steps` grid units to the units of the cost."""
        return float(self.unit * steps)


def whole_costs(cost: Array, opened: Mask, grid: float | None, rounding: str) -> WholeCosts:
    """Count costs [H, X, A] on their own grid, or on a given one, rounded up or down.

    Without a grid, costs that fit no grid raise an error with the place of the first misfit.
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
    """Return the largest unit of which all costs are whole multiples."""
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
    """Return the simple fraction that a double approximates, or the double itself if none."""
    simple = Fraction(number).limit_denominator(FINEST)
    return simple if abs(simple - Fraction(number)) <= SAME * number else Fraction(number)


def _quotient(cost: Array, unit: Fraction, what: str) -> Array:
    quotient = np.asarray(cost / float(unit))
    if np.abs(quotient).max() > LARGEST:
        raise InputError(f"{what} has {np.abs(quotient).max():.3g} steps of {float(unit):g}")
    return quotient


Counting = AlmostSure | Chance | CVaR


class Account(NamedTuple):
    """A budget whose cost is counted along the episode."""

    budget: Counting
    whole: WholeCosts
    most: int  # steps of the grid within the budget
    surely: bool  # whether every episode must keep it

    @property
    def anytime(self) -> bool:
        """Return True if the budget holds at every step, and not only at the last."""
        return not isinstance(self.budget, CVaR) and self.budget.anytime

    @property
    def sticky(self) -> bool:
        """Return True if an excess must be stored although later costs can undo the excess."""
        return self.anytime and not self.surely and bool((self.whole.step < 0).any())


class Ledger(NamedTuple):
    """Budgets, prepared: the meters that count their costs, and the closed actions."""

    problem: CMDP
    budgets: tuple[Budget, ...]
    account: dict[int, Account]  # by the place of a budget
    place: dict[int, int]  # the meter of each account
    memory: Counters
    forbidden: Mask  # [H, X, A]

    def spent(self, n: int, m: Indices) -> Indices:
        """Return the count of the meter of budget n at m, in steps of its grid."""
        meter = self.place[n]
        return np.asarray(self.memory.split(m)[meter] - self.memory.parts[meter].start)

    def totals(self, n: int, space: Augmented) -> Indices:
        """Return the total [n, A] of budget n after the last step."""
        return self.after(n, space, self.problem.horizon - 1)

    def after(self, n: int, space: Augmented, h: int) -> Indices:
        """Return the spending [n, A] of budget n after step h."""
        return self.spent(n, self.memory.from_states(h, space.x, space.m))

    def space(self) -> Augmented | None:
        """Return the problem with memory, without the actions that sure budgets close."""
        sure = [(n, self.need(n)) for n, each in self.account.items() if each.surely]

        def closed(h: int, x: Indices, m: Indices) -> Mask:
            shut = self.forbidden[h][x]
            for n, need in sure:
                shut = shut | (self.spent(n, m)[:, None] + need[h][x] > self.account[n].most)
            return np.asarray(shut)

        return augmented(self.problem, self.memory, closed)

    def need(self, n: int) -> Indices:
        """Return the least remainder of budget n, [H, X, A], needed before each pair, in steps."""
        each = self.account[n]
        return needed(self.problem, each.whole.step, self.forbidden, each.anytime)


def ledger(problem: CMDP, budgets: Sequence[Budget], surely: frozenset[int]) -> Ledger:
    """Prepare budgets. Every episode keeps the budgets whose places are in `surely`."""
    account = {
        n: _account(problem, each, n in surely)
        for n, each in enumerate(budgets)
        if isinstance(each, Counting)
    }
    forbidden = np.zeros(problem.reward.shape[1:], dtype=bool)
    for each in budgets:
        if isinstance(each, Forbidden):
            forbidden |= each.pairs(problem)
    meters, place = _meters(account)
    return Ledger(problem, tuple(budgets), account, place, Counters(meters), forbidden)


def _account(problem: CMDP, budget: Counting, surely: bool) -> Account:
    given = budget.table(problem)
    whole = whole_costs(given, problem.opened, budget.grid, budget.rounding)
    limit = budget.bound if isinstance(budget, CVaR) else budget.budget
    surely |= isinstance(budget, AlmostSure)
    surely |= isinstance(budget, Chance) and budget.probability == 0.0
    return Account(budget, whole, whole.floor(limit), surely)


def _meters(account: dict[int, Account]) -> tuple[tuple[Counter, ...], dict[int, int]]:
    """Return one meter for every cost. Budgets that only differ in the limit share a meter."""
    alike: dict[tuple[bytes, int | None], list[int]] = {}
    for n, each in account.items():
        key = (each.whole.step.tobytes(), each.most if each.sticky else None)
        alike.setdefault(key, []).append(n)
    place: dict[int, int] = {}
    meters = []
    for at, members in enumerate(alike.values()):
        place |= dict.fromkeys(members, at)
        first = account[members[0]]
        caps = [None if _every_total(account[n]) else account[n].most for n in members]
        cap = None if None in caps else max(each for each in caps if each is not None)
        meters.append(_meter(first.whole.step, cap, first.sticky))
    return tuple(meters), place


def _every_total(account: Account) -> bool:
    """Return True if totals above the budget must stay distinct."""
    return isinstance(account.budget, CVaR) and not account.surely


def _meter(step: Indices, cap: int | None, sticky: bool) -> Counter:
    """Return a counter with a level for every possible sum, and one level for all sums above the
    cap.

    Sums above the cap stay distinct if a negative cost can reduce them. With `sticky`, none can.
    """
    ends = step.reshape(len(step), -1)
    start = int(-np.minimum(ends.min(axis=1), 0).sum())
    highest = int(np.maximum(ends.max(axis=1), 0).sum())
    mended = bool((step < 0).any()) and not sticky
    if cap is not None and not mended:
        cap = min(cap, highest)
        highest = max(cap, 0) + 1
    limit = start + cap if sticky and cap is not None else None
    return Counter(step, start + highest + 1, start, limit)
