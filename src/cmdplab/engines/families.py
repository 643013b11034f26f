"""The families of algorithms, and the functions that start a run of a family on an engine."""

from __future__ import annotations

from typing import Any

from cmdplab.algorithms.custom import Custom, StoredState, checked_learner
from cmdplab.algorithms.families import (
    planner_episode,
    primal_dual_episode,
    softmax_search,
    triple_q,
    unconstrained,
)
from cmdplab.algorithms.families.planner import Planner
from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.algorithms.families.safe import Safe
from cmdplab.algorithms.families.safe_episode import safe_family
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.running.session import CpuSession, Family
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.host import HostSession
from cmdplab.engines.protocol import LiveSession, Session
from cmdplab.errors import InputError
from cmdplab.types import Array

FAMILIES: dict[type[Row], Family] = {
    PrimalDual: primal_dual_episode.FAMILY,
    Planner: planner_episode.FAMILY,
    triple_q.TripleQ: triple_q.FAMILY,
    softmax_search.SoftmaxSearch: softmax_search.FAMILY,
    unconstrained.Optimist: unconstrained.FAMILY,
}


def family(row: Row) -> Family:
    """Return the family of a row. For `Safe`, wrap the family of the inner row."""
    return safe_family(family(row.row)) if isinstance(row, Safe) else FAMILIES[type(row)]


def state_of(row: Row) -> Any:
    """Return the class of a row's states. For a custom learner, return `StoredState`."""
    return StoredState if isinstance(row, Custom) else family(row).state


def policy_of(row: Row, task: Task, state: Any) -> Array:
    """Return the policy [H, X, A] that is played after a state."""
    if isinstance(row, Custom):
        return checked_learner(row, task).policy(state)
    return family(row).policy(row, task, state)


def _cpu(problem: CMDP | None, row: Row, task: Task, seed: int, state: Any) -> Any:
    if not isinstance(row, Custom):
        return CpuSession(family(row), problem, row, task, seed, state)
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
