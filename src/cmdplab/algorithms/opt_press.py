"""OptPress-LP and OptPress-PD (Liu, Zhou, Kalathil, Kumar and Tian, 2021).

The original names are OptPess-LP and OptPess-PrimalDual, for optimistic pessimism; both spellings
are accepted. Symbols -> names: pi_0 `baseline` with utility b_0, gap_0 `baseline_slack`,
beta(x, a) = sqrt(Z / n) the sum of `width` over y, eps_k `queue.margin`, 1 / eta^k `queue.weight`.

OptPress-LP, with known rewards, on Pbar and without truncation:

    rbar = r^0 + alpha_r beta,  alpha_r = X H + 4 H (1 + X H) / gap_0,    u_ = r^n - X H beta
    if V^{pi_0}[Pbar, u_] <= (b + b_0) / 2 for some n:  pi_k = pi_0
    else  pi_k = argmax { V^pi[Pbar, rbar] : V^pi[Pbar, u_] >= b }

OptPress-PD, on Pbar, each value truncated at the steps left:

    r~ = r^0 + X H beta,  u~ = r^n + X H beta
    pi_k greedy for Q~^0 + (lambda^k / eta^k) Q~^n,    eta^k = gap H sqrt(k)
    lambda^{k+1} = [ lambda^k + b + eps_k - V~^{pi_k} ]_+
    eps_k = 5 H^2 sqrt(X^3 A) (ln(k / delta') + 1) / sqrt(k ln(k / delta')),
    delta' = delta / (16 X^2 A H)

Needs: OptPress-LP K, a strictly safe policy and its utility; OptPress-PD the Slater gap (and K
inside its widths). Guarantees, with probability 1 - delta: OptPress-LP never violates and has
regret of order (H^3 / gap_0) sqrt(X^3 A K); OptPress-PD has regret of the same order and a weak
violation that does not grow with K.

Departures: N > 1 is [derived]: the test and the margin hold for every constraint, gap_0 is the
smallest slack, and a queue is kept for each. With known rewards 1 + X H becomes X H in the margin
and in the first part of alpha_r ([code]: two of three published scripts), and in the bonus of
OptPress-PD [derived]. OptPress-PD's separate
truncation makes its argmax depend on the order of maximising; ours is a backward pass, exact where
no truncation binds.
Provenance: OptPress-LP [secondary] (a full transcription) and [code]; of OptPress-PD the shapes of
eps_k and eta^k are [paper] (Ghosh et al. 2024, Appendix K, with constants of their own), its bonus,
the constant 5 and the role of the gap in eta^k [unverified].
"""

from __future__ import annotations

import math

import numpy as np

from cmdplab.algorithms import confidence
from cmdplab.algorithms.families.planner import Planner, Queue
from cmdplab.algorithms.row import CONSTRAINT, EPISODES, IN_PAPER, SAFE_POLICY, SLATER_GAP
from cmdplab.algorithms.schedules import Constant, Setting
from cmdplab.types import Array

PAPER = "Liu, Zhou, Kalathil, Kumar and Tian (2021), arXiv:2106.02684"


def value_range(s: Setting) -> float:
    """Return X H."""
    return float(s.X * s.H)


def compensation(s: Setting) -> float:
    """Return alpha_r = X H + 4 H (1 + X H) / gap_0."""
    return s.X * s.H + 4.0 * s.H * (1.0 + s.X * s.H) / s.baseline_slack


def pessimism(k: Array, s: Setting) -> Array:
    """Return eps_k = 5 H^2 sqrt(X^3 A) (ln(k/delta') + 1) / sqrt(k ln(k/delta')).

    The constant 5 is [unverified].
    """
    log = np.log(k * 16.0 * s.X**2 * s.A * s.H / s.delta)
    return np.asarray(5.0 * s.H**2 * math.sqrt(s.X**3 * s.A) * (log + 1.0) / np.sqrt(k * log))


def queue_weight(k: Array, s: Setting) -> Array:
    """Return 1 / eta^k = 1 / (gap H sqrt(k))   [unverified: the gap]."""
    return np.asarray(1.0 / (s.slack * s.H * np.sqrt(k)))


OPT_PRESS_LP = Planner(
    name="OptPress-LP",
    width=confidence.hoeffding_width,
    freedom=0.0,
    objective_bonus=compensation,
    utility_margin=value_range,
    caution=0.5,
    summary="a linear program on the estimate, optimistic in the reward, pessimistic in utilities",
    paper=PAPER,
    needs=(EPISODES, SAFE_POLICY, CONSTRAINT),
    unknown_rewards=IN_PAPER,
    guarantee="no violation in any episode; regret of order sqrt(K)",
    safe=True,
    provenance="update and constants [secondary], [code]; N > 1 [derived]",
)

OPT_PRESS_PD = Planner(
    name="OptPress-PD",
    width=confidence.hoeffding_width,
    freedom=0.0,
    objective_bonus=value_range,
    utility_bonus=value_range,
    truncation=1.0,
    queue=Queue(step=Constant(1.0), weight=queue_weight, margin=pessimism),
    summary="greedy for an optimistic value, with a queue that aims above the threshold",
    paper=PAPER,
    needs=(EPISODES, SLATER_GAP, CONSTRAINT),
    unknown_rewards=IN_PAPER,
    guarantee="regret of order sqrt(K), weak violation bounded by a constant",
    provenance="shapes of eps_k, eta^k [paper: Ghosh et al. 2024]; the rest [unverified]",
    unverified="bonus; the constant 5 in eps_k; the gap in eta^k",
)
