"""The CPU engine: all episodes of a chunk in one compiled call, without the GIL."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.primal_dual import PrimalDual, PrimalDualNumbers, PrimalDualState
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines import outside
from cmdplab.engines.cpu import layout, primal_dual_episode as kernels
from cmdplab.engines.cpu.seen import SeenCounts, with_places
from cmdplab.numerics.arrays import from_pairs
from cmdplab.types import Array, Indices


class PrimalDualInside(NamedTuple):
    """A primal-dual learner as a wrapper sees it: see safe_episode.py."""

    learner: layout.Learner
    numbers: PrimalDualNumbers
    scratch: layout.Scratch


class PrimalDualSession:
    """A run on the CPU engine."""

    def __init__(
        self,
        problem: CMDP | None,
        algorithm: PrimalDual,
        task: Task,
        seed: int,
        state: PrimalDualState | None = None,
    ) -> None:
        self._storage = layout.Storage.of(problem, task)
        listed = self._storage.listed
        layers = algorithm.layers(task)
        if state is None:
            state = PrimalDualState.initial(task, self._storage.nothing(task, layers), layers)
        outside.check_layers(algorithm, task, state.counts)
        self._row, self._task, self._seed = algorithm, task, seed
        self._sizes = task.reward.shape[1:3]
        self._numbers = algorithm.numbers(task)
        self._ahead = outside.StepsAhead(algorithm, task)
        self._world = None if problem is None else layout.world(problem, listed)
        self._learner = layout.learner(task, self._numbers, state, layers, self._storage)
        self._scratch = layout.scratch(task, self._storage, problem is not None)
        self._episode = state.episode
        self._scratch = layout.with_row_for(self._learner.counts, self._scratch)
        kernels.refresh_all(self._learner, self._numbers, self._scratch.row)
        if problem is not None:
            self.play(0)  # compiles, or loads what an earlier process compiled, before anyone times

    def play(self, episodes: int) -> Chunk:
        """Play, with noise that depends on the episode's number only."""
        return self._run(kernels.play, episodes, self._episode % 2)

    def replay(self, states: Indices, actions: Indices) -> Chunk:
        """Learn from trajectories from outside: states [E, H + 1], actions [E, H]."""
        given = [np.ascontiguousarray(each, dtype=np.int64) for each in (states, actions)]
        return self._run(kernels.replay, len(states), *given)

    def act(self, h: int, x: int, u: float) -> int:
        """The action of the policy played next, by inverse CDF of the uniform u."""
        if not outside.inside(self._sizes, h, x):
            outside.checked_place(self._task, h, x)  # says what is wrong
        return int(kernels.draw_action(self._learner.policy[h], x, u, len(self._scratch.top)))

    def policy(self) -> Array:
        """[H, X, A], a copy of what is played next."""
        return from_pairs(self._learner.policy, *self._task.reward.shape[2:])

    def observe(
        self, states: outside.Whole, actions: outside.Whole, rewards: Array | None = None
    ) -> None:
        """Learn one episode: states [H + 1], actions [H], samples of unknown rewards [1 + N, H]."""
        episode = outside.checked_episode(self._task, states, actions, self._row.pooled)
        samples = outside.checked_rewards(self._task, rewards)
        steps = self._ahead[self._episode + 1]
        counts = self._learner.counts
        if isinstance(counts, SeenCounts):
            counts = with_places(counts, *episode)
            self._learner = self._learner._replace(counts=counts)
            self._scratch = layout.with_row_for(counts, self._scratch)
        fixed = (self._learner, self._numbers, self._task.start)
        kernels.advance(*fixed, steps, *episode, samples, self._scratch)
        self._episode += 1

    def inside(self) -> PrimalDualInside:
        """All that a wrapper needs to let it learn, compiled; `skip` says what was learnt so."""
        return PrimalDualInside(self._learner, self._numbers, self._scratch)

    def skip(self, episodes: int) -> None:
        """Episodes that a wrapper has let it learn."""
        self._episode += episodes

    def improve(self) -> None:
        """One policy and dual step on the counts as they are: no episode is played."""
        steps = self._row.schedule(self._task, max(self._episode, 1), 1)[0]
        start = self._task.start
        kernels.improve(self._learner, self._numbers, start, steps, self._scratch)

    def state(self) -> PrimalDualState:
        """A copy of the learner's state, in natural axes."""
        _, _, X, A = self._task.reward.shape
        return layout.natural_state(self._learner, X, A, self._episode, self._storage.written)

    def _run(self, kernel: Any, episodes: int, *given: Any) -> Chunk:
        world, task, first = outside.known(self._world), self._task, self._episode + 1
        steps, chunk = self._row.schedule(task, first, episodes), outside.chunk(task, episodes)
        noise = outside.noise(task, self._seed, first, episodes)
        told = (world, self._learner, self._numbers, task.start, steps)
        kernel(*told, noise, *given, self._scratch, chunk)
        self._episode += episodes
        return chunk
