"""Findings of a group of runs: verdict, mistakes for every epsilon, exponents, the theorem's.

Nothing is claimed that the data cannot support. An exponent that cannot be fitted has a reason, a
count that may still grow is not fitted, and an interval or band needs six independent samples.
Samples are instances, each with the median over its seeds, or the seeds of one instance (`units`).

Every run is judged by itself (`cmdplab.measures.verdict`). Runs that contradict each other are
`mixed`, however few: one instance in ten that does not converge is a finding. A group gets a kind
if three quarters of its runs show it and no run another. Groups below six samples get none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from cmdplab.audit.exponents import (
    exponent_of_mistakes,
    exponent_of_regret,
    strong_regrets,
    theorem_of,
    too_few_for_exponents,
)
from cmdplab.experiments.records.groups import Group, Units, units_of
from cmdplab.measures.envelope import oscillation
from cmdplab.measures.mistakes import SERIES
from cmdplab.measures.safety import SafetyOverSeeds, over_seeds, summary
from cmdplab.measures.verdict import Kind, Verdict, in_words, verdict
from cmdplab.statistics import (
    Band,
    Exponent,
    Interval,
    median_interval,
    strongest_median_band,
    too_few,
)
from cmdplab.types import Array

QUIET = 0.25  # of a run: a count is quiet if all its mistakes were made before
SHARED = 0.75  # of the runs
FALLING = {Kind.converging, Kind.shrinking}


class Finding(NamedTuple):
    """The findings on one algorithm with one setting on one environment."""

    label: str
    environment: str
    runs: int
    instances: int
    over: str  # the samples of medians, intervals, bands and exponents, in words
    units: Units
    episodes: int
    verdict: str
    verdicts: dict[str, int]  # verdict -> number of runs
    judgement: Joint  # the verdict, with its rate, level and local exponents
    final_gap: Interval
    final_violation: Interval | None
    average_gap: float  # of the average iterate, median
    average_violation: float | None
    amplitude: float  # of the gap in the second half, median
    period: float | None  # episodes, median over the runs that have one
    epsilon: Array  # [E]
    mistakes: dict[str, Band | None]  # of gap, violation, either; None with too few samples
    counts: dict[str, Array]  # [runs, E]
    last: dict[str, Array]  # [runs, E], the last mistake
    quiet: float | None  # the smallest epsilon without a mistake of any run since K / 4
    mistake_exponent: Exponent
    regret_exponent: Exponent
    theorem: dict[str, tuple[float, float]] | None  # powers of its terms (i), (ii)
    heuristic: str  # why the theorem excludes these runs; empty if it covers them
    safety: SafetyOverSeeds | None  # while learning; None without a constraint


def audit(group: Group) -> Finding:
    """Compute the verdict, mistakes, exponents and safety of one group of runs."""
    epsilon = group.mistakes[0]["epsilon"]
    series = [name for name in SERIES if f"{name}_mistakes" in group.mistakes[0]]
    counts = {n: np.array([m[f"{n}_mistakes"] for m in group.mistakes]) for n in series}
    last = {n: np.array([m[f"{n}_last_mistake"] for m in group.mistakes]) for n in series}
    units = units_of(group.instance)
    swings = [oscillation(curves) for curves in group.curves]
    periods = [swing.period for swing in swings if swing.period is not None]
    judgement = joint_verdict([verdict(c, group.horizon) for c in group.curves], units)
    whole = series[-1]
    quiet = _quiet(epsilon, last[whole], group.episodes)
    constrained, few = len(series) > 1, too_few(units.samples)
    none = too_few_for_exponents(units.samples, units.noun)
    return Finding(
        label=group.label,
        environment=group.environment,
        runs=len(group.curves),
        instances=group.instances,
        over=units.over,
        units=units,
        episodes=group.episodes,
        verdict=judgement.words,
        verdicts=judgement.runs,
        judgement=judgement,
        final_gap=_final(group, units, "gap"),
        final_violation=_final(group, units, "violation") if constrained else None,
        average_gap=_median(units, map(average_gap, group.curves)),
        average_violation=_median(units, map(average_violation, group.curves))
        if constrained
        else None,
        amplitude=_median(units, (swing.amplitude for swing in swings)),
        period=float(np.median(periods)) if periods else None,
        epsilon=epsilon,
        mistakes={
            name: None if few else strongest_median_band(units.reduced(counts[name]))
            for name in series
        },
        counts=counts,
        last=last,
        quiet=quiet,
        mistake_exponent=none
        or exponent_of_mistakes(epsilon, units.reduced(counts[whole]), quiet, group.episodes),
        regret_exponent=none
        or exponent_of_regret(group.curves[0]["episode"], units.reduced(strong_regrets(group))),
        theorem=theorem_of(group),
        heuristic=group.row.heuristic,
        safety=over_seeds(
            [summary(c, m) for c, m in zip(group.curves, group.mistakes, strict=True)],
            group.row.safe,
            group.row.promise_heuristic,
        ),
    )


def extent(findings: Sequence[Finding]) -> str:
    """Return the numbers of runs and episodes in words, as ranges where findings differ."""

    def words(values: Iterable[int]) -> str:
        low, high = min(values), max(values)
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"

    runs, episodes = (
        words([getattr(finding, field) for finding in findings]) for field in ("runs", "episodes")
    )
    one = "run" if runs == "1" else "runs"
    several = " or ".join(dict.fromkeys(f.over for f in findings if f.runs > 1))
    return f"{runs} {one} of {episodes} episodes" + f", statistics over {several}" * bool(several)


def unanswered(finding: Finding) -> dict[str, str]:
    """Return the questions that these runs do not answer, each with the reason."""
    questions = {}
    if finding.judgement.kind is Kind.undecided:
        questions["verdict"] = finding.judgement.why
    few = too_few(finding.units.samples, finding.units.noun)
    if few:
        questions["intervals and bands"] = few
    for what, fit in (
        ("exponent of the mistakes", finding.mistake_exponent),
        ("exponent of the regret", finding.regret_exponent),
    ):
        if fit.why_not:
            questions[what] = fit.why_not
    return questions


def _final(group: Group, units: Units, column: str) -> Interval:
    values = np.array([curves[column][-1] for curves in group.curves])
    return median_interval(units.reduced(values))


def _median(units: Units, values: Iterable[float]) -> float:
    return float(np.median(units.reduced(np.array(list(values)))))


def average_gap(curves: dict[str, Array]) -> float:
    """Return V* - sum_k V^k / K = weak regret / K, the gap of the average iterate.

    Values are linear in occupancies.
    """
    return float(curves["weak_regret"][-1] / curves["episode"][-1])


def average_violation(curves: dict[str, Array]) -> float:
    """Return max_n (b^n - sum_k V^{k,n} / K), the violation of the average iterate.

    For one constraint it is weak regret / K. For several the maximum comes after the average: each
    sum runs over the curve, which is exact up to episode 1023 and linear between grid points
    behind.
    """
    several = [f"violation_{n}" for n in range(1, len(curves)) if f"violation_{n}" in curves]
    if len(several) == 1:
        return float(curves["weak_violation_regret"][-1] / curves["episode"][-1])
    return max(_mean(curves["episode"], curves[name]) for name in several)


def _mean(episodes: Array, values: Array) -> float:
    """Return the mean over all episodes of a curve that is linear between its points [T]."""
    width, rise = np.diff(episodes), np.diff(values)
    # sum_{i=1}^{w} (v + i rise / w) = w v + rise (w + 1) / 2
    total = values[0] + np.sum(width * values[:-1] + rise * (width + 1.0) / 2.0)
    return float(total / episodes[-1])


def _quiet(epsilon: Array, last: Array, episodes: int) -> float | None:
    quiet = np.all(last <= QUIET * episodes, axis=0)
    # A count that is quiet at an epsilon is quiet at every larger epsilon.
    return float(epsilon[np.argmax(quiet)]) if quiet.any() else None


class Joint(NamedTuple):
    """The verdict on a group of runs."""

    kind: Kind
    words: str
    runs: dict[str, int]  # kind -> number of runs, the most frequent first
    rate: Interval | None  # p of k^-p, over samples
    level: float | None  # median over samples
    limit: float | None  # of errors that fall: the largest upper bound of a run for their limit
    exponents: list[Interval]  # of the envelope over the last quadruplings, the latest last
    why: str  # the reason of an undecided verdict
    needs: int | None  # episodes that would decide


def joint_verdict(verdicts: Sequence[Verdict], units: Units) -> Joint:
    """Return the verdict on a group from the verdict on each run."""
    counts = Counter(v.kind for v in verdicts)
    runs = {str(kind): n for kind, n in counts.most_common()}
    exponents = _exponents(verdicts, units)
    decided: dict[Kind, int] = {kind: n for kind, n in counts.items() if kind is not Kind.undecided}
    kind = _shared(decided, len(verdicts))
    few = too_few(units.samples, units.noun)
    listed = "; ".join(f"{name} in {n} of {len(verdicts)}" for name, n in runs.items())
    if few and kind is not Kind.undecided:
        why = few.replace("an interval", "a verdict")
        words = f"undecided: {why} ({listed})"
        return Joint(Kind.undecided, words, runs, None, None, None, exponents, why, None)
    mine = [v for v in verdicts if v.kind is kind]
    needs = max((v.needs for v in verdicts if v.needs), default=None)
    if kind is Kind.mixed:
        return Joint(kind, f"mixed: {listed}", runs, None, None, None, exponents, "", None)
    if kind is Kind.undecided:
        why = mine[0].why if len(mine) == len(verdicts) else f"runs differ: {listed}"
        words = in_words(kind, None, None, needs) + f" ({listed})" * (len(runs) > 1)
        return Joint(kind, words, runs, None, None, None, exponents, why, needs)
    levels = [v.level for v in mine if v.level is not None]
    level = float(np.median(levels)) if levels else None
    limit = max((v.limit for v in verdicts if v.limit is not None), default=None)
    rate = exponents[-1] if kind in FALLING else None
    some = f" in {len(mine)} of {len(verdicts)}" * (len(mine) < len(verdicts))
    if rate is None:
        words = in_words(kind, None, level, None) + some
    else:
        spread = f" [{rate.low:.2g}, {rate.high:.2g}]{some}"
        words = in_words(kind, rate.middle, level, None, limit, spread)
    return Joint(kind, words, runs, rate, level, limit, exponents, "", None)


def _shared(decided: dict[Kind, int], runs: int) -> Kind:
    if decided.keys() == FALLING:  # both say that errors fall
        decided = {Kind.shrinking: sum(decided.values())}
    if len(decided) > 1:
        return Kind.mixed
    kind, many = next(iter(decided.items()), (Kind.undecided, 0))
    return kind if many >= SHARED * runs else Kind.undecided


def _exponents(verdicts: Sequence[Verdict], units: Units) -> list[Interval]:
    """Return medians over samples of the local exponents; none if some run has none."""
    if not all(v.exponents for v in verdicts):
        return []
    table: Array = units.reduced(np.array([v.exponents for v in verdicts]))
    return [median_interval(column) for column in table.T]
