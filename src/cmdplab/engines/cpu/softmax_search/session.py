"""The softmax-search family on the CPU engine: all episodes of a chunk in one compiled call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.counts import visits_of
from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.softmax_search import SoftmaxSearchState
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines import outside
from cmdplab.engines.cpu import layout
from cmdplab.engines.cpu.seen import grown
from cmdplab.engines.cpu.session import CpuSession
from cmdplab.engines.cpu.softmax_search import episode as kernels
from cmdplab.numerics.arrays import aligned, from_pairs, padded, to_pairs
from cmdplab.types import Array, Indices


class Learner(NamedTuple):
    """The learner's arrays; a pair (x, a) sits at a * P + x."""

    counts: layout.Counts  # [H, X, A * P], visits to (h, y, pair)
    visits: Array  # [H, A * P]
    planned: Array  # [H, A * P], visits at the time of the search
    inverse: Array  # [H, A * P], Phat = counts * inverse
    width: Array  # [H, A * P], beta
    policy: Array  # [H, A * P]
    baseline: Array  # [H, A * P]
    multiplier: Array  # [1]
    tally: Indices  # [2]: on the baseline, episodes on it
    reward: Array  # [2, H, A * P]
    threshold: Array  # [1]
    closed: Array  # [H, A * P], zero where an action is open, else too low ever to be taken


class Work(NamedTuple):
    """Space for one pass."""

    value: Array  # [3, P]: Vr, Vd, Vu
    action_value: Array  # [3, A * P]
    logit: Array  # [A * P], and then ln pi
    top: Array  # [P], of a softmax
    mass: Array  # [P]
    policy: Array  # [H, A * P], pi^lam


class SoftmaxSearchSession(CpuSession):
    """A run of such a learner."""

    _loops = kernels

    def _begin(self, problem: CMDP | None, state: SoftmaxSearchState | None) -> None:
        task, (_, H, X, A) = self._task, self._task.reward.shape
        P = padded(X)
        self._lay_out(problem, task)
        sizes = ((3, P), (3, A * P), (A * P,), (P,), (P,), (H, A * P))
        self._work = Work(*(aligned(*each) for each in sizes))
        if state is None:
            state = SoftmaxSearchState.empty(task, self._storage.nothing(task, H))
        outside.check_layers(self._row, task, state.counts)
        self._learner = _learner(task, state, self._storage)
        kernels.refresh_all(self._learner)

    def _find_first(self) -> None:
        kernels.begin(self._learner, self._numbers, self._task.start, self._work)

    def replay(self, states: Indices, actions: Indices) -> Chunk:
        """Learn from trajectories from outside: states [E, H + 1], actions [E, H]."""
        return self._run(kernels.replay, len(states), *outside.trajectories(states, actions))

    def _call(self, loop: Any, noise: outside.Noise, chunk: Chunk, *given: Any) -> None:
        fixed = (self._world, self._learner, self._numbers, self._task.start)
        given = given or (self._begun, noise.uniforms)
        loop(*fixed, *given, self._scratch, self._work, chunk)

    def _learn(self, states: Indices, actions: Indices, samples: Array) -> None:
        self._learner = grown(self._learner, states, actions)
        told = (self._learner, self._numbers, self._task.start)
        kernels.advance(*told, states, actions, self._work)

    def state(self) -> SoftmaxSearchState:
        _, _, X, A = self._task.reward.shape
        arrays = self._learner
        return SoftmaxSearchState(
            counts=layout.natural_counts(arrays.counts, arrays.visits, X, A, self._storage.written),
            planned=from_pairs(arrays.planned, X, A),
            policy=from_pairs(arrays.policy, X, A),
            multiplier=arrays.multiplier.copy(),
            on_baseline=int(arrays.tally[kernels.ON_BASELINE]),
            baseline_episodes=int(arrays.tally[kernels.BASELINE_EPISODES]),
            episode=self._episode,
        )


def _learner(task: Task, state: SoftmaxSearchState, storage: layout.Storage) -> Learner:
    _, H, X, A = task.reward.shape
    visits = visits_of(state.counts, H, X, A)
    safe = task.uniform if task.baseline is None else task.baseline.policy
    return Learner(
        counts=storage.stored(state.counts, np.zeros(visits.shape)),
        visits=to_pairs(visits),
        planned=to_pairs(state.planned),
        inverse=aligned(H, A * padded(X)),
        width=aligned(H, A * padded(X)),
        policy=to_pairs(state.policy),
        baseline=to_pairs(safe),
        multiplier=state.multiplier.copy(),
        tally=np.array([state.on_baseline, state.baseline_episodes], int),
        reward=to_pairs(task.reward),
        threshold=task.threshold.copy(),
        closed=to_pairs(task.closed),
    )
