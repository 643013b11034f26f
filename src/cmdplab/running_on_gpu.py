"""Many runs at once on a GPU: what `run_many` does with threads, as a few launches."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from cmdplab.algorithms.task import Feedback, Task
from cmdplab.baselines import task_for
from cmdplab.engines.gpu import GpuBatch
from cmdplab.engines.gpu_limits import batches, check_precision, check_row, chunk_size
from cmdplab.engines.gpu_measures import CardMeasures
from cmdplab.engines.gpu_setup import needed
from cmdplab.errors import InputError
from cmdplab.problem import CMDP, Array
from cmdplab.running import Job, Run, check_counts
from cmdplab.solvers import Solution, solve_feasible


def run_many_on_gpu(
    problem: CMDP,
    jobs: Sequence[Job],
    episodes: int,
    *,
    solution: Solution | None = None,
    baseline: Array | None = None,
    rewards: Feedback = "known",
    precision: str = "float64",
    tolerance: float | None = None,
    stop: threading.Event | None = None,
) -> list[Run]:
    """All runs side by side, in the order of `jobs`, in as many batches as the card asks for.

    The numbers are those of the engine cpu, up to rounding. `seconds` of a run is what its batch
    took. Setting `stop` ends the batch after the current launch; runs that never began are left
    out. `tolerance` is what the caller needs of gaps and violations: float32 may not give it.
    """
    needed()
    check_precision(precision, tolerance)
    for job in jobs:
        check_counts(episodes, job.seed)
    optimum = solution if solution is not None else solve_feasible(problem)
    if optimum.value is None:
        raise InputError(f"{problem.name} cannot be run: {optimum.message}")
    tasks: dict[int, Task] = {}
    for job in jobs:
        if id(job.algorithm) not in tasks:
            told = task_for(job.algorithm, problem, optimum, baseline, rewards)
            check_row(job.algorithm, told, precision)
            tasks[id(job.algorithm)] = told

    runs: list[Run] = []
    for part in batches(jobs[0].algorithm, next(iter(tasks.values())), precision, len(jobs), 1):
        if stop is None or not stop.is_set():
            told_part = [tasks[id(job.algorithm)] for job in jobs[part]]
            runs += _batch(problem, jobs[part], told_part, episodes, optimum.value, precision, stop)
    if not runs:
        raise InterruptedError("stopped before the first launch was done")
    return runs


def _batch(
    problem: CMDP,
    jobs: Sequence[Job],
    tasks: Sequence[Task],
    episodes: int,
    optimum: float,
    precision: str,
    stop: threading.Event | None,
) -> list[Run]:
    """One batch to its end, or to a stop."""
    rows = [job.algorithm for job in jobs]
    seeds = [job.seed for job in jobs]
    count = len(jobs)
    batch = GpuBatch([problem] * count, rows, tasks, seeds, precision=precision)
    began, done = time.perf_counter(), 0
    measures: CardMeasures | None = None
    while done < episodes and not (done and stop and stop.is_set()):
        size = min(chunk_size(count), episodes - done)
        measures = batch.measure([optimum] * count, size, measures)
        done += size
    assert measures is not None
    judged = measures.measures()
    seconds = time.perf_counter() - began
    return [
        Run(job.algorithm, job.seed, m.summary(), m.curves(), m.mistakes(), batch.state(b), seconds)
        for b, (job, m) in enumerate(zip(jobs, judged, strict=True))
    ]
