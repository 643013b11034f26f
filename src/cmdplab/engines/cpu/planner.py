"""The planning family on the CPU engine: all episodes of a chunk in one compiled call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.counts import all_visits, visits_of
from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.planner import PlannerNumbers, PlannerState
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.engines import outside
from cmdplab.engines.cpu import layout, planner_episode as kernels
from cmdplab.engines.cpu.boxes import AnyBox, empty_box, enlarged_box
from cmdplab.engines.cpu.seen import grown
from cmdplab.engines.cpu.session import CpuSession
from cmdplab.numerics.arrays import from_pairs, padded, to_pairs
from cmdplab.solvers.layout import Planning, planning
from cmdplab.types import Array, Indices


class Learner(NamedTuple):
    """The learner's arrays; a pair (x, a) sits at a * P + x, L is that of the row."""

    counts: layout.Counts  # [L, X, A * P], visits to (h, y, pair)
    visits: Array  # [L, A * P]
    moves: Array  # [L, A * P], those that say where they led
    planned: Array  # [L, A * P]
    most: Array  # [X, A * P], 0 where a state is known not to follow, else 1; or [1, A * P]
    policy: Array  # [H, A * P]
    promised: Array  # [1 + N]
    queue: Array  # [N]
    multiplier: Array  # [N]
    tally: Indices  # [3]: on the baseline, episodes on it, whether there is one
    reward: Array  # [1 + N, H, A * P]
    baseline: Array  # [H, A * P]
    baseline_returns: Array  # [1 + N]
    reward_sums: Array  # [1 + N, L, A * P], of samples; [0, L, A * P] where rewards are known


class PlannerInside(NamedTuple):
    """A planner as a wrapper sees it: see safe_episode.py."""

    learner: Learner
    model: AnyBox
    numbers: PlannerNumbers
    space: Planning


class PlannerSession(CpuSession):
    """A run of a planner."""

    _loops = kernels

    def _begin(self, problem: CMDP | None, state: PlannerState | None) -> None:
        task, (rewards, H, X, A) = self._task, self._task.reward.shape
        layers = self._row.layers(task)
        self._ahead = outside.StepsAhead(self._row, task)
        self._lay_out(problem, task)
        self._space = planning(rewards - 1, H, X, A)
        if state is None:
            state = PlannerState.empty(task, layers, self._storage.nothing(task, layers))
        outside.check_layers(self._row, task, state.counts)
        self._learner = _learner(task, state, layers, self._storage)
        self._model = empty_box(task, layers, self._storage.listed, self._learner.counts)
        kernels.refresh_all(self._learner, self._model, self._numbers, X, padded(X))

    def _find_first(self) -> None:
        fixed = (self._learner, self._model, self._numbers, self._task.start)
        kernels.make_plan(*fixed, 0.0, 0, *self._space)

    def _call(self, loop: Any, noise: outside.Noise, chunk: Chunk, *given: Any) -> None:
        steps = self._row.schedule(self._task, self._episode + 1, len(chunk.returns))
        fixed = (self._world, self._learner, self._model, self._numbers, self._task.start)
        begun = (self._episode, self._begun)
        loop(*fixed, steps, noise, *begun, self._scratch, self._space, chunk)

    def _learn(self, states: Indices, actions: Indices, samples: Array) -> None:
        done = self._episode + 1
        self._learner = grown(self._learner, states, actions)
        self._model = enlarged_box(self._model, self._learner.counts)
        fixed = (self._learner, self._model, self._numbers, self._task.start, self._ahead[done])
        kernels.advance(*fixed, states, actions, samples, done, self._space)

    def inside(self) -> PlannerInside:
        """All that a wrapper needs to let it learn, compiled; `skip` says what was learnt so."""
        return PlannerInside(self._learner, self._model, self._numbers, self._space)

    def state(self) -> PlannerState:
        _, _, X, A = self._task.reward.shape
        arrays = self._learner
        return PlannerState(
            counts=layout.natural_counts(arrays.counts, arrays.moves, X, A, self._storage.written),
            planned=from_pairs(arrays.planned, X, A),
            policy=from_pairs(arrays.policy, X, A),
            promised=arrays.promised.copy(),
            queue=arrays.queue.copy(),
            multiplier=arrays.multiplier.copy(),
            on_baseline=int(arrays.tally[kernels.ON_BASELINE]),
            baseline_episodes=int(arrays.tally[kernels.BASELINE_EPISODES]),
            episode=self._episode,
            reward_sums=from_pairs(arrays.reward_sums, X, A),
            ends=layout.natural_ends(arrays.visits, arrays.moves, X, A),
        )


def _learner(task: Task, state: PlannerState, layers: int, storage: layout.Storage) -> Learner:
    baseline, (_, _, X, A) = task.baseline, task.reward.shape
    moves = visits_of(state.counts, layers, X, A)
    return Learner(
        counts=storage.stored(state.counts, np.zeros(moves.shape)),
        visits=to_pairs(all_visits(moves, state.ends)),
        moves=to_pairs(moves),
        planned=to_pairs(state.planned),
        most=_most(task, storage.listed),
        policy=to_pairs(state.policy),
        promised=state.promised.copy(),
        queue=state.queue.copy(),
        multiplier=state.multiplier.copy(),
        tally=np.array([state.on_baseline, state.baseline_episodes, baseline is not None], int),
        reward=to_pairs(task.reward),
        baseline=to_pairs(task.uniform if baseline is None else baseline.policy),
        baseline_returns=np.zeros(len(task.reward)) if baseline is None else baseline.returns,
        reward_sums=to_pairs(outside.checked_sums(task, state.reward_sums)),
    )


def _most(task: Task, listed: Sparse | None) -> Array:
    """What was told of the possible successors; of those outside the lists where there are any."""
    pairs = task.reward.shape[3] * padded(task.reward.shape[2])
    if task.support is None:
        return np.ones((1, pairs))
    if listed is not None:
        return np.zeros((1, pairs))
    return to_pairs(np.moveaxis(task.support.astype(np.float64), 2, 0))
