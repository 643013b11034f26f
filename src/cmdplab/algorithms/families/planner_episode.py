"""One episode of the planning family, compiled. Sweeps and pivots are in solvers/.

Step h reads and writes layer min(h, L - 1) of what was counted: see planner.py.
"""
# Numba infers the types of the compiled functions; the classes name the shapes.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.counts import all_visits, visits_of
from cmdplab.algorithms.equations import (
    confidence_radius,
    mixed_policy,
    queue_step,
    reward_estimate,
)
from cmdplab.algorithms.families.boxes import AnyBox, empty_box, enlarged_box, row_ends
from cmdplab.algorithms.families.planner import (
    NEVER,
    Planner,
    PlannerState,
    safe_target,
    samples_of_width,
    signal,
    visited_asks,
)
from cmdplab.algorithms.running.episodes import begin_if_changed, loops
from cmdplab.algorithms.running.layout import AnyCounts, Scratch, Storage, laid_out
from cmdplab.algorithms.running.loops import copy
from cmdplab.algorithms.running.session import Family, Parts, with_places
from cmdplab.algorithms.running.storage import add_visit
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.transitions import Sparse
from cmdplab.numerics.arrays import padded, to_pairs
from cmdplab.numerics.compiling import compiled, compiled_apart, compiled_exactly, compiled_in_order
from cmdplab.solvers.layout import planning
from cmdplab.solvers.simplex import plan, write_policy
from cmdplab.solvers.value_iteration import evaluate, sweep
from cmdplab.types import Array, Indices


@compiled_exactly
def refresh_rewards(learner, numbers, layer, i, phi):
    """Write the ends of one pair's rewards for the plan, if rewards are observed."""
    visits = learner.visits[layer, i]
    for n in range(len(learner.reward_sums)):
        width = numbers.objective_width if n == 0 else numbers.utility_width
        more = numbers.reward_bonus * width * phi if n == 0 else 0.0
        r = reward_estimate(learner.reward_sums[n, layer, i], visits, width * phi)
        learner.reward[n, layer, i] = r + more


@compiled_exactly
def share_rewards(learner, layer, steps, i):
    """Copy a pair's reward ends from a layer's first step to its others, if rewards are unknown."""
    for n in range(len(learner.reward_sums)):
        for h in range(layer + 1, layer + steps):
            learner.reward[n, h, i] = learner.reward[n, layer, i]


@compiled_exactly
def refresh(learner, model, numbers, layer, i):
    """Write a pair's box and signals, from its counts and samples, at the layer's steps."""
    visits, moves = learner.visits[layer, i], learner.moves[layer, i]
    steps = model.reward.shape[1] - len(learner.visits) + 1  # all of them, or one
    phi = confidence_radius(visits, 0.0, numbers.log, float("inf"))
    refresh_rewards(learner, numbers, layer, i, phi)
    share_rewards(learner, layer, steps, i)
    counted = (learner.counts, learner.most)
    samples = samples_of_width(numbers.freedom, moves, visits)
    phi = confidence_radius(samples, 0.0, numbers.log, float("inf"))
    bonus, margin, lowest = row_ends(*counted, model, numbers, layer, i, moves, phi)
    # A fixed kernel has no spare mass: every state could otherwise get a remainder of rounding.
    model.spare[layer, i] = max(1.0 - lowest, 0.0) if numbers.freedom > 0.0 else 0.0
    for h in range(layer, layer + steps):
        r, more = learner.reward[0, h, i], numbers.objective_bonus
        model.reward[0, h, i] = signal(r, more, bonus, 0.0, margin)
        for n in range(1, len(model.reward)):
            r, more, less = learner.reward[n, h, i], numbers.utility_bonus, numbers.utility_margin
            model.reward[n, h, i] = signal(r, more, bonus, less, margin)


