"""One run in words: converged, oscillates, biased, moving, worsens, or too short to tell.

A rule of thumb for tables, on scales relative to the horizon H (values lie in [0, H]). The distance
of an episode is the larger of |gap| and its violation; that of a stretch is its worst episode's.

- It oscillates if, in its second half, the gap or the violation both rises and falls by more than a
  hundredth of H, or by more than the distance of the last tenth where that is not small;
- else it converged if the distance of the last tenth is within H / 500;
- else it moves if that is much less than around a tenth of the run, or clearly less than around its
  middle; it worsens if it is clearly more than both; and it is biased if none of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cmdplab.types import Array

NEGATIVE_GAP = "a negative gap means more reward than the optimum, paid for by a violation"
SHORTEST = 20_000  # episodes below which nothing is said
OSCILLATES = 0.01  # of H
CONVERGED = 0.002  # of H
MOVING = 0.7  # of the distance around a tenth of the run
CLEARLY = 0.9  # of the distance around the middle


def swing(curves: dict[str, Array]) -> float:
    """The smaller of the largest rise and the largest fall in the second half: gap or violation.

    Zero for a monotone curve, however steep. The envelope is used, so nothing between grid points
    escapes; a rise or fall leads from one segment of the grid to a later one. A violation below
    zero is none.
    """
    half = curves["episode"] >= curves["episode"][-1] / 2
    swings = [_both_ways(curves["gap_min"][half], curves["gap_max"][half])]
    if "violation" in curves:
        ends = (np.maximum(curves[f"violation_{end}"][half], 0.0) for end in ("min", "max"))
        swings.append(_both_ways(*ends))
    return max(swings)


def _both_ways(low: Array, high: Array) -> float:
    rise = np.max(high[1:] - np.minimum.accumulate(low)[:-1], initial=0.0)
    fall = np.max(np.maximum.accumulate(high)[:-1] - low[1:], initial=0.0)
    return float(min(rise, fall))


def distance(curves: dict[str, Array], first: float, last: float) -> float:
    """The worst of |gap| and violation over the episodes from one share of the run to another."""
    share = curves["episode"] / curves["episode"][-1]
    # The point before the first is left out: its segment begins earlier.
    here = np.flatnonzero((share > first) & (share <= last))[1:]
    worst = [np.abs(curves["gap_min"][here]).max(), np.abs(curves["gap_max"][here]).max()]
    if "violation" in curves:
        worst.append(curves["violation_max"][here].max())
    return float(max(*worst, 0.0))


def verdict(curves: dict[str, Array], horizon: int) -> str:
    """The verdict on the curves of a run."""
    if curves["episode"][-1] < SHORTEST:
        return "too short to tell"
    late, swung = distance(curves, 0.9, 1.0), swing(curves)
    near = late <= CONVERGED * horizon
    if swung > OSCILLATES * horizon or (not near and swung > late):
        return f"oscillates by {swung:.2g}"
    if near:
        return f"converged to {late:.1g}"
    early, middle = distance(curves, 0.1, 0.15), distance(curves, 0.5, 0.55)
    if late < MOVING * early or late < CLEARLY * middle:
        return f"moving, at {late:.1g}"
    if early < CLEARLY * late and middle < CLEARLY * late:
        return f"worsens, at {late:.1g}"
    return f"biased by {late:.1g}"


def common_verdict(seeds: Sequence[dict[str, Array]], horizon: int) -> str:
    """The verdict that all seeds share, with the numbers of the first; else how they differ."""
    verdicts = [verdict(curves, horizon) for curves in seeds]
    words = Counter(each.split()[0].rstrip(",") for each in verdicts)
    if len(words) == 1:
        return verdicts[0]
    return ", ".join(f"{n} {word}" for word, n in words.most_common())
