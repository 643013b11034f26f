"""Certified optima: dynamic programming inside, an exact dual search outside."""

from __future__ import annotations

import numpy as np

from cmdplab.errors import InputError
from cmdplab.problem import CMDP
from cmdplab.solvers.columns import largest_slack, solve_several
from cmdplab.solvers.dual_search import solve_one
from cmdplab.solvers.solution import Solution, best_column, mixture, no_solution

SLATER_TOLERANCE = 1e-9  # per step of the horizon; a smaller slack is no slack


def solve(problem: CMDP) -> Solution:
    """The optimum with its certificate.

    N = 0: one dynamic program. N = 1: dual search. N >= 2: column generation. A problem without a
    strictly feasible policy is an answer, not an exception: see `Solution.feasible`.
    """
    if problem.constraints == 0:
        _, column = best_column(problem, np.ones(1))
        return mixture(problem, [column], np.ones(1), np.zeros(0), None)
    tolerance = SLATER_TOLERANCE * problem.horizon
    if problem.constraints == 1:
        _, safest = best_column(problem, np.array([0.0, 1.0]))
        slack, columns = float(safest.returns[1] - problem.threshold[0]), [safest]
    else:
        slack, columns = largest_slack(problem)
    if slack <= tolerance:
        return no_solution(slack, tolerance)
    if problem.constraints == 1:
        return solve_one(problem, columns[0], slack)
    return solve_several(problem, columns, slack)


def solve_feasible(problem: CMDP) -> Solution:
    """`solve`, for those who cannot go on without an optimum."""
    solution = solve(problem)
    if not solution.feasible:
        raise InputError(f"{problem.name} cannot be run: {solution.message}")
    return solution


__all__ = ["Solution", "solve", "solve_feasible"]
