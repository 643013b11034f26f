"""Description of a problem: sizes, certified optimum, ranges of thresholds."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cmdplab.algorithms import needing_slack
from cmdplab.cmdp.exact import greedy
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError, OpenCertificateError
from cmdplab.solvers import solve
from cmdplab.solvers.thresholds.frontier import frontier

POINTS = 5  # thresholds that are tried, from where it binds to the largest


class ThresholdRange(NamedTuple):
    """Between which numbers a threshold can sensibly lie, and what each would cost."""

    constraint: int  # counted from 1
    smallest: float  # the least utility of any policy: a threshold below it says nothing
    largest_alone: float  # the most utility of any policy, the other constraints aside
    reward_optimal: float  # the most utility among policies that are best without this constraint
    threshold: list[float] | None  # [5], from where it binds to the largest that can be met
    value: list[float] | None  # [5], the optimal values there
    multiplier: list[float] | None  # [5], what one more unit of utility costs there


class Description(NamedTuple):
    """Sizes, and the certified answers to "is it feasible, what binds, what does it cost?"."""

    name: str
    states: int
    actions: int
    horizon: int
    constraints: int
    start: int
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


def describe(problem: CMDP) -> Description:
    """Solve the problem and put what matters into one record."""
    solution = solve(problem)
    multiplier = None if solution.multiplier is None else solution.multiplier.tolist()
    return Description(
        name=problem.name,
        states=problem.states,
        actions=problem.actions,
        horizon=problem.horizon,
        constraints=problem.constraints,
        start=problem.start,
        stationary=problem.stationary,
        threshold=problem.threshold.tolist(),
        largest_utility=[greedy(problem, utility)[0] for utility in problem.reward[1:]],
        unconstrained_optimum=greedy(problem, problem.reward[0])[0],
        feasible=solution.feasible,
        optimum=solution.value,
        multiplier=multiplier,
        binding=None if multiplier is None else [each > 1e-12 for each in multiplier],
        slater_gap=solution.slater_gap,
        certificate=solution.duality_gap,
        message=solution.message,
        without_guarantee=needing_slack() if solution.slater_gap == 0.0 else [],
        ranges=[threshold_range(problem, n + 1) for n in range(problem.constraints)],
    )


def threshold_range(problem: CMDP, constraint: int) -> ThresholdRange:
    """The sensible thresholds of one constraint, the others as they are."""
    utility = problem.reward[constraint]
    smallest, largest = 0.0 - greedy(problem, -utility)[0], greedy(problem, utility)[0]
    try:
        found = frontier(problem, constraint, POINTS)
    except OpenCertificateError:
        raise
    except InputError:  # the other constraints cannot be met: there is no frontier
        once = problem.stationary and not isinstance(problem.transition, Sparse)
        kernel = problem.transition[0] if once else problem.transition  # type: ignore[index]
        rewards, none = problem.reward[[0, constraint]], np.zeros(1)
        alone = replace(problem, transition=kernel, reward=rewards, threshold=none)
        free = frontier(alone, 1, 2).free
        return ThresholdRange(constraint, smallest, largest, free, None, None, None)
    along = (found.threshold.tolist(), found.value.tolist(), found.multiplier.tolist())
    return ThresholdRange(constraint, smallest, largest, found.free, *along)
