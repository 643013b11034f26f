"""A policy planned on what was learned, with what the model promises of it; the better of two."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from cmdplab import display
from cmdplab.cmdp import exact
from cmdplab.cmdp.policy import Policy, fitted
from cmdplab.cmdp.problem import CMDP
from cmdplab.live.episodes import Setup
from cmdplab.live.evaluation import Evaluation
from cmdplab.live.masks import projected
from cmdplab.live.model.estimate import BySteps, model_problem, standard_errors
from cmdplab.live.model.experience import Experience
from cmdplab.solvers import Box, solve
from cmdplab.solvers.box import largest_margin
from cmdplab.statistics.samples import LEVEL
from cmdplab.types import Array, frozen


@display.shown
@frozen
class Planned(NamedTuple):
    """The best policy of the learned model, in the user's units.

    `promised` is what the model says of it, with 95 % intervals by the delta method; `evaluation`
    is what it earned in episodes of its own, None where it was not played.
    """

    policy: Policy  # [H, X, A]
    promised: Evaluation
    limit: Array  # [N], that the policy was planned for
    margin: Array  # [N], by how much more was asked of it
    feasible: bool  # whether the model has a policy that keeps the limits, margin included
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
    """The optimum of the model for limits [N] that are stricter by a margin [N].

    Where the model has none, the policy that comes nearest to all limits.
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
    """What the model says a policy earns, with 95 % intervals."""
    width = world.scale.best - world.scale.worst
    means = world.horizon * world.scale.worst + width * exact.returns(problem, policy)
    half = float(special.ndtri((1.0 + LEVEL) / 2.0)) * standard_errors(problem, seen, world, policy)
    ends = np.sort(world.horizon * np.array([world.scale.worst, world.scale.best]), axis=0)
    low, high = np.maximum(means - half, ends[0]), np.minimum(means + half, ends[1])
    return Evaluation.of((*each, seen.episodes) for each in zip(low, means, high, strict=True))


def promised_by(
    seen: Experience, world: Setup, limit: Array, policy: Array, steps: BySteps | None = None
) -> Evaluation:
    """Return the estimates of the model for a policy [H, X, A] from elsewhere."""
    problem = model_problem(seen, world, limit, steps=steps)
    # Kept to what is open in the model: what nobody has tried it cannot judge.
    opened = problem.opened[problem.horizon - world.horizon :, : policy.shape[1]]
    return promise(problem, seen, world, fitted(problem, projected(policy, opened)))


def out_of_reach(promised: Evaluation, limit: Array, world: Setup) -> str:
    """A sentence on limits that no policy of the model keeps."""
    parts = [
        f"{name} {world.rule} {wanted:g} looks unreachable: it comes to {found.mean:.4g}"
        for name, wanted, found in zip(world.names[1:], limit, promised.constrained, strict=True)
        if world.beyond(found.mean, wanted) > 0.0
    ]
    return "In the learned model " + " and ".join(parts) + " under the best of policies for it."
