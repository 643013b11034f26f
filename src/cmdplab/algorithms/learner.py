"""What passes between a learner, an engine and a measure: the contract of every algorithm.

A learner never sees the kernel. An engine plays its policy, tells it the episode, and hands the
exact returns of what was played to the measures.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from cmdplab.types import Array, Indices


class Episode(NamedTuple):
    """One trajectory: the last state is the one after the last action.

    It is `counts.NOWHERE` where a learner that pools its steps must not count it.
    """

    states: Indices  # [H + 1]
    actions: Indices  # [H]
    rewards: Array | None = None  # [1 + N, H], samples, for a learner that does not know the means
    by_baseline: bool = False  # whether a coin let the safe policy play


class LearnerState(Protocol):
    """What an engine reads of a learner's state; the rest is the learner's own."""

    @property
    def episode(self) -> int:
        """Episodes done."""
        ...

    @property
    def multiplier(self) -> Array:
        """[N], zeros for a learner without multipliers."""
        ...


class Learner(Protocol):
    """Anything that learns episode by episode. It never sees the kernel."""

    def init(self) -> LearnerState:
        """The state before the first episode."""
        ...

    def policy(self, state: Any) -> Array:
        """[H, X, A], what to play next."""
        ...

    def observe(self, state: Any, episode: Episode) -> LearnerState:
        """The state after one more episode, as a new object."""
        ...


class Chunk(NamedTuple):
    """What some consecutive episodes gave: exact returns of the policy played in each."""

    returns: Array  # [E, 1 + N]
    multiplier: Array  # [E, N], after the update of each episode
    on_baseline: Array = np.zeros(0)  # [E], how probably the safe policy played; empty: not told
