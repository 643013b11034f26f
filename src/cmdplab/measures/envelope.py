"""The tail envelope of a run: how large an error may still come, and how fast that falls.

E(k) = sup over j >= k of max(gap^j, violation^j, 0). It is the inverse of the last mistake: a run
makes its last mistake of epsilon at the largest k with E(k) > epsilon. Uniform-PAC is a statement
about it, and a run converges if and only if it goes to zero. The curves of a record hold the
maximum between grid points, so that E at a grid point is exact.

A run ends, and what comes later is not seen: E(k) near the end is a supremum over a short tail, and
too small. Rates are taken between episodes up to a quarter of the run, K/4, K/16, K/64, ...: behind
each of them lie at least three times as many episodes as before it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cmdplab.types import Array

ONSET = 32  # episodes that no quadrupling reaches into
FEWEST = 4  # quadruplings: three local exponents, so that there is a trend
SHORTEST = ONSET * 4**FEWEST
END = 2.0**-0.25  # of a run: from here on is its end


class Envelope(NamedTuple):
    """Over the quadruplings K/4^J, ..., K/16, K/4 of a run of K episodes, in this order."""

    start: Array  # [J], the first episode of each
    sup: Array  # [J], E(start): the largest error from there to the end of the run
    highest: Array  # [J], the largest error within each
    swing: Array  # [J], by how much the error both rises and falls within each
    end: float  # the largest error of the end, from 0.84 K on

    def exponents(self) -> Array:
        """[J - 1]: the local exponents of E, -d ln E / d ln k, the latest last."""
        return _rates(self.sup)

    def exponents_within(self) -> Array:
        """[J - 1]: the same of the largest error within each, negative where errors grow."""
        return _rates(self.highest)

    @property
    def last_exponent(self) -> float:
        """Of the last quadrupling itself, from K/4 to the end: for smooth errors alone."""
        return float(np.log(self.highest[-1] / self.end) / np.log(4.0 * END))


def envelope(curves: dict[str, Array]) -> Envelope:
    """The envelope from the curves of a run, with all quadruplings behind the onset."""
    episode, error = curves["episode"], errors(curves)
    K = float(episode[-1])
    many = max(int(np.floor(np.log(K / ONSET) / np.log(4.0) + 1e-9)), 0)
    bounds = K / 4.0 ** np.arange(many, -1.0, -1.0)
    places = np.searchsorted(episode, bounds)  # where a segment ends at the bound or behind it
    blocks = [slice(a, b + 1) for a, b in pairwise(places)]
    highest = np.array([error[block].max() for block in blocks])
    return Envelope(
        start=bounds[:-1],
        sup=np.maximum.accumulate(highest[::-1])[::-1],
        highest=highest,
        swing=np.array([swing(curves, block) for block in blocks]),
        end=float(error[np.searchsorted(episode, END * K) :].max()),
    )


def errors(curves: dict[str, Array]) -> Array:
    """[T]: max(gap, violation, 0), the largest between each grid point and the one before."""
    found = np.maximum(curves["gap_max"], 0.0)
    return np.maximum(found, curves["violation_max"]) if "violation_max" in curves else found


def swing(curves: dict[str, Array], block: slice) -> float:
    """The smaller of the largest rise and the largest fall within a block: gap or violation.

    Zero for a monotone curve, however steep. Minima and maxima between grid points are used, so
    that nothing escapes. A violation below zero is none.
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
