"""DOPE (Bura, HasanzadeZonuzy, Kalathil, Shakkottai and Chamberland, 2022).

Symbols -> names: pi_b `baseline` with utility b_0, gap_0 `baseline_slack`, beta(y) `width`,
betabar its sum over y, K_0 `warm_up`. Pbar is the estimate of the kernel P, V^pi[P, r] the value of
reward r, b a threshold. Episode k of K. X, A, H: `Setting`. DOPE is doubly optimistic: it has a
bonus, and chooses a kernel. With known rewards:

    rbar = r^0 + (H^2 / gap_0) betabar,    u_ = r^n - H betabar
    k <= K_0:  pi_k = pi_b
    else  (pi_k, P') maximise V^pi[P', rbar]  s.t.  V^pi[P', u_] >= b,  |P' - Pbar| <= beta

H betabar is enough although both P and P' lie in the box: (P - P') V = (P - P')(V - H/2), which is
at most (H/2) 2 betabar. Needs: K, a safe policy and its utility. Guarantees: no violation, and
regret of order (1 / gap_0) X A^(1/2) H^3 K^(1/2), with high probability.

Departures: `printed` has K_0 = 0 and plays pi_b as long as the program has no solution [derived]:
safety needs only that each policy passes the pessimistic constraint. N > 1 is [derived], as for
OptPress-LP.

`released` has the logarithm, delta and scales (1) of the published scripts for media streaming and
the three-state example. They play pi_b in the episodes 0, 1, ..., K_0, so K_0 + 1 times: `warm_up`
is 12,501 and 676 there, and 9,451 for the inventory, whose script has other widths and no bonus.
Their pi_b is optimal for a fifth of the budget C, which is `tightening` 0.8 if the least cost is
0. All steps share their counts, and successors are restricted to the true support, which a learner
does not know. A plan plays any action at states that it never reaches. Its regret is then
that of the scripts: docs/algorithms/dope.md. In cmdplab 0.1.0 counts were per step, the scales
1e-3, the tightening 0.5 and K_0 one less.
Provenance: signals and program [code], [secondary]; widths [code], their logarithm [derived] in
`printed` and [code] in `released`; K_0 = X^2 A H^3 / gap_0^2 [code] (the theory's power of H is 4
[unverified]).
"""

from __future__ import annotations

import math
from dataclasses import replace

from cmdplab.algorithms import confidence
from cmdplab.algorithms.opt_cmdp import horizon
from cmdplab.algorithms.opt_press import OPT_PRESS_LP
from cmdplab.algorithms.row import STATIONARY, SUPPORT
from cmdplab.algorithms.schedules import Setting


def compensation(s: Setting) -> float:
    """Return H^2 / gap_0, the weight of betabar in the objective."""
    return s.H**2 / s.baseline_slack


def reward_compensation(s: Setting) -> float:
    """Return 3 H / gap_0 - 1, the widths above the clip of an estimated reward   [code].

    With the one width below the clip [derived], this makes 3 H / gap_0 widths.
    """
    return 3.0 * s.H / s.baseline_slack - 1.0


def baseline_phase(s: Setting) -> float:
    """Return floor(K_0) + 1, the episodes of the baseline; K_0 = X^2 A H^3 / gap_0^2   [code].

    The release plays the baseline in the episodes 0, 1, ..., K_0.
    """
    length = s.X**2 * s.A * s.H**3 / s.baseline_slack**2
    return float(math.floor(length * (1.0 + 1e-9)) + 1)  # rounding in gap_0 takes no episode away


DOPE = replace(
    OPT_PRESS_LP,
    name="DOPE",
    width=confidence.bernstein_width,
    freedom=1.0,
    objective_bonus=compensation,
    utility_margin=horizon,
    reward_bonus=reward_compensation,
    caution=-math.inf,
    summary="the optimistic linear program with pessimistic utilities, from a safe policy on",
    paper="Bura, HasanzadeZonuzy, Kalathil, Shakkottai and Chamberland (2022), arXiv:2112.00885",
    provenance="signals and program [code], [secondary]; logarithm of the widths [derived]",
)

DOPE_RELEASED = replace(
    DOPE,
    preset="released",
    width=confidence.bernstein_width_dope,
    warm_up=baseline_phase,
    tightening=0.8,  # a budget of C / 5 if the least cost is 0
    bonus_scale=1.0,
    margin_scale=1.0,
    delta=0.01,
    dynamics="stationary",
    uniform_elsewhere=1.0,
    needs=(*DOPE.needs, STATIONARY, SUPPORT),
    guarantee="",  # its logarithm has fewer factors than a union bound needs
    safe=False,
    provenance="signals, program, widths, scales, counts, support, K_0 and safe policy [code]",
)
