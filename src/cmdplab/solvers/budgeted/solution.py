"""The certified optimum of a problem under budgets of every kind (cmdp/budgets.py).

A budget that is kept surely closes actions of the problem with memory (augmented.py), the others
are constraints of it (limits.py). CVaR is a union: CVaR_level(C) <= bound where for some z

    E (C - z)_+ <= (1 - level) (bound - z)

For a given policy the best z is a quantile of C, hence a total that can occur: the union over
these is exact, and each z is one problem. For z = bound it says that no episode costs more.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, product
from math import prod
from typing import NamedTuple

import numpy as np

from cmdplab import display
from cmdplab.cmdp import exact
from cmdplab.cmdp.budgets import Budget, Chance, CVaR, Expected, Forbidden, VisitCap
from cmdplab.cmdp.policy import Policy
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.solvers.budgeted.augmented import Augmented
from cmdplab.solvers.budgeted.ledger import Ledger, ledger
from cmdplab.solvers.budgeted.limits import (
    Limit,
    chance_limit,
    cvar_limit,
    expected_limit,
    value_at_risk,
    visit_limit,
)
from cmdplab.solvers.solution import Solution, solve
from cmdplab.types import Array

MOST_CHOICES = 10_000  # of z, all CVaR budgets together
MOST_MEMORY = 100_000_000  # entries of a policy with memory
BETTER = 1e-12  # of H: what a further choice of z must promise to be looked at


class Kept(NamedTuple):
    """How a budget is kept by the policy found."""

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
class BudgetSolution(NamedTuple):
    """The optimum of a CMDP under budgets, or the reason why there is none.

    Numbers that do not exist are None where `feasible` is false, and `message` says why.
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
        """The certificate: |dual - primal|."""
        if self.dual is None or self.primal is None:
            return None
        return abs(self.dual - self.primal)


class _Answer(NamedTuple):
    """A solved problem with memory."""

    book: Ledger
    space: Augmented
    problem: CMDP
    limits: dict[int, Limit]  # by the place of a budget
    solution: Solution


def solve_budgets(problem: CMDP, *budgets: Budget) -> BudgetSolution:
    """The optimum among all policies, with memory too, that keep the budgets and the constraints.

    Budgets that no policy keeps are an answer, not an exception: see `feasible` and `message`.
    """
    for each in budgets:
        if not isinstance(each, Budget):
            raise InputError(f"{each!r} is no budget: see cmdplab.cmdp.budgets")
    best: _Answer | None = None
    failures: list[str] = []
    for book in _books(problem, budgets):
        space = book.space()
        if space is None:
            failures.append(book.conflict())
            continue
        found, why = _best(book, space, best)
        best = found or best
        failures.append(why)
    if best is None:
        return BudgetSolution(False, None, None, (), None, None, None, None, failures[0])
    return _reported(best)


def _books(problem: CMDP, budgets: tuple[Budget, ...]) -> Iterator[Ledger]:
    """The budgets, and again with CVaR bounds kept surely: the choices z = bound.

    That is a choice of its own only where the bound is a total on the grid.
    """
    first = ledger(problem, budgets, frozenset())
    edges = []
    for n, each in first.account.items():
        bound = each.whole.value(each.most)
        if isinstance(each.budget, CVaR) and not bound < each.budget.bound - each.whole.tiny:
            edges.append(n)
    yield first
    subsets = chain.from_iterable(combinations(edges, r + 1) for r in range(len(edges)))
    for some in subsets:
        yield ledger(problem, budgets, frozenset(some))


def _best(book: Ledger, space: Augmented, best: _Answer | None) -> tuple[_Answer | None, str]:
    """The best answer over all choices of z, if it is better than one that is known; or why not."""
    limits = _limits(book, space)
    reasons, found = [], None
    for choice in _choices(book, space):
        asked = dict(sorted((limits | choice).items()))
        problem = _constrained(book.problem, space, asked)
        known = found or best
        if isinstance(problem, str) or (known and not _promises(problem, known)):
            reasons.append(problem if isinstance(problem, str) else "")
            continue
        solution = solve(problem)
        if not solution.feasible:
            reasons.append(_reason(book, problem, asked, solution))
        elif known is None or solution.value > known.solution.value:  # type: ignore[operator]
            found = _Answer(book, space, problem, asked, solution)
    if found or best:
        return found, ""
    return None, _least_cvar(book, space) or next((each for each in reasons if each), "")


def _limits(book: Ledger, space: Augmented) -> dict[int, Limit]:
    """The constraints that do not depend on a choice of z."""
    limits = {}
    for n, each in enumerate(book.budgets):
        if isinstance(each, Expected):
            limits[n] = expected_limit(each, space, book.problem)
        elif isinstance(each, VisitCap):
            limits[n] = visit_limit(each, space, book.problem)
        elif isinstance(each, Chance) and not book.account[n].surely:
            limits[n] = chance_limit(each, space, book.totals(n, space), book.account[n].most)
    return limits


def _choices(book: Ledger, space: Augmented) -> Iterator[dict[int, Limit]]:
    """The constraints of CVaR budgets, for every choice of z below the bounds."""
    options: dict[int, list[float]] = {}
    for n, each in book.account.items():
        if isinstance(each.budget, CVaR) and not each.surely:
            totals = map(each.whole.value, map(int, _possible(book, space, n)))
            options[n] = [z for z in totals if z < each.budget.bound - each.whole.tiny]
    if prod(map(len, options.values())) > MOST_CHOICES:
        raise InputError(
            f"the CVaR budgets leave {prod(map(len, options.values())):,} choices of totals, above "
            f"{MOST_CHOICES:,}: a coarser grid=... leaves fewer"
        )
    for chosen in product(*options.values()):
        pairs = zip(options, chosen, strict=True)
        yield {n: _cvar(book, space, n, z) for n, z in pairs}


