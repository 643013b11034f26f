"""Bands around curves over seeds: at all points at once, or at each point on its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cmdplab.errors import InputError
from cmdplab.statistics.intervals import median_rank
from cmdplab.statistics.samples import (
    LEVEL,
    check_resampling,
    checked_curves,
    generator,
    in_fixed_order,
    need_enough,
    tail_warning_of_curves,
    upper_quantile,
)
from cmdplab.types import Array

FLOOR = 0.3  # a resample's standard deviation counts as at least this share of the observed one
BLOCK = 512  # points handled at once


class Band(NamedTuple):
    """Lower end, estimate and upper end over the points [T] of a curve.

    The width is zero where all seeds agree: the seeds show no spread there. Nothing is claimed
    about other seeds.
    """

    low: Array
    middle: Array
    high: Array
    level: float
    seeds: int
    at_once: bool = True  # True: the level holds for all points at once; else for each point
    caution: str = ""  # a warning about a mean of samples with a heavy tail, or empty


def mean_band(
    curves: ArrayLike, level: float = LEVEL, *, resamples: int = 1999, seed: int = 0
) -> Band:
    """Return the sup-t band for the mean over seeds of `curves` [S, T]: mean ± c sd / sqrt(S).

    c is the level-quantile of max_t |mean - mu| / (sd / sqrt(S)). It is estimated twice, and the
    larger estimate is used:

    - by resampling whole curves (bootstrap-t): max_t |mean* - mean| / (sd* / sqrt(S)), which sees
      skewness. sd* counts as at least 0.3 sd. Otherwise a few resamples without the one seed that
      differs would make the band infinite.
    - by rotation: max_t sqrt(S - 1) cot(angle(u, residuals at t)) for uniform directions u in R^S.
      At each single point this is exactly Student's t with S - 1 degrees of freedom. It gives the
      quantile for normal curves, down to two seeds.

    Simulated coverage at 0.95 of the whole curve, 40 points (`benchmarks/interval_coverage.py`):

        AR(1) curves, margins        S = 6    10     20     50
        normal                        0.98   0.99   0.96   0.96
        exponential                   0.77   0.88   0.94   0.95
        log-normal, sigma 0.5         0.91   0.95   0.95   0.95
        log-normal, sigma 1           0.58   0.74   0.89   0.94

    The band holds for near-normal or accumulated curves. It fails where margins are skewed or
    heavy: prefer `median_band`. `caution` warns if the seeds show such a tail. No band covers what
    no seed has shown: a rare event, or a point where all seeds agree.
    """
    table = _resampled(curves, level, resamples)
    S = len(table)
    varies = np.ptp(table, axis=0) > 0
    middle = np.where(varies, table.mean(axis=0), table[0])
    half = np.zeros(len(middle))
    if varies.any():
        moving = table[:, varies]
        critical = _sup_t(moving - middle[varies], level, resamples, seed)
        half[varies] = critical * moving.std(axis=0, ddof=1) / np.sqrt(S)
    caution = tail_warning_of_curves(table)
    return Band(middle - half, middle, middle + half, level, S, caution=caution)


def _resampled(curves: ArrayLike, level: float, resamples: int) -> Array:
    """Return curves [S, T] as a checked array in a fixed order; refuse few seeds or resamples."""
    table = checked_curves(curves)
    check_resampling(level, resamples)
    need_enough(len(table), "a band", level)
    return in_fixed_order(table)


def _sup_t(residuals: Array, level: float, resamples: int, seed: int) -> float:
    """Return the factor c of `mean_band` for residuals [S, T], each column nonzero at some seed."""
    S = len(residuals)
    draws = generator(seed)
    counts = draws.multinomial(S, np.full(S, 1 / S), size=resamples) / S
    directions = draws.standard_normal((resamples, S))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    resampled, rotated = np.zeros(resamples), np.zeros(resamples)
    for start in range(0, residuals.shape[1], BLOCK):
        unit = residuals[:, start : start + BLOCK]
        unit = unit / np.abs(unit).max(axis=0)  # so that the squares neither vanish nor overflow
        unit = unit / np.linalg.norm(unit, axis=0)
        shift = counts @ unit
        variance = (counts @ unit**2 - shift**2) * S  # times S - 1; that of the seeds is then 1
        t = np.abs(shift) * np.sqrt(S * (S - 1) / np.maximum(variance, FLOOR**2))
        resampled = np.maximum(resampled, t.max(axis=1))
        rotated = np.maximum(rotated, np.abs(directions @ unit).max(axis=1))
    cosine = min(upper_quantile(rotated, level), 1 - 1e-15)
    student = np.sqrt((S - 1) / (1 - cosine**2)) * cosine
    return float(max(upper_quantile(resampled, level), student))


def median_band(
    curves: ArrayLike, level: float = LEVEL, *, resamples: int = 1999, seed: int = 0
) -> Band:
    """Return the band [y_(k), y_(S+1-k)] for the median over seeds of `curves` [S, T].

    y_(1) <= ... <= y_(S) are the sorted values at one point. The band covers the median m at all
    points as long as max_t |#{y > m} - #{y < m}| <= S - 2k. The distribution of that maximum is
    simulated: the signs of y - median are flipped for whole curves. At one point this is exactly
    binomial, and along the curve it keeps the correlation of the signs. k is the largest that
    reaches the level, at most the k of the exact interval at one point.

    No moment and no scale enter. The band of an increasing function of the curves is that function
    of the band (for odd S, also the middle, which is then one of the seeds). Heavy tails do no
    harm. The band is conservative, because k is an integer. Simulated coverage at 0.95 of the whole
    curve, 40 points (`benchmarks/interval_coverage.py`; "none": refused):

        AR(1) curves, any margins    S = 6    10     20     50
        coverage                      none   0.95   0.98   0.98
        refused                       1.00   0.18   0.00   0.00

    At 0.95 one point needs six seeds, and a curve as a rule ten to fifteen. Fewer seeds raise an
    InputError (`strongest_median_band` then returns the interval at each point on its own).
    """
    table = _resampled(curves, level, resamples)
    S = len(table)
    middle = np.median(table, axis=0)
    varies = np.ptp(table, axis=0) > 0
    flips = 2.0 * generator(seed).integers(0, 2, (resamples, S)) - 1.0
    largest = np.zeros(resamples)
    signs = np.where(table >= middle, 1.0, -1.0)[:, varies]
    for start in range(0, signs.shape[1], BLOCK):
        sums = flips @ signs[:, start : start + BLOCK]
        largest = np.maximum(largest, np.abs(sums).max(axis=1))
    k = min(int(S - upper_quantile(largest, level)) // 2, median_rank(S, level))
    ordered = np.sort(table, axis=0)
    if k < 1 and varies.any():
        raise InputError(
            f"{S} seeds are too few for a band of level {level} around the median"
            f" at {signs.shape[1]} points"
        )
    k = max(k, 1)
    return Band(ordered[k - 1], middle, ordered[S - k], level, S)


def pointwise_median_band(curves: ArrayLike, level: float = LEVEL) -> Band:
    """Return the exact interval of `median_interval` at each point of `curves` [S, T], separately.

    It covers the median at every single point with probability at least `level`, but the whole
    curve less often.
    """
    table = np.sort(checked_curves(curves), axis=0)
    S = len(table)
    need_enough(S, "a band", level)
    k = median_rank(S, level)
    return Band(table[k - 1], np.median(table, axis=0), table[S - k], level, S, at_once=False)


def strongest_median_band(curves: ArrayLike, level: float = LEVEL) -> Band:
    """Return `median_band` of `curves` [S, T] if the seeds suffice, else `pointwise_median_band`.

    The field `at_once` of the band names the choice. Both bands are exact but for the simulated
    distribution of a maximum, and heavy tails harm neither.
    """
    pointwise = pointwise_median_band(curves, level)  # refuses curves that both functions refuse
    try:
        return median_band(curves, level)
    except InputError:
        return pointwise


def count_band(
    counts: ArrayLike, level: float = LEVEL, *, resamples: int = 1999, seed: int = 0
) -> Band:
    """Return the band for numbers of mistakes `counts` [S, E] at all E epsilon of a grid at once.

    It is `mean_band` of log(1 + count), converted back to counts. It covers the geometric mean
    exp(E log(1 + count)) - 1, where E is the expectation, not the mean count, which one bad seed
    decides. The median count, `strongest_median_band` of the counts, needs no scale. Simulated
    coverage at 0.95, 40 epsilon (`benchmarks/interval_coverage.py`):

        samples                      S = 6    10     20     50
        alike                         0.98   0.98   0.95   0.95
        one in ten 30 times worse     0.47   0.64   0.87   0.99
        the same, median_band         none   0.99   0.97   0.98

    If no seed has a mistake, the band is [0, 0]. This means "none seen in S seeds", and does not
    claim that none can happen (`binomial_interval(0, S)` bounds the probability of a mistake).
    """
    table = checked_curves(counts)
    if (table < 0).any():
        raise InputError(f"counts cannot be negative: {table.min():g}")
    band = mean_band(np.log1p(table), level, resamples=resamples, seed=seed)
    same = table.min(axis=0) == table.max(axis=0)  # to the last bit
    ends = (np.maximum(np.expm1(end), 0.0) for end in band[:3])
    low, middle, high = (np.where(same, table[0], end) for end in ends)
    return Band(low, middle, high, level, band.seeds, caution=band.caution)
