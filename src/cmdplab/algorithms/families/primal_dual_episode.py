"""One episode of the primal-dual family, compiled. The innermost loops are in loops.py.

Index letters: see episodes.py. Step h reads and writes layer min(h, L - 1) of what was counted: see
primal_dual.py.
"""
# Numba infers the types of the compiled functions; the classes name the shapes.

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.counts import all_visits, visits_of
from cmdplab.algorithms.equations import (
    bonus,
    bonus_weight,
    confidence_radius,
    count_weight,
    multiplier_cap,
    multiplier_step,
    reward_estimate,
    reward_temperature,
    seen_value,
    unvisited_bonus,
    value_cap,
)
from cmdplab.algorithms.families.primal_dual import PrimalDual, PrimalDualState
from cmdplab.algorithms.running.episodes import loops
from cmdplab.algorithms.running.layout import AnyCounts, Scratch, Storage, laid_out, with_row_for
from cmdplab.algorithms.running.loops import (
    copy,
    evaluate_pair,
    mix,
    soft_values,
    softmax_step,
    sum_of_deviations,
    sum_of_roots,
)
from cmdplab.algorithms.running.session import Family, Parts, with_places
from cmdplab.algorithms.running.storage import add_visit, expected_pair, gather
from cmdplab.algorithms.task import Task
from cmdplab.numerics.arrays import aligned, padded, to_pairs
from cmdplab.numerics.compiling import compiled
from cmdplab.types import Array, Indices


@compiled
def refresh_rewards(learner, numbers, h, i):
    """Write the upper ends of one pair's rewards, if rewards are observed."""
    visits = learner.visits[h, i]
    seen = visits + numbers.prior_visits
    for n in range(len(learner.reward_sums)):
        phi = confidence_radius(visits, numbers.iterated, numbers.log, float("inf"))
        total = learner.reward_sums[n, h, i]
        learner.reward[n, h, i] = reward_estimate(total, seen, numbers.reward_scale * phi)


@compiled
def refresh_bonus(learner, numbers, h, i, row):
    """Write the bonus of one pair from its counts, gathered first so that the roots vectorise."""
    visits, inverse = learner.visits[h, i], learner.inverse[h, i]
    times = gather(learner.counts, h, i, inverse, row)
    # A sum whose coefficient is zero is not needed: skipping it saves 0.3 us an episode.
    roots = times * sum_of_roots(row) if numbers.root != 0.0 else 0.0
    deviations = times * sum_of_deviations(row) if numbers.dev != 0.0 else 0.0
    n = visits + numbers.prior_visits
    phi = confidence_radius(n, numbers.iterated, numbers.log, numbers.radius_cap)
    beta = bonus(phi, roots, deviations, numbers.root, numbers.dev, numbers.flat, numbers.tail)
    learner.bonus[h, i] = unvisited_bonus(beta, visits, numbers.unvisited_extra)


@compiled
def refresh_all(learner, numbers, row):
    """Refresh every bonus and estimated reward, at the start of a run and after a resume."""
    layers, pairs = learner.visits.shape
    for layer in range(layers):
        for i in range(pairs):
            refresh_bonus(learner, numbers, layer, i, row)
            refresh_rewards(learner, numbers, layer, i)


@compiled
def count(learner, numbers, states, actions, samples, P, row):
    """Add one episode. Only the bonuses and estimated rewards of visited pairs change."""
    for h in range(len(actions)):
        layer = min(h, len(learner.visits) - 1)
        i = actions[h] * P + states[h]
        if states[h + 1] >= 0:  # else the successor is unknown
            seen = learner.moves[layer, i] > 0.0
            add_visit(learner.counts, layer, states[h + 1], i, seen, numbers.visit)
            learner.moves[layer, i] += numbers.visit
            moves = learner.moves[layer, i]
            learner.inverse[layer, i] = count_weight(moves, numbers.prior_visits, 0.0)
        learner.visits[layer, i] += numbers.visit
        refresh_bonus(learner, numbers, layer, i, row)
        for n in range(len(samples)):
            learner.reward_sums[n, layer, i] += samples[n, h]
        refresh_rewards(learner, numbers, layer, i)


@compiled
def terms(learner, numbers, n, h, tau):
    """Return reward n at step h, its bonus weight, cap, multiplier and temperature."""
    soft = reward_temperature(n, tau)
    lam = 1.0
    if n > 0:  # the row of zeros that makes the number of rewards even has no multiplier
        lam = learner.multiplier[n - 1] if n <= len(learner.multiplier) else 0.0
    weight = bonus_weight(numbers.bonus_multiplier, soft, numbers.bonus_entropy)
    cap = value_cap(len(learner.policy) - h, soft, numbers.log_actions)
    layer = min(h, learner.reward.shape[1] - 1)
    return learner.reward[n, layer], weight, cap, lam, soft


