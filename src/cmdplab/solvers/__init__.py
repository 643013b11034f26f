"""Certified optima and optimistic plans, by one compiled planner."""

from __future__ import annotations

from cmdplab.cmdp.horizons import with_an_end
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.errors import InputError
from cmdplab.solvers.box import Plan, largest_margin, plan, policy_bounds
from cmdplab.solvers.layout import Box
from cmdplab.solvers.robust import RobustSolution, solve_robust
from cmdplab.solvers.solution import Solution, solve
from cmdplab.solvers.thresholds.conflicts import never_bind


def solve_feasible(problem: CMDP | StationaryCMDP) -> Solution:
    """`solve`, for those who cannot go on without an optimum."""
    problem = with_an_end(problem)
    solution = solve(problem)
    if not solution.feasible:
        raise InputError(f"{problem.name} cannot be run: {solution.message}")
    if problem.constraints and problem.threshold.min() < 0.0:
        why = f"{never_bind(problem)}: leave such constraints out"
        raise InputError(f"{problem.name} cannot be run: {why}")
    return solution


__all__ = [
    "Box",
    "Plan",
    "RobustSolution",
    "Solution",
    "largest_margin",
    "plan",
    "policy_bounds",
    "solve",
    "solve_feasible",
    "solve_robust",
]
