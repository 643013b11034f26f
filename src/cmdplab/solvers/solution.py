"""The certified optimum of a problem, or the reason why there is none.

The policy is evaluated, and the multipliers are priced, by the plain dynamic programs of exact.py:
what the certificate says does not depend on how the optimum was found (certified.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab import display
from cmdplab.cmdp.problem import CMDP
from cmdplab.messages import warn_renamed
from cmdplab.solvers.certified import SHORT, Known, Optimum, optimum, widest
from cmdplab.types import Array

SLATER_TOLERANCE = 1e-9  # per step of the horizon; a smaller slack is no slack
NO_SLACK = "no slack: the thresholds can be met, but with no room to spare (no Slater point)"


@display.shown
class Solution(NamedTuple):
    """The optimum of a CMDP, or the reason why there is none.

    `primal` is the value of a feasible policy and `dual` an upper bound on every feasible policy's;
    `duality_gap` is their distance. When `feasible` is false, the numbers that do not exist are
    None and `message` says why. Where thresholds can be met with equality alone, the Slater gap is
    0 and `message` says so.
    """

    feasible: bool  # some policy meets every threshold, but for rounding
    value: float | None  # V*, the value of `policy`
    policy: Array | None  # [H, X, A]
    occupancy: Array | None  # [H, X, A], of `policy`
    multiplier: Array | None  # [N]
    slater_gap: float | None  # max over policies of the smallest slack; None for N = 0
    primal: float | None
    dual: float | None
    message: str = ""

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [("Slater gap", display.number(self.slater_gap))]
        if self.feasible:
            facts = [
                ("optimum", display.number(self.value)),
                ("certified to", f"{self.duality_gap:.1e}"),
                ("multiplier", display.numbers(self.multiplier)),
                *facts,
                ("policy", display.shape(self.policy, "H x X x A")),
            ]
        if self.message:
            facts.append(("message", self.message))
        return f"Solution{'' if self.feasible else ', infeasible'}", facts

    @property
    def duality_gap(self) -> float | None:
        """The certificate: |dual - primal|."""
        if self.dual is None or self.primal is None:
            return None
        return abs(self.dual - self.primal)

    @property
    def gap(self) -> float | None:
        """`duality_gap`: the name of version 0.1.0."""
        warn_renamed("Solution.gap", "Solution.duality_gap")
        return self.duality_gap

    @property
    def slack(self) -> float:
        """`slater_gap`, infinite when there is no constraint: the name of version 0.1.0."""
        warn_renamed("Solution.slack", "Solution.slater_gap (None without a constraint)")
        return np.inf if self.slater_gap is None else self.slater_gap


def solve(problem: CMDP) -> Solution:
    """The optimum with its certificate.

    A problem that no policy can meet is an answer, not an exception: see `Solution.feasible`. One
    whose optimum cannot be certified gets none: `OpenCertificateError`.
    """
    known = Known(problem, problem.reward, problem.threshold)
    if problem.constraints == 0:
        return _solution(optimum(known, None), None)
    safe = widest(known)
    if safe.slack < -SHORT * problem.horizon:
        why = f"no policy meets the thresholds: the best falls short by {-safe.slack:.6g}"
        return Solution(False, None, None, None, None, safe.slack, None, None, why)
    slack = safe.slack if safe.slack > SLATER_TOLERANCE * problem.horizon else 0.0
    return _solution(optimum(known, safe), slack)


def _solution(best: Optimum, slack: float | None) -> Solution:
    value = float(best.returns[0])
    message = NO_SLACK if slack == 0.0 else ""
    given = (best.policy, best.occupancy, best.multiplier, slack, value, best.dual, message)
    return Solution(True, value, *given)
