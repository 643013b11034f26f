"""Ghosh, Zhou and Shroff (AISTATS 2024): softmax, both signals optimistic, no safe policy.

The family's pass (softmax_search.py) without compensation and without entropy in the values:

    Qr = clip(r + Phat Vr + C beta, 0, H - h + 1),    Qu = clip(u + Phat Vu + C beta, 0, H - h + 1)
    pi^Y_h = softmax( alpha (Qr + Y Qu) ),    alpha = ln(A) sqrt(K) / (4 H),   Y in [0, sqrt(K)]
    C = C_4 H sqrt( X ln(4 X A H K / delta) )

Symbols -> names: Y the multiplier, alpha `sharpness` = 1 / kappa, Y_max `largest`. Needs: K, one
constraint, known rewards; neither a safe policy nor Slater's condition. Guarantees: regret and
strong ("hard") violation of order sqrt(X^2 A H^3 T), T = H K, with probability 1 - delta.

Departures of `printed`. The paper raises Y from 0 by eta = O(K^-(H+1)) until U(Y) >= b or Y = Y_max
and plans anew at each value: up to K^(H + 1.5) plans an episode, which is infeasible. Ours bisects
[0, Y_max]: the same Y to Y_max / 2^23 where U grows with Y, as it does on an exact model. Line 13
tests V_h; it must be V_1(x_1). The constant C_4 is left open there; ours is 1 [unverified].
Theorem 3 prints the width without its H, the proof with it [paper].

`released` [code] is the baseline in OPSE's repository: constants 2 and 0.1 = 1 / alpha as there,
always 20 bisections of [0, 300] and the upper end, whatever its U; the clip is around bonus and
Phat V only and one unit looser; its first episode plays a safe policy, which the paper's method
does not have, so this preset needs one.
"""

from __future__ import annotations

import math
from dataclasses import replace

from cmdplab.algorithms.families.softmax_search import Constants, SoftmaxSearch
from cmdplab.algorithms.opse import released_streaming
from cmdplab.algorithms.row import CONSTRAINT, EPISODES, ONE_CONSTRAINT, REFUSED, SAFE_POLICY
from cmdplab.algorithms.schedules import Setting


def optimistic_width(s: Setting) -> float:
    """Return H sqrt( X ln(4 X A H K / delta) )   [paper, its proof; unverified: C_4 = 1]."""
    return s.H * math.sqrt(s.X * math.log(4.0 * s.X * s.A * s.H * s.K / s.delta))


def softmax_temperature(s: Setting) -> float:
    """Return 1 / alpha = 4 H / (ln(A) sqrt(K))   [paper]; A = 1 counts as 2, without effect."""
    return 4.0 * s.H / (math.log(max(s.A, 2)) * math.sqrt(s.K))


def printed(s: Setting, bonus_scale: float, margin_scale: float) -> Constants:
    """Return the constants with one width for both signals, and no compensation."""
    width = bonus_scale * optimistic_width(s)
    return Constants(width, width, 0.0, 0.0, softmax_temperature(s), math.sqrt(s.K))


def released(s: Setting, bonus_scale: float, margin_scale: float) -> Constants:
    """Return OPSE's released constants without compensation   [code]."""
    same = released_streaming(s, bonus_scale, bonus_scale)
    return same._replace(compensation_width=0.0, compensation=0.0)


GHOSH = SoftmaxSearch(
    name="Ghosh-Zhou-Shroff",
    constants=printed,
    utility_sign=1.0,
    entropy=0.0,
    loose=1.0,
    inside=1.0,
    fallback=False,
    bonus_scale=1.0,
    summary="softmax for optimistic reward and utility, weighed by bisection",
    paper="Ghosh, Zhou and Shroff (2024), AISTATS",
    needs=(EPISODES, CONSTRAINT, ONE_CONSTRAINT),
    unknown_rewards=REFUSED,
    guarantee="regret and strong violation of order sqrt(K)",
    provenance="update and constants [paper]; bisection instead of the scan [derived]",
    unverified="the factor C_4 = 1 of the width",
)

GHOSH_RELEASED = replace(
    GHOSH,
    preset="released",
    constants=released,
    inside=0.0,
    tested=False,
    bisections=20,
    begins_safe=True,
    tightening=1.0,
    needs=(SAFE_POLICY, CONSTRAINT, ONE_CONSTRAINT),
    guarantee="",
    provenance="the baseline in OPSE's repository [code]",
    unverified="",
)
