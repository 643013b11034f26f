"""The parts of a step of Triple-Q in a GPU's kernel: sums, choices and tables.

Every sum has the order of the loops on the CPU, and no product is fused with a sum. Therefore the
bits equal the bits of the CPU. Functions are made for the sizes of a problem. No code here names
the device: barriers are in triple_q_episode.py, shapes in triple_q.py.

Index letters: t thread, h step, x state, a action, y next state, n reward, i pair. Arguments: run
(`Run`), world (`World`), play (`Play`), numbers (constants of the algorithm at `PLACE`).
"""
# Numba infers the types of these functions.

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from cmdplab.algorithms.equations import draw_step
from cmdplab.algorithms.families import triple_q as eq
from cmdplab.engines.gpu.formulas import product, unfused

PLACE = eq.TripleQNumbers(*range(len(eq.TripleQNumbers._fields)))  # indices in a run's constants

find_best, action_probability = unfused(eq.find_best), unfused(eq.action_probability)
rate, learned, blend = unfused(eq.rate), unfused(eq.learned), unfused(eq.blend)
reset_share = unfused(eq.reset_share)
width, queue_step = unfused(eq.width, rate=rate), unfused(eq.queue_step)


class Run(NamedTuple):
    """Arrays of one run, and the array of its problem that `find_best` reads."""

    objective: Any  # [H, X, A]
    utility: Any  # [N', H, X, A]
    visits: Any  # [H, X, A]
    best: Any  # [H, X], the greedy action
    multiplier: Any  # [N'], in shared memory, like the next two
    queue: Any  # [N']
    tally: Any  # [N']
    closed: Any  # [H, X, A], zero where an action is open


class World(NamedTuple):
    """Arrays of one problem."""

    flows: Any  # [L X A X + H X A (1 + N)], the true kernel, then the rewards
    cumulative: Any  # [L X A X], beyond every uniform from the last possible state on
    opened: Any  # [H, X], the number of open actions


class Play(NamedTuple):
    """Exploration of one episode."""

    share: Any  # the share of random actions
    chances: Any  # [2 (A + 1)], of a not greedy and a greedy action, by the number of open ones


@register_jitable
def _chance(run, world, play, h, x, a):
    """Return pi_h(a | x), which is 0 for a closed action."""
    if run.closed[h, x, a] != 0.0:
        return 0.0
    greedy = 1 if a == run.best[h, x] else 0
    return play.chances[2 * world.opened[h, x] + greedy]


def summing(form):
    """Make the function that sums the flows into a column: a next state, or a reward."""
    A = form.actions

    @register_jitable
    def greedy_flow(run, world, h, x, at, step, mass, here):
        """Return the flow of one state into a column, all by its greedy action."""
        pair = np.uint64(x * A + run.best[h, x])
        return product(mass[here + x], world.flows[at + pair * step])

    @register_jitable
    def greedy_sum(run, world, h, first, last, at, step, mass, here, total):
        """Return total + sum_x mass(x) column(x, best) for first <= x < last.

        Six states per turn are written out, because a thread would otherwise wait for each of its
        loads. A state without mass adds zero.
        """
        x = first
        while x + 6 <= last:
            given = (at, step, mass, here)
            f0 = greedy_flow(run, world, h, x, *given)
            f1 = greedy_flow(run, world, h, x + 1, *given)
            f2 = greedy_flow(run, world, h, x + 2, *given)
            f3 = greedy_flow(run, world, h, x + 3, *given)
            f4 = greedy_flow(run, world, h, x + 4, *given)
            f5 = greedy_flow(run, world, h, x + 5, *given)
            total = total + f0 + f1 + f2 + f3 + f4 + f5
            x += 6
        while x < last:
            total += greedy_flow(run, world, h, x, at, step, mass, here)
            x += 1
        return total

    @register_jitable
    def column_sum(run, world, play, h, first, last, at, step, mass, here, total):
        """Return total + sum_x mass(x) sum_a pi(a | x) flows[at + (x A + a) step].

        The sum is over first <= x < last. Without random play the greedy action has the whole mass.
        Unsigned places need no test for being negative.
        """
        if play.share == 0.0:
            return greedy_sum(run, world, h, first, last, at, step, mass, here, total)
        for x in range(first, last):
            for a in range(A):
                flow = product(mass[here + x], _chance(run, world, play, h, x, a))
                total += product(flow, world.flows[at + np.uint64(x * A + a) * step])
        return total

    return column_sum


