"""One epsilon of an audit: mistakes of each run, and the PAC sample complexity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from cmdplab.audit.findings import QUIET, Finding
from cmdplab.errors import InputError
from cmdplab.types import Array

CONFIDENCE = 0.95
ROUNDING = 1e-6  # relative: a point of the grid may be given as it was printed


class MistakesAt(NamedTuple):
    """Of one point of the grid."""

    epsilon: float  # the point of the grid
    mistakes: Array  # [runs]
    last: Array  # [runs], the last mistake


class Complexity(NamedTuple):
    """(epsilon, delta)-PAC, or the reason why nothing is said."""

    mistakes: float | None
    why_not: str
    epsilon: float  # the point of the grid that was counted, at most what was asked
    over: str  # what delta is the probability over


def place_of(grid: Array, epsilon: float) -> int:
    """The largest point of the grid [E] that is at most epsilon.

    A mistake of epsilon is one of every smaller point: the count there is an upper bound.
    """
    if not 0.0 < epsilon < np.inf:
        raise InputError(f"epsilon is {epsilon:g}, not a finite number > 0")
    low, high = grid[0] * (1.0 - ROUNDING), grid[-1] * (1.0 + ROUNDING)
    if not low <= epsilon <= high:
        raise InputError(
            f"epsilon {epsilon:g} was not counted: the grid goes from {grid[0]:g} to {grid[-1]:g}"
        )
    return int(np.searchsorted(grid, epsilon * (1.0 + ROUNDING), side="right")) - 1


def mistakes_at(finding: Finding, epsilon: float, series: str | None = None) -> MistakesAt:
    """Counts and last mistakes at the point of the grid below epsilon.

    Of `gap`, `violation` or `either`; without constraints of the gap alone, as `series` None is.
    """
    name = next(reversed(finding.counts)) if series is None else series
    if name not in finding.counts:
        known = ", ".join(finding.counts)
        raise InputError(f"mistakes of {name!r} were not counted: choose from {known}")
    at = place_of(finding.epsilon, epsilon)
    counts, last = finding.counts[name][:, at], finding.last[name][:, at]
    return MistakesAt(float(finding.epsilon[at]), counts, last)


def sample_complexity(finding: Finding, epsilon: float, delta: float) -> Complexity:
    """(epsilon, delta)-PAC: a number of mistakes that a run exceeds with probability <= delta.

    The smallest order statistic that bounds the (1 - delta) quantile with confidence 0.95. Of an
    instance with several seeds the worst one counts, among several instances: its quantile is at
    least that of a run.
    """
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta is {delta:g}, not between 0 and 1")
    found = mistakes_at(finding, epsilon)
    units = finding.units
    if np.any(found.last > QUIET * finding.episodes):
        why = f"mistakes of {found.epsilon:g} may still be made: a longer run would tell"
        return Complexity(None, why, found.epsilon, units.over)
    counts = np.sort(units.worst(found.mistakes))
    for k in range(len(counts)):
        if binom.cdf(k, len(counts), 1.0 - delta) >= CONFIDENCE:
            return Complexity(float(counts[k]), "", found.epsilon, units.over)
    most = int(np.ceil(np.log(1.0 - CONFIDENCE) / np.log(1.0 - delta)))
    why = f"delta = {delta:g} needs {most} {units.noun}, and there are {len(counts)}"
    return Complexity(None, why, found.epsilon, units.over)
