"""Triple-Q (Wei, Liu and Ying, AISTATS 2022): model-free, two Q-tables and a virtual queue.

The update and its symbols: families/triple_q.py. Needs: the number of episodes.
Guarantee: see TRIPLE_Q; no run reaches its K (of order 1e56 at X = 30, A = 3, H = 10, slack = 2).

`printed` [paper]: the constants of `printed_*`, chi = eta = K^0.2, both tables back to H at the end
of a frame. Triple-Q-no-reset is Algorithm 2: Q is raised instead. `margin_scale` multiplies
epsilon, `bonus_scale` w, w' and the raise. At the sizes above and K = 1e5 epsilon is 6.6e8: only
with a margin_scale of 1e-9 does the objective matter.

`released` [code] is the authors' notebook Triple_Q_tabular.ipynb (X = 324, H = 25, K = 80,000),
whose rewards of a step reach 100. We divide them by 100 [derived], and with them Q; eta is
multiplied by 100, since Q / 100 + Z C / (100 eta) has the same argmax. Numbers that are values are
kept as shares of H [derived: there is one H to go by].

    quantity                 notebook                       here
    Q at first, after reset  800                            8    = 0.32 H
    Q is reset beyond        850                            8.5  = 0.34 H
    raise of Q at frame end  3                              0.03 = 0.0012 H
    C at first, reset beyond 25                             H, and C itself is never reset
    w, w'                    0.2 sqrt(ln K / t), 1 % of it  0.002 sqrt(ln K / t), the same
    eta                      1e-4 K^0.2 sqrt(A X H^4)       0.01 K^0.2 sqrt(A X H^4)
    epsilon                  0.5                            0.02 H
    random actions           0.95^ceil((k - 1) / 20), then 3 % of the rest: the same
    Cbar, chi                C_1 after its update, K^0.2    the same
    frame                    int(K^0.6), at 1e5 999         floor(K^0.6), exact: 1000

Departures. Ties go to the first action [derived]; the notebook draws among them [code].
The notebook's curves are of a test policy with the 3 % only; ours of the policy that was played.
N > 1: one C and Z a constraint [paper, conclusion], reset if any C is over its limit [derived].
"""

from __future__ import annotations

import math
from dataclasses import replace

from cmdplab.algorithms.families.triple_q import (
    Exploration,
    TableRules,
    TripleQ,
    Widths,
    fifth_root,
    iota,
)
from cmdplab.algorithms.row import EPISODES, IN_PAPER
from cmdplab.algorithms.schedules import Setting


def no_reset(s: Setting) -> TableRules:
    """Return the rule Q += 2 H^3 sqrt(iota) / eta; if Q >= H or C >= H, both become H.

    [paper, Algorithm 2]
    """
    raised = 2.0 * s.H**3 * math.sqrt(iota(s)) / fifth_root(s)
    at_least = math.nextafter(s.H, 0.0)  # > this is >= H
    return TableRules(s.H, s.H, raised, at_least, at_least, 1.0)


def released_eta(s: Setting) -> float:
    """Return 100 * 1e-4 K^0.2 sqrt(A X H^4)   [code; times 100: derived]."""
    return 0.01 * fifth_root(s) * math.sqrt(s.A * s.X * s.H**4)


def released_margin(s: Setting) -> float:
    """Return 0.5 at H = 25   [code; as a share of H: derived]."""
    return 0.02 * s.H


def released_widths(s: Setting) -> Widths:
    """Return 0.2 sqrt(ln K / t) / 100 for Q, 0.01 * 0.2 sqrt(ln K / t) for C.

    [code; / 100: derived]
    """
    coefficient = 0.002 * math.sqrt(math.log(s.K))
    return coefficient, coefficient, 0.0


def released_tables(s: Setting) -> TableRules:
    """Return Q = 800, += 3, reset if Q > 850, each / 100, or C > 25 [code; share of H: derived]."""
    return TableRules(0.32 * s.H, s.H, 0.0012 * s.H, 0.34 * s.H, s.H, 0.0)


TRIPLE_Q = TripleQ(
    name="Triple-Q",
    summary="model-free: Q-learning of objective and utilities, weighed by a virtual queue",
    paper="Wei, Liu and Ying (2022), AISTATS",
    needs=(EPISODES,),
    unknown_rewards=IN_PAPER,
    guarantee="weak regret O~(H^4 sqrt(X A) K^0.8 / slack) in expectation and weak violation <= 0, "
    "for K >= max((16 sqrt(X A H^6 iota^3) / slack)^5, e^(1 / slack))",
    provenance="update and constants [paper]; first action at a tie [derived]",
)

TRIPLE_Q_NO_RESET = replace(
    TRIPLE_Q,
    name="Triple-Q-no-reset",
    tables=no_reset,
    summary="the practical variant of Triple-Q: its tables are raised, not reset",
    guarantee="",
    provenance="update and constants [paper]; ties, N > 1, bonus scale on the raise [derived]",
)

TRIPLE_Q_RELEASED = replace(
    TRIPLE_Q,
    preset="released",
    bonus_scale=1.0,
    margin_scale=1.0,
    eta=released_eta,
    margin=released_margin,
    widths=released_widths,
    tables=released_tables,
    exploration=Exploration(1.0, 0.95, 20.0, 0.03),  # [code]
    tally_after=1.0,
    guarantee="",
    provenance="the notebook [code]; for rewards in [0, 1] and other horizons, ties [derived]",
)
