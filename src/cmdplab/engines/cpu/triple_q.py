"""Triple-Q on the CPU engine: all episodes of a chunk in one compiled call, without the GIL.

The greedy action of a state is kept and sought anew only where its tables change, and the next
state is drawn from a list of successors: step and update cost O(H (A + ln X)) an episode. Exact
returns cost more: a forward pass over the states with mass and the actions with probability.

The loops are in triple_q_episode.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.task import Task
from cmdplab.algorithms.triple_q import TripleQ, TripleQNumbers, TripleQState, exploration
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Kernel, Sparse
from cmdplab.engines import outside
from cmdplab.engines.cpu.triple_q_episode import (
    advance,
    draw_action,
    draw_state,
    find_all,
    learn,
    play,
    replay,
    write_policy,
)
from cmdplab.types import Array, Indices

__all__ = ["TripleQSession", "draw_state", "play", "successors"]


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
    closed: Array  # [H, X, A], zero where an action is open, else too low ever to be the best
    opened: Indices  # [H, X], how many actions are open
    best: Indices  # [H, X], the greedy action


class Scratch(NamedTuple):
    """Space for one episode, so that the loops allocate nothing."""

    mass: Array  # [2, X], of this step and the next; zero between calls
    states: Indices  # [H + 1]
    actions: Indices  # [H]
    samples: Array  # [1 + N, H], of rewards: their means where they are known


class TripleQInside(NamedTuple):
    """Triple-Q as a wrapper sees it: see safe_episode.py."""

    tables: Tables
    numbers: TripleQNumbers
    samples: Array  # [1 + N, H], of rewards: their means where they are known


def successors(problem: CMDP) -> Successors:
    """The kernel of a problem as lists."""
    return successors_of(problem.kernel)


def successors_of(given: Kernel) -> Successors:
    """A kernel as lists."""
    if isinstance(given, Sparse):
        kernel = given.probability if given.probability.ndim == 4 else given.probability[None]
        states = np.broadcast_to(given.successor, kernel.shape)
    else:
        kernel = given.table[:1] if given.table.strides[0] == 0 else given.table
        states = np.broadcast_to(np.arange(kernel.shape[-1]), kernel.shape)
    possible = kernel > 0.0
    end = np.cumsum(np.count_nonzero(possible, axis=-1)).reshape(kernel.shape[:3])
    begin = np.concatenate([[0], end.ravel()[:-1]]).reshape(end.shape)
    cumulative = np.cumsum(kernel, axis=-1)[possible]  # adding zeros changes no bit of a sum
    cumulative[end - 1] = 2.0
    lists = (states[possible], kernel[possible], cumulative)
    return Successors(np.stack([begin, end], axis=-1), *lists)


class TripleQSession:
    """A run of Triple-Q on the CPU engine."""

    def __init__(
        self,
        problem: CMDP | None,
        row: TripleQ,
        task: Task,
        seed: int,
        state: TripleQState | None = None,
    ) -> None:
        state = state if state is not None else TripleQState.initial(row, task)
        H, X, _ = state.objective.shape
        self._task, self._seed, self._episode = task, seed, state.episode
        self._sizes = (H, X)
        opened = np.count_nonzero(task.closed == 0.0, axis=-1)
        told = (task.reward, task.threshold, task.closed, opened)
        arrays = (*state[:-1], *told, np.zeros((H, X), np.int64))
        self._tables = Tables._make(np.array(each, order="C") for each in arrays)
        visited, taken = np.zeros(H + 1, np.int64), np.zeros(H, np.int64)
        samples = np.zeros((len(task.reward), H))
        self._scratch = Scratch(np.zeros((2, X)), visited, taken, samples)
        self._world = None if problem is None else successors(problem)
        self._numbers = row.numbers(task)
        find_all(self._tables)
        if problem is not None:
            self.play(0)  # compiles, or loads what an earlier process compiled, before anyone times

    def play(self, episodes: int) -> Chunk:
        """Play, with noise that depends on the episode's number only."""
        return self._run(play, episodes)

    def learn(self, episodes: int) -> Array:
        """The same without exact returns: the multipliers [E, N] after each episode."""
        return self._run(learn, episodes).multiplier

    def replay(self, states: Indices, actions: Indices) -> Chunk:
        """Learn from trajectories from outside: states [E, H + 1], actions [E, H]."""
        given = [np.ascontiguousarray(each, dtype=np.int64) for each in (states, actions)]
        return self._run(replay, len(states), *given)

    def act(self, h: int, x: int, u: float) -> int:
        """The action of the policy played next, by inverse CDF of the uniform u."""
        if not outside.inside(self._sizes, h, x):
            outside.checked_place(self._task, h, x)  # says what is wrong
        return int(draw_action(self._tables, h, x, self._share(), u))

    def policy(self) -> Array:
        """[H, X, A], a copy of what is played next."""
        policy = np.empty_like(self._tables.objective)
        write_policy(self._tables, self._share(), policy)
        return policy

    def observe(
        self, states: outside.Whole, actions: outside.Whole, rewards: Array | None = None
    ) -> None:
        """Learn one episode: states [H + 1], actions [H], samples of unknown rewards [1 + N, H]."""
        episode = outside.checked_episode(self._task, states, actions)
        samples = outside.checked_rewards(self._task, rewards)
        if not self._task.observed:
            samples = outside.means(self._task, *episode)
        done, told = self._episode + 1, np.empty(len(self._tables.multiplier))
        advance(self._tables, self._numbers, done, *episode, samples, told)
        self._episode = done

    def inside(self) -> TripleQInside:
        """All that a wrapper needs to let it learn, compiled; `skip` says what was learnt so."""
        return TripleQInside(self._tables, self._numbers, self._scratch.samples)

    def skip(self, episodes: int) -> None:
        """Episodes that a wrapper has let it learn."""
        self._episode += episodes

    def state(self) -> TripleQState:
        """A copy of the learner's state."""
        return TripleQState._make([*(each.copy() for each in self._tables[:6]), self._episode])

    def _run(self, kernel: Any, episodes: int, *given: Indices) -> Chunk:
        world, task, first = outside.known(self._world), self._task, self._episode + 1
        noise, chunk = (
            outside.noise(task, self._seed, first, episodes),
            outside.chunk(task, episodes),
        )
        if not task.spread:  # samples without noise are the means
            noise = noise._replace(rewards=np.zeros((episodes, *self._scratch.samples.T.shape)))
        told = (world, self._tables, self._numbers, task.start, first)
        kernel(*told, noise, *given, self._scratch, chunk)
        self._episode += episodes
        return chunk

    def _share(self) -> float:
        """How much of the play of the next episode is random."""
        return exploration(float(self._episode + 1), *self._numbers[-4:])
