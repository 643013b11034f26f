"""The certified optimum under budgets of every kind, the use of each budget, or the conflict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from cmdplab import display
from cmdplab.cmdp.budgets import Budget, Chance, CVaR, Forbidden, without
from cmdplab.cmdp.memory import Counter, Counters
from cmdplab.cmdp.policy import Policy
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.solvers.budgeted.augmented import Augmented
from cmdplab.solvers.budgeted.ledger import Ledger, ledger
from cmdplab.solvers.budgeted.search import (
    Answer,
    best_answer,
    constrained,
    cvar_at,
    fixed_limits,
    possible_totals,
    value_at_risk,
)
from cmdplab.solvers.solution import solve
from cmdplab.types import Array, Indices, frozen

MOST_MEMORY = 100_000_000  # entries of a policy with memory


def conflict(problem: CMDP, budgets: Sequence[Budget]) -> str:
    """Return a sentence on budgets that no policy keeps beside the constraints of the problem.

    If a budget cannot be kept alone, the sentence names its least possible limit. Else it names a
    set that cannot be kept together, while any part of the set can. The search drops budgets one by
    one.
    """
    free = without(problem, range(1, 1 + problem.constraints))
    lacking = [
        f"budget {n + 1} ({each}): {why}"
        for n, each in enumerate(budgets)
        if (why := _why_not_alone(free, each))
    ]
    if lacking:
        return "; ".join(lacking)
    if problem.constraints and not (own := solve(problem)).feasible:
        return own.message
    parts = _irreducible(problem, budgets)
    names = [f"budget {n} ({budgets[n - 1]})" for n in sorted(parts.budgets)]
    names += [f"constraint {n} ({problem.labels.signal(n).of})" for n in sorted(parts.constraints)]
    return f"{' and '.join(names)} cannot be kept together, though any fewer of them can"


class _Parts(NamedTuple):
    """Some of the budgets and of the problem's constraints, both counted from 1."""

    budgets: frozenset[int]
    constraints: frozenset[int]


def _irreducible(problem: CMDP, budgets: Sequence[Budget]) -> _Parts:
    """Return an infeasible part of budgets and constraints, from which nothing can be dropped."""
    every = frozenset(range(1, 1 + problem.constraints))

    def possible(some: _Parts) -> bool:
        asked = [budgets[n - 1] for n in sorted(some.budgets)]
        return best_answer(without(problem, every - some.constraints), asked) is not None

    parts = _Parts(frozenset(range(1, 1 + len(budgets))), every)
    for n in sorted(parts.budgets):
        fewer = parts._replace(budgets=parts.budgets - {n})
        parts = parts if possible(fewer) else fewer
    for n in sorted(parts.constraints):
        fewer = parts._replace(constraints=parts.constraints - {n})
        parts = parts if possible(fewer) else fewer
    return parts


def _why_not_alone(problem: CMDP, budget: Budget) -> str:
    """Return the least possible limit of a budget, or an empty string if it can be kept."""
    book = ledger(problem, [budget], frozenset())
    space = book.space()
    if space is None:
        if isinstance(budget, Forbidden):
            return "no policy surely avoids that"
        account = book.account[0]
        least = account.whole.value(int(book.need(0)[0, problem.start].min()))
        return f"the least budget that can be kept surely is {least:.9g}"
    for each in fixed_limits(book, space).values():
        plain = constrained(problem, space, {})
        if plain is not None and each.out_of_reach(plain):
            return f"the least possible is {each.least(plain):.9g}"
    return _least_cvar(book, space, budget) if isinstance(budget, CVaR) else ""


def _least_cvar(book: Ledger, space: Augmented, budget: CVaR) -> str:
    """Return the least CVaR over z and policies in words, if it exceeds the bound."""
    whole, plain = book.account[0].whole, constrained(book.problem, space, {})
    assert plain is not None
    totals = [whole.value(int(each)) for each in possible_totals(book, space, 0)]
    least = min(z + cvar_at(book, space, 0, z).least(plain) / (1.0 - budget.level) for z in totals)
    return f"the least possible is {least:.9g}" if least > budget.bound + whole.tiny else ""


class Kept(NamedTuple):
    """The use of one budget by the policy found: the quantity reached, and its price."""

    budget: Budget
    reached: float  # the largest cost, the probability, the CVaR or the expectation
    price: float | None  # value gained for one more unit of the limit; None where kept surely
    rounding: float  # by how much the cost of an episode may differ from the counted one

    def __str__(self) -> str:
        words = f"{self.budget}: {self.reached:.6g}"
        if self.rounding:
            words += f", counted with an error of at most {self.rounding:.6g} an episode"
        return words


@display.shown
@frozen
class BudgetSolution(NamedTuple):
    """The optimum of a CMDP under budgets, or the reason why there is none.

    If `feasible` is false, missing numbers are None and `message` gives the reason.
    """

    feasible: bool
    value: float | None  # V*, the value of `policy`
    policy: Policy | None  # with a counter of what was spent, where a budget needs it
    kept: tuple[Kept, ...]  # one for each budget, in their order
    multiplier: Array | None  # [N], of the constraints that the problem itself has
    primal: float | None
    dual: float | None
    augmented: CMDP | None  # the problem over states with memory, which was solved
    message: str = ""

    def _facts(self) -> tuple[str, display.Facts]:
        facts = []
        if self.feasible:
            facts = [("optimum", display.number(self.value))]
            facts += [("certified to", f"{self.duality_gap:.1e}")]
            facts += [(f"budget {n + 1}", str(each)) for n, each in enumerate(self.kept)]
        if self.augmented is not None:
            facts.append(("states with memory", f"{self.augmented.states:,}"))
        if self.message:
            facts.append(("message", self.message))
        return f"BudgetSolution{'' if self.feasible else ', infeasible'}", facts

    @property
    def duality_gap(self) -> float | None:
        """Return the certificate: |dual - primal|."""
        if self.dual is None or self.primal is None:
            return None
        return abs(self.dual - self.primal)


