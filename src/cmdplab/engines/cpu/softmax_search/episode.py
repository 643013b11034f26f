"""One episode of the softmax-search family, compiled.

Every sum is taken in the order in which plain Python takes it, and nothing is fused: kappa may be
1e-7, and then a bit of a value is another policy. Loops still vectorise: they run over pairs.
Index letters: see primal_dual_episode.py.
"""
# Numba infers the types of the compiled functions; session.py names the shapes.

from __future__ import annotations

from typing import Any

import numpy as np

from cmdplab.algorithms.equations import count_weight, policy_term
from cmdplab.algorithms.softmax_search import (
    GROWTH,
    clip_level,
    clipped_value,
    composite_logit,
    next_multiplier,
    ridge_width,
)
from cmdplab.engines.cpu.loops import copy
from cmdplab.engines.cpu.planner_episode import visited_asks
from cmdplab.engines.cpu.primal_dual_episode import roll_out
from cmdplab.engines.cpu.seen import SeenCounts
from cmdplab.engines.cpu.storage import ListedCounts, add_visit, exact_returns
from cmdplab.numerics.compiling import by_type, compiled, compiled_exactly
from cmdplab.numerics.vector_math import exp_plain, log_plain

ON_BASELINE, BASELINE_EPISODES = 0, 1  # places in the learner's tally

term = compiled_exactly(policy_term)
exp, log = compiled_exactly(exp_plain), compiled_exactly(log_plain)


@compiled_exactly
def three_products(matrix, weights, first, second, third):
    """first[i] = sum_j weights[0, j] matrix[j, i], and the others for weights[1], weights[2].

    The hottest loop. Three products share each load of the matrix, four rows each of the sums.
    """
    first[:] = 0.0
    second[:] = 0.0
    third[:] = 0.0
    rows, j = len(matrix), 0
    while j + 4 <= rows:
        u0, u1, u2, u3 = weights[0, j], weights[0, j + 1], weights[0, j + 2], weights[0, j + 3]
        v0, v1, v2, v3 = weights[1, j], weights[1, j + 1], weights[1, j + 2], weights[1, j + 3]
        w0, w1, w2, w3 = weights[2, j], weights[2, j + 1], weights[2, j + 2], weights[2, j + 3]
        for i in range(len(first)):
            m0, m1, m2, m3 = matrix[j, i], matrix[j + 1, i], matrix[j + 2, i], matrix[j + 3, i]
            first[i] = (((first[i] + m0 * u0) + m1 * u1) + m2 * u2) + m3 * u3
            second[i] = (((second[i] + m0 * v0) + m1 * v1) + m2 * v2) + m3 * v3
            third[i] = (((third[i] + m0 * w0) + m1 * w1) + m2 * w2) + m3 * w3
        j += 4
    while j < rows:
        for i in range(len(first)):
            first[i] += matrix[j, i] * weights[0, j]
            second[i] += matrix[j, i] * weights[1, j]
            third[i] += matrix[j, i] * weights[2, j]
        j += 1


@compiled_exactly
def dense_expected(counts, h, weights, first, second, third):
    """See `expected_three`."""
    three_products(counts[h], weights, first, second, third)


@compiled_exactly
def gathered_three(successor, visits, weights, first, second, third):
    """The sums over lists."""
    first[:] = 0.0
    second[:] = 0.0
    third[:] = 0.0
    for s in range(len(successor)):
        for i in range(len(first)):
            y, n = successor[s, i], visits[s, i]
            first[i] += n * weights[0, y]
            second[i] += n * weights[1, y]
            third[i] += n * weights[2, y]


@compiled_exactly
def listed_expected(counts, h, weights, first, second, third):
    """See `expected_three`."""
    gathered_three(counts.successor, counts.visits[h], weights, first, second, third)


@compiled_exactly
def seen_three(begin, used, state, visits, weights, first, second, third):
    """The sums over what was seen."""
    for i in range(len(first)):
        left, middle, right = 0.0, 0.0, 0.0
        for place in range(begin[i], begin[i] + used[i]):
            y, n = state[place], visits[place]
            left += n * weights[0, y]
            middle += n * weights[1, y]
            right += n * weights[2, y]
        first[i], second[i], third[i] = left, middle, right


@compiled_exactly
def seen_expected(counts, h, weights, first, second, third):
    """See `expected_three`."""
    places = (counts.begin[h], counts.used[h], counts.state, counts.visits)
    seen_three(*places, weights, first, second, third)


