"""The families of algorithms, and how a run of each is started on an engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from cmdplab.algorithms.custom import Checked, Custom, StoredState, checked_learner
from cmdplab.algorithms.learner import Learner
from cmdplab.algorithms.planner import Planner, PlannerState
from cmdplab.algorithms.primal_dual import PrimalDual, PrimalDualState
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.safe import Safe, safe_state
from cmdplab.algorithms.softmax_search import SoftmaxSearch, SoftmaxSearchState
from cmdplab.algorithms.task import Task
from cmdplab.algorithms.triple_q import TripleQ, TripleQState
from cmdplab.algorithms.unconstrained import Optimist, OptimistState
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.cpu.planner import PlannerSession
from cmdplab.engines.cpu.primal_dual import PrimalDualSession
from cmdplab.engines.cpu.safe import SafeSession
from cmdplab.engines.cpu.softmax_search.session import SoftmaxSearchSession
from cmdplab.engines.cpu.triple_q import TripleQSession
from cmdplab.engines.cpu.unconstrained.session import OptimistSession
from cmdplab.engines.host import HostSession
from cmdplab.engines.plain.planner import PlainPlanner
from cmdplab.engines.plain.primal_dual import PlainPrimalDual
from cmdplab.engines.plain.safe import SafeHostSession, plain_safe
from cmdplab.engines.plain.softmax_search import PlainSoftmaxSearch
from cmdplab.engines.plain.triple_q import PlainTripleQ
from cmdplab.engines.plain.unconstrained import PlainOptimist
from cmdplab.engines.protocol import CompiledSession, LiveSession, Session
from cmdplab.errors import InputError


class Family(NamedTuple):
    """How the rows of one kind are run."""

    state: Any  # the NamedTuple that a learner carries; of one from outside, what is stored of it
    plain: Callable[[Any, Task], Learner]  # readable, the oracle
    compiled: Callable[..., CompiledSession]  # of a problem, or of None: it can then only observe


def _host(problem: CMDP | None, row: Row, task: Task, seed: int, state: Any) -> HostSession:
    learner = family(row).plain(row, task)
    if state is not None and isinstance(learner, Checked):
        state = learner.restored(state)
    kind = SafeHostSession if row.tosses_coin else HostSession
    return kind(problem, learner, seed, state, task)


FAMILIES: dict[type[Row], Family] = {
    PrimalDual: Family(PrimalDualState, PlainPrimalDual, PrimalDualSession),
    Planner: Family(PlannerState, PlainPlanner, PlannerSession),
    TripleQ: Family(TripleQState, PlainTripleQ, TripleQSession),
    SoftmaxSearch: Family(SoftmaxSearchState, PlainSoftmaxSearch, SoftmaxSearchSession),
    Optimist: Family(OptimistState, PlainOptimist, OptimistSession),
    Custom: Family(StoredState, checked_learner, _host),
}


def family(row: Row) -> Family:
    """The family that a row belongs to; a coin makes one of the family inside."""
    if isinstance(row, Safe):
        inside = family(row.row)
        return Family(safe_state(inside.state), plain_safe(inside.plain), SafeSession)
    return FAMILIES[type(row)]


def _cpu(problem: CMDP, row: Row, task: Task, seed: int, state: Any) -> Session:
    return family(row).compiled(problem, row, task, seed, state)


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
    return ENGINES[engine](problem, algorithm, task, seed, state)


def live_session(algorithm: Row, task: Task, state: Any = None) -> LiveSession:
    """Start or continue learning, compiled, from episodes that are played elsewhere.

    The kernel is not known: `act` chooses actions, `observe` learns what came of them.
    """
    algorithm.check(task)
    return family(algorithm).compiled(None, algorithm, task, 0, state)
