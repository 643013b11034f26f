"""The primal-dual family on the CPU engine: all episodes of a chunk in one compiled call."""

from __future__ import annotations

from typing import Any, NamedTuple

from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.primal_dual import PrimalDualNumbers, PrimalDualState
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines import outside
from cmdplab.engines.cpu import layout, primal_dual_episode as kernels
from cmdplab.engines.cpu.seen import grown
from cmdplab.engines.cpu.session import CpuSession
from cmdplab.types import Array, Indices


class PrimalDualInside(NamedTuple):
    """A primal-dual learner as a wrapper sees it: see safe_episode.py."""

    learner: layout.Learner
    numbers: PrimalDualNumbers
    scratch: layout.Scratch


class PrimalDualSession(CpuSession):
    """A run of a primal-dual learner."""

    _loops = kernels

    def _begin(self, problem: CMDP | None, state: PrimalDualState | None) -> None:
        task, layers = self._task, self._row.layers(self._task)
        self._ahead = outside.StepsAhead(self._row, task)
        self._lay_out(problem, task)
        if state is None:
            state = PrimalDualState.initial(task, self._storage.nothing(task, layers), layers)
        outside.check_layers(self._row, task, state.counts)
        self._learner = layout.learner(task, self._numbers, state, layers, self._storage)
        self._scratch = layout.with_row_for(self._learner.counts, self._scratch)
        kernels.refresh_all(self._learner, self._numbers, self._scratch.row)

    def play(self, episodes: int) -> Chunk:
        """Play, with noise that depends on the episode's number only."""
        return self._run(kernels.play, episodes, self._episode % 2)

    def replay(self, states: Indices, actions: Indices) -> Chunk:
        """Learn from trajectories from outside: states [E, H + 1], actions [E, H]."""
        return self._run(kernels.replay, len(states), *outside.trajectories(states, actions))

    def _call(self, loop: Any, noise: outside.Noise, chunk: Chunk, *given: Any) -> None:
        steps = self._row.schedule(self._task, self._episode + 1, len(chunk.returns))
        told = (self._world, self._learner, self._numbers, self._task.start, steps, noise)
        loop(*told, *given, self._scratch, chunk)

    def _learn(self, states: Indices, actions: Indices, samples: Array) -> None:
        self._learner = grown(self._learner, states, actions)
        self._scratch = layout.with_row_for(self._learner.counts, self._scratch)
        told = (self._learner, self._numbers, self._task.start, self._ahead[self._episode + 1])
        kernels.advance(*told, states, actions, samples, self._scratch)

    def inside(self) -> PrimalDualInside:
        """All that a wrapper needs to let it learn, compiled; `skip` says what was learnt so."""
        return PrimalDualInside(self._learner, self._numbers, self._scratch)

    def improve(self) -> None:
        """One policy and dual step on the counts as they are: no episode is played."""
        steps = self._row.schedule(self._task, max(self._episode, 1), 1)[0]
        start = self._task.start
        kernels.improve(self._learner, self._numbers, start, steps, self._scratch)

    def state(self) -> PrimalDualState:
        """A copy of the learner's state, in natural axes."""
        _, _, X, A = self._task.reward.shape
        return layout.natural_state(self._learner, X, A, self._episode, self._storage.written)
