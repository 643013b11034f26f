"""Signals of a live run: the reward and the costs or utilities, their ranges and units."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.checks import real_number
from cmdplab.cmdp.checks import floats
from cmdplab.errors import InputError
from cmdplab.live.environment import Info, check_call
from cmdplab.live.spaces import Spaces
from cmdplab.statistics.intervals import Estimate
from cmdplab.types import Array, Mask

Signal = Callable[[Any, Any, Any, float, Info], float]  # (state, action, next state, reward, info)
Reader = Callable[[Any, Any, Any, Any, Info], Sequence[Any]]  # returns N numbers
Given = Signal | Sequence[Signal] | None
Constraints = tuple[npt.ArrayLike | None, npt.ArrayLike | None, Given, Given]
"""The arguments budget, threshold, cost and utilities."""
ARGUMENTS = "state, action, next_state, reward, info"  # arguments of a `Signal`
INFO = "info"


class Scale(NamedTuple):
    """Affine map of each of the 1 + N signals onto [0, 1]: worst -> 0, best -> 1.

    u = (v - worst) / (best - worst), where v is in the user's units and the learner sees u. A cost
    in [0, 1] has worst 1 and best 0, so that u = 1 - v. After the end of an episode v = 0.
    """

    worst: Array  # [1 + N]
    best: Array  # [1 + N]

    @property
    def width(self) -> Array:
        """Ranges of the signals per step, [1 + N]."""
        return np.abs(self.best - self.worst)

    def to_unit(self, values: Array, steps: int | Array = 1) -> Array:
        """Convert sums over `steps` steps, [1 + N, ...], from the user's to the learner's units."""
        shape = (-1, *(1,) * (values.ndim - 1))
        worst, best = self.worst.reshape(shape), self.best.reshape(shape)
        return (values - steps * worst) / (best - worst)

    def from_unit(self, sums: Array, steps: int = 1) -> Array:
        """Convert sums [1 + N] over `steps` steps from the learner's to the user's units."""
        return np.asarray(steps * self.worst + (self.best - self.worst) * sums)


class Setup(NamedTuple):
    """Sizes, signals and start of a live run, which are equal in every episode."""

    spaces: Spaces
    horizon: int  # H, steps of the environment
    start: int | None  # the first state of every episode; None: several
    read: Reader
    scale: Scale
    names: tuple[str, ...]  # [1 + N], of the signals
    opened: Mask | None = None  # [H, X, A], the open actions; None: no mask was given
    clip: bool = False  # True if signals are clipped to their ranges

    @property
    def what(self) -> str:
        """Kind of the constrained signals, "cost" or "utility"."""
        return "cost" if self.costs else "utility"

    @property
    def costs(self) -> bool:
        """True for budgets of costs, False for thresholds of utilities."""
        return self.names[1].startswith("cost")

    @property
    def rule(self) -> str:
        """Word for the limits: "at most" for costs, and "at least" for utilities."""
        return "at most" if self.costs else "at least"

    def beyond(self, value: Any, limit: Any) -> Any:
        """Return by how much values miss a limit. A negative result meets it."""
        return value - limit if self.costs else limit - value

    def end(self, found: Estimate, kind: bool) -> float:
        """Return the end of an interval that favours the policy if `kind`, else the other end."""
        return found.low if kind == self.costs else found.high

    @property
    def lead(self) -> int:
        """Number of the learner's steps before the environment's first: 1 for several starts."""
        return int(self.start is None)

    @property
    def steps(self) -> int:
        """Number S of steps of the learner."""
        return self.horizon + self.lead

    @property
    def absorbing(self) -> int:
        """State after the end of an episode, X."""
        return self.spaces.states

    @property
    def states(self) -> int:
        """Number of states of the learner, X + 1 or X + 2."""
        return self.absorbing + 1 + self.lead

    @property
    def first(self) -> int:
        """State in which the learner's episodes begin."""
        return self.absorbing + 1 if self.start is None else self.start

    @property
    def mask(self) -> Mask:
        """Open actions [S, states, A]. Only action 0 is open where the action does not matter."""
        opened = np.ones((self.steps, self.states, self.spaces.actions), dtype=bool)
        opened[:, self.absorbing :, 1:] = False
        if self.opened is not None:
            opened[self.lead :, : self.absorbing] = self.opened
        return opened


