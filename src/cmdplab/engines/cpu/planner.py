"""The planning family on the CPU engine: all episodes of a chunk in one compiled call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.counts import all_visits, visits_of
from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.planner import Planner, PlannerNumbers, PlannerState
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.engines import outside
from cmdplab.engines.cpu import layout, planner_episode as kernels
from cmdplab.engines.cpu.primal_dual_episode import draw_action
from cmdplab.engines.cpu.seen import SeenCounts, with_places
from cmdplab.numerics.arrays import aligned, from_pairs, padded, places, to_pairs
from cmdplab.solvers.layout import ListedBox, Model, Planning, SeenBox, planning
from cmdplab.types import Array, Indices, Mask


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
    model: Model | ListedBox | SeenBox
    numbers: PlannerNumbers
    space: Planning


class PlannerSession:
    """A run of a planner on the CPU engine."""

    def __init__(
        self,
        problem: CMDP | None,
        algorithm: Planner,
        task: Task,
        seed: int,
        state: PlannerState | None = None,
    ) -> None:
        rewards, H, X, A = task.reward.shape
        self._row, self._task, self._seed = algorithm, task, seed
        self._sizes = (H, X)
        self._numbers = algorithm.numbers(task)
        self._ahead = outside.StepsAhead(algorithm, task)
        self._storage = layout.Storage.of(problem, task)
        listed = self._storage.listed
        self._world = None if problem is None else layout.world(problem, listed)
        self._scratch = layout.scratch(task, self._storage, problem is not None)
        self._space = planning(rewards - 1, H, X, A)
        layers = algorithm.layers(task)
        empty = PlannerState.empty(task, layers, self._storage.nothing(task, layers))
        begun = state if state is not None else empty
        outside.check_layers(algorithm, task, begun.counts)
        self._learner = _learner(task, begun, layers, self._storage)
        self._model = empty_box(task, layers, listed, self._learner.counts)
        self._episode = begun.episode
        kernels.refresh_all(self._learner, self._model, self._numbers, X, padded(X))
        if problem is not None:  # compiles, or loads what was compiled, before anyone times
            self._play(0, planned=state is not None)
        elif state is None:
            fixed = (self._learner, self._model, self._numbers, task.start)
            kernels.make_plan(*fixed, 0.0, 0, *self._space)

    def play(self, episodes: int) -> Chunk:
        """Play, with noise that depends on the episode's number only."""
        return self._play(episodes, planned=True)

    def _play(self, episodes: int, planned: bool) -> Chunk:
        world, task, first = outside.known(self._world), self._task, self._episode + 1
        steps, chunk = self._row.schedule(task, first, episodes), outside.chunk(task, episodes)
        noise = outside.noise(task, self._seed, first, episodes)
        told = (world, self._learner, self._model, self._numbers, task.start, steps)
        kernels.play(*told, noise, self._episode, planned, self._scratch, self._space, chunk)
        self._episode += episodes
        return chunk

    def act(self, h: int, x: int, u: float) -> int:
        """The action of the policy played next, by inverse CDF of the uniform u."""
        if not outside.inside(self._sizes, h, x):
            outside.checked_place(self._task, h, x)  # says what is wrong
        return int(draw_action(self._learner.policy[h], x, u, len(self._scratch.top)))

    def inside(self) -> PlannerInside:
        """All that a wrapper needs to let it learn, compiled; `skip` says what was learnt so."""
        return PlannerInside(self._learner, self._model, self._numbers, self._space)

    def skip(self, episodes: int) -> None:
        """Episodes that a wrapper has let it learn."""
        self._episode += episodes

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
        done = self._episode + 1
        if isinstance(self._learner.counts, SeenCounts):
            counts = with_places(self._learner.counts, *episode)
            self._learner = self._learner._replace(counts=counts)
            self._model = _enlarged(self._model, counts)
        fixed = (self._learner, self._model, self._numbers, self._task.start)
        kernels.advance(*fixed, steps, *episode, samples, done, self._space)
        self._episode = done

    def state(self) -> PlannerState:
        """A copy of the learner's state, in natural axes."""
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
    _, _, X, A = task.reward.shape
    if task.support is None:
        return np.ones((1, A * padded(X)))
    return np.zeros((1, A * padded(X))) if listed is not None else _table(task.support)


def _table(support: Mask) -> Array:
    """[X, A, X] as [X, A * P], zeros and ones."""
    return to_pairs(np.moveaxis(support.astype(np.float64), 2, 0))


def empty_box(
    task: Task, layers: int, listed: Sparse | None, counts: layout.Counts
) -> Model | ListedBox | SeenBox:
    """The box, to be filled in: in a table, around lists, or around what was seen."""
    if isinstance(counts, SeenCounts):
        return _empty_seen(task, layers, counts)
    return _empty_model(task, layers) if listed is None else _empty_lists(task, layers, listed)


def _empty_seen(task: Task, layers: int, counts: SeenCounts) -> SeenBox:
    rewards, H, X, A = task.reward.shape
    places, pairs = len(counts.state), A * padded(X)
    return SeenBox(
        begin=counts.begin,
        used=counts.used,
        state=counts.state,
        lower=np.zeros(places),
        room=np.zeros(places),
        floor=aligned(layers, pairs),
        width=aligned(layers, pairs),
        spare=aligned(layers, pairs),
        reward=aligned(rewards, H, pairs),
        threshold=task.threshold.copy(),
        closed=to_pairs(task.closed),
    )


def _enlarged(box: Model | ListedBox | SeenBox, counts: SeenCounts) -> Model | ListedBox | SeenBox:
    """The box of an enlarged pool; a list that moved is filled in when its pair is counted."""
    assert isinstance(box, SeenBox)
    more = np.zeros(len(counts.state) - len(box.state))
    ends = [np.concatenate([each, more]) for each in (box.lower, box.room)]
    return box._replace(state=counts.state, lower=ends[0], room=ends[1]) if len(more) else box


def _empty_model(task: Task, layers: int) -> Model:
    rewards, H, X, A = task.reward.shape
    pairs = A * padded(X)
    return Model(
        lower=aligned(layers, X, pairs),
        room=aligned(layers, X, pairs),
        spare=aligned(layers, pairs),
        reward=aligned(rewards, H, pairs),
        threshold=task.threshold.copy(),
        closed=to_pairs(task.closed),
    )


def _empty_lists(task: Task, layers: int, listed: Sparse) -> ListedBox:
    rewards, H, X, A = task.reward.shape
    S, pairs = listed.successor.shape[2], A * padded(X)
    own = np.where(layout.used_places(listed), listed.successor, -1)
    successor = places(own).reshape(S, A, padded(X))
    successor[..., X:] = -1
    return ListedBox(
        successor=successor.reshape(S, pairs),
        lower=aligned(layers, S, pairs),
        room=aligned(layers, S, pairs),
        floor=aligned(layers, pairs),
        width=aligned(layers, pairs),
        spare=aligned(layers, pairs),
        reward=aligned(rewards, H, pairs),
        threshold=task.threshold.copy(),
        closed=to_pairs(task.closed),
    )
