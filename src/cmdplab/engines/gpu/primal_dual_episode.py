"""Episodes of the primal-dual family on a GPU: one block of threads is one run.

A block plays its episodes one after the other. It draws the noise, rolls out and counts. One
backward sweep then evaluates the policy pi^k of episode k twice, optimistically on the counts and
exactly on the true kernel, and replaces it. primal_dual_steps.py and primal_dual_sweep.py contain
the parts of a step. primal_dual_steps.py names the letters and arguments, and arrays.py the shapes.
`form` has the sizes of a problem, and `real` is the type of numbers.
"""
# Numba infers the types of these functions. All that names the device is in this module: the
# simulator replaces the device in the globals of a kernel's own module only.

from functools import cache
from typing import Any

import numpy as np
from numba.extending import register_jitable

from cmdplab.algorithms.equations import draw_step, multiplier_cap, multiplier_step, seen_value
from cmdplab.algorithms.running import loops  # noqa: F401  (makes formulas callable from compiled code)
from cmdplab.engines.gpu.device import WARP, as_kernel, cuda
from cmdplab.engines.gpu.layout import Form
from cmdplab.engines.gpu.primal_dual_steps import PLACE, Learner, Space, World, counting
from cmdplab.engines.gpu.primal_dual_sweep import sweeping
from cmdplab.numerics.noise import blocks_per_episode, draw_block

_ALL_LANES = 0xFFFFFFFF


@register_jitable
def _exchange(each, lanes):
    """Return `each` of the thread whose lane number is this thread's XOR `lanes`."""
    return cuda.shfl_xor_sync(_ALL_LANES, each, lanes)


