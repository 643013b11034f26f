"""The softmax-search family on the CPU engine: all episodes of a chunk in one compiled call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.counts import visits_of
from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.softmax_search import SoftmaxSearch, SoftmaxSearchState
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines import outside
from cmdplab.engines.cpu import layout, softmax_search_episode as kernels
from cmdplab.engines.cpu.primal_dual_episode import draw_action
from cmdplab.engines.cpu.seen import SeenCounts, with_places
from cmdplab.numerics.arrays import aligned, from_pairs, padded, to_pairs
from cmdplab.numerics.noise import uniforms
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


class SoftmaxSearchSession:
    """A run of such a learner on the CPU engine."""

    def __init__(
        self,
        problem: CMDP | None,
        algorithm: SoftmaxSearch,
        task: Task,
        seed: int,
        state: SoftmaxSearchState | None = None,
    ) -> None:
        _, H, X, A = task.reward.shape
        P = padded(X)
        self._task, self._seed, self._numbers = task, seed, algorithm.numbers(task)
        self._storage = layout.Storage.of(problem, task)
        self._world = None if problem is None else layout.world(problem, self._storage.listed)
        self._scratch = layout.scratch(task, self._storage, problem is not None)
        sizes = ((3, P), (3, A * P), (A * P,), (P,), (P,), (H, A * P))
        self._work = Work(*(aligned(*each) for each in sizes))
        empty = SoftmaxSearchState.empty(task, self._storage.nothing(task, H))
        begun = state if state is not None else empty
        outside.check_layers(algorithm, task, begun.counts)
        self._learner, self._episode = _learner(task, begun, self._storage), begun.episode
        kernels.refresh_all(self._learner)
        if problem is not None:  # compiles, or loads what was compiled, before anyone times
            self._play(0, begun=state is not None)
        elif state is None:
            kernels.begin(self._learner, self._numbers, task.start, self._work)

    def play(self, episodes: int) -> Chunk:
        """Play, with noise that depends on the episode's number only."""
        return self._play(episodes, begun=True)

    def _play(self, episodes: int, begun: bool) -> Chunk:
        world, task = outside.known(self._world), self._task
        noise = uniforms(self._seed, self._episode + 1, episodes, task.reward.shape[1])
        chunk = outside.chunk(task, episodes)
        told = (world, self._learner, self._numbers, task.start)
        kernels.play(*told, begun, noise, self._scratch, self._work, chunk)
        self._episode += episodes
        return chunk

    def replay(self, states: Indices, actions: Indices) -> Chunk:
        """Learn from trajectories from outside: states [E, H + 1], actions [E, H]."""
        visited, taken = (np.ascontiguousarray(each, dtype=np.int64) for each in (states, actions))
        world, task = outside.known(self._world), self._task
        chunk = outside.chunk(task, len(states))
        told = (world, self._learner, self._numbers, task.start)
        kernels.replay(*told, visited, taken, self._scratch, self._work, chunk)
        self._episode += len(states)
        return chunk

    def act(self, h: int, x: int, u: float) -> int:
        """The action of the policy played next, by inverse CDF of the uniform u."""
        h, x = outside.checked_place(self._task, h, x)
        return int(draw_action(self._learner.policy[h], x, u, len(self._work.top)))

    def policy(self) -> Array:
        """[H, X, A], a copy of what is played next."""
        return from_pairs(self._learner.policy, *self._task.reward.shape[2:])

    def observe(
        self, states: outside.Whole, actions: outside.Whole, rewards: Array | None = None
    ) -> None:
        """Learn one episode: states [H + 1], actions [H]; rewards are known."""
        episode = outside.checked_episode(self._task, states, actions)
        counts = self._learner.counts
        if isinstance(counts, SeenCounts):
            self._learner = self._learner._replace(counts=with_places(counts, *episode))
        told = (self._learner, self._numbers, self._task.start)
        kernels.advance(*told, *episode, self._work)
        self._episode += 1

    def state(self) -> SoftmaxSearchState:
        """A copy of the learner's state, in natural axes."""
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