@compiled
def refresh_all(learner, model, numbers, X, P):
    """Refresh every pair, at the start of a run and after a resume."""
    layers, pairs = learner.visits.shape
    for layer in range(layers):
        for a in range(pairs // P):
            for x in range(X):
                refresh(learner, model, numbers, layer, a * P + x)


@compiled
def count(learner, model, numbers, P, states, actions, samples):
    """Add one episode to the counts. Only the boxes of visited pairs change."""
    for h in range(len(actions)):
        layer = min(h, len(learner.visits) - 1)
        i = actions[h] * P + states[h]
        if states[h + 1] >= 0:  # else the successor is unknown
            add_visit(learner.counts, layer, states[h + 1], i, True, 1.0)
            learner.moves[layer, i] += 1.0
        learner.visits[layer, i] += 1.0
        for n in range(len(samples)):
            learner.reward_sums[n, layer, i] += samples[n, h]
        refresh(learner, model, numbers, layer, i)


@compiled
def must_wait(learner, model, numbers, start, episode, work, returns):
    """Return True if the safe policy must be played in any case."""
    if learner.has_baseline[0] == 0:
        return False
    if episode < numbers.warm_up:
        return True
    if numbers.caution == -float("inf"):
        return False
    evaluate(model, learner.baseline, -1.0, float("inf"), start, work.order, returns, work)
    for n in range(len(model.threshold)):
        b = model.threshold[n]
        if returns[n + 1] <= safe_target(b, learner.baseline_returns[n + 1], numbers.caution):
            return True
    return False


@compiled
def play_safe(learner):
    """Make the baseline the policy of the next episode."""
    copy(learner.baseline.reshape(-1), learner.policy.reshape(-1))
    copy(learner.baseline_returns, learner.promised)
    learner.on_baseline[0] = 1


@compiled
def greedy_plan(learner, model, numbers, start, weight, columns, basis, work):
    """Plan by one sweep with the multipliers of the queue."""
    P = len(work.here)
    basis.weights[0] = 1.0
    for n in range(len(learner.queue)):
        learner.multiplier[n] = weight * learner.queue[n]
        basis.weights[n + 1] = learner.multiplier[n]
    actions, order, returns = columns.actions[0], columns.order[0], learner.promised
    sweep(model, basis.weights, numbers.truncation, start, actions, order, returns, work)
    learner.policy[:] = 0.0
    for h in range(len(actions)):
        for x in range(P):
            learner.policy[h, actions[h, x] * P + x] = 1.0


@compiled_in_order
def complete(policy, occupancy, closed, share, P):
    """Make this share of the policy uniform over open actions, where a plan never comes."""
    for h in range(len(policy)):
        for x in range(P):
            mass, opened = 0.0, 0.0
            for i in range(x, policy.shape[1], P):
                mass += occupancy[h, i]
                opened += closed[h, i] == 0.0
            if mass > NEVER:
                continue
            for i in range(x, policy.shape[1], P):
                uniform = 1.0 / opened if closed[h, i] == 0.0 else 0.0
                policy[h, i] = mixed_policy(policy[h, i], share, uniform)


@compiled_apart
def make_plan(learner, model, numbers, start, weight, episode, columns, basis, work):
    """Find the policy of the next episode."""
    P = len(work.here)
    copy(learner.visits.reshape(-1), learner.planned.reshape(-1))
    if must_wait(learner, model, numbers, start, episode, work, learner.promised):
        play_safe(learner)
        return
    learner.on_baseline[0] = 0
    if numbers.searched == 0.0:
        greedy_plan(learner, model, numbers, start, weight, columns, basis, work)
        return
    _, _, margin, _ = plan(model, start, learner.multiplier, columns, basis, work)
    if margin < 0.0 and learner.has_baseline[0] == 1:
        play_safe(learner)
        return
    write_policy(model, start, columns, basis, work, learner.policy, learner.promised)
    if numbers.uniform_elsewhere > 0.0:
        complete(learner.policy, work.occupancy, model.closed, numbers.uniform_elsewhere, P)
    if margin >= 0.0:
        for n in range(len(learner.multiplier)):
            learner.multiplier[n] = max(basis.multiplier[n], 0.0)


@compiled
def first(learner, numbers, start, scratch, space):
    """Make the first plan, without data."""
    model, columns, basis, work = space
    make_plan(learner, model, numbers, start, 0.0, 0, columns, basis, work)


@compiled
def advance(learner, numbers, start, steps, k, states, actions, samples, scratch, space):
    """Count episode k, update the queue, and plan if it is time."""
    model, columns, basis, work = space
    P = len(work.here)
    count(learner, model, numbers, P, states, actions, samples)
    step, margin, weight = steps
    for n in range(len(learner.queue)):
        b, value = model.threshold[n], learner.promised[n + 1]
        learner.queue[n] = queue_step(learner.queue[n], step, b, margin, value)
    learner.baseline_episodes[0] += learner.on_baseline[0]
    if k == numbers.warm_up or visited_asks(learner, numbers, P, states, actions):
        make_plan(learner, model, numbers, start, weight, k, columns, basis, work)
        return True
    return False


class Learner(NamedTuple):
    """The learner's arrays; a pair (x, a) is at a * P + x, L is that of the row."""

    counts: AnyCounts  # [L, X, A * P], visits to (h, y, pair)
    visits: Array  # [L, A * P]
    moves: Array  # [L, A * P], visits with a known successor
    planned: Array  # [L, A * P]
    most: Array  # [X, A * P], 0 if a state is known not to follow, else 1; or [1, A * P]
    policy: Array  # [H, A * P]
    promised: Array  # [1 + N]
    queue: Array  # [N]
    multiplier: Array  # [N]
    on_baseline: Indices  # [1]
    baseline_episodes: Indices  # [1]
    has_baseline: Indices  # [1]
    reward: Array  # [1 + N, H, A * P]
    baseline: Array  # [H, A * P]
    baseline_returns: Array  # [1 + N]
    reward_sums: Array  # [1 + N, L, A * P], of samples; [0, L, A * P] if rewards are known


class Space(NamedTuple):
    """The box, and the work space of the search."""

    model: AnyBox
    columns: Any
    basis: Any
    work: Any


def arrange(
    row: Planner, task: Task, storage: Storage, state: PlannerState, scratch: Scratch
) -> Parts:
    """Lay out a state, and derive the box from it."""
    baseline, (rewards, H, X, A), layers = task.baseline, task.reward.shape, row.layers(task)
    moves = visits_of(state.counts, layers, X, A)
    learner = Learner(
        **laid_out(state, task, storage, layers),
        visits=to_pairs(all_visits(moves, state.ends)),
        moves=to_pairs(moves),
        most=_most(task, storage.listed),
        has_baseline=np.array([baseline is not None], int),
        reward=to_pairs(task.reward),
        baseline=to_pairs(task.uniform if baseline is None else baseline.policy),
        baseline_returns=np.zeros(rewards) if baseline is None else baseline.returns,
    )
    model = empty_box(task, layers, storage.listed, learner.counts)
    refresh_all(learner, model, row.numbers(task), X, padded(X))
    return Parts(learner, scratch, Space(model, *planning(rewards - 1, H, X, A)))


def _most(task: Task, listed: Sparse | None) -> Array:
    """Return 1 for states that can follow a pair, as far as the task says, else 0.

    One row of ones stands for all states. With lists, one row of zeros is for the unlisted states.
    """
    pairs = task.reward.shape[3] * padded(task.reward.shape[2])
    if task.support is None:
        return np.ones((1, pairs))
    if listed is not None:
        return np.zeros((1, pairs))
    return to_pairs(np.moveaxis(task.support.astype(np.float64), 2, 0))


def grow(parts: Parts, states: Indices, actions: Indices) -> Parts:
    """Return the arrays with places for an episode, in the box too."""
    grown = with_places(parts, states, actions)
    model = enlarged_box(grown.space.model, grown.learner.counts)
    return grown._replace(space=grown.space._replace(model=model))


FAMILY = Family(
    PlannerState, arrange, loops(advance, first=first, begin=begin_if_changed), grow=grow
)
