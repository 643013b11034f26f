"""One episode of UCBVI or UCRL2, compiled: every sum in the order of plain Python."""
# Numba infers the types of these functions; session.py names the shapes.

import math

import numpy as np

from cmdplab.algorithms.planner import asks_for_plan
from cmdplab.algorithms.unconstrained import ball_radius, corner, optimistic_value, value_bonus
from cmdplab.engines.cpu.triple_q_episode import draw_state
from cmdplab.numerics.compiling import compiled_exactly
from cmdplab.solvers.value_iteration import sort_states


@compiled_exactly
def moved(row, visits, value, order, half):
    """What a row gains by moving up to `half` of its mass from the worst states to the best."""
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
    """Q_h(x, a) from the values of step h + 1, whose order is given."""
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
    """One backward pass: optimistic values, and the greedy policy."""
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
def advance(learner, numbers, states, actions, episode, space):
    """Count an episode, and plan anew if it is time; whether it was."""
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
        plan(learner, numbers, episode, space)
    return due


@compiled_exactly
def exact_returns(world, learner, rewards, start, mass, out):
    """out[n] = V^pi[P, r^n](start) of the greedy policy, following its mass forward."""
    H, X, _ = learner.q.shape
    out[:] = 0.0
    mass[:] = 0.0
    mass[0, start] = 1.0
    for h in range(H):
        layer = min(h, len(world.range) - 1)
        here, there = h % 2, 1 - h % 2
        for x in range(X):
            flow = mass[here, x]
            if flow == 0.0:
                continue
            a = learner.best[h, x]
            for n in range(len(out)):
                out[n] += flow * rewards[n, h, x, a]
            for s in range(world.range[layer, x, a, 0], world.range[layer, x, a, 1]):
                mass[there, world.state[s]] += flow * world.probability[s]
            mass[here, x] = 0.0


@compiled_exactly
def play(world, learner, numbers, rewards, start, uniforms, episode, space, chunk):
    """Episodes on the true kernel; the exact returns change only when the policy does."""
    states, actions = space.states, space.actions
    changed = True
    for k in range(len(uniforms)):
        if changed:
            exact_returns(world, learner, rewards, start, space.mass, space.returns)
        for n in range(len(space.returns)):
            chunk.returns[k, n] = space.returns[n]
        states[0] = start
        for h in range(len(actions)):
            actions[h] = learner.best[h, states[h]]
            states[h + 1] = draw_state(world, h, states[h], actions[h], uniforms[k, h, 1])
        changed = advance(learner, numbers, states, actions, episode + k + 1, space)
