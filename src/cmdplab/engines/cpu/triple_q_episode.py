"""One episode of Triple-Q, compiled.

Every sum is taken in the order in which plain Python takes it. The greedy policy jumps at a tie, so
that one bit of difference would become another action. Index letters: see primal_dual_episode.py.
"""
# Numba infers the types of these functions; triple_q.py names the shapes.

import numpy as np

from cmdplab.algorithms import triple_q as eq
from cmdplab.algorithms.equations import draw_step, reward_sample
from cmdplab.numerics.compiling import compiled_exactly


@compiled_exactly
def find_best(tables, h, x):
    """best = argmax_a Q + sum_n (Z_n / eta) C^n, the first one at a tie."""
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
    """Every greedy action: at the start of a run, and after a frame."""
    H, X = tables.best.shape
    for h in range(H):
        for x in range(X):
            find_best(tables, h, x)


@compiled_exactly
def chance(tables, h, x, a, share):
    """pi_h(a | x) of the policy played next: nothing for a closed action."""
    if tables.closed[h, x, a] != 0.0:
        return 0.0
    greedy = 1.0 if a == tables.best[h, x] else 0.0
    return eq.action_probability(greedy, share, tables.opened[h, x])


@compiled_exactly
def write_policy(tables, share, out):
    """out[h, x, a] = pi_h(a | x) of the policy played next."""
    H, X, A = out.shape
    for h in range(H):
        for x in range(X):
            for a in range(A):
                out[h, x, a] = chance(tables, h, x, a, share)


@compiled_exactly
def draw_action(tables, h, x, share, u):
    """Inverse CDF; rounding may leave u beyond the sum, then the last action with mass is taken."""
    total, action = 0.0, tables.best[h, x]
    for a in range(tables.objective.shape[2]):
        p = chance(tables, h, x, a, share)
        total, action, found = draw_step(a, p, u, total, action)
        if found:
            break
    return action


@compiled_exactly
def draw_state(world, h, x, a, u):
    """The first successor with u < cumulative, by bisection."""
    layer = min(h, len(world.range) - 1)
    low, high = world.range[layer, x, a, 0], world.range[layer, x, a, 1] - 1
    while low < high:
        middle = (low + high) >> 1
        if u < world.cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return world.state[low]


@compiled_exactly
def roll_out(world, tables, share, start, uniforms, states, actions):
    """Play one episode: states [H + 1], actions [H]."""
    states[0] = start
    for h in range(len(actions)):
        actions[h] = draw_action(tables, h, states[h], share, uniforms[h, 0])
        states[h + 1] = draw_state(world, h, states[h], actions[h], uniforms[h, 1])


@compiled_exactly
def draw_rewards(tables, states, actions, uniforms, spread, samples):
    """Samples [1 + N, H] of an episode's rewards, from uniforms [H, 1 + N]; spread 0: means."""
    for h in range(len(actions)):
        for n in range(len(samples)):
            r = tables.reward[n, h, states[h], actions[h]]
            samples[n, h] = reward_sample(r, uniforms[h, n], spread)


@compiled_exactly
def exact_returns(world, tables, share, start, mass, out):
    """out[n] = V^pi[P, r^n](start) of the policy played next, following its mass forward."""
    H, X, A = tables.objective.shape
    out[:] = 0.0
    mass[0, start] = 1.0
    for h in range(H):
        layer = min(h, len(world.range) - 1)
        here, there = h % 2, 1 - h % 2
        for x in range(X):
            if mass[here, x] == 0.0:
                continue
            for a in range(A):
                p = chance(tables, h, x, a, share)
                if p == 0.0:
                    continue
                flow = mass[here, x] * p
                for n in range(len(out)):
                    out[n] += flow * tables.reward[n, h, x, a]
                for s in range(world.range[layer, x, a, 0], world.range[layer, x, a, 1]):
                    mass[there, world.state[s]] += flow * world.probability[s]
            mass[here, x] = 0.0
    mass[:] = 0.0


