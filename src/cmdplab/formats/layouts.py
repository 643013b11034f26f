"""Stationary problems in the array layouts of other libraries.

    action first  P [A, S, S], R [S], [S, A] or [A, S, S]    pymdptoolbox
    state first   P [S, A, S], R [S], [S, A] or [S, A, S]    QuantEcon, rlberry, MushroomRL

A reward that depends on the next state becomes its expectation. A reward of -inf, which QuantEcon
uses for an action that may not be taken, closes the pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Required, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from cmdplab.checks import whole_horizon
from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.formats.assemble import Constraint, assembled, stationary_tables, within_budget
from cmdplab.types import Array


class Tables(NamedTuple):
    """A stationary problem in another layout."""

    transition: Array  # [A, S, S] or [S, A, S]
    rewards: Array  # [1 + N, S, A]: the objective, then the utilities


class Given(TypedDict, total=False):
    """Keywords of `from_state_first`."""

    horizon: Required[int]
    utilities: Sequence[npt.ArrayLike]
    thresholds: Sequence[float]
    costs: Sequence[npt.ArrayLike]
    budgets: Sequence[float]
    start: int
    name: str


def from_state_first(
    transition: npt.ArrayLike,
    reward: npt.ArrayLike,
    *,
    horizon: int,
    utilities: Sequence[npt.ArrayLike] = (),
    thresholds: Sequence[float] = (),
    costs: Sequence[npt.ArrayLike] = (),
    budgets: Sequence[float] = (),
    start: int = 0,
    name: str = "custom",
) -> CMDP:
    """A problem from P [S, A, S] and rewards [S], [S, A] or [S, A, S].

    Utilities must reach their thresholds and costs stay within their budgets, in expected sums
    over an episode; the constraints are the utilities, then the costs.
    """
    kernel = floats("transition", transition)
    if kernel.ndim != 3 or kernel.shape[0] != kernel.shape[2] or 0 in kernel.shape:
        raise InputError(f"transition must have the shape [S, A, S], not {kernel.shape}")
    if len(utilities) != len(thresholds) or len(costs) != len(budgets):
        raise InputError("give one threshold for each utility and one budget for each cost")
    H = whole_horizon(horizon)
    objective = _expected("reward", reward, kernel)
    closed = np.isneginf(objective)
    constraints = [
        Constraint(_expected("utility", table, kernel), float(limit))
        for table, limit in zip(utilities, thresholds, strict=True)
    ]
    constraints += [
        within_budget(np.where(closed, 0.0, _expected("cost", table, kernel)), float(limit), H)
        for table, limit in zip(costs, budgets, strict=True)
    ]
    return assembled(
        kernel,
        objective,
        constraints,
        horizon=H,
        start=start,
        name=name,
        mask=~closed if closed.any() else None,
    )


def from_action_first(
    transition: npt.ArrayLike, reward: npt.ArrayLike, **given: Unpack[Given]
) -> CMDP:
    """A problem from P [A, S, S] and rewards [S], [S, A] or [A, S, S]; else as `from_state_first`.

    pymdptoolbox also takes a sequence of A matrices, which is the same thing here.
    """
    given["utilities"] = [_swapped(floats("utility", each)) for each in given.get("utilities", ())]
    given["costs"] = [_swapped(floats("cost", each)) for each in given.get("costs", ())]
    tables = _swapped(floats("transition", transition)), _swapped(floats("reward", reward))
    return from_state_first(*tables, **given)


def to_state_first(problem: CMDP) -> Tables:
    """P [S, A, S] and rewards [1 + N, S, A]; closed pairs pay -inf, as QuantEcon has it."""
    rewards, opened = stationary_tables(problem, "the layout [S, A, S]")
    return Tables(problem.table[0].copy(), np.where(opened, rewards, -np.inf))


def to_action_first(problem: CMDP) -> Tables:
    """P [A, S, S] and rewards [1 + N, S, A]; a problem with closed pairs is refused."""
    rewards, opened = stationary_tables(problem, "the layout [A, S, S]")
    if not opened.all():
        raise InputError(f"{problem.name} has closed pairs: the layout [A, S, S] cannot say so")
    return Tables(_swapped(problem.table[0]), rewards.copy())


def _swapped(array: Array) -> Array:
    """[A, S, S] <-> [S, A, S]; one and two axes stay."""
    return np.ascontiguousarray(array.transpose(1, 0, 2)) if array.ndim == 3 else array


def _expected(what: str, values: npt.ArrayLike, kernel: Array) -> Array:
    """[S, A]: sum_y P(y | x, a) r(x, a, y), or the reward itself where y does not matter."""
    table = floats(what, values)
    if table.ndim == 1 and table.shape == kernel.shape[:1]:
        return np.repeat(table[:, None], kernel.shape[1], axis=1)
    if table.shape == kernel.shape[:2]:
        return table
    if table.shape == kernel.shape:
        with np.errstate(invalid="ignore"):  # 0 times -inf: the pair is closed, or refused later
            return np.asarray(np.where(kernel > 0.0, kernel * table, 0.0).sum(axis=-1))
    raise InputError(f"{what} has the shape {table.shape}, and the transition {kernel.shape}")
