"""Exact returns of a policy: its rows are checked here, and exact.py computes the returns.

exact.py checks nothing, and the engines are tested against it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy.typing as npt

from cmdplab import display
from cmdplab.cmdp import exact
from cmdplab.cmdp.memory import counted_occupancy
from cmdplab.cmdp.policy import Policy, fitted
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.errors import InputError
from cmdplab.types import Array, frozen


@display.shown
@frozen
class Evaluation(NamedTuple):
    """Exact returns and visits of one policy on one problem."""

    returns: Array  # [1 + N], V[r^n] of the objective and of every utility
    violation: Array  # [N], b^n - V[r^n]: above zero where a threshold is missed
    occupancy: Array  # [H, X, A], how likely each pair is at each step; [X, A] without an end

    def _facts(self) -> tuple[str, display.Facts]:
        axes = "X x A" if self.occupancy.ndim == 2 else "H x X x A"
        return "Evaluation", [
            ("value", display.number(self.value)),
            ("utility", display.numbers(self.utility)),
            ("violation", display.numbers(self.violation)),
            ("occupancy", display.shape(self.occupancy, axes)),
        ]

    @property
    def value(self) -> float:
        """Return V[r^0]."""
        return float(self.returns[0])

    @property
    def utility(self) -> Array:
        """Return V[r^n] of the utilities, [N]."""
        return self.returns[1:]


def evaluate(problem: CMDP | StationaryCMDP, policy: npt.ArrayLike | Policy) -> Evaluation:
    """Compute what a policy earns on a problem, without simulation.

    policy : a `Policy`, or an array [H, X, A]. One with a counter is evaluated on the chain of
    counter and state, and its occupancy is summed over the levels of the counter. On a stationary
    problem the policy is [X, A]; discounted occupancies sum to 1 / (1 - gamma), others to 1.
    A row that is no distribution over the open actions is refused, with its place.
    """
    checked = fitted(problem, policy)
    counter = policy.counter if isinstance(policy, Policy) else None
    if isinstance(problem, StationaryCMDP):
        from cmdplab.cmdp import exact_stationary  # SciPy's sparse solvers take a while to load

        if counter is not None:
            raise InputError("a policy with a counter is for a problem with a horizon")
        occupancy = exact_stationary.occupancy(problem, checked)
        earned = exact_stationary.earned(problem, occupancy)
    else:
        if counter is None:
            occupancy = exact.occupancy(problem, checked)
        else:
            occupancy = counted_occupancy(problem, checked, counter).sum(axis=1)
        earned = exact.earned(problem, occupancy)
    return Evaluation(earned, exact.violation(problem.threshold, earned[1:]), occupancy)
