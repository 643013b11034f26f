"""Environments from outside cmdplab, and checked calls of their code.

A result of a wrong form raises an `InputError`. Errors of the environment pass unchanged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.live.codes import Code

Info = Mapping[str, Any]


class Env(Protocol):
    """Protocol of the used part of `gymnasium.Env`. Gymnasium itself is never imported."""

    @property
    def observation_space(self) -> Any: ...

    @property
    def action_space(self) -> Any: ...

    def reset(self, *, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. Return observation and info."""
        ...

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one action. Return observation, reward, terminated, truncated and info."""
        ...


def check_env(env: Any) -> None:
    """Refuse an object without the methods and spaces of a Gymnasium environment."""
    for name in ("observation_space", "action_space", "reset", "step"):
        if not hasattr(env, name):
            kind = type(env).__name__
            raise InputError(f"{kind} is not a Gymnasium environment: it lacks {name}")


def own_problem(env: Env) -> CMDP | None:
    """Return the CMDP that an environment of cmdplab wraps, or None for other environments."""
    found = getattr(getattr(env, "unwrapped", env), "problem", None)
    return found if isinstance(found, CMDP) else None


def observations(env: Env, actions: Code, episodes: int, horizon: int, seed: int) -> list[Any]:
    """Return all observations of `episodes` episodes of at most `horizon` random actions."""
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
    """Refuse an object that is not a function of `arguments`, names separated by commas."""
    if not callable(function):
        raise InputError(f"{what} is {function!r}, not a function ({arguments})")
    if not _binds(function, *arguments.split(",")):
        raise InputError(f"{what} is a function of other arguments than ({arguments})")


def check_seeds(env: Env) -> None:
    """Refuse an environment whose `reset` takes no seed. Its inner environment is checked too."""
    for each in (env, getattr(env, "unwrapped", env)):
        if not _binds(each.reset, seed=0):
            raise InputError(f"reset() of {type(each).__name__} takes no seed=: it must")


def reset_checked(env: Env, **seed: int) -> tuple[Any, Info]:
    """Begin an episode. Return its first observation and the info. seed : passed to `reset`."""
    result: Any = env.reset(**seed)
    if not isinstance(result, tuple) or len(result) != 2:
        raise InputError(f"reset() returned {result!r}, not (observation, info)")
    return result[0], _checked(result[1], "reset")


def step_checked(env: Env, action: Any) -> tuple[Any, Any, bool, bool, Info]:
    """Play an action. Return next observation, reward, terminated, truncated and info, checked."""
    result = _five(env, action)
    for name, flag in (("terminated", result[2]), ("truncated", result[3])):
        if flag is not True and flag is not False:
            array = np.asarray(flag)
            if array.ndim or array.dtype.kind not in "biu" or array not in (0, 1):
                raise InputError(f"step() returned {flag!r} as {name}, not True or False")
    return result


def _five(env: Env, action: Any) -> tuple[Any, Any, Any, Any, Info]:
    result: Any = env.step(action)
    if not isinstance(result, tuple) or len(result) != 5:
        count = f"{len(result)} things" if isinstance(result, tuple) else repr(result)
        more = "observation, reward, terminated, truncated, info"
        if count == "6 things":
            more = "cmdplab.gym.FromSafety turns Safety-Gymnasium's six into five"
        raise InputError(f"step() returned {count}, not five: {more}")
    if type(result[4]) is not dict:  # tested first, as a test for `Mapping` takes 0.3 us
        _checked(result[4], "step")
    return result


class Copies:
    """Copies of an environment in a `gymnasium.vector.VectorEnv`. Alone, the first one is an `Env`.

    A copy that has ended is played until all are reset together, and its steps are ignored. The
    place of its last observation depends on the `AutoresetMode`.
    """

    def __init__(self, env: Any) -> None:
        self.env, self.count = env, int(env.num_envs)
        self.observation_space, self.action_space = (
            env.single_observation_space,
            env.single_action_space,
        )
        mode = (getattr(env, "metadata", None) or {}).get("autoreset_mode")
        self._mode = str(getattr(mode, "value", mode))

    @property
    def unwrapped(self) -> Any:
        """Environment below its wrappers."""
        return getattr(self.env, "unwrapped", self.env)

    @property
    def spec(self) -> Any:
        """Specification of the copied environment."""
        return getattr(self.env, "spec", None)

    def reset(self, *, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every copy. Return the observation and info of the first one."""
        return self.reset_all(**({} if seed is None else {"seed": seed}))[0]

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one action in every copy. Return the result of the first one."""
        return self.step_all([action] * self.count)[0]

    def reset_all(self, **seed: int) -> list[tuple[Any, dict[str, Any]]]:
        """Begin an episode in every copy. Return (observation, info) of each."""
        observations, infos = reset_checked(self.env, **seed)
        return [(part(observations, i), self._info(infos, i)) for i in range(self.count)]

    def step_all(self, actions: list[Any]) -> list[tuple[Any, Any, bool, bool, dict[str, Any]]]:
        """Play an action in each copy. Return all results, with the last observation at an end."""
        observations, rewards, ended, cut, infos = _five(self.env, _together(actions))
        found = []
        for i in range(self.count):
            over = bool(ended[i]) or bool(cut[i])
            seen, told = observations, infos
            if over and self._mode == "SameStep":
                seen, told = infos["final_obs"], infos.get("final_info", {})
            told = self._info(told, i)
            found.append((part(seen, i), rewards[i], bool(ended[i]), bool(cut[i]), told))
        if self._mode == "Disabled" and np.any(over := np.logical_or(ended, cut)):
            self.env.reset(options={"reset_mask": np.asarray(over)})
        return found

    def _info(self, infos: Info, i: int) -> dict[str, Any]:
        """Return the info of copy i. An array "_key" is True for the copies that have the key."""
        found = {}
        for key, value in infos.items():
            flags = infos.get(f"_{key}")
            if key.startswith("_") or (flags is not None and not flags[i]):
                continue
            if isinstance(value, Mapping):
                found[key] = self._info(value, i)
            else:
                each = hasattr(value, "__len__") and len(value) == self.count
                found[key] = value[i] if each else value
        return found


def as_one(env: Any) -> Any:
    """Return `Copies` for a vector environment, and any other environment unchanged."""
    vector = hasattr(env, "num_envs") and hasattr(env, "single_action_space")
    return Copies(env) if vector else env


def part(values: Any, i: int) -> Any:
    """Return entry i of an array, or of every array in a Dict or Tuple."""
    if isinstance(values, tuple):
        return tuple(part(each, i) for each in values)
    if isinstance(values, Mapping):
        return {key: part(each, i) for key, each in values.items()}
    return values[i]


def _together(values: list[Any]) -> Any:
    if isinstance(values[0], tuple):
        return tuple(_together(list(each)) for each in zip(*values, strict=True))
    if isinstance(values[0], Mapping):
        return {key: _together([each[key] for each in values]) for key in values[0]}
    return np.array(values)


def _checked(info: Any, where: str) -> Info:
    if not isinstance(info, Mapping):
        raise InputError(f"{where}() returned {info!r} as its info, not a dictionary")
    return info


def _binds(function: Callable[..., Any], *arguments: str, **named: int) -> bool:
    """Return True if a function accepts these arguments, or has an unknown signature."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*arguments, **named)
    except TypeError:
        return False
    return True
