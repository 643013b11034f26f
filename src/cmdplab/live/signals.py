"""Signals to maximise and to constrain, step by step, in the user's units and in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.checks import real_number
from cmdplab.cmdp.checks import floats
from cmdplab.errors import InputError
from cmdplab.live.environment import Info, check_call
from cmdplab.types import Array

Signal = Callable[[Any, Any, Any, float, Info], float]  # (state, action, next state, reward, info)
Reader = Callable[[Any, Any, Any, Any, Info], Sequence[Any]]  # the same, to N numbers
Given = Signal | Sequence[Signal] | None
ARGUMENTS = "state, action, next_state, reward, info"  # of a `Signal`
INFO = "info"


class Scale(NamedTuple):
    """An affine map of each of the 1 + N signals: worst -> 0, best -> 1.

    u = (v - worst) / (best - worst), where v is in the user's units and u is what the learner
    sees. A cost has worst 1 and best 0, so that u = 1 - v. A step on which nothing happens (after
    the end of an episode) has v = 0.
    """

    worst: Array  # [1 + N]
    best: Array  # [1 + N]

    def to_unit(self, values: Array, steps: int = 1) -> Array:
        """Sums over so many steps, [1 + N] or [1 + N, ...], as the learner sees them."""
        shape = (-1, *(1,) * (values.ndim - 1))
        worst, best = self.worst.reshape(shape), self.best.reshape(shape)
        return (values - steps * worst) / (best - worst)


class Demand(NamedTuple):
    """The constraints: what is read at a step, which way it is bounded, and by how much."""

    read: Reader
    limit: Array  # [N], the sum over an episode, in the user's units
    what: str  # "cost" or "utility"
    source: str = INFO  # or the qualified names of the functions

    @property
    def worst(self) -> float:
        """The worst value of a step."""
        return 1.0 if self.what == "cost" else 0.0

    def scale(self, reward_range: tuple[float, float]) -> Scale:
        """The maps of the objective and of the N constrained signals."""
        low, high = reward_range
        n = len(self.limit)
        worst = np.array([low, *[self.worst] * n])
        return Scale(worst, np.array([high, *[1.0 - self.worst] * n]))


def demand(
    horizon: int,
    budget: npt.ArrayLike | None,
    threshold: npt.ArrayLike | None,
    cost: Given,
    utilities: Given,
) -> Demand:
    """Costs within budgets, or utilities that reach thresholds, from functions or the info."""
    if (budget is None) == (threshold is None):
        raise InputError("pass either budget= (of costs) or threshold= (of utilities)")
    what = "cost" if threshold is None else "utility"
    functions, other = (cost, utilities) if what == "cost" else (utilities, cost)
    if other is not None:
        raise InputError("a budget bounds cost= from above, a threshold utilities= from below")
    name = "budget" if what == "cost" else "threshold"
    limit = np.atleast_1d(floats(name, budget if what == "cost" else threshold))  # type: ignore[arg-type]
    if limit.ndim != 1 or not len(limit):
        raise InputError(f"{name} must be a number or a list of numbers")
    for each in limit:
        if not 0.0 <= each <= horizon:
            raise InputError(f"{name} is {each:g}, outside 0 to the horizon, {horizon}")
    if functions is None:
        return Demand(_from_info(what, len(limit)), limit, what)
    listed: list[Any] = list(functions) if isinstance(functions, list | tuple) else [functions]
    for each in listed:
        check_call("cost=" if what == "cost" else "utilities=", each, ARGUMENTS)
    if len(listed) != len(limit):
        raise InputError(f"{name} holds {len(limit)} numbers for {len(listed)} functions")
    source = ", ".join(getattr(each, "__qualname__", type(each).__qualname__) for each in listed)
    return Demand(_from_functions(listed), limit, what, source)


def checked_range(reward_range: tuple[float, float]) -> tuple[float, float]:
    """(low, high) of the reward of a step; zero, what a step after the end earns, lies within."""
    try:
        low, high = (real_number("an end of reward_range", each) for each in reward_range)
    except (TypeError, ValueError):
        raise InputError(f"reward_range is {reward_range!r}, not (lowest, highest)") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"reward_range is ({low:g}, {high:g}), not a lower and an upper number")
    if not low <= 0.0 <= high:
        raise InputError(
            f"reward_range is ({low:g}, {high:g}), which must hold 0, "
            "the reward of every step after the end of an episode"
        )
    return low, high


def _from_functions(functions: Sequence[Signal]) -> Reader:
    if len(functions) == 1:
        only = functions[0]
        return lambda *step: (only(*step),)
    return lambda *step: [each(*step) for each in functions]


def _from_info(what: str, count: int) -> Reader:
    """info["cost"] for one cost; else info["costs"] or info["utilities"], N numbers."""
    many = "costs" if what == "cost" else "utilities"
    keys = ("cost", many) if what == "cost" and count == 1 else (many,)
    shown = " or ".join(f'info["{key}"]' for key in keys)
    argument = "cost" if what == "cost" else "utilities"

    def read(state: Any, action: Any, following: Any, reward: Any, info: Info) -> Sequence[Any]:
        for key in keys:
            if key in info:
                told = np.atleast_1d(info[key])
                if told.shape == (count,):
                    return told.tolist()  # type: ignore[no-any-return]
                raise InputError(f'info["{key}"] is {info[key]}, not one number per {what}')
        raise InputError(f"the environment tells no {what}: pass {argument}=, or put {shown}")

    return read
