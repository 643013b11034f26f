"""What the sessions of all families have in common: a run in progress, and a learner outside.

A family has loops that `play`, and says how its arrays are laid out (`_begin`), how a loop is
called (`_call`), and how one episode is learnt (`_learn`). What is here serves families whose
learner keeps its policy as pairs, [H, A * P]; the others have their own `_drawn` and `policy`.
"""

from __future__ import annotations

from typing import Any

from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines import outside
from cmdplab.engines.cpu import layout
from cmdplab.engines.cpu.primal_dual_episode import draw_action
from cmdplab.numerics.arrays import from_pairs, padded
from cmdplab.types import Array, Indices


class CpuSession:
    """A run of a row on a problem; without a problem it can only observe."""

    _loops: Any  # the module of the family's compiled episode
    _world: Any  # the true kernel; None without a problem
    _scratch: Any  # space for an episode
    _learner: Any  # the learner's arrays

    def __init__(
        self, problem: CMDP | None, row: Any, task: Task, seed: int, state: Any = None
    ) -> None:
        self._row, self._task, self._seed = row, task, seed
        self._sizes = task.reward.shape[1:3]
        self._numbers = row.numbers(task)
        self._episode = 0 if state is None else int(state.episode)
        self._begun = state is not None  # whether there is a policy to play
        self._begin(problem, state)
        if problem is not None:
            self.play(0)  # compiles, or loads what an earlier process compiled, before anyone times
        elif not self._begun:
            self._find_first()

    def _begin(self, problem: CMDP | None, state: Any) -> None:
        raise NotImplementedError

    def _call(self, loop: Any, noise: outside.Noise, chunk: Chunk, *given: Any) -> None:
        raise NotImplementedError

    def _learn(self, states: Indices, actions: Indices, samples: Array) -> None:
        raise NotImplementedError

    def state(self) -> Any:
        """A copy of the learner's state, in natural axes."""
        raise NotImplementedError

    def _find_first(self) -> None:
        """The first policy, where no loop is there to find it; most states hold one."""

    def _lay_out(self, problem: CMDP | None, task: Task) -> None:
        """How counts are stored, the true kernel, and space for an episode."""
        self._storage = layout.Storage.of(problem, task)
        self._world = None if problem is None else layout.world(problem, self._storage.listed)
        self._scratch = layout.scratch(task, self._storage, problem is not None)

    def play(self, episodes: int) -> Chunk:
        """Play, with noise that depends on the episode's number only."""
        return self._run(self._loops.play, episodes)

    def _run(self, loop: Any, episodes: int, *given: Any) -> Chunk:
        outside.known(self._world)
        noise = outside.noise(self._task, self._seed, self._episode + 1, episodes)
        chunk = outside.chunk(self._task, episodes)
        self._call(loop, noise, chunk, *given)
        self._episode += episodes
        self._begun = True
        return chunk

    def act(self, h: int, x: int, u: float) -> int:
        """The action of the policy played next, by inverse CDF of the uniform u."""
        if not outside.inside(self._sizes, h, x):
            outside.checked_place(self._task, h, x)  # says what is wrong
        return int(self._drawn(h, x, u))

    def _drawn(self, h: int, x: int, u: float) -> int:
        action: int = draw_action(self._learner.policy[h], x, u, padded(self._sizes[1]))
        return action

    def policy(self) -> Array:
        """[H, X, A], a copy of what is played next."""
        return from_pairs(self._learner.policy, *self._task.reward.shape[2:])

    def observe(
        self, states: outside.Whole, actions: outside.Whole, rewards: Array | None = None
    ) -> None:
        """Learn one episode: states [H + 1], actions [H], samples of unknown rewards [1 + N, H]."""
        episode = outside.checked_episode(self._task, states, actions, self._row.pooled)
        self._learn(*episode, outside.checked_rewards(self._task, rewards))
        self._episode += 1

    def skip(self, episodes: int) -> None:
        """Episodes that a wrapper has let it learn: see `inside` of those that can be wrapped."""
        self._episode += episodes
