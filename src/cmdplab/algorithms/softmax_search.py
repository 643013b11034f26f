"""The softmax-search family: one scalar multiplier, found by bisection, for a softmax policy.

Counts give a ridge estimate with sub-stochastic rows and a width without a logarithm,

    Phat_h(y | x, a) = n_h(x, a, y) / (n_h(x, a) + 1),    beta_h(x, a) = 1 / sqrt(n_h(x, a) + 1)

and one backward pass evaluates a policy while it builds it, h = H, ..., 1, with V_{H+1} = 0:

    Qr = r        + clip( Cr beta      + Phat Vr, 0, (1 + kappa ln A) l_h )    optimistic reward
    Qd = B beta   + clip( Cd beta      + Phat Vd, 0, B l_h )                   compensation
    Qu = u        + clip( sign Cu beta + Phat Vu, 0, l_h )                     utility
    pi^lam_h(. | x) = softmax_a( (Qd + Qr + lam Qu)(x, .) / kappa )
    Vr = sum_a pi (Qr - kappa ln pi),  Vd = sum_a pi Qd,  Vu = sum_a pi Qu,    U(lam) = Vu_1(x_1)

An episode searches the smallest lam in [0, C_lam] with U(lam) >= b and plays the upper end of the
last bracket, the one whose U was found >= b; where even C_lam fails, the safe policy or pi^C_lam.
With `replan="doubling"` it searches when the visits of a pair have doubled, and keeps its policy in
between: what passed the test on fewer visits is as safe, since the bounds hold for all counts.
With `near` > 0 the bisection begins at the multiplier of the last episode, and with a bracket that
grows from `near` times it: kappa may be 1e-6 and C_lam 1e5, which 23 halvings do not resolve.
What differs between members is a field of `SoftmaxSearch`; `numbers` resolves a row for given
sizes, and the engines see only those. N = 1: with several constraints U need not be monotone along
any one multiplier, and the papers leave the search open.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.equations import policy_term
from cmdplab.algorithms.planner import PlansAnew, every_episode
from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.task import Task
from cmdplab.types import Array

# The formulas of both engines: scalars in, scalar out, as in equations.py. Compiled code keeps
# their order of operations: a small kappa makes a bit of difference into another policy.


def ridge_width(visits: float) -> float:
    """beta = 1 / sqrt(n + 1)."""
    return 1.0 / math.sqrt(visits + 1.0)


def clip_level(unit: float, steps_left: int, loose: float) -> float:
    """unit (H - h + loose) with H - h + 1 steps left; loose is 0 in print and 1 in the release."""
    return unit * (steps_left - 1.0 + loose)


def clipped_value(r: float, bonus: float, ahead: float, level: float, inside: float) -> float:
    """r + clip(bonus + Phat V, 0, level); inside = 1: clip(r + bonus + Phat V, 0, level)."""
    return (1.0 - inside) * r + min(max(inside * r + bonus + ahead, 0.0), level)


def composite_logit(d: float, r: float, u: float, lam: float, sharpness: float) -> float:
    """(Qd + Qr + lam Qu) / kappa, whose softmax over a is pi^lam; sharpness is 1 / kappa."""
    return (d + r + lam * u) * sharpness


def next_multiplier(low: float, high: float, reach: float, passed: bool) -> float:
    """The middle of a bracket no wider than `reach`; else that far inside the end found last."""
    if high - low <= reach:
        return (low + high) / 2.0
    return high - reach if passed else low + reach


FORMULAS = (ridge_width, clip_level, clipped_value, composite_logit, next_multiplier)

GROWTH = 8.0  # of `reach` from probe to probe


class Constants(NamedTuple):
    """The constants of the pass, scales included."""

    reward_width: float  # Cr
    utility_width: float  # Cu, without its sign
    compensation_width: float  # Cd
    compensation: float  # B
    temperature: float  # kappa
    largest: float  # C_lam


class SoftmaxSearchNumbers(NamedTuple):
    """A row resolved for given sizes: all that the engines know of it."""

    reward_width: float
    utility_width: float  # with its sign
    compensation_width: float
    compensation: float
    sharpness: float  # 1 / kappa
    largest: float
    reward_unit: float  # 1 + kappa ln A; 1 without an entropy
    entropy: float  # kappa in Vr; 0 without an entropy
    weighting: float
    loose: float
    inside: float
    tested: float
    bisections: float
    near: float
    fallback: float
    begins_safe: float
    terminal_value: float  # Vr_{H+1}
    replan_first: float
    replan_factor: float
    replan_most: float


@dataclass(frozen=True, kw_only=True)
class SoftmaxSearch(PlansAnew):
    """One algorithm of the family. The defaults are OPSE in print."""

    constants: Callable[[Setting, float, float], Constants]  # of a setting, bonus and margin scale
    utility_sign: float = -1.0  # of Cu: -1 pessimistic, 1 optimistic
    entropy: float = 1.0  # 0: no entropy in Vr
    weighting: float = 0.0  # 1: the entropy is weighted by pi once more (released)
    loose: float = 0.0  # 1: clip levels are one unit higher (released)
    inside: float = 0.0  # 1: the clip is around the whole of Q
    tested: bool = True  # both ends of [0, C_lam] are tried first
    bisections: int = 23  # with the two tests 25 passes
    near: float = 0.0  # > 0: the search begins at the last multiplier, and so close to it
    fallback: bool = True  # the safe policy is played where even C_lam fails
    terminal_entropy: float = 0.0  # 1: Vr_{H+1} is the entropy of a uniform choice (released)
    begins_safe: bool = False  # the first episode is the safe policy's, whatever b (released)

    def numbers(self, task: Task) -> SoftmaxSearchNumbers:
        """This row, resolved for a task."""
        s = self.setting(task)
        c = self.constants(s, self.bonus_scale, self.margin_scale)
        entropy = self.entropy * c.temperature
        soft = (entropy, self.weighting)
        resolved = (
            c.reward_width,
            self.utility_sign * c.utility_width,
            c.compensation_width,
            c.compensation,
            1.0 / c.temperature,
            c.largest,
            1.0 + entropy * s.log_actions,
            *soft,
            self.loose,
            self.inside,
            self.tested,
            self.bisections,
            self.near,
            self.fallback,
            self.begins_safe,
            self.terminal_entropy * s.A * policy_term(1.0 / s.A, -s.log_actions, 0.0, *soft),
            *self.replan(s),
        )
        return SoftmaxSearchNumbers(*map(float, resolved))

    def _written(self, name: str) -> Any:
        """A search in every episode leaves no trace in records, which are older than the choice."""
        if name == "replan" and self.replan is every_episode:
            return None
        return super()._written(name)

    @property
    def has_margin(self) -> bool:
        """Whether utilities are evaluated pessimistically."""
        return self.utility_sign < 0.0


class SoftmaxSearchState(NamedTuple):
    """All that such a learner carries from one episode to the next."""

    counts: Array  # [H, X, A, X], visits to (h, x, a, y); other forms: counts.py
    planned: Array  # [H, X, A], visits at the time of the search
    policy: Array  # [H, X, A], played next
    multiplier: Array  # [1], the lam of that policy; C_lam where the safe policy is played
    on_baseline: int  # 1 if the policy is the safe one
    baseline_episodes: int  # how many episodes it was played
    episode: int  # episodes done

    @classmethod
    def empty(cls, task: Task, counts: Array | None = None) -> SoftmaxSearchState:
        """Before the first search; `counts` are of no visits, a table unless given."""
        _, H, X, A = task.reward.shape
        counts = np.zeros((H, X, A, X)) if counts is None else counts
        none = np.zeros((H, X, A))
        return cls(counts, none, task.uniform, np.zeros(len(task.threshold)), 0, 0, 0)
