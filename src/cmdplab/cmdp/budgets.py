"""Limits on the costs of every episode, and on mean costs.

C = sum_h c_h(x_h, a_h) is the cost of an episode, C_h the sum of its first h costs.

    AlmostSure(c, B)      P(C <= B) = 1
    Anytime(c, B)         P(C_h <= B for every h) = 1; differs if costs may be negative
    Chance(c, B, p)       P(C > B) <= p, or P(C_h > B for some h) <= p with anytime=True
    CVaR(c, level, B)     the mean of the worst share 1 - level of episodes is at most B
    Expected(c, B)        E C <= B
    VisitCap(S, cap)      the expected number of visits to S is at most cap
    Forbidden(S)          the probability of a visit to S is zero

Costs are tables [X, A] or [H, X, A] in any units. They are counted in whole steps of a grid. If no
grid fits the costs, give one as `grid`, and the costs are rounded up or down to multiples of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cmdplab.checks import finite_number, is_whole
from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import refuse_first
from cmdplab.errors import InputError
from cmdplab.types import Array, Mask, frozen

ROUNDINGS = ("up", "down")
Names = Sequence[int | str] | int | str | None


# The range of each number of a limit, and the words of an error. All numbers must be finite.
_NUMBERS: dict[str, tuple[Callable[[float], bool], str]] = {
    "budget": (lambda number: True, ""),
    "bound": (lambda number: True, ""),
    "cap": (lambda number: number >= 0.0, "below zero"),
    "grid": (lambda number: number > 0.0, "not a step above zero"),
    "level": (lambda number: 0.0 <= number < 1.0, "outside [0, 1)"),
    "probability": (lambda number: 0.0 <= number <= 1.0, "outside [0, 1]"),
}


@dataclass(frozen=True, eq=False)
class _Limit:
    """Base of limits. It checks the fields."""

    def __post_init__(self) -> None:
        for name, given in [(each.name, getattr(self, each.name)) for each in fields(self)]:
            if name == "cost":
                object.__setattr__(self, name, floats("the cost", given))
            elif name in _NUMBERS and not (name == "grid" and given is None):
                number, (inside, words) = finite_number(f"the {name}", given), _NUMBERS[name]
                if not inside(number):
                    raise InputError(f"the {name} is {number:g}, {words}")
                object.__setattr__(self, name, number)
            elif name == "rounding" and given not in ROUNDINGS:
                raise InputError(f"rounding is {given!r}, not one of {', '.join(ROUNDINGS)}")


@dataclass(frozen=True, eq=False)
class _Cost(_Limit):
    cost: npt.ArrayLike  # [X, A] or [H, X, A]

    def table(self, problem: CMDP) -> Array:
        """Return the cost of each pair, [H, X, A], which is zero for closed actions."""
        table, shape = np.asarray(self.cost), problem.reward.shape[1:]
        if table.shape not in (shape, shape[1:]):
            raise InputError(
                f"the cost has the shape {table.shape}, not {shape[1:]} or {shape}, "
                f"as {problem.name} has"
            )
        table = np.where(problem.opened, table, 0.0)
        refuse_first("the cost at [{}] is {:g}, not a finite number", table, ~np.isfinite(table))
        return np.asarray(table)


@dataclass(frozen=True, eq=False)
class _Counted(_Cost):
    budget: float


@frozen
@dataclass(frozen=True, eq=False)
class AlmostSure(_Counted):
    """Limit P(C <= budget) = 1: no episode costs more than the budget.

    cost : [X, A] or [H, X, A], in any units. grid : the unit in which costs are counted. None: it
    is found, or the costs are refused. rounding : "up" to that grid, which never exceeds the
    budget. "down" gives at least the optimum, and exceeds the budget by at most the rounding error
    of an episode.
    """

    grid: float | None = None
    rounding: str = "up"
    anytime: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"total cost at most {self.budget:g}, almost surely"


@frozen
@dataclass(frozen=True, eq=False)
class Anytime(AlmostSure):
    """Limit P(C_h <= budget for every h) = 1: the cost never exceeds the budget at any step.

    If no cost is negative, this limit equals `AlmostSure`, whose docstring explains the fields.
    """

    anytime: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"cost so far at most {self.budget:g} at every step, almost surely"


@frozen
@dataclass(frozen=True, eq=False)
class Chance(_Counted):
    """Limit P(C > budget) <= probability, or P(C_h > budget for some h) <= it with `anytime`.

    `AlmostSure` explains cost, grid and rounding.
    """

    probability: float
    anytime: bool = False
    grid: float | None = None
    rounding: str = "up"

    def __str__(self) -> str:
        what = "cost so far above" if self.anytime else "total cost above"
        return f"{what} {self.budget:g} with probability at most {self.probability:g}"


@frozen
@dataclass(frozen=True, eq=False)
class CVaR(_Cost):
    """Limit CVaR_level(C) <= bound on the mean cost of the worst share 1 - level of episodes.

        CVaR_level(C) = min_z  z + E (C - z)_+ / (1 - level)        (Rockafellar and Uryasev)

    Level 0 gives the mean cost. Levels near 1 approach the largest cost. `AlmostSure` explains
    cost, grid and rounding.
    """

    level: float
    bound: float
    grid: float | None = None
    rounding: str = "up"

    def __str__(self) -> str:
        return f"CVaR of the total cost at level {self.level:g} at most {self.bound:g}"


@frozen
@dataclass(frozen=True, eq=False)
class Expected(_Counted):
    """Limit E C <= budget on the mean cost, in any units. It needs no grid and no counter."""

    def __str__(self) -> str:
        return f"expected cost at most {self.budget:g}"


class _Visits:
    """Base of limits on visits of states, actions and steps, by number or name. None: all."""

    states: Names
    actions: Names
    steps: Names

    def pairs(self, problem: CMDP) -> Mask:
        """Return booleans [H, X, A], True for the pairs of these states, actions and steps."""
        labels, chosen = problem.labels, np.zeros(problem.reward.shape[1:], dtype=bool)
        h = _numbers(self.steps, labels.find_step, problem.horizon)
        x = _numbers(self.states, labels.find_state, problem.states)
        a = _numbers(self.actions, labels.find_action, problem.actions)
        chosen[np.ix_(h, x, a)] = True
        return chosen

    def _where(self) -> str:
        named = {"state": self.states, "action": self.actions, "step": self.steps}
        given = {what: _each(names) for what, names in named.items() if names is not None}
        return ", ".join(
            f"{what} {', '.join(map(str, each[:6]))}" + (", ..." if len(each) > 6 else "")
            for what, each in given.items()
        )


@dataclass(frozen=True)
class Forbidden(_Visits):
    """Limit that excludes states, actions, or pairs of both, at the given steps.

    Each field is a list of numbers or names. Numbers count from 0. None means all.
    """

    states: Names = None
    actions: Names = None
    steps: Names = None

    def __post_init__(self) -> None:
        if self.states is None and self.actions is None:
            raise InputError("Forbidden needs states, actions or both")

    def __str__(self) -> str:
        return f"never {self._where()}"


@dataclass(frozen=True)
class VisitCap(_Limit, _Visits):
    """Limit on the expected number of visits to states, with given actions and at given steps.

    cap : the limit. At one step the number is a probability. Other fields are lists of numbers,
    which count from 0, or of names. None means all.
    """

    states: Names
    cap: float
    actions: Names = None
    steps: Names = None

    def __str__(self) -> str:
        return f"visits to {self._where()}: at most {self.cap:g}, expected"


Budget = AlmostSure | Chance | CVaR | Expected | Forbidden | VisitCap


def as_cost(problem: CMDP, constraint: int) -> tuple[Array, float]:
    """Return constraint n = `constraint`, V[r^n] >= b^n, as a cost 1 - r^n and its budget H - b^n.

    `AlmostSure(*as_cost(problem, 1))` limits every episode, while constraint 1 limits the mean.
    """
    if not is_whole(constraint) or not 1 <= constraint <= problem.constraints:
        raise InputError(
            f"constraint {constraint} does not exist: {problem.name} has {problem.constraints}"
        )
    budget = problem.horizon - float(problem.threshold[constraint - 1])
    return 1.0 - problem.reward[constraint], budget


def without(problem: CMDP, constraints: Collection[int]) -> CMDP:
    """Return the problem without the constraints of these numbers, which count from 1."""
    kept = [n for n in range(1 + problem.constraints) if n not in constraints]
    limits = problem.threshold[[n - 1 for n in kept[1:]]]
    signals = problem.labels.signals
    labels = replace(problem.labels, signals=tuple(signals[n] for n in kept if signals))
    return replace(problem, reward=problem.reward[kept], threshold=limits, labels=labels)


def _numbers(given: Names, find: Callable[[int | str, int], int], size: int) -> list[int]:
    if given is None:
        return list(range(size))
    return [find(each, size) for each in _each(given)]


def _each(given: Sequence[int | str] | int | str) -> list[int | str]:
    return [given] if isinstance(given, int | str | np.integer) else list(given)
