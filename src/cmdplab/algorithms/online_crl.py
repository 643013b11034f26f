"""Online-CRL (HasanzadeZonuzy, Bura, Kalathil and Shakkottai, 2021). [unverified]

The paper's text was not available: everything below is a reconstruction after UCFH (Dann and
Brunskill 2015), of which Online-CRL is the constrained form. Symbols -> names: eps `epsilon`,
w_min and m as below, phases `replan`.

    w_min = eps / (4 H X),  m = 1024 X H^2 / eps^2,  U_max = H X A log2(4 X^2 H^2 / eps^2)
    delta_1 = delta / (2 U_max (N + 1)),  L = ln(6 / delta_1)
    beta(y) = min( sqrt(L / (2n)), sqrt(2 Pbar(1 - Pbar) L / n) + (2/3) L / n )
    plan as OptCMDP; keep the policy until some pair's visits in the phase reach max(m w_min, n),
    pairs with n >= X m H no longer counting

Needs: the accuracy eps. No number of episodes, no Slater gap, no safe policy.
Guarantees: with probability 1 - delta at most X^2 A H^2 eps^-2 episodes, up to logarithms, whose
gap or violation exceeds eps.

Departures: the kernel may depend on h, so that counts are kept for each step (hence the H in
U_max). For this the order above is not proved; m has no polylogarithmic factor; at the end of a
phase all pairs are brought up to date, not only the one that ended it; UCFH's non-linear constraint
on the standard deviation is dropped; m is multiplied by the square of bonus_scale, because narrower
widths need fewer visits [derived]. bonus_scale defaults to 0.1
[ours]: docs/algorithms/scales.md.
"""

from __future__ import annotations

import math

from cmdplab.algorithms.families.planner import Planner, Replan, Width
from cmdplab.algorithms.row import ACCURACY
from cmdplab.algorithms.schedules import Setting


def width(s: Setting) -> Width:
    """Return min( sqrt(L / (2n)), sqrt(2 Pbar(1 - Pbar) L / n) + (2/3) L / n )   [unverified]."""
    changes = s.H * s.X * s.A * math.log2(max(4.0 * s.X**2 * s.H**2 / s.epsilon**2, 2.0))
    log = math.log(6.0 * 2.0 * changes * (s.N + 1) / s.delta)
    return Width(log=log, flat=math.sqrt(0.5), dev=math.sqrt(2.0), tail=2.0 / 3.0)


def phases(s: Setting) -> Replan:
    """Return the rule that a phase ends at max(m w_min, n) visits, if n < X m H   [unverified]."""
    m = s.bonus_scale**2 * 1024.0 * s.X * s.H**2 / s.epsilon**2
    least = s.epsilon / (4.0 * s.H * s.X)
    return Replan(first=max(m * least, 1.0), factor=1.0, most=max(s.X * m * s.H, 1.0))


ONLINE_CRL = Planner(
    name="Online-CRL",
    width=width,
    bonus_scale=0.1,
    replan=phases,
    summary="the optimistic linear program in phases that end when a pair's visits have doubled",
    paper="HasanzadeZonuzy, Bura, Kalathil and Shakkottai (2021), arXiv:2008.00311",
    needs=(ACCURACY,),
    guarantee="at most X^2 A H^2 epsilon^-2 episodes worse than epsilon, up to logarithms",
    provenance="reconstructed after UCFH [unverified]; 1024 in m [code hint]",
    unverified="all constants and the phase rule",
)
