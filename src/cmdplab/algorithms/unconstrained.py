"""UCBVI and UCRL2: optimistic value iteration for one reward, the zero point of unconstrained RL.

They look at r^0 alone: with constraints they learn as if there were none, and are no rivals.
Symbols -> names: n `visits` of (h, x, a), n'_{h+1}(y) those of y at the next step, V the values of
step h + 1, Var(V) their variance under Phat, L `log`. For h = H..1, with the steps left as a cap:

    Q_h = min( Q_h of the episode before, H - h + 1, r_h + Phat_h V + bonus ),   H - h + 1 if n = 0
    UCBVI-CH   bonus = 7 H L / sqrt(n)
    UCBVI-BF   bonus = sqrt(8 L Var(V) / n) + 14 H L / (3 n)
                       + sqrt( (8 / n) sum_y Phat(y) min(100^2 H^3 X^2 A L^2 / n'_{h+1}(y), H^2) )
    UCRL2      Q_h = min( H - h + 1, r_h + max over ||P' - Phat||_1 <= w of P' V ),
               w = sqrt(14 X ln(2 A H t / delta) / n), t steps so far; planned anew on doubling

Needs: UCBVI the number of episodes K, in L = ln(5 X H A T / delta), T = K H; UCRL2 nothing.
Guarantees: UCBVI regret of order H^(3/2) sqrt(X A K) (CH) and H sqrt(X A K) (BF) for a kernel that
all steps share; UCRL2 D X sqrt(A T) for average rewards, D the diameter.

Departures, all [derived]: counts are of each step, so that X H stands for X in the logarithms and
the orders grow by sqrt(H); the cap is H - h + 1, not H; UCRL2 has an H-step plan in the place of
extended value iteration to a span below 1 / sqrt(t), and known rewards. `bonus_scale` multiplies
the bonus, or w; the theory's is 1.
Provenance: UCBVI's bonuses [secondary] (a public formalisation) and [code]; UCRL2's width and its
doubling [code], the constant 34 of its bound [unverified], not used here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.row import EPISODES, REFUSED, Row
from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.task import Task
from cmdplab.types import Array

# The formulas of both engines: scalars in, a scalar out, in this order of operations.


def corner(p: float, arrived: float, most: float, cap: float) -> float:
    """Phat(y) min( most / n'_{h+1}(y), cap ), cap where y was never seen."""
    return p * (min(most / arrived, cap) if arrived > 0.0 else cap)


def value_bonus(
    n: float, spread: float, corners: float, flat: float, deviation: float, tail: float, edge: float
) -> float:
    """flat / sqrt(n) + sqrt(deviation Var / n) + tail / n + sqrt(edge corners / n)."""
    return (
        flat / math.sqrt(n)
        + math.sqrt(deviation * spread / n)
        + tail / n
        + math.sqrt(edge * corners / n)
    )


def ball_radius(n: float, coefficient: float, log: float, scale: float) -> float:
    """w = 2 ^ scale sqrt(coefficient log / n), the radius of an L1 ball around Phat."""
    return min(2.0, scale * math.sqrt(coefficient * log / n))


def optimistic_value(r: float, ahead: float, bonus: float, before: float, cap: float) -> float:
    """min( Q of the episode before, cap, r + P' V + bonus )."""
    return min(before, cap, r + ahead + bonus)


FORMULAS = (corner, value_bonus, ball_radius, optimistic_value)


class OptimistNumbers(NamedTuple):
    """A row resolved for given sizes; those of the bonus are scaled, what is zero is not there."""

    flat: float = 0.0
    deviation: float = 0.0
    tail: float = 0.0
    edge: float = 0.0
    corner_most: float = 0.0
    corner_cap: float = 0.0
    ball: float = 0.0  # 14 X
    ball_log: float = 1.0  # 2 A H / delta: w has ln(this t)
    ball_scale: float = 1.0
    monotone: float = 1.0  # 1: values never rise; 0: each plan is made from nothing
    doubling: float = 0.0  # 1: a new plan when the visits of a pair have doubled


def ucbvi_log(s: Setting) -> float:
    """L = ln( 5 X H A T / delta ), T = K H."""
    return math.log(5.0 * s.X * s.H * s.A * s.K * s.H / s.delta)


def chernoff_hoeffding(s: Setting) -> OptimistNumbers:
    """7 H L / sqrt(n)."""
    return OptimistNumbers(flat=s.bonus_scale * 7.0 * s.H * ucbvi_log(s))


def bernstein_freedman(s: Setting) -> OptimistNumbers:
    """The bonus of UCBVI-BF: see the module."""
    log, scale = ucbvi_log(s), s.bonus_scale
    return OptimistNumbers(
        deviation=scale**2 * 8.0 * log,
        tail=scale * 14.0 * s.H * log / 3.0,
        edge=scale**2 * 8.0,
        corner_most=100.0**2 * s.H**3 * s.X**2 * s.A * log**2,
        corner_cap=float(s.H**2),
    )


def l1_ball(s: Setting) -> OptimistNumbers:
    """w = sqrt(14 X ln(2 A H t / delta) / n)."""
    log = 2.0 * s.A * s.H / s.delta
    numbers = OptimistNumbers(ball=14.0 * s.X, ball_log=log, ball_scale=s.bonus_scale)
    return numbers._replace(monotone=0.0, doubling=1.0)


@dataclass(frozen=True, kw_only=True)
class Optimist(Row):
    """One algorithm of the family."""

    resolved: Callable[[Setting], OptimistNumbers]
    unknown_rewards: str = REFUSED

    def meant_for(self, constraints: int) -> bool:
        """A reference for problems without constraints; by its name it plays on others too."""
        return constraints == 0

    def setting(self, task: Task) -> Setting:
        return super().setting(task)._replace(bonus_scale=self.bonus_scale)

    def numbers(self, task: Task) -> OptimistNumbers:
        """This row, resolved for a task."""
        return self.resolved(self.setting(task))


class OptimistState(NamedTuple):
    """All that such a learner carries from one episode to the next."""

    counts: Array  # [H, X, A, X], visits to (h, x, a, y)
    planned: Array  # [H, X, A], visits when the policy was planned
    q: Array  # [H, X, A], the optimistic values
    policy: Array  # [H, X, A], greedy, played next
    multiplier: Array  # [N], zeros
    episode: int  # episodes done

    @classmethod
    def first(cls, task: Task) -> OptimistState:
        """Nothing seen: every value is the number of steps left."""
        n, H, X, A = task.reward.shape
        left = np.broadcast_to(np.arange(H, 0, -1.0)[:, None, None], (H, X, A))
        planned, policy = np.zeros((2, H, X, A))
        return cls(np.zeros((H, X, A, X)), planned, left.copy(), policy, np.zeros(n - 1), 0)


UCBVI_CH = Optimist(
    name="UCBVI-CH",
    resolved=chernoff_hoeffding,
    summary="without constraints: optimistic value iteration with Hoeffding's bonus",
    paper="Azar, Osband and Munos (2017), arXiv:1703.05449",
    needs=(EPISODES,),
    guarantee="regret of order sqrt(K) without constraints",
    provenance="bonus [secondary], [code]; counts of each step, cap H - h + 1 [derived]",
)

UCBVI_BF = replace(
    UCBVI_CH,
    name="UCBVI-BF",
    resolved=bernstein_freedman,
    summary="without constraints: optimistic value iteration with Bernstein's bonus",
)

UCRL2 = Optimist(
    name="UCRL2",
    resolved=l1_ball,
    summary="without constraints: the best kernel of an L1 ball, planned anew on doubling",
    paper="Jaksch, Ortner and Auer (2010), JMLR 11",
    guarantee="regret of order sqrt(T) without constraints, for average rewards",
    provenance="width and doubling [code]; finite horizon, counts of each step [derived]",
)
