"""UCBVI and UCRL2: optimistic value iteration for one reward, the zero point of unconstrained RL.

They use r^0 alone: with constraints they learn as if there were none, and are no rivals.
Symbols -> names: n `visits` of (h, x, a), n'_{h+1}(y) those of y at the next step, L `log`. V is
the value of step h + 1, Var(V) its variance under Phat. For h = H..1, with the steps left as a cap:

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

from cmdplab.algorithms.families.planner import asks_for_plan
from cmdplab.algorithms.row import EPISODES, REFUSED, Row
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
from cmdplab.numerics.compiling import callable_when_compiled, compiled_exactly
from cmdplab.numerics.sorting import sort_states
from cmdplab.types import Array, Indices

# The formulas of both engines: scalars in, a scalar out, in this order of operations.


def corner(p: float, arrived: float, most: float, cap: float) -> float:
    """Return Phat(y) min( most / n'_{h+1}(y), cap ); the minimum is cap if y was never seen."""
    return p * (min(most / arrived, cap) if arrived > 0.0 else cap)


def value_bonus(
    n: float, spread: float, corners: float, flat: float, deviation: float, tail: float, edge: float
) -> float:
    """Return flat / sqrt(n) + sqrt(deviation Var / n) + tail / n + sqrt(edge corners / n)."""
    return (
        flat / math.sqrt(n)
        + math.sqrt(deviation * spread / n)
        + tail / n
        + math.sqrt(edge * corners / n)
    )


def ball_radius(n: float, coefficient: float, log: float, scale: float) -> float:
    """Return w = 2 ^ scale sqrt(coefficient log / n), the radius of an L1 ball around Phat."""
    return min(2.0, scale * math.sqrt(coefficient * log / n))


def optimistic_value(r: float, ahead: float, bonus: float, before: float, cap: float) -> float:
    """Return min( Q of the episode before, cap, r + P' V + bonus )."""
    return min(before, cap, r + ahead + bonus)


FORMULAS = (corner, value_bonus, ball_radius, optimistic_value)
callable_when_compiled(FORMULAS, set())


class OptimistNumbers(NamedTuple):
    """Numbers of a row for given sizes. Those of the bonus are scaled, and zero drops a term."""

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
    """Return L = ln( 5 X H A T / delta ), T = K H."""
    return math.log(5.0 * s.X * s.H * s.A * s.K * s.H / s.delta)


def chernoff_hoeffding(s: Setting) -> OptimistNumbers:
    """Return the numbers of the bonus 7 H L / sqrt(n)."""
    return OptimistNumbers(flat=s.bonus_scale * 7.0 * s.H * ucbvi_log(s))


def bernstein_freedman(s: Setting) -> OptimistNumbers:
    """Return the numbers of UCBVI-BF's bonus: see the module."""
    log, scale = ucbvi_log(s), s.bonus_scale
    return OptimistNumbers(
        deviation=scale**2 * 8.0 * log,
        tail=scale * 14.0 * s.H * log / 3.0,
        edge=scale**2 * 8.0,
        corner_most=100.0**2 * s.H**3 * s.X**2 * s.A * log**2,
        corner_cap=float(s.H**2),
    )


def l1_ball(s: Setting) -> OptimistNumbers:
    """Return the numbers of the radius w = sqrt(14 X ln(2 A H t / delta) / n)."""
    log = 2.0 * s.A * s.H / s.delta
    numbers = OptimistNumbers(ball=14.0 * s.X, ball_log=log, ball_scale=s.bonus_scale)
    return numbers._replace(monotone=0.0, doubling=1.0)


@dataclass(frozen=True, kw_only=True)
class Optimist(Row):
    """One algorithm of the family."""

    resolved: Callable[[Setting], OptimistNumbers]
    unknown_rewards: str = REFUSED

    def meant_for(self, constraints: int) -> bool:
        """Return True for a problem without constraints. By its name, the row plays others too."""
        return constraints == 0

    def setting(self, task: Task) -> Setting:
        return super().setting(task)._replace(bonus_scale=self.bonus_scale)

    def numbers(self, task: Task) -> OptimistNumbers:
        """Return the numbers of this row for a task."""
        return self.resolved(self.setting(task))


class OptimistState(NamedTuple):
    """State that a learner of the family carries from one episode to the next."""

    counts: Array  # [H, X, A, X], visits to (h, x, a, y)
    planned: Array  # [H, X, A], visits when the policy was planned
    q: Array  # [H, X, A], the optimistic values
    policy: Array  # [H, X, A], greedy, played next
    multiplier: Array  # [N], zeros
    episode: int  # episodes done

    @classmethod
    def initial(cls, row: Row, task: Task, counts: Array | None = None) -> OptimistState:
        """Return the state without visits: every value is the number of steps left."""
        n, H, X, A = task.reward.shape
        left = np.broadcast_to(np.arange(H, 0, -1.0)[:, None, None], (H, X, A))
        planned, policy = np.zeros((2, H, X, A))
        return cls(np.zeros((H, X, A, X)), planned, left.copy(), policy, np.zeros(n - 1), 0)


@compiled_exactly
def moved(row, visits, value, order, half):
    """Return the gain of moving up to `half` of a row's mass from the worst states to the best."""
    best = order[0]
    left = min(half, 1.0 - row[best] / visits)
    gain = left * value[best]
    for t in range(len(order) - 1, -1, -1):
        y = order[t]
        taken = min(row[y] / visits, left)
        gain -= taken * value[y]
        left -= taken
        if left <= 0.0:
            break
    return gain


@compiled_exactly
def find_value(learner, numbers, h, x, a, episode, value, order, arrived):
    """Return Q_h(x, a) from the values of step h + 1, whose order is given."""
    row, visits = learner.counts[h, x, a], learner.visits[h, x, a]
    H, cap = len(learner.q), float(len(learner.q) - h)
    if visits == 0.0:
        return cap
    mean, square, corners = 0.0, 0.0, 0.0
    for y in range(len(value)):
        p = row[y] / visits
        mean += p * value[y]
        square += p * value[y] * value[y]
        corners += corner(p, arrived[y], numbers.corner_most, numbers.corner_cap)
    spread = max(square - mean * mean, 0.0)
    more = 0.0
    if numbers.ball > 0.0:
        log = math.log(numbers.ball_log * max(H * episode, 1))
        radius = ball_radius(visits, numbers.ball, log, numbers.ball_scale)
        more = moved(row, visits, value, order, 0.5 * radius)
    told = (numbers.flat, numbers.deviation, numbers.tail, numbers.edge)
    bonus = value_bonus(visits, spread, corners, *told)
    before = learner.q[h, x, a] if numbers.monotone > 0.0 else cap
    return optimistic_value(learner.reward[h, x, a], mean + more, bonus, before, cap)


@compiled_exactly
def plan(learner, numbers, episode, space):
    """Write optimistic values and the greedy policy by one backward pass."""
    H, X, A = learner.q.shape
    value, following, arrived = space.value, space.following, space.arrived
    value[:] = 0.0
    for h in range(H - 1, -1, -1):
        sort_states(value, space.order)
        for y in range(X):
            arrived[y] = 0.0
            if h + 1 < H:
                for a in range(A):
                    arrived[y] += learner.visits[h + 1, y, a]
        for x in range(X):
            best, most = 0, -np.inf
            for a in range(A):
                told = (value, space.order, arrived)
                q = find_value(learner, numbers, h, x, a, episode, *told)
                learner.q[h, x, a] = q
                learner.policy[h, x, a] = 0.0
                learner.planned[h, x, a] = learner.visits[h, x, a]
                if q + learner.closed[h, x, a] > most:
                    best, most = a, q + learner.closed[h, x, a]
            learner.policy[h, x, best] = 1.0
            learner.best[h, x] = best
            following[x] = learner.q[h, x, best]
        for x in range(X):
            value[x] = following[x]


@compiled_exactly
def first(learner, numbers, start, scratch, space):
    """Make the first plan, without data."""
    plan(learner, numbers, 0, space)


@compiled_exactly
def advance(learner, numbers, start, steps, k, states, actions, samples, scratch, space):
    """Count episode k, and plan anew if it is time. Return True after a new plan."""
    due = numbers.doubling == 0.0
    for h in range(len(actions)):
        x, a = states[h], actions[h]
        learner.counts[h, x, a, states[h + 1]] += 1.0
        learner.visits[h, x, a] += 1.0
    for h in range(len(actions)):
        x, a = states[h], actions[h]
        visits, planned = learner.visits[h, x, a], learner.planned[h, x, a]
        due = due or asks_for_plan(visits, planned, 1.0, 1.0, np.inf)
    if due:
        plan(learner, numbers, k, space)
    return due


@compiled_exactly
def chance(learner, h, x, a):
    """Return pi_h(a | x) of the policy played next."""
    return learner.policy[h, x, a]


@compiled_exactly
def act(learner, h, x, u, P):
    """Return the greedy action: nothing is drawn."""
    return learner.best[h, x]


class Inputs(NamedTuple):
    """The learner's arrays beside those of its state."""

    visits: Array  # [H, X, A]
    best: Indices  # [H, X], the greedy action
    reward: Array  # [H, X, A], of the objective
    closed: Array  # [H, X, A], zero if an action is open, else too low ever to be the best


Learner = learner_type(OptimistState, Inputs)


class Space(NamedTuple):
    """Space for one plan, so that the loops allocate nothing."""

    value: Array  # [X]
    following: Array  # [X]
    arrived: Array  # [X], visits of states at the next step
    order: Indices  # [X]


def arrange(
    row: Optimist, task: Task, storage: Storage, state: OptimistState, scratch: Scratch
) -> Parts:
    """Lay out a state."""
    _, H, X, _ = task.reward.shape
    learner = Learner(
        **laid_out(state, task, storage, H),
        visits=state.counts.sum(axis=-1),
        best=np.argmax(state.policy, axis=-1),
        reward=np.array(task.reward[0], order="C"),
        closed=np.array(task.closed, order="C"),
    )
    return Parts(learner, scratch, Space(np.zeros(X), np.zeros(X), np.zeros(X), np.arange(X)))


FAMILY = Family(
    OptimistState,
    arrange,
    loops(advance, first=first, begin=begin_naturally(chance), act=act),
    world=in_natural_axes,
    draw=act,
)
Optimist.family = FAMILY


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
