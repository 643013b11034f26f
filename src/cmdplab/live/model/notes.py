"""What should be said about a run: its policy, its budget, its multiplier, its slack."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from cmdplab.live.episodes import Setup
from cmdplab.live.evaluation import Evaluation
from cmdplab.live.model.plans import Planned
from cmdplab.types import Array

GROWN = 1.3  # a multiplier that grows like the root of the episodes has 1.4 at twice as many
DOUBLINGS = 3  # over which it must have done so
ABOVE = 5.0  # times the plan's multiplier: more is no price


def on_the_model(plan: Planned, world: Setup) -> list[str]:
    """Where episodes contradict the model by far more than its errors."""
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
    """Where a multiplier grows without end, as it does if a limit cannot be kept.

    It has grown from doubling to doubling, is no price any more, and what it is the price of is
    still missed, for certain. One that rises on the way to its price, or to nothing, is none.
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
    """Where the Slater gap that was told is more than any policy of the model has."""
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