def solve_budgets(problem: CMDP, *budgets: Budget) -> BudgetSolution:
    """Return the best of all policies, also with memory, that keep the budgets and constraints.

    Budgets that no policy keeps are an answer, not an exception: see `feasible` and `message`.
    """
    if not isinstance(problem, CMDP):
        what = getattr(problem, "name", repr(problem))
        raise InputError(f"budgets are for episodes: {what} is no CMDP with a horizon")
    for each in budgets:
        if not isinstance(each, Budget):
            raise InputError(f"{each!r} is no budget: see cmdplab.cmdp.budgets")
    best = best_answer(problem, budgets)
    if best is None:
        why = conflict(problem, budgets)
        return BudgetSolution(False, None, None, (), None, None, None, None, why)
    return _reported(best)


def _reported(best: Answer) -> BudgetSolution:
    """Return the `BudgetSolution` of an answer."""
    book, space, s = best.book, best.space, best.solution
    assert s.multiplier is not None
    assert s.policy is not None
    N = book.problem.constraints
    prices = dict(zip(best.limits, s.multiplier[N:].tolist(), strict=True))
    kept = tuple(_kept(best, n, prices.get(n)) for n in range(len(book.budgets)))
    policy = _with_memory(book, space, np.asarray(s.policy))
    numbers = (s.multiplier[:N], s.primal, s.dual, best.problem, s.message)
    return BudgetSolution(True, s.value, policy, kept, *numbers)


def _kept(best: Answer, n: int, multiplier: float | None) -> Kept:
    book, space = best.book, best.space
    budget, visits = book.budgets[n], best.solution.occupancy
    assert visits is not None
    price = None if multiplier is None else multiplier / best.limits[n].scale
    if isinstance(budget, Forbidden):
        return Kept(budget, float(visits[book.forbidden[:, space.x]].sum()), None, 0.0)
    if n not in book.account:
        limit = best.limits[n]
        return Kept(budget, limit.quantity(float(np.sum(limit.utility * visits))), price, 0.0)
    account = book.account[n]
    error = account.whole.error
    total, share = book.totals(n, space), visits[-1]
    if isinstance(budget, CVaR):
        worst = value_at_risk(account.whole.values(total).ravel(), share.ravel(), budget.level)[1]
        return Kept(budget, worst, price and price * (1.0 - budget.level), error)
    if isinstance(budget, Chance):
        return Kept(budget, float(share[total > account.most].sum()), price, error)
    return Kept(budget, account.whole.value(_largest(book, space, n, visits)), None, error)


def _largest(book: Ledger, space: Augmented, n: int, visits: Array) -> int:
    """Return the largest possible cost, of an episode or up to any step, in grid steps."""
    H = book.problem.horizon
    steps = range(H) if book.account[n].anytime else [H - 1]
    return max(int(book.after(n, space, h)[visits[h] > 0.0].max()) for h in steps)


def _with_memory(book: Ledger, space: Augmented, policy: Array) -> Policy:
    """Return the policy on the problem itself, uniform over open actions at unvisited pairs."""
    memory, opened = book.memory, book.problem.opened
    parts, level = memory.parts, np.zeros_like(space.m)
    if parts:
        parts, levels = zip(*_few_levels(memory, space), strict=True)
        memory = Counters(parts)
        level = memory.joined(levels)
    shape = (len(opened), memory.levels, *opened.shape[1:])
    if prod(shape) > MOST_MEMORY:
        raise InputError(
            f"a policy with {memory.levels:,} values of memory has {prod(shape):,} numbers, "
            f"above {MOST_MEMORY:,}: a coarser grid=... needs fewer"
        )
    even = opened / opened.sum(axis=-1, keepdims=True)
    table = np.repeat(even[:, None], memory.levels, axis=1)
    table[:, level, space.x] = policy
    labels, name = book.problem.labels, "within budgets"
    if not parts:
        return Policy(table[:, 0], labels, name)
    return Policy(table, labels, name, parts[0] if len(parts) == 1 else memory)


def _few_levels(memory: Counters, space: Augmented) -> Iterator[tuple[Counter, Indices]]:
    """Yield each counter with its possible sums alone, and the level [n] of every pair (x, m).

    The possible sums include every sum after one more step, for any action.
    """
    steps = range(len(space.mask))
    after = [memory.split(memory.from_states(h, space.x, space.m)) for h in steps]
    for n, (part, level) in enumerate(zip(memory.parts, memory.split(space.m), strict=True)):
        ends = np.array([part.start, part.levels - 1])
        sums = np.unique(np.concatenate([level, ends, *(each[n].ravel() for each in after)]))
        if len(sums) == part.levels:
            yield part, level
        else:
            start = int(np.searchsorted(sums, part.start))
            few = replace(part, levels=len(sums), start=start, sums=sums)
            yield few, np.searchsorted(sums, level)
