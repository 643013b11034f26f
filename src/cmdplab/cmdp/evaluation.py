"""The exact worth of a policy that a person gives: checked first, then computed by exact.py.

Apart from that file, which checks nothing and is what the engines are tested against.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.cmdp import exact
from cmdplab.cmdp.checks import checked_policy
from cmdplab.cmdp.problem import CMDP
from cmdplab.types import Array


@display.shown
class Evaluation(NamedTuple):
    """Exact returns and visits of one policy on one problem."""

    returns: Array  # [1 + N], V[r^n] of the objective and of every utility
    violation: Array  # [N], b^n - V[r^n]: above zero where a threshold is missed
    occupancy: Array  # [H, X, A], how likely each pair is at each step

    def _facts(self) -> tuple[str, display.Facts]:
        return "Evaluation", [
            ("value", display.number(self.value)),
            ("utility", display.numbers(self.utility)),
            ("violation", display.numbers(self.violation)),
            ("occupancy", display.shape(self.occupancy, "H x X x A")),
        ]

    @property
    def value(self) -> float:
        """The return of the objective."""
        return float(self.returns[0])

    @property
    def utility(self) -> Array:
        """[N], the returns of the utilities."""
        return self.returns[1:]


def evaluate(problem: CMDP, policy: npt.ArrayLike) -> Evaluation:
    """Compute what a policy [H, X, A] earns on a problem, without simulation.

    Rows must be probabilities over the open actions; anything else is refused, with its place.
    """
    checked = checked_policy("the policy", policy, problem.opened)
    occupancy = exact.occupancy(problem, checked)
    earned = exact.earned(problem, occupancy)
    return Evaluation(earned, exact.violation(problem.threshold, earned[1:]), occupancy)


def returns(problem: CMDP, policy: npt.ArrayLike) -> Array:
    """[1 + N], `evaluate(problem, policy).returns`: the name of version 0.1.0."""
    return evaluate(problem, policy).returns


def occupancy(problem: CMDP, policy: npt.ArrayLike) -> Array:
    """[H, X, A], `evaluate(problem, policy).occupancy`: the name of version 0.1.0."""
    return np.asarray(evaluate(problem, policy).occupancy)
