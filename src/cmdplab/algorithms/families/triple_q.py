"""The Triple-Q family: model-free, two Q-tables and a virtual queue, in natural axes.

Symbols: Q -> objective, C -> utility, N -> visits (of this frame), Z -> queue, Cbar -> tally, Z /
eta -> multiplier, rho -> threshold b, epsilon -> margin, K^0.6 -> frame. r and g are rewards of the
objective and of a constraint, w_t and w'_t bonuses (`width`), chi and eta numbers of a row, [.]_+
is max(., 0), and a frame is K^0.6 of K episodes. Episode k = 1, 2, ...:

    play a_h = argmax_a Q_h(x_h, a) + sum_j (Z_j / eta) C^j_h(x_h, a), then for every h, with
    t = ++N_h(x_h, a_h), alpha = (chi + 1) / (chi + t) and Q_{H+1} = C_{H+1} = 0:
        Q_h(x_h, a_h) <- (1 - alpha) Q_h(x_h, a_h) + alpha (r_h + Q_{h+1}(x_{h+1}, a_{h+1}) + w_t)
        C_h(x_h, a_h) <- (1 - alpha) C_h(x_h, a_h) + alpha (g_h + C_{h+1}(x_{h+1}, a_{h+1}) + w'_t)
    Cbar += C_1(x_1, a_1), and every K^0.6 episodes: N = 0, the tables are raised,
    Z <- [Z + b + epsilon - Cbar / K^0.6]_+, Cbar = 0

An update reads step h + 1 as it was before the episode (SARSA), and no step already left is read
again: an episode plays one Markov policy, known before it begins.

Every sum is taken in the order of plain Python. The greedy policy jumps at a tie, so that one bit
of difference would become another action. The greedy action of a state is kept, and sought anew
only if its tables change: step and update cost O(H (A + ln X)) an episode. Exact returns cost
more: a forward pass over the states with mass and the actions with probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cmdplab.algorithms.equations import draw_step
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.running import layout
from cmdplab.algorithms.running.episodes import begin_naturally, loops
from cmdplab.algorithms.running.layout import (
    Scratch,
    Storage,
    in_natural_axes,
    laid_out,
    learner_type,
)
from cmdplab.algorithms.running.session import Family, Parts
from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.task import Task
from cmdplab.errors import InputError
from cmdplab.numerics.arrays import from_pairs, to_pairs
from cmdplab.numerics.compiling import callable_when_compiled, compiled_exactly
from cmdplab.types import Array, Indices

# The formulas of both engines: scalars in, scalar out, as in equations.py. The argmax makes a bit
# of difference into another action, so compiled code keeps their order of operations.


def rate(t: float, shift: float) -> float:
    """Return (shift + 1) / (shift + t), which is 1 for t = 1; the learning rate if shift is chi."""
    return (shift + 1.0) / (shift + t)


def width(coefficient: float, t: float, shift: float) -> float:
    """Return w_t = coefficient sqrt( (shift + 1) / (shift + t) ), the bonus of visit t."""
    return coefficient * math.sqrt(rate(t, shift))


def learned(old: float, alpha: float, reward: float, ahead: float, bonus: float) -> float:
    """Return (1 - alpha) old + alpha (reward + ahead + bonus), the value after one update."""
    return (1.0 - alpha) * old + alpha * (reward + ahead + bonus)


def exploration(k: float, first: float, decay: float, every: float, always: float) -> float:
    """Return 1 - (1 - first decay^ceil((k - 1) / every)) (1 - always), the random share e_k."""
    decaying = first * math.pow(decay, float(math.ceil((k - 1.0) / every)))
    return 1.0 - (1.0 - decaying) * (1.0 - always)


def action_probability(greedy: float, share: float, actions: int) -> float:
    """Return pi(a) = (1 - e_k) greedy + e_k / A: greedy is 1 or 0, share is e_k, actions is A."""
    return (1.0 - share) * greedy + share / actions


def blend(now: float, then: float, share: float) -> float:
    """Return (1 - share) now + share then: exactly `now` for share = 0 and `then` for share = 1."""
    return (1.0 - share) * now + share * then


def reset_share(q: float, c: float, objective_limit: float, utility_limit: float) -> float:
    """Return 1 if Q > its limit or max_j C^j > the limit of C at the end of a frame, else 0."""
    return 1.0 if q > objective_limit or c > utility_limit else 0.0


def queue_step(queue: float, b: float, margin: float, tally: float, frame: float) -> float:
    """Return [ Z + b + epsilon - Cbar / K^0.6 ]_+ for queue Z, tally Cbar and the frame K^0.6."""
    return max(queue + b + margin - tally / frame, 0.0)


FORMULAS = (rate, width, learned, exploration, action_probability, blend, reset_share, queue_step)
callable_when_compiled(FORMULAS, set())

Widths = tuple[float, float, float]  # coefficients of `width` for Q and for C, and its shift


class TableRules(NamedTuple):
    """First values and limits of the tables. A frame ends with Q += raised, then with resets."""

    objective_start: float  # also the value after a reset
    utility_start: float
    raised: float
    objective_limit: float
    utility_limit: float
    utility_reset: float  # if Q is reset: 0: C stays as it is; 1: C is reset too


class Exploration(NamedTuple):
    """Uniform random actions: a decaying share, and a share that stays. See `exploration`."""

    first: float = 0.0
    decay: float = 1.0
    every: float = 1.0
    always: float = 0.0


def fifth_root(s: Setting) -> float:
    """Return K^0.2, which is chi in both presets, and the printed eta."""
    return math.pow(s.K, 0.2)


def frame_length(s: Setting) -> int:
    """Return floor(K^0.6), the episodes of a frame, by whole numbers: 1e5^0.6 rounds below 1000."""
    frame = int(math.pow(s.K, 0.6)) + 1
    while frame**5 > s.K**3:
        frame -= 1
    return frame


def iota(s: Setting) -> float:
    """Return the printed iota = 128 ln( sqrt(2 X A H) K )   [paper]."""
    return 128.0 * math.log(math.sqrt(2.0 * s.X * s.A * s.H) * s.K)


def printed_margin(s: Setting) -> float:
    """Return the margin epsilon = 8 sqrt(X A H^6 iota^3) / K^0.2   [paper]."""
    return 8.0 * math.sqrt(s.X * s.A * s.H**6 * iota(s) ** 3) / fifth_root(s)


def printed_widths(s: Setting) -> Widths:
    """Return the numbers of (1/4) sqrt( H^2 iota (chi + 1) / (chi + t) ), for Q and C   [paper]."""
    coefficient = 0.25 * s.H * math.sqrt(iota(s))
    return coefficient, coefficient, fifth_root(s)


def reset(s: Setting) -> TableRules:
    """Return the rule Q = C = H at first and after every frame   [paper, Algorithm 1]."""
    return TableRules(s.H, s.H, 0.0, -math.inf, -math.inf, 1.0)


class TripleQNumbers(NamedTuple):
    """Numbers of a row for given sizes: the engines read no other data of the row."""

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
    tables: Callable[[Setting], TableRules] = reset
    exploration: Exploration = Exploration()
    tally_after: float = 0.0  # 1: Cbar adds C_1 after its update (released)
    has_margin: ClassVar[bool] = True  # the queue aims above the thresholds

    def numbers(self, task: Task) -> TripleQNumbers:
        """Return the numbers of this row for the sizes and scales of a task."""
        s = self.setting(task)
        (objective, utility, shift), tables = self.widths(s), self.tables(s)
        numbers: TripleQNumbers = self.as_numbers(
            TripleQNumbers,
            s,
            margin=self.margin_scale * self.margin(s),
            objective_width=self.bonus_scale * objective,
            utility_width=self.bonus_scale * utility,
            width_shift=shift,
            **tables._replace(raised=self.bonus_scale * tables.raised)._asdict(),
            **{f"explore_{name}": each for name, each in self.exploration._asdict().items()},
        )
        return numbers

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
        """Return the reason why the theorem is not about this row as it stands; empty if it is."""
        if not self.guarantee or min(self.margin_scale, self.bonus_scale) < 1.0:
            return super().heuristic
        return "proved only beyond a number of episodes that no run reaches"


class TripleQState(NamedTuple):
    """State that a Triple-Q learner carries from one episode to the next."""

    objective: Array  # [H, X, A], Q
    utility: Array  # [N, H, X, A], C
    visits: Array  # [H, X, A], in this frame
    queue: Array  # [N], Z
    tally: Array  # [N], Cbar, the sum of C_1(x_1, a_1) over this frame
    multiplier: Array  # [N], Z / eta
    episode: int  # episodes done

    @classmethod
    def initial(cls, row: TripleQ, task: Task, counts: Array | None = None) -> TripleQState:
        """Return the state with the first values of the tables, no visits and empty queues."""
        n, visits = row.numbers(task), np.zeros(task.reward.shape[1:])
        queue, tally, multiplier = np.zeros((3, len(task.reward) - 1))
        utility = np.full_like(task.reward[1:], n.utility_start)
        return cls(visits + n.objective_start, utility, visits, queue, tally, multiplier, 0)


@compiled_exactly
def find_best(tables, h, x):
    """Write best = argmax_a Q + sum_n (Z_n / eta) C^n, the first action at a tie."""
    best, action = -np.inf, 0
    for a in range(tables.objective.shape[2]):
        total = tables.closed[h, x, a] + tables.objective[h, x, a]
        for n in range(len(tables.multiplier)):
            total += tables.multiplier[n] * tables.utility[n, h, x, a]
        if total > best:
            best, action = total, a
    tables.best[h, x] = action


@compiled_exactly
def find_all(tables):
    """Find every greedy action, at the start of a run and after a frame."""
    H, X = tables.best.shape
    for h in range(H):
        for x in range(X):
            find_best(tables, h, x)


@compiled_exactly
def chance(tables, h, x, a):
    """Return pi_h(a | x) of the policy played next: 0 for a closed action."""
    if tables.closed[h, x, a] != 0.0:
        return 0.0
    greedy = 1.0 if a == tables.best[h, x] else 0.0
    return action_probability(greedy, tables.share[0], tables.opened[h, x])


@compiled_exactly
def write_pairs(tables, out):
    """Write the policy played next in pairs, for a wrapper."""
    H, X, A = tables.objective.shape
    P = out.shape[1] // A
    for h in range(H):
        for x in range(X):
            for a in range(A):
                out[h, a * P + x] = chance(tables, h, x, a)


@compiled_exactly
def act(tables, h, x, u, P):
    """Draw by inverse CDF; if rounding leaves u beyond the sum, take the last action with mass."""
    total, action = 0.0, tables.best[h, x]
    for a in range(tables.objective.shape[2]):
        p = chance(tables, h, x, a)
        total, action, found = draw_step(a, p, u, total, action)
        if found:
            break
    return action


@compiled_exactly
def update(tables, numbers, states, actions, samples):
    """Update both tables along an episode. Step h + 1 is read before it is changed."""
    objective, utility = tables.objective, tables.utility
    for h in range(len(actions)):
        x, a, last = states[h], actions[h], h + 1 == len(actions)
        y, b = (0, 0) if last else (states[h + 1], actions[h + 1])
        tables.visits[h, x, a] += 1.0
        t = tables.visits[h, x, a]
        alpha = rate(t, numbers.chi)
        bonus = width(numbers.objective_width, t, numbers.width_shift)
        ahead = 0.0 if last else objective[h + 1, y, b]
        objective[h, x, a] = learned(objective[h, x, a], alpha, samples[0, h], ahead, bonus)
        bonus = width(numbers.utility_width, t, numbers.width_shift)
        for n in range(len(utility)):
            now = utility[n, h, x, a]
            ahead = 0.0 if last else utility[n, h + 1, y, b]
            after = learned(now, alpha, samples[n + 1, h], ahead, bonus)
            utility[n, h, x, a] = after
            if h == 0:
                tables.tally[n] += blend(now, after, numbers.tally_after)
        find_best(tables, h, x)


@compiled_exactly
def next_frame(tables, numbers):
    """Raise or reset the tables, forget the visits, and step the queues."""
    objective, visits = tables.objective.reshape(-1), tables.visits.reshape(-1)
    utility = tables.utility.reshape((len(tables.utility), len(objective)))
    for i in range(len(objective)):
        q, most = objective[i] + numbers.raised, -np.inf
        for n in range(len(utility)):
            most = max(most, utility[n, i])
        reset = reset_share(q, most, numbers.objective_limit, numbers.utility_limit)
        objective[i] = blend(q, numbers.objective_start, reset)
        for n in range(len(utility)):
            share = numbers.utility_reset * reset
            utility[n, i] = blend(utility[n, i], numbers.utility_start, share)
        visits[i] = 0.0
    for n in range(len(tables.queue)):
        b, tally = tables.threshold[n], tables.tally[n]
        tables.queue[n] = queue_step(tables.queue[n], b, numbers.margin, tally, numbers.frame)
        tables.multiplier[n] = tables.queue[n] / numbers.eta
        tables.tally[n] = 0.0
    find_all(tables)


@compiled_exactly
def advance(tables, numbers, start, steps, k, states, actions, samples, scratch, space):
    """Learn episode k. Known rewards take the place of samples."""
    for n in range(len(tables.samples)):
        for h in range(len(actions)):
            mean = tables.reward[n, h, states[h], actions[h]]
            tables.samples[n, h] = mean if len(samples) == 0 else samples[n, h]
    update(tables, numbers, states, actions, tables.samples)
    if k % int(numbers.frame) == 0:
        next_frame(tables, numbers)
    tables.share[0] = exploration(float(k + 1), *numbers[-4:])
    return True


class Inputs(NamedTuple):
    """The learner's arrays beside those of its state."""

    reward: Array  # [1 + N, H, X, A]
    threshold: Array  # [N]
    closed: Array  # [H, X, A], zero if an action is open, else too low ever to be the best
    opened: Indices  # [H, X], the number of open actions
    best: Indices  # [H, X], the greedy action
    share: Array  # [1], of random play in the next episode
    samples: Array  # [1 + N, H], of rewards


