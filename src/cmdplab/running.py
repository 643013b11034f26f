"""Running learners: one run, or many over all cores."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from cmdplab.algorithms.primal_dual import PrimalDual, Task
from cmdplab.engines import session
from cmdplab.errors import InputError
from cmdplab.measures import Measures, Summary
from cmdplab.problem import CMDP, Array
from cmdplab.solvers import Solution, solve_feasible

CHUNK = 10_000  # episodes between two looks at progress: about 0.1 s at the paper's size

Progress = Callable[["Run"], None]


class Run(NamedTuple):
    """What a run has given so far."""

    algorithm: PrimalDual
    seed: int
    summary: Summary
    curves: dict[str, Array]  # columns over the grid of episodes; empty while the run goes on
    state: Any  # what the learner needs to go on; None while the run goes on
    seconds: float

    @property
    def us_per_episode(self) -> float:
        """Microseconds per episode, exact returns and measures included."""
        return 1e6 * self.seconds / self.summary.episodes


class Job(NamedTuple):
    """One run to be done."""

    algorithm: PrimalDual
    seed: int


def run(
    problem: CMDP,
    algorithm: PrimalDual,
    episodes: int,
    seed: int = 0,
    *,
    engine: str = "cpu",
    chunk: int = CHUNK,
    solution: Solution | None = None,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Run:
    """Let one algorithm learn one problem, and measure every episode exactly.

    The same (problem, algorithm, seed) gives the same numbers to the last bit, whatever the chunk.
    `solution` is the certified optimum, if it is known already. `progress` is called after every
    chunk; setting `stop` ends the run after the current one.
    """
    check_counts(episodes, seed)
    if chunk < 1:
        raise InputError(f"chunk is {chunk}, not a positive number of episodes")
    optimum = solution if solution is not None else solve_feasible(problem)
    if optimum.value is None:
        raise InputError(f"{problem.name} cannot be run: {optimum.message}")
    task = Task.of(problem, optimum.slack)
    playing = session(engine, problem, algorithm, task, seed)
    measures = Measures(optimum.value, problem.threshold)
    began, done = time.perf_counter(), 0
    while done < episodes and not (stop and stop.is_set()):
        size = min(chunk, episodes - done)
        measures.add(playing.play(size))
        done += size
        if progress:
            seconds = time.perf_counter() - began
            progress(Run(algorithm, seed, measures.summary(), {}, None, seconds))
    if not done:
        raise InterruptedError("stopped before the first chunk was done")
    seconds = time.perf_counter() - began
    curves = measures.curves()
    return Run(algorithm, seed, measures.summary(), curves, playing.state(), seconds)


def run_many(
    problem: CMDP,
    jobs: Sequence[Job],
    episodes: int,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> list[Run]:
    """Many runs over the cores, in the order of `jobs`; no result depends on the number of workers.

    Threads suffice: the compiled loops hold no lock. Ctrl-C ends every run after its chunk.
    """
    for job in jobs:
        check_counts(episodes, job.seed)
    solution = options.pop("solution", None) or solve_feasible(problem)
    stop = threading.Event()
    workers = workers or os.cpu_count() or 1

    def one(job: Job) -> Run:
        given = {"solution": solution, "progress": progress, "stop": stop, **options}
        return run(problem, job.algorithm, episodes, job.seed, **given)

    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            return list(pool.map(one, jobs))
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def jobs(algorithms: Iterable[PrimalDual], seeds: int) -> list[Job]:
    """Every algorithm on the seeds 0, 1, ..., with common random numbers on each seed."""
    if seeds < 1:
        raise InputError(f"seeds is {seeds}, not a positive number")
    return [Job(row, seed) for seed in range(seeds) for row in algorithms]


def check_counts(episodes: int, seed: int) -> None:
    """Refuse what cannot be run before anything is touched."""
    if episodes < 1:
        raise InputError(f"episodes is {episodes}, not a positive number")
    if seed < 0:
        raise InputError(f"seed is {seed}, not a number >= 0")
