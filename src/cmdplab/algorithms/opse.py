"""OPSE: optimistic-pessimistic softmax exploration (Kitamura et al., NeurIPS 2025).

Kitamura, Ghosh, Kozuno, Kumagai, Kasaura, Hoshino, Hosoe and Matsuo; OPSE-LCMDP there, for linear
features; here the tabular case, features one-hot and ridge 1. softmax_search.py has the pass.

Symbols -> names: pi^sf `baseline`, xi `baseline_slack`, kappa `temperature`, B `compensation`,
Cr, Cu, Cd `reward_width`, `utility_width`, `compensation_width`, C_lam `largest`, T `bisections`.

    if U(C_lam) < b : play pi^sf;  elif U(0) >= b : play pi^0
    else bisect [0, C_lam] T times; play pi^lam of the upper end, which passed the test

Needs: K, a safe policy and its slack xi, one constraint, known rewards. Guarantees, with
probability 1 - delta: no episode violates; regret of order sqrt(K) / xi + 1 / xi^2.

`printed`: the recursions and the two lemmas' conditions are [paper], taken with equality,

    B = 4 Cu H / xi,   C_lam = 8 H_k^2 (B + 1) / xi,   kappa = xi^2 / (32 H_k^2 (B + 1)),
    H_k = H (1 + kappa ln A)

and the widths are [derived], not printed: the paper gives orders for d features. Weissman's bound
in L1 for all (h, x, a) and up to K counts, uniform over values in [0, M], centred at M / 2:

    f(M) = (M / 2) sqrt( 2 (X ln 2 + ln(X A H K / delta)) ) + M,   |(Phat - P) V| <= f(M) beta
    Cu = f(H),   Cr = f(H_k),   Cd = f(B H)

`bonus_scale` multiplies Cr and Cd, `margin_scale` Cu and with it B. The paper's T is of order H,
with logarithms of C_lam / kappa, some 50 at scale 1. Ours is 23, and each search begins at the last
multiplier, which it resolves as finely [ours]: the policy played has still passed the test.

`released` [code] is the authors' repository (matsuolab/Episode-Wise-Safe-Linear-CMDP), with the
constants of its streaming experiment: Cr = Cu = Cd = 2 (bonus_scale and margin_scale 0.5 are its
random tabular one), B = 1, C_lam = 300, kappa = 0.1, T = 20. It departs from the text: the entropy
is weighted by pi twice, and counted once more after the last step, as of a uniform choice; clip
levels are one unit looser, so that the last step has a bonus; no test at 0 nor at C_lam, so that
pi^0 becomes lam = C_lam / 2^20; the first episode plays pi^sf. Its safe policy is greedy for the
utility, `tightening` 1 here. What is not taken over: float32; its V* by dual ascent; the DOPE
beside it; its random numbers. docs/algorithms/opse.md lists all nine.
"""

from __future__ import annotations

import math
from dataclasses import replace

from cmdplab.algorithms.families.softmax_search import Constants, SoftmaxSearch
from cmdplab.algorithms.row import CONSTRAINT, EPISODES, ONE_CONSTRAINT, REFUSED, SAFE_POLICY
from cmdplab.algorithms.schedules import Setting


def concentration(M: float, s: Setting) -> float:
    """Return f(M) = (M / 2) sqrt( 2 (X ln 2 + ln(X A H K / delta)) ) + M   [derived]."""
    log = s.X * math.log(2.0) + math.log(s.X * s.A * s.H * s.K / s.delta)
    return M * (0.5 * math.sqrt(2.0 * log) + 1.0)


def compensation(Cu: float, s: Setting) -> float:
    """Return B = 4 Cu H / xi: a mixture with the safe policy is then optimistic   [paper]."""
    return 4.0 * Cu * s.H / s.baseline_slack


def temperature(B: float, s: Setting) -> float:
    """Return kappa = xi^2 / (32 H_k^2 (B + 1)), H_k = H (1 + kappa ln A): a fixed point [paper]."""
    most = s.baseline_slack**2 / (32.0 * s.H**2 * (B + 1.0))
    low, high = 0.0, most
    for _ in range(200):  # kappa (1 + kappa ln A)^2 = most, and the left side grows
        kappa = 0.5 * (low + high)
        if kappa * (1.0 + kappa * s.log_actions) ** 2 <= most:
            low = kappa
        else:
            high = kappa
    return low


def largest_multiplier(B: float, kappa: float, s: Setting) -> float:
    """Return C_lam = 8 H_k^2 (B + 1) / xi   [paper]."""
    return 8.0 * soft_horizon(kappa, s) ** 2 * (B + 1.0) / s.baseline_slack


def soft_horizon(kappa: float, s: Setting) -> float:
    """Return H_k = H (1 + kappa ln A)."""
    return s.H * (1.0 + kappa * s.log_actions)


def tabular(s: Setting, bonus_scale: float, margin_scale: float) -> Constants:
    """Return the constants of OPSE in print: widths [derived], the rest [paper] with equality.

    s : the sizes and the safe policy's slack. bonus_scale, margin_scale : factors of Cr and Cd, and
    of Cu.
    """
    Cu = margin_scale * concentration(s.H, s)
    B = compensation(Cu, s)
    kappa = temperature(B, s)
    Cr = bonus_scale * concentration(soft_horizon(kappa, s), s)
    Cd = bonus_scale * concentration(B * s.H, s)
    return Constants(Cr, Cu, Cd, B, kappa, largest_multiplier(B, kappa, s))


def released_streaming(s: Setting, bonus_scale: float, margin_scale: float) -> Constants:
    """Return Cr = Cu = Cd = 2, B = 1, kappa = 0.1, C_lam = 300: no log, no H, no d   [code]."""
    return Constants(2.0 * bonus_scale, 2.0 * margin_scale, 2.0 * bonus_scale, 1.0, 0.1, 300.0)


OPSE = SoftmaxSearch(
    name="OPSE",
    constants=tabular,
    bonus_scale=1.0,
    margin_scale=1.0,
    near=2.0**-10,
    summary="softmax for optimistic reward and pessimistic utility, weighed by bisection",
    paper="Kitamura, Ghosh, Kozuno, Kumagai, Kasaura, Hoshino, Hosoe and Matsuo (2025), "
    "arXiv:2502.10138",
    needs=(EPISODES, SAFE_POLICY, CONSTRAINT, ONE_CONSTRAINT),
    unknown_rewards=REFUSED,
    guarantee="no violation in any episode; regret of order sqrt(K)",
    safe=True,
    provenance="recursions, B, C_lam and kappa [paper]; widths of the tabular case [derived]; "
    "where a search begins [ours]",
    unverified="the widths Cr, Cu, Cd of the tabular case: derived here, not printed",
)

OPSE_RELEASED = replace(
    OPSE,
    preset="released",
    constants=released_streaming,
    weighting=1.0,
    loose=1.0,
    terminal_entropy=1.0,
    tested=False,
    bisections=20,
    near=0.0,
    begins_safe=True,
    tightening=1.0,
    needs=(SAFE_POLICY, CONSTRAINT, ONE_CONSTRAINT),
    guarantee="",  # no logarithm: nothing is proved of its widths
    safe=False,
    provenance="the repository [code]; constants those of its streaming experiment",
    unverified="",
)
