"""Fitted power laws: the slope of log y on log x, with an interval over runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cmdplab.errors import InputError
from cmdplab.statistics.intervals import bca_interval
from cmdplab.statistics.samples import check_resampling, checked_curves, checked_sample, too_few
from cmdplab.types import Array

FEWEST_POINTS = 8
SHORTEST_SPAN = 0.5  # decades of x
BEND = 0.25  # by which the slopes of the two halves of a power law may differ, relatively


class Exponent(NamedTuple):
    """A fitted exponent and its interval; NaN, with the reason in `why_not`, if there is none.

    The ends alone are NaN where the seeds are too few for an interval.
    """

    slope: float
    low: float
    high: float
    points: int
    seeds: int
    why_not: str


def fit_exponent(
    x: ArrayLike,
    y: ArrayLike,
    within: tuple[float, float] = (0.0, np.inf),
    level: float = 0.95,
    *,
    resamples: int = 4999,
    seed: int = 0,
) -> Exponent:
    """The least-squares slope of log y [S, T] on log x [T] over within[0] <= x <= within[1].

    Each run has its slope; the fit is their mean, which is the slope of the mean of log y. The
    interval is the expanded BCa interval of that mean: runs are resampled, never points, since
    the points of a run depend on each other. Its limits are those of `bca_interval`.

    All points of the grid weigh the same, so a grid equally spaced in log x is best. The interval
    is for the slope over this range of these curves: it does not say that they follow a power
    law (`power_law` asks), nor that the exponent stays the same beyond. No fit is given (`why_not`
    says why) for fewer than 8 points, less than half a decade of x, or values that are not
    positive; fewer than six runs have a fit and no interval.
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
    """`fit_exponent` of y [S, T] in x [T], where both halves of the range of log x say the same.

    The slopes of the halves, means over runs, must agree to a quarter of the larger; else there is
    no exponent, since one number would describe neither half.
    """
    fit = fit_exponent(x, y)
    if fit.why_not:
        return fit
    grid, table = checked_sample(x, "x"), checked_curves(y)
    lower = np.log(grid) <= (np.log(grid.min()) + np.log(grid.max())) / 2.0
    if min(lower.sum(), (~lower).sum()) < 2:
        return _none(fit, "one half of the range has a single point")
    one, other = (float(_slopes(grid[h], table[:, h]).mean()) for h in (lower, ~lower))
    if abs(one - other) > BEND * max(abs(one), abs(other)):
        return _none(fit, f"no power law: slopes {one:.1f} and {other:.1f}")
    return fit


def _none(fit: Exponent, why: str) -> Exponent:
    return Exponent(np.nan, np.nan, np.nan, fit.points, fit.seeds, why)


def _slopes(grid: Array, table: Array) -> Array:
    """[S]: the least-squares slope of log y on log x of each run."""
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
