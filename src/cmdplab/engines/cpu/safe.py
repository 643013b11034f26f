"""A learner inside a coin on the CPU engine: all episodes of a chunk in one compiled call.

The learner inside is a session of its own family, whose arrays the compiled loop shares; the guard
beside it counts what both policies played, bounds the candidate's utilities, and sets the coin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.counts import visits_of
from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.planner import Planner
from cmdplab.algorithms.primal_dual import PrimalDual
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.safe import Safe, SafeFields, behaviour, inner_task, joined, parted
from cmdplab.algorithms.task import Task
from cmdplab.algorithms.triple_q import TripleQ
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines import outside
from cmdplab.engines.cpu import layout, safe_episode as kernels
from cmdplab.engines.cpu.boxes import empty_box
from cmdplab.engines.cpu.planner import PlannerSession
from cmdplab.engines.cpu.primal_dual import PrimalDualSession
from cmdplab.engines.cpu.session import CpuSession
from cmdplab.engines.cpu.triple_q import TripleQSession
from cmdplab.errors import InputError
from cmdplab.numerics.arrays import from_pairs, padded, to_pairs
from cmdplab.numerics.noise import coin_uniforms
from cmdplab.solvers.layout import planning
from cmdplab.types import Array, Indices

SESSIONS: dict[type[Row], Any] = {
    PrimalDual: PrimalDualSession,
    Planner: PlannerSession,
    TripleQ: TripleQSession,
}


class Guard(NamedTuple):
    """What watches over a learner; a pair (x, a) sits at a * P + x, L is that of the row inside."""

    visited: layout.Counts  # [L, X, A * P], visits to (h, y, pair) of every episode
    visits: Array  # [L, A * P]
    most: Array  # [1, A * P], ones: nothing is told of successors
    candidate: Array  # [H, A * P]
    baseline: Array  # [H, A * P]
    baseline_returns: Array  # [1 + N]
    bound: Array  # [N]
    multiplier: Array  # [N]
    coin: Array  # [2]: lam of the next episode, and its sum over those done
    tally: Indices  # [3]: episodes of the safe policy, of the learner; whether it sees its own only
    utility_sums: Array  # [N, L, A * P], of samples; [0, L, A * P] where rewards are known


class SafeSession(CpuSession):
    """A run of a learner inside a coin."""

    _loops = kernels

    def _begin(self, problem: CMDP | None, state: Any) -> None:
        row, task = self._row, self._task
        if problem is None:
            raise InputError(f"{row.name} plays problems that are known, and learns no other")
        (_, H, X, A), told, layers = task.reward.shape, inner_task(task), row.layers(task)
        own, inside = (None, None) if state is None else parted(row, state)
        self._inside = SESSIONS[type(row.row)](problem, row.row, told, self._seed, inside)
        self._lay_out(problem, told)
        if own is None:
            own = SafeFields.first(task, self._storage.nothing(told, layers))
        outside.check_layers(row, task, own.visited)
        self._guard = _guard(row, task, own, self._inside.state().episode, self._storage)
        box = empty_box(told, layers, self._storage.listed, self._guard.visited)
        self._model = box._replace(reward=to_pairs(task.reward[1:]))
        self._work = planning(len(task.threshold) - 1, H, X, A).work
        kernels.refresh_all(self._guard, self._model, self._numbers, X, padded(X))
        self._task = task._replace(kernel=problem.kernel)  # to say what the mixture is worth

    def _call(self, loop: Any, noise: outside.Noise, chunk: Chunk, *given: Any) -> None:
        first, episodes = self._episode + 1, len(chunk.returns)
        coins = coin_uniforms(self._seed, first, episodes)
        own_before = int(self._guard.tally[kernels.OWN_EPISODES])
        fixed = (self._world, self._inside.inside(), self._guard, self._model, self._numbers)
        drawn = (self._steps(first, episodes), noise, coins, self._begun)
        loop(*fixed, self._task.start, *drawn, self._scratch, self._work, chunk)
        self._inside.skip(int(self._guard.tally[kernels.OWN_EPISODES]) - own_before)

    def _steps(self, first: int, episodes: int) -> Array:
        """[episodes, numbers of one], the schedule inside; Triple-Q has none."""
        if isinstance(self._row.row, TripleQ):
            return np.zeros((episodes, 0))
        return np.asarray(self._row.row.schedule(inner_task(self._task), first, episodes))

    def act(self, h: int, x: int, u: float) -> int:
        """None: one coin is tossed for all steps of an episode, and a step alone cannot tell."""
        raise InputError(f"{self._row.name} tosses a coin for an episode, not for a step")

    def observe(
        self, states: outside.Whole, actions: outside.Whole, rewards: Array | None = None
    ) -> None:
        """None: an episode from outside does not say which of the two policies played it."""
        raise InputError(f"{self._row.name} learns from episodes that its own coin decided")

    def policy(self) -> Array:
        """[H, X, A], the policy of the mixture that is played next."""
        return behaviour(self._task, self.state())

    def state(self) -> Any:
        guard, (_, _, X, A) = self._guard, self._task.reward.shape
        own = SafeFields(
            visited=layout.natural_counts(guard.visited, guard.visits, X, A, self._storage.written),
            utility_sums=from_pairs(guard.utility_sums, X, A),
            candidate=from_pairs(guard.candidate, X, A),
            bound=guard.bound.copy(),
            multiplier=guard.multiplier.copy(),
            on_baseline=float(guard.coin[kernels.LAM]),
            given_to_baseline=float(guard.coin[kernels.GIVEN]),
            baseline_episodes=int(guard.tally[kernels.BASELINE_EPISODES]),
            episode=self._episode,
        )
        return joined(own, self._inside.state())


def _guard(row: Safe, task: Task, own: SafeFields, learnt: int, storage: layout.Storage) -> Guard:
    baseline, (_, _, X, A) = task.baseline, task.reward.shape
    assert baseline is not None
    visits = visits_of(own.visited, row.layers(task), X, A)
    return Guard(
        visited=storage.stored(own.visited, np.zeros(visits.shape)),
        visits=to_pairs(visits),
        most=np.ones((1, A * padded(X))),
        candidate=to_pairs(own.candidate),
        baseline=to_pairs(baseline.policy),
        baseline_returns=np.array(baseline.returns),
        bound=own.bound.copy(),
        multiplier=own.multiplier.copy(),
        coin=np.array([own.on_baseline, own.given_to_baseline]),
        tally=np.array([own.baseline_episodes, learnt, row.own_episodes_only], int),
        utility_sums=to_pairs(own.utility_sums),
    )
