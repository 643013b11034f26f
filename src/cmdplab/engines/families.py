"""The engines by name, and the functions that start a run of a row on an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cmdplab.algorithms.custom import Custom, StoredState, checked_learner
from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.running.session import CpuSession
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.host import HostSession
from cmdplab.errors import InputError
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


def state_of(row: Row) -> Any:
    """Return the class of a row's states. For a custom learner, return `StoredState`."""
    return StoredState if isinstance(row, Custom) else row.family.state


def policy_of(row: Row, task: Task, state: Any) -> Array:
    """Return the policy [H, X, A] that is played after a state."""
    if isinstance(row, Custom):
        return checked_learner(row, task).policy(state)
    policy: Array = row.family.policy(row, task, state)
    return policy


def _cpu(problem: CMDP | None, row: Row, task: Task, seed: int, state: Any) -> Any:
    if not isinstance(row, Custom):
        return CpuSession(problem, row, task, seed, state)
    learner = checked_learner(row, task)
    state = state if state is None else learner.restored(state)
    return HostSession(problem, learner, seed, state, task)


def _host(problem: CMDP | None, row: Row, task: Task, seed: int, state: Any) -> Any:
    if not isinstance(row, Custom):
        raise InputError(
            f"the engine host plays learners from outside; CMDPLAB_INTERPRETED=1 runs the loops of "
            f"{row.name} in Python"
        )
    return _cpu(problem, row, task, seed, state)


def _gpu(problem: CMDP, row: Row, task: Task, seed: int, state: Any) -> Session:
    from cmdplab.engines.gpu.batch import GpuSession  # numba-cuda is an extra

    return GpuSession(problem, row, task, seed, state)


ENGINES = {"cpu": _cpu, "host": _host, "gpu": _gpu}


def session(
    engine: str, problem: CMDP, algorithm: Row, task: Task, seed: int, state: Any = None
) -> Session:
    """Start or continue a run on the engine of that name."""
    if engine not in [*ENGINES]:
        raise InputError(f"unknown engine {engine!r}: choose one of {', '.join(ENGINES)}")
    algorithm.check(task)
    begun: Session = ENGINES[engine](problem, algorithm, task, seed, state)
    return begun


def live_session(algorithm: Row, task: Task, state: Any = None) -> LiveSession:
    """Start or continue learning from episodes that are played elsewhere.

    The kernel is unknown: `act` chooses actions, and `observe` learns from the resulting episode.
    """
    algorithm.check(task)
    learning: LiveSession = _cpu(None, algorithm, task, 0, state)
    return learning
