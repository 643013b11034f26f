"""What an engine asks of a learner, and what the rest of the package asks of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from cmdplab.types import Array, Indices


class Episode(NamedTuple):
    """One trajectory: the last state is the one after the last action."""

    states: Indices  # [H + 1]
    actions: Indices  # [H]
    rewards: Array | None = None  # [1 + N, H], samples, for a learner that does not know the means


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
