"""Stationary CMDP without an end, with discounted or average rewards.

    maximise J[r^0] subject to J[r^n] >= b^n for n = 1..N, over policies pi(a | x), where

    discounted  J[r] = E sum_{t >= 0} gamma^t r(x_t, a_t),      x_0 ~ start
    average     J[r] = lim_T 1/T E sum_{t < T} r(x_t, a_t),     x_0 ~ start

Rewards are any finite numbers, because no algorithm learns on this class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.checks import checked_name, is_whole, real_number
from cmdplab.cmdp.bundle import Bundle, filed, kernel_arrays
from cmdplab.cmdp.checks import (
    check_axes,
    check_finite,
    check_sizes,
    checked_mask,
    checked_threshold,
    close_rows,
    floats,
    kernel_rows,
)
from cmdplab.cmdp.labels import Labels, Scale, checked_labels
from cmdplab.cmdp.transitions import ROW_SUM_TOLERANCE, Sparse, checked_rows
from cmdplab.errors import InputError, naming
from cmdplab.types import Array, Mask, frozen

FORMAT = "cmdplab-stationary-1"


class Discounted(NamedTuple):
    """Criterion E sum_t gamma^t r, in which later rewards count less."""

    discount: float  # gamma in [0, 1)

    def __str__(self) -> str:
        return f"discounted by {self.discount:g}"

    @property
    def total(self) -> float:
        """Value of a reward of 1 at every step."""
        return 1.0 / (1.0 - self.discount)


class Average(NamedTuple):
    """Criterion lim 1/T E sum_{t < T} r, the average reward per step."""

    def __str__(self) -> str:
        return "average per step"

    @property
    def total(self) -> float:
        """Value of a reward of 1 at every step."""
        return 1.0


Criterion = Discounted | Average


@display.shown
@frozen
@dataclass(frozen=True, eq=False)
class StationaryCMDP(Bundle):
    """A constrained MDP without an end, with X states, A actions and N >= 0 constraints.

    transition : [X, A, X], P(y | x, a), or lists of successors, `transitions.Sparse`.
    reward : [1 + N, X, A], finite; row 0 is the objective, rows 1..N are the utilities.
    threshold : [N]; J of utility n must reach threshold[n - 1].
    criterion : `Discounted(gamma)` or `Average()`.
    start : [X], the distribution of the first state; the number of a state is accepted.
    name : the name in tables and figures.
    mask : [X, A] of booleans, true for actions that may be taken; None: all may.
    labels : names of states, actions and rewards. A cost c with a budget B is the utility -c with
        the threshold -B, and its label has the factor -1: tables show it as a cost.

    The arrays are checked here, once, and are read-only afterwards.
    """

    transition: Array | Sparse
    reward: Array
    threshold: Array
    criterion: Criterion
    start: Array | int = 0
    name: str = "custom"
    mask: Mask | None = None
    labels: Labels = Labels()

    def __post_init__(self) -> None:
        reward = floats("reward", self.reward)
        if reward.ndim != 3 or 0 in reward.shape:
            raise InputError(f"reward must have the shape [1 + N, X, A], not {reward.shape}")
        opened = checked_mask(self.mask, (1, *reward.shape[1:]))
        mask = None if opened is None else opened[0]
        if mask is not None:
            reward[:, ~mask] = 0.0
        check_finite("reward", reward)
        kernel = _checked_kernel(self.transition, reward, mask)
        _check_criterion(self.criterion)
        self._keep(
            transition=kernel,
            reward=reward,
            threshold=checked_threshold(self.threshold, len(reward) - 1),
            start=_distribution(self.start, reward.shape[1]),
            mask=mask,
            labels=checked_labels(self.labels, reward.shape[1:], 0, len(reward)),
            name=checked_name("the name", self.name),
        )

    def _facts(self) -> tuple[str, display.Facts]:
        first = np.flatnonzero(self.start)
        begins = self.labels.state(int(first[0])) if len(first) == 1 else f"{len(first):,} states"
        kernel = "lists of successors" if isinstance(self.transition, Sparse) else ""
        return self._told(("criterion", str(self.criterion)), begins, kernel)

    @cached_property
    def loose(self) -> float:
        """Largest possible difference of a row's sum of probabilities from one."""
        kernel = self.transition
        rows = kernel.probability if isinstance(kernel, Sparse) else kernel
        sums = rows.reshape(-1, rows.shape[-1]) @ np.ones(rows.shape[-1])
        return float(np.abs(sums - 1.0).max() + rows.shape[-1] * 2.0**-53)

    @staticmethod
    def _check_rewards(reward: Array) -> None:
        check_finite("reward", reward)

    def _arrays(self) -> dict[str, Any]:
        discounts = [self.criterion.discount] if isinstance(self.criterion, Discounted) else []
        arrays: dict[str, Any] = {
            "format": np.array(FORMAT),
            "name": np.array(self.name),
            "reward": self.reward,
            "threshold": self.threshold,
            "discount": np.array(discounts),
            "start": self.start,
            "labels": np.array(self.labels.to_json()),
            **kernel_arrays(self.transition),
        }
        return arrays if self.mask is None else {**arrays, "mask": self.mask}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], path: str | Path) -> StationaryCMDP:
        """Return the problem of the arrays in a file. path : the file, for errors."""
        fields = filed(path, "stationary cmdplab problem", arrays, (FORMAT,), "discount")
        discount = arrays["discount"]
        if discount.shape not in ((0,), (1,)):
            raise InputError(f"{path}: discount must be one number or none")
        criterion = Discounted(float(discount[0])) if len(discount) else Average()
        with naming(path):
            return cls(criterion=criterion, start=arrays["start"], **fields)


