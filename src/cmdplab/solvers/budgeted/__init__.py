"""Budgets that single episodes keep: the solution of a problem whose states store past costs.

`solve` of the finite horizon optimises and certifies. This subpackage constructs its problem.
"""

from __future__ import annotations

from cmdplab.solvers.budgeted.solution import BudgetSolution, Kept, solve_budgets

__all__ = ["BudgetSolution", "Kept", "solve_budgets"]