Tables = learner_type(TripleQState, Inputs)


def arrange(
    row: TripleQ, task: Task, storage: Storage, state: TripleQState, scratch: Scratch
) -> Parts:
    """Lay out a state, and find every greedy action."""
    rewards, H, X, _ = task.reward.shape
    tables = Tables(
        **laid_out(state, task, storage, H),
        reward=np.array(task.reward, order="C"),
        threshold=np.array(task.threshold),
        closed=np.array(task.closed, order="C"),
        opened=np.count_nonzero(task.closed == 0.0, axis=-1),
        best=np.zeros((H, X), np.int64),
        share=np.array([exploration(float(state.episode + 1), *row.numbers(task)[-4:])]),
        samples=np.zeros((rewards, H)),
    )
    find_all(tables)
    return Parts(tables, scratch)


def policy_of(row: TripleQ, task: Task, state: TripleQState) -> Array:
    """Return the policy [H, X, A] played next: greedy, except for random actions."""
    storage, _ = in_natural_axes(None, task)
    tables = arrange(row, task, storage, state, layout.scratch(task, storage, False)).learner
    pairs = to_pairs(task.closed)
    write_pairs(tables, pairs)
    return from_pairs(pairs, *task.reward.shape[2:])


FAMILY = Family(
    TripleQState,
    arrange,
    loops(advance, begin=begin_naturally(chance), act=act),
    world=in_natural_axes,
    draw=act,
    policy=policy_of,
    write=write_pairs,
)
TripleQ.family = FAMILY
