"""Intervals for one number: exact for medians and frequencies, else the bootstrap's."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cmdplab.errors import InputError
from cmdplab.statistics.samples import (
    LEVEL,
    check_resampling,
    checked_sample,
    generator,
    need_enough,
    tail_warning,
    too_few,
)
from cmdplab.types import Array

Statistic = Callable[[Array], Array]  # from samples [..., S] to one value for each sample [...]
NAMED: dict[str, Statistic] = {
    "mean": lambda samples: np.asarray(samples.mean(axis=-1)),
    "median": lambda samples: np.asarray(np.median(samples, axis=-1)),
}


class Interval(NamedTuple):
    """Statistic of the seeds (`middle`) with an interval; the ends are NaN for too few seeds."""

    low: float
    middle: float
    high: float
    level: float
    seeds: int
    caution: str = ""  # a warning about a mean of samples with a heavy tail, or empty


class Frequency(NamedTuple):
    """An observed frequency (middle) and the exact interval for its probability."""

    low: float
    middle: float
    high: float
    level: float
    successes: int
    trials: int


def bca_interval(
    values: ArrayLike,
    statistic: str | Statistic = "median",
    level: float = LEVEL,
    *,
    expanded: bool = True,
    resamples: int = 4999,
    seed: int = 0,
) -> Interval:
    """Return the bias-corrected and accelerated bootstrap interval of a statistic of `values` [S].

    Its ends are the quantiles Phi(z0 + (z0 ± z) / (1 - a (z0 ± z))) of the resampled statistic. z0
    is the normal score of the share of resamples below the observed value (ties count half). a is
    sum d^3 / (6 (sum d^2)^(3/2)) for the jackknife's deviations d. z is the normal quantile of
    (1 + level) / 2, and Phi the normal distribution function. With `expanded`, z is sqrt(S /
    (S - 1)) times Student's quantile with S - 1 degrees of freedom instead. This corrects the
    bootstrap's spread, which is too small by sqrt((S - 1) / S) (Hesterberg's expansion).

    `statistic` is "mean", "median" or a function from [..., S] to [...]. For a median prefer
    `median_interval`, which is exact.

    The guarantee is asymptotic only. Simulated coverage at 0.95
    (`benchmarks/interval_coverage.py`):

        values                       S = 6    10     20     50
        mean, normal                  0.92   0.94   0.95   0.95
        mean, exponential             0.89   0.92   0.94   0.94
        mean, log-normal, sigma 0.5   0.90   0.93   0.94   0.94
        mean, log-normal, sigma 1     0.85   0.88   0.90   0.92
        mean, Pareto, index 1.5       0.68   0.70   0.75   0.78

    An interval of a mean is no 95 % interval where tails are heavy, and no method makes it one: a
    few samples do not show the tail. `caution` warns if they do (`tail_warning`). The interval of a
    mean or median never reaches beyond the smallest and largest seed. It has zero width if all
    seeds agree, which says nothing about other seeds. Fewer seeds than `fewest(level)`, six at
    0.95, are refused.
    """
    sample = np.sort(checked_sample(values))
    check_resampling(level, resamples)
    S = len(sample)
    need_enough(S, "an interval", level)
    caution = tail_warning(sample) if statistic == "mean" else ""
    if isinstance(statistic, str):
        if statistic not in NAMED:
            raise InputError(f"unknown statistic {statistic!r}: choose from {', '.join(NAMED)}")
        statistic = NAMED[statistic]
    observed = float(statistic(sample))
    if sample[0] == sample[-1]:
        return Interval(observed, observed, observed, level, S, caution)
    draws = np.asarray(statistic(sample[generator(seed).integers(0, S, (resamples, S))]))
    left_out = sample[np.nonzero(~np.eye(S, dtype=bool))[1].reshape(S, S - 1)]
    jackknife = np.asarray(statistic(left_out))
    if draws.shape != (resamples,) or jackknife.shape != (S,):
        raise InputError("the statistic must turn [..., S] into [...]: reduce the last axis")
    if not (np.isfinite(observed) and np.isfinite(draws).all() and np.isfinite(jackknife).all()):
        raise InputError("the statistic is not finite on some resample of these seeds")

    same = 1e-12 * np.abs(draws).max()  # equal up to rounding
    below = np.mean(draws < observed - same) + np.mean(np.abs(draws - observed) <= same) / 2
    bias = special.ndtri(np.clip(below, 1 / (resamples + 1), resamples / (resamples + 1)))
    deviation = jackknife.mean() - jackknife
    deviation /= max(np.abs(deviation).max(), np.finfo(float).tiny)
    spread = float(deviation @ deviation)
    acceleration = float(np.sum(deviation**3)) / (6 * spread**1.5) if spread > 0 else 0.0
    z = special.ndtri((1 + level) / 2)
    if expanded:
        z = special.stdtrit(S - 1, (1 + level) / 2) * np.sqrt(S / (S - 1))
    scores = bias + np.array([-z, z])
    slack = 1 - acceleration * scores
    shifted = bias + scores / np.where(slack > 0, slack, 1.0)
    ranks = np.where(slack > 0, special.ndtr(shifted), [0.0, 1.0])
    low, high = np.quantile(draws, ranks)
    return Interval(float(low), observed, float(high), level, S, caution)


def median_interval(values: ArrayLike, level: float = LEVEL) -> Interval:
    """Return the exact interval [y_(k), y_(S+1-k)] for the median behind a sample `values` [S].

    y_(1) <= ... <= y_(S) are the sorted values. k is the largest with 1 - 2 P(X <= k - 1) >= level,
    X ~ Binomial(S, 1/2). The interval covers at least as often as the level for every distribution
    of independent samples, heavy tails and ties included. As a rule it covers more often, because k
    is an integer: 0.969, 0.979, 0.959 for S = 6, 10, 20. With fewer samples than `fewest(level)`
    the ends are NaN, and only the median is returned.
    """
    sample = np.sort(checked_sample(values))
    S, middle = len(sample), float(np.median(sample))
    if too_few(S, level=level):
        return Interval(np.nan, middle, np.nan, level, S)
    k = median_rank(S, level)
    return Interval(float(sample[k - 1]), middle, float(sample[S - k]), level, S)


def median_rank(samples: int, level: float = LEVEL) -> int:
    """Return the rank k of `median_interval`, or 0 if no rank reaches the level."""
    ranks = np.arange(1, samples // 2 + 1)
    return int(np.sum(2 * special.bdtr(ranks - 1, samples, 0.5) <= 1 - level))


def binomial_interval(successes: int, trials: int, level: float = 0.95) -> Frequency:
    """Return the exact (Clopper-Pearson) interval for the probability p of a success.

    X ~ Binomial(n, p) is the number of successes, k is the observed one, and n is the number of
    trials. P(X >= k | p = low) = P(X <= k | p = high) = (1 - level) / 2. low = 0 for k = 0, and
    high = 1 for k = n. The interval covers p with probability at least `level` for every p and n,
    as a rule more often, because X is discrete. The trials must be independent.
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"the level must lie between 0 and 1, not {level}")
    if trials < 1:
        raise InputError("no trials: there is no frequency to give an interval for")
    if not 0 <= successes <= trials:
        raise InputError(f"{successes} successes in {trials} trials are impossible")
    tail = (1 - level) / 2
    k, n = successes, trials
    low = float(special.betaincinv(k, n - k + 1, tail)) if k else 0.0
    high = float(special.betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return Frequency(low, k / n, high, level, k, n)


class Estimate(NamedTuple):
    """Mean over episodes of an episode's sum of rewards, and an interval for the expected sum."""

    low: float
    mean: float
    high: float
    episodes: int


def estimate(
    count: int, total: float, squares: float, bounds: tuple[float, float], level: float = LEVEL
) -> Estimate:
    """Return the mean m of an episode's sum v over n episodes, with the interval m ± z s / sqrt(n).

    count, total, squares : n, the sum of v and the sum of v² over the episodes.
    bounds : the lowest and the highest possible v. The interval stays between them.

    z is the normal quantile, so that the level is right for many episodes. If all episodes agree, s
    = 0 does not bound the unseen values. Then p is the exact upper end for the probability of an
    event that happened in none of n episodes. The interval is m - p (m - lowest) to m + p (highest
    - m).
    """
    low, high = bounds
    mean = total / count
    variance = max(squares - total * mean, 0.0) / max(count - 1, 1)
    if variance <= 1e-12 * (high - low) ** 2:
        p = binomial_interval(0, count, level).high
        return Estimate(mean - p * (mean - low), mean, mean + p * (high - mean), count)
    half = float(special.ndtri((1.0 + level) / 2.0)) * float(np.sqrt(variance / count))
    return Estimate(max(mean - half, low), mean, min(mean + half, high), count)
