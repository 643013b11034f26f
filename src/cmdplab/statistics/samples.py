"""Samples and curves over seeds: their checks, quantiles, tails, and the draws for resampling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cmdplab.errors import InputError
from cmdplab.types import Array

LEVEL = 0.95  # default level of every interval and band
# The `imbalance` of S normal samples stays below USUAL[S] in nine of ten cases (10^5 draws).
USUAL = {6: 3.73, 8: 3.10, 10: 2.73, 15: 2.33, 20: 2.06, 30: 1.84, 50: 1.66, 100: 1.50}


def fewest(level: float = LEVEL) -> int:
    """Return the least number of samples that carries an interval of this level.

    It is the smallest S with 1 - 2 / 2^S >= level, the probability that the range from the smallest
    to the largest sample holds the median. This probability holds for every distribution. Every
    interval, band and comparison needs S samples, of means as well.
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"the level must lie between 0 and 1, not {level}")
    return int(np.ceil(1.0 - np.log2(1.0 - level) - 1e-9))


FEWEST = fewest()  # 6: 1 - 2 / 2^6 = 0.97, 1 - 2 / 2^5 = 0.94


def quantile_curves(curves: ArrayLike, quantiles: Sequence[float] = (0.25, 0.5, 0.75)) -> Array:
    """Return quantiles [Q, T] over the seeds of `curves` [S, T], at each point separately.

    The q-quantile of y_(1) <= ... <= y_(S) is read at rank 1 + q (S - 1), linearly between its
    neighbours. It describes these seeds, not others (see `median_band`).
    """
    at = np.asarray(quantiles, dtype=np.float64)
    if not ((at >= 0.0) & (at <= 1.0)).all():
        raise InputError(f"quantiles lie between 0 and 1, not {list(quantiles)}")
    return np.asarray(np.quantile(checked_curves(curves), at, axis=0))


def median_curve(curves: ArrayLike) -> Array:
    """Return the median over the seeds of `curves` [S, T] at each point: [T]."""
    return np.asarray(quantile_curves(curves, (0.5,))[0])


def checked_sample(values: ArrayLike, what: str = "the values") -> Array:
    """Return the values as an array [S]; refuse an empty list and numbers that are not finite."""
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not len(sample):
        raise InputError(f"{what} must be a list of numbers, not of shape {sample.shape}")
    if not np.isfinite(sample).all():
        where = int(np.argmin(np.isfinite(sample)))
        raise InputError(f"{what} must be finite, but number {where + 1} is {sample[where]}")
    return sample


def checked_curves(curves: ArrayLike) -> Array:
    """Return the curves as an array [S, T]; refuse an empty one and numbers that are not finite."""
    table = np.asarray(curves, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise InputError(f"curves must hold one row for each seed, not shape {table.shape}")
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise InputError(
            f"the curve of seed number {row + 1} is not finite at point {column + 1}:"
            f" {table[row, column]}"
        )
    return table


def need_enough(samples: int, what: str, level: float = LEVEL) -> None:
    """Refuse an interval, band or comparison (`what`) from fewer samples than `fewest(level)`."""
    if samples < fewest(level):
        raise InputError(too_few(samples, what=what, level=level))


def too_few(
    samples: int, noun: str = "seeds", what: str = "an interval", level: float = LEVEL
) -> str:
    """Return a sentence if there are fewer samples than `fewest(level)`; an empty one otherwise.

    noun, what : the words for the samples and for the thing that they are too few for.

    The smallest and the largest of S samples hold the median with probability 1 - 2 / 2^S. With
    fewer than six, no method reaches 0.95 between them.
    """
    if samples >= fewest(level):
        return ""
    words = f"one {noun.removesuffix('s')} is" if samples == 1 else f"{samples} {noun} are"
    return f"{words} too few for {what}: at least {fewest(level)}"


def check_resampling(level: float, resamples: int) -> None:
    """Refuse a level that is no probability, and too few resamples to estimate a quantile of it."""
    fewest(level)  # refuses a level that is no probability
    if (1.0 - level) * (resamples + 1) < 1.0 - 1e-9:  # 10 draws are enough for a level of 0.9
        raise InputError(f"{resamples} resamples are too few for a level of {level}")


def generator(seed: int) -> np.random.Generator:
    """Return a random generator that depends on the seed alone."""
    return np.random.Generator(np.random.Philox(seed))


def in_fixed_order(table: Array) -> Array:
    """Return the rows [S, T] sorted by their first entry, then their second, and so on."""
    return np.asarray(table[np.lexsort(table.T[::-1])])


def upper_quantile(draws: Array, level: float) -> float:
    """Return the draw of rank ceil(level (B + 1)) among B sorted draws, at most the largest."""
    rank = int(np.ceil(level * (len(draws) + 1) - 1e-9))
    return float(np.sort(draws)[min(rank, len(draws)) - 1])


def imbalance(curves: ArrayLike) -> Array:
    """Return the longer tail over the shorter at each point of `curves` [S, T]: [T].

    The tails are y_(S) - m and m - y_(1) around the median m. The ratio is 1 where all samples
    agree, and infinite where one tail is empty.
    """
    table = checked_curves(curves)
    middle = np.median(table, axis=0)
    above, below = table.max(axis=0) - middle, middle - table.min(axis=0)
    longer, shorter = np.maximum(above, below), np.minimum(above, below)
    some = np.where(shorter > 0.0, shorter, 1.0)
    return np.where(longer == 0.0, 1.0, np.where(shorter > 0.0, longer / some, np.inf))


def usual_imbalance(samples: int) -> float:
    """Return the `imbalance` that this number of normal samples exceeds in one case of ten."""
    return float(np.interp(np.log(samples), np.log(list(USUAL)), list(USUAL.values())))


def tail_warning(values: ArrayLike) -> str:
    """Return a warning if one tail of `values` [S] is so long that a mean is at risk, else "".

    The longest tail decides a mean. An interval around it, made from a few samples, is too short if
    that tail is heavy and not seen (`bca_interval` has the simulated coverage). The ratio of the
    two tails is compared with that of normal samples. The warning misses cases: it finds 0.45,
    0.73, 0.96 of log-normal samples (sigma 1) for S = 6, 10, 20, and 0.61, 0.88, 0.99 of Pareto
    samples (index 1.5). It also warns about 0.10 of normal samples. With few samples no warning
    proves nothing, because samples that miss the tail look harmless.
    """
    sample = checked_sample(values)
    return _sentence(float(imbalance(sample[:, None])[0]), len(sample), "")


def tail_warning_of_curves(curves: ArrayLike) -> str:
    """Return `tail_warning` for curves [S, T], by the median `imbalance` of the points."""
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
