"""One episode of a learner inside a coin, compiled: see algorithms/safe.py.

What differs between the learners inside is chosen by their type, when the loop is compiled.
"""
# Numba infers the types of the compiled functions; safe.py names the shapes.

from __future__ import annotations

from typing import Any

from cmdplab.algorithms.equations import confidence_radius, reward_estimate
from cmdplab.algorithms.safe import coin_share, mixed_value, utility_width, visits_of_width
from cmdplab.algorithms.triple_q import exploration
from cmdplab.engines.cpu import planner_episode, primal_dual_episode, triple_q_episode
from cmdplab.engines.cpu.boxes import row_ends
from cmdplab.engines.cpu.loops import copy
from cmdplab.engines.cpu.planner import PlannerInside
from cmdplab.engines.cpu.primal_dual import PrimalDualInside
from cmdplab.engines.cpu.primal_dual_episode import draw_rewards, roll_out
from cmdplab.engines.cpu.storage import add_visit, exact_returns
from cmdplab.engines.cpu.triple_q import TripleQInside
from cmdplab.numerics.compiling import by_type, compiled, compiled_exactly
from cmdplab.solvers.value_iteration import evaluate

LAM, GIVEN = 0, 1  # places in the guard's coin
BASELINE_EPISODES, OWN_EPISODES, OWN_ONLY = 0, 1, 2  # places in its tally


@compiled
def kept_policy(inside, own_episodes, out):
    """See `write_candidate`."""
    copy(inside.learner.policy.reshape(-1), out.reshape(-1))


@compiled
def primal_dual_learns(inside, start, steps, states, actions, samples, k, told):
    """See `learn`."""
    learner, numbers, scratch = inside.learner, inside.numbers, inside.scratch
    primal_dual_episode.advance(learner, numbers, start, steps, states, actions, samples, scratch)
    copy(learner.multiplier, told)


@compiled
def planner_learns(inside, start, steps, states, actions, samples, k, told):
    """See `learn`."""
    learner, fixed = inside.learner, (inside.model, inside.numbers, start)
    space = inside.space
    planner_episode.advance(learner, *fixed, steps, states, actions, samples, k, space)
    copy(learner.multiplier, told)


@compiled_exactly
def triple_q_policy(inside, own_episodes, out):
    """See `write_candidate`."""
    tables = inside.tables
    H, X, A = tables.objective.shape
    P = out.shape[1] // A
    share = exploration(float(own_episodes + 1), *inside.numbers[-4:])
    for h in range(H):
        for x in range(X):
            for a in range(A):
                out[h, a * P + x] = triple_q_episode.chance(tables, h, x, a, share)


@compiled_exactly
def triple_q_learns(inside, start, steps, states, actions, samples, k, told):
    """See `learn`."""
    tables, known = inside.tables, len(samples) == 0
    for n in range(len(inside.samples)):
        for h in range(len(actions)):
            mean = tables.reward[n, h, states[h], actions[h]]
            inside.samples[n, h] = mean if known else samples[n, h]
    numbers = inside.numbers
    triple_q_episode.advance(tables, numbers, k, states, actions, inside.samples, told)


@by_type(
    {PrimalDualInside: kept_policy, PlannerInside: kept_policy, TripleQInside: triple_q_policy}
)
def write_candidate(inside: Any, own_episodes: Any, out: Any) -> None:
    """out[h, i] = the policy that the learner would play next."""
    raise NotImplementedError


@by_type(
    {
        PrimalDualInside: primal_dual_learns,
        PlannerInside: planner_learns,
        TripleQInside: triple_q_learns,
    }
)
def learn(
    inside: Any, start: Any, steps: Any, states: Any, actions: Any, samples: Any, k: Any, told: Any
) -> None:
    """The learner's part of its episode k; `told` is its multiplier."""
    raise NotImplementedError


@compiled_exactly
def refresh(guard, model, numbers, layer, i):
    """The box and the utilities of one pair, from its visits and samples."""
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
    """Every pair: at the start of a run and after a resume."""
    layers, pairs = guard.visits.shape
    for layer in range(layers):
        for a in range(pairs // P):
            for x in range(X):
                refresh(guard, model, numbers, layer, a * P + x)


@compiled
def count(guard, model, numbers, P, states, actions, samples):
    """Add one episode, whoever played it; only the boxes of visited pairs change."""
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
    """w of the candidate, and the coin that makes the mixture safe."""
    infinite = float("inf")
    evaluate(model, guard.candidate, -1.0, infinite, start, work.order, guard.bound, work)
    lam = 0.0
    for n in range(len(guard.bound)):
        b_0 = guard.baseline_returns[n + 1]
        lam = coin_share(lam, guard.bound[n], model.threshold[n], b_0)
    guard.coin[LAM] = lam


@compiled
def prepare(inside, guard, model, start, work):
    """The candidate, its bounds and its coin, for the next episode."""
    write_candidate(inside, guard.tally[OWN_EPISODES], guard.candidate)
    weigh(guard, model, start, work)


@compiled
def advance(inside, guard, model, numbers, start, steps, states, actions, samples, safe, work):
    """What is learnt of an episode that one of the two policies played."""
    P = len(work.here)
    count(guard, model, numbers, P, states, actions, samples)
    guard.coin[GIVEN] += guard.coin[LAM]
    guard.tally[BASELINE_EPISODES] += safe
    if safe == 0 or guard.tally[OWN_ONLY] == 0:
        guard.tally[OWN_EPISODES] += 1
        k = guard.tally[OWN_EPISODES]
        learn(inside, start, steps, states, actions, samples, k, guard.multiplier)
    prepare(inside, guard, model, start, work)


@compiled
def play(
    world, inside, guard, model, numbers, start, steps, noise, coins, begun, scratch, work, chunk
):
    """Episodes on the true kernel; returns are those of the mixture, and one policy plays."""
    states, actions, samples = scratch.states, scratch.actions, scratch.samples
    if not begun:
        prepare(inside, guard, model, start, work)
    for k in range(len(coins)):
        lam = guard.coin[LAM]
        copy(guard.candidate.reshape(-1), scratch.policies[0].reshape(-1))
        exact_returns(world, scratch.policies, start, scratch, scratch.returns)
        for n in range(len(guard.baseline_returns)):
            own, safe_one = scratch.returns[0, n], guard.baseline_returns[n]
            chunk.returns[k, n] = mixed_value(lam, own, safe_one)
        chunk.on_baseline[k] = lam
        safe = 1 if coins[k] < lam else 0
        played = guard.baseline if safe == 1 else guard.candidate
        roll_out(world, played, start, noise.uniforms[k], states, actions)
        draw_rewards(world, states, actions, noise.rewards[k], noise.spread, samples)
        told = (steps[k], states, actions, samples, safe, work)
        advance(inside, guard, model, numbers, start, *told)
        copy(guard.multiplier, chunk.multiplier[k])
