"""Episodes of Triple-Q on a GPU: one block of threads is one run.

An episode computes the exact returns of the policy to be played, rolls out and updates. At the end
of a frame it steps the queues. triple_q_steps.py contains the parts of a step and defines the index
letters. triple_q.py names the shapes. `form` has the sizes of a problem, and `layers` is H, or 1 if
the kernel is stationary.
"""
# Numba infers the types of these functions. All that names the device is in this module: the
# simulator replaces the device in the globals of a kernel's own module only.

from functools import cache
from typing import Any

import numpy as np
from numba.extending import register_jitable

from cmdplab.engines.gpu.device import as_kernel, cuda
from cmdplab.engines.gpu.triple_q_steps import (
    PLACE,
    Play,
    Run,
    World,
    action_probability,
    drawing,
    find_best,
    framing,
    summing,
    updating,
)
from cmdplab.numerics.noise import blocks_per_episode, draw_block


def _evaluating(form, layers):
    """Make the function that computes exact returns, by the whole block."""
    X, A, H, R, threads = form.states, form.actions, form.horizon, form.rewards, form.threads
    rewards = layers * X * A * X  # where those begin
    column_sum = summing(form)

    @register_jitable
    def exact_returns(run, world, play, start, mass, gained, t):
        """Add V^pi[P, r^n](start) to gained[n], by sums of the forward mass of the states.

        `mass` begins at start. A thread adds one column at a time: the mass of a next state, or the
        gain of a reward. Mass lies in two places by turns, so that a step has one barrier.
        """
        for h in range(H):
            here, there = h % 2 * X, (1 - h % 2) * X
            first, last = (start if h == 0 else 0), (start + 1 if h == 0 else X)
            for c in range(t, X + R, threads):
                gains = c >= X
                layer, step = (h if gains or layers > 1 else 0), (R if gains else X)
                at = layer * X * A * step + (rewards + c - X if gains else c)
                total = gained[c - X] if gains else 0.0
                rest = (np.uint64(at), np.uint64(step), mass, here, total)
                total = column_sum(run, world, play, h, first, last, *rest)
                if gains:
                    gained[c - X] = total
                else:
                    mass[there + c] = total
            cuda.syncthreads()

    return exact_returns


def _rolling_out(form, layers):
    """Make the function that plays one episode, by the whole block."""
    X, A, H, threads = form.states, form.actions, form.horizon, form.threads
    draw_action = drawing(form)

    @register_jitable
    def roll_out(run, world, play, start, draws, drawn, states, actions, t):
        """Play an episode by the whole block, and write its states and actions.

        Each thread compares its next states with a draw, and a barrier counts them.
        """
        x = start
        for h in range(H):
            a = draw_action(run, world, play, h, x, draws[drawn + 2 * h])
            if t == 0:
                states[h] = x
                actions[h] = a
            layer = h if layers > 1 else 0
            first = ((layer * X + x) * A + a) * X
            x = 0
            for y in range(t, t + X, threads):
                below = 0
                if y < X and world.cumulative[first + y] <= draws[drawn + 2 * h + 1]:
                    below = 1
                x += cuda.syncthreads_count(below)

    return roll_out


