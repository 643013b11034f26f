"""Triple-Q (Wei, Liu and Ying, AISTATS 2022): model-free, two Q-tables and a virtual queue.

Symbols: Q -> objective, C -> utility, N -> visits (of this frame), Z -> queue, Cbar -> tally,
Z / eta -> multiplier, rho -> threshold b, epsilon -> margin, K^0.6 -> frame. Episode k = 1, 2, ...:

    play a_h = argmax_a Q_h(x_h, a) + sum_j (Z_j / eta) C^j_h(x_h, a), then for every h, with
    t = ++N_h(x_h, a_h), alpha = (chi + 1) / (chi + t) and Q_{H+1} = C_{H+1} = 0:
        Q_h(x_h, a_h) <- (1 - alpha) Q_h(x_h, a_h) + alpha (r_h + Q_{h+1}(x_{h+1}, a_{h+1}) + w_t)
        C_h(x_h, a_h) <- (1 - alpha) C_h(x_h, a_h) + alpha (g_h + C_{h+1}(x_{h+1}, a_{h+1}) + w'_t)
    Cbar += C_1(x_1, a_1), and every K^0.6 episodes: N = 0, the tables are raised,
    Z <- [Z + b + epsilon - Cbar / K^0.6]_+, Cbar = 0

An update reads step h + 1 as it was before the episode (SARSA), and no step already left is asked
again: an episode plays one Markov policy, known before it begins. Needs: the number of episodes.
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
N > 1: one C and Z a constraint [paper, conclusion], reset where any C is over its limit [derived].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cmdplab.algorithms.row import EPISODES, IN_PAPER, Row
from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.task import Task
from cmdplab.errors import InputError
from cmdplab.types import Array

# The formulas of both engines: scalars in, scalar out, as in equations.py. The argmax makes a bit
# of difference into another action, so compiled code keeps their order of operations.


def rate(t: float, shift: float) -> float:
    """(shift + 1) / (shift + t): with shift = chi the learning rate alpha_t, and alpha_1 = 1."""
    return (shift + 1.0) / (shift + t)


def width(coefficient: float, t: float, shift: float) -> float:
    """w_t = coefficient sqrt( (shift + 1) / (shift + t) )."""
    return coefficient * math.sqrt(rate(t, shift))


def learned(old: float, alpha: float, reward: float, ahead: float, bonus: float) -> float:
    """(1 - alpha) Q_h + alpha ( r_h + Q_{h+1}(x_{h+1}, a_{h+1}) + w )."""
    return (1.0 - alpha) * old + alpha * (reward + ahead + bonus)


def exploration(k: float, first: float, decay: float, every: float, always: float) -> float:
    """e_k = 1 - (1 - first decay^ceil((k - 1) / every)) (1 - always), the share of random play."""
    decaying = first * math.pow(decay, float(math.ceil((k - 1.0) / every)))
    return 1.0 - (1.0 - decaying) * (1.0 - always)


def action_probability(greedy: float, share: float, actions: int) -> float:
    """pi(a) = (1 - e_k) [a is greedy] + e_k / A."""
    return (1.0 - share) * greedy + share / actions


def blend(now: float, then: float, share: float) -> float:
    """(1 - share) now + share then: exactly the one or the other for share = 0 and 1."""
    return (1.0 - share) * now + share * then


def reset_share(q: float, c: float, objective_limit: float, utility_limit: float) -> float:
    """[ Q > its limit or max_j C^j > theirs ], at the end of a frame: 1 where tables are reset."""
    return 1.0 if q > objective_limit or c > utility_limit else 0.0


def queue_step(queue: float, b: float, margin: float, tally: float, frame: float) -> float:
    """[ Z + b + epsilon - Cbar / K^0.6 ]_+."""
    return max(queue + b + margin - tally / frame, 0.0)


FORMULAS = (rate, width, learned, exploration, action_probability, blend, reset_share, queue_step)

Widths = tuple[float, float, float]  # coefficient in w_t for Q, the one for C, shift: see `width`


class Tables(NamedTuple):
    """First values; at the end of a frame Q += raised, and what is beyond a limit is reset."""

    objective_start: float  # also what a reset gives
    utility_start: float
    raised: float
    objective_limit: float
    utility_limit: float
    utility_reset: float  # where Q is reset: 0: C stays as it is; 1: it is reset too


class Exploration(NamedTuple):
    """Uniform random actions: a decaying share, and a share that stays. See `exploration`."""

    first: float = 0.0
    decay: float = 1.0
    every: float = 1.0
    always: float = 0.0


def fifth_root(s: Setting) -> float:
    """K^0.2: chi in both presets, and the printed eta."""
    return math.pow(s.K, 0.2)


def frame_length(s: Setting) -> int:
    """floor(K^0.6), by whole numbers: as floats 1e5^0.6 is below 1000."""
    frame = int(math.pow(s.K, 0.6)) + 1
    while frame**5 > s.K**3:
        frame -= 1
    return frame


def iota(s: Setting) -> float:
    """128 ln( sqrt(2 X A H) K )   [paper]."""
    return 128.0 * math.log(math.sqrt(2.0 * s.X * s.A * s.H) * s.K)


def printed_margin(s: Setting) -> float:
    """8 sqrt(X A H^6 iota^3) / K^0.2   [paper]."""
    return 8.0 * math.sqrt(s.X * s.A * s.H**6 * iota(s) ** 3) / fifth_root(s)


def printed_widths(s: Setting) -> Widths:
    """(1/4) sqrt( H^2 iota (chi + 1) / (chi + t) ) for both   [paper]."""
    coefficient = 0.25 * s.H * math.sqrt(iota(s))
    return coefficient, coefficient, fifth_root(s)


def reset(s: Setting) -> Tables:
    """Q = C = H at first and after every frame   [paper, Algorithm 1]."""
    return Tables(s.H, s.H, 0.0, -math.inf, -math.inf, 1.0)


def no_reset(s: Setting) -> Tables:
    """Q += 2 H^3 sqrt(iota) / eta; where Q >= H or C >= H both become H   [paper, Algorithm 2]."""
    raised = 2.0 * s.H**3 * math.sqrt(iota(s)) / fifth_root(s)
    at_least = math.nextafter(s.H, 0.0)  # > this is >= H
    return Tables(s.H, s.H, raised, at_least, at_least, 1.0)


def released_eta(s: Setting) -> float:
    """100 * 1e-4 K^0.2 sqrt(A X H^4)   [code; times 100: derived]."""
    return 0.01 * fifth_root(s) * math.sqrt(s.A * s.X * s.H**4)


def released_margin(s: Setting) -> float:
    """0.5 at H = 25   [code; as a share of H: derived]."""
    return 0.02 * s.H


def released_widths(s: Setting) -> Widths:
    """0.2 sqrt(ln K / t) / 100 for Q, 0.01 * 0.2 sqrt(ln K / t) for C   [code; / 100: derived]."""
    coefficient = 0.002 * math.sqrt(math.log(s.K))
    return coefficient, coefficient, 0.0


def released_tables(s: Setting) -> Tables:
    """Q = 800, += 3, reset if Q > 850, each / 100, or C > 25   [code; shares of H: derived]."""
    return Tables(0.32 * s.H, s.H, 0.0012 * s.H, 0.34 * s.H, s.H, 0.0)


class TripleQNumbers(NamedTuple):
    """A row resolved for given sizes: all that the engines know of it."""

    chi: float
    eta: float
    frame: float
    margin: float
    objective_width: float
    utility_width: float
    width_shift: float
    objective_start: float
    utility_start: float
    raised: float
    objective_limit: float
    utility_limit: float
    utility_reset: float
    tally_after: float
    explore_first: float
    explore_decay: float
    explore_every: float
    explore_always: float


@dataclass(frozen=True, kw_only=True)
class TripleQ(Row):
    """One algorithm of the family. The defaults are the paper's Algorithm 1."""

    chi: Callable[[Setting], float] = fifth_root  # slows the learning rate down
    eta: Callable[[Setting], float] = fifth_root  # Z / eta weighs the utility
    frame: Callable[[Setting], int] = frame_length  # episodes between two steps of the queue
    margin: Callable[[Setting], float] = printed_margin  # the queue aims at b + margin
    widths: Callable[[Setting], Widths] = printed_widths
    tables: Callable[[Setting], Tables] = reset
    exploration: Exploration = Exploration()
    tally_after: float = 0.0  # 1: Cbar adds C_1 after its update (released)
    has_margin: ClassVar[bool] = True  # the queue aims above the thresholds

    def numbers(self, task: Task) -> TripleQNumbers:
        """This row, resolved for a task."""
        s = self.setting(task)
        (objective, utility, shift), tables = self.widths(s), self.tables(s)
        resolved = (
            self.chi(s),
            self.eta(s),
            self.frame(s),
            self.margin_scale * self.margin(s),
            self.bonus_scale * objective,
            self.bonus_scale * utility,
            shift,
            *tables._replace(raised=self.bonus_scale * tables.raised),
            self.tally_after,
            *self.exploration,
        )
        return TripleQNumbers(*map(float, resolved))

    def _may_have(self, name: str) -> bool:
        return name == "dynamics" or super()._may_have(name)  # `_change` says why it has none

    def _change(self, name: str, value: Any) -> dict[str, Any]:
        if name != "dynamics":
            return super()._change(name, value)
        raise InputError(
            f"{self.name} has no dynamics: it estimates the values of each step, which differ "
            "where kernels do not, and its theorem has counts of each step"
        )

    @property
    def heuristic(self) -> str:
        """Empty where the theorem is about this row as it stands; else why it is not."""
        if not self.guarantee or min(self.margin_scale, self.bonus_scale) < 1.0:
            return super().heuristic
        return "proved only beyond a number of episodes that no run reaches"


class TripleQState(NamedTuple):
    """All that a Triple-Q learner carries from one episode to the next."""

    objective: Array  # [H, X, A], Q
    utility: Array  # [N, H, X, A], C
    visits: Array  # [H, X, A], in this frame
    queue: Array  # [N], Z
    tally: Array  # [N], Cbar, the sum of C_1(x_1, a_1) over this frame
    multiplier: Array  # [N], Z / eta
    episode: int  # episodes done

    @classmethod
    def initial(cls, row: TripleQ, task: Task) -> TripleQState:
        """The tables at their first values, no visits, the queues empty."""
        n, visits = row.numbers(task), np.zeros(task.reward.shape[1:])
        queue, tally, multiplier = np.zeros((3, len(task.reward) - 1))
        utility = np.full_like(task.reward[1:], n.utility_start)
        return cls(visits + n.objective_start, utility, visits, queue, tally, multiplier, 0)


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
