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
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.families.planner import visited_asks
from cmdplab.algorithms.row import EPISODES, REFUSED, Row
from cmdplab.algorithms.running.episodes import begin_if_changed, loops
from cmdplab.algorithms.running.layout import (
    Counts,
    Pairs,
    Scratch,
    Storage,
    in_pairs,
    laid_out,
    learner_type,
)
from cmdplab.algorithms.running.loops import copy, pair_product
from cmdplab.algorithms.running.session import Family, Parts
from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.numerics.arrays import aligned, padded, to_pairs
from cmdplab.numerics.compiling import callable_when_compiled, compiled, compiled_exactly
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
    replan_first: float = 1.0  # a new plan in every episode: see `planner.Replan`
    replan_factor: float = 0.0  # 1: a new plan when the visits of a pair have doubled
    replan_most: float = math.inf


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
    return numbers._replace(monotone=0.0, replan_factor=1.0)


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

    counts: Counts  # [H, X, A, X], visits to (h, x, a, y)
    planned: Pairs  # [H, X, A], visits when the policy was planned
    q: Pairs  # [H, X, A], the optimistic values
    policy: Pairs  # [H, X, A], greedy, played next
    multiplier: Array  # [N], zeros
    episode: int  # episodes done

    @classmethod
    def initial(cls, row: Row, task: Task, counts: Array | None = None) -> OptimistState:
        """Return the state without visits: every value is the number of steps left."""
        n, H, X, A = task.reward.shape
        left = np.broadcast_to(np.arange(H, 0, -1.0)[:, None, None], (H, X, A))
        planned, policy = np.zeros((2, H, X, A))
        return cls(np.zeros((H, X, A, X)), planned, left.copy(), policy, np.zeros(n - 1), 0)


# The plan, compiled: Numba infers the types. Each loop runs over all pairs i = a * P + x.


@compiled
def add_moved(counts, inverse, value, order, half, left, out):
    """Add to out the gain of moving up to half[i] of a row from the worst states to the best."""
    best = order[0]
    for i in range(len(out)):
        left[i] = min(half[i], 1.0 - counts[best, i] * inverse[i])
        out[i] += left[i] * value[best]
    for t in range(len(order) - 1, -1, -1):
        y = order[t]
        for i in range(len(out)):
            taken = min(counts[y, i] * inverse[i], left[i])
            out[i] -= taken * value[y]
            left[i] -= taken


@compiled_exactly
def action_values(reward, visits, numbers, mean, square, corners, cap, q):
    """Write q[i], from the means of V, of V^2 and of the corners; q holds the values before."""
    told = (numbers.flat, numbers.deviation, numbers.tail, numbers.edge)
    for i in range(len(q)):
        n = max(visits[i], 1.0)
        spread = max(square[i] - mean[i] * mean[i], 0.0)
        bonus = value_bonus(n, spread, corners[i], *told)
        before = q[i] if numbers.monotone > 0.0 else cap
        seen = optimistic_value(reward[i], mean[i], bonus, before, cap)
        q[i] = seen if visits[i] > 0.0 else cap