@by_type({ListedCounts: listed_expected, SeenCounts: seen_expected}, dense_expected)
def expected_three(counts: Any, h: Any, weights: Any, first: Any, second: Any, third: Any) -> None:
    """first[i] = sum_y counts_h(y, i) weights[0, y], and the others for weights[1], weights[2]."""
    raise NotImplementedError


@compiled_exactly
def action_values(
    reward, utility, beta, inverse, closed, numbers, left, lam, first, second, third, logit
):
    """Sums over y of counts times V become Qr, Qd, Qu; the logits of pi^lam at a step."""
    of_reward = clip_level(numbers.reward_unit, left, numbers.loose)
    of_compensation = clip_level(numbers.compensation, left, numbers.loose)
    of_utility = clip_level(1.0, left, numbers.loose)
    for i in range(len(logit)):
        width, scale = beta[i], inverse[i]
        ahead, bonus = first[i] * scale, numbers.reward_width * width
        r = clipped_value(reward[i], bonus, ahead, of_reward, numbers.inside)
        ahead, bonus = second[i] * scale, numbers.compensation_width * width
        d = clipped_value(numbers.compensation * width, bonus, ahead, of_compensation, 0.0)
        ahead, bonus = third[i] * scale, numbers.utility_width * width
        u = clipped_value(utility[i], bonus, ahead, of_utility, numbers.inside)
        first[i], second[i], third[i] = r, d, u
        logit[i] = composite_logit(d, r, u, lam, numbers.sharpness) + closed[i]