def drawing(form):
    """Make the function that draws an action of a state."""
    A = form.actions

    @register_jitable
    def draw_action(run, world, play, h, x, u):
        """Return the action of state x at step h for a uniform number u, by inverse CDF.

        If rounding leaves u beyond the sum, the last action with a positive probability is
        returned.
        """
        total, found = 0.0, play.share == 0.0
        action: Any = np.int64(run.best[h, x])
        for a in range(A):
            if not found:
                p = _chance(run, world, play, h, x, a)
                total, action, found = draw_step(a, p, u, total, action)
        return action

    return draw_action


def updating(form, layers):
    """Make the functions that read the next pair's values and learn from one step of an episode."""
    X, A, H, R = form.states, form.actions, form.horizon, form.rewards
    N, rewards = R - 1, layers * X * A * X

    @register_jitable
    def look_ahead(run, states, actions, h, ahead):
        """Write the values of the pair of step h + 1 to ahead[h, n], and zeros after the end."""
        for n in range(R):
            ahead[h * R + n] = 0.0
        if h + 1 < H:
            y, b = states[h + 1], actions[h + 1]
            ahead[h * R] = run.objective[h + 1, y, b]
            for n in range(N):
                ahead[h * R + 1 + n] = run.utility[n, h + 1, y, b]

    @register_jitable
    def update(run, world, numbers, x, a, h, ahead):
        """Update the tables of (x, a) at step h from `ahead`, then find the greedy action."""
        earned, shift = rewards + ((h * X + x) * A + a) * R, numbers[PLACE.width_shift]
        visits = run.visits[h, x, a] + 1.0
        run.visits[h, x, a] = visits
        alpha = rate(visits, numbers[PLACE.chi])
        bonus = width(numbers[PLACE.objective_width], visits, shift)
        now, r = run.objective[h, x, a], world.flows[earned]
        run.objective[h, x, a] = learned(now, alpha, r, ahead[h * R], bonus)
        bonus = width(numbers[PLACE.utility_width], visits, shift)
        for n in range(N):
            now, r = run.utility[n, h, x, a], world.flows[earned + 1 + n]
            after = learned(now, alpha, r, ahead[h * R + 1 + n], bonus)
            run.utility[n, h, x, a] = after
            if h == 0:
                run.tally[n] += blend(now, after, numbers[PLACE.tally_after])
        find_best(run, h, x)

    return look_ahead, update


def framing(form):
    """Make the functions that begin a new frame for one pair, and for one constraint."""
    X, A, N = form.states, form.actions, form.rewards - 1

    @register_jitable
    def renew(run, numbers, i):
        """Raise or reset the tables of a pair, and set its visits to zero."""
        h, x, a = i // (X * A), i // A % X, i % A
        q, most = run.objective[h, x, a] + numbers[PLACE.raised], -np.inf
        for n in range(N):
            most = max(most, run.utility[n, h, x, a])
        limits = (numbers[PLACE.objective_limit], numbers[PLACE.utility_limit])
        reset = reset_share(q, most, *limits)
        run.objective[h, x, a] = blend(q, numbers[PLACE.objective_start], reset)
        for n in range(N):
            now, then = run.utility[n, h, x, a], numbers[PLACE.utility_start]
            run.utility[n, h, x, a] = blend(now, then, product(numbers[PLACE.utility_reset], reset))
        run.visits[h, x, a] = 0.0

    @register_jitable
    def step_queue(run, numbers, b, n):
        """Step the queue of a constraint with the threshold b, and set its multiplier."""
        margin, frame = numbers[PLACE.margin], numbers[PLACE.frame]
        run.queue[n] = queue_step(run.queue[n], b, margin, run.tally[n], frame)
        run.multiplier[n] = run.queue[n] / numbers[PLACE.eta]
        run.tally[n] = 0.0

    return renew, step_queue
