"""Certified optima and optimistic plans, by one compiled planner."""

from __future__ import annotations

from cmdplab.solvers.box import Plan, largest_margin, plan, policy_bounds
from cmdplab.solvers.layout import Box
from cmdplab.solvers.robust import RobustSolution, solve_robust
from cmdplab.solvers.solution import Solution, solve, solve_feasible

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
