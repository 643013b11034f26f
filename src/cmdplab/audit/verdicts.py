"""The verdict on many runs: the kind that they share, with an interval over independent samples.

Every run is judged by itself (`cmdplab.measures.verdict`). Runs that contradict each other are
`mixed`, however few: one instance in ten that does not converge is a finding. A kind is given where
three quarters of the runs show it and none another; below six samples nothing is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cmdplab.experiments.records.groups import Units
from cmdplab.measures.verdict import Kind, Verdict, in_words
from cmdplab.statistics import Interval, median_interval, too_few
from cmdplab.types import Array

SHARED = 0.75  # of the runs
FALLING = {Kind.converging, Kind.shrinking}


class Joint(NamedTuple):
    """On a group of runs."""

    kind: Kind
    words: str
    runs: dict[str, int]  # how many runs each kind has, the most frequent first
    rate: Interval | None  # p of k^-p, over samples
    level: float | None  # median over samples
    exponents: list[Interval]  # of the envelope over the last quadruplings, the latest last
    why: str  # of an undecided one
    needs: int | None  # episodes that would decide


def joint_verdict(verdicts: Sequence[Verdict], units: Units) -> Joint:
    """From the verdict on each run."""
    counts = Counter(each.kind for each in verdicts)
    runs = {str(kind): n for kind, n in counts.most_common()}
    exponents = _exponents(verdicts, units)
    decided: dict[Kind, int] = {kind: n for kind, n in counts.items() if kind is not Kind.undecided}
    kind = _shared(decided, len(verdicts))
    few = too_few(units.samples, units.noun)
    listed = "; ".join(f"{each} in {n} of {len(verdicts)}" for each, n in runs.items())
    if few and kind is not Kind.undecided:
        why = few.replace("an interval", "a verdict")
        words = f"undecided: {why} ({listed})"
        return Joint(Kind.undecided, words, runs, None, None, exponents, why, None)
    mine = [each for each in verdicts if each.kind is kind]
    needs = max((each.needs for each in verdicts if each.needs), default=None)
    if kind is Kind.mixed:
        return Joint(kind, f"mixed: {listed}", runs, None, None, exponents, "", None)
    if kind is Kind.undecided:
        why = mine[0].why if len(mine) == len(verdicts) else f"runs differ: {listed}"
        words = in_words(kind, None, None, needs) + f" ({listed})" * (len(runs) > 1)
        return Joint(kind, words, runs, None, None, exponents, why, needs)
    levels = [each.level for each in mine if each.level is not None]
    level = float(np.median(levels)) if levels else None
    rate = exponents[-1] if kind in FALLING else None
    spread = f" [{rate.low:.2g}, {rate.high:.2g}]" if rate is not None else ""
    words = in_words(kind, None if rate is None else rate.middle, level, None, spread)
    words += f" in {len(mine)} of {len(verdicts)}" * (len(mine) < len(verdicts))
    return Joint(kind, words, runs, rate, level, exponents, "", None)


def _shared(decided: dict[Kind, int], runs: int) -> Kind:
    if decided.keys() == FALLING:  # both say that errors fall
        decided = {Kind.shrinking: sum(decided.values())}
    if len(decided) > 1:
        return Kind.mixed
    kind, many = next(iter(decided.items()), (Kind.undecided, 0))
    return kind if many >= SHARED * runs else Kind.undecided


def _exponents(verdicts: Sequence[Verdict], units: Units) -> list[Interval]:
    """Medians over samples of the local exponents; none where some run has none."""
    if not all(each.exponents for each in verdicts):
        return []
    table: Array = units.reduced(np.array([each.exponents for each in verdicts]))
    return [median_interval(column) for column in table.T]
