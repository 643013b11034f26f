"""What can be said of a problem before anything learns."""

from __future__ import annotations

from typing import NamedTuple

from cmdplab.exact import greedy
from cmdplab.problem import CMDP
from cmdplab.solvers import solve


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
        certificate=solution.gap,
        message=solution.message,
    )
