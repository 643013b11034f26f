"""Environments that can be learned: finitely many states and actions, by number."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple, Protocol

from cmdplab.errors import InputError


class Env(Protocol):
    """The part of `gymnasium.Env` that is used here; Gymnasium itself is never imported."""

    @property
    def observation_space(self) -> Any: ...

    @property
    def action_space(self) -> Any: ...

    def reset(self, *, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        ...

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one action."""
        ...


class Spaces(NamedTuple):
    """An environment's numbering of states and actions; a learner counts both from zero."""

    states: int  # X
    actions: int  # A
    first_state: int
    first_action: int

    @classmethod
    def of(cls, env: Env) -> Spaces:
        """The spaces of an environment, both of them `Discrete`."""
        found = [_discrete(env, f"{what}_space") for what in ("observation", "action")]
        (states, first_state), (actions, first_action) = found
        return cls(states, actions, first_state, first_action)

    def state(self, observation: Any) -> int:
        """The learner's number of an observed state."""
        try:
            x = operator.index(observation) - self.first_state
        except TypeError:
            raise InputError(f"the environment shows {observation!r}, not a state") from None
        if not 0 <= x < self.states:
            last = self.first_state + self.states - 1
            raise InputError(
                f"the environment shows the state {observation}, "
                f"outside its own space, {self.first_state} to {last}"
            )
        return x


def _discrete(env: Env, name: str) -> tuple[int, int]:
    """(n, start) of a Discrete space, known by its attributes: no other space has both."""
    if not (hasattr(env, name) and hasattr(env, "reset") and hasattr(env, "step")):
        kind = type(env).__name__
        raise InputError(f"{kind} is not a Gymnasium environment: it lacks {name}, reset or step")
    space = getattr(env, name)
    try:
        return operator.index(space.n), operator.index(space.start)
    except (AttributeError, TypeError):
        words = name.replace("_", " ")
        raise InputError(f"the {words} is {space}, and only Discrete can be learned") from None
