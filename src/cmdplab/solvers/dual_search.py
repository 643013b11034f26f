"""One constraint: exact search on the dual line.

g(lambda) = max_pi V[r^0 + lambda r^1] - lambda b is convex and piecewise linear. Two policies, one
below the threshold and one above it, give two lines of g; where they cross, a dynamic program
either finds a better policy, which replaces one of the two, or proves that the crossing is optimal.
"""

from __future__ import annotations

import numpy as np

from cmdplab.problem import CMDP
from cmdplab.solvers.solution import Column, Solution, best_column, mixture

_MOST_STEPS = 10_000  # each step finds a new vertex: about 10 are needed in practice


def solve_one(problem: CMDP, above: Column, slater_gap: float) -> Solution:
    """The optimum for N = 1, given a policy that is above the threshold."""
    b = float(problem.threshold[0])
    best, below = best_column(problem, np.array([1.0, 0.0]))
    if below.returns[1] >= b:
        return mixture(problem, [below], np.ones(1), np.zeros(1), slater_gap)
    lam = 0.0
    for _ in range(_MOST_STEPS):
        (v0, u0), (v1, u1) = below.returns, above.returns
        lam = max((v0 - v1) / (u1 - u0), 0.0)
        best, found = best_column(problem, np.array([1.0, lam]))
        held = max(v0 + lam * u0, v1 + lam * u1)
        if best - held <= 1e-14 * (1.0 + abs(held)):
            break
        if found.returns[1] >= b:
            above = found
        else:
            below = found
    share = (b - below.returns[1]) / (above.returns[1] - below.returns[1])
    shares = np.array([1.0 - share, share])
    return mixture(problem, [below, above], shares, np.array([lam]), slater_gap)
