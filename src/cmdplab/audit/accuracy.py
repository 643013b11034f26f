"""One epsilon of an audit: the mistakes of each run, and the PAC sample complexity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from cmdplab.audit.findings import QUIET, Finding
from cmdplab.errors import InputError
from cmdplab.types import Array

CONFIDENCE = 0.95
ROUNDING = 1e-6  # relative: a person may give a grid point with the printed digits


class MistakesAt(NamedTuple):
    """Mistakes at one point of the grid."""

    epsilon: float  # the point of the grid
    mistakes: Array  # [runs]
    last: Array  # [runs], the last mistake


class Complexity(NamedTuple):
    """(epsilon, delta)-PAC sample complexity, or the reason why there is none."""

    mistakes: float | None
    why_not: str
    epsilon: float  # the counted point of the grid, at most the epsilon asked for
    over: str  # the samples that delta is a probability over, in words


def place_of(grid: Array, epsilon: float) -> int:
    """Return the index of the largest point of the grid [E] that is at most epsilon.

    A mistake of epsilon is a mistake of every smaller point, so that the count there is an upper
    bound.
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
    """Return counts and last mistakes at the point of the grid below epsilon.

    `series` is `gap`, `violation` or `either`. By default it is `either`, or `gap` without
    constraints.
    """
    name = next(reversed(finding.counts)) if series is None else series
    if name not in finding.counts:
        known = ", ".join(finding.counts)
        raise InputError(f"mistakes of {name!r} were not counted: choose from {known}")
    place = place_of(finding.epsilon, epsilon)
    counts, last = finding.counts[name][:, place], finding.last[name][:, place]
    return MistakesAt(float(finding.epsilon[place]), counts, last)


def sample_complexity(finding: Finding, epsilon: float, delta: float) -> Complexity:
    """Return a number of mistakes that a run exceeds with probability at most delta.

    This is (epsilon, delta)-PAC: the smallest order statistic that bounds the (1 - delta) quantile
    with confidence 0.95. Of several instances with several seeds, the worst seed of each counts:
    its quantile is at least that of a run.
    """
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta is {delta:g}, not between 0 and 1")
    at = mistakes_at(finding, epsilon)
    units = finding.units
    if np.any(at.last > QUIET * finding.episodes):
        why = f"mistakes of {at.epsilon:g} may still be made: a longer run would tell"
        return Complexity(None, why, at.epsilon, units.over)
    counts = np.sort(units.worst(at.mistakes))
    for k in range(len(counts)):
        if binom.cdf(k, len(counts), 1.0 - delta) >= CONFIDENCE:
            return Complexity(float(counts[k]), "", at.epsilon, units.over)
    most = int(np.ceil(np.log(1.0 - CONFIDENCE) / np.log(1.0 - delta)))
    why = f"delta = {delta:g} needs {most} {units.noun}, and there are {len(counts)}"
    return Complexity(None, why, at.epsilon, units.over)