@compiled
def choose(q, closed, top, best, policy, value):
    """Write the greedy policy, the first of equally good actions, and its values."""
    P = len(value)
    top[:] = -np.inf
    policy[:] = 0.0
    for a in range(len(q) // P):
        for x in range(P):
            total = q[a * P + x] + closed[a * P + x]
            if total > top[x]:
                top[x] = total
                best[x] = a
    for x in range(P):
        policy[best[x] * P + x] = 1.0
        value[x] = q[best[x] * P + x]


@compiled
def square_all(value, square):
    """Write square[y] = value[y]^2."""
    for y in range(len(value)):
        square[y] = value[y] * value[y]


@compiled_exactly
def divide(visits, inverse, mean, squares, cornered):
    """Turn sums over counts into means, and write 1 / n.

    A quotient, and no fused product in `action_values`: the variance of one value is then zero.
    """
    for i in range(len(visits)):
        n = max(visits[i], 1.0)
        inverse[i] = 1.0 / n
        mean[i] /= n
        squares[i] /= n
        cornered[i] /= n


@compiled
def write_corners(arrivals, numbers, corners):
    """Write the corner of each state from the visits of its pairs at the next step."""
    P = len(corners)
    corners[:] = 0.0
    for a in range(len(arrivals) // P):
        for y in range(P):
            corners[y] += arrivals[a * P + y]
    for y in range(P):
        corners[y] = corner(1.0, corners[y], numbers.corner_most, numbers.corner_cap)


@compiled
def move_mass(learner, numbers, h, log, space, mean):
    """Add the gain of the best kernel of each pair's L1 ball to the mean of V."""
    value, half, spare = space.weights[0], space.half, space.sums[3]
    for i in range(len(half)):
        n = max(learner.visits[h, i], 1.0)
        half[i] = 0.5 * ball_radius(n, numbers.ball, log, numbers.ball_scale)
    sort_states(value, space.order)
    add_moved(learner.counts[h], space.inverse, value, space.order, half, spare, mean)


@compiled
def average(learner, numbers, h, space):
    """Write the means of V, V^2 and the corners of the next step over the counts of a step."""
    weights, sums = space.weights, space.sums
    square_all(weights[0], weights[1])
    pair_product(learner.counts[h], weights[:2], sums[0], sums[1])
    if numbers.edge > 0.0:
        if h + 1 < len(learner.q):
            write_corners(learner.visits[h + 1], numbers, weights[2])
        else:
            weights[2] = numbers.corner_cap
        pair_product(learner.counts[h], weights[2:], sums[2], sums[3])
    divide(learner.visits[h], space.inverse, sums[0], sums[1], sums[2])


@compiled
def plan(learner, numbers, episode, space):
    """Write optimistic values and the greedy policy by one backward pass."""
    H, weights, sums = len(learner.q), space.weights, space.sums
    log = math.log(numbers.ball_log * max(H * episode, 1))
    copy(learner.visits.reshape(-1), learner.planned.reshape(-1))
    weights[:] = 0.0
    for h in range(H - 1, -1, -1):
        average(learner, numbers, h, space)
        if numbers.ball > 0.0:
            move_mass(learner, numbers, h, log, space, sums[0])
        q, told = learner.q[h], (learner.reward[h], learner.visits[h], numbers)
        action_values(*told, sums[0], sums[1], sums[2], float(H - h), q)
        best, policy = learner.best[h], learner.policy[h]
        choose(q, learner.closed[h], space.top, best, policy, weights[0])


@compiled
def first(learner, numbers, start, scratch, space):
    """Make the first plan, without data."""
    plan(learner, numbers, 0, space)


@compiled
def advance(learner, numbers, start, steps, k, states, actions, samples, scratch, space):
    """Count episode k, and plan anew if it is time. Return True after a new plan."""
    P = len(space.top)
    for h in range(len(actions)):
        i = actions[h] * P + states[h]
        learner.counts[h, states[h + 1], i] += 1.0
        learner.visits[h, i] += 1.0
    due = visited_asks(learner, numbers, P, states, actions)
    if due:
        plan(learner, numbers, k, space)
    return due


class Inputs(NamedTuple):
    """The learner's arrays beside those of its state."""

    visits: Array  # [H, A * P]
    best: Indices  # [H, P], the greedy action
    on_baseline: Indices  # [1], zero: there is no safe policy
    reward: Array  # [H, A * P], of the objective
    closed: Array  # [H, A * P], zero if an action is open, else too low ever to be the best


Learner = learner_type(OptimistState, Inputs)


class Space(NamedTuple):
    """Space for one plan, so that the loops allocate nothing."""

    weights: Array  # [4, P], of states: V, V^2, corners and zeros
    sums: Array  # [4, A * P], their sums over the counts
    inverse: Array  # [A * P], 1 / n
    half: Array  # [A * P], half the radius of an L1 ball
    top: Array  # [P]
    order: Indices  # [X]


def arrange(
    row: Optimist, task: Task, storage: Storage, state: OptimistState, scratch: Scratch
) -> Parts:
    """Lay out a state."""
    _, H, X, A = task.reward.shape
    P = padded(X)
    best = np.zeros((H, P), np.int64)
    best[:, :X] = np.argmax(state.policy, axis=-1)
    learner = Learner(
        **laid_out(state, task, storage, H),
        visits=to_pairs(state.counts.sum(axis=-1)),
        best=best,
        on_baseline=np.array([0]),
        reward=to_pairs(task.reward[0]),
        closed=to_pairs(task.closed),
    )
    inverse, half = aligned(2, A * P)
    sums = (aligned(4, P), aligned(4, A * P))
    return Parts(learner, scratch, Space(*sums, inverse, half, aligned(P), np.arange(X)))


def tables(problem: CMDP | None, task: Task) -> tuple[Storage, Any]:
    """Return tables as storage, for which a ball is laid out, and the true kernel in pairs."""
    return Storage(None, None, None), in_pairs(problem, task)[1]


FAMILY = Family(
    OptimistState, arrange, loops(advance, first=first, begin=begin_if_changed), world=tables
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
