"""Choice of the runs that the GPU plays: all, none, or the runs whose work is worth it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Task
from cmdplab.checks import check_single
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import EngineError, InputError

CHOICES = ("auto", "cpu", "gpu")

# Measured on an H200 and the 16 cores beside it (benchmarks/gpu.md): 3 to 6 runs a core are where
# the card overtakes the cores, for X of 5 to 30, and 1 for X = 100. A start takes six seconds, and
# some ten more where the kernels of a size must be compiled.
RUNS_A_CORE = 8
WORTH_SECONDS = 30.0
# Of the engine cpu: an episode takes 2.8 us at X, A, H = 3, 2, 6, 4.1 at 10, 2, 10, 8 at 30, 3, 10.
_STEP_SECONDS = 0.3e-6
_TRANSITION_SECONDS = 0.2e-9  # for each of the H X^2 A transitions


class Wanted(NamedTuple):
    """A run to be played."""

    problem: CMDP
    algorithm: Row
    task: Task
    episodes: float  # left to be played
    precision: str = "float64"


class Choice(NamedTuple):
    """The engine of each run, and one sentence about the choice."""

    on_gpu: list[bool]
    sentence: str


def choose(engine: str, runs: Sequence[Wanted], cores: int) -> Choice:
    """Choose the engine of each run.

    `gpu` raises an error for an unsupported run. `auto` leaves unsupported and small runs to the
    CPU. Runs in float32 go to the GPU or raise an error.
    """
    if engine == "cpu":
        for each in runs:
            check_single(each.precision)
        return Choice([False] * len(runs), "")
    if engine not in CHOICES:
        raise InputError(f"unknown engine {engine!r}: choose one of {', '.join(CHOICES)}")
    from cmdplab.engines.gpu.device import missing, needed

    bound = [engine == "gpu" or each.precision != "float64" for each in runs]
    if any(bound):
        needed()
        kinds = {_kind(each): each for each, must in zip(runs, bound, strict=True) if must}
        rows = {each.algorithm: each for each, must in zip(runs, bound, strict=True) if must}
        for each in (*kinds.values(), *rows.values()):
            _check(each)
    if all(bound):
        return Choice(bound, "")
    if missing():
        return Choice(bound, f"engine cpu: {missing()}")
    worth = _worth(runs, cores)
    on_gpu = [must or _kind(each) in worth for each, must in zip(runs, bound, strict=True)]
    return Choice(on_gpu, _sentence(runs, on_gpu))


def _kind(run: Wanted) -> tuple[object, ...]:
    """Return the key that is equal for all runs of one launch."""
    listed = isinstance(run.problem.transition, Sparse)
    sizes = (run.task.reward.shape, run.episodes)
    told = (run.task.observed, run.task.kernel is not None)
    return type(run.algorithm), *sizes, *told, listed, run.precision


def _has(run: Wanted) -> bool:
    """Return True if the GPU engine supports the run."""
    try:
        _check(run)
    except (InputError, EngineError):
        return False
    return True


def _check(run: Wanted) -> None:
    from cmdplab.engines.gpu.limits import check_run

    check_run(*run)


def _worth(runs: Sequence[Wanted], cores: int) -> set[tuple[object, ...]]:
    """Return the kinds of runs to play on the GPU.

    A kind needs GPU support, enough runs, and a long enough estimated CPU time.
    """
    counts = Counter(_kind(each) for each in runs)
    worth = set()
    for each in {_kind(run): run for run in runs}.values():
        _, H, X, A = each.task.reward.shape
        many = counts[_kind(each)]
        episode = H * (_STEP_SECONDS + X * X * A * _TRANSITION_SECONDS)
        seconds = many * each.episodes * episode / cores
        if many >= RUNS_A_CORE * cores and seconds >= WORTH_SECONDS and _has(each):
            worth.add(_kind(each))
    return worth


def _sentence(runs: Sequence[Wanted], on_gpu: Sequence[bool]) -> str:
    there = sum(on_gpu)
    if there == len(runs):
        return f"engine gpu: {there} runs"
    if not there:
        return "engine cpu: for the GPU this is too little work, or none that it has"
    names = {run.algorithm.name for run, taken in zip(runs, on_gpu, strict=True) if not taken}
    left = ", ".join(sorted(names))
    return f"engine gpu: {there} runs; engine cpu: {len(runs) - there} ({left})"