def _learning(form, layers):
    """Make the functions that learn from an episode, find greedy actions and end a frame."""
    X, A, H, threads = form.states, form.actions, form.horizon, form.threads
    (look_ahead, update), (renew, step_queue) = updating(form, layers), framing(form)
    N = form.rewards - 1

    @register_jitable
    def learn(run, world, numbers, states, actions, ahead, t):
        """Learn from each step by one thread. All threads read before any table changes."""
        for h in range(t, H, threads):
            look_ahead(run, states, actions, h, ahead)
        cuda.syncthreads()
        for h in range(t, H, threads):
            update(run, world, numbers, states[h], actions[h], h, ahead)
        cuda.syncthreads()

    @register_jitable
    def find_all(run, t):
        for i in range(t, H * X, threads):
            find_best(run, i // X, i % X)
        cuda.syncthreads()

    @register_jitable
    def next_frame(run, numbers, threshold, t):
        """Renew the tables and step the queues, then find the greedy actions for both."""
        for i in range(t, H * X * A, threads):
            renew(run, numbers, i)
        for n in range(t, N, threads):
            step_queue(run, numbers, threshold[n], n)
        cuda.syncthreads()
        find_all(run, t)

    return learn, find_all, next_frame


def _beginning(form):
    """Make the function that sets up the shared arrays of one episode."""
    X, A, R, threads = form.states, form.actions, form.rewards, form.threads

    @register_jitable
    def begin(play, start, mass, gained, t):
        """Set the chances of actions, all mass at the start, and zero gains."""
        for many in range(1 + t, A + 1, threads):
            play.chances[2 * many] = action_probability(0.0, play.share, many)
            play.chances[2 * many + 1] = action_probability(1.0, play.share, many)
        for x in range(t, X, threads):
            mass[x] = 1.0 if x == start else 0.0
        for n in range(t, R, threads):
            gained[n] = 0.0

    return begin


@cache
def play_kernel(form: Any, layers: int, registers: int) -> Any:
    """Return the kernel that plays episodes, with at most `registers` registers a thread."""
    H, R, threads = form.horizon, form.rewards, form.threads
    exact_returns, roll_out = _evaluating(form, layers), _rolling_out(form, layers)
    (learn, find_all, next_frame), begin = _learning(form, layers), _beginning(form)
    blocks = blocks_per_episode(H)
    ahead_of = form.episodes_drawn  # at once: no thread idles
    places, noise, chance_count = 2 * form.states, 4 * blocks * ahead_of, 2 * (form.actions + 1)
    constraints, columns, pairs = R - 1, form.columns, H * R

    def play(
        flows,
        cumulative,
        closed,
        opened,
        threshold,
        starts,
        instance,
        numbers,
        shares,
        which,
        keys,
        done,
        objective,
        utility,
        visits,
        queues,
        tallies,
        multiplier,
        best,
        returns,
        multipliers,
    ):
        b, t = cuda.blockIdx.x, cuda.threadIdx.x
        mass = cuda.shared.array(places, np.float64)
        gained = cuda.shared.array(R, np.float64)
        draws = cuda.shared.array(noise, np.float64)
        chances = cuda.shared.array(chance_count, np.float64)
        queue = cuda.shared.array(columns, np.float64)
        tally = cuda.shared.array(columns, np.float64)
        lam = cuda.shared.array(columns, np.float64)
        ahead = cuda.shared.array(pairs, np.float64)
        states = cuda.shared.array(H, np.int32)
        actions = cuda.shared.array(H, np.int32)
        here = instance[b]
        start = np.int64(starts[here])
        world = World(flows[here], cumulative[here], opened[here])
        tables = (objective[b], utility[b], visits[b], best[b])
        run = Run(*tables, lam, queue, tally, closed[here])
        own, mine, first = numbers[b], keys[b], done[b]
        frame = np.int64(own[PLACE.frame])
        for n in range(t, columns, threads):
            queue[n], tally[n], lam[n] = queues[b, n], tallies[b, n], multiplier[b, n]
        cuda.syncthreads()
        find_all(run, t)
        for k in range(shares.shape[1]):
            how = Play(shares[which[b], k, 0], chances)
            if k % ahead_of == 0:
                for block in range(t, ahead_of * blocks, threads):
                    draw_block(mine, (first + k) * blocks + block, draws, 4 * block)
            begin(how, start, mass, gained, t)
            cuda.syncthreads()
            exact_returns(run, world, how, start, mass, gained, t)
            roll_out(run, world, how, start, draws, k % ahead_of * blocks * 4, states, actions, t)
            learn(run, world, own, states, actions, ahead, t)
            if (first + k + 1) % frame == 0:
                next_frame(run, own, threshold[b], t)
            for n in range(t, R, threads):
                returns[b, k, n] = gained[n]
            for n in range(t, constraints, threads):
                multipliers[b, k, n] = lam[n]
        for n in range(t, columns, threads):
            queues[b, n], tallies[b, n], multiplier[b, n] = queue[n], tally[n], lam[n]

    return as_kernel(play, threads, registers)
