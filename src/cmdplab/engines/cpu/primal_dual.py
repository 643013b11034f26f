"""The primal-dual family on the CPU engine: all episodes of a chunk in one compiled call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.counts import all_visits, visits_of
from cmdplab.algorithms.equations import count_weight
from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.primal_dual import PrimalDualNumbers, PrimalDualState
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines import outside
from cmdplab.engines.cpu import layout, primal_dual_episode as kernels
from cmdplab.engines.cpu.seen import grown
from cmdplab.engines.cpu.session import CpuSession
from cmdplab.numerics.arrays import aligned, from_pairs, padded, to_pairs
from cmdplab.types import Array, Indices

_count_weight = np.vectorize(count_weight, otypes=[float])


class Learner(NamedTuple):
    """The learner's arrays: H X P A + (6 + R) H P A doubles and some vectors; H S P A for lists.

    L is that of the row: H, or 1 where steps share their counts.
    """

    counts: layout.Counts  # [L, X, A * P], visits; ones in an unvisited uniform row
    inverse: Array  # [L, A * P], Pbar = counts * inverse
    visits: Array  # [L, A * P]
    moves: Array  # [L, A * P], those that say where they led
    bonus: Array  # [L, A * P]
    log_policy: Array  # [H, A * P]
    policy: Array  # [H, A * P]
    multiplier: Array  # [N]
    reward: Array  # [R, H, A * P], as told; [R, L, A * P] where rewards are observed
    threshold: Array  # [N]
    closed: Array  # [H, A * P], zero where an action is open, else too low ever to be taken
    reward_sums: Array  # [1 + N, L, A * P], of samples; none where rewards are known


class PrimalDualInside(NamedTuple):
    """A primal-dual learner as a wrapper sees it: see safe_episode.py."""

    learner: Learner
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
        self._learner = _learner(task, self._numbers, state, layers, self._storage)
        self._scratch = layout.with_row_for(self._learner.counts, self._scratch)
        kernels.refresh_all(self._learner, self._numbers, self._scratch.row)

    def play(self, episodes: int) -> Chunk:
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
        _, _, X, A = self._task.reward.shape
        arrays = self._learner
        return PrimalDualState(
            counts=layout.natural_counts(arrays.counts, arrays.moves, X, A, self._storage.written),
            log_policy=from_pairs(arrays.log_policy, X, A),
            policy=from_pairs(arrays.policy, X, A),
            multiplier=arrays.multiplier.copy(),
            episode=self._episode,
            reward_sums=from_pairs(arrays.reward_sums, X, A),
            ends=layout.natural_ends(arrays.visits, arrays.moves, X, A),
        )


def _learner(
    task: Task,
    numbers: PrimalDualNumbers,
    state: PrimalDualState,
    layers: int,
    storage: layout.Storage,
) -> Learner:
    """The arrays that a natural state holds; the rest is `refresh_all`'s."""
    rewards, H, X, A = task.reward.shape
    estimated = layers if task.observed else H
    moves = visits_of(state.counts, layers, X, A)
    uniform = (moves == 0.0) * (numbers.unvisited_mass > 0.0)
    inverse = _count_weight(moves, numbers.prior_visits, numbers.unvisited_mass / X)
    reward = aligned(rewards + rewards % 2, estimated, A * padded(X))
    reward[:rewards] = to_pairs(task.reward[:, :estimated])
    return Learner(
        counts=storage.stored(state.counts, uniform),
        inverse=to_pairs(inverse),
        visits=to_pairs(all_visits(moves, state.ends)),
        moves=to_pairs(moves),
        bonus=aligned(layers, A * padded(X)),
        log_policy=to_pairs(state.log_policy),
        policy=to_pairs(state.policy),
        multiplier=state.multiplier.copy(),
        reward=reward,
        threshold=task.threshold.copy(),
        closed=to_pairs(task.closed),
        reward_sums=to_pairs(outside.checked_sums(task, state.reward_sums)),
    )
