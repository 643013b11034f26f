"""Triple-Q on the CPU engine: all episodes of a chunk in one compiled call, without the GIL.

The greedy action of a state is kept and sought anew only where its tables change, and the next
state is drawn from a list of successors: step and update cost O(H (A + ln X)) an episode. Exact
returns cost more: a forward pass over the states with mass and the actions with probability.

Every sum is taken in the order in which plain Python takes it. The greedy policy jumps at a tie, so
that one bit of difference would become another action. Index letters: see kernels.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from cmdplab.algorithms import triple_q as eq
from cmdplab.algorithms.task import Task
from cmdplab.algorithms.triple_q import TripleQ, TripleQState
from cmdplab.compiling import compiled_exactly
from cmdplab.engines.protocol import Chunk, Indices
from cmdplab.noise import uniforms
from cmdplab.problem import CMDP, Array

_PLAY, _TABLES = (eq.exploration, eq.action_probability), (eq.rate, eq.width, eq.learned, eq.blend)
for _formula in (*_PLAY, *_TABLES, eq.queue_step):
    register_jitable(error_model="numpy")(_formula)


class Successors(NamedTuple):
    """The true kernel, which only the engine sees: the possible successors of each (h, x, a).

    A stationary kernel is stored once, L = 1; otherwise L = H.
    """

    range: Indices  # [L, X, A, 2], where those of (h, x, a) begin and end below
    state: Indices  # [S]
    probability: Array  # [S]
    cumulative: Array  # [S], from the first one on; the last is beyond every uniform


class Tables(NamedTuple):
    """The learner's arrays, as in `TripleQState`, and what it is told."""

    objective: Array  # [H, X, A]
    utility: Array  # [N, H, X, A]
    visits: Array  # [H, X, A]
    queue: Array  # [N]
    tally: Array  # [N]
    multiplier: Array  # [N]
    reward: Array  # [1 + N, H, X, A]
    threshold: Array  # [N]
    best: Indices  # [H, X], the greedy action


class Scratch(NamedTuple):
    """Space for one episode, so that the loops allocate nothing."""

    mass: Array  # [2, X], of this step and the next; zero between calls
    states: Indices  # [H + 1]
    actions: Indices  # [H]


def successors(problem: CMDP) -> Successors:
    """The kernel of a problem as lists."""
    kernel = problem.transition[:1] if problem.stationary else problem.transition
    possible = kernel > 0.0
    end = np.cumsum(np.count_nonzero(possible, axis=-1)).reshape(kernel.shape[:3])
    begin = np.concatenate([[0], end.ravel()[:-1]]).reshape(end.shape)
    cumulative = np.cumsum(kernel, axis=-1)[possible]  # adding zeros changes no bit of a sum
    cumulative[end - 1] = 2.0
    state = np.ascontiguousarray(np.nonzero(possible)[-1])
    return Successors(np.stack([begin, end], axis=-1), state, kernel[possible], cumulative)


@compiled_exactly
def find_best(tables, h, x):
    """best = argmax_a Q + sum_n (Z_n / eta) C^n, the first one at a tie."""
    best, action = -np.inf, 0
    for a in range(tables.objective.shape[2]):
        total = tables.objective[h, x, a]
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
def draw_action(best, share, actions, u):
    """Inverse CDF; rounding may leave u beyond the sum, then the last action with mass is taken."""
    total, action = 0.0, best
    for a in range(actions):
        p = eq.action_probability(1.0 if a == best else 0.0, share, actions)
        if p > 0.0:
            action = a
            total += p
            if u < total:
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
        best = tables.best[h, states[h]]
        actions[h] = draw_action(best, share, tables.objective.shape[2], uniforms[h, 0])
        states[h + 1] = draw_state(world, h, states[h], actions[h], uniforms[h, 1])


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
                p = eq.action_probability(1.0 if a == tables.best[h, x] else 0.0, share, A)
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
def update(tables, numbers, states, actions):
    """Both tables along an episode, step by step: step h + 1 is read before it is changed."""
    objective, utility, reward = tables.objective, tables.utility, tables.reward
    for h in range(len(actions)):
        x, a, last = states[h], actions[h], h + 1 == len(actions)
        y, b = (0, 0) if last else (states[h + 1], actions[h + 1])
        tables.visits[h, x, a] += 1.0
        t = tables.visits[h, x, a]
        alpha = eq.rate(t, numbers.chi)
        bonus = eq.width(numbers.objective_width, t, numbers.width_shift)
        ahead = 0.0 if last else objective[h + 1, y, b]
        objective[h, x, a] = eq.learned(objective[h, x, a], alpha, reward[0, h, x, a], ahead, bonus)
        bonus = eq.width(numbers.utility_width, t, numbers.width_shift)
        for n in range(len(utility)):
            now = utility[n, h, x, a]
            ahead = 0.0 if last else utility[n, h + 1, y, b]
            after = eq.learned(now, alpha, reward[n + 1, h, x, a], ahead, bonus)
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
        q = objective[i] + numbers.raised
        beyond = q > numbers.objective_limit
        for n in range(len(utility)):
            beyond |= utility[n, i] > numbers.utility_limit
        objective[i] = numbers.objective_start if beyond else q
        for n in range(len(utility)):
            reset = numbers.utility_reset if beyond else 0.0
            utility[n, i] = eq.blend(utility[n, i], numbers.utility_start, reset)
        visits[i] = 0.0
    for n in range(len(tables.queue)):
        b, tally = tables.threshold[n], tables.tally[n]
        tables.queue[n] = eq.queue_step(tables.queue[n], b, numbers.margin, tally, numbers.frame)
        tables.multiplier[n] = tables.queue[n] / numbers.eta
        tables.tally[n] = 0.0
    find_all(tables)


