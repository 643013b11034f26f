"""Environments from outside, and calls of their code.

What does not look as it must becomes one sentence; what goes wrong inside is passed on as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.live.spaces import Code

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


def check_env(env: Any) -> None:
    """Whether something looks like an environment of Gymnasium."""
    for name in ("observation_space", "action_space", "reset", "step"):
        if not hasattr(env, name):
            kind = type(env).__name__
            raise InputError(f"{kind} is not a Gymnasium environment: it lacks {name}")


def own_problem(env: Env) -> CMDP | None:
    """The problem of one of our own environments, which tells its horizon, limits and mask."""
    found = getattr(getattr(env, "unwrapped", env), "problem", None)
    return found if isinstance(found, CMDP) else None


def observations(env: Env, actions: Code, episodes: int, horizon: int, seed: int) -> list[Any]:
    """What a warm-up with random actions sees: every observation of so many episodes."""
    rng = np.random.default_rng(seed)
    seen: list[Any] = []
    for k in range(episodes):
        observation, _ = reset_checked(env, **({"seed": seed} if k == 0 else {}))
        seen.append(observation)
        for _ in range(horizon):
            step = step_checked(env, actions.value(int(rng.integers(actions.size))))
            seen.append(step[0])
            if step[2] or step[3]:
                break
    return seen


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


def step_checked(env: Env, action: Any) -> tuple[Any, Any, bool, bool, Info]:
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
