"""Types that pass between a learner, an engine and a measure: the contract of every algorithm.

A learner never sees the kernel. An engine plays the learner's policy and passes the episode to the
learner. It passes the exact returns of the policy to the measures.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from cmdplab.types import Array, Indices


class Episode(NamedTuple):
    """One trajectory. The last state is the state after the last action.

    It is `counts.NOWHERE` if a learner that pools its steps must not count it.
    """

    states: Indices  # [H + 1]
    actions: Indices  # [H]
    rewards: Array | None = None  # [1 + N, H], samples, for a learner that does not know the means
    by_baseline: bool = False  # True if a random choice let the safe policy play


class LearnerState(Protocol):
    """The fields of a learner's state that an engine reads. All others are the learner's own."""

    @property
    def episode(self) -> int:
        """Return the number of episodes done."""
        ...

    @property
    def multiplier(self) -> Array:
        """Return [N], zeros for a learner without multipliers."""
        ...


class Learner(Protocol):
    """An object that learns episode by episode. It never sees the kernel."""

    def init(self) -> LearnerState:
        """Return the state before the first episode."""
        ...

    def policy(self, state: Any) -> Array:
        """Return the policy to play next, [H, X, A]."""
        ...

    def observe(self, state: Any, episode: Episode) -> LearnerState:
        """Return the state after one more episode, as a new object."""
        ...


class Chunk(NamedTuple):
    """Results of consecutive episodes: the exact returns of the policy played in each."""

    returns: Array  # [E, 1 + N]
    multiplier: Array  # [E, N], after the update of each episode
    on_baseline: Array = np.zeros(0)  # [E], probability of the safe policy; empty: unknown
