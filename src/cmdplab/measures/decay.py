"""The fit of c + a k^-p to the errors of a run, with an upper confidence bound on the limit c.

k is the number of an episode, and K is the last. `curves` are the columns [T] of a run's record
over its grid points (docs/records.md). The mean of max(gap, 0) + max(violation, 0) over many
episodes is hardly noisy where single episodes are. The largest error is biased: the largest of n
draws of noise grows with n. The sums of regret in a record give the mean error of each block of
half an octave exactly.

For each exponent p of a grid, weighted least squares give c and a. The weight of a block is one
over the variance of its mean, which follows from the eighths of the block, less a line. The
interval of c holds each c whose weighted sum of squares exceeds the smallest by at most `ROOM`
variances of the residuals. Errors of another form leave large residuals, hence a wide interval.

Two fits are made, to the last four and to the last three quadruplings of a run. The larger upper
end counts, so that a plateau at the beginning cannot hide a limit. A third and a fourth fit take
the largest error of each block. Peaks of swinging errors may be more regular than their means.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.measures.envelope import errors
from cmdplab.types import Array

BLOCKS = 2  # in an octave
OCTAVES = 8  # of the longer fit
RECENT = 6 * BLOCKS  # blocks of the shorter fit
PARTS = 8  # parts of a block
ROOM = 6.0  # 2.45 squared: with 13 degrees of freedom, 98.5 % of Student's t lie below 2.45
ROUNDING = 1e-6  # relative: smaller standard deviations are rounding
RATES = np.geomspace(0.003, 4.0, 1440)[:, None]  # exponents p, 0.5 % apart


class Decay(NamedTuple):
    """Interval of the limit c as shares of the fitted error at the end, and local exponents."""

    low: float  # lower end of the interval of c
    high: float  # upper end; 1 if the mean errors do not fall
    peaks: float  # upper end of c for the largest error of each block
    exponents: Array  # [2], -d ln(mean error) / d ln k over K/64, K/16, K/4, K


def decay(curves: dict[str, Array]) -> Decay:
    """Return the fit of c + a k^-p to mean and largest errors of a run of `SHORTEST` episodes."""
    episode, error = curves["episode"], errors(curves)
    summed = curves["strong_regret"] + curves.get("strong_violation_regret", 0.0)
    ends = episode[-1] * np.exp2(-np.arange(OCTAVES * BLOCKS, -1.0, -1.0) / BLOCKS)
    at = np.searchsorted(episode, ends * (1.0 - 1e-12))
    width = np.diff(episode[at])
    mean = np.diff(summed[at]) / width
    variance = _variance(episode, summed, at) + (ROUNDING * mean) ** 2
    largest = np.maximum.reduceat(error[: at[-1] + 1], at[:-1] + 1)
    first, last = (episode[at[:-1]] + 0.5) / episode[-1], (episode[at[1:]] + 0.5) / episode[-1]
    powers = (last ** (1.0 - RATES) - first ** (1.0 - RATES)) / (1.0 - RATES) / (last - first)
    peaks = (first + 0.5 / episode[-1]) ** -RATES  # of the first episode of each block
    low, high = limits(powers, mean, variance)
    recent = limits(powers[:, -RECENT:], mean[-RECENT:], variance[-RECENT:])[1]
    most = limits(peaks, largest, largest**2)[1]
    latest = limits(peaks[:, -RECENT:], largest[-RECENT:], largest[-RECENT:] ** 2)[1]
    return Decay(low, max(high, recent), max(most, latest), _exponents(mean, width))


def limits(powers: Array, values: Array, variance: Array) -> tuple[float, float]:
    """Return the interval of the limit c as two shares of the fitted value c + a k^-p at k = K.

    powers : [P, B], the powers k^-p of P exponents p for B blocks.
    values, variance : [B], the errors of the blocks and their variances.
    """
    if np.any(values <= 0.0):
        return 0.0, 1.0
    total = np.sum(1.0 / variance)
    weight = 1.0 / variance / total
    centre = powers @ weight
    x, y = powers - centre[:, None], values - values @ weight
    spread = x * x @ weight
    slope = x * y @ weight / spread
    c = values @ weight - slope * centre
    rest = total * ((y - slope[:, None] * x) ** 2 @ weight)
    rest[slope <= 0.0] = np.inf  # errors that grow have no limit
    best = int(np.argmin(rest))
    if np.isinf(rest[best]):
        return 0.0, 1.0
    room = ROOM * (rest[best] / (len(values) - 3) + 1e-9) - (rest - rest[best])
    fits = room >= 0.0
    reach = np.sqrt(room[fits] * (1.0 + centre[fits] ** 2 / spread[fits]) / total)
    end = c[best] + slope[best]  # k = K
    low, high = np.clip([np.min(c[fits] - reach) / end, np.max(c[fits] + reach) / end], 0.0, 1.0)
    return float(low), float(high)


def _variance(episode: Array, summed: Array, at: Array) -> Array:
    """Return the variance of each block's mean error from its eighths, less a line: [blocks]."""
    parts = np.linspace(at[:-1], at[1:], PARTS + 1).round().astype(int)  # [PARTS + 1, blocks]
    means = np.diff(summed[parts], axis=0) / np.diff(episode[parts], axis=0)
    line = np.vander(np.linspace(-1.0, 1.0, PARTS), 2)
    left = means - line @ np.linalg.lstsq(line, means, rcond=None)[0]
    return np.asarray(np.sum(left**2, axis=0) / (PARTS - 2) / PARTS)


def _exponents(mean: Array, width: Array) -> Array:
    quadruplings = (mean * width)[-RECENT:].reshape(3, -1).sum(axis=1)
    quadruplings /= width[-RECENT:].reshape(3, -1).sum(axis=1)
    logs = np.log(np.maximum(quadruplings, np.finfo(np.float64).tiny))
    return np.asarray(-np.diff(logs) / np.log(4.0))
