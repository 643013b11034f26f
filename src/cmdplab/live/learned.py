"""Results of learning in a live environment, and of estimation from a log."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.algorithms.row import Row
from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.policy import Policy
from cmdplab.errors import InputError
from cmdplab.live import files
from cmdplab.live.evaluation import Curve, Evaluation
from cmdplab.live.model.choice import LAST, PLAN
from cmdplab.live.model.estimate import BySteps, LearnedModel, model_of
from cmdplab.live.model.experience import Experience
from cmdplab.live.model.plans import Planned, planned_on
from cmdplab.live.signals import Setup, checked_limit
from cmdplab.statistics.intervals import Estimate
from cmdplab.types import Array, Indices, frozen

NO_EXACT = (
    "The kernel is not known: these are estimates, and there is no exact value, "
    "optimum or regret to be had."
)


class Known:
    """Base of results: observed transitions, the setup of the environment, limits and a policy."""

    seen: Experience
    world: Setup
    limit: Array  # [N]
    policy: Policy  # [H, X, A]

    @property
    def by_step(self) -> BySteps | None:
        """Counts for plans with estimates of each step. None if steps are pooled."""
        return None

    def model(self, delta: float = 0.05) -> LearnedModel:
        """Return the estimated CMDP and a box with the true kernel, with probability 1 - delta."""
        return model_of(self.seen, self.world, self.limit, delta)

    def plan(
        self,
        budget: npt.ArrayLike | None = None,
        margin: npt.ArrayLike = 0.0,
        *,
        threshold: npt.ArrayLike | None = None,
    ) -> Planned:
        """Plan on the estimated model, for the limits of the learning or for others.

        budget, threshold : of costs, or of utilities; None keeps the limits of the learning. margin
        : by how much stricter the limits are in the model, one number or N.
        """
        limit = self._limit(budget, threshold)
        more = np.broadcast_to(floats("margin", margin), limit.shape)
        if not (np.isfinite(more) & (more >= 0.0)).all():
            raise InputError(f"margin is {display.numbers(more)}, not a number >= 0")
        return planned_on(self.seen, self.world, limit, more, self.by_step)

    def actor(self, seed: int = 0) -> Actor:
        """Return the policy as a function from observations to actions."""
        return Actor(self, seed)

    def _limit(self, budget: npt.ArrayLike | None, threshold: npt.ArrayLike | None) -> Array:
        given, other = (budget, threshold) if self.world.costs else (threshold, budget)
        name = "budget" if self.world.costs else "threshold"
        if other is not None:
            raise InputError(f"what was learned has a {name}: pass {name}=")
        if given is None:
            return self.limit
        scale, steps = self.world.scale, self.world.horizon
        ends = np.sort([scale.worst[1:], scale.best[1:]], axis=0).T.tolist()
        limit = checked_limit(name, given, steps, ends)
        if limit.shape != self.limit.shape:
            raise InputError(f"{name} holds {len(limit)} numbers for {len(self.limit)} constraints")
        return limit


@display.shown
@frozen
@dataclass(frozen=True, eq=False)
class Learned(Known):
    """Learned policy with estimates from episodes. All numbers are in the user's units.

    `policy` is the last policy that the algorithm played, a plan on all transitions, or a mixture
    of two policies. `chosen` names it.
    """

    algorithm: Row
    policy: Policy  # [H, X, A]
    multiplier: Array  # [N], of the last policy: objective per unit of cost or utility
    visits: Indices  # [H, X, A], during learning
    episodes: int
    curve: Curve  # returns during learning
    evaluation: Evaluation | None  # of `policy`, corrected for the choice; None if not played
    late: Evaluation  # estimates from the last tenth of the learning
    limit: Array  # [N], the budgets or thresholds
    names: tuple[str, ...]  # [1 + N], of the signals
    reward_range: tuple[float, float]  # mapped to [0, 1] for the learner
    seconds: float  # duration of learning in this call
    notes: tuple[str, ...]
    last: Policy  # [H, X, A], the algorithm's own
    last_evaluation: Evaluation | None
    planned: Planned | None  # None if no plan was possible
    chosen: str  # LAST, PLAN or MIXTURE
    world: Setup  # sizes, names and scales
    seen: Experience  # every transition, pooled over the steps
    state: Any  # state of the learner, to go on from
    steps: Experience  # transitions with their steps
    leads: bool = False  # True if successors differ from step to step

    @property
    def by_step(self) -> BySteps | None:
        """Counts for plans with estimates of each step. None if steps are pooled."""
        by_step = self.planned is not None and self.planned.by_step
        return BySteps(self.steps, self.leads) if by_step else None

    def with_budget(
        self, budget: npt.ArrayLike | None = None, *, threshold: npt.ArrayLike | None = None
    ) -> Learned:
        """Return the result for another budget or threshold, planned anew without new episodes.

        Its policy is the plan. It was not played, so that `evaluation` is None.
        """
        plan = self.plan(budget, threshold=threshold)
        both = [display.numbers(each) for each in (plan.limit, self.limit)]
        note = f"Planned for {both[0]} on what was learned for {both[1]}."
        notes = (note, *([plan.message] if plan.message else []))
        found: dict[str, Any] = {"policy": plan.policy, "planned": plan, "chosen": PLAN}
        return replace(self, **found, evaluation=None, limit=plan.limit, notes=notes)

    def save(self, path: str | Path) -> None:
        """Write all fields to one .npz file, atomically and without pickle."""
        files.write(path, {each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def load(cls, path: str | Path) -> Learned:
        """Read a file of `save`. The result can plan, act, and go on with `learn(data=)`."""
        return cls(**files.read(path))

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [] if self.evaluation is None else self.evaluation.facts(self.names)
        facts += [
            ("limits", display.numbers(self.limit)),
            ("multiplier", display.numbers(self.multiplier)),
            ("policy", f"{self.chosen}, {display.shape(self.policy.array, 'H x X x A')}"),
            ("learnt from", display.count(self.episodes, "episode")),
            ("try", ".summary(), .actor(), .save(file)"),
        ]
        return f"Learned by {display.name(self.algorithm.name)}", facts

    def summary(self) -> str:
        """Return the result in words, on several lines."""
        lines = [f"{self.algorithm.name}, {self.episodes:,} episodes"]
        if self.last_evaluation is not None:
            lines += self._judged(LAST, self.last_evaluation, self.multiplier)
        if self.planned is not None and self.planned.evaluation is not None:
            lines += self._judged(PLAN, self.planned.evaluation, self.planned.multiplier)
        elif self.planned is not None:
            lines.append(f"{PLAN}, as the learned model promises:")
            lines += self._lines(self.planned.promised, self.planned.multiplier)
        lines.append(f"learned.policy is {self.chosen}.")
        if self.evaluation is not None and self.planned is not None:
            lines.append("Its intervals, corrected for the choice:")
            each = zip(self.names, self.evaluation.every, strict=True)
            lines += [f"  {_line(*one)}" for one in each]
        lines.append(f"policies of the last {self.late.objective.episodes:,} learning episodes:")
        late = zip(self.names, self.late.every, strict=True)
        lines += [f"  {_line(name, each)}" for name, each in late]
        low, high = self.reward_range
        if (low, high) != (0.0, 1.0):
            lines.append(f"The learner saw each reward r as (r - {low:g}) / {high - low:g}.")
        return "\n".join([*lines, *self.notes, NO_EXACT])

    def _judged(self, what: str, found: Evaluation, multiplier: Array) -> list[str]:
        first = f"{what}, over {found.objective.episodes:,} further episodes:"
        return [first, *self._lines(found, multiplier)]

    def _lines(self, found: Evaluation, multiplier: Array) -> list[str]:
        rule = self.world.rule
        limits = zip(self.names[1:], self.limit, multiplier, found.constrained, strict=True)
        return [f"  {_line(self.names[0], found.objective)}"] + [
            f"  {_line(name, each)}, {rule} {limit:g} wanted, multiplier {price:.4g}"
            for name, limit, price, each in limits
        ]


@display.shown
@frozen
@dataclass(frozen=True, eq=False)
class Fitted(Known):
    """Model and plan estimated from logged episodes, with notes. No episode was played."""

    policy: Policy  # [H, X, A], the plan
    planned: Planned
    limit: Array  # [N]
    world: Setup
    seen: Experience
    notes: tuple[str, ...] = ()

    def with_budget(
        self, budget: npt.ArrayLike | None = None, *, threshold: npt.ArrayLike | None = None
    ) -> Fitted:
        """Return the result for another budget or threshold, planned anew on the same log."""
        plan = self.plan(budget, threshold=threshold)
        return replace(self, policy=plan.policy, planned=plan, limit=plan.limit)

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [("episodes", f"{self.seen.episodes:,}")]
        promised = self.planned.promised.facts(self.world.names)
        facts += [(name, f"{told}, promised by the model") for name, told in promised]
        facts.append(("limits", display.numbers(self.limit)))
        return "Fitted", facts + [("note", each) for each in self.notes]


class Actor:
    """Player of a learned policy: called with an observation, it returns an action.

    Both are values of the environment, also for cells, tuples and dictionaries.
    """

    def __init__(self, known: Known, seed: int = 0) -> None:
        self._spaces = known.world.spaces
        self._actor = known.policy.start(seed)

    def reset(self) -> None:
        self._actor.reset()

    def __call__(self, observation: Any) -> Any:
        return self._spaces.action(self._actor(self._spaces.state(observation)))


def _line(name: str, found: Estimate) -> str:
    return f"{name} {found.mean:.4f} (95 % interval {found.low:.4f} to {found.high:.4f})"
