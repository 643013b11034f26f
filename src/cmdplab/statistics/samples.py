"""Samples and curves over seeds: their checks, their quantiles, and the draws for resampling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cmdplab.errors import InputError
from cmdplab.types import Array

LEVEL = 0.95  # of every interval and band, unless another is asked for


def fewest(level: float = LEVEL) -> int:
    """The fewest independent samples that carry an interval: the smallest S, 1 - 2 / 2^S >= level.

    That is how often the range from the smallest to the largest holds the median, whatever the
    law. It is asked of every interval, band and comparison, of means as well.
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"the level must lie between 0 and 1, not {level}")
    return int(np.ceil(1.0 - np.log2(1.0 - level) - 1e-9))


FEWEST = fewest()  # 6: 1 - 2 / 2^6 = 0.97, 1 - 2 / 2^5 = 0.94


def quantile_curves(curves: ArrayLike, quantiles: Sequence[float] = (0.25, 0.5, 0.75)) -> Array:
    """[Q, T]: at each point, on its own, the quantiles over the seeds of `curves` [S, T].

    The q-quantile of y_(1) <= ... <= y_(S) is read at rank 1 + q (S - 1), linearly between its
    neighbours. It describes these seeds; it is no statement about others (see `median_band`).
    """
    at = np.asarray(quantiles, dtype=np.float64)
    if not ((at >= 0.0) & (at <= 1.0)).all():
        raise InputError(f"quantiles lie between 0 and 1, not {list(quantiles)}")
    return np.asarray(np.quantile(checked_curves(curves), at, axis=0))


def median_curve(curves: ArrayLike) -> Array:
    """[T]: at each point the median over the seeds of `curves` [S, T]."""
    return np.asarray(quantile_curves(curves, (0.5,))[0])


def checked_sample(values: ArrayLike, what: str = "the values") -> Array:
    """A list of finite numbers, one at least."""
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not len(sample):
        raise InputError(f"{what} must be a list of numbers, not of shape {sample.shape}")
    if not np.isfinite(sample).all():
        where = int(np.argmin(np.isfinite(sample)))
        raise InputError(f"{what} must be finite, but number {where + 1} is {sample[where]}")
    return sample


def checked_curves(curves: ArrayLike) -> Array:
    """One finite row for each seed, [S, T], S >= 1 and T >= 1."""
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
    """Refuse an interval, band or comparison from fewer samples than `fewest`."""
    if samples < fewest(level):
        raise InputError(too_few(samples, what=what, level=level))


def too_few(
    samples: int, noun: str = "seeds", what: str = "an interval", level: float = LEVEL
) -> str:
    """Empty from `fewest` samples on; else why there is no interval of that level, as a sentence.

    The smallest and the largest of S samples hold the median with probability 1 - 2 / 2^S: with
    fewer than six nothing between them can reach 0.95, whatever the method.
    """
    if samples >= fewest(level):
        return ""
    words = f"one {noun.removesuffix('s')} is" if samples == 1 else f"{samples} {noun} are"
    return f"{words} too few for {what}: at least {fewest(level)}"


def check_resampling(level: float, resamples: int) -> None:
    """The level is a probability, and the resamples are enough to see its tail."""
    fewest(level)  # refuses what is no probability
    if (1.0 - level) * (resamples + 1) < 1.0 - 1e-9:  # 10 draws are enough for a level of 0.9
        raise InputError(f"{resamples} resamples are too few for a level of {level}")


def generator(seed: int) -> np.random.Generator:
    """The draws of one call, and of no other."""
    return np.random.Generator(np.random.Philox(seed))


def in_fixed_order(table: Array) -> Array:
    """The rows [S, T] sorted by their first entry, then their second, and so on."""
    return np.asarray(table[np.lexsort(table.T[::-1])])


def upper_quantile(draws: Array, level: float) -> float:
    """The draw of rank ceil(level (B + 1)) among B: at most 1 - level lie above, draw included."""
    rank = int(np.ceil(level * (len(draws) + 1) - 1e-9))
    return float(np.sort(draws)[min(rank, len(draws)) - 1])
