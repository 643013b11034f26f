"""Several constraints: column generation (Dantzig and Wolfe).

A small linear program mixes the policies found so far; its multipliers price a dynamic program,
whose optimal policy joins the mixture until none improves it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cmdplab.problem import CMDP, Array
from cmdplab.solvers.solution import Column, Solution, best_column, mixture

_MOST_ROUNDS = 10_000
_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_TOLERANCE = 1e-13


def largest_slack(problem: CMDP) -> tuple[float, list[Column]]:
    """max over policies of min_n (V[r^n] - b^n), and the policies found on the way."""
    N = problem.constraints
    weights = np.array([0.0, *np.full(N, 1.0 / N)])
    columns = [best_column(problem, weights)[1]]
    slack = -np.inf

    def master() -> tuple[float, Array]:
        slacks = np.array([c.returns[1:] - problem.threshold for c in columns])  # [J, N]
        program = _linear_program(
            objective=np.array([*np.zeros(len(columns)), 1.0]),
            at_least=np.column_stack([slacks.T, -np.ones(N)]),
            bounds=[(0.0, None)] * len(columns) + [(None, None)],
        )
        shares, duals = program
        nonlocal slack
        slack = float(np.min(shares[:-1] @ slacks))
        total = duals / max(duals.sum(), 1e-300)
        return slack + float(total @ problem.threshold), np.array([0.0, *total])

    _generate(problem, columns, master)
    return slack, columns


def solve_several(problem: CMDP, columns: list[Column], slater_gap: float) -> Solution:
    """The optimum for N >= 2, from columns that contain a strictly feasible mixture."""
    shares, multiplier = np.zeros(0), np.zeros(problem.constraints)

    def master() -> tuple[float, Array]:
        nonlocal shares, multiplier
        returns = np.array([c.returns for c in columns])  # [J, 1 + N]
        shares, multiplier = _linear_program(
            objective=returns[:, 0],
            at_least=returns[:, 1:].T,
            bounds=[(0.0, None)] * len(columns),
            floor=problem.threshold,
        )
        held = float(shares @ returns[:, 0])
        return held + float(multiplier @ problem.threshold), np.array([1.0, *multiplier])

    _generate(problem, columns, master)
    return mixture(problem, columns, shares, multiplier, slater_gap)


def _generate(
    problem: CMDP, columns: list[Column], master: Callable[[], tuple[float, Array]]
) -> None:
    """Add the best column for the master's prices until it promises no more than the master has."""
    for _ in range(_MOST_ROUNDS):
        held, weights = master()
        bound, column = best_column(problem, weights)
        if bound - held <= _TOLERANCE * (1.0 + abs(held)):
            return
        if any(np.array_equal(column.policy, known.policy) for known in columns):
            return  # nothing new: what is left is the LP solver's rounding
        columns.append(column)


def _linear_program(
    objective: Array,
    at_least: Array,
    bounds: list[tuple[float | None, float | None]],
    floor: Array | None = None,
) -> tuple[Array, Array]:
    """max objective . x with at_least x >= floor and shares that sum to one: x and the duals."""
    from scipy.optimize import linprog

    floor = np.zeros(len(at_least)) if floor is None else floor
    shares = np.array([[1.0 if low == 0.0 else 0.0 for low, _ in bounds]])
    result = linprog(
        -objective,
        A_ub=-at_least,
        b_ub=-floor,
        A_eq=shares,
        b_eq=[1.0],
        bounds=bounds,
        method="highs",
        options=_TIGHT,
    )
    if result.status != 0:
        raise ArithmeticError(f"the master linear program failed: {result.message}")
    return result.x, np.maximum(-result.ineqlin.marginals, 0.0)
