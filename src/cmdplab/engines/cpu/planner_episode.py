"""One episode of the planning family, compiled. Sweeps and pivots are in solvers/.

Step h reads and writes layer min(h, L - 1) of what was counted: see algorithms/planner.py.
"""
# Numba infers the types of the compiled functions; planner.py names the shapes.

from cmdplab.algorithms.equations import (
    confidence_radius,
    mixed_policy,
    queue_step,
    reward_estimate,
)
from cmdplab.algorithms.planner import NEVER, asks_for_plan, safe_target, samples_of_width, signal
from cmdplab.engines.cpu.boxes import row_ends
from cmdplab.engines.cpu.loops import copy
from cmdplab.engines.cpu.primal_dual_episode import draw_rewards, roll_out
from cmdplab.engines.cpu.storage import add_visit, exact_returns
from cmdplab.numerics.compiling import compiled, compiled_apart, compiled_exactly, compiled_in_order
from cmdplab.solvers.simplex import plan, write_policy
from cmdplab.solvers.value_iteration import evaluate, sweep

ON_BASELINE, BASELINE_EPISODES, HAS_BASELINE = 0, 1, 2  # places in the learner's tally


@compiled_exactly
def refresh_rewards(learner, numbers, layer, i, phi):
    """The ends of one pair's rewards to plan with, where they are observed."""
    visits = learner.visits[layer, i]
    for n in range(len(learner.reward_sums)):
        width = numbers.objective_width if n == 0 else numbers.utility_width
        more = numbers.reward_bonus * width * phi if n == 0 else 0.0
        r = reward_estimate(learner.reward_sums[n, layer, i], visits, width * phi)
        learner.reward[n, layer, i] = r + more


@compiled_exactly
def share_rewards(learner, layer, steps, i):
    """The other steps of a layer have the ends of its first one, where rewards are observed."""
    for n in range(len(learner.reward_sums)):
        for h in range(layer + 1, layer + steps):
            learner.reward[n, h, i] = learner.reward[n, layer, i]


@compiled_exactly
def refresh(learner, model, numbers, layer, i):
    """The box and the signals of one pair, from its counts and samples, at the layer's steps."""
    visits, moves = learner.visits[layer, i], learner.moves[layer, i]
    steps = model.reward.shape[1] - len(learner.visits) + 1  # all of them, or one
    phi = confidence_radius(visits, 0.0, numbers.log, float("inf"))
    refresh_rewards(learner, numbers, layer, i, phi)
    share_rewards(learner, layer, steps, i)
    counted = (learner.counts, learner.most)
    samples = samples_of_width(numbers.freedom, moves, visits)
    phi = confidence_radius(samples, 0.0, numbers.log, float("inf"))
    bonus, margin, lowest = row_ends(*counted, model, numbers, layer, i, moves, phi)
    # A kernel that is not chosen has no room: what rounding leaves would be offered to every state.
    model.spare[layer, i] = max(1.0 - lowest, 0.0) if numbers.freedom > 0.0 else 0.0
    for h in range(layer, layer + steps):
        r, more = learner.reward[0, h, i], numbers.objective_bonus
        model.reward[0, h, i] = signal(r, more, bonus, 0.0, margin)
        for n in range(1, len(model.reward)):
            r, more, less = learner.reward[n, h, i], numbers.utility_bonus, numbers.utility_margin
            model.reward[n, h, i] = signal(r, more, bonus, less, margin)


