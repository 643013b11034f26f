"""Engines: they own the loops and turn (problem, row, noise) into exact returns."""

from __future__ import annotations

from cmdplab.algorithms.primal_dual import PrimalDual, State, Task
from cmdplab.engines.cpu import CpuSession
from cmdplab.engines.host import HostSession
from cmdplab.engines.protocol import Session
from cmdplab.errors import InputError
from cmdplab.problem import CMDP

ENGINES: dict[str, type[CpuSession] | type[HostSession]] = {"cpu": CpuSession, "host": HostSession}


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
