"""What the package asks of an engine: sessions that play, and sessions that observe.

A file of its own: a caller can name a session without loading any engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cmdplab.algorithms.learner import Chunk
from cmdplab.types import Array, Indices


class Session(Protocol):
    """A run in progress on some engine."""

    def play(self, episodes: int) -> Chunk:
        """Play so many more episodes."""
        ...

    def state(self) -> Any:
        """Everything that is needed to go on later."""
        ...


class LiveSession(Protocol):
    """A learner that meets the world outside: it is asked for actions and told what happened."""

    def act(self, h: int, x: int, u: float) -> int:
        """The action of the policy played next, by inverse CDF of the uniform u."""
        ...

    def policy(self) -> Array:
        """[H, X, A], a copy of what is played next."""
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
        """Everything that is needed to go on later."""
        ...


class CompiledSession(Session, LiveSession, Protocol):
    """A compiled session of a problem both plays and observes."""
