"""OPDOP, tabular (Ding, Wei, Yang, Wang and Jovanovic, 2021).

Symbols -> names: alpha `policy_step`, eta `dual_step`, theta `mixing`, chi `dual_cap`,
Gamma the bonus, Y the multiplier. In episode k:

    pi~ = (1 - theta) pi^{k-1} + theta / A,   pi^k prop. to pi~ exp(alpha (Q^0 + sum_n Y^n Q^n))
    Y^{k,n} = Proj_[0, chi]( Y^n + eta (b^n - V^n_1(x_1)) )
    Q_h = min( r_h + Gamma + Phat V_{h+1}, H - h + 1 ),  Phat = n(x, a, y) / (n + 1)
    if rewards are observed: r^_h + 2 Gamma in the place of r_h + Gamma, r^ = sum / (n + 1)
    Gamma = beta (n + 1)^(-1/2),  beta = C1 H sqrt(X ln(X A T / p)),  T = H K,  C1 = 1
    alpha = sqrt(ln A) / (H^2 sqrt(K)),  eta = 1 / sqrt(K),  theta = 1 / K,  chi = 2 H / gap

Needs: the number of episodes K and the Slater gap. Guarantees, with probability 1 - p: weak regret
and weak violation of order X A^(1/2) H^3 K^(1/2).

Departures: evaluation uses the counts including the episode just played, as everywhere in this
family; a pair that was never seen is held at the optimistic cap, as by the unscaled
bonus; with known rewards one Gamma, for the kernel, instead of the two of the paper, whose rewards
are observed [derived]; N > 1: a multiplier for each constraint [derived].
Provenance: [paper], with one correction: the theorems print alpha = sqrt(ln A) / (H^2 K), the
lemmas that prove them set sqrt(K), which is used here. C1 is an absolute constant that the paper
leaves open: 1 is ours [unverified]. The supplement has chi = H / gap where the algorithm box has
2 H / gap, which is used here.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from cmdplab.algorithms.families.primal_dual import Bonus, unit
from cmdplab.algorithms.naive_primal_dual import OPT_PRIMAL_DUAL
from cmdplab.algorithms.schedules import Setting
from cmdplab.types import Array


def bonus(s: Setting) -> Bonus:
    """Return beta (n + 1)^(-1/2), beta = C1 H sqrt(X ln(X A H K / p)); C1 = 1 [unverified]."""
    return Bonus(flat=1.0, log=s.H**2 * s.X * math.log(s.X * s.A * s.H * s.K / s.delta))


def policy_step(k: Array, s: Setting) -> Array:
    """Return alpha = sqrt(ln A) / (H^2 sqrt(K))."""
    return np.full(k.shape, math.sqrt(s.log_actions / s.K) / s.H**2)


def dual_step(k: Array, s: Setting) -> Array:
    """Return eta = 1 / sqrt(K)."""
    return np.full(k.shape, 1.0 / math.sqrt(s.K))


def mixing(s: Setting) -> float:
    """Return theta = 1 / K."""
    return 1.0 / s.K


def dual_cap(s: Setting) -> float:
    """Return chi = 2 H / gap."""
    return 2.0 * s.H / s.slack


OPDOP = replace(
    OPT_PRIMAL_DUAL,
    name="OPDOP",
    bonus=bonus,
    bonus_multiplier=unit,
    policy_step=policy_step,
    dual_step=dual_step,
    prior_visits=1.0,
    reward_bonus=1.0,
    mixing=mixing,
    dual_cap=dual_cap,
    summary="optimistic policy optimisation, each step mixed with the uniform policy",
    paper="Ding, Wei, Yang, Wang and Jovanovic (2021), AISTATS",
    provenance="[paper], alpha from the lemmas; C1 = 1 is ours",
    unverified="C1 = 1",
)