class Terms(TypedDict, total=False):
    """Arguments for the constraints, the start and the names of a problem without an end.

    utilities, costs : a table [X, A] each, in any units. thresholds, budgets : one number for each.
    The     constraints of the problem are the utilities, then the costs. start : a state, or a
    distribution [X].
    """

    utilities: Sequence[npt.ArrayLike]
    thresholds: Sequence[float]
    costs: Sequence[npt.ArrayLike]
    budgets: Sequence[float]
    start: int | npt.ArrayLike
    name: str
    mask: Mask | None
    labels: Labels | None


def discounted_problem(
    transition: npt.ArrayLike | Sparse,
    reward: npt.ArrayLike,
    discount: float,
    **given: Unpack[Terms],
) -> StationaryCMDP:
    """Return the problem to maximise E sum_t gamma^t r, with limits on discounted sums.

    transition : [X, A, X] or lists. reward : [X, A], in any units. discount : gamma in [0, 1).
    given : see `Terms`.
    """
    given.setdefault("name", "discounted")
    return _stationary(Discounted(discount), transition, reward, **given)


def average_problem(
    transition: npt.ArrayLike | Sparse, reward: npt.ArrayLike, **given: Unpack[Terms]
) -> StationaryCMDP:
    """Return the problem to maximise the long-run average reward, with limits per step.

    transition : [X, A, X] or lists. reward : [X, A], in any units. given : see `Terms`.
    """
    given.setdefault("name", "average")
    return _stationary(Average(), transition, reward, **given)


def _stationary(
    criterion: Criterion,
    transition: npt.ArrayLike | Sparse,
    reward: npt.ArrayLike,
    *,
    name: str,
    utilities: Sequence[npt.ArrayLike] = (),
    thresholds: Sequence[float] = (),
    costs: Sequence[npt.ArrayLike] = (),
    budgets: Sequence[float] = (),
    start: int | npt.ArrayLike = 0,
    mask: Mask | None = None,
    labels: Labels | None = None,
) -> StationaryCMDP:
    lower = _limits("threshold", thresholds, "utility", utilities)
    upper = _limits("budget", budgets, "cost", costs)
    names = signal_names(len(utilities), len(costs))
    tables = [floats(*each) for each in zip(names, [reward, *utilities, *costs], strict=True)]
    for what, table in zip(names, tables, strict=True):
        if table.shape != tables[0].shape or table.ndim != 2:
            shapes = ", ".join(str(each.shape) for each in tables)
            raise InputError(f"rewards, utilities and costs must all be [X, A]; they are {shapes}")
        if mask is None:  # the rewards of closed pairs are not read
            check_finite(what, table)
    signs = [1.0] * (1 + len(utilities)) + [-1.0] * len(costs)
    labels = labels or Labels()
    if not labels.signals:
        labels = replace(labels, signals=tuple(map(Scale, names, signs)))
    rewards = np.stack([sign * table for sign, table in zip(signs, tables, strict=True)])
    limits = np.concatenate([lower, -upper])
    return StationaryCMDP(transition, rewards, limits, criterion, start, name, mask, labels)  # type: ignore[arg-type]


def signal_names(utilities: int, costs: int) -> list[str]:
    """Return default names of the reward, the utilities and the costs, from their numbers."""
    names = ["reward", *(f"utility {n + 1}" for n in range(utilities))]
    return names + [f"cost {n + 1}" for n in range(costs)]


def _limits(what: str, given: Sequence[float], of: str, tables: Sequence[npt.ArrayLike]) -> Array:
    if not isinstance(tables, Sequence | np.ndarray):
        raise InputError(f"give a list with a table for each {of}, not {tables!r}")
    numbers = np.atleast_1d(floats(f"the {what}", given))
    if numbers.shape != (len(tables),):
        raise InputError(f"give one {what} for each {of}: {len(tables)}, not {numbers.shape}")
    check_finite(what, numbers)
    return numbers


def _checked_kernel(
    given: npt.ArrayLike | Sparse, reward: Array, mask: Mask | None
) -> Array | Sparse:
    kernel = kernel_rows(given, mask)
    if check_axes(kernel).ndim == 4:
        raise InputError("the transition changes with the step, but the problem has no steps")
    check_sizes(kernel, reward)
    if isinstance(kernel, Sparse):
        return kernel
    if mask is not None:
        close_rows(kernel, mask[None])
    return checked_rows(kernel)


def _check_criterion(criterion: object) -> None:
    if isinstance(criterion, Discounted):
        if not 0.0 <= real_number("the discount", criterion.discount) < 1.0:
            raise InputError(f"the discount is {criterion.discount:g}, outside [0, 1)")
    elif not isinstance(criterion, Average):
        raise InputError(f"the criterion is {criterion!r}, not Discounted(gamma) or Average()")


def _distribution(start: npt.ArrayLike, states: int) -> Array:
    if is_whole(start):
        if not 0 <= int(start) < states:
            raise InputError(f"the start is {start}, but the states are 0..{states - 1}")
        first = np.zeros(states)
        first[int(start)] = 1.0
        return first
    first = floats("the start distribution", start)
    if first.shape != (states,) or not (first >= 0.0).all():
        raise InputError(f"the start distribution must be {states} numbers >= 0")
    total = float(first.sum())
    if not abs(total - 1.0) <= ROW_SUM_TOLERANCE:
        raise InputError(f"the start distribution sums to {total:.9g}, not 1")
    return np.asarray(first / total)
