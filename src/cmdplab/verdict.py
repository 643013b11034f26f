"""One run in words: converged, oscillates, biased, still moving, or too short to tell.

A rule of thumb for tables, on scales relative to the horizon H (values lie in [0, H]):

- it oscillates if, in its second half, the gap both rises and falls by more than a hundredth of H;
- else it converged if its last policy is within H / 500 of optimal and feasible;
- else it moves if it is now much closer than after a tenth of the run, and is biased if not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cmdplab.problem import Array

SHORTEST = 20_000  # episodes below which nothing is said
OSCILLATES = 0.01  # of H
CONVERGED = 0.002  # of H
MOVING = 0.7  # of the distance at a tenth of the run


def swing(curves: dict[str, Array]) -> float:
    """The smaller of the largest rise and the largest fall of the gap in the second half.

    Zero for a monotone curve, however steep. The envelope is used, so nothing between grid points
    escapes; a rise or fall leads from one segment of the grid to a later one.
    """
    half = curves["episode"] >= curves["episode"][-1] / 2
    low, high = curves["gap_min"][half], curves["gap_max"][half]
    rise = np.max(high[1:] - np.minimum.accumulate(low)[:-1], initial=0.0)
    fall = np.max(np.maximum.accumulate(high)[:-1] - low[1:], initial=0.0)
    return float(min(rise, fall))


def verdict(curves: dict[str, Array], horizon: int) -> str:
    """The verdict on the curves of a run."""
    episodes = curves["episode"]
    if episodes[-1] < SHORTEST:
        return "too short to tell"
    if swing(curves) > OSCILLATES * horizon:
        return f"oscillates by {swing(curves):.2g}"
    distance = np.abs(curves["gap"])
    if "violation" in curves:
        distance = np.maximum(distance, np.maximum(curves["violation"], 0.0))
    if distance[-1] <= CONVERGED * horizon:
        return f"converged to {distance[-1]:.1g}"
    early = distance[np.searchsorted(episodes, episodes[-1] / 10)]
    if distance[-1] < MOVING * early:
        return f"moving, at {distance[-1]:.1g}"
    return f"biased by {distance[-1]:.1g}"


def common_verdict(seeds: Sequence[dict[str, Array]], horizon: int) -> str:
    """The verdict that all seeds share, with the numbers of the first; else how they differ."""
    verdicts = [verdict(curves, horizon) for curves in seeds]
    words = Counter(each.split()[0].rstrip(",") for each in verdicts)
    if len(words) == 1:
        return verdicts[0]
    return ", ".join(f"{n} {word}" for word, n in words.most_common())
