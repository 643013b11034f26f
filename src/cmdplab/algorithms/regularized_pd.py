"""Regularized primal-dual (Müller, Alatur, Cevher, Ramponi and He, 2024).

UOpt-RPGPD's update with a constant step and temperature chosen from K, and a bonus with ln K:

    pi^{k+1} prop. to (pi^k)^{1 - eta tau} exp( eta (Q~^0 + sum_n lambda^n Q~^n) )
    lambda^{k+1} = Proj_[0, lambda_max]( (1 - eta tau) lambda - eta (V~ - b) )
    bonus = H (1 + tau ln A) sqrt( (2 X + 2 ln(X A H K / delta')) / n ),  delta' = delta / 3
    eta = K^(-3/4),  tau = K^(-1/8),  lambda_max = H (1 + tau ln A) / gap

Symbols -> names: eta `policy_step` and `dual_step`, tau `temperature`, lambda_max `dual_cap`.
Needs: the number of episodes K and the Slater gap. Guarantees: strong regret and strong violation
of order K^0.93 for the paper's steps, which are not ours; not Uniform-PAC, because of its bonus.

Departures: with known rewards the width for rewards is dropped; lambda_max and the objective's
bonus carry the factor 1 + tau ln A of the common update; unvisited pairs are held at the optimistic
cap. Provenance: the structure [secondary], the update and its bonus [unverified]. The
exponents of eta and tau are ours [derived, not a theorem]: with eta = K^-a, tau = K^-b they are the
least of max(1 - b, 1 - (a - 1/2)/2, 1 - (a - b)/2, a + b); the paper's were not available.
"""

from __future__ import annotations

import math

import numpy as np

from cmdplab.algorithms.families.primal_dual import Bonus, PrimalDual
from cmdplab.algorithms.row import EPISODES, SLATER_GAP
from cmdplab.algorithms.schedules import Setting
from cmdplab.types import Array


def bonus(s: Setting) -> Bonus:
    """Return sqrt( (2 X + 2 ln(X A H K / delta')) / n ), delta' = delta / 3   [unverified]."""
    log = math.log(s.X * s.A * s.H * s.K * 3.0 / s.delta)
    return Bonus(flat=1.0, log=2.0 * s.X + 2.0 * log)


def step(k: Array, s: Setting) -> Array:
    """Return eta = K^(-3/4)   [derived]."""
    return np.full(k.shape, s.K**-0.75)


def temperature(k: Array, s: Setting) -> Array:
    """Return tau = K^(-1/8)   [derived]."""
    return np.full(k.shape, s.K**-0.125)


REGULARIZED_PD = PrimalDual(
    name="Regularized-PD",
    bonus=bonus,
    policy_step=step,
    dual_step=step,
    temperature=temperature,
    summary="regularised primal-dual with a step and a temperature fixed for K",
    paper="Müller, Alatur, Cevher, Ramponi and He (2024), arXiv:2402.15776",
    needs=(EPISODES, SLATER_GAP),
    guarantee="strong regret and violation of order K^0.93, for the paper's steps (not ours)",
    provenance="structure [secondary]; update, bonus [unverified]; exponents [derived]",
    unverified="bonus; step size and temperature",
)
