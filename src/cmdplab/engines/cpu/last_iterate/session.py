"""A run of OPG-PD or OMWU-PD on the CPU engine: all iterations of a chunk in one compiled call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.last_iterate import LastIterate, LastIterateState
from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines import outside
from cmdplab.engines.cpu.last_iterate import episode as kernels
from cmdplab.engines.cpu.triple_q import successors_of
from cmdplab.types import Array


class Iterate(NamedTuple):
    """The arrays of `LastIterateState`, and what the method is told."""

    policy: Array  # [H, X, A]
    anchor: Array  # [H, X, A]
    multiplier: Array  # [N]
    anchor_multiplier: Array  # [N]
    reward: Array  # [1 + N, H, X, A]
    threshold: Array  # [N]
    closed: Array  # [H, X, A], zero where an action is open, else too low ever to be taken


class Space(NamedTuple):
    """Space for one iteration, so that the loops allocate nothing."""

    value: Array  # [1 + N, X], of step h + 1
    following: Array  # [1 + N, X], of step h
    total: Array  # [A]
    sorted: Array  # [A]


class LastIterateSession:
    """A run of a planning method. No seed matters: nothing is drawn."""

    def __init__(
        self,
        problem: CMDP | None,
        algorithm: LastIterate,
        task: Task,
        seed: int,
        state: LastIterateState | None = None,
    ) -> None:
        n, _, X, A = task.reward.shape
        begun = state if state is not None else LastIterateState.first(algorithm, task)
        assert task.kernel is not None  # `Row.check` has seen to that
        self._task, self._episode = task, begun.episode
        self._numbers = algorithm.numbers(task)
        self._kernel = successors_of(task.kernel)
        arrays = (*begun[:-1], task.reward, task.threshold, task.closed)
        self._iterate = Iterate._make(np.array(each, np.float64, order="C") for each in arrays)
        value, following = np.zeros((2, n, X))
        self._space = Space(value, following, *np.zeros((2, A)))
        if problem is not None:
            self.play(0)  # compiles, or loads what an earlier process compiled, before anyone times

    def play(self, episodes: int) -> Chunk:
        """So many iterations, and what the policy of each earns."""
        chunk = outside.chunk(self._task, episodes)
        fixed = (self._kernel, self._iterate, self._numbers, self._task.start)
        kernels.play(*fixed, self._space, chunk)
        self._episode += episodes
        return chunk

    def act(self, h: int, x: int, u: float) -> int:
        """The action of the policy evaluated next, by inverse CDF of the uniform u."""
        h, x = outside.checked_place(self._task, h, x)
        below = np.cumsum(self._iterate.policy[h, x]) <= u
        return min(int(np.count_nonzero(below)), self._last(h, x))

    def _last(self, h: int, x: int) -> int:
        """The last action with mass, which is drawn where rounding leaves u beyond all sums."""
        return int(np.flatnonzero(self._iterate.policy[h, x])[-1])

    def policy(self) -> Array:
        """[H, X, A], a copy of what is evaluated next."""
        return self._iterate.policy.copy()

    def observe(
        self, states: outside.Whole, actions: outside.Whole, rewards: Array | None = None
    ) -> None:
        """One iteration. The episode is checked, and not looked at."""
        outside.checked_episode(self._task, states, actions)
        self.play(1)

    def state(self) -> LastIterateState:
        """A copy of what it carries."""
        arrays = [each.copy() for each in self._iterate[:4]]
        return LastIterateState._make([*arrays, self._episode])
