"""One episode of a learner inside `Safe`, compiled: see safe.py.

The learner inside has the arrays and the parts of its own family. The guard beside it counts the
episodes of both policies, bounds the candidate's utilities, and sets lam.
"""
# Numba infers the types of the compiled functions; the classes name the shapes.

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.counts import visits_of
from cmdplab.algorithms.equations import confidence_radius, reward_estimate
from cmdplab.algorithms.families.boxes import AnyBox, empty_box, row_ends
from cmdplab.algorithms.families.safe import (
    Safe,
    SafeFields,
    behaviour,
    coin_share,
    inner_task,
    joined,
    mixed_value,
    parted,
    safe_state,
    utility_width,
    visits_of_width,
)
from cmdplab.algorithms.running import outside
from cmdplab.algorithms.running.episodes import draw_action, loops
from cmdplab.algorithms.running.layout import AnyCounts, Scratch, Storage, laid_out, natural
from cmdplab.algorithms.running.loops import copy
from cmdplab.algorithms.running.session import Family, Parts
from cmdplab.algorithms.running.storage import add_visit, exact_returns
from cmdplab.algorithms.task import Task
from cmdplab.numerics.arrays import padded, to_pairs
from cmdplab.numerics.compiling import compiled, compiled_exactly
from cmdplab.solvers.layout import planning
from cmdplab.solvers.value_iteration import evaluate
from cmdplab.types import Array, Indices


@compiled_exactly
def refresh(guard, model, numbers, layer, i):
    """Write the box and the utilities of one pair, from its visits and samples."""
    visits = guard.visits[layer, i]
    steps = model.reward.shape[1] - len(guard.visits) + 1  # all of them, or one
    width = utility_width(visits, numbers.log, numbers.margin_scale)
    for n in range(len(guard.utility_sums)):
        r = reward_estimate(guard.utility_sums[n, layer, i], visits, -width)
        for h in range(layer, layer + steps):
            model.reward[n, h, i] = r
    phi = confidence_radius(visits_of_width(visits), 0.0, numbers.log, float("inf"))
    counted = (guard.visited, guard.most)
    _, _, lowest = row_ends(*counted, model, numbers, layer, i, visits, phi)
    model.spare[layer, i] = max(1.0 - lowest, 0.0)


