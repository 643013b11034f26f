"""The search for the optimum under budgets: one problem with memory for every choice of z.

A budget that is kept surely closes actions of the problem with memory (augmented.py). The others
are constraints of it. A quantity with a limit is offset - scale * V[u] for a utility u in [0, 1].
The threshold of u is (offset - limit) / scale. CVaR is a union: CVaR_level(C) <= bound if for some
z

    E (C - z)_+ <= (1 - level) (bound - z)

For a given policy the best z is a quantile of C, hence a possible total. The union over possible
totals is therefore exact, and each z is one problem. At z = bound, no episode costs more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product
from math import prod
from typing import NamedTuple

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.budgets import Budget, Chance, CVaR, Expected, VisitCap
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.solvers.budgeted.augmented import Augmented
from cmdplab.solvers.budgeted.ledger import Ledger, ledger
from cmdplab.solvers.solution import Solution, solve
from cmdplab.types import Array, Mask

MOST_CHOICES = 10_000  # of z, all CVaR budgets together
BETTER = 1e-12  # of H: the least possible gain of a further choice of z that is searched
SHORT = 1e-9  # of the scale: a limit that is missed by less is kept but for rounding


class Limit(NamedTuple):
    """offset - scale * V[utility] <= limit."""

    utility: Array  # [H, n, A] in [0, 1]
    offset: float
    scale: float
    limit: float

    @property
    def threshold(self) -> float:
        """Return the least V[utility]: zero if always reached, above H if it cannot be.

        A limit may require all of H, as a budget of zero does. Then rounding adds nothing to H.
        """
        asked = max((self.offset - self.limit) / self.scale, 0.0)
        most = float(len(self.utility))
        return most if most < asked <= most * (1.0 + SHORT) else asked

    def quantity(self, utility: float) -> float:
        """Return the quantity itself, of V[utility]."""
        return self.offset - self.scale * utility

    def least(self, problem: CMDP) -> float:
        """Return the least possible quantity on the problem with memory."""
        return self.quantity(exact.greedy(problem, self.utility)[0])

    def out_of_reach(self, problem: CMDP) -> bool:
        """Return True if no policy meets this limit, even without the other limits."""
        return self.least(problem) > self.limit + SHORT * self.scale


def _at_the_end(space: Augmented, utility: Array | Mask) -> Array:
    """Return a utility [H, n, A] with values [n, A] at the last step, and zeros before."""
    table = np.zeros(space.sizes)
    table[-1] = utility
    return table


def value_at_risk(total: Array, probability: Array, level: float) -> tuple[float, float]:
    """Return (VaR, CVaR) of totals with probabilities: the minimiser and the minimum over z.

    z + E (C - z)_+ / (1 - level) is convex and piecewise linear in z, with its kinks at the totals.
    Hence its minimum is at one of the totals.
    """
    values = np.unique(total[probability > 0.0])
    excess = np.maximum(total[None] - values[:, None], 0.0) @ probability
    bound = values + excess / (1.0 - level)
    best = int(np.argmin(bound))
    return float(values[best]), float(bound[best])


class Answer(NamedTuple):
    """A solved problem with memory."""

    book: Ledger
    space: Augmented
    problem: CMDP
    limits: dict[int, Limit]  # by the place of a budget
    solution: Solution


def best_answer(problem: CMDP, budgets: Sequence[Budget]) -> Answer | None:
    """Return the best over all choices of z, or None if no policy keeps the budgets."""
    best: Answer | None = None
    for book in _books(problem, budgets):
        space = book.space()
        if space is not None:
            best = _better(book, space, best)
    return best


def _books(problem: CMDP, budgets: Sequence[Budget]) -> Iterator[Ledger]:
    """Yield the budgets, and again with CVaR bounds kept surely: the choices z = bound.

    Such a choice is distinct only if the bound is a total on the grid.
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


def _better(book: Ledger, space: Augmented, best: Answer | None) -> Answer | None:
    """Return the best of the known answer and the answers over all choices of z."""
    limits = fixed_limits(book, space)
    for choice in _choices(book, space):
        asked = dict(sorted((limits | choice).items()))
        problem = constrained(book.problem, space, asked)
        if problem is None or (best and not _promises(problem, best)):
            continue
        solution = solve(problem)
        if solution.feasible and (best is None or solution.value > best.solution.value):  # type: ignore[operator]
            best = Answer(book, space, problem, asked, solution)
    return best


