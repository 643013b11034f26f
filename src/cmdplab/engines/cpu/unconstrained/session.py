"""A run of UCBVI or UCRL2 on the CPU engine: all episodes of a chunk in one compiled call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.unconstrained import OptimistState
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines import outside
from cmdplab.engines.cpu.session import CpuSession
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


class OptimistSession(CpuSession):
    """A run of an unconstrained learner."""

    _loops = kernels

    def _begin(self, problem: CMDP | None, state: OptimistState | None) -> None:
        task, (n, H, X, _) = self._task, self._task.reward.shape
        begun = state if state is not None else OptimistState.first(task)
        self._world = None if problem is None else successors(problem)
        arrays = (begun.counts, begun.planned, begun.q, begun.policy, begun.counts.sum(axis=-1))
        told = (np.argmax(begun.policy, axis=-1), task.reward[0], task.closed)
        self._learner = Learner._make(np.array(each, order="C") for each in (*arrays, *told))
        walked = (np.zeros(H + 1, np.int64), np.zeros(H, np.int64))
        value, following, arrived = np.zeros((3, X))
        order, mass = np.arange(X), np.zeros((2, X))
        self._space = Space(value, following, arrived, order, mass, np.zeros(n), *walked)
        self._reward = np.array(task.reward, order="C")
        if state is None:
            kernels.plan(self._learner, self._numbers, 0, self._space)

    def _call(self, loop: Any, noise: outside.Noise, chunk: Chunk, *given: Any) -> None:
        chunk.multiplier[:] = 0.0
        fixed = (self._world, self._learner, self._numbers, self._reward, self._task.start)
        loop(*fixed, noise.uniforms, self._episode, self._space, chunk)

    def _drawn(self, h: int, x: int, u: float) -> int:
        action: int = self._learner.best[h, x]  # nothing is drawn
        return action

    def policy(self) -> Array:
        return np.array(self._learner.policy)

    def _learn(self, states: Indices, actions: Indices, samples: Array) -> None:
        done = self._episode + 1
        kernels.advance(self._learner, self._numbers, states, actions, done, self._space)

    def state(self) -> OptimistState:
        arrays = [each.copy() for each in self._learner[:4]]
        none = np.zeros(len(self._task.threshold))
        return OptimistState._make([*arrays, none, self._episode])