@compiled_exactly
def advance(tables, numbers, k, states, actions, multiplier):
    """The learner's part of episode k; `multiplier` is told the new one."""
    update(tables, numbers, states, actions)
    if k % int(numbers.frame) == 0:
        next_frame(tables, numbers)
    for n in range(len(multiplier)):
        multiplier[n] = tables.multiplier[n]


@compiled_exactly
def learn(world, tables, numbers, start, first, uniforms, scratch, multipliers):
    """Episodes first, first + 1, ... on the true kernel, without their exact returns."""
    states, actions = scratch.states, scratch.actions
    for e in range(len(uniforms)):
        share = eq.exploration(float(first + e), *numbers[-4:])
        roll_out(world, tables, share, start, uniforms[e], states, actions)
        advance(tables, numbers, first + e, states, actions, multipliers[e])


@compiled_exactly
def play(world, tables, numbers, start, first, uniforms, scratch, returns, multipliers):
    """The same with the exact returns of each episode's policy."""
    for e in range(len(uniforms)):
        k, at = first + e, slice(e, e + 1)
        share = eq.exploration(float(k), *numbers[-4:])
        exact_returns(world, tables, share, start, scratch.mass, returns[e])
        learn(world, tables, numbers, start, k, uniforms[at], scratch, multipliers[at])


@compiled_exactly
def replay(world, tables, numbers, start, first, states, actions, scratch, returns, multipliers):
    """The same on trajectories from outside: states [E, H + 1], actions [E, H]."""
    for e in range(len(states)):
        share = eq.exploration(float(first + e), *numbers[-4:])
        exact_returns(world, tables, share, start, scratch.mass, returns[e])
        advance(tables, numbers, first + e, states[e], actions[e], multipliers[e])


class TripleQSession:
    """A run of Triple-Q on the CPU engine."""

    def __init__(
        self, problem: CMDP, row: TripleQ, task: Task, seed: int, state: TripleQState | None = None
    ) -> None:
        state = state if state is not None else TripleQState.initial(row, task)
        H, X, _ = state.objective.shape
        self._seed, self._episode = seed, state.episode
        arrays = (*state[:-1], task.reward, task.threshold, np.zeros((H, X), np.int64))
        self._tables = Tables._make(np.array(each, order="C") for each in arrays)
        visited, taken = np.zeros(H + 1, np.int64), np.zeros(H, np.int64)
        self._scratch = Scratch(np.zeros((2, X)), visited, taken)
        self._fixed = (successors(problem), self._tables, row.numbers(task), task.start)
        find_all(self._tables)
        self.play(0)  # compiles, or loads what an earlier process compiled, before anyone times

    def play(self, episodes: int) -> Chunk:
        """Play, with noise that depends on the episode's number only."""
        chunk = self._chunk(episodes)
        return self._run(play, chunk, self._noise(episodes), self._scratch, *chunk)

    def learn(self, episodes: int) -> Array:
        """The same without exact returns: the multipliers [E, N] after each episode."""
        chunk = self._chunk(episodes)
        self._run(learn, chunk, self._noise(episodes), self._scratch, chunk.multiplier)
        return chunk.multiplier

    def replay(self, states: Indices, actions: Indices) -> Chunk:
        """Learn from trajectories from outside: states [E, H + 1], actions [E, H]."""
        chunk = self._chunk(len(states))
        given = [np.ascontiguousarray(each, dtype=np.int64) for each in (states, actions)]
        return self._run(replay, chunk, *given, self._scratch, *chunk)

    def state(self) -> TripleQState:
        """A copy of the learner's state."""
        return TripleQState._make([*(each.copy() for each in self._tables[:6]), self._episode])

    def _run(self, kernel: Any, chunk: Chunk, *given: Any) -> Chunk:
        kernel(*self._fixed, self._episode + 1, *given)
        self._episode += len(chunk.multiplier)
        return chunk

    def _noise(self, episodes: int) -> Array:
        return uniforms(self._seed, self._episode + 1, episodes, len(self._scratch.actions))

    def _chunk(self, episodes: int) -> Chunk:
        rewards = len(self._tables.reward)
        return Chunk(np.empty((episodes, rewards)), np.empty((episodes, rewards - 1)))
