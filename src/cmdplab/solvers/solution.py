"""The certified optimum of a known model: the plan of a box of width zero, checked from outside.

The policy is evaluated, and the multipliers are priced, by the plain dynamic programs of exact.py:
what the certificate says does not depend on how the plan was found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab import exact
from cmdplab.problem import CMDP, Array
from cmdplab.solvers.interval import Plan, largest_margin, plan
from cmdplab.solvers.models import Box

SLATER_TOLERANCE = 1e-9  # per step of the horizon; a smaller slack is no slack


class Solution(NamedTuple):
    """The optimum of a CMDP, or the reason why there is none.

    `primal` is the value of a feasible policy and `dual` an upper bound on every feasible policy's;
    `gap` is their distance. When `feasible` is false, the numbers that do not exist are None and
    `message` says why.
    """

    feasible: bool  # some policy meets every threshold with room to spare (Slater)
    value: float | None  # V*, the value of `policy`
    policy: Array | None  # [H, X, A]
    occupancy: Array | None  # [H, X, A], of `policy`
    multiplier: Array | None  # [N]
    slater_gap: float | None  # max over policies of the smallest slack; None for N = 0
    primal: float | None
    dual: float | None
    message: str = ""

    @property
    def gap(self) -> float | None:
        """The certificate: |dual - primal|."""
        if self.dual is None or self.primal is None:
            return None
        return abs(self.dual - self.primal)

    @property
    def slack(self) -> float:
        """The Slater gap as learners are told it: infinite when there is no constraint."""
        return np.inf if self.slater_gap is None else self.slater_gap


def solve(problem: CMDP) -> Solution:
    """The optimum with its certificate.

    A problem without a strictly feasible policy is an answer, not an exception: see
    `Solution.feasible`.
    """
    known = Box.of(problem), problem.reward, problem.threshold, problem.start
    if problem.constraints == 0:
        return _certified(problem, plan(*known), None)
    widest = largest_margin(*known)
    tolerance = SLATER_TOLERANCE * problem.horizon
    if not widest.gap <= tolerance:
        raise ArithmeticError(f"{problem.name}: the Slater gap is known to {widest.gap:.1e} only")
    slack = widest.primal
    if slack <= tolerance:
        return _no_solution(slack, tolerance)
    return _certified(problem, plan(*known), slack)


def _certified(problem: CMDP, found: Plan, slater_gap: float | None) -> Solution:
    pairs = exact.occupancy(problem, found.policy)
    value = float(np.sum(problem.reward[0] * pairs))
    weights = np.array([1.0, *found.multiplier])
    bound, _ = exact.greedy(problem, np.tensordot(weights, problem.reward, axes=1))
    dual = bound - float(found.multiplier @ problem.threshold)
    return Solution(True, value, found.policy, pairs, found.multiplier, slater_gap, value, dual)


def _no_solution(slater_gap: float, tolerance: float) -> Solution:
    if slater_gap < -tolerance:
        why = f"no policy meets the thresholds: the best falls short by {-slater_gap:.6g}"
    else:
        why = "the thresholds can be met only with no room to spare: there is no Slater point"
    return Solution(False, None, None, None, None, slater_gap, None, None, why)
