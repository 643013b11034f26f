"""Plans on the estimated model, the model's estimates for policies, and notes on a run.

`seen` are the counts, from which the model is estimated. `world` has sizes and units.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import special

from cmdplab import display
from cmdplab.cmdp import exact
from cmdplab.cmdp.policy import Policy, fitted
from cmdplab.cmdp.problem import CMDP
from cmdplab.live.evaluation import Evaluation
from cmdplab.live.masks import projected
from cmdplab.live.model.estimate import BySteps, model_problem, standard_errors
from cmdplab.live.model.experience import Experience
from cmdplab.live.signals import Setup
from cmdplab.solvers import Box, solve
from cmdplab.solvers.box import largest_margin
from cmdplab.statistics.samples import LEVEL
from cmdplab.types import Array, frozen

GROWN = 1.3  # a multiplier that grows like the root of the episodes has 1.4 at twice as many
DOUBLINGS = 3  # number of doublings over which it must grow
ABOVE = 5.0  # a multiplier above this multiple of the plan's is no price


@display.shown
@frozen
class Planned(NamedTuple):
    """Optimal policy of the estimated model, in the user's units.

    `promised` holds the model's estimates of its returns, with 95 % intervals. `evaluation` holds
    the estimates from episodes of the policy, None if it was not played.
    """

    policy: Policy  # [H, X, A]
    promised: Evaluation
    limit: Array  # [N], limits of the plan, without margin
    margin: Array  # [N], by how much the plan's limits were stricter
    feasible: bool  # True if a policy of the model meets the limits with margin
    multiplier: Array  # [N], objective per unit of cost or utility
    slater_gap: float | None  # the largest slack in the model, in the learner's units
    names: tuple[str, ...]  # [1 + N]
    message: str = ""
    evaluation: Evaluation | None = None
    by_step: bool = False  # True if the model has estimates of each step

    def _facts(self) -> tuple[str, display.Facts]:
        facts = []
        for word, found in (("promised", self.promised), ("played", self.evaluation)):
            if found is not None:
                facts += found.facts(self.names, f" {word}")
        facts += [("limits", display.numbers(self.limit))]
        if self.message:
            facts.append(("message", self.message))
        return f"Planned{'' if self.feasible else ', infeasible'}", facts


def planned_on(
    seen: Experience,
    world: Setup,
    limit: Array,
    margin: Array,
    steps: BySteps | None = None,
) -> Planned:
    """Return the optimal plan of the estimated model for limits [N] tightened by a margin [N].

    If no policy meets the limits, plan for the smallest violation. steps : counts for a model by
    steps.
    """
    stricter = limit - margin if world.costs else limit + margin
    problem = model_problem(seen, world, stricter, steps=steps)
    found = solve(problem)
    array, multiplier = found.policy, found.multiplier
    if array is None or multiplier is None:
        wanted = (problem.reward, problem.threshold, problem.start)
        nearest = largest_margin(Box.of(problem), *wanted)
        array, multiplier = Policy(nearest.policy), np.full(len(limit), np.inf)
    promised = promise(problem, seen, world, np.asarray(array))
    lead, width = problem.horizon - world.horizon, world.scale.width
    rows = np.asarray(array)[lead:, : world.spaces.states]
    policy = Policy(rows, world.spaces.labels, "planned on what was learned")
    message = "" if found.feasible else out_of_reach(promised, stricter, world)
    with np.errstate(invalid="ignore"):
        prices = multiplier * width[0] / width[1:]
    gap = found.slater_gap
    told = (limit, margin, found.feasible, prices, gap, world.names, message)
    return Planned(policy, promised, *told, by_step=steps is not None)


def promise(problem: CMDP, seen: Experience, world: Setup, policy: Array) -> Evaluation:
    """Return the estimates of the model `problem` for a policy, with 95 % intervals."""
    width = world.scale.best - world.scale.worst
    means = world.horizon * world.scale.worst + width * exact.returns(problem, policy)
    half = float(special.ndtri((1.0 + LEVEL) / 2.0)) * standard_errors(problem, seen, world, policy)
    ends = np.sort(world.horizon * np.array([world.scale.worst, world.scale.best]), axis=0)
    low, high = np.maximum(means - half, ends[0]), np.minimum(means + half, ends[1])
    return Evaluation.of((*each, seen.episodes) for each in zip(low, means, high, strict=True))


def promised_by(
    seen: Experience, world: Setup, limit: Array, policy: Array, steps: BySteps | None = None
) -> Evaluation:
    """Return the estimates of the model for a policy [H, X, A], without its untried actions."""
    problem = model_problem(seen, world, limit, steps=steps)
    # The model cannot judge untried actions: the policy is restricted to the open ones.
    opened = problem.opened[problem.horizon - world.horizon :, : policy.shape[1]]
    return promise(problem, seen, world, fitted(problem, projected(policy, opened)))


def out_of_reach(promised: Evaluation, limit: Array, world: Setup) -> str:
    """Return a sentence on the limits that no policy of the model meets. promised : estimates."""
    parts = [
        f"{name} {world.rule} {wanted:g} looks unreachable: it comes to {found.mean:.4g}"
        for name, wanted, found in zip(world.names[1:], limit, promised.constrained, strict=True)
        if world.beyond(found.mean, wanted) > 0.0
    ]
    return "In the learned model " + " and ".join(parts) + " under the best of policies for it."


def on_the_model(plan: Planned, world: Setup) -> list[str]:
    """Return a note if the played episodes contradict the model by far more than its errors."""
    if plan.evaluation is None:
        return []
    both = (plan.promised.every, plan.evaluation.every)
    for name, said, was in zip(world.names, *both, strict=True):
        half = (said.high - said.low + was.high - was.low) / 2.0
        if abs(said.mean - was.mean) > 2.0 * half + 1e-9:
            return [
                f"The model promised the plan a {name} of {said.mean:.4g}, and it was "
                f"{was.mean:.4g}: few visits, or a world that changes with the step or is not "
                "Markov."
            ]
    return []


def on_the_multiplier(
    prices: list[tuple[int, Array]],
    episodes: int,
    now: Array,
    plan: Planned,
    last: Evaluation,
    world: Setup,
) -> list[str]:
    """Return a note if a multiplier grows without end, as it does if a limit cannot be met.

    prices : (episode, multipliers [N]) at powers of two. now : the present multipliers. The note
    needs growth over `DOUBLINGS` doublings, a value far above the plan's, and a certain violation.
    """
    early = [each for each in prices if 2 * each[0] <= episodes]
    if len(early) < DOUBLINGS:
        return []
    then, before = early[-1]
    trail = [each for _, each in early[-DOUBLINGS:]] + [now]
    for n, price in enumerate(now):
        wanted = plan.multiplier[n] if np.isfinite(plan.multiplier[n]) else 0.0
        grown = all(b[n] > GROWN * a[n] > 0.0 for a, b in pairwise(trail))
        missed = world.beyond(world.end(last.constrained[n], kind=True), plan.limit[n]) > 0.0
        if grown and missed and price > ABOVE * wanted:
            return [
                f"The multiplier of {plan.names[1 + n]} grows without end: {before[n]:.4g} after "
                f"{then:,} episodes, {price:.4g} after {episodes:,}"
                + (f", and the plan has {wanted:.4g}." if plan.feasible else ".")
            ]
    return []


def on_the_slack(told: float | None, plan: Planned, world: Setup) -> list[str]:
    """Return a note if `told`, the given Slater gap, exceeds that of every policy of the model."""
    found = plan.slater_gap
    if told is None or found is None:
        return []
    ends = zip(plan.promised.constrained, world.scale.width[1:], strict=True)
    errors = [(each.high - each.low) / 2.0 / float(unit) for each, unit in ends]
    if told <= found + max(errors):
        return []
    return [
        f"slater_gap was told to be {told:g}, and no policy of the learned model has a slack of "
        f"more than {max(found, 0.0):.4g}: the algorithm's steps and bounds were set by it."
    ]
