"""Confidence: bonuses on rewards and widths around an estimated kernel, each a row of coefficients.

`equations.bonus` and `equations.interval_width` are the two formulas.
"""

from __future__ import annotations

import math

from cmdplab.algorithms.families.planner import Width
from cmdplab.algorithms.families.primal_dual import Bonus
from cmdplab.algorithms.schedules import Setting


def uniform_pac(s: Setting) -> Bonus:
    """Return sum_y [ 2 sqrt(Pbar(y)) phi + 5 phi^2 ]   (Eq. 3, sum over y explicit as in H.1)."""
    return Bonus(root=2.0, tail=5.0 * s.X, iterated=2.0, log=2.0 * s.uniform_log)


def uniform_pac_released(s: Setting) -> Bonus:
    """Return sum_y sqrt(Pbar(y)) phi + 5 phi^2: no factor 2, one tail   (released notebook)."""
    return Bonus(root=1.0, tail=5.0, iterated=2.0, log=2.0 * s.uniform_log)


def bernstein_bonus(s: Setting) -> Bonus:
    """Return sum_y [ 2 sqrt(Pbar (1 - Pbar) L / n) + (14/3) L / n ], L = ln(4 X^2 A H K / delta).

    [unverified] The paper leaves the constants of its naive bonus open. These come from the
    Maurer-Pontil inequality with a union bound over (h, x, a, y), both sides and K counts.
    """
    return Bonus(dev=2.0, tail=14.0 / 3.0 * s.X, log=s.union_log)


def bernstein_bonus_released(s: Setting) -> Bonus:
    """Return H sum_y [ sqrt(Pbar (1 - Pbar) L / n) + (14/3) L / n ], L = ln(6 X A H K / delta)."""
    log = math.log(6.0 * s.X * s.A * s.H * s.K / s.delta)
    return Bonus(dev=float(s.H), tail=14.0 / 3.0 * s.X * s.H, log=log)


def appendix_c_bonus(s: Setting) -> Bonus:
    """Return ln(K/delta)/n + sqrt(ln(K/delta)/n), the naive bonus literally   (Appendix C)."""
    return Bonus(flat=1.0, tail=1.0, log=math.log(s.K / s.delta))


def bernstein_width(s: Setting) -> Width:
    """Return 2 sqrt(Pbar(1 - Pbar) L / n) + (14/3) L / n, L = ln(4 X^2 A H K / delta).

    The constants 2 and 14/3 are [code] (the DOPE repository, mode 1). L is [derived]: the
    Maurer-Pontil inequality, two sides, a union over (h, x, a, y) and K counts. The logarithms in
    print and in code contain fewer factors: ln(6XAHK/delta), ln(6X^2HK/delta), ln(2XAHK/delta).
    """
    return Width(log=s.union_log, dev=2.0, tail=14.0 / 3.0)


def bernstein_width_dope(s: Setting) -> Width:
    """Return `bernstein_width` with L = ln(6 X^2 H K / delta)   [code: the DOPE scripts]."""
    return bernstein_width(s)._replace(log=math.log(6.0 * s.X**2 * s.H * s.K / s.delta))


def hoeffding_width(s: Setting) -> Width:
    """Return sqrt(Z / n) / X for each y, in sum sqrt(Z / n), Z = ln(16 X^2 A H K / delta).

    [secondary] (OptPress). There is no cap: these algorithms use the sum only.
    """
    log = math.log(16.0 * s.X**2 * s.A * s.H * s.K / s.delta)
    return Width(log=log, flat=1.0 / s.X, cap=math.inf)