def asked_of(
    spaces: Spaces,
    horizon: int,
    asked: Constraints,
    ranges: tuple[Any, Any] = ((0.0, 1.0), (0.0, 1.0)),
    opened: Mask | None = None,
    clip: bool = False,
) -> tuple[Setup, Array, str]:
    """Return the setup, the limits [N], and the source of the constrained signals.

    asked : budget, threshold, cost and utilities as in `learn`. ranges : of the reward, and of each
    or all costs or utilities. The source is `INFO` or the functions' names. The start is not known
    yet.
    """
    budget, threshold, cost, utilities = asked
    if (budget is None) == (threshold is None):
        raise InputError("pass either budget= (of costs) or threshold= (of utilities)")
    costs = ("cost", "budget", budget, cost, utilities)
    what, name, limits, functions, other = (
        costs if threshold is None else ("utility", "threshold", threshold, utilities, cost)
    )
    if other is not None:
        raise InputError("a budget bounds cost= from above, a threshold utilities= from below")
    given: Any = limits
    each_range = checked_ranges(ranges[1], np.size(given))
    limit = checked_limit(name, given, horizon, each_range)
    read, source = partial(_from_info, what, len(limit)), INFO
    if functions is not None:
        listed = list(functions) if isinstance(functions, list | tuple) else [functions]
        for each in listed:
            check_call("cost=" if what == "cost" else "utilities=", each, ARGUMENTS)
        if len(listed) != len(limit):
            raise InputError(f"{name} holds {len(limit)} numbers for {len(listed)} functions")
        names = [getattr(each, "__qualname__", type(each).__qualname__) for each in listed]
        read, source = partial(_computed, listed), ", ".join(names)
    ends = [each if what == "utility" else each[::-1] for each in each_range]
    worst, best = zip(checked_range(ranges[0]), *ends, strict=True)
    scale, named = Scale(np.array(worst), np.array(best)), signal_names(what, len(limit))
    return Setup(spaces, horizon, None, read, scale, named, opened, clip), limit, source


def signal_names(what: str, count: int) -> tuple[str, ...]:
    """Return the names [1 + N] of the reward and the N = `count` signals, "cost" or "utility"."""
    return ("reward", *([what] if count == 1 else [f"{what} {n + 1}" for n in range(count)]))


def checked_limit(
    name: str, given: npt.ArrayLike, horizon: int, ranges: Sequence[Sequence[float]]
) -> Array:
    """Return the limits `given` as [N]. Refuse one that no sum of H steps can reach.

    name : for the error. ranges : (lowest, highest) value per step for each limit.
    """
    limit = np.atleast_1d(floats(name, given))
    if limit.ndim != 1 or not len(limit):
        raise InputError(f"{name} must be a number or a list of numbers")
    for each, (low, high) in zip(limit, ranges, strict=False):
        if not horizon * low <= each <= horizon * high:
            ends = f"{horizon * low:g} to {horizon * high:g}"
            raise InputError(f"{name} is {each:g}, outside {ends}, all that {horizon} steps can be")
    return limit


def checked_range(given: Any, what: str = "reward") -> tuple[float, float]:
    """Return (low, high) of a signal per step. Refuse a range without 0, the value after an end."""
    name = f"{what}_range"
    try:
        low, high = (real_number(f"an end of {name}", each) for each in given)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {given!r}, not (lowest, highest)") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"{name} is ({low:g}, {high:g}), not a lower and an upper number")
    if not low <= 0.0 <= high:
        raise InputError(
            f"{name} is ({low:g}, {high:g}), which must hold 0, "
            f"the {what} of every step after the end of an episode"
        )
    return low, high


def checked_ranges(given: Any, count: int) -> tuple[tuple[float, float], ...]:
    """Return (low, high) of `count` costs or utilities, from one pair or one pair for each."""
    if isinstance(given, list | tuple) and given and isinstance(given[0], list | tuple):
        if len(given) != count:
            raise InputError(f"cost_range holds {len(given)} pairs for {count} constraints")
        return tuple(checked_range(each, "cost") for each in given)
    return (checked_range(given, "cost"),) * count


def unread(state: Any, action: Any, following: Any, reward: Any, info: Info) -> Sequence[Any]:
    """Raise an `InputError`: a file does not contain the functions that compute signals."""
    raise InputError("functions are not kept in files: pass cost= or utilities= again")


def _from_info(
    what: str,
    count: int,
    state: Any,
    action: Any,
    following: Any,
    reward: Any,
    info: Info,
) -> Sequence[Any]:
    argument, many = ("cost", "costs") if what == "cost" else ("utilities", "utilities")
    keys = ("cost", many) if what == "cost" and count == 1 else (many,)
    for key in keys:
        if key in info:
            told = np.atleast_1d(info[key])
            if told.shape == (count,):
                return told.tolist()  # type: ignore[no-any-return]
            raise InputError(f'info["{key}"] is {info[key]}, not one number per {what}')
    shown = " or ".join(f'info["{key}"]' for key in keys)
    raise InputError(f"the environment tells no {what}: pass {argument}=, or put {shown}")


def _computed(functions: list[Any], *step: Any) -> Sequence[Any]:
    return [each(*step) for each in functions]
