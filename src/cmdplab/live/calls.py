"""Calls of foreign code: an environment's reset and step, and functions that a person gives.

What does not look as it must becomes one sentence; what goes wrong inside is passed on as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from cmdplab.errors import InputError
from cmdplab.live.spaces import Env

Info = Mapping[str, Any]


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
