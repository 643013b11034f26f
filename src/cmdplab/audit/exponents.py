"""Exponents of an audit: mistakes in 1 / epsilon, strong regret in k, and those of the theorem."""

from __future__ import annotations

import numpy as np

from cmdplab.algorithms import confidence
from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.experiments.records.groups import Group
from cmdplab.measures.envelope import SHORTEST
from cmdplab.statistics import Exponent, power_law, too_few
from cmdplab.theory.bounds import exponents_of, mistake_exponents, regret_exponents
from cmdplab.types import Array

ONSET = 100.0  # mistakes; fewer of them belong to the beginning of a run
DECADES, PIECES = 100.0, 4  # of mistakes
DOUBLINGS = 8  # of episodes: seven local slopes of increments, over 2^7 > 100
ROUNDING = 0.005  # an exponent is shown with two digits
TRANSIENT = "> 1: a transient"  # regret cannot grow faster than k for ever


def exponent_of_mistakes(
    epsilon: Array, counts: Array, quiet: float | None, episodes: int
) -> Exponent:
    """Return the exponent of counts [samples, E] in 1 / epsilon, between the onset and `quiet`.

    The range begins at the epsilon at which every sample has `ONSET` mistakes. It ends at `quiet`,
    the smallest epsilon with quiet counts. Local slopes are over quarters of the last two decades
    of mistakes, which are two decades of episodes. With fewer decades, only the last of these
    slopes is returned.
    """
    if episodes < SHORTEST:
        return _too_short(len(counts))
    if quiet is None:
        return _no_fit(len(counts), "no count is quiet: mistakes of every size go on")
    usable = np.all(counts >= ONSET, axis=0) & (epsilon >= quiet)
    if not usable.any():
        return _no_fit(len(counts), f"where counts are quiet, some are below {ONSET:g}")
    inverse, counted = 1.0 / epsilon[usable][::-1], counts[:, usable][:, ::-1]
    middle = np.median(counted, axis=0)
    wanted = middle[-1] * DECADES ** -np.linspace(1.0, 0.0, PIECES + 1)
    # If mistakes do not span two decades, the last quarter alone remains.
    chosen = np.unique(np.searchsorted(middle, wanted[wanted >= middle[0] * (1.0 - 1e-9)]))
    if len(chosen) < 2:
        return _no_fit(len(counts), "where counts are quiet, they hardly grow")
    if len(chosen) < PIECES + 1:
        chosen = chosen[-2:]
    return power_law(inverse[chosen], counted[:, chosen])


def exponent_of_regret(episodes: Array, regrets: Array) -> Exponent:
    """Return the exponent of the increments R(2k) - R(k) of regrets [samples, T] in k.

    They span two decades of episodes. If R ~ k^s, its increments grow like k^s too, and they
    exclude the loss before k, a transient. Values are bounded, so that regret grows at most
    linearly in the long run. A slope above 1 is therefore refused.
    """
    if episodes[-1] < SHORTEST:
        return _too_short(len(regrets))
    doubled = episodes[-1] / np.exp2(np.arange(DOUBLINGS, -1.0, -1.0))
    at = np.array([np.interp(doubled, episodes, regret) for regret in regrets])
    fit = power_law(doubled[:-1], np.diff(at, axis=1))
    if fit.why_not:
        return _no_fit(len(regrets), "regret does not grow: " + fit.why_not)
    return _no_fit(len(regrets), TRANSIENT) if fit.slope > 1.0 + ROUNDING else fit


def too_few_for_exponents(samples: int, noun: str) -> Exponent | None:
    """Return an empty exponent with the reason if the samples are too few; None if they suffice."""
    few = too_few(samples, noun, "an exponent")
    return _no_fit(samples, few) if few else None


def strong_regrets(group: Group) -> Array:
    """Return the strong regret of gap and violation together: [runs, T]."""
    nothing = np.zeros(len(group.curves[0]["episode"]))
    return np.array(
        [c["strong_regret"] + c.get("strong_violation_regret", nothing) for c in group.curves]
    )


def theorem_of(group: Group) -> dict[str, tuple[float, float]] | None:
    """Return the powers of terms (i) and (ii) of Theorem 4.1; None if the theorem excludes the row.

    They are powers of 1 / epsilon for mistakes, and of K for regret. The theorem assumes powers of
    k as schedules, and the Uniform-PAC bonus. `Row.heuristic` says if it also covers the runs.
    """
    uniform = (confidence.uniform_pac, confidence.uniform_pac_released)
    row = group.row
    if not isinstance(row, PrimalDual) or row.outside_theorem() or row.bonus not in uniform:
        return None
    exponents = exponents_of(row)
    return {
        "mistakes": mistake_exponents(exponents),
        "regret": regret_exponents(exponents),
    }


def _no_fit(samples: int, why: str) -> Exponent:
    return Exponent(np.nan, np.nan, np.nan, 0, samples, why)


def _too_short(samples: int) -> Exponent:
    return _no_fit(samples, f"it needs {SHORTEST:,} episodes")
