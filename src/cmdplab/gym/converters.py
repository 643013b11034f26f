"""Converters between Gymnasium steps with costs in the infos and two other interfaces.

A Safety-Gymnasium step returns six values, with the cost third: (observation, reward, cost,
terminated, truncated, info). An MO-Gymnasium step returns five, with an array as the reward;
`reward_space` is its space. Neither package is needed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import Env, Wrapper

from cmdplab.errors import InputError
from cmdplab.gym.dynamics import costs_of
from cmdplab.gym.env import Info
from cmdplab.types import Array

Five = tuple[Any, float, bool, bool, Info]
Six = tuple[Any, float, float, bool, bool, Info]
Vector = tuple[Any, Array, bool, bool, Info]


class _Converter(Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    def __init__(self, env: Env[Any, Any]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)


class ToSafety(_Converter):
    """Steps of Safety-Gymnasium: the cost of the infos is returned third."""

    def step(self, action: Any) -> Six:  # type: ignore[override]  # another interface on purpose
        observation, reward, terminated, truncated, info = self.env.step(action)
        cost = float(_told(info, "cost"))
        return observation, float(reward), cost, terminated, truncated, info


class FromSafety(_Converter):
    """Steps of Gymnasium from a Safety-Gymnasium environment: the cost goes to info["cost"]."""

    def step(self, action: Any) -> Five:
        six: Any = self.env.step(action)
        if len(six) != 6:
            raise InputError(f"step() returned {len(six)} things, not Safety-Gymnasium's six")
        observation, reward, cost, terminated, truncated, info = six
        return observation, reward, terminated, truncated, {**info, "cost": float(cost)}


class ToVectorReward(_Converter):
    """Steps of MO-Gymnasium: the reward is [1 + N], the objective and then the utilities."""

    def __init__(self, env: Env[Any, Any]) -> None:
        super().__init__(env)
        if not env.has_wrapper_attr("reward_space"):
            raise InputError(f"{env} has no reward_space: its utilities are unknown")
        self.reward_space: gymnasium.spaces.Box = env.get_wrapper_attr("reward_space")

    def step(self, action: Any) -> Vector:
        observation, reward, terminated, truncated, info = self.env.step(action)
        signals = np.concatenate([[float(reward)], _told(info, "utilities")])
        return observation, signals, terminated, truncated, info


def _told(info: Info, key: str) -> Any:
    """Return the value of a key in the infos; refuse infos without it."""
    if key not in info:
        raise InputError(f'the environment puts no info["{key}"], which is needed here')
    return info[key]


def _rest_as_utilities(signals: Array) -> Array:
    """Return the costs [N] of a vector reward [1 + N] with utilities in [0, 1] after the first."""
    return costs_of(signals[1:])


class FromVectorReward(Wrapper[Any, Any, Any, Any]):
    """Steps of Gymnasium from an MO-Gymnasium environment: entry 0 of the reward is the objective.

    costs : function from the vector reward [M] to the costs [N]. By default the further entries are
    utilities in [0, 1] with the costs 1 - utility. For other units pass another function, for
    example `lambda signals: -signals[1:]`.
    """

    def __init__(
        self, env: Env[Any, Any], costs: Callable[[Array], Array] = _rest_as_utilities
    ) -> None:
        super().__init__(env)
        self._costs = costs

    def step(self, action: Any) -> Five:
        result: Any = self.env.step(action)
        observation, signals, terminated, truncated, info = result
        if np.ndim(signals) != 1:
            raise InputError(f"the reward is {signals!r}, not an array with the objective first")
        costs = np.atleast_1d(np.asarray(self._costs(np.asarray(signals))))
        told = {**info, "cost": float(costs.sum()), "costs": costs}
        return observation, float(signals[0]), terminated, truncated, told
