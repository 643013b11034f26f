"""Checks of episodes from outside, one at a time, before compiled code, which checks nothing.

A session without a problem does not know the kernel. It chooses actions (`act`) and learns from
their episodes (`observe`), but can neither play nor find the returns of its policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from cmdplab.algorithms.counts import NOWHERE
from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Task
from cmdplab.errors import InputError
from cmdplab.numerics.noise import coin_uniforms, reward_uniforms, uniforms
from cmdplab.types import Array, Indices

World = TypeVar("World")
Whole = Indices | Sequence[int]


def known(world: World | None) -> World:
    """Return the true kernel. A session without a problem has none, and raises an `InputError`."""
    if world is None:
        raise InputError("a session without a problem cannot play: give it episodes to observe")
    return world


def checked_place(task: Task, h: int, x: int) -> tuple[int, int]:
    """Return a step and a state of the task, counted from zero, after a check."""
    _, H, X, _ = task.reward.shape
    if not 0 <= h < H:
        raise InputError(f"step {h} is outside 0 to {H - 1}")
    if not 0 <= x < X:
        raise InputError(f"state {x} is outside 0 to {X - 1}")
    return h, x


def checked_episode(
    task: Task, states: Whole, actions: Whole, pooled: bool = False
) -> tuple[Indices, Indices]:
    """Return states [H + 1] and actions [H] of one episode, from the start, through open actions.

    pooled : True if the learner's steps share their counts. The last state may then be `NOWHERE`.
    """
    _, H, X, A = task.reward.shape
    least = NOWHERE if pooled and len(states) == H + 1 and states[H] == NOWHERE else 0
    visited, taken = _indices("states", states, H + 1, X, least), _indices("actions", actions, H, A)
    if visited[:-1].min() < 0:
        raise InputError(f"states[{int(np.argmin(visited))}] is {NOWHERE}: only the last may be")
    if visited[0] != task.start:
        raise InputError(f"states[0] is {visited[0]}, but episodes start in state {task.start}")
    if task.mask is not None:
        closed = np.flatnonzero(~task.mask[np.arange(H), visited[:-1], taken])
        if len(closed):
            h = closed[0]
            raise InputError(f"action {taken[h]} is closed in state {visited[h]} at step {h}")
    if task.support is not None:
        able = task.support[visited[:-1], taken, visited[1:]] | (visited[1:] == NOWHERE)
        impossible = np.flatnonzero(~able)
        if len(impossible):
            h = impossible[0]
            moved = f"action {taken[h]} cannot lead from state {visited[h]} to {visited[h + 1]}"
            raise InputError(f"{moved}, as it does at step {h}")
    return visited, taken


def checked_rewards(task: Task, rewards: Array | None) -> Array:
    """Return samples [1 + N, H] of one episode; [0, H] if rewards are known."""
    n, H = task.reward.shape[:2]
    if not task.observed:
        return np.empty((0, H))
    if rewards is None:
        raise InputError("rewards are not known to this learner: give their samples [1 + N, H]")
    samples = np.ascontiguousarray(rewards, dtype=np.float64)
    if samples.shape != (n, H):
        raise InputError(f"rewards have the shape {samples.shape}, not {(n, H)}")
    if not (samples.min() >= 0.0 and samples.max() <= 1.0):
        i, h = np.argwhere(~((samples >= 0.0) & (samples <= 1.0)))[0]
        raise InputError(f"rewards[{i}, {h}] is {samples[i, h]:g}, outside 0 to 1")
    return samples


def checked_sums(task: Task, sums: Array) -> Array:
    """Return the sums of samples in a state, [1 + N, H, X, A]; [0, ...] if rewards are known."""
    fresh = task.no_samples
    if len(sums) != len(fresh):
        before = "observed" if len(sums) else "known"
        raise InputError(f"the state was learnt with {before} rewards, unlike what is to follow")
    return sums if len(sums) else fresh


def check_layers(row: Row, task: Task, counts: Array) -> None:
    """Refuse counts [L, ...] of a state if the row has another number of layers."""
    layers = row.layers(task)
    there = len(counts) if counts.ndim == 4 else layers  # rows name the layer of each visit
    if counts.ndim == 2 and counts[:, 0].max(initial=0.0) >= layers:
        there = int(counts[:, 0].max()) + 1
    if there != layers:
        counted = f"the state has counts of {there} steps"
        raise InputError(f"{counted}, and {row.name} ({row.preset}) of {layers}")


class StepsAhead:
    """The schedule of a row episode by episode, computed for many at a time: 20 us an episode."""

    BLOCK = 64

    def __init__(self, row: Row, task: Task) -> None:
        self._row, self._task, self._first = row, task, 0
        self._block: Array = np.empty((0, 0))

    def __getitem__(self, episode: int) -> Array:
        """Return the numbers of one episode, counted from 1."""
        if not 0 <= episode - self._first < len(self._block):
            self._first = episode
            self._block = self._row.schedule(self._task, episode, self.BLOCK)
        return np.asarray(self._block[episode - self._first])


class Noise(NamedTuple):
    """Random numbers of an engine for some episodes."""

    uniforms: Array  # [E, H, 2], for actions and next states
    rewards: Array  # [E, H, 1 + N], for samples of rewards; none if they are known
    spread: float  # of those samples
    coins: Array  # [E], for a row that chooses a policy at random; else none


def noise(task: Task, seed: int, first: int, episodes: int, tossed: bool) -> Noise:
    """Draw the noise of the episodes from `first` on. It depends on their numbers only."""
    drawn = uniforms(seed, first, episodes, task.reward.shape[1])
    coins = coin_uniforms(seed, first, episodes) if tossed else np.zeros(0)
    return Noise(drawn, reward_noise(task, seed, first, episodes), task.spread, coins)


def chunk(task: Task, episodes: int) -> Chunk:
    """Allocate the arrays for the results of `episodes` episodes."""
    rewards = len(task.reward)
    space = np.empty((episodes, rewards)), np.empty((episodes, rewards - 1))
    return Chunk(*space, np.zeros(episodes))


def reward_noise(task: Task, seed: int, first: int, episodes: int) -> Array:
    """Return [episodes, H, 1 + N], uniforms of an engine's samples; none if rewards are known."""
    rewards, H = task.reward.shape[:2]
    if not task.observed:
        return np.empty((episodes, H, 0))
    return reward_uniforms(seed, first, episodes, H, rewards)


def _indices(what: str, given: Whole, length: int, below: int, least: int = 0) -> Indices:
    array = np.asarray(given)
    if array.shape != (length,) or array.dtype.kind not in "iu":
        raise InputError(f"{what} must be {length} whole numbers, one for each step")
    if array.min() < least or array.max() >= below:
        h = int(np.argmax((array < least) | (array >= below)))
        raise InputError(f"{what}[{h}] is {array[h]}, outside 0 to {below - 1}")
    return np.ascontiguousarray(array, dtype=np.int64)