def _rolling_out(form):
    """Make the function that plays one episode, by the whole block."""
    X, A, H = form.states, form.actions, form.horizon
    W, S, row, threads = form.lanes, form.span, form.row, form.threads

    @register_jitable
    def draw_action(policy, h, x, u):
        """Return the action of state x at step h for a uniform number u, by inverse CDF.

        If rounding leaves u beyond the sum, the last action with a positive probability is
        returned.
        """
        total, action, found = 0.0, 0, False
        for a in range(A):
            p = policy[h * row + a // W * S + x * W + a % W]
            if not found:
                total, action, found = draw_step(a, p, u, total, action)
        return action

    @register_jitable
    def roll_out(run, cumulative, start, draws, drawn, states, actions, t):
        """Play an episode by the whole block, and write its states and actions.

        Each thread compares its next states with a draw, and a barrier counts them.
        """
        x = start
        for h in range(H):
            a = draw_action(run.policy, h, x, draws[drawn + 2 * h])
            if t == 0:
                states[h] = x
                actions[h] = a
            first = ((h * X + x) * A + a) * X
            x = 0
            for y in range(t, t + X, threads):
                below = 0
                if y < X and cumulative[first + y] <= draws[drawn + 2 * h + 1]:
                    below = 1
                x += cuda.syncthreads_count(below)
        if t == 0:
            states[H] = x

    return roll_out


def _learning(form, real):
    """Make the functions that count an episode, by the whole block, and step the multipliers."""
    H, R, threads = form.horizon, form.rewards, form.threads
    W, S, row = form.lanes, form.span, form.row
    tally, settle = counting(form, real, _exchange)

    @register_jitable
    def learn(run, numbers, states, actions, roots, deviations, t):
        """Tally each step of the episode by a warp, then settle each step by one thread."""
        for h in range(t // WARP, H, threads // WARP):
            i = actions[h] // W * S + states[h] * W + actions[h] % W
            sums = tally(run, numbers, h, i, states[h + 1], t % WARP)
            if t % WARP == 0:
                roots[h], deviations[h] = sums
        cuda.syncthreads()
        for h in range(t, H, threads):
            i = actions[h] // W * S + states[h] * W + actions[h] % W
            settle(run, numbers, h * row + i, 1, roots[h], deviations[h])

    @register_jitable
    def step_multipliers(numbers, steps, threshold, values, last, ahead, lam, t):
        """Step the multipliers by the value of pi^k, or of Q~^k under pi^{k+1} (lookahead 1)."""
        eta, tau, margin = steps[1], steps[2], steps[3]
        cap = multiplier_cap(numbers[PLACE.dual_cap], tau, numbers[PLACE.log_actions])
        for n in range(t, R, threads):
            if n > 0:
                now = seen_value(values[last + n], ahead[n], numbers[PLACE.dual_lookahead])
                aim = threshold[n - 1] + margin
                lam[n] = multiplier_step(lam[n], eta, tau, aim, now, cap)

    return learn, step_multipliers


@cache
def play_kernel(form: Form, real: Any, registers: int = 255) -> Any:
    """Return the kernel that plays episodes, with at most `registers` registers a thread."""
    H, R, threads = form.horizon, form.rewards, form.threads
    blocks, size = blocks_per_episode(H), 2 * form.states * form.rewards
    roll_out, (learn, step_multipliers) = _rolling_out(form), _learning(form, real)
    begin, improve = sweeping(form, real, _exchange)
    pairs, each, both = form.each * R, form.each, 2 * R
    ahead_of = max(threads // blocks, 1)  # episodes whose noise is drawn at once: no thread idles
    places, noise, visited = 2 * size, 4 * blocks * ahead_of, H + 1

    def play(
        kernel,
        cumulative,
        reward,
        closed,
        threshold,
        starts,
        instance,
        numbers,
        steps,
        which,
        keys,
        done,
        counts,
        visits,
        inverse,
        bonuses,
        log_policy,
        policy,
        multiplier,
        returns,
        multipliers,
    ):
        b, t = cuda.blockIdx.x, cuda.threadIdx.x
        values = cuda.shared.array(places, real)
        draws = cuda.shared.array(noise, np.float64)
        lam = cuda.shared.array(R, np.float64)
        ahead = cuda.shared.array(R, np.float64)
        states = cuda.shared.array(visited, np.int32)
        actions = cuda.shared.array(H, np.int32)
        roots = cuda.shared.array(H, real)
        deviations = cuda.shared.array(H, real)
        seen = cuda.local.array(pairs, real)
        true = cuda.local.array(pairs, real)
        total = cuda.local.array(each, real)
        value = cuda.local.array(both, real)
        space = Space(seen, true, total, value)
        here = instance[b]
        start = starts[here]
        world = World(kernel[here], reward[here], closed[here])
        run = Learner(counts[b], visits[b], inverse[b], bonuses[b], log_policy[b], policy[b])
        own, mine = numbers[b], keys[b]
        for n in range(t, R, threads):
            lam[n] = multiplier[b, n - 1] if n > 0 else 1.0
        for k in range(steps.shape[1]):
            step = steps[which[b], k]
            if k % ahead_of == 0:
                for block in range(t, ahead_of * blocks, threads):
                    draw_block(mine, (done[b] + k) * blocks + block, draws, 4 * block)
                cuda.syncthreads()
            drawn = k % ahead_of * blocks * 4
            roll_out(run, cumulative[here], start, draws, drawn, states, actions, t)
            begin(run, own, step[2], t, values, 0)
            cuda.syncthreads()
            learn(run, own, states, actions, roots, deviations, t)
            cuda.syncthreads()
            for back in range(H):
                from_, to = (back % 2) * size, (1 - back % 2) * size
                h = H - 1 - back
                ends = (values, from_, to, ahead, start)
                improve(run, world, own, step, lam, h, t, *ends, space)
                cuda.syncthreads()
            last = (H % 2) * size + start * 2 * R
            step_multipliers(own, step, threshold[b], values, last, ahead, lam, t)
            for n in range(t, R, threads):
                returns[b, k, n] = values[last + R + n]
                if n > 0:
                    multipliers[b, k, n - 1] = lam[n]
        for n in range(t, R, threads):
            if n > 0:
                multiplier[b, n - 1] = lam[n]

    return as_kernel(play, threads, registers)


@cache
def prepare_kernel(form: Form, real: Any) -> Any:
    """Return the kernel that derives bonuses and the counts of unvisited pairs for new runs."""
    X, A, H, threads = form.states, form.actions, form.horizon, form.threads
    W, S, row = form.lanes, form.span, form.row
    tally, settle = counting(form, real, _exchange)

    def prepare(numbers, counts, visits, inverse, bonuses):
        b, t = cuda.blockIdx.x, cuda.threadIdx.x
        run = Learner(counts[b], visits[b], inverse[b], bonuses[b], bonuses[b], bonuses[b])
        for each in range(t // WARP, H * X * A, threads // WARP):
            a, x, h = each % A, each // A % X, each // (A * X)
            i = a // W * S + x * W + a % W
            roots, deviations = tally(run, numbers[b], h, i, -1, t % WARP)
            if t % WARP == 0:
                settle(run, numbers[b], h * row + i, 0, roots, deviations)

    return as_kernel(prepare, threads)
