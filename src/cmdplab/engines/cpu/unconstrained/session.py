"""A run of UCBVI or UCRL2 on the CPU engine: all episodes of a chunk in one compiled call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.task import Task
from cmdplab.algorithms.unconstrained import Optimist, OptimistState
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines import outside
from cmdplab.engines.cpu.triple_q import successors
from cmdplab.engines.cpu.unconstrained import episode as kernels
from cmdplab.types import Array, Indices


class Learner(NamedTuple):
    """The learner's arrays, as in `OptimistState`, and what it is told."""

    counts: Array  # [H, X, A, X]
    planned: Array  # [H, X, A]
    q: Array  # [H, X, A]
    policy: Array  # [H, X, A]
    visits: Array  # [H, X, A]
    best: Indices  # [H, X], the greedy action
    reward: Array  # [H, X, A], of the objective
    closed: Array  # [H, X, A], zero where an action is open, else too low ever to be the best


class Space(NamedTuple):
    """Space for one episode, so that the loops allocate nothing."""

    value: Array  # [X]
    following: Array  # [X]
    arrived: Array  # [X], visits of states at the next step
    order: Indices  # [X]
    mass: Array  # [2, X]
    returns: Array  # [1 + N]
    states: Indices  # [H + 1]
    actions: Indices  # [H]


class OptimistSession:
    """A run of an unconstrained learner."""

    def __init__(
        self,
        problem: CMDP | None,
        algorithm: Optimist,
        task: Task,
        seed: int,
        state: OptimistState | None = None,
    ) -> None:
        n, H, X, _ = task.reward.shape
        begun = state if state is not None else OptimistState.first(task)
        self._task, self._seed, self._episode = task, seed, begun.episode
        self._numbers = algorithm.numbers(task)
        self._world = None if problem is None else successors(problem)
        arrays = (begun.counts, begun.planned, begun.q, begun.policy, begun.counts.sum(axis=-1))
        best = np.argmax(begun.policy, axis=-1)
        told = (best, task.reward[0], task.closed)
        self._learner = Learner._make(np.array(each, order="C") for each in (*arrays, *told))
        value, following, arrived = np.zeros((3, X))
        walked = (np.zeros(H + 1, np.int64), np.zeros(H, np.int64))
        order, mass = np.arange(X), np.zeros((2, X))
        self._space = Space(value, following, arrived, order, mass, np.zeros(n), *walked)
        self._reward = np.array(task.reward, order="C")
        if state is None:
            kernels.plan(self._learner, self._numbers, 0, self._space)
        if problem is not None:
            self.play(0)  # compiles, or loads what an earlier process compiled, before anyone times

    def play(self, episodes: int) -> Chunk:
        """Play, with noise that depends on the episode's number only."""
        world, task, first = outside.known(self._world), self._task, self._episode + 1
        chunk = outside.chunk(task, episodes)
        chunk.multiplier[:] = 0.0
        noise = outside.noise(task, self._seed, first, episodes).uniforms
        fixed = (world, self._learner, self._numbers, self._reward, task.start)
        kernels.play(*fixed, noise, self._episode, self._space, chunk)
        self._episode += episodes
        return chunk

    def act(self, h: int, x: int, u: float) -> int:
        """The greedy action; nothing is drawn."""
        h, x = outside.checked_place(self._task, h, x)
        return int(self._learner.best[h, x])

    def policy(self) -> Array:
        """[H, X, A], a copy of what is played next."""
        return self._learner.policy.copy()

    def observe(
        self, states: outside.Whole, actions: outside.Whole, rewards: Array | None = None
    ) -> None:
        """Learn one episode: states [H + 1], actions [H]; its rewards are known."""
        episode = outside.checked_episode(self._task, states, actions)
        self._episode += 1
        kernels.advance(self._learner, self._numbers, *episode, self._episode, self._space)

    def state(self) -> OptimistState:
        """A copy of the learner's state."""
        arrays = [each.copy() for each in self._learner[:4]]
        none = np.zeros(len(self._task.threshold))
        return OptimistState._make([*arrays, none, self._episode])
