"""Engines: they own the loops and turn (problem, row, noise) into exact returns."""

from __future__ import annotations

from collections.abc import Callable

from cmdplab.algorithms.primal_dual import PrimalDual, State
from cmdplab.algorithms.task import Task
from cmdplab.engines.cpu import CpuSession
from cmdplab.engines.host import HostSession
from cmdplab.engines.plain import PlainPrimalDual
from cmdplab.engines.protocol import Session
from cmdplab.errors import InputError
from cmdplab.problem import CMDP

Start = Callable[[CMDP, PrimalDual, Task, int, State | None], Session]


def _host(
    problem: CMDP, algorithm: PrimalDual, task: Task, seed: int, state: State | None
) -> Session:
    return HostSession(problem, PlainPrimalDual(algorithm, task), seed, state)


ENGINES: dict[str, Start] = {"cpu": CpuSession, "host": _host}


def session(
    engine: str,
    problem: CMDP,
    algorithm: PrimalDual,
    task: Task,
    seed: int,
    state: State | None = None,
) -> Session:
    """Start or continue a run on the engine of that name."""
    if engine not in ENGINES:
        raise InputError(f"unknown engine {engine!r}: choose one of {', '.join(ENGINES)}")
    return ENGINES[engine](problem, algorithm, task, seed, state)
