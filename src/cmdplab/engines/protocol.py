"""The protocols of an engine: sessions that play, and sessions that observe.

They are a separate module, so that a caller can name a session without loading an engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cmdplab.algorithms.learner import Chunk
from cmdplab.types import Array, Indices


class Session(Protocol):
    """A run in progress on some engine."""

    def play(self, episodes: int) -> Chunk:
        """Play `episodes` more episodes."""
        ...

    def state(self) -> Any:
        """Return all data needed to continue later."""
        ...


class LiveSession(Protocol):
    """A learner in an external environment: it chooses actions and observes episodes."""

    def act(self, h: int, x: int, u: float) -> int:
        """Return the action of the current policy, by inverse CDF of the uniform u."""
        ...

    def policy(self) -> Array:
        """Return a copy [H, X, A] of the current policy."""
        ...

    def observe(
        self,
        states: Indices | Sequence[int],
        actions: Indices | Sequence[int],
        rewards: Array | None = None,
    ) -> None:
        """Learn one episode: states [H + 1], actions [H], samples of the rewards [1 + N, H]."""
        ...

    def state(self) -> Any:
        """Return all data needed to continue later."""
        ...


class CompiledSession(Session, LiveSession, Protocol):
    """A compiled session of a problem both plays and observes."""
