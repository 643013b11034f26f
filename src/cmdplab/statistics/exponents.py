"""Power laws: slopes of log y on log x, fitted and local, with intervals over runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cmdplab.errors import InputError
from cmdplab.statistics.intervals import Interval, bca_interval, median_interval
from cmdplab.statistics.samples import check_resampling, checked_curves, checked_sample, too_few
from cmdplab.types import Array

FEWEST_POINTS = 8
SHORTEST_SPAN = 0.5  # decades of x
FEWEST_LOCAL = 4  # the least number of local slopes for a common exponent
AGREE = 0.01  # slopes agree within this share of the slope, or of 1 if that is larger


class Exponent(NamedTuple):
    """Fitted exponent and its interval; NaN, with the reason in `why_not`, if there is no fit.

    Only the ends are NaN if the seeds are too few for an interval. A local exponent describes the
    last two points alone.
    """

    slope: float
    low: float
    high: float
    points: int
    seeds: int
    why_not: str
    local: bool = False


def fit_exponent(
    x: ArrayLike,
    y: ArrayLike,
    within: tuple[float, float] = (0.0, np.inf),
    level: float = 0.95,
    *,
    resamples: int = 4999,
    seed: int = 0,
) -> Exponent:
    """Return the least-squares slope of log y on log x, where within[0] <= x <= within[1].

    x : [T], common to all runs.
    y : [S, T], one curve for each run.

    Each run has its slope. The fit is their mean, which is the slope of the mean of log y. The
    interval is the expanded BCa interval of that mean, with the limits of `bca_interval`. Runs are
    resampled, never points, because the points of a run depend on each other.

    All points of the grid weigh the same, so a grid equally spaced in log x is best. The interval
    is for the slope of these curves over this range. It does not claim that they follow a power law
    (`power_law` tests it), nor that the exponent stays the same beyond. There is no fit for fewer
    than 8 points, less than half a decade of x, or values that are not positive; `why_not` names
    the reason. Fewer than six runs have a fit and no interval.
    """
    grid, table = checked_sample(x, "x"), checked_curves(y)
    check_resampling(level, resamples)
    if table.shape[1] != len(grid):
        raise InputError(f"curves of {table.shape[1]} points do not fit {len(grid)} values of x")
    low, high = within
    if not low < high:
        raise InputError(f"the range of x from {low:g} to {high:g} is empty")
    inside = (grid >= low) & (grid <= high) & (grid > 0)
    grid, table = grid[inside], table[:, inside]
    seeds, points = table.shape
    why_not = _why_not(grid, table)
    if why_not:
        return Exponent(np.nan, np.nan, np.nan, points, seeds, why_not)
    slopes = _slopes(grid, table)
    if too_few(seeds):
        return Exponent(float(slopes.mean()), np.nan, np.nan, points, seeds, "")
    fit = bca_interval(slopes, "mean", level, resamples=resamples, seed=seed)
    return Exponent(fit.middle, fit.low, fit.high, points, seeds, "")


def power_law(x: ArrayLike, y: ArrayLike) -> Exponent:
    """Return the common exponent of y in x if the local slopes agree, else the last local slope.

    x is [J + 1], and y is [S, J + 1], one curve for each run. The local slope between neighbours of
    x is ln(y_{j+1} / y_j) / ln(x_{j+1} / x_j). Its estimate is the median over the S runs, with an
    interval. Local slopes agree if all intervals share a point and the slope does not drift: the
    paired difference of the later and the earlier half has zero in its interval. Both hold to a
    hundredth. The interval of the common exponent holds every local slope.

    If they disagree, the last slope is returned and marked `local`. It describes the last two
    points and no others: a sum of powers has its true exponent only in the limit.
    """
    grid, table = checked_sample(x, "x"), checked_curves(y)
    if table.shape[1] != len(grid) or len(grid) < 2:
        raise InputError(f"curves of {table.shape[1]} points do not fit {len(grid)} values of x")
    seeds, points = table.shape
    bad = np.flatnonzero((table <= 0.0).any(axis=0))
    if len(bad):
        why = f"not positive at x = {grid[bad[0]]:g}"
        return Exponent(np.nan, np.nan, np.nan, points, seeds, why)
    slopes = np.diff(np.log(table), axis=1) / np.diff(np.log(grid))
    local = [median_interval(column) for column in slopes.T]
    if len(local) < FEWEST_LOCAL or not _agree(slopes, local):
        last = local[-1]
        return Exponent(last.middle, last.low, last.high, 2, seeds, "", local=True)
    span = np.log(grid[-1] / grid[0])
    whole = median_interval(np.log(table[:, -1] / table[:, 0]) / span)
    middles = [interval.middle for interval in local]
    low, high = np.minimum(whole.low, min(middles)), np.maximum(whole.high, max(middles))
    return Exponent(whole.middle, float(low), float(high), points, seeds, "")  # NaN stays NaN


def _agree(slopes: Array, local: list[Interval]) -> bool:
    """Return True if local slopes [S, J] agree: their intervals share a point, and do not drift."""
    rounding = AGREE * max(1.0, abs(local[-1].middle))
    half = slopes.shape[1] // 2
    drift = median_interval(slopes[:, -half:].mean(axis=1) - slopes[:, :half].mean(axis=1))
    ends = [_ends(interval) for interval in local]
    low, high = _ends(drift)
    together = max(low for low, _ in ends) <= min(high for _, high in ends) + rounding
    return together and low <= rounding and high >= -rounding


def _ends(interval: Interval) -> tuple[float, float]:
    """Return the two ends of an interval, or twice its median if it has no ends."""
    alone = np.isnan(interval.low)
    return (interval.middle, interval.middle) if alone else (interval.low, interval.high)


def _slopes(grid: Array, table: Array) -> Array:
    log_x = np.log(grid) - np.log(grid).mean()
    return np.asarray(np.log(table) @ log_x / (log_x @ log_x))


def _why_not(grid: Array, table: Array) -> str:
    seeds, points = table.shape
    if points < FEWEST_POINTS:
        return f"only {points} points in the range: at least {FEWEST_POINTS} are needed"
    decades = np.log10(grid.max() / grid.min())
    if decades < SHORTEST_SPAN:
        return f"only {decades:.2g} decades of x: at least {SHORTEST_SPAN} are needed"
    bad = np.flatnonzero((table <= 0).any(axis=0))
    if len(bad):
        many = int((table <= 0).any(axis=1).sum())
        return (
            f"not positive at {len(bad)} of {points} points, x = {grid[bad[0]]:g} among them,"
            f" on {many} of {seeds} seeds"
        )
    return ""
