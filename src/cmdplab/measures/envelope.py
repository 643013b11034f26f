"""The tail envelope of a run, and the swings of its gap.

`curves` are the columns [T] of a run's record over its grid points (docs/records.md). The error of
an episode j is max(gap^j, violation^j, 0), and E(k) is the largest error from episode k to the end,
K. E is the inverse of the last mistake: a run
makes its last mistake of epsilon at the largest k with E(k) > epsilon. Uniform-PAC is a statement
about E, and a run converges if and only if E goes to zero. The curves of a record hold the maximum
between grid points, so that E at a grid point is exact.

Episodes after K are unknown, and E(k) near the end is too small. Rates are therefore taken between
the episodes K/4, K/16, K/64, ... These split a run into quadruplings: K/16 to K/4 is one.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from cmdplab.types import Array

ONSET = 32  # episodes at the beginning that belong to no quadrupling
FEWEST = 4  # quadruplings: three local exponents, so that there is a trend
SHORTEST = ONSET * 4**FEWEST
END = 2.0**-0.25  # share of a run before its end
FEWEST_POINTS = 64  # equally spaced points below which no period is given
CLEAR = 0.3  # share of the power that a peak and its neighbours must hold


class Envelope(NamedTuple):
    """Envelope E over J quadruplings of a run, which begin at K/4^J, ..., K/16, K/4."""

    start: Array  # [J], the first episode of each quadrupling
    sup: Array  # [J], E(start): the largest error from there to the end of the run
    highest: Array  # [J], the largest error within each
    swing: Array  # [J], the smaller of the largest rise and the largest fall within each
    end: float  # the largest error from episode 0.84 K on

    def exponents(self) -> Array:
        """Return the local exponents -d ln E / d ln k between quadruplings, in order: [J - 1]."""
        return _rates(self.sup)

    def exponents_within(self) -> Array:
        """Return exponents of the largest error within quadruplings, < 0 for growth: [J - 1]."""
        return _rates(self.highest)

    @property
    def last_exponent(self) -> float:
        """The exponent of the last quadrupling, from K/4 to the end, for smooth errors alone."""
        return float(np.log(self.highest[-1] / self.end) / np.log(4.0 * END))


def envelope(curves: dict[str, Array]) -> Envelope:
    """Return the envelope of the curves of a run over all quadruplings behind the onset."""
    episode, error = curves["episode"], errors(curves)
    K = float(episode[-1])
    many = max(int(np.floor(np.log(K / ONSET) / np.log(4.0) + 1e-9)), 0)
    bounds = K / 4.0 ** np.arange(many, -1.0, -1.0)
    places = np.searchsorted(episode, bounds)  # where a segment ends at the bound or behind it
    blocks = [slice(a, b + 1) for a, b in itertools.pairwise(places)]
    highest = np.array([error[block].max() for block in blocks])
    return Envelope(
        start=bounds[:-1],
        sup=np.maximum.accumulate(highest[::-1])[::-1],
        highest=highest,
        swing=np.array([swing(curves, block) for block in blocks]),
        end=float(error[np.searchsorted(episode, END * K) :].max()),
    )


def errors(curves: dict[str, Array]) -> Array:
    """Return the error at each grid point, the largest since the grid point before: [T]."""
    found = np.maximum(curves["gap_max"], 0.0)
    return np.maximum(found, curves["violation_max"]) if "violation_max" in curves else found


def swing(curves: dict[str, Array], block: slice) -> float:
    """Return the smaller of the largest rise and the largest fall of gap or violation in a block.

    The block is a slice of the grid points. The result is zero for a monotone curve, however steep.
    Minima and maxima between grid points count, so that no swing is missed. A violation below zero
    counts as zero.
    """
    swings = [_both_ways(curves["gap_min"][block], curves["gap_max"][block])]
    if "violation_max" in curves:
        ends = (np.maximum(curves[f"violation_{end}"][block], 0.0) for end in ("min", "max"))
        swings.append(_both_ways(*ends))
    return max(swings)


def _both_ways(low: Array, high: Array) -> float:
    rise = np.max(high[1:] - np.minimum.accumulate(low)[:-1], initial=0.0)
    fall = np.max(np.maximum.accumulate(high)[:-1] - low[1:], initial=0.0)
    return float(min(rise, fall))


def _rates(values: Array) -> Array:
    return np.asarray(np.log(values[:-1] / values[1:]) / np.log(4.0))


class Oscillation(NamedTuple):
    """Amplitude and period of the gap at the end of a run."""

    amplitude: float  # largest less smallest gap over the second half of the run
    period: float | None  # in episodes; None if none stands out or the curve is too coarse


def oscillation(curves: dict[str, Array]) -> Oscillation:
    """Return the amplitude of the gap over the second half of a run, and its period near the end.

    The period belongs to the strongest frequency of the gap, less its straight line, on the latest
    equally spaced grid points. Periods under four of their distances are not resolved.
    """
    half = curves["episode"] >= curves["episode"][-1] / 2
    amplitude = float(curves["gap_max"][half].max() - curves["gap_min"][half].min())
    return Oscillation(amplitude, _period(curves["episode"], curves["gap"]))


def _period(episodes: Array, values: Array) -> float | None:
    x, y = _equally_spaced(episodes, values)
    if len(x) < FEWEST_POINTS:
        return None
    level = y - np.polyval(np.polyfit(x - x[0], y, 1), x - x[0])
    power = np.abs(np.fft.rfft(level * np.hanning(len(level)))) ** 2
    power[0] = 0.0
    peak = int(np.argmax(power))
    total = float(power.sum())
    near = float(power[max(peak - 1, 1) : peak + 2].sum())
    if total <= 0.0 or near < CLEAR * total or peak < 2 or peak > len(x) // 4:
        return None
    left, top, right = np.log(power[peak - 1 : peak + 2] + 1e-300)
    shift = 0.5 * (left - right) / (left - 2.0 * top + right)  # the top of a parabola through them
    return float(len(x) * (x[1] - x[0]) / (peak + shift))


def _equally_spaced(episodes: Array, values: Array) -> tuple[Array, Array]:
    """Return the longest of the last stretches of equally spaced points; spacings double with k."""
    changes = np.flatnonzero(np.diff(episodes, 2)) + 1
    ends = [len(episodes) - 1, *changes[::-1], 0][:4]
    last, first = max(itertools.pairwise(ends), key=lambda pair: pair[0] - pair[1])
    return episodes[first : last + 1], values[first : last + 1]
