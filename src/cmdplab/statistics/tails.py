"""A diagnostic of tails: whether a mean of these samples can be trusted with its interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cmdplab.statistics.samples import checked_curves, checked_sample
from cmdplab.types import Array

# Of S normal samples the ratio of `imbalance` stays below this in nine of ten cases (10^5 draws).
USUAL = {6: 3.73, 8: 3.10, 10: 2.73, 15: 2.33, 20: 2.06, 30: 1.84, 50: 1.66, 100: 1.50}


def imbalance(curves: ArrayLike) -> Array:
    """[T]: the longer tail over the shorter, (y_(S) - m) and (m - y_(1)) around the median m.

    At each point of `curves` [S, T]; 1 where all samples agree, infinite where one tail is empty.
    """
    table = checked_curves(curves)
    middle = np.median(table, axis=0)
    above, below = table.max(axis=0) - middle, middle - table.min(axis=0)
    longer, shorter = np.maximum(above, below), np.minimum(above, below)
    some = np.where(shorter > 0.0, shorter, 1.0)
    return np.where(longer == 0.0, 1.0, np.where(shorter > 0.0, longer / some, np.inf))


def usual_imbalance(samples: int) -> float:
    """The ratio that normal samples exceed in one case of ten (table `USUAL`, in log S between)."""
    return float(np.interp(np.log(samples), np.log(list(USUAL)), list(USUAL.values())))


def tail_warning(values: ArrayLike) -> str:
    """Empty, or a sentence that a mean of `values` [S] is at risk: one tail is far the longer one.

    A mean is decided by its longest tail, and an interval around it, made from a few samples, is
    too short wherever that tail is heavy and not seen (`bca_interval` has the simulated coverage).
    The ratio of the two tails is compared with what normal samples show. It is an alarm with
    misses: of log-normal samples (sigma 1) it finds 0.45, 0.73, 0.96 for S = 6, 10, 20, of Pareto
    samples (1.5) 0.61, 0.88, 0.99, and it calls 0.10 of normal ones. With few samples its
    silence proves nothing, for the samples that missed the tail look harmless.
    """
    sample = checked_sample(values)
    return _sentence(float(imbalance(sample[:, None])[0]), len(sample), "")


def tail_warning_of_curves(curves: ArrayLike) -> str:
    """`tail_warning` of curves [S, T], if most of the points where they differ give the alarm."""
    table = checked_curves(curves)
    moving = table[:, np.ptp(table, axis=0) > 0]
    if not moving.size:
        return ""
    return _sentence(float(np.median(imbalance(moving))), len(table), " at half of the points")


def _sentence(ratio: float, samples: int, where: str) -> str:
    if ratio <= usual_imbalance(samples):
        return ""
    size = f"{ratio:.1f} times the other" if np.isfinite(ratio) else "the only one"
    return (
        f"a heavy tail{where}: of {samples} samples the longer tail is {size}, and the interval of"
        " a mean may cover far less than it says; prefer the median"
    )
