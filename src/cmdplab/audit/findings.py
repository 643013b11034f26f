"""What a group of runs shows: verdict, mistakes for every epsilon, exponents beside the theorem's.

Nothing is claimed that the data cannot carry: an exponent that cannot be fitted says why, a count
that may still grow is not fitted, and a band needs seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms import bonuses
from cmdplab.algorithms.primal_dual import PrimalDual
from cmdplab.audit.gathering import Group
from cmdplab.errors import InputError
from cmdplab.mistakes import SERIES
from cmdplab.oscillation import oscillation
from cmdplab.problem import Array
from cmdplab.statistics import Band, Exponent, Interval, bca_interval, count_band, fit_exponent
from cmdplab.theory.bounds import exponents_of, mistake_exponents, regret_exponent
from cmdplab.verdict import SHORTEST, verdict

SETTLED = 0.9  # of a run: a count whose last mistake is later may still grow
WORDS = {
    "converged": "converges",
    "oscillates": "oscillates",
    "moving,": "still moving",
    "biased": "biased",
    "too": "too short to tell",
}


class Finding(NamedTuple):
    """What one algorithm with one setting did on one environment."""

    label: str
    environment: str
    runs: int
    instances: int
    episodes: int
    verdict: str
    verdicts: dict[str, int]  # how many runs each verdict has
    final_gap: Interval | None
    final_violation: Interval | None
    average_gap: float  # of the average iterate, median over runs
    average_violation: float | None
    amplitude: float  # of the gap in the second half, median
    period: float | None  # episodes, median over the runs that have one
    epsilon: Array  # [E]
    mistakes: dict[str, Band | None]  # of gap, violation, either; None for one run
    counts: dict[str, Array]  # [runs, E]
    last: dict[str, Array]  # [runs, E], the last mistake
    settled: float | None  # the smallest epsilon from which on all counts are final
    mistake_exponent: Exponent
    regret_exponent: Exponent
    theorem: dict[str, float] | None  # exponents of the theorem for the schedules run
    heuristic: str


def audit(group: Group) -> Finding:
    """Everything about a group."""
    epsilon = group.mistakes[0]["epsilon"]
    series = [name for name in SERIES if f"{name}_mistakes" in group.mistakes[0]]
    counts = {n: np.array([m[f"{n}_mistakes"] for m in group.mistakes]) for n in series}
    last = {n: np.array([m[f"{n}_last_mistake"] for m in group.mistakes]) for n in series}
    swings = [oscillation(curves) for curves in group.curves]
    periods = [swing.period for swing in swings if swing.period is not None]
    verdicts = Counter(_word(curves, group.horizon) for curves in group.curves)
    whole = series[-1]
    settled = _settled(epsilon, last[whole], group.episodes)
    constrained = len(series) > 1
    return Finding(
        label=group.label,
        environment=group.environment,
        runs=len(group.curves),
        instances=group.instances,
        episodes=group.episodes,
        verdict=_in_words(verdicts),
        verdicts=dict(verdicts),
        final_gap=_interval(group, "gap"),
        final_violation=_interval(group, "violation") if constrained else None,
        average_gap=_average(group, "weak_regret"),
        average_violation=_average(group, "weak_violation_regret") if constrained else None,
        amplitude=float(np.median([swing.amplitude for swing in swings])),
        period=float(np.median(periods)) if periods else None,
        epsilon=epsilon,
        mistakes={name: _band(counts[name]) for name in series},
        counts=counts,
        last=last,
        settled=settled,
        mistake_exponent=_mistake_exponent(epsilon, counts[whole], settled),
        regret_exponent=_regret_exponent(group),
        theorem=_theorem(group),
        heuristic=group.row.heuristic,
    )


def extent(findings: Sequence[Finding]) -> str:
    """How many runs of how many episodes, as ranges where findings differ."""

    def words(values: Iterable[int]) -> str:
        low, high = min(values), max(values)
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"

    runs, instances, episodes = (
        words([getattr(finding, field) for finding in findings])
        for field in ("runs", "instances", "episodes")
    )
    one = "run" if runs == "1" else "runs"
    several = "" if instances == "1" else f", {instances} instances"
    return f"{runs} {one} of {episodes} episodes{several}"


def unanswered(finding: Finding) -> dict[str, str]:
    """What these runs do not tell, each with what is missing."""
    found = {}
    if WORDS["too"] in finding.verdicts:
        found["verdict"] = f"it needs {SHORTEST:,} episodes"
    if finding.runs < 2:
        found["intervals and bands"] = "they need two runs"
    for what, fit in (
        ("exponent of the mistakes", finding.mistake_exponent),
        ("exponent of the regret", finding.regret_exponent),
    ):
        if fit.why_not:
            found[what] = fit.why_not
    return found


def mistakes_at(finding: Finding, epsilon: float, series: str = "either") -> dict[str, Any]:
    """Counts and last mistakes at an epsilon of the grid, which is named if it is another."""
    if not 0.0 < epsilon < np.inf:
        raise InputError(f"epsilon is {epsilon:g}, not a finite number > 0")
    places = np.flatnonzero(np.isclose(finding.epsilon, epsilon, rtol=1e-3))
    if not len(places):
        near = finding.epsilon[int(np.argmin(np.abs(np.log(finding.epsilon / epsilon))))]
        raise InputError(
            f"epsilon {epsilon:g} was not counted: the nearest of the grid is {near:g}"
        )
    name = series if series in finding.counts else "gap"
    at = int(places[0])
    return {"mistakes": finding.counts[name][:, at], "last": finding.last[name][:, at]}


def sample_complexity(finding: Finding, epsilon: float, delta: float) -> tuple[float | None, str]:
    """(epsilon, delta)-PAC: a number of mistakes that a run exceeds with probability <= delta.

    The smallest order statistic that bounds the (1 - delta) quantile with confidence 0.95; the
    second value says why there is none.
    """
    from scipy.stats import binom

    if not 0.0 < delta < 1.0:
        raise InputError(f"delta is {delta:g}, not between 0 and 1")
    counts = np.sort(mistakes_at(finding, epsilon)["mistakes"])
    last = mistakes_at(finding, epsilon)["last"]
    if np.any(last > SETTLED * finding.episodes):
        return None, f"mistakes of {epsilon:g} may still be made: a longer run would tell"
    for k in range(len(counts)):
        if binom.cdf(k, len(counts), 1.0 - delta) >= 0.95:
            return float(counts[k]), ""
    most = int(np.ceil(np.log(0.05) / np.log(1.0 - delta)))
    return None, f"delta = {delta:g} needs {most} runs, and there are {len(counts)}"


def _word(curves: dict[str, Array], horizon: int) -> str:
    return WORDS[verdict(curves, horizon).split()[0]]


def _in_words(verdicts: Counter[str]) -> str:
    if len(verdicts) == 1:
        return next(iter(verdicts))
    total = sum(verdicts.values())
    return ", ".join(f"{word} in {n} of {total}" for word, n in verdicts.most_common())


def _interval(group: Group, column: str) -> Interval | None:
    values = np.array([curves[column][-1] for curves in group.curves])
    return bca_interval(values, "median") if len(values) > 1 else None


def _average(group: Group, column: str) -> float:
    """Values are linear in occupancies: the average iterate's gap is weak regret / k."""
    return float(np.median([c[column][-1] / c["episode"][-1] for c in group.curves]))


