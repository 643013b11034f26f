"""Exploration bonuses, each a row of coefficients: see `equations.bonus` for the one formula."""

from __future__ import annotations

import math

from cmdplab.algorithms.primal_dual import Bonus
from cmdplab.algorithms.schedules import Setting


def uniform_pac(s: Setting) -> Bonus:
    """sum_y [ 2 sqrt(Pbar(y)) phi + 5 phi^2 ]   (Eq. 3, the sum over y explicit as in H.1)."""
    return Bonus(root=2.0, tail=5.0 * s.X, iterated=2.0, log=_uniform_pac_log(s))


def uniform_pac_released(s: Setting) -> Bonus:
    """sum_y sqrt(Pbar(y)) phi + 5 phi^2: no factor 2, the tail once   (released notebook)."""
    return Bonus(root=1.0, tail=5.0, iterated=2.0, log=_uniform_pac_log(s))


def bernstein(s: Setting) -> Bonus:
    """sum_y [ 2 sqrt(Pbar (1 - Pbar) L / n) + (14/3) L / n ], L = ln(4 X^2 A H K / delta).

    [unverified] The paper leaves the constants of its naive bonus open. These come from the
    Maurer-Pontil inequality with a union bound over (h, x, a, y), both sides and K counts.
    """
    return Bonus(dev=2.0, tail=14.0 / 3.0 * s.X, log=s.union_log)


def bernstein_released(s: Setting) -> Bonus:
    """H sum_y [ sqrt(Pbar (1 - Pbar) L / n) + (14/3) L / n ], L = ln(6 X A H K / delta)."""
    log = math.log(6.0 * s.X * s.A * s.H * s.K / s.delta)
    return Bonus(dev=float(s.H), tail=14.0 / 3.0 * s.X * s.H, log=log)


def appendix_c(s: Setting) -> Bonus:
    """ln(K/delta)/n + sqrt(ln(K/delta)/n), the naive bonus taken literally   (Appendix C)."""
    return Bonus(flat=1.0, tail=1.0, log=math.log(s.K / s.delta))


def _uniform_pac_log(s: Setting) -> float:
    return 2.0 * math.log(48.0 * s.X**2 * s.A * s.H / s.delta)