@compiled
def evaluate(learner, numbers, h, tau, scratch):
    """Write Q~_h, V~_h of every reward and their total, from the values of step h + 1."""
    value, q = scratch.value, scratch.action_value
    layer = min(h, len(learner.visits) - 1)
    copy(learner.closed[h], scratch.total)
    for n in range(0, len(value), 2):
        expected_pair(learner.counts, layer, value[n : n + 2], q[n], q[n + 1])
        evaluate_pair(
            terms(learner, numbers, n, h, tau),
            terms(learner, numbers, n + 1, h, tau),
            learner.bonus[layer],
            learner.inverse[layer],
            learner.policy[h],
            learner.log_policy[h],
            numbers.entropy_weighting,
            q[n],
            q[n + 1],
            scratch.total,
            value[n],
            value[n + 1],
        )


@compiled
def step_multipliers(learner, numbers, start, eta, tau, margin, scratch):
    """Make the dual step on V~ of pi^k, or (lookahead = 1) on Q~^k averaged with pi^{k+1}."""
    P = scratch.value.shape[1]
    cap = multiplier_cap(numbers.dual_cap, tau, numbers.log_actions)
    for n in range(len(learner.multiplier)):
        value = scratch.value[n + 1, start]
        ahead = 0.0
        for i in range(start, len(scratch.total), P):
            ahead += learner.policy[0, i] * scratch.action_value[n + 1, i]
        value = seen_value(value, ahead, numbers.dual_lookahead)
        learner.multiplier[n] = multiplier_step(
            learner.multiplier[n], eta, tau, learner.threshold[n] + margin, value, cap
        )


@compiled
def improve(learner, numbers, start, steps, scratch):
    """Evaluate pi^k optimistically and replace it in a backward sweep, then make the dual step."""
    eta, dual_eta, tau, margin = steps
    value, q = scratch.value, scratch.action_value
    last = len(learner.policy) - 1
    value[:] = 0.0
    q[0, :] = 0.0
    soft_values(
        learner.policy[last],
        learner.log_policy[last],
        q[0],
        tau * numbers.terminal_entropy,
        numbers.entropy_weighting,
        value[0],
    )
    for h in range(last, -1, -1):
        evaluate(learner, numbers, h, tau, scratch)
        if numbers.mixing > 0.0:
            mix(learner.policy[h], numbers.mixing, scratch.mass, learner.log_policy[h])
        softmax_step(
            learner.log_policy[h],
            learner.policy[h],
            eta,
            tau,
            scratch.total,
            scratch.top,
            scratch.mass,
        )
    step_multipliers(learner, numbers, start, dual_eta, tau, margin, scratch)


@compiled
def advance(learner, numbers, start, steps, k, states, actions, samples, scratch, space):
    """Count episode k, then improve."""
    count(learner, numbers, states, actions, samples, len(scratch.top), scratch.row)
    improve(learner, numbers, start, steps, scratch)
    return True


class Learner(NamedTuple):
    """The learner's arrays: H X P A + (6 + R) H P A doubles and some vectors; H S P A for lists.

    L is that of the row: H, or 1 if steps share their counts.
    """

    counts: AnyCounts  # [L, X, A * P], visits; ones in an unvisited uniform row
    inverse: Array  # [L, A * P], Pbar = counts * inverse
    visits: Array  # [L, A * P]
    moves: Array  # [L, A * P], visits with a known successor
    bonus: Array  # [L, A * P]
    log_policy: Array  # [H, A * P]
    policy: Array  # [H, A * P]
    multiplier: Array  # [N]
    reward: Array  # [R, H, A * P], as given; [R, L, A * P] if rewards are observed
    threshold: Array  # [N]
    closed: Array  # [H, A * P], zero if an action is open, else too low ever to be taken
    reward_sums: Array  # [1 + N, L, A * P], of samples; none if rewards are known


def arrange(
    row: PrimalDual, task: Task, storage: Storage, state: PrimalDualState, scratch: Scratch
) -> Parts:
    """Lay out a state, and derive the bonuses and estimated rewards from it."""
    (rewards, H, X, A), layers, numbers = task.reward.shape, row.layers(task), row.numbers(task)
    estimated = layers if task.observed else H
    moves = visits_of(state.counts, layers, X, A)
    uniform = (moves == 0.0) * (numbers.unvisited_mass > 0.0)
    inverse = _count_weight(moves, numbers.prior_visits, numbers.unvisited_mass / X)
    reward = aligned(rewards + rewards % 2, estimated, A * padded(X))
    reward[:rewards] = to_pairs(task.reward[:, :estimated])
    learner = Learner(
        **laid_out(state, task, storage, layers, uniform),
        inverse=to_pairs(inverse),
        visits=to_pairs(all_visits(moves, state.ends)),
        moves=to_pairs(moves),
        bonus=aligned(layers, A * padded(X)),
        reward=reward,
        threshold=task.threshold.copy(),
        closed=to_pairs(task.closed),
    )
    scratch = with_row_for(learner.counts, scratch)
    refresh_all(learner, numbers, scratch.row)
    return Parts(learner, scratch)


_count_weight = np.vectorize(count_weight, otypes=[float])


def grow(parts: Parts, states: Indices, actions: Indices) -> Parts:
    """Return the arrays with places for an episode, and a row for the longest list."""
    learner, scratch, _ = with_places(parts, states, actions)
    return Parts(learner, with_row_for(learner.counts, scratch))


FAMILY = Family(PrimalDualState, arrange, loops(advance), grow=grow)