def _band(counts: Array) -> Band | None:
    return count_band(counts) if len(counts) > 1 else None


def _settled(epsilon: Array, last: Array, episodes: int) -> float | None:
    final = np.all(last <= SETTLED * episodes, axis=0)
    # Final at an epsilon is final at every larger one: mistakes there are mistakes here.
    return float(epsilon[np.argmax(final)]) if final.any() else None


def _mistake_exponent(epsilon: Array, counts: Array, settled: float | None) -> Exponent:
    """Of the counts in 1 / epsilon, where they are final and no run has less than one."""
    if settled is None:
        return _no_fit(len(counts), "no count is final: mistakes of every size go on")
    usable = np.all(counts >= 1.0, axis=0) & (epsilon >= settled)
    if not usable.any():
        return _no_fit(len(counts), "where counts are final, some runs made no mistake")
    inverse = 1.0 / epsilon[usable]
    return fit_exponent(inverse[::-1], counts[:, usable][:, ::-1])


def _no_fit(runs: int, why: str) -> Exponent:
    return Exponent(np.nan, np.nan, np.nan, 0, runs, why)


def _regret_exponent(group: Group) -> Exponent:
    """Of strong regret, gap and violation together, in k over the last decade of episodes."""
    episodes = group.curves[0]["episode"]
    nothing = np.zeros(len(episodes))
    regrets = np.array(
        [c["strong_regret"] + c.get("strong_violation_regret", nothing) for c in group.curves]
    )
    # Sixty points equally spaced in log k: on the grid itself late episodes would weigh more.
    wanted = np.geomspace(episodes[-1] / 10.0, episodes[-1], 60)
    chosen = np.unique(np.searchsorted(episodes, wanted * (1.0 - 1e-12)))
    return fit_exponent(episodes[chosen], regrets[:, chosen])


def _theorem(group: Group) -> dict[str, float] | None:
    """2 / (alpha_eta - 1/2), 1 / alpha_tau and the regret's, where the theorem is about the row.

    It is about powers of k as schedules, and about the Uniform-PAC bonus.
    """
    uniform = (bonuses.uniform_pac, bonuses.uniform_pac_released)
    row = group.row
    if not isinstance(row, PrimalDual) or row.outside_theorem() or row.bonus not in uniform:
        return None
    exponents = exponents_of(row)
    mistakes = mistake_exponents(exponents)
    return {"mistakes": float(mistakes.larger), "regret": regret_exponent(exponents)}
