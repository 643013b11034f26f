"""Runs on the cores, derived once for all families: play, replay, observe, state and resume.

A `Family` declares its parts. A session lays out a state for the compiled loops and calls them. It
brings the state back to natural axes, the form of checkpoints and other engines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.running import layout, outside
from cmdplab.algorithms.running.episodes import Loops, draw_action
from cmdplab.algorithms.running.loops import copy
from cmdplab.algorithms.running.seen import grown
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.numerics.arrays import from_pairs, padded
from cmdplab.numerics.compiling import compiled
from cmdplab.types import Array, Indices


class Parts(NamedTuple):
    """The arrays of a run."""

    learner: Any  # the learner's state and inputs, laid out
    scratch: layout.Scratch
    space: Any = None  # of the family; None if the scratch is enough


def policy_kept(row: Any, task: Task, state: Any) -> Array:
    """Return the policy [H, X, A] that a state holds."""
    return np.asarray(state.policy)


def draw_by_policy(learner: Any, h: int, x: int, u: float, P: int) -> int:
    """Draw an action of a policy in pairs; a call with few arguments is fast from Python."""
    action: int = draw_action(learner.policy[h], x, u, P)
    return action


@compiled
def write_policy(learner, out):
    """Write a policy in pairs."""
    copy(learner.policy.reshape(-1), out.reshape(-1))


def with_places(parts: Parts, states: Indices, actions: Indices) -> Parts:
    """Return the arrays with a place for each transition of an episode, if lists grow."""
    return parts._replace(learner=grown(parts.learner, states, actions))


class Family(NamedTuple):
    """Functions and types of one kind of row, from which its runs are derived."""

    state: Any  # of a checkpoint; its annotations define the layout of arrays
    arrange: Callable[..., Parts]  # (row, task, storage, state, scratch), as the loops want them
    loops: Loops
    world: Callable[..., Any] = layout.in_pairs  # (problem, task): storage, true kernel
    draw: Callable[..., int] = draw_by_policy
    policy: Callable[..., Array] = policy_kept
    grow: Callable[..., Parts] = with_places
    write: Any = None  # compiled: the policy played next, in pairs; None: `Safe` refuses the row
    start: Callable[..., Any] | None = None  # (row, task, storage); None: by `state`
    keep: Callable[..., Any] | None = None  # (learner, task, storage, episode); None: by `state`

    def initial(self, row: Any, task: Task, storage: layout.Storage) -> Any:
        """Return the state before the first episode."""
        if self.start is not None:
            return self.start(row, task, storage)
        stored = layout.COUNTS in layout.axes(self.state).values()
        counts = storage.nothing(task, row.layers(task)) if stored else None
        return self.state.initial(row, task, counts)

    def arranged(
        self, row: Any, task: Task, storage: layout.Storage, state: Any, scratch: layout.Scratch
    ) -> Parts:
        """Return the arrays of a run that goes on from a state."""
        for name, axis in layout.axes(self.state).items():
            if axis == layout.COUNTS:
                outside.check_layers(row, task, getattr(state, name))
        return self.arrange(row, task, storage, state, scratch)

    def kept(self, learner: Any, task: Task, storage: layout.Storage, episode: int) -> Any:
        """Return a copy of the learner's state, in natural axes."""
        if self.keep is not None:
            return self.keep(learner, task, storage, episode)
        return layout.natural(self.state, learner, task, storage, episode)


class CpuSession:
    """A run of a row on a problem. Without a problem it can only observe."""

    def __init__(
        self,
        problem: CMDP | None,
        row: Any,
        task: Task,
        seed: int,
        state: Any = None,
    ) -> None:
        if problem is None and row.tosses_coin:
            raise InputError(f"{row.name} plays problems that are known, and learns no other")
        family: Family = row.family
        self._family, self._row, self._task, self._seed = family, row, task, seed
        self._numbers, self._ahead = row.numbers(task), outside.StepsAhead(row, task)
        self._sizes, self._P = task.reward.shape[1:3], padded(task.reward.shape[2])
        self._storage, self._world = family.world(problem, task)
        self._episode = 0 if state is None else int(state.episode)
        self._begun = state is not None  # True if there is a policy to play
        begun = state if self._begun else family.initial(row, task, self._storage)
        space = layout.scratch(task, self._storage, problem is not None)
        self._parts = family.arranged(row, task, self._storage, begun, space)
        if row.tosses_coin and problem is not None:  # for the returns of the mixture
            self._task = task._replace(kernel=problem.kernel)
        if problem is not None:
            self.play(0)  # compiles, or loads what an earlier process compiled, before anyone times
        elif not self._begun:
            family.loops.first(self._parts.learner, self._numbers, task.start, *self._parts[1:])

    def play(self, episodes: int) -> Chunk:
        """Play episodes with noise that depends on the episode's number only."""
        chunk = self._run(self._family.loops.play, episodes, self._begun)
        self._begun = True
        return chunk

    def replay(self, states: Indices, actions: Indices) -> Chunk:
        """Learn from trajectories from outside: states [E, H + 1], actions [E, H]."""
        self._check_untossed()
        told = [np.ascontiguousarray(each, dtype=np.int64) for each in (states, actions)]
        return self._run(self._family.loops.replay, len(states), *told)

    def _run(self, loop: Any, episodes: int, *given: Any) -> Chunk:
        world, first, task = outside.known(self._world), self._episode + 1, self._task
        noise = outside.noise(task, self._seed, first, episodes, self._row.tosses_coin)
        chunk = outside.chunk(task, episodes)
        steps = self._row.schedule(task, first, episodes)
        learner, *spaces = self._parts
        told = (task.start, steps, noise, self._episode, *given)
        loop(world, learner, self._numbers, *told, *spaces, chunk)
        self._episode += episodes
        return chunk

    def act(self, h: int, x: int, u: float) -> int:
        """Return the action of the policy played next, by inverse CDF of the uniform u."""
        if self._row.tosses_coin:
            raise InputError(f"{self._row.name} tosses a coin for an episode, not for a step")
        if not (0 <= h < self._sizes[0] and 0 <= x < self._sizes[1]):
            outside.checked_place(self._task, h, x)  # raises an error that names the fault
        return int(self._family.draw(self._parts.learner, h, x, u, self._P))

    def policy(self) -> Array:
        """Return a copy [H, X, A] of the policy played next."""
        if layout.axes(self._family.state).get("policy") == layout.PAIRS:
            return from_pairs(self._parts.learner.policy, *self._task.reward.shape[2:])
        return self._family.policy(self._row, self._task, self.state())

    def observe(
        self, states: outside.Whole, actions: outside.Whole, rewards: Array | None = None
    ) -> None:
        """Learn one episode: states [H + 1], actions [H], samples of unknown rewards [1 + N, H]."""
        self._check_untossed()
        episode = outside.checked_episode(self._task, states, actions, self._row.pooled)
        samples = outside.checked_rewards(self._task, rewards)
        self._parts = self._family.grow(self._parts, *episode)
        done, (learner, *spaces) = self._episode + 1, self._parts
        told = (self._numbers, self._task.start, self._ahead[done], done, *episode, samples)
        self._family.loops.advance(learner, *told, *spaces)
        self._episode = done

    def _check_untossed(self) -> None:
        """Refuse an episode from outside, which does not show which of two policies played it."""
        if self._row.tosses_coin:
            raise InputError(f"{self._row.name} learns from episodes that its own coin decided")

    def state(self) -> Any:
        """Return a copy of the learner's state, in natural axes."""
        return self._family.kept(self._parts.learner, self._task, self._storage, self._episode)