@compiled_exactly
def update(tables, numbers, states, actions, samples):
    """Both tables along an episode, step by step: step h + 1 is read before it is changed."""
    objective, utility = tables.objective, tables.utility
    for h in range(len(actions)):
        x, a, last = states[h], actions[h], h + 1 == len(actions)
        y, b = (0, 0) if last else (states[h + 1], actions[h + 1])
        tables.visits[h, x, a] += 1.0
        t = tables.visits[h, x, a]
        alpha = eq.rate(t, numbers.chi)
        bonus = eq.width(numbers.objective_width, t, numbers.width_shift)
        ahead = 0.0 if last else objective[h + 1, y, b]
        objective[h, x, a] = eq.learned(objective[h, x, a], alpha, samples[0, h], ahead, bonus)
        bonus = eq.width(numbers.utility_width, t, numbers.width_shift)
        for n in range(len(utility)):
            now = utility[n, h, x, a]
            ahead = 0.0 if last else utility[n, h + 1, y, b]
            after = eq.learned(now, alpha, samples[n + 1, h], ahead, bonus)
            utility[n, h, x, a] = after
            if h == 0:
                tables.tally[n] += eq.blend(now, after, numbers.tally_after)
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
        reset = eq.reset_share(q, most, numbers.objective_limit, numbers.utility_limit)
        objective[i] = eq.blend(q, numbers.objective_start, reset)
        for n in range(len(utility)):
            share = numbers.utility_reset * reset
            utility[n, i] = eq.blend(utility[n, i], numbers.utility_start, share)
        visits[i] = 0.0
    for n in range(len(tables.queue)):
        b, tally = tables.threshold[n], tables.tally[n]
        tables.queue[n] = eq.queue_step(tables.queue[n], b, numbers.margin, tally, numbers.frame)
        tables.multiplier[n] = tables.queue[n] / numbers.eta
        tables.tally[n] = 0.0
    find_all(tables)


@compiled_exactly
def advance(tables, numbers, k, states, actions, samples, multiplier):
    """The learner's part of episode k; `multiplier` is told the new one."""
    update(tables, numbers, states, actions, samples)
    if k % int(numbers.frame) == 0:
        next_frame(tables, numbers)
    for n in range(len(multiplier)):
        multiplier[n] = tables.multiplier[n]


@compiled_exactly
def play_one(world, tables, numbers, start, share, k, uniforms, rewards, spread, scratch, told):
    """Episode k on the true kernel, without its exact returns; `told` is its multiplier."""
    states, actions, samples = scratch.states, scratch.actions, scratch.samples
    roll_out(world, tables, share, start, uniforms, states, actions)
    draw_rewards(tables, states, actions, rewards, spread, samples)
    advance(tables, numbers, k, states, actions, samples, told)


@compiled_exactly
def learn(world, tables, numbers, start, first, noise, scratch, chunk):
    """Episodes first, first + 1, ... on the true kernel, without their exact returns."""
    for e in range(len(noise.uniforms)):
        share = eq.exploration(float(first + e), *numbers[-4:])
        drawn = (noise.uniforms[e], noise.rewards[e], noise.spread)
        told = chunk.multiplier[e]
        play_one(world, tables, numbers, start, share, first + e, *drawn, scratch, told)


@compiled_exactly
def play(world, tables, numbers, start, first, noise, scratch, chunk):
    """The same with the exact returns of each episode's policy."""
    for e in range(len(noise.uniforms)):
        share = eq.exploration(float(first + e), *numbers[-4:])
        exact_returns(world, tables, share, start, scratch.mass, chunk.returns[e])
        drawn = (noise.uniforms[e], noise.rewards[e], noise.spread)
        told = chunk.multiplier[e]
        play_one(world, tables, numbers, start, share, first + e, *drawn, scratch, told)


@compiled_exactly
def replay(world, tables, numbers, start, first, noise, states, actions, scratch, chunk):
    """The same on trajectories from outside: states [E, H + 1], actions [E, H]."""
    samples = scratch.samples
    for e in range(len(states)):
        share = eq.exploration(float(first + e), *numbers[-4:])
        exact_returns(world, tables, share, start, scratch.mass, chunk.returns[e])
        draw_rewards(tables, states[e], actions[e], noise.rewards[e], noise.spread, samples)
        advance(tables, numbers, first + e, states[e], actions[e], samples, chunk.multiplier[e])
