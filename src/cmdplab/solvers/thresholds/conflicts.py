"""An explanation of infeasibility: an irreducible set of thresholds that conflict.

An irreducible set of thresholds cannot be met together, and all of them but any one can. The search
begins with the thresholds that the proof of infeasibility weighs, and leaves out one after another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab import display
from cmdplab.cmdp.bundle import check_problem
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.solvers.thresholds.attainable import Attainable
from cmdplab.types import Array, frozen

ROUNDING = 1e-12  # by which a threshold may miss the least sum there can be


class Limit(NamedTuple):
    """One threshold of a conflict, in the units of the labels."""

    constraint: int  # counted from 1
    name: str
    cost: bool  # whether it is a budget, which must not be exceeded
    threshold: float
    reachable: float  # the best that policies reach where they meet the others of the conflict

    @property
    def wanted(self) -> str:
        """Return the limit in words: "energy at most 3"."""
        return _at(self.name, self.cost, self.threshold)

    @property
    def instead(self) -> str:
        """Return the reachable limit in words: "energy at least 4.1"."""
        return _at(self.name, not self.cost, self.reachable)


@display.shown
@frozen
class Conflict(NamedTuple):
    """Thresholds that no policy meets together. Without any one of them the others can be met."""

    limits: tuple[Limit, ...]
    short: float  # the least by which the worst of them is missed, in the units of `solve`
    nearest: Array  # [N], thresholds that can be met, in the units of the labels
    share: float  # the largest change of a threshold, as a part of its range
    names: tuple[str, ...]  # [N]
    costs: tuple[bool, ...]  # [N], whether each is a budget, which must not be exceeded

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [(each.wanted, f"the others leave {each.instead}") for each in self.limits]
        if len(self.limits) == 1:
            facts = [(each.wanted, f"policies have {each.instead}") for each in self.limits]
        return "Conflict", [*facts, ("limits that can be met", self.instead)]

    @property
    def instead(self) -> str:
        """Return the nearest limits that can be met, in words."""
        each = zip(self.names, self.costs, self.nearest, strict=True)
        return joined([_at(name, cost, float(limit)) for name, cost, limit in each])

    @property
    def sentence(self) -> str:
        """Return the conflict in one sentence without an end."""
        wanted = joined([each.wanted for each in self.limits])
        instead = joined([each.instead for each in self.limits])
        if len(self.limits) == 1:
            return f"{wanted} is out of reach: every policy has {instead}"
        others = "the other" if len(self.limits) == 2 else "the others"
        return f"{wanted} conflict: where {others} can be met, every policy has {instead}"


def conflict(problem: CMDP | StationaryCMDP) -> Conflict | None:
    """Return an irreducible set of thresholds that conflict, or None if all can be met.

    A threshold counts as met as in `solve`: but for rounding. `nearest` lowers thresholds so that
    the largest change is least, each measured by the range of attained values.
    """
    check_problem(problem)
    if not problem.constraints:
        return None
    space = Attainable(problem)
    whole = space.margin(range(problem.constraints))
    if not whole.bound < -space.short:
        return None
    chosen, short = irreducible(space, np.flatnonzero(whole.weights > 0.0).tolist())
    limits = tuple(_limit(space, n, [m for m in chosen if m != n]) for n in chosen)
    nearest, share = _nearest(space)
    scales = [problem.labels.signal(n + 1) for n in range(problem.constraints)]
    published = [each.published(float(b)) for each, b in zip(scales, nearest, strict=True)]
    names, costs = zip(*((each.of, each.factor < 0.0) for each in scales), strict=True)
    return Conflict(limits, short, np.array(published), share, names, costs)


def irreducible(space: Attainable, infeasible: list[int]) -> tuple[list[int], float]:
    """Return a conflict within conflicting thresholds, counted from 0, and its shortfall."""
    kept, short = infeasible, space.margin(infeasible).value
    for n in infeasible:
        rest = [m for m in kept if m != n]
        if not rest:
            break
        found = space.margin(rest)
        if found.bound < -space.short:
            kept, short = rest, found.value
    return kept, -short


def _limit(space: Attainable, n: int, others: list[int]) -> Limit:
    problem = space.problem
    limits, direction = np.full(problem.constraints, -np.inf), np.zeros(problem.constraints + 1)
    limits[others], direction[n + 1] = problem.threshold[others], 1.0
    begun = space.margin(others).points if others else ()
    best = float(space.optimum(direction, limits, begun).returns[n + 1])
    scale = problem.labels.signal(n + 1)
    asked = scale.published(float(problem.threshold[n]))
    return Limit(n + 1, scale.of, scale.factor < 0.0, asked, scale.published(best))


def _nearest(space: Attainable) -> tuple[Array, float]:
    """Return thresholds [N] that can be met, and the largest change as a share of its range."""
    problem = space.problem
    units = np.eye(problem.constraints + 1)[1:]
    spread = np.array([space.best(e) @ e - space.best(-e) @ e for e in units])
    scale = np.where(spread > space.short, spread, 1.0)
    found = space.margin(range(problem.constraints), scale)
    nearest = np.minimum(problem.threshold, found.returns[1:])
    return nearest, float(np.max((problem.threshold - nearest) / scale))


def never_bind(problem: CMDP | StationaryCMDP) -> str:
    """Return a sentence on thresholds below any possible sum of rewards, or an empty string."""
    if not problem.constraints:
        return ""
    least = np.where(problem.opened, problem.reward[1:], np.inf).min(axis=(-2, -1))
    least = least.sum(axis=-1) if isinstance(problem, CMDP) else least * problem.criterion.total
    loose = np.flatnonzero(problem.threshold < least - ROUNDING * (1.0 + np.abs(least)))
    if not len(loose):
        return ""
    named = []
    for n in loose.tolist():
        scale, limits = problem.labels.signal(n + 1), (problem.threshold[n], least[n])
        asked, had = (scale.published(float(each)) for each in limits)
        cost = scale.factor < 0.0
        never = f"{'more' if cost else 'less'} than {had + 0.0:.6g}"
        named.append(f"{_at(scale.of, cost, asked)} (there is never {never})")
    return f"{joined(named)} can never bind"


def _at(name: str, most: bool, limit: float) -> str:
    return f"{name} {'at most' if most else 'at least'} {limit + 0.0:.6g}"


def joined(words: list[str]) -> str:
    """Join words into a list in a sentence: "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