def fixed_limits(book: Ledger, space: Augmented) -> dict[int, Limit]:
    """Return the constraints that do not depend on a choice of z."""
    limits = {}
    for n, each in enumerate(book.budgets):
        if isinstance(each, Expected):
            limits[n] = _expected(each, space, book.problem)
        elif isinstance(each, VisitCap):  # u = 1 if a step counts and the pair is another one
            pairs = each.pairs(book.problem)
            counts = np.asarray(pairs.any(axis=(1, 2)))
            utility = (counts[:, None, None] & ~pairs).astype(np.float64)
            limits[n] = Limit(utility[:, space.x], float(counts.sum()), 1.0, each.cap)
        elif isinstance(each, Chance) and not book.account[n].surely:  # P(C > B) = 1 - E 1{C <= B}
            within = _at_the_end(space, book.totals(n, space) <= book.account[n].most)
            limits[n] = Limit(within, 1.0, 1.0, each.probability)
    return limits


def _expected(budget: Expected, space: Augmented, problem: CMDP) -> Limit:
    """Return E C <= B with u_h = (max c_h - c_h) / the largest range of a step."""
    cost = budget.table(problem)
    top = np.max(cost, axis=(1, 2), initial=-np.inf, where=problem.opened)
    low = np.min(cost, axis=(1, 2), initial=np.inf, where=problem.opened)
    scale = float((top - low).max()) or 1.0
    utility = np.clip((top[:, None, None] - cost) / scale, 0.0, 1.0)
    return Limit(utility[:, space.x], float(top.sum()), scale, budget.budget)


def _choices(book: Ledger, space: Augmented) -> Iterator[dict[int, Limit]]:
    """Yield the constraints of CVaR budgets, for every choice of z below the bounds."""
    options: dict[int, list[float]] = {}
    for n, each in book.account.items():
        if isinstance(each.budget, CVaR) and not each.surely:
            totals = map(each.whole.value, map(int, possible_totals(book, space, n)))
            options[n] = [z for z in totals if z < each.budget.bound - each.whole.tiny]
    if prod(map(len, options.values())) > MOST_CHOICES:
        raise InputError(
            f"the CVaR budgets leave {prod(map(len, options.values())):,} choices of totals, above "
            f"{MOST_CHOICES:,}: a coarser grid=... leaves fewer"
        )
    for chosen in product(*options.values()):
        pairs = zip(options, chosen, strict=True)
        yield {n: cvar_at(book, space, n, z) for n, z in pairs}


def cvar_at(book: Ledger, space: Augmented, n: int, z: float) -> Limit:
    """Return E (C - z)_+ <= (1 - level) (bound - z) for CVaR budget n."""
    account, budget = book.account[n], book.account[n].budget
    assert isinstance(budget, CVaR)
    excess = np.maximum(account.whole.values(book.totals(n, space)) - z, 0.0)
    largest = float(excess.max()) or 1.0
    allowed = (1.0 - budget.level) * (budget.bound - z)
    return Limit(_at_the_end(space, 1.0 - excess / largest), largest, largest, allowed)


def possible_totals(book: Ledger, space: Augmented, n: int) -> Array:
    """Return the totals of budget n with which an episode can end, ascending."""
    return np.unique(book.totals(n, space)[space.mask[-1] & space.last[:, None]])


def constrained(problem: CMDP, space: Augmented, limits: dict[int, Limit]) -> CMDP | None:
    """Return the problem with memory and these constraints, or None if one cannot be reached."""
    extra = [each.utility for each in limits.values()]
    threshold = [each.threshold for each in limits.values()]
    if max(threshold, default=0.0) > problem.horizon:
        return None
    return CMDP(
        space.kernel,
        np.concatenate([problem.reward[:, :, space.x], np.reshape(extra, (-1, *space.sizes))]),
        np.concatenate([problem.threshold, threshold]),
        space.start,
        problem.horizon,
        f"{problem.name} with memory",
        space.mask,
    )


def _promises(problem: CMDP, known: Answer) -> bool:
    """Return True if a choice may beat the known answer, by the bound of its multipliers.

    max over policies of V[r^0] + sum_n multiplier[n] (V[r^n] - b^n) is above every feasible value.
    The bound takes one sweep, and a solution about ten.
    """
    multiplier = known.solution.multiplier
    assert multiplier is not None
    assert known.solution.value is not None
    if len(multiplier) != problem.constraints:
        return True
    weighted = np.tensordot(np.array([1.0, *multiplier]), problem.reward, axes=1)
    bound = exact.greedy(problem, weighted)[0] - float(multiplier @ problem.threshold)
    return bound > known.solution.value + BETTER * problem.horizon
