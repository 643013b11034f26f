"""Budgets as constraints of the problem with memory: each is a utility with a threshold.

A quantity that must stay within a limit is offset - scale * V[u] for a utility u in [0, 1]; the
threshold of u is (offset - limit) / scale.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.budgets import Chance, CVaR, Expected, VisitCap
from cmdplab.cmdp.problem import CMDP
from cmdplab.solvers.budgeted.augmented import Augmented
from cmdplab.types import Array, Indices, Mask

SHORT = 1e-9  # of the scale: a limit that is missed by less is kept but for rounding


class Limit(NamedTuple):
    """offset - scale * V[utility] <= limit."""

    utility: Array  # [H, n, A] in [0, 1]
    offset: float
    scale: float
    limit: float

    @property
    def threshold(self) -> float:
        """What V[utility] must reach; zero where it always does, above H where it cannot.

        A limit that asks for all of H, as a budget of zero does, asks for no more by a rounding.
        """
        asked = max((self.offset - self.limit) / self.scale, 0.0)
        most = float(len(self.utility))
        return most if most < asked <= most * (1.0 + SHORT) else asked

    def quantity(self, utility: float) -> float:
        """The quantity itself, of V[utility]."""
        return self.offset - self.scale * utility

    def least(self, problem: CMDP) -> float:
        """The least that the quantity can be on the problem with memory."""
        return self.quantity(exact.greedy(problem, self.utility)[0])

    def out_of_reach(self, problem: CMDP) -> bool:
        """Whether no policy keeps it, alone."""
        return self.least(problem) > self.limit + SHORT * self.scale


def chance_limit(budget: Chance, space: Augmented, total: Indices, most: int) -> Limit:
    """P(C > B) = 1 - E 1{C <= B}, of the totals [n, A] after the last step."""
    return Limit(_at_the_end(space, total <= most), 1.0, 1.0, budget.probability)


def cvar_limit(budget: CVaR, space: Augmented, total: Array, z: float) -> Limit:
    """E (C - z)_+ <= (1 - level) (bound - z), of the totals [n, A] after the last step."""
    excess = np.maximum(total - z, 0.0)
    largest = float(excess.max()) or 1.0
    allowed = (1.0 - budget.level) * (budget.bound - z)
    return Limit(_at_the_end(space, 1.0 - excess / largest), largest, largest, allowed)


def expected_limit(budget: Expected, space: Augmented, problem: CMDP) -> Limit:
    """E C <= B with u_h = (max c_h - c_h) / the largest range of a step."""
    cost = budget.table(problem)
    top = np.max(cost, axis=(1, 2), initial=-np.inf, where=problem.opened)
    low = np.min(cost, axis=(1, 2), initial=np.inf, where=problem.opened)
    scale = float((top - low).max()) or 1.0
    utility = np.clip((top[:, None, None] - cost) / scale, 0.0, 1.0)
    return Limit(utility[:, space.x], float(top.sum()), scale, budget.budget)


def visit_limit(budget: VisitCap, space: Augmented, problem: CMDP) -> Limit:
    """The expected visits, with u = 1 where a step counts and the pair is another one."""
    pairs = budget.pairs(problem)
    counts = np.asarray(pairs.any(axis=(1, 2)))
    utility = (counts[:, None, None] & ~pairs).astype(np.float64)
    return Limit(utility[:, space.x], float(counts.sum()), 1.0, budget.cap)


def _at_the_end(space: Augmented, utility: Array | Mask) -> Array:
    """[H, n, A], a utility [n, A] of the last step, nothing before."""
    table = np.zeros(space.sizes)
    table[-1] = utility
    return table


def value_at_risk(total: Array, probability: Array, level: float) -> tuple[float, float]:
    """(VaR, CVaR) of totals with their probabilities: the minimiser and the minimum over z.

    z + E (C - z)_+ / (1 - level) is convex and piecewise linear in z, with its kinks at the totals,
    so that its minimum is at one of them.
    """
    values = np.unique(total[probability > 0.0])
    excess = np.maximum(total[None] - values[:, None], 0.0) @ probability
    bound = values + excess / (1.0 - level)
    best = int(np.argmin(bound))
    return float(values[best]), float(bound[best])
