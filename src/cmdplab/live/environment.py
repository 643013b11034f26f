"""Environments from outside: their numbering of states and actions, and calls of their code.

What does not look as it must becomes one sentence; what goes wrong inside is passed on as it is.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from cmdplab.errors import InputError

Info = Mapping[str, Any]


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


def check_call(what: str, function: object, arguments: str) -> None:
    """Whether something can be called with these arguments, named and separated by commas."""
    if not callable(function):
        raise InputError(f"{what} is {function!r}, not a function ({arguments})")
    if not _binds(function, *arguments.split(",")):
        raise InputError(f"{what} is a function of other arguments than ({arguments})")


def check_seeds(env: Env) -> None:
    """Whether reset takes a seed, in the environment itself and below its wrappers."""
    for each in (env, getattr(env, "unwrapped", env)):
        if not _binds(each.reset, seed=0):
            raise InputError(f"reset() of {type(each).__name__} takes no seed=: it must")


def reset_checked(env: Env, **seed: int) -> tuple[Any, Info]:
    """The first observation of an episode, and the info."""
    result: Any = env.reset(**seed)
    if not isinstance(result, tuple) or len(result) != 2:
        raise InputError(f"reset() returned {result!r}, not (observation, info)")
    return result[0], _checked(result[1], "reset")


def step_checked(env: Env, action: int) -> tuple[Any, Any, bool, bool, Info]:
    """Next observation, reward, terminated, truncated, info."""
    result: Any = env.step(action)
    if not isinstance(result, tuple) or len(result) != 5:
        raise InputError(_not_five(result))
    _checked(result[4], "step")
    return result


def _not_five(result: Any) -> str:
    count = f"{len(result)} things" if isinstance(result, tuple) else repr(result)
    if count == "6 things":
        more = ": cmdplab.gym.FromSafety turns Safety-Gymnasium's six into five"
    else:
        more = ": observation, reward, terminated, truncated, info"
    return f"step() returned {count}, not five{more}"


def _checked(info: Any, where: str) -> Info:
    if not isinstance(info, Mapping):
        raise InputError(f"{where}() returned {info!r} as its info, not a dictionary")
    return info


def _binds(function: Callable[..., Any], *arguments: str, **named: int) -> bool:
    """Whether a call would find its parameters; true where a function does not say which it has."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*arguments, **named)
    except TypeError:
        return False
    return True
