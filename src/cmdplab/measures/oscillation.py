"""How a run swings in its tail: by how much, and how often.

Apart from verdict.py, which finds words on scales of H: this measures, in episodes.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from cmdplab.types import Array

FEWEST = 64  # equally spaced points below which no period is given
CLEAR = 0.3  # share of the power that a peak and its neighbours must hold


class Oscillation(NamedTuple):
    """Of the gap, over the second half of a run."""

    amplitude: float  # largest less smallest value, every episode counted
    period: float | None  # in episodes; None if none stands out or the curve is too coarse


def oscillation(curves: dict[str, Array]) -> Oscillation:
    """From the curves of a run: the amplitude by their envelope, the period by their spectrum.

    The period is that of the strongest frequency of the gap, less its straight line, on the latest
    equally spaced grid points; periods under four of their distances are not resolved.
    """
    half = curves["episode"] >= curves["episode"][-1] / 2
    amplitude = float(curves["gap_max"][half].max() - curves["gap_min"][half].min())
    return Oscillation(amplitude, _period(curves["episode"], curves["gap"]))


def _period(episodes: Array, values: Array) -> float | None:
    x, y = _equally_spaced(episodes, values)
    if len(x) < FEWEST:
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
    """Of the last stretches of equally spaced points, the longest: spacings double with k."""
    changes = np.flatnonzero(np.diff(episodes, 2)) + 1
    ends = [len(episodes) - 1, *changes[::-1], 0][:4]
    last, first = max(itertools.pairwise(ends), key=lambda pair: pair[0] - pair[1])
    return episodes[first : last + 1], values[first : last + 1]
