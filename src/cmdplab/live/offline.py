"""`fit`: a model and a plan from logged episodes alone; nothing is played."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.checks import whole_horizon
from cmdplab.cmdp.policy import Policy
from cmdplab.errors import InputError
from cmdplab.files.read import LONGEST_NUMBER
from cmdplab.live.episodes import Setup
from cmdplab.live.model import Experience, Planned, planned_on
from cmdplab.live.model.data import Step, episodes_of, numbered, played_as
from cmdplab.live.model.known import Known
from cmdplab.live.signals import Given, checked_range, demand, signal_names
from cmdplab.live.spaces import Named, Spaces, Whole
from cmdplab.types import Array, frozen


@display.shown
@frozen
@dataclass(frozen=True, eq=False)
class Fitted(Known):
    """What logged episodes say: a model, a plan, and their notes. Nothing was played."""

    policy: Policy  # [H, X, A], the plan
    planned: Planned
    limit: Array  # [N]
    world: Setup
    seen: Experience
    notes: tuple[str, ...] = ()

    def with_budget(
        self, budget: npt.ArrayLike | None = None, *, threshold: npt.ArrayLike | None = None
    ) -> Fitted:
        """The same log for other limits, planned anew."""
        plan = self.plan(budget, threshold=threshold)
        return replace(self, policy=plan.policy, planned=plan, limit=plan.limit)

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [("episodes", f"{self.seen.episodes:,}")]
        promised = self.planned.promised.facts(self.world.names)
        facts += [(name, f"{told}, promised by the model") for name, told in promised]
        facts.append(("limits", display.numbers(self.limit)))
        return "Fitted", facts + [("note", each) for each in self.notes]


def fit(
    data: Any,
    *,
    horizon: int | None = None,
    budget: npt.ArrayLike | None = None,
    threshold: npt.ArrayLike | None = None,
    cost: Given = None,
    utilities: Given = None,
    reward_range: tuple[float, float] | None = None,
    cost_range: Any = (0.0, 1.0),
    spaces: Spaces | None = None,
) -> Fitted:
    """Estimate a CMDP from logged episodes, and plan on it.

    data : a list of episodes of (state, action, reward, costs ..., next state), a table with
        columns episode, state, action, reward, cost (or cost 1, cost 2, ...) and next, or episodes
        as Minari gives them. No next state means that the episode ended.
    horizon : H; default: the longest episode. The other arguments are those of `learn`.
    reward_range : default: what was seen, and zero.
    spaces : those of an environment (`Spaces.of(env)`); default: the states and actions of the log.

    What the log never tried is feared, so that the plan stays where the log has been.
    """
    limits: Any = budget if threshold is None else threshold
    names = signal_names("cost" if threshold is None else "utility", int(np.size(limits)))
    data = list(data) if hasattr(data, "__next__") else data  # what can be gone through only once
    logged = [each for each in episodes_of(data, names) if each]
    if not logged:
        raise InputError("there is no step in the logged episodes")
    steps = whole_horizon(max(map(len, logged)) if horizon is None else horizon)
    found = spaces or _spaces(logged)
    wanted = demand(steps, budget, threshold, cost, utilities, cost_range)
    rewards = checked_range(_range(logged) if reward_range is None else reward_range)
    words = found.labels.states
    began = {numbered(found.observed, words, each[0].state) for each in logged}
    start = began.pop() if len(began) == 1 else None
    world = Setup(found, steps, start, wanted.read, wanted.scale(rewards), ("reward", *names))
    seen = Experience(found.states, found.actions, len(world.names))
    cut = 0
    for played in played_as(logged, world):
        cut += played.cut
        seen.add(*played.steps(world))
    plan = planned_on(seen, world, wanted.limit, np.zeros(len(wanted.limit)))
    notes = [plan.message] if plan.message else []
    if cut:
        notes.append(f"{cut:,} episodes do not say how they end before step {steps}.")
    return Fitted(plan.policy, plan, wanted.limit, world, seen, tuple(notes))


def _range(logged: list[list[Step]]) -> tuple[float, float]:
    """The rewards that were seen, and zero."""
    try:
        values = [float(step.reward) for episode in logged for step in episode]
    except (TypeError, ValueError, OverflowError):
        raise InputError("a reward of the data is not a number") from None
    if not np.isfinite(values).all():
        raise InputError("a reward of the data is not a finite number")
    low, high = min(0.0, *values), max(0.0, *values)
    return (low, high) if low < high else (low, low + 1.0)


def _spaces(logged: list[list[Step]]) -> Spaces:
    """The states and actions that occur: whole numbers from 0, or names."""
    states, actions = dict[Any, None](), dict[Any, None]()
    for episode in logged:
        for step in episode:
            states[_key(step.state)] = actions[_key(step.action)] = None
        if episode[-1].following is not None:
            states[_key(episode[-1].following)] = None
    return Spaces(_code(list(states)), _code(list(actions)))


def _code(values: list[Any]) -> Whole | Named:
    if all(each.isdecimal() for each in values):
        largest = max(values, key=lambda each: (len(each), each))
        if len(largest) > LONGEST_NUMBER:
            raise InputError(f"the log numbers a state or an action {largest}")
        return Whole(1 + max(map(int, values)))
    return Named(tuple(sorted(values)))


def _key(value: Any) -> str:
    return str(value.item() if isinstance(value, np.generic) else value)
