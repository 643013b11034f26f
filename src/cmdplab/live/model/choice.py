"""Choice among the last policy, plans on the counts, and a mixture of two of these.

The first criterion is the certain violation of limits, the second a pessimistic objective. Every
policy is played. A mixture of the policies i and j with the shares w and 1 - w,

    pi_h(a | x) = (w d_i pi_i + (1 - w) d_j pi_j) / (w d_i + (1 - w) d_j),

has the mean of their returns if the environment is Markov. d_i = d_i(h, x) is the measured
frequency of state x at step h. w is the largest share of the better policy that meets all limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import NamedTuple

import numpy as np

from cmdplab import display
from cmdplab.cmdp.policy import Policy
from cmdplab.errors import InputError
from cmdplab.live.evaluation import Evaluation
from cmdplab.live.model.estimate import BySteps
from cmdplab.live.model.experience import Experience
from cmdplab.live.model.plans import Planned, planned_on, promised_by
from cmdplab.live.signals import Setup
from cmdplab.statistics.samples import LEVEL
from cmdplab.types import Array

LAST, PLAN, MIXTURE = "the last policy", "the plan", "the mixture"
ROUNDS = 3  # plans with a margin, each larger than the one before


class Trial(NamedTuple):
    """Result of playing a policy."""

    evaluation: Evaluation
    within: Callable[[float], Evaluation]  # level -> estimates with intervals of that level
    places: Array  # [H, X], how often each state occurred at each step


Judge = Callable[[Array | None], Trial]  # plays a policy [H, X, A]; None: the learner's last one


class Choice(NamedTuple):
    """Chosen policy, and the results of the policies that were compared."""

    name: str
    policy: Policy  # [H, X, A]
    last: Policy
    evaluation: Evaluation | None  # of `policy`, corrected for the choice
    last_evaluation: Evaluation | None
    plan: Planned | None
    notes: list[str]
    leads: bool = False  # True if successors differ from step to step


class _Candidate(NamedTuple):
    """Policy with estimates from episodes if it was played, else from the model."""

    name: str
    policy: Policy
    found: Evaluation
    trial: Trial | None
    plan: Planned | None = None

    def words(self, world: Setup) -> str:
        (reward, paid), *others = zip(world.names, self.found.every, strict=True)
        costs = " and ".join(f"{name} {each.mean:.4g}" for name, each in others)
        return f"{self.name} ({reward} {paid.mean:.4g} at {costs})"


def choose(
    last: Policy,
    seen: Experience,
    world: Setup,
    limit: Array,
    steps: BySteps | None,
    judge: Judge | None,
) -> Choice:
    """Plan on the counts `seen`, play all candidates with `judge`, and choose a policy.

    last : the learner's last policy. steps : counts for plans by step, or None if steps do not
    differ. judge : None compares by the model alone.
    """
    notes: list[str] = []
    trial = judge(None) if judge else None
    plans: list[Planned] = []
    for each in (None, steps) if judge and steps else (steps,):
        try:
            plans.append(planned_on(seen, world, limit, np.zeros_like(limit), each))
        except InputError as error:
            notes.append(f"No plan{' by steps' if each else ''} was made: {error}.")
    if not plans:
        found = trial.evaluation if trial else None
        return Choice(LAST, last, last, found, found, None, notes)
    prices = plans[0].multiplier

    def value(each: _Candidate) -> tuple[float, float]:
        return merit(each.found, limit, prices, world)

    tried = [_tried(each, judge) for each in plans]
    plan = max(tried, key=value)
    for careful in _careful(plan, seen, world, limit, steps, judge):
        tried.append(careful)
        if value(careful) > value(plan):
            plan = careful
    assert plan.plan is not None
    if len(plans) == 2:
        words = " and ".join(each.words(world) for each in tried[:2])
        notes.append(f"Both plans were played, without and with steps: {words}.")
    if plan.plan.margin.any():
        words = display.numbers(plan.plan.margin)
        notes.append(
            f"The plan leaves a margin of {words}: without it, it missed {display.numbers(limit)}."
        )
    found = trial.evaluation if trial else promised_by(seen, world, limit, last.array, steps)
    final = _Candidate(LAST, last, found, trial)
    best = max((plan, final), key=value)
    why = _reason(best, final if best is plan else plan, limit, world)
    tried.append(final)
    mixture = _mixture(tried, best, value, limit, world) if judge else None
    if judge and mixture:
        share, first, second = mixture
        rows = _mixed(share, first, second)
        mixed = judge(rows)
        policy = Policy(rows, last.labels, "a mixture of two policies")
        tried.append(_Candidate(MIXTURE, policy, mixed.evaluation, mixed))
        if value(tried[-1]) > value(best):
            best = tried[-1]
            why = (
                f"{best.words(world)} of {first.words(world)} with the share {share:.2g} and "
                f"{second.words(world)} was chosen because it earns more within the limits."
            )
    notes.append(why[0].upper() + why[1:])
    evaluation = best.trial and best.trial.within(1.0 - (1.0 - LEVEL) / len(tried))
    own = trial.evaluation if trial else None
    leads = steps is not None and steps.leads
    return Choice(best.name, best.policy, last, evaluation, own, plan.plan, notes, leads)


def _tried(plan: Planned, judge: Judge | None) -> _Candidate:
    if judge is None:
        return _Candidate(PLAN, plan.policy, plan.promised, None, plan)
    trial = judge(plan.policy.array)
    plan = plan._replace(evaluation=trial.evaluation)
    return _Candidate(PLAN, plan.policy, trial.evaluation, trial, plan)


def _careful(
    first: _Candidate,
    seen: Experience,
    world: Setup,
    limit: Array,
    steps: BySteps | None,
    judge: Judge | None,
) -> Iterator[_Candidate]:
    """Yield plans with growing margins, until one does not certainly miss its limits.

    Optimal plans tend to have underestimated costs. If a plan misses by m and the model has slack
    s, the margin grows by s m / (s + m), which is below both.
    """
    at, plan = first, first.plan
    assert plan is not None
    slack = max(plan.slater_gap or 0.0, 0.0) * world.scale.width[1:]
    steps, margin = steps if plan.by_step else None, np.zeros_like(limit)
    for _ in range(ROUNDS if judge and plan.feasible else 0):
        if not shortfall(at.found, limit, world, certain=True):
            return
        means = np.array([each.mean for each in at.found.constrained])
        missed, left = np.maximum(world.beyond(means, limit), 0.0), np.maximum(slack - margin, 0.0)
        margin = margin + left * missed / np.maximum(left + missed, 1e-300)
        plan = planned_on(seen, world, limit, margin, steps)
        if not plan.feasible:
            return
        at = _tried(plan, judge)
        yield at


def _mixture(
    tried: list[_Candidate],
    best: _Candidate,
    value: Callable[[_Candidate], tuple[float, float]],
    limit: Array,
    world: Setup,
) -> tuple[float, _Candidate, _Candidate] | None:
    """Return (w, i, j) of the best mixture, or None if it earns not visibly more than `best`."""
    missed, earned = value(best)
    half = (best.found.objective.high - best.found.objective.low) / 2.0
    most, found = (-np.inf if missed < 0.0 else earned + half), None
    for first, second in permutations(tried, 2):
        ends = [
            np.array([world.end(each, kind=False) for each in one.found.constrained])
            for one in (first, second)
        ]
        over, under = world.beyond(ends[0], limit), world.beyond(ends[1], limit)
        if (under > 0.0).any() or not (over > 0.0).any():
            continue
        share = float(np.min(-under[over > 0.0] / (over - under)[over > 0.0]))
        low = share * first.found.objective.low + (1.0 - share) * second.found.objective.low
        if share > 0.0 and low > most:
            most, found = low, (share, first, second)
    return found


def _mixed(share: float, first: _Candidate, second: _Candidate) -> Array:
    total: Array = np.zeros(1)
    for weight, one in ((share, first), (1.0 - share, second)):
        assert one.trial is not None
        total = total + (weight * (one.trial.places + 0.5))[:, :, None] * one.policy.array
    return np.asarray(total / total.sum(axis=-1, keepdims=True))


def _reason(best: _Candidate, other: _Candidate, limit: Array, world: Setup) -> str:
    mine, theirs = (shortfall(each.found, limit, world, certain=True) for each in (best, other))
    rule = ", ".join(
        f"{n} {world.rule} {b:.4g}" for n, b in zip(world.names[1:], limit, strict=True)
    )
    if mine < theirs:
        why = f"{other.words(world)} misses the limits ({rule})" + (" by more" if mine else "")
    elif best.found.objective.low > other.found.objective.high:
        why = f"it earns more than {other.words(world)}"
    else:
        why = f"its lower bound is not below that of {other.words(world)}"
    return f"{best.words(world)} was chosen because {why}."


def shortfall(found: Evaluation, limit: Array, world: Setup, certain: bool) -> float:
    """Return the sum of the violations of limits, each divided by its signal's range per step.

    found : estimates of a policy. certain : True uses the end of each interval that favours the
    policy, False the other end.
    """
    total = 0.0
    for each, wanted, unit in zip(found.constrained, limit, world.scale.width[1:], strict=True):
        total += max(world.beyond(world.end(each, certain), wanted), 0.0) / float(unit)
    return total


def merit(found: Evaluation, limit: Array, prices: Array, world: Setup) -> tuple[float, float]:
    """Return (minus the certain shortfall, the pessimistic objective), to compare policies.

    found : estimates of a policy. The pessimistic objective is the lower end of its interval, minus
    the prices [N] times the possible violations.
    """
    owed = 0.0
    for each, wanted, price in zip(found.constrained, limit, prices, strict=True):
        missed = max(world.beyond(world.end(each, kind=False), wanted), 0.0)
        owed += float(price) * missed if np.isfinite(price) else 0.0
    return -shortfall(found, limit, world, certain=True), found.objective.low - owed
