"""Arrays as the compiled loops want them, and the way there and back.

The vectorised axis is the state: a pair (x, a) sits at a * P + x, where P is X rounded up to a
multiple of 8, and C is X + 1 + N rounded up likewise. Every array starts on a 64-byte boundary:
unaligned, each 64-byte load touches two cache lines and the products take 20 % longer. Rewards are
evaluated in pairs, so their number R is rounded up to an even one with a row of zeros.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.primal_dual import Numbers, State
from cmdplab.algorithms.task import Task
from cmdplab.arrays import aligned, from_pairs, padded, to_pairs
from cmdplab.engines import live
from cmdplab.engines.protocol import Indices
from cmdplab.problem import CMDP, Array


class World(NamedTuple):
    """The true kernel, which only the engine sees."""

    kernel: Array  # [H, A * P, C], P_h(y | x, a), then the rewards r^n_h(x, a), then zeros
    cumulative: Array  # [H, X, A, X], sums over y; the last is beyond every uniform


class Learner(NamedTuple):
    """The learner's arrays: H X P A + (5 + R) H P A doubles and some vectors."""

    counts: Array  # [H, X, A * P], visits to (h, y, pair); ones in an unvisited uniform row
    inverse: Array  # [H, A * P], Pbar = counts * inverse
    visits: Array  # [H, A * P]
    bonus: Array  # [H, A * P]
    log_policy: Array  # [H, A * P]
    policy: Array  # [H, A * P]
    multiplier: Array  # [N]
    reward: Array  # [R, H, A * P]
    threshold: Array  # [N]
    closed: Array  # [H, A * P], zero where an action is open, else too low ever to be taken
    reward_sums: Array  # [1 + N, H, A * P], of samples; [0, H, A * P] where rewards are known


class Scratch(NamedTuple):
    """Space for one episode, so that the loops allocate nothing."""

    value: Array  # [R, P]
    action_value: Array  # [R, A * P]
    total: Array  # [A * P], Q~^0 + sum_n lambda^n Q~^n
    top: Array  # [P], of a softmax
    mass: Array  # [P]
    here: Array  # [2, C], state occupancies of two policies
    occupancy: Array  # [2, A * P]
    row: Array  # [P], one row of Pbar
    policies: Array  # [2, H, A * P], those whose returns are computed together
    returns: Array  # [2, 1 + N]
    states: Indices  # [H + 1]
    actions: Indices  # [H]
    samples: Array  # [1 + N, H], of rewards; [0, H] where they are known


def world(problem: CMDP) -> World:
    """The kernel of a problem, laid out for roll-outs and for exact returns."""
    H, X, A = problem.horizon, problem.states, problem.actions
    N = problem.constraints
    kernel = aligned(H, A, padded(X), padded(X + 1 + N))
    table = problem.table
    kernel[:, :, :X, :X] = table.transpose(0, 2, 1, 3)
    kernel[:, :, :X, X : X + 1 + N] = problem.reward.transpose(1, 3, 2, 0)
    cumulative = np.cumsum(table, axis=-1)
    # From the last successor of positive probability on, the sum is beyond every uniform: rounding
    # can then never lead to a state of probability zero.
    last = X - 1 - np.argmax(table[..., ::-1] > 0.0, axis=-1)
    cumulative[np.arange(X) >= last[..., None]] = 2.0
    return World(kernel.reshape(H, -1, padded(X + 1 + N)), cumulative)


def scratch(task: Task) -> Scratch:
    """Working space for a task."""
    rewards, H, X, A = task.reward.shape
    P, R = padded(X), rewards + rewards % 2
    return Scratch(
        value=aligned(R, P),
        action_value=aligned(R, A * P),
        total=aligned(A * P),
        top=aligned(P),
        mass=aligned(P),
        here=aligned(2, padded(X + rewards)),
        occupancy=aligned(2, A * P),
        row=aligned(P),
        policies=aligned(2, H, A * P),
        returns=aligned(2, rewards),
        states=np.zeros(H + 1, np.int64),
        actions=np.zeros(H, np.int64),
        samples=np.zeros((len(task.no_samples), H)),
    )


def learner(task: Task, numbers: Numbers, state: State) -> Learner:
    """The compiled learner's arrays, derived from a natural state; the rest is `refresh_all`'s."""
    rewards, H, X, A = task.reward.shape
    visits = state.counts.sum(axis=-1)
    unseen = visits == 0.0
    effective = state.counts + (unseen * (numbers.unvisited_mass > 0.0))[..., None]
    n = np.where(unseen, 1.0, visits + numbers.prior_visits)
    inverse = np.where(unseen, numbers.unvisited_mass / X, 1.0 / n)
    reward = aligned(rewards + rewards % 2, H, A * padded(X))
    reward[:rewards] = to_pairs(task.reward)
    return Learner(
        counts=to_pairs(np.moveaxis(effective, 3, 1)),
        inverse=to_pairs(inverse),
        visits=to_pairs(visits),
        bonus=aligned(H, A * padded(X)),
        log_policy=to_pairs(state.log_policy),
        policy=to_pairs(state.policy),
        multiplier=state.multiplier.copy(),
        reward=reward,
        threshold=task.threshold.copy(),
        closed=to_pairs(task.closed),
        reward_sums=to_pairs(live.checked_sums(task, state.reward_sums)),
    )


def natural_state(arrays: Learner, states: int, actions: int, episode: int) -> State:
    """The natural state, copied out of the compiled learner's arrays."""
    seen = from_pairs(arrays.visits, states, actions)[..., None] > 0.0
    counts = np.moveaxis(from_pairs(arrays.counts, states, actions), 1, 3)
    return State(
        counts=np.where(seen, counts, 0.0),
        log_policy=from_pairs(arrays.log_policy, states, actions),
        policy=from_pairs(arrays.policy, states, actions),
        multiplier=arrays.multiplier.copy(),
        episode=episode,
        reward_sums=from_pairs(arrays.reward_sums, states, actions),
    )
