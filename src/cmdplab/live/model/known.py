"""What is known after learning or from a log: a model, plans for any budget, a policy that acts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.policy import Policy
from cmdplab.errors import InputError
from cmdplab.live.episodes import Setup
from cmdplab.live.model.estimate import BySteps, LearnedModel, model_of
from cmdplab.live.model.experience import Experience
from cmdplab.live.model.plans import Planned, planned_on
from cmdplab.live.signals import checked_limit
from cmdplab.types import Array


class Known:
    """Transitions that were seen, the world that they come from, and a policy for its limits."""

    seen: Experience
    world: Setup
    limit: Array  # [N]
    policy: Policy  # [H, X, A]

    @property
    def by_step(self) -> BySteps | None:
        """Return the counts for plans with estimates of each step; None if steps are pooled."""
        return None

    def model(self, delta: float = 0.05) -> LearnedModel:
        """The learned CMDP with its confidence box: to be solved, made robust, saved, reported."""
        return model_of(self.seen, self.world, self.limit, delta)

    def plan(
        self,
        budget: npt.ArrayLike | None = None,
        margin: npt.ArrayLike = 0.0,
        *,
        threshold: npt.ArrayLike | None = None,
    ) -> Planned:
        """The best policy of the learned model, for these limits or for others.

        budget, threshold : of costs, or of utilities; None keeps what was learned for. margin : by
        how much less is spent, or more is earned, in the model: one number, or N.
        """
        limit = self._limit(budget, threshold)
        more = np.broadcast_to(floats("margin", margin), limit.shape)
        if not (np.isfinite(more) & (more >= 0.0)).all():
            raise InputError(f"margin is {display.numbers(more)}, not a number >= 0")
        return planned_on(self.seen, self.world, limit, more, self.by_step)

    def actor(self, seed: int = 0) -> Actor:
        """The policy as the environment meets it: call it with an observation."""
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


class Actor:
    """A learned policy in the middle of an episode: an observation in, an action out.

    Both are the environment's own, cells, tuples and dictionaries included.
    """

    def __init__(self, known: Known, seed: int = 0) -> None:
        self._spaces = known.world.spaces
        self._actor = known.policy.start(seed)

    def reset(self) -> None:
        """Begin the next episode."""
        self._actor.reset()

    def __call__(self, observation: Any) -> Any:
        """The action to play."""
        return self._spaces.action(self._actor(self._spaces.state(observation)))
