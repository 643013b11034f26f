"""One episode of the primal-dual family, compiled. The innermost loops are in loops.py.

Index letters: h step, x state, a action, y next state, i = a * P + x a pair, n reward, k episode.
Step h reads and writes layer min(h, L - 1) of what was counted: see algorithms/primal_dual.py.
"""
# Numba infers the types of these functions; layout.py names the shapes.

from cmdplab.algorithms.equations import (
    bonus,
    bonus_weight,
    confidence_radius,
    count_weight,
    draw_step,
    multiplier_cap,
    multiplier_step,
    reward_estimate,
    reward_sample,
    reward_temperature,
    seen_value,
    unvisited_bonus,
    value_cap,
)
from cmdplab.engines.cpu.loops import (
    copy,
    evaluate_pair,
    mix,
    soft_values,
    softmax_step,
    sum_of_deviations,
    sum_of_roots,
)
from cmdplab.engines.cpu.storage import (
    add_visit,
    draw_next,
    exact_returns,
    expected_pair,
    gather,
    mean_reward,
)
from cmdplab.numerics.compiling import compiled


@compiled
def draw_action(policy, x, u, P):
    """Inverse CDF; rounding may leave u beyond the sum, then the last action with mass is taken."""
    total, action = 0.0, 0
    for a in range(len(policy) // P):
        total, action, found = draw_step(a, policy[a * P + x], u, total, action)
        if found:
            break
    return action


@compiled
def roll_out(world, policy, start, uniforms, states, actions):
    """Play one episode: states [H + 1], actions [H]."""
    P = policy.shape[1] // world.cumulative.shape[2]
    states[0] = start
    for h in range(len(actions)):
        actions[h] = draw_action(policy[h], states[h], uniforms[h, 0], P)
        states[h + 1] = draw_next(world, h, states[h], actions[h], uniforms[h, 1])


@compiled
def draw_rewards(world, states, actions, uniforms, spread, samples):
    """Samples [1 + N, H] of an episode's rewards, from uniforms [H, 1 + N]; none where known."""
    for h in range(len(actions)):
        for n in range(len(samples)):
            mean = mean_reward(world, n, h, states[h], actions[h])
            samples[n, h] = reward_sample(mean, uniforms[h, n], spread)


@compiled
def refresh_rewards(learner, numbers, h, i):
    """The upper ends of one pair's rewards, where they are observed."""
    visits = learner.visits[h, i]
    seen = visits + numbers.prior_visits
    for n in range(len(learner.reward_sums)):
        phi = confidence_radius(visits, numbers.iterated, numbers.log, float("inf"))
        total = learner.reward_sums[n, h, i]
        learner.reward[n, h, i] = reward_estimate(total, seen, numbers.reward_scale * phi)


@compiled
def refresh_bonus(learner, numbers, h, i, row):
    """The bonus of one pair from its row of counts, gathered first so that the roots vectorise."""
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
    """Every bonus and estimated reward: at the start of a run and after a resume."""
    layers, pairs = learner.visits.shape
    for layer in range(layers):
        for i in range(pairs):
            refresh_bonus(learner, numbers, layer, i, row)
            refresh_rewards(learner, numbers, layer, i)


@compiled
def count(learner, numbers, states, actions, samples, P, row):
    """Add one episode; only the bonuses and estimated rewards of visited pairs change."""
    for h in range(len(actions)):
        layer = min(h, len(learner.visits) - 1)
        i = actions[h] * P + states[h]
        if states[h + 1] >= 0:  # else nobody knows where it led
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
    """What evaluating reward n at step h needs."""
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
    """Q~_h, V~_h of every reward and their total, from the values of step h + 1."""
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
    """The dual step, on the value of pi^k or (lookahead = 1) on Q~^k averaged with pi^{k+1}."""
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
    """One backward sweep that evaluates pi^k optimistically and replaces it, then the dual step."""
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
def advance(learner, numbers, start, steps, states, actions, samples, scratch):
    """The learner's part of an episode: count it, then improve."""
    count(learner, numbers, states, actions, samples, len(scratch.top), scratch.row)
    improve(learner, numbers, start, steps, scratch)


@compiled
def play(world, learner, numbers, start, steps, noise, parity, scratch, chunk):
    """Episodes on the true kernel: exact returns of pi^k, roll-out, counts, improvement.

    Returns are computed for two episodes at once, an odd and the next even one: 1.7 us instead of
    3.9. `parity` is 1 when the first episode is an even one: which of the two places an episode
    takes depends on its number alone, so that the size of a chunk cannot change a bit.
    """
    episodes, returns = len(noise.uniforms), chunk.returns
    states, actions, samples = scratch.states, scratch.actions, scratch.samples
    policies, two = scratch.policies, scratch.returns
    for k in range(episodes):
        place = (k + parity) % 2
        copy(learner.policy.reshape(-1), policies[place].reshape(-1))
        if place == 1 or k == episodes - 1:
            exact_returns(world, policies, start, scratch, two)
            copy(two[place], returns[k])
            if place == 1 and k > 0:
                copy(two[0], returns[k - 1])
        roll_out(world, learner.policy, start, noise.uniforms[k], states, actions)
        draw_rewards(world, states, actions, noise.rewards[k], noise.spread, samples)
        advance(learner, numbers, start, steps[k], states, actions, samples, scratch)
        copy(learner.multiplier, chunk.multiplier[k])


@compiled
def replay(world, learner, numbers, start, steps, noise, states, actions, scratch, chunk):
    """The same, on trajectories from outside: states [E, H + 1], actions [E, H]."""
    samples = scratch.samples
    for k in range(len(states)):
        copy(learner.policy.reshape(-1), scratch.policies[0].reshape(-1))
        exact_returns(world, scratch.policies, start, scratch, scratch.returns)
        copy(scratch.returns[0], chunk.returns[k])
        draw_rewards(world, states[k], actions[k], noise.rewards[k], noise.spread, samples)
        advance(learner, numbers, start, steps[k], states[k], actions[k], samples, scratch)
        copy(learner.multiplier, chunk.multiplier[k])
