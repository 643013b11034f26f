"""The mean of a bounded number over independent episodes, with an interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from cmdplab.statistics.intervals import binomial_interval
from cmdplab.statistics.samples import LEVEL


class Estimate(NamedTuple):
    """The mean of an episode's sum over some episodes, and a 95 % interval for its expectation."""

    low: float
    mean: float
    high: float
    episodes: int


def estimate(count: int, total: float, squares: float, bounds: tuple[float, float]) -> Estimate:
    """m ± z s / sqrt(n) within the bounds of an episode's sum, from n, sum v and sum v².

    The normal interval: its level is right for many episodes. Where all episodes agree, s = 0
    says nothing of what was never seen; then, with p the exact upper end for the probability of
    an event that happened in none of n episodes, low = m - p (m - lowest), high = m + p (highest
    - m).
    """
    low, high = bounds
    mean = total / count
    variance = max(squares - total * mean, 0.0) / max(count - 1, 1)
    if variance <= 1e-12 * (high - low) ** 2:
        p = binomial_interval(0, count, LEVEL).high
        return Estimate(mean - p * (mean - low), mean, mean + p * (high - mean), count)
    half = float(special.ndtri((1.0 + LEVEL) / 2.0)) * float(np.sqrt(variance / count))
    return Estimate(max(mean - half, low), mean, min(mean + half, high), count)