@compiled
def refresh_all(learner, model, numbers, X, P):
    """Every pair: at the start of a run and after a resume."""
    layers, pairs = learner.visits.shape
    for layer in range(layers):
        for a in range(pairs // P):
            for x in range(X):
                refresh(learner, model, numbers, layer, a * P + x)


@compiled
def count(learner, model, numbers, P, states, actions, samples):
    """Add one episode to the counts; only the boxes of visited pairs change."""
    for h in range(len(actions)):
        layer = min(h, len(learner.visits) - 1)
        i = actions[h] * P + states[h]
        if states[h + 1] >= 0:  # else nobody knows where it led
            add_visit(learner.counts, layer, states[h + 1], i, True, 1.0)
            learner.moves[layer, i] += 1.0
        learner.visits[layer, i] += 1.0
        for n in range(len(samples)):
            learner.reward_sums[n, layer, i] += samples[n, h]
        refresh(learner, model, numbers, layer, i)


@compiled
def visited_asks(learner, numbers, P, states, actions):
    """Whether some pair that was just visited asks for a new plan."""
    for h in range(len(actions)):
        layer = min(h, len(learner.visits) - 1)
        i = actions[h] * P + states[h]
        visits, planned = learner.visits[layer, i], learner.planned[layer, i]
        rule = (numbers.replan_first, numbers.replan_factor, numbers.replan_most)
        if asks_for_plan(visits, planned, *rule):
            return True
    return False


@compiled
def must_wait(learner, model, numbers, start, episode, work, returns):
    """Whether the safe policy is played in any case."""
    if learner.tally[HAS_BASELINE] == 0:
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
    """The baseline is the policy of the next episode."""
    copy(learner.baseline.reshape(-1), learner.policy.reshape(-1))
    copy(learner.baseline_returns, learner.promised)
    learner.tally[ON_BASELINE] = 1


@compiled
def greedy_plan(learner, model, numbers, start, weight, columns, basis, work):
    """One sweep, at the multipliers of the queue."""
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
    """Where a plan never comes, this share of the policy is uniform over the open actions."""
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
    """The policy of the next episode."""
    P = len(work.here)
    copy(learner.visits.reshape(-1), learner.planned.reshape(-1))
    if must_wait(learner, model, numbers, start, episode, work, learner.promised):
        play_safe(learner)
        return
    learner.tally[ON_BASELINE] = 0
    if numbers.searched == 0.0:
        greedy_plan(learner, model, numbers, start, weight, columns, basis, work)
        return
    _, _, margin, _ = plan(model, start, learner.multiplier, columns, basis, work)
    if margin < 0.0 and learner.tally[HAS_BASELINE] == 1:
        play_safe(learner)
        return
    write_policy(model, start, columns, basis, work, learner.policy, learner.promised)
    if numbers.uniform_elsewhere > 0.0:
        complete(learner.policy, work.occupancy, model.closed, numbers.uniform_elsewhere, P)
    if margin >= 0.0:
        for n in range(len(learner.multiplier)):
            learner.multiplier[n] = max(basis.multiplier[n], 0.0)


@compiled
def advance(learner, model, numbers, start, steps, states, actions, samples, episode, space):
    """The learner's part of an episode: count it, update the queue, plan if it is time."""
    columns, basis, work = space
    P = len(work.here)
    count(learner, model, numbers, P, states, actions, samples)
    step, margin, weight = steps
    for n in range(len(learner.queue)):
        b, value = model.threshold[n], learner.promised[n + 1]
        learner.queue[n] = queue_step(learner.queue[n], step, b, margin, value)
    learner.tally[BASELINE_EPISODES] += learner.tally[ON_BASELINE]
    if episode == numbers.warm_up or visited_asks(learner, numbers, P, states, actions):
        make_plan(learner, model, numbers, start, weight, episode, columns, basis, work)
        return True
    return False


@compiled
def play(
    world, learner, model, numbers, start, steps, noise, episode, planned, scratch, space, chunk
):
    """Episodes on the true kernel; the exact returns change only when the policy does.

    The first plan is made here, not by a call of its own: the planner is compiled once then.
    """
    if not planned:
        columns, basis, work = space
        make_plan(learner, model, numbers, start, 0.0, episode, columns, basis, work)
    changed = True
    states, actions, samples = scratch.states, scratch.actions, scratch.samples
    told = (learner, model, numbers, start)
    for k in range(len(noise.uniforms)):
        if changed:
            copy(learner.policy.reshape(-1), scratch.policies[0].reshape(-1))
            exact_returns(world, scratch.policies, start, scratch, scratch.returns)
        copy(scratch.returns[0], chunk.returns[k])
        chunk.on_baseline[k] = learner.tally[ON_BASELINE]
        roll_out(world, learner.policy, start, noise.uniforms[k], states, actions)
        draw_rewards(world, states, actions, noise.rewards[k], noise.spread, samples)
        done = episode + k + 1
        changed = advance(*told, steps[k], states, actions, samples, done, space)
        copy(learner.multiplier, chunk.multiplier[k])
