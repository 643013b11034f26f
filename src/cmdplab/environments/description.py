"""Description of a problem: sizes, certified optimum, ranges of thresholds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.algorithms import needing_slack
from cmdplab.cmdp.labels import Scale
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.errors import InputError, OpenCertificateError
from cmdplab.solvers import solve
from cmdplab.solvers.thresholds.attainable import Attainable
from cmdplab.solvers.thresholds.frontier import Edge, frontier

POINTS = 5  # thresholds that are tried, from where it binds to the largest


class ThresholdRange(NamedTuple):
    """Range of sensible thresholds of one constraint, and the optimal value at five of them."""

    constraint: int  # counted from 1
    smallest: float  # the least utility of any policy: a threshold below it says nothing
    largest_alone: float  # the most utility of any policy, the other constraints aside
    reward_optimal: float  # the most utility among policies that are best without this constraint
    threshold: list[float] | None  # [5], from where it binds to the largest that can be met
    value: list[float] | None  # [5], the optimal values there
    multiplier: list[float] | None  # [5], what one more unit of utility costs there


class Description(NamedTuple):
    """Sizes and certified answers: feasibility, binding constraints and their prices."""

    name: str
    states: int
    actions: int
    horizon: int | None  # None without an end
    criterion: str  # how rewards add up
    constraints: int
    start: int | None  # None where the first state is random
    stationary: bool
    threshold: list[float]
    largest_utility: list[float]  # of each constraint on its own: the range of sensible thresholds
    unconstrained_optimum: float
    feasible: bool
    optimum: float | None
    multiplier: list[float] | None
    binding: list[bool] | None  # whose multiplier is positive
    slater_gap: float | None
    certificate: float | None
    message: str
    without_guarantee: list[str]  # algorithms that need slack, where there is none
    ranges: list[ThresholdRange]  # of each constraint
    units: list[Scale]  # of the objective and of each utility, as labels have them; may be empty


def describe(problem: CMDP | StationaryCMDP) -> Description:
    """Solve the problem and return its sizes, its optimum and the ranges of its thresholds."""
    solution, space = solve(problem), Attainable(problem)
    multiplier = None if solution.multiplier is None else solution.multiplier.tolist()
    ends = isinstance(problem, CMDP)
    return Description(
        name=problem.name,
        states=problem.states,
        actions=problem.actions,
        horizon=problem.horizon if isinstance(problem, CMDP) else None,
        criterion="sum over an episode" if isinstance(problem, CMDP) else str(problem.criterion),
        constraints=problem.constraints,
        start=_start(problem),
        stationary=problem.stationary if isinstance(problem, CMDP) else True,
        threshold=problem.threshold.tolist(),
        largest_utility=[_most(space, n + 1) for n in range(problem.constraints)],
        unconstrained_optimum=_most(space, 0),
        feasible=solution.feasible,
        optimum=solution.value,
        multiplier=multiplier,
        binding=None if multiplier is None else [each > 1e-12 for each in multiplier],
        slater_gap=solution.slater_gap,
        certificate=solution.duality_gap,
        message=solution.message,
        without_guarantee=needing_slack() if solution.slater_gap == 0.0 and ends else [],
        ranges=[threshold_range(problem, n + 1) for n in range(problem.constraints)],
        units=list(problem.labels.signals),
    )


def _start(problem: CMDP | StationaryCMDP) -> int | None:
    """Return the first state, or None if it is random."""
    if isinstance(problem, CMDP):
        return problem.start
    first = np.flatnonzero(problem.start)
    return int(first[0]) if len(first) == 1 else None


def _most(space: Attainable, n: int, sign: float = 1.0) -> float:
    """Return the largest return of reward n. With sign -1 return the smallest."""
    weights = np.zeros(1 + space.problem.constraints)
    weights[n] = sign
    return float(space.best(weights)[n]) + 0.0


def threshold_range(problem: CMDP | StationaryCMDP, constraint: int) -> ThresholdRange:
    """Return the sensible thresholds of one constraint. The other thresholds stay fixed."""
    space = Attainable(problem)
    smallest, largest = _most(space, constraint, -1.0), _most(space, constraint)
    try:
        found = frontier(problem, constraint, POINTS)
    except OpenCertificateError:
        raise
    except InputError:  # the other constraints cannot be met: there is no frontier
        free = Edge(space, constraint, alone=True).free
        return ThresholdRange(constraint, smallest, largest, free, None, None, None)
    along = (found.threshold.tolist(), found.value.tolist(), found.multiplier.tolist())
    return ThresholdRange(constraint, smallest, largest, found.free, *along)
