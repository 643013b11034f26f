"""What the readable learners share: their form, and rewards that are only observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from cmdplab.algorithms import equations as eq
from cmdplab.algorithms.counts import NOWHERE, with_end
from cmdplab.algorithms.learner import Episode
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Task
from cmdplab.types import Array, Indices

Kind = TypeVar("Kind", bound=Row)
Numbers = TypeVar("Numbers")

radius_of = np.vectorize(eq.confidence_radius, otypes=[float])


@dataclass(frozen=True)
class PlainLearner(Generic[Kind, Numbers]):
    """A `Learner` (algorithms/learner.py) for one row and one task; its state has its policy."""

    row: Kind
    task: Task

    @cached_property
    def numbers(self) -> Numbers:
        """The row, resolved for the task."""
        found: Numbers = self.row.numbers(self.task)  # type: ignore[attr-defined]
        return found

    def policy(self, state: Any) -> Array:
        """[H, X, A], what is played next."""
        return np.asarray(state.policy)

    def layers_of(self, counted: Array) -> Indices:
        """[H], the layer of counts [L, ...] that each step reads."""
        return np.minimum(np.arange(self.task.reward.shape[1]), len(counted) - 1)


def counted(counts: Array, ends: Array, episode: Episode, visit: float) -> tuple[Array, Array]:
    """Counts [L, X, A, X] with one more episode, and the visits that led nobody knows where."""
    counts = counts.copy()
    for h, action in enumerate(episode.actions):
        place = (min(h, len(counts) - 1), int(episode.states[h]), int(action))
        if episode.states[h + 1] == NOWHERE:
            ends = with_end(ends, counts.shape[:3], place, visit)
        else:
            counts[(*place, episode.states[h + 1])] += visit
    return counts, ends


def summed(task: Task, sums: Array, episode: Episode) -> Array:
    """The sums of samples [1 + N, L, X, A] with one more episode; unchanged where known."""
    if not task.observed:
        return sums
    assert episode.rewards is not None
    sums = sums.copy()
    for n, h in np.ndindex(*episode.rewards.shape):
        layer = min(h, sums.shape[1] - 1)
        sums[n, layer, episode.states[h], episode.actions[h]] += episode.rewards[n, h]
    return sums


def estimated(
    task: Task, sums: Array, visits: Array, radius: Array, scale: Sequence[float]
) -> Array:
    """[1 + N, H, X, A], the ends sum / visits + scale[n] radius; as told where known."""
    reward = task.reward.copy()
    for n, h, x, a in np.ndindex(*sums.shape):
        width = scale[n] * float(radius[h, x, a])
        total, seen = float(sums[n, h, x, a]), float(visits[h, x, a])
        reward[n, h, x, a] = eq.reward_estimate(total, seen, width)
    return reward
