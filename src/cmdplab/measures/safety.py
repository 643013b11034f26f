"""Safety while learning: the episodes that violated, and the share of the safe policy.

An episode violates if its largest violation exceeds a tolerance, 1e-5 H, the smallest epsilon that
mistakes are counted for. The largest violation is exact. A safe algorithm promises that no episode
violates. A violation beyond rounding breaks this promise. `curves` and `mistakes` are tables of a
run's record: its columns by name (docs/records.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cmdplab.errors import InputError
from cmdplab.measures.verdict import ROUNDING
from cmdplab.types import Array

BROKEN = "PROMISE BROKEN"
BASELINE = "given_to_baseline"  # a column: the sum over episodes of the safe policy's probability


class Safety(NamedTuple):
    """Safety of one run. `first` is exact up to episode 1023, and after it the next grid point."""

    episodes: int
    tolerance: float
    violating: int  # episodes that violated by more than the tolerance
    first: int | None  # the first episode that violated by more than the tolerance
    largest: float  # the largest violation of all episodes, at least 0
    total: float  # the sum of positive violations
    beyond_rounding: bool  # the largest violation exceeds rounding
    baseline_share: float | None  # mean probability of the safe policy; None: not recorded
    left_baseline: int | None  # grid point after its last positive probability; None: not recorded


def summary(curves: Mapping[str, Array], mistakes: Mapping[str, Array]) -> Safety | None:
    """Return the safety of a run from two tables of its record; None without a constraint."""
    if "violation_max" not in curves:
        return None
    if "violation_mistakes" not in mistakes:
        raise InputError("curves of a violation, and mistakes without violation_mistakes")
    episode, highest = curves["episode"], curves["violation_max"]
    tolerance, horizon = float(mistakes["epsilon"][0]), float(mistakes["epsilon"][-1])
    wrong = np.flatnonzero(highest > tolerance)
    largest = max(float(highest.max()), 0.0)
    share, left = None, None
    if BASELINE in curves:
        given = curves[BASELINE]
        share = float(given[-1] / episode[-1])
        rises = np.flatnonzero(np.diff(given, prepend=0.0) > 0.0)
        left = int(episode[rises[-1]]) if len(rises) else 0
    return Safety(
        episodes=int(episode[-1]),
        tolerance=tolerance,
        violating=int(mistakes["violation_mistakes"][0]),
        first=int(episode[wrong[0]]) if len(wrong) else None,
        largest=largest,
        total=float(curves["strong_violation_regret"][-1]),
        beyond_rounding=largest > ROUNDING * horizon,
        baseline_share=share,
        left_baseline=left,
    )


class SafetyOverSeeds(NamedTuple):
    """Safety of the runs of one algorithm, and the state of its promise."""

    runs: int
    violating_runs: int  # in which some episode violated by more than the tolerance
    violating: float  # episodes, the median over runs
    most_violating: int  # episodes, of the worst run
    first: int | None  # the earliest of all runs
    largest: float  # of all runs
    total: float  # the median over runs
    baseline_share: float | None  # the median over runs
    left_baseline: float | None  # the median over runs
    promise: str  # none, kept, heuristic, or PROMISE BROKEN, with why
    broken: bool

    @property
    def words(self) -> str:
        """One sentence about the violations of all runs."""
        if not self.most_violating and not self.broken:
            return f"no episode of {self.runs} runs violated"
        return (
            f"{self.violating_runs} of {self.runs} runs violated, first in episode {self.first}, "
            f"at most by {self.largest:.3g}"
        )


def over_seeds(
    runs: Sequence[Safety | None], safe: bool, heuristic: str = ""
) -> SafetyOverSeeds | None:
    """Return the safety of an algorithm over its runs; None if no run has a constraint.

    safe : True if the algorithm promises that no episode violates (`Row.safe`).
    heuristic : the reason why that is not proved for these runs (`Row.promise_heuristic`), or
    empty.
    """
    known = [each for each in runs if each is not None]
    if not known:
        return None
    firsts = [each.first for each in known if each.first is not None]
    shares = [each.baseline_share for each in known if each.baseline_share is not None]
    lefts = [each.left_baseline for each in known if each.left_baseline is not None]
    violated = any(each.beyond_rounding for each in known)
    return SafetyOverSeeds(
        runs=len(known),
        violating_runs=sum(each.violating > 0 for each in known),
        violating=float(np.median([each.violating for each in known])),
        most_violating=max(each.violating for each in known),
        first=min(firsts, default=None),
        largest=max(each.largest for each in known),
        total=float(np.median([each.total for each in known])),
        baseline_share=float(np.median(shares)) if shares else None,
        left_baseline=float(np.median(lefts)) if lefts else None,
        promise=promise_kept(safe, heuristic, violated),
        broken=safe and violated and not heuristic,
    )


def promise_kept(safe: bool, heuristic: str, violated: bool) -> str:
    """Return in words if a `safe` algorithm kept its promise; `heuristic` as for `over_seeds`."""
    if not safe:
        return "none"
    if heuristic:
        return f"{'not kept' if violated else 'kept'}, but heuristic"
    return BROKEN if violated else "kept"
