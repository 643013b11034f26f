"""Functions that let algorithms learn in memory: one run, or many runs over all cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from cmdplab.algorithms import as_row
from cmdplab.algorithms.custom import Given
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Feedback
from cmdplab.checks import check_single, whole_number
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.choose import choose
from cmdplab.errors import InputError
from cmdplab.experiments.play import (
    Entry,
    Job,
    Memory,
    OnProgress,
    Playing,
    Run,
    check_counts,
    check_workers,
    play_one,
)
from cmdplab.solvers import Solution, solve_feasible
from cmdplab.types import Array

MOST_JOBS = 1_000_000


def run(
    problem: CMDP,
    algorithm: Given,
    episodes: int,
    seed: int = 0,
    *,
    engine: str = "cpu",
    precision: str = "float64",
    chunk: int | None = None,
    solution: Solution | None = None,
    baseline: Array | None = None,
    rewards: Feedback = "known",
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
) -> Run:
    """Let an algorithm learn a problem for a number of episodes. Measure every episode exactly.

    The algorithm is a row, a name, or a learner from outside (`algorithms.as_row`). Problem,
    algorithm and seed determine the numbers to the last bit.

    chunk : episodes between two calls of `on_progress`, about 0.2 s by default. It changes no
    number. solution : the certified optimum, if it is known. baseline : the safe policy [H, X, A]
    that some algorithms need, by default that of the problem. rewards : "bernoulli" if the learner
    sees reward samples of 0 or 1 instead of the mean rewards. stop : if this event is set, the run
    ends after the current chunk.
    """
    runs = run_many(
        problem,
        [Job(algorithm, seed)],
        episodes,
        engine=engine,
        precision=precision,
        chunk=chunk,
        solution=solution,
        baseline=baseline,
        rewards=rewards,
        on_progress=on_progress,
        stop=stop,
    )
    return runs[0]


def run_many(
    problem: CMDP,
    jobs: Sequence[Job],
    episodes: int,
    *,
    engine: str = "cpu",
    precision: str = "float64",
    workers: int | None = None,
    chunk: int | None = None,
    solution: Solution | None = None,
    baseline: Array | None = None,
    rewards: Feedback = "known",
    on_progress: OnProgress | None = None,
    on_message: Callable[[str], None] = lambda sentence: None,
    stop: threading.Event | None = None,
) -> list[Run]:
    """Play one run for each job, over all cores. Return the runs in the order of `jobs`.

    No result depends on the number of workers. Ctrl-C ends every run after its chunk. The engine
    "gpu" plays runs in batches, also in float32. The engine "auto" uses the GPU for long and many
    runs, and passes a sentence about its choice to `on_message`. See `run` for other arguments.
    """
    if not isinstance(jobs, Sequence) or not all(isinstance(job, Job) for job in jobs):
        raise InputError("the jobs are not a list of Job(algorithm, seed)")
    if not jobs:
        raise InputError("there is no run to be done")
    for job in jobs:
        check_counts(episodes, job.seed)
    check_workers(workers)
    if chunk is not None and chunk < 1:
        raise InputError(f"chunk is {chunk}, not a positive number of episodes")
    rows = [as_row(job.algorithm) for job in jobs]
    optimum = solution if solution is not None else solve_feasible(problem)
    of = {id(row): Entry.of(problem, row, 0, optimum, baseline, rewards) for row in rows}
    pairs = zip(rows, jobs, strict=True)
    entries = [of[id(row)]._replace(seed=job.seed) for row, job in pairs]
    return play(
        entries,
        episodes,
        engine,
        precision,
        workers=workers,
        chunk=chunk,
        on_progress=on_progress,
        on_message=on_message,
        stop=stop,
    )


def play(
    entries: Sequence[Entry],
    episodes: int,
    engine: str = "cpu",
    precision: str = "float64",
    *,
    workers: int | None = None,
    chunk: int | None = None,
    on_progress: OnProgress | None = None,
    on_message: Callable[[str], None] = lambda sentence: None,
    stop: threading.Event | None = None,
) -> list[Run]:
    """Play each entry on the GPU or on the cores, and return the runs in order.

    Runs that have not begun when `stop` is set may be missing. See `run_many` for the arguments.
    """
    stop, stores = stop or threading.Event(), [Memory() for _ in entries]

    def tell(playing: Playing) -> None:
        if on_progress:
            on_progress(playing.standing())

    on_gpu = [False] * len(entries)
    if engine in ("auto", "gpu"):
        cores = workers or os.cpu_count() or 1
        choice = choose(engine, [each.wanted(episodes, precision) for each in entries], cores)
        on_message(choice.sentence)
        engine, on_gpu = "cpu", choice.on_gpu
    else:
        check_single(precision)
    both = list(zip(entries, stores, strict=True))
    if any(on_gpu):
        from cmdplab.experiments.run_on_gpu import play_batches  # numba-cuda is an extra

        on_card = [each for each, there in zip(both, on_gpu, strict=True) if there]
        play_batches(on_card, episodes, precision, on_progress, stop.is_set)
    left = [each for each, there in zip(both, on_gpu, strict=True) if not there]
    if left and not (any(on_gpu) and stop.is_set()):
        how: Any = {"engine": engine, "chunk": chunk, "stopped": stop.is_set, "tell": tell}
        _over_threads(left, partial(play_one, episodes=episodes, **how), workers, stop)
    runs = [store.run for store in stores if store.run is not None]
    if not runs:
        raise InterruptedError("stopped before the first launch was done")
    return runs


def _over_threads(
    runs: Sequence[tuple[Entry, Memory]],
    one: Callable[[Entry, Memory], None],
    workers: int | None,
    stop: threading.Event,
) -> None:
    """Call `one` with each run, in threads. If one fails, stop all and raise its error."""
    if len(runs) == 1:
        one(*runs[0])
        return
    with ThreadPoolExecutor(max_workers=workers or os.cpu_count() or 1) as pool:
        futures = [pool.submit(one, *each) for each in runs]
        try:
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()  # raises the first error
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def jobs(algorithms: Iterable[Row], seeds: int) -> list[Job]:
    """Return a job for each algorithm on each of the seeds 0, ..., seeds - 1.

    On one seed all algorithms have the same random numbers.
    """
    whole_number("seeds", seeds, 1)
    algorithms = list(algorithms)
    if seeds * len(algorithms) > MOST_JOBS:
        raise InputError(f"{seeds} seeds of {len(algorithms)} algorithms are more than {MOST_JOBS}")
    return [Job(row, seed) for seed in range(seeds) for row in algorithms]
