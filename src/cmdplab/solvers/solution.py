"""What a solver returns: a value nobody has to trust, because primal and dual bracket it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab import exact
from cmdplab.problem import CMDP, Array


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


class Column(NamedTuple):
    """A deterministic policy, as a point of the polytope of occupancies."""

    returns: Array  # [1 + N]
    occupancy: Array  # [H, X, A]
    policy: Array  # [H, X, A]


def best_column(problem: CMDP, weights: Array) -> tuple[float, Column]:
    """max over policies of sum_n weights[n] V[r^n], with a maximiser: one dynamic program."""
    bound, policy = exact.greedy(problem, np.tensordot(weights, problem.reward, axes=1))
    pairs = exact.occupancy(problem, policy)
    return bound, Column(np.einsum("nhxa,hxa->n", problem.reward, pairs), pairs, policy)


def mixture(
    problem: CMDP, columns: list[Column], shares: Array, multiplier: Array, slater: float | None
) -> Solution:
    """The certified solution whose occupancy is the mixture of columns; states it never visits
    follow the policy that is greedy for the multipliers.
    """
    occupancy = sum(s * c.occupancy for s, c in zip(shares, columns, strict=True))
    bound, greedy = best_column(problem, np.array([1.0, *multiplier]))
    policy = exact.policy_of(np.asarray(occupancy), greedy.policy)
    pairs = exact.occupancy(problem, policy)
    value = float(np.sum(problem.reward[0] * pairs))
    dual = bound - float(multiplier @ problem.threshold)
    return Solution(True, value, policy, pairs, multiplier, slater, value, dual)


def no_solution(slater_gap: float, tolerance: float) -> Solution:
    """The answer for a problem without a strictly feasible policy."""
    if slater_gap < -tolerance:
        why = f"no policy meets the thresholds: the best falls short by {-slater_gap:.6g}"
    else:
        why = "the thresholds can be met only with no room to spare: there is no Slater point"
    return Solution(False, None, None, None, None, slater_gap, None, None, why)
