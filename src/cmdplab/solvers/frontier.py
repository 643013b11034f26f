"""The price of a promise: the optimal value as a function of a threshold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab import display
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError, OpenCertificateError
from cmdplab.solvers.certified import Optimum, attempt
from cmdplab.solvers.known import Known
from cmdplab.types import Array, Indices

MOST_POINTS = 10_000
BESIDE = 1e-7  # of H: value that may be given up where the optimum itself cannot be certified


@display.shown
class Frontier(NamedTuple):
    """Along thresholds of one constraint, the others as they are."""

    constraint: int  # counted from 1
    threshold: Array  # [points]
    value: Array  # [points], V*
    multiplier: Array  # [points], what one more unit of utility costs
    certificate: float  # the largest along it: how far a value may be from the optimum
    given: float  # the problem's own threshold
    free: float  # up to this threshold the constraint costs nothing
    largest: float  # beyond this threshold nothing is feasible

    def _facts(self) -> tuple[str, display.Facts]:
        def ends(values: Array) -> str:
            return f"{display.number(values[0])} to {display.number(values[-1])}"

        return f"Frontier of constraint {self.constraint}", [
            ("points", f"{len(self.threshold):,}"),
            ("thresholds", ends(self.threshold)),
            ("value", ends(self.value)),
            ("multiplier", ends(self.multiplier)),
            ("given threshold", display.number(self.given)),
            ("certified to", f"{self.certificate:.1e}"),
        ]


def frontier(problem: CMDP, constraint: int = 1, points: int = 41) -> Frontier:
    """From where the constraint begins to bind to the largest threshold that can be met.

    The value is concave and falls; its slope is minus the multiplier.
    """
    N = problem.constraints
    if not 1 <= constraint <= N:
        raise InputError(f"constraint {constraint} does not exist: {problem.name} has {N}")
    if not 2 <= points <= MOST_POINTS:
        raise InputError(f"points is {points}, outside 2 to {MOST_POINTS}")
    others = np.delete(np.arange(N), constraint - 1)
    kept = np.concatenate([[0], others + 1])  # the objective and the other utilities
    known = Known(problem, problem.reward, problem.threshold)
    without = attempt(known.asked(problem.reward[kept], problem.threshold[others]))
    if without is None:
        raise InputError(f"{problem.name}: the other constraints cannot be met")
    free = _utility_without(known, constraint, others, float(without.returns[0]))
    largest = _largest(known, constraint, others)
    thresholds = np.linspace(min(free, largest), largest, points)
    first = np.zeros(N)
    found: list[Optimum] = []
    for b in thresholds:
        wanted = problem.threshold.copy()
        wanted[constraint - 1] = b
        warm = found[-1].mixed if found else ()
        found.append(_met(attempt(known.asked(problem.reward, wanted, warm), first)))
        first = found[-1].multiplier
    values = np.array([each.returns[0] for each in found])
    multipliers = np.array([each.multiplier[constraint - 1] for each in found])
    given = float(problem.threshold[constraint - 1])
    certificate = max(each.doubt for each in found)
    return Frontier(constraint, thresholds, values, multipliers, certificate, given, free, largest)


def _met(found: Optimum | None) -> Optimum:
    """What is feasible by construction."""
    if found is None:
        raise OpenCertificateError("a threshold that was reached a moment ago is out of reach")
    return found


def _utility_without(known: Known, constraint: int, others: Indices, best: float) -> float:
    """The most utility among the policies that are optimal without the constraint."""
    problem = known.problem
    again = problem.reward[np.concatenate([[constraint], [0], others + 1])]
    limits = np.concatenate([[best], problem.threshold[others]])
    try:
        return float(_met(attempt(known.asked(again, limits))).returns[0])
    except OpenCertificateError:  # at the very edge; just beside it there is slack
        limits[0] -= BESIDE * problem.horizon
        return float(_met(attempt(known.asked(again, limits))).returns[0])


def _largest(known: Known, constraint: int, others: Indices) -> float:
    """The largest utility that the other constraints leave."""
    problem = known.problem
    rewards = problem.reward[np.concatenate([[constraint], others + 1])]
    return float(_met(attempt(known.asked(rewards, problem.threshold[others]))).returns[0])
