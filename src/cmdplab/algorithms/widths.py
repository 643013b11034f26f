"""Widths of confidence intervals around an estimated kernel: see `equations.interval_width`."""

from __future__ import annotations

import math

from cmdplab.algorithms.planner import Width
from cmdplab.algorithms.schedules import Setting


def bernstein(s: Setting) -> Width:
    """2 sqrt(Pbar(1 - Pbar) L / n) + (14/3) L / n, L = ln(4 X^2 A H K / delta).

    The constants 2 and 14/3 are [code] (the DOPE repository, mode 1). L is [derived]: the
    Maurer-Pontil inequality, two sides, a union over (h, x, a, y) and K counts. The logarithms in
    print and in code contain fewer factors: ln(6XAHK/delta), ln(6X^2HK/delta), ln(2XAHK/delta).
    """
    return Width(log=s.union_log, dev=2.0, tail=14.0 / 3.0)


def bernstein_dope(s: Setting) -> Width:
    """The same with L = ln(6 X^2 H K / delta)   [code: the DOPE scripts]."""
    return Width(log=math.log(6.0 * s.X**2 * s.H * s.K / s.delta), dev=2.0, tail=14.0 / 3.0)


def hoeffding(s: Setting) -> Width:
    """sqrt(Z / n) / X for each y, which add up to sqrt(Z / n), Z = ln(16 X^2 A H K / delta).

    [secondary] (OptPress). Not capped: these algorithms use the sum only.
    """
    log = math.log(16.0 * s.X**2 * s.A * s.H * s.K / s.delta)
    return Width(log=log, flat=1.0 / s.X, cap=math.inf)
