"""Budgets that single episodes keep: a problem whose states remember what was spent, solved.

`solve` of the finite horizon does the optimisation and certifies it; here its problem is made.
"""

from __future__ import annotations

from cmdplab.solvers.budgeted.solution import BudgetSolution, Kept, solve_budgets

__all__ = ["BudgetSolution", "Kept", "solve_budgets"]
