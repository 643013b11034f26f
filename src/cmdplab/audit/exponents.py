"""The exponents of an audit: mistakes in 1 / epsilon, strong regret in k, and the theorem's."""

from __future__ import annotations

import numpy as np

from cmdplab.algorithms import confidence
from cmdplab.algorithms.primal_dual import PrimalDual
from cmdplab.experiments.records.groups import Group
from cmdplab.measures.verdict import SHORTEST
from cmdplab.statistics import Exponent, fit_exponent, power_law
from cmdplab.theory.bounds import exponents_of, mistake_exponents, regret_exponent
from cmdplab.types import Array

ONSET = 100.0  # mistakes: what few of them say is how a run began
ROUNDING = 0.005  # an exponent is shown with two digits
TRANSIENT = "> 1: a transient"  # regret cannot grow faster than k for ever


def exponent_of_mistakes(
    epsilon: Array, counts: Array, settled: float | None, episodes: int
) -> Exponent:
    """Of counts [samples, E] in 1 / epsilon, behind the onset and where counts are final.

    From the epsilon at which every sample has `ONSET` mistakes down to `settled`.
    """
    if episodes < SHORTEST:
        return _too_short(len(counts))
    if settled is None:
        return _no_fit(len(counts), "no count is final: mistakes of every size go on")
    usable = np.all(counts >= ONSET, axis=0) & (epsilon >= settled)
    if not usable.any():
        return _no_fit(len(counts), f"where counts are final, some are below {ONSET:g}")
    inverse = 1.0 / epsilon[usable]
    return power_law(inverse[::-1], counts[:, usable][:, ::-1])


def exponent_of_regret(episodes: Array, regrets: Array) -> Exponent:
    """Of regrets [samples, T] in k [T], over the last decade of episodes.

    Values are bounded, so that regret grows at most linearly in the long run: a slope above 1 is
    none of its exponents.
    """
    if episodes[-1] < SHORTEST:
        return _too_short(len(regrets))
    # Sixty points equally spaced in log k: on the grid itself late episodes would weigh more.
    wanted = np.geomspace(episodes[-1] / 10.0, episodes[-1], 60)
    chosen = np.unique(np.searchsorted(episodes, wanted * (1.0 - 1e-12)))
    fit = fit_exponent(episodes[chosen], regrets[:, chosen])
    return _no_fit(len(regrets), TRANSIENT) if fit.slope > 1.0 + ROUNDING else fit


def strong_regrets(group: Group) -> Array:
    """[runs, T]: strong regret of gap and violation together."""
    nothing = np.zeros(len(group.curves[0]["episode"]))
    return np.array(
        [c["strong_regret"] + c.get("strong_violation_regret", nothing) for c in group.curves]
    )


def theorem_of(group: Group) -> dict[str, float] | None:
    """2 / (alpha_eta - 1/2), 1 / alpha_tau and the regret's, where the theorem is about the row.

    It is about powers of k as schedules, and about the Uniform-PAC bonus. Whether it is about the
    runs is another question, which `Row.heuristic` answers.
    """
    uniform = (confidence.uniform_pac, confidence.uniform_pac_released)
    row = group.row
    if not isinstance(row, PrimalDual) or row.outside_theorem() or row.bonus not in uniform:
        return None
    exponents = exponents_of(row)
    mistakes = mistake_exponents(exponents)
    return {"mistakes": float(mistakes.larger), "regret": regret_exponent(exponents)}


def _no_fit(samples: int, why: str) -> Exponent:
    return Exponent(np.nan, np.nan, np.nan, 0, samples, why)


def _too_short(samples: int) -> Exponent:
    return _no_fit(samples, f"it needs {SHORTEST:,} episodes")