@compiled_exactly
def softmax(logit, policy, top, mass):
    """policy = softmax over a of the logits, which become ln policy: nothing overflows."""
    P = len(top)
    top[:] = -np.inf
    mass[:] = 0.0
    for a in range(len(policy) // P):
        for x in range(P):
            top[x] = max(top[x], logit[a * P + x])
    for a in range(len(policy) // P):
        for x in range(P):
            i = a * P + x
            logit[i] -= top[x]
            policy[i] = exp(logit[i])
            mass[x] += policy[i]
    for x in range(P):
        top[x] = log(mass[x])
        mass[x] = 1.0 / mass[x]
    for a in range(len(policy) // P):
        for x in range(P):
            logit[a * P + x] -= top[x]
            policy[a * P + x] *= mass[x]


@compiled_exactly
def policy_values(policy, log_policy, entropy, weighting, r, d, u, reward, compensation, utility):
    """Vr[x], Vd[x], Vu[x] = sum_a policy_term of Qr, Qd, Qu."""
    P = len(reward)
    reward[:] = 0.0
    compensation[:] = 0.0
    utility[:] = 0.0
    for a in range(len(policy) // P):
        for x in range(P):
            i = a * P + x
            p, log_p = policy[i], log_policy[i]
            reward[x] += term(p, log_p, r[i], entropy, weighting)
            compensation[x] += term(p, log_p, d[i], 0.0, weighting)
            utility[x] += term(p, log_p, u[i], 0.0, weighting)


@compiled_exactly
def evaluate(learner, numbers, start, lam, work):
    """One backward pass: writes pi^lam into `work.policy`; U(lam)."""
    H = len(learner.policy)
    q, value = work.action_value, work.value
    q[:] = 0.0
    value[:] = 0.0
    value[0, :] = numbers.terminal_value
    for h in range(H - 1, -1, -1):
        if h < H - 1 or numbers.terminal_value != 0.0:
            expected_three(learner.counts, h, value, q[0], q[1], q[2])
        action_values(
            learner.reward[0, h],
            learner.reward[1, h],
            learner.width[h],
            learner.inverse[h],
            learner.closed[h],
            numbers,
            H - h,
            lam,
            q[0],
            q[1],
            q[2],
            work.logit,
        )
        softmax(work.logit, work.policy[h], work.top, work.mass)
        soft = (numbers.entropy, numbers.weighting)
        values = (value[0], value[1], value[2])
        policy_values(work.policy[h], work.logit, *soft, q[0], q[1], q[2], *values)
    return value[2, start]


@compiled
def keep(policy, learner, lam, on_baseline):
    """What is played next."""
    copy(policy.reshape(-1), learner.policy.reshape(-1))
    learner.multiplier[0] = lam
    learner.tally[ON_BASELINE] = on_baseline


@compiled
def fail(learner, numbers, work):
    """Even the largest multiplier is not enough: the safe policy, or what was just evaluated."""
    if numbers.fallback > 0.0:
        keep(learner.baseline, learner, numbers.largest, 1)
    else:
        keep(work.policy, learner, numbers.largest, 0)


@compiled
def search(learner, numbers, start, work):
    """The policy of the next episode, from the counts."""
    copy(learner.visits.reshape(-1), learner.planned.reshape(-1))
    low, high, b = 0.0, numbers.largest, learner.threshold[0]
    last, found = learner.multiplier[0], False
    if numbers.tested > 0.0:
        if evaluate(learner, numbers, start, high, work) < b:
            fail(learner, numbers, work)
            return
        keep(work.policy, learner, high, 0)
        found = True
        if evaluate(learner, numbers, start, 0.0, work) >= b:
            keep(work.policy, learner, 0.0, 0)
            return
    lam, reach = (low + high) / 2.0, np.inf
    if numbers.near > 0.0 and low < last < high:
        lam, reach = last, numbers.near * last
    for _ in range(int(numbers.bisections)):
        passed = evaluate(learner, numbers, start, lam, work) >= b
        if passed:
            high, found = lam, True
            keep(work.policy, learner, high, 0)
        else:
            low = lam
        lam = next_multiplier(low, high, reach, passed)
        reach *= GROWTH
    if not found:
        if evaluate(learner, numbers, start, high, work) < b:
            fail(learner, numbers, work)
        else:
            keep(work.policy, learner, high, 0)


@compiled
def begin(learner, numbers, start, work):
    """The policy of the first episode."""
    if numbers.begins_safe > 0.0:
        keep(learner.baseline, learner, numbers.largest, 1)
    else:
        search(learner, numbers, start, work)


@compiled_exactly
def refresh(learner, h, i):
    """The width of one pair and the factor that makes its counts Phat."""
    learner.width[h, i] = ridge_width(learner.visits[h, i])
    learner.inverse[h, i] = count_weight(learner.visits[h, i], 1.0, 0.0)


@compiled
def refresh_all(learner):
    """Every pair: at the start of a run and after a resume."""
    for h in range(len(learner.visits)):
        for i in range(learner.visits.shape[1]):
            refresh(learner, h, i)


@compiled
def advance(learner, numbers, start, states, actions, work):
    """The learner's part of an episode: count it, search if it is time; whether it was."""
    P = len(work.top)
    for h in range(len(actions)):
        i = actions[h] * P + states[h]
        add_visit(learner.counts, h, states[h + 1], i, True, 1.0)
        learner.visits[h, i] += 1.0
        refresh(learner, h, i)
    learner.tally[BASELINE_EPISODES] += learner.tally[ON_BASELINE]
    if visited_asks(learner, numbers, P, states, actions):
        search(learner, numbers, start, work)
        return True
    return False


@compiled
def returns_of(world, learner, start, changed, scratch, out):
    """The exact returns of the policy played next; those in `scratch` where it has not changed."""
    if changed:
        copy(learner.policy.reshape(-1), scratch.policies[0].reshape(-1))
        exact_returns(world, scratch.policies, start, scratch, scratch.returns)
    copy(scratch.returns[0], out)


@compiled
def play(world, learner, numbers, start, begun, uniforms, scratch, work, chunk):
    """Episodes on the true kernel: exact returns, roll-out, counts, search.

    The first search is made here, not by a call of its own: the passes are compiled once then.
    """
    if not begun:
        begin(learner, numbers, start, work)
    changed = True
    states, actions = scratch.states, scratch.actions
    for k in range(len(uniforms)):
        returns_of(world, learner, start, changed, scratch, chunk.returns[k])
        chunk.on_baseline[k] = learner.tally[ON_BASELINE]
        roll_out(world, learner.policy, start, uniforms[k], states, actions)
        changed = advance(learner, numbers, start, states, actions, work)
        copy(learner.multiplier, chunk.multiplier[k])


@compiled
def replay(world, learner, numbers, start, states, actions, scratch, work, chunk):
    """The same on trajectories from outside: states [E, H + 1], actions [E, H]."""
    changed = True
    for k in range(len(states)):
        returns_of(world, learner, start, changed, scratch, chunk.returns[k])
        chunk.on_baseline[k] = learner.tally[ON_BASELINE]
        changed = advance(learner, numbers, start, states[k], actions[k], work)
        copy(learner.multiplier, chunk.multiplier[k])
