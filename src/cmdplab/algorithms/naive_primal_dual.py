"""Primal-dual learners without regularisation: OptPrimalDual-CMDP and Appendix C's naive scheme.

OptPrimalDual-CMDP (Efroni, Mannor and Pirotta, 2020) with known rewards, rho = H / slack:

    pi^{k+1} prop. to pi^k exp( t (Q~^0 + sum_n lambda^n Q~^n) )
    lambda^{k+1,n} = [ lambda^n + t' (b^n - V~^n_1(x_1)) ]_+
    t = sqrt(2 ln A / (H^2 (1 + N rho)^2 K)),  t' = rho / (H sqrt(N K))

Needs: the number of episodes K and the Slater gap. Guarantees: weak regret and weak violation of
order sqrt(K); the iterates may oscillate for ever.
Provenance: the steps for N = 1 and the bonus of `released` [code]; the dependence on N
[unverified]; the bonus of `printed` [unverified]. We deploy pi^k before its update, by the
definition of n^k. The dual step uses the value of pi^k (`printed`) or of pi^{k+1}
(`released`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from cmdplab.algorithms import confidence
from cmdplab.algorithms.families.primal_dual import PrimalDual, as_released, uncapped, unit
from cmdplab.algorithms.row import EPISODES, IN_PAPER, SAID_TO_EXTEND, SLATER_GAP
from cmdplab.algorithms.schedules import Constant, Setting
from cmdplab.types import Array


def policy_step(k: Array, s: Setting) -> Array:
    """Return t = sqrt( 2 ln A / (H^2 (1 + N rho)^2 K) ), rho = H / slack."""
    rho = s.H / s.slack
    return np.full(k.shape, math.sqrt(2.0 * s.log_actions / s.K) / (s.H * (1.0 + s.N * rho)))


def dual_step(k: Array, s: Setting) -> Array:
    """Return t' = rho / (H sqrt(N K)), rho = H / slack; nothing to step for N = 0."""
    return np.full(k.shape, 1.0 / (s.slack * math.sqrt(max(s.N, 1) * s.K)))


OPT_PRIMAL_DUAL = PrimalDual(
    name="OptPrimalDual-CMDP",
    bonus=confidence.bernstein_bonus,
    policy_step=policy_step,
    dual_step=dual_step,
    temperature=Constant(0.0),
    dual_cap=uncapped,
    summary="optimistic primal-dual without regularisation, tuned for K",
    paper="Efroni, Mannor and Pirotta (2020), arXiv:2003.02189",
    needs=(EPISODES, SLATER_GAP),
    guarantee="weak regret and weak violation of order sqrt(K)",
    unknown_rewards=IN_PAPER,
    provenance="steps for N = 1 [code]; for N > 1 [unverified]; bonus [unverified]",
    unverified="bonus; steps for N > 1",
)

OPT_PRIMAL_DUAL_RELEASED = replace(
    as_released(OPT_PRIMAL_DUAL, confidence.bernstein_bonus_released), provenance="[code]"
)


def appendix_c(row: PrimalDual) -> PrimalDual:
    """Return Algorithm 3 with Appendix C's bonus taken literally, added to each reward as it is.

    Appendix C leaves the steps open and does not truncate. Our steps are those of
    OptPrimalDual-CMDP, and values are truncated as everywhere in the family.
    """
    summary = "Appendix C's naive primal-dual, its bonus taken literally"
    return replace(
        row,
        name="Naive-primal-dual",
        bonus=confidence.appendix_c_bonus,
        bonus_multiplier=unit,
        summary=summary,
        paper="Kitamura et al. (2024), Appendix C",
        guarantee="",
        unknown_rewards=SAID_TO_EXTEND,
        provenance="bonus [paper]; steps as of OptPrimalDual-CMDP",
        unverified="steps",
    )
