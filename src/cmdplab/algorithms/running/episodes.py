"""The loops over episodes, written once and compiled for each family.

A family gives compiled parts with these arguments:

    first(learner, numbers, start, scratch, space)      find the policy of the first episode
    begin(world, learner, start, k, e, changed, noise, scratch, chunk)
                                        write the exact returns of episode k, the e-th of the chunk
    act(learner, h, x, u, P)                            draw an action by the uniform u
    advance(learner, numbers, start, steps, k, states, actions, samples, scratch, space)
                                        learn episode k; return True if the policy may have changed

Index letters: h step, x state, a action, y next state, i = a * P + x a pair, n reward, k episode.
"""
# Numba infers the types of the compiled functions; the classes of layout.py name the shapes.

from __future__ import annotations

from typing import Any, NamedTuple

from cmdplab.algorithms.equations import draw_step, reward_sample
from cmdplab.algorithms.running.loops import copy
from cmdplab.algorithms.running.storage import add_visit, draw_next, exact_returns, mean_reward
from cmdplab.numerics.compiling import compiled, compiled_exactly


class Loops(NamedTuple):
    """The compiled loops of a family, and the two parts that Python calls."""

    play: Any
    replay: Any
    first: Any
    advance: Any


@compiled
def draw_action(policy, x, u, P):
    """Draw by inverse CDF; if rounding leaves u beyond the sum, take the last action with mass."""
    total, action = 0.0, 0
    for a in range(len(policy) // P):
        total, action, found = draw_step(a, policy[a * P + x], u, total, action)
        if found:
            break
    return action


@compiled
def draw_rewards(world, states, actions, uniforms, spread, samples):
    """Draw samples [1 + N, H] of an episode's rewards from uniforms [H, 1 + N]; none if known."""
    for h in range(len(actions)):
        for n in range(len(samples)):
            mean = mean_reward(world, n, h, states[h], actions[h])
            samples[n, h] = reward_sample(mean, uniforms[h, n], spread)


@compiled
def nothing_first(learner, numbers, start, scratch, space):
    """Do nothing: the state of the family holds the first policy."""


@compiled
def act_by_policy(learner, h, x, u, P):
    """Draw an action of a policy in pairs."""
    return draw_action(learner.policy[h], x, u, P)


@compiled
def begin_in_pairs(world, learner, start, k, e, changed, noise, scratch, chunk):
    """Write the exact returns of two episodes at once, an odd and the next even one.

    This takes 1.7 us instead of 3.9. The number of an episode alone decides its place of the two.
    Hence the size of a chunk cannot change a bit.
    """
    place = (k - 1) % 2
    copy(learner.policy.reshape(-1), scratch.policies[place].reshape(-1))
    if place == 1 or e == len(chunk.returns) - 1:
        exact_returns(world, scratch.policies, start, scratch, scratch.returns)
        copy(scratch.returns[place], chunk.returns[e])
        if place == 1 and e > 0:
            copy(scratch.returns[0], chunk.returns[e - 1])


@compiled
def begin_if_changed(world, learner, start, k, e, changed, noise, scratch, chunk):
    """Write the exact returns. If the policy is that of the last episode, so are the returns."""
    if changed:
        copy(learner.policy.reshape(-1), scratch.policies[0].reshape(-1))
        exact_returns(world, scratch.policies, start, scratch, scratch.returns)
    copy(scratch.returns[0], chunk.returns[e])
    chunk.on_baseline[e] = learner.on_baseline[0]


def counting(refresh: Any) -> tuple[Any, Any]:
    """Return the parts that count an episode and that refresh every pair.

    `refresh(learner, numbers, space, layer, i)` derives the arrays of a pair from its visits.
    """

    @compiled
    def count(learner, numbers, space, P, visit, states, actions, samples):
        """Add one episode. Only visited pairs change."""
        sums = learner.reward_sums
        known = len(samples) - len(sums)  # the first rewards, of which no samples are kept
        for h in range(len(actions)):
            layer = min(h, len(learner.visits) - 1)
            i = actions[h] * P + states[h]
            if states[h + 1] >= 0:  # else the successor is unknown
                seen = learner.moves[layer, i] > 0.0
                add_visit(learner.counts, layer, states[h + 1], i, seen, visit)
                learner.moves[layer, i] += visit
            learner.visits[layer, i] += visit
            for n in range(len(sums)):
                sums[n, layer, i] += samples[known + n, h]
            refresh(learner, numbers, space, layer, i)

    def refresh_all(learner, numbers, space, X, P):
        """Refresh every pair, at the start of a run and after a resume."""
        layers, pairs = learner.visits.shape
        for layer in range(layers):
            for a in range(pairs // P):
                for x in range(X):
                    refresh(learner, numbers, space, layer, a * P + x)

    refresh_all.__module__ = refresh.__module__  # by which a wait is announced
    return count, compiled(refresh_all)


def begin_naturally(chance: Any) -> Any:
    """Return the part `begin` of a family that plays `Successors` with chance(learner, h, x, a)."""

    @compiled_exactly
    def begin(world, learner, start, k, e, changed, noise, scratch, chunk):
        out, mass = scratch.returns[0], scratch.here
        if changed:
            H, X, A = world.reward.shape[1:]
            out[:] = 0.0
            mass[:] = 0.0
            mass[0, start] = 1.0
            for h in range(H):
                layer = min(h, len(world.range) - 1)
                here, there = h % 2, 1 - h % 2
                for x in range(X):
                    if mass[here, x] == 0.0:
                        continue
                    for a in range(A):
                        p = chance(learner, h, x, a)
                        if p == 0.0:
                            continue
                        flow = mass[here, x] * p
                        for n in range(len(out)):
                            out[n] += flow * world.reward[n, h, x, a]
                        for s in range(world.range[layer, x, a, 0], world.range[layer, x, a, 1]):
                            mass[there, world.state[s]] += flow * world.probability[s]
                    mass[here, x] = 0.0
        copy(out, chunk.returns[e])

    return begin


def loops(
    advance: Any, first: Any = nothing_first, begin: Any = begin_in_pairs, act: Any = act_by_policy
) -> Loops:
    """Return the loops of a family from its parts."""

    def play(world, learner, numbers, start, steps, noise, done, begun, scratch, space, chunk):
        """Play episodes done + 1, ... on the true kernel.

        The first policy is found here, so that a search is compiled only once.
        """
        if not begun:
            first(learner, numbers, start, scratch, space)
        changed = True
        states, actions, samples = scratch.states, scratch.actions, scratch.samples
        P = len(scratch.top)
        for e in range(len(noise.uniforms)):
            k = done + e + 1
            begin(world, learner, start, k, e, changed, noise, scratch, chunk)
            states[0] = start
            for h in range(len(actions)):
                u = noise.uniforms[e, h]
                actions[h] = act(learner, h, states[h], u[0], P)
                states[h + 1] = draw_next(world, h, states[h], actions[h], u[1])
            draw_rewards(world, states, actions, noise.rewards[e], noise.spread, samples)
            told = (steps[e], k, states, actions, samples)
            changed = advance(learner, numbers, start, *told, scratch, space)
            copy(learner.multiplier, chunk.multiplier[e])

    def replay(
        world, learner, numbers, start, steps, noise, done, states, actions, scratch, space, chunk
    ):
        """Learn trajectories from outside: states [E, H + 1], actions [E, H]."""
        changed = True
        samples = scratch.samples
        for e in range(len(states)):
            k = done + e + 1
            begin(world, learner, start, k, e, changed, noise, scratch, chunk)
            draw_rewards(world, states[e], actions[e], noise.rewards[e], noise.spread, samples)
            told = (steps[e], k, states[e], actions[e], samples)
            changed = advance(learner, numbers, start, *told, scratch, space)
            copy(learner.multiplier, chunk.multiplier[e])

    play.__module__ = replay.__module__ = advance.__module__  # by which a wait is announced
    return Loops(compiled(play), compiled(replay), first, advance)