@compiled
def refresh_all(guard, model, numbers, X, P):
    """Refresh every pair, at the start of a run and after a resume."""
    layers, pairs = guard.visits.shape
    for layer in range(layers):
        for a in range(pairs // P):
            for x in range(X):
                refresh(guard, model, numbers, layer, a * P + x)


@compiled
def count(guard, model, numbers, P, states, actions, samples):
    """Add one episode of either policy. Only the boxes of visited pairs change."""
    for h in range(len(actions)):
        layer = min(h, len(guard.visits) - 1)
        i = actions[h] * P + states[h]
        add_visit(guard.visited, layer, states[h + 1], i, True, 1.0)
        guard.visits[layer, i] += 1.0
        for n in range(len(guard.utility_sums)):
            guard.utility_sums[n, layer, i] += samples[n + 1, h]
        refresh(guard, model, numbers, layer, i)


@compiled
def weigh(guard, model, start, work):
    """Find w of the candidate, and the lam that makes the mixture safe."""
    infinite = float("inf")
    evaluate(model, guard.candidate, -1.0, infinite, start, work.order, guard.bound, work)
    lam = 0.0
    for n in range(len(guard.bound)):
        b_0 = guard.baseline_returns[n + 1]
        lam = coin_share(lam, guard.bound[n], model.threshold[n], b_0)
    guard.on_baseline[0] = lam


@compiled
def begin(world, guard, start, k, e, changed, noise, scratch, chunk):
    """Write the exact returns of the mixture, and draw which policy plays."""
    lam = guard.on_baseline[0]
    copy(guard.candidate.reshape(-1), scratch.policies[0].reshape(-1))
    exact_returns(world, scratch.policies, start, scratch, scratch.returns)
    for n in range(len(guard.baseline_returns)):
        own, safe_one = scratch.returns[0, n], guard.baseline_returns[n]
        chunk.returns[e, n] = mixed_value(lam, own, safe_one)
    chunk.on_baseline[e] = lam
    guard.tossed[0] = 1 if noise.coins[e] < lam else 0


@compiled
def act(guard, h, x, u, P):
    """Draw an action of the policy that plays this episode."""
    played = guard.baseline if guard.tossed[0] == 1 else guard.candidate
    return draw_action(played[h], x, u, P)


@lru_cache
def safe_loops(inside: Family) -> Any:
    """Return the loops around learners of a family."""
    write, learn, find = inside.write, inside.loops.advance, inside.loops.first

    @compiled
    def prepare(guard, start, space):
        """Find the candidate, its bounds and its lam, for the next episode."""
        write(guard.inside, guard.candidate)
        weigh(guard, space.model, start, space.work)

    @compiled
    def first(guard, numbers, start, scratch, space):
        """Find the first candidate."""
        find(guard.inside, guard.numbers, start, scratch, space.inside)
        prepare(guard, start, space)

    @compiled
    def advance(guard, numbers, start, steps, k, states, actions, samples, scratch, space):
        """Learn an episode that either policy played."""
        count(guard, space.model, numbers, len(scratch.top), states, actions, samples)
        guard.given_to_baseline[0] += guard.on_baseline[0]
        guard.baseline_episodes[0] += guard.tossed[0]
        if guard.tossed[0] == 0 or guard.own_only[0] == 0:
            guard.own_episodes[0] += 1
            own, told = guard.own_episodes[0], (states, actions, samples, scratch, space.inside)
            learn(guard.inside, guard.numbers, start, steps, own, *told)
            copy(guard.inside.multiplier, guard.multiplier)
        prepare(guard, start, space)
        return True

    return loops(advance, first=first, begin=begin, act=act)


class Guard(NamedTuple):
    """The guard of a learner; a pair (x, a) is at a * P + x, L is that of the row inside."""

    visited: AnyCounts  # [L, X, A * P], visits to (h, y, pair) of every episode
    visits: Array  # [L, A * P]
    most: Array  # [1, A * P], ones: any state may follow
    candidate: Array  # [H, A * P]
    baseline: Array  # [H, A * P]
    baseline_returns: Array  # [1 + N]
    bound: Array  # [N]
    multiplier: Array  # [N]
    on_baseline: Array  # [1], lam of the next episode
    given_to_baseline: Array  # [1], the sum of lam over the episodes done
    baseline_episodes: Indices  # [1]
    own_episodes: Indices  # [1], of the learner inside
    own_only: Indices  # [1], 1 if the learner does not see episodes of the safe policy
    tossed: Indices  # [1], 1 if the safe policy plays
    utility_sums: Array  # [N, L, A * P], of samples; [0, L, A * P] if rewards are known
    inside: Any  # the arrays of the learner inside
    numbers: Any  # of the row inside


class Space(NamedTuple):
    """The box of the guard, its work space, and that of the learner inside."""

    model: AnyBox
    work: Any
    inside: Any


@lru_cache
def safe_family(inside: Family) -> Family:
    """Return the family of wrapped learners of a family."""
    kind = safe_state(inside.state)

    def start(row: Safe, task: Task, storage: Storage) -> Any:
        told, layers = inner_task(task), row.layers(task)
        own = SafeFields.first(task, storage.nothing(told, layers))
        return joined(own, inside.initial(row.row, told, storage))

    def arrange(row: Safe, task: Task, storage: Storage, state: Any, scratch: Scratch) -> Parts:
        (_, H, X, A), told, layers = task.reward.shape, inner_task(task), row.layers(task)
        own, learnt = parted(row, state)
        outside.check_layers(row, task, own.visited)
        learner, scratch, space = inside.arranged(row.row, told, storage, learnt, scratch)
        baseline, visits = task.baseline, visits_of(own.visited, layers, X, A)
        assert baseline is not None
        guard = Guard(
            **laid_out(own, task, storage, layers),
            visits=to_pairs(visits),
            most=np.ones((1, A * padded(X))),
            baseline=to_pairs(baseline.policy),
            baseline_returns=np.array(baseline.returns),
            own_episodes=np.array([learnt.episode]),
            own_only=np.array([row.own_episodes_only], int),
            tossed=np.array([0]),
            inside=learner,
            numbers=row.row.numbers(told),  # type: ignore[attr-defined]
        )
        box = empty_box(told, layers, storage.listed, guard.visited)
        model = box._replace(reward=to_pairs(task.reward[1:]))
        refresh_all(guard, model, row.numbers(task), X, padded(X))
        work = planning(len(task.threshold) - 1, H, X, A).work
        return Parts(guard, scratch, Space(model, work, space))

    def keep(guard: Guard, task: Task, storage: Storage, episode: int) -> Any:
        told = inner_task(task)
        learnt = inside.kept(guard.inside, told, storage, int(guard.own_episodes[0]))
        return joined(natural(SafeFields, guard, task, storage, episode), learnt)

    def policy(row: Safe, task: Task, state: Any) -> Array:
        return behaviour(task, state)

    made = safe_loops(inside)
    return Family(kind, arrange, made, policy=policy, start=start, keep=keep)
