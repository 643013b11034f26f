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
from cmdplab.engines.cpu.planner import PlannerSession, empty_box
from cmdplab.engines.cpu.primal_dual import PrimalDualSession
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


class SafeSession:
    """A run of a learner inside a coin."""

    def __init__(
        self,
        problem: CMDP | None,
        algorithm: Safe,
        task: Task,
        seed: int,
        state: Any = None,
    ) -> None:
        if problem is None:
            raise InputError(f"{algorithm.name} plays problems that are known, and learns no other")
        _, H, X, A = task.reward.shape
        told = inner_task(task)
        self._row, self._seed = algorithm, seed
        self._task = task._replace(kernel=problem.kernel)  # to say what the mixture is worth
        own, inside = (None, None) if state is None else parted(algorithm, state)
        self._inside = SESSIONS[type(algorithm.row)](problem, algorithm.row, told, seed, inside)
        self._storage = layout.Storage.of(problem, told)
        self._numbers, layers = algorithm.numbers(task), algorithm.layers(task)
        if own is None:
            own = SafeFields.first(task, self._storage.nothing(told, layers))
        outside.check_layers(algorithm, task, own.visited)
        self._guard = _guard(algorithm, task, own, self._inside.state().episode, self._storage)
        box = empty_box(told, layers, self._storage.listed, self._guard.visited)
        self._model = box._replace(reward=to_pairs(task.reward[1:]))
        self._work = planning(len(task.threshold) - 1, H, X, A).work
        self._world = layout.world(problem, self._storage.listed)
        self._scratch = layout.scratch(told, self._storage, True)
        self._episode = own.episode
        kernels.refresh_all(self._guard, self._model, self._numbers, X, padded(X))
        self._play(0, begun=state is not None)

    def play(self, episodes: int) -> Chunk:
        """Play, with noise and coins that depend on the episode's number only."""
        return self._play(episodes, begun=True)

    def _play(self, episodes: int, begun: bool) -> Chunk:
        task, first = inner_task(self._task), self._episode + 1
        chunk = outside.chunk(task, episodes)
        noise = outside.noise(task, self._seed, first, episodes)
        coins = coin_uniforms(self._seed, first, episodes)
        own_before = int(self._guard.tally[kernels.OWN_EPISODES])
        fixed = (self._world, self._inside.inside(), self._guard, self._model, self._numbers)
        steps = self._steps(first, episodes)
        drawn = (noise, coins, begun, self._scratch, self._work)
        kernels.play(*fixed, task.start, steps, *drawn, chunk)
        self._episode += episodes
        self._inside.skip(int(self._guard.tally[kernels.OWN_EPISODES]) - own_before)
        return chunk

    def _steps(self, first: int, episodes: int) -> Array:
        """[episodes, numbers of one], the schedule inside; Triple-Q has none."""
        if isinstance(self._row.row, TripleQ):
            return np.zeros((episodes, 0))
        return self._row.row.schedule(inner_task(self._task), first, episodes)  # type: ignore[attr-defined,no-any-return]

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
        """A copy of both states, in natural axes."""
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
