"""Simulated coverage of intervals and bands at 0.95, and false claims among equal algorithms.

Every law has a known truth; a trial draws S samples (or curves) and asks whether the interval (or
the band, over the whole curve) holds it. Six minutes on one core with the default number of trials.

    python benchmarks/interval_coverage.py [--trials 1000] [--tables intervals,bands,counts,claims]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import stats

from cmdplab.errors import InputError
from cmdplab.statistics import (
    Band,
    bca_interval,
    compare_all,
    count_band,
    mean_band,
    median_band,
    median_interval,
    pointwise_median_band,
    tail_warning,
)

SAMPLES = (6, 10, 20, 50)
POINTS = 40
Draws = np.random.Generator


class Law(NamedTuple):
    """An increasing function of standard normal numbers, with its mean and its median."""

    of: Callable[[np.ndarray], np.ndarray]
    mean: float
    median: float


def _pareto(z: np.ndarray) -> np.ndarray:
    return stats.norm.sf(z) ** (-1 / 1.5)


LAWS = {
    "normal": Law(lambda z: z, 0.0, 0.0),
    "exponential": Law(lambda z: -stats.norm.logsf(z), 1.0, float(np.log(2.0))),
    "log-normal, sigma 0.5": Law(lambda z: np.exp(0.5 * z), float(np.exp(0.125)), 1.0),
    "log-normal, sigma 1": Law(np.exp, float(np.exp(0.5)), 1.0),
    "Pareto, index 1.5": Law(_pareto, 3.0, float(2.0 ** (1 / 1.5))),
}


def ar1(draws: Draws, shape: tuple[int, ...], keep: float = 0.9) -> np.ndarray:
    """Stationary curves along the last axis, with standard normal margins."""
    steps = draws.standard_normal(shape)
    for t in range(1, shape[-1]):
        steps[..., t] = keep * steps[..., t - 1] + np.sqrt(1 - keep**2) * steps[..., t]
    return steps


def counts(draws: Draws, shape: tuple[int, ...], worse: float) -> np.ndarray:
    """Mistakes along a grid of epsilon, 30,000 to 50; one sample in ten has `worse` times as many.

    Poisson, with an intensity that varies between samples by a tenth (gamma, shape 100).
    """
    pieces = -np.diff(np.geomspace(3e4, 50.0, POINTS), append=0.0)
    many = np.where(draws.random((*shape, 1)) < 0.1, worse, 1.0)
    scale = draws.gamma(100, 0.01, (*shape, 1)) * many
    return np.cumsum(draws.poisson(scale * pieces)[..., ::-1], axis=-1)[..., ::-1].astype(float)


def intervals(trials: int) -> Iterator[str]:
    """How often the mean's BCa interval and the median's exact one hold the truth."""
    for name, law in LAWS.items():
        for S in SAMPLES:
            samples = law.of(np.random.default_rng(S).standard_normal((trials, S)))
            mean, median, alarm = [], [], []
            for i, each in enumerate(samples):
                found = bca_interval(each, "mean", resamples=1999, seed=i)
                mean.append(found.low <= law.mean <= found.high)
                exact = median_interval(each)
                median.append(exact.low <= law.median <= exact.high)
                alarm.append(bool(tail_warning(each)))
            yield (
                f"{name:24} S = {S:2}: mean {np.mean(mean):.2f}  median {np.mean(median):.2f}"
                f"  tail warning {np.mean(alarm):.2f}"
            )


def held(band: Band, truth: np.ndarray | float) -> np.ndarray:
    """[T]: whether the band holds the truth at each point."""
    return (band.low <= truth) & (truth <= band.high)


def _median_bands(curves: np.ndarray, truth: np.ndarray | float) -> str:
    """Coverage of the whole curve by `median_band`, how often it is refused, and pointwise."""
    whole, points = [], []
    for i, each in enumerate(curves):
        points.append(held(pointwise_median_band(each), truth).mean())
        try:
            whole.append(held(median_band(each, resamples=999, seed=i), truth).all())
        except InputError:
            continue
    refused = 1 - len(whole) / len(curves)
    covered = f"{np.mean(whole):.2f}" if whole else "none"
    return f"median {covered} (refused {refused:.2f}), at each point {np.mean(points):.2f}"


def bands(trials: int) -> Iterator[str]:
    """AR(1) curves with the margins of the laws: the sup-t band of the mean, the median's."""
    for name, law in list(LAWS.items())[:4]:
        for S in SAMPLES:
            curves = law.of(ar1(np.random.default_rng(S), (trials, S, POINTS)))
            mean = [
                held(mean_band(each, resamples=999, seed=i), law.mean).all()
                for i, each in enumerate(curves)
            ]
            other = _median_bands(curves, law.median)
            yield f"{name:24} S = {S:2}: mean {np.mean(mean):.2f}  {other}"


def count_bands(trials: int) -> Iterator[str]:
    """Counts of mistakes: the band of the geometric mean, and the median's."""
    for name, worse in (("alike", 1.0), ("one in ten 30 x worse", 30.0)):
        many = counts(np.random.default_rng(1), (200_000,), worse)
        geometric, median = np.expm1(np.log1p(many).mean(axis=0)), np.median(many, axis=0)
        for S in SAMPLES:
            samples = counts(np.random.default_rng(S), (trials, S), worse)
            band = [
                held(count_band(each, resamples=999, seed=i), geometric).all()
                for i, each in enumerate(samples)
            ]
            other = _median_bands(samples, median)
            yield f"{name:24} S = {S:2}: geometric mean {np.mean(band):.2f}  {other}"


def claims(trials: int) -> Iterator[str]:
    """Five equal algorithms: how often some sentence claims a difference."""
    for S in SAMPLES:
        samples = np.exp(np.random.default_rng(S).standard_normal((trials, 5, S)))
        gated, bare = [], []
        for i, each in enumerate(samples):
            pairs = compare_all({str(n): values for n, values in enumerate(each)})
            gated.append(any(pair.outcome in ("smaller", "larger") for pair in pairs))
            found = (
                bca_interval(a - b, "median", resamples=999, seed=i)
                for a, b in combinations(each, 2)
            )
            bare.append(any(one.low > 0 or one.high < 0 for one in found))
        yield f"S = {S:2}: Holm {np.mean(gated):.3f}, an interval without zero {np.mean(bare):.2f}"


TABLES = {"intervals": intervals, "bands": bands, "counts": count_bands, "claims": claims}


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--tables", default=",".join(TABLES))
    asked = parser.parse_args()
    for name in asked.tables.split(","):
        print(f"\n{name}: {TABLES[name].__doc__}", flush=True)
        for line in TABLES[name](asked.trials):
            print(line, flush=True)


if __name__ == "__main__":
    main()
