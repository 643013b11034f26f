"""What a list of budgets makes of a problem: costs in whole steps, meters, closed actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cmdplab.cmdp.budgets import AlmostSure, Budget, Chance, CVaR, Forbidden
from cmdplab.cmdp.memory import Counter, Counters
from cmdplab.cmdp.problem import CMDP
from cmdplab.solvers.budgeted.augmented import Augmented, augmented, needed
from cmdplab.solvers.budgeted.whole_costs import WholeCosts, whole_costs
from cmdplab.types import Indices, Mask

Counting = AlmostSure | Chance | CVaR


class Account(NamedTuple):
    """A budget whose cost is counted along the episode."""

    budget: Counting
    whole: WholeCosts
    most: int  # steps of the grid within the budget
    surely: bool  # whether every episode must keep it

    @property
    def anytime(self) -> bool:
        """Whether it is about every step, and not only about the last."""
        return not isinstance(self.budget, CVaR) and self.budget.anytime

    @property
    def sticky(self) -> bool:
        """Whether what was exceeded once must be remembered although it can be mended."""
        return self.anytime and not self.surely and bool((self.whole.step < 0).any())


class Ledger(NamedTuple):
    """Budgets, prepared: the meters that count their costs, and what they close."""

    problem: CMDP
    budgets: tuple[Budget, ...]
    account: dict[int, Account]  # by the place of a budget
    place: dict[int, int]  # the meter of each account
    memory: Counters
    forbidden: Mask  # [H, X, A]

    def spent(self, n: int, m: Indices) -> Indices:
        """What the meter of budget n counts at m, in steps of its grid."""
        meter = self.place[n]
        return np.asarray(self.memory.split(m)[meter] - self.memory.parts[meter].start)

    def totals(self, n: int, space: Augmented) -> Indices:
        """[n, A], the total of budget n after the last step."""
        return self.after(n, space, self.problem.horizon - 1)

    def after(self, n: int, space: Augmented, h: int) -> Indices:
        """[n, A], what budget n has spent after step h."""
        return self.spent(n, self.memory.from_states(h, space.x, space.m))

    def space(self) -> Augmented | None:
        """The problem with memory, without what budgets that are kept surely close."""
        sure = [(n, self.need(n)) for n, each in self.account.items() if each.surely]

        def closed(h: int, x: Indices, m: Indices) -> Mask:
            shut = self.forbidden[h][x]
            for n, need in sure:
                shut = shut | (self.spent(n, m)[:, None] + need[h][x] > self.account[n].most)
            return np.asarray(shut)

        return augmented(self.problem, self.memory, closed)

    def need(self, n: int) -> Indices:
        """[H, X, A], the least that budget n must have left before each pair, in steps."""
        each = self.account[n]
        return needed(self.problem, each.whole.step, self.forbidden, each.anytime)


def ledger(problem: CMDP, budgets: Sequence[Budget], surely: frozenset[int]) -> Ledger:
    """Prepare budgets; those whose places are in `surely` are kept by every episode."""
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
    """One meter for every cost; those that only differ in the budget share it."""
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
    """Whether totals above the budget have to be told apart."""
    return isinstance(account.budget, CVaR) and not account.surely


def _meter(step: Indices, cap: int | None, sticky: bool) -> Counter:
    """A counter with a level for every sum that steps can have, all above the cap as one.

    Sums above the cap are told apart where a negative cost can mend them; `sticky` says that
    nothing does.
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