def _cvar(book: Ledger, space: Augmented, n: int, z: float) -> Limit:
    each = book.account[n]
    assert isinstance(each.budget, CVaR)
    return cvar_limit(each.budget, space, each.whole.values(book.totals(n, space)), z)


def _possible(book: Ledger, space: Augmented, n: int) -> Array:
    """The totals of budget n with which an episode can end, ascending."""
    return np.unique(book.totals(n, space)[space.mask[-1] & space.last[:, None]])


def _constrained(problem: CMDP, space: Augmented, limits: dict[int, Limit]) -> CMDP | str:
    """The problem with memory and these constraints; a sentence where one is beyond all reach."""
    extra = [each.utility for each in limits.values()]
    threshold = [each.threshold for each in limits.values()]
    for each in limits.values():
        if each.threshold > problem.horizon:
            return f"{each.limit:g} is out of reach: not even {each.least_thinkable:g} is possible"
    return CMDP(
        space.kernel,
        np.concatenate([problem.reward[:, :, space.x], np.reshape(extra, (-1, *space.sizes))]),
        np.concatenate([problem.threshold, threshold]),
        space.start,
        problem.horizon,
        f"{problem.name} with memory",
        space.mask,
    )


def _promises(problem: CMDP, known: _Answer) -> bool:
    """Whether a choice may be better than the one known: by the bound of its multipliers.

    max over policies of V[r^0] + sum_n multiplier[n] (V[r^n] - b^n) is above every feasible value.
    One sweep; a solution takes about ten.
    """
    multiplier = known.solution.multiplier
    assert multiplier is not None
    assert known.solution.value is not None
    if len(multiplier) != problem.constraints:
        return True
    weighted = np.tensordot(np.array([1.0, *multiplier]), problem.reward, axes=1)
    bound = exact.greedy(problem, weighted)[0] - float(multiplier @ problem.threshold)
    return bound > known.solution.value + BETTER * problem.horizon


def _reason(book: Ledger, problem: CMDP, limits: dict[int, Limit], solution: Solution) -> str:
    """Why constraints cannot be met: the budgets that cannot be kept alone, with their least."""
    lacking = [
        f"budget {n + 1} ({book.budgets[n]}): the least possible is {each.least(problem):.9g}"
        for n, each in limits.items()
        if not isinstance(book.budgets[n], CVaR) and each.out_of_reach(problem)
    ]
    return "; ".join(lacking) or solution.message


def _least_cvar(book: Ledger, space: Augmented) -> str:
    """Why no z serves a CVaR budget, alone: min over z and policies is above the bound."""
    lacking = []
    for n, each in book.account.items():
        if isinstance(each.budget, CVaR) and not each.surely:
            plain = _constrained(book.problem, space, {})
            assert isinstance(plain, CMDP)
            least = np.inf
            for z in map(each.whole.value, map(int, _possible(book, space, n))):
                excess = _cvar(book, space, n, z).least(plain)
                least = min(least, z + excess / (1.0 - each.budget.level))
            if least > each.budget.bound + each.whole.tiny:
                lacking.append(f"budget {n + 1} ({each.budget}): the least possible is {least:.9g}")
    return "; ".join(lacking)


def _reported(best: _Answer) -> BudgetSolution:
    """What a person reads of an answer."""
    book, space, s = best.book, best.space, best.solution
    assert s.multiplier is not None
    assert s.policy is not None
    N = book.problem.constraints
    prices = dict(zip(best.limits, s.multiplier[N:].tolist(), strict=True))
    kept = tuple(_kept(best, n, prices.get(n)) for n in range(len(book.budgets)))
    policy = _with_memory(book, space, np.asarray(s.policy))
    numbers = (s.multiplier[:N], s.primal, s.dual, best.problem, s.message)
    return BudgetSolution(True, s.value, policy, kept, *numbers)


def _kept(best: _Answer, n: int, multiplier: float | None) -> Kept:
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
    """The largest cost that can occur: of an episode, or so far at any step, in steps."""
    H = book.problem.horizon
    steps = range(H) if book.account[n].anytime else [H - 1]
    return max(int(book.after(n, space, h)[visits[h] > 0.0].max()) for h in steps)


def _with_memory(book: Ledger, space: Augmented, policy: Array) -> Policy:
    """The policy on the problem itself; where no episode comes, every open action alike."""
    opened, levels = book.problem.opened, book.memory.levels
    shape = (len(opened), levels, *opened.shape[1:])
    if prod(shape) > MOST_MEMORY:
        raise InputError(
            f"a policy with {levels:,} values of memory has {prod(shape):,} numbers, "
            f"above {MOST_MEMORY:,}: a coarser grid=... needs fewer"
        )
    even = opened / opened.sum(axis=-1, keepdims=True)
    table = np.repeat(even[:, None], levels, axis=1)
    table[:, space.m, space.x] = policy
    parts, labels, name = book.memory.parts, book.problem.labels, "within budgets"
    if not parts:
        return Policy(table[:, 0], labels, name)
    return Policy(table, labels, name, parts[0] if len(parts) == 1 else book.memory)
