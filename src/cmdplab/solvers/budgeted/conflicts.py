"""Why no policy keeps some budgets: those that cannot be kept alone, else an irreducible set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cmdplab.cmdp.budgets import Budget, CVaR, Forbidden, without
from cmdplab.cmdp.problem import CMDP
from cmdplab.solvers.budgeted.augmented import Augmented
from cmdplab.solvers.budgeted.ledger import Ledger, ledger
from cmdplab.solvers.budgeted.search import (
    best_answer,
    constrained,
    cvar_at,
    fixed_limits,
    possible_totals,
)
from cmdplab.solvers.solution import solve


def conflict(problem: CMDP, budgets: Sequence[Budget]) -> str:
    """A sentence on budgets that no policy keeps beside the constraints of the problem.

    Where one cannot be kept alone, it names the least that can be. Else it names a set that cannot
    be kept together although any part of it can: what can be left out is left out, one by one.
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
    """A part of what cannot be kept of which nothing can be left out."""
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
    """The least limit with which a budget can be kept; nothing where it can be as it is."""
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
    """The least over z and policies, where it is above the bound."""
    whole, plain = book.account[0].whole, constrained(book.problem, space, {})
    assert plain is not None
    totals = [whole.value(int(each)) for each in possible_totals(book, space, 0)]
    least = min(z + cvar_at(book, space, 0, z).least(plain) / (1.0 - budget.level) for z in totals)
    return f"the least possible is {least:.9g}" if least > budget.bound + whole.tiny else ""
