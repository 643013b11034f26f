"""`run` and `run_many`: learners in memory, one run or many over all cores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cmdplab.algorithms import as_row
from cmdplab.algorithms.custom import Given
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Feedback
from cmdplab.checks import check_single, whole_number
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.experiments.play import (
    Job,
    OnProgress,
    Run,
    RunOptions,
    check_counts,
    over_threads,
    play_one,
)
from cmdplab.solvers import Solution
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
    """Let one algorithm learn one problem, and measure every episode exactly.

    An algorithm is a row, a name, or a learner from outside (`algorithms.as_row`).
    The same (problem, algorithm, seed) gives the same numbers to the last bit, whatever the chunk,
    which by default is what takes about 0.2 s. `solution` is the certified optimum, if it is known
    already; `baseline` [H, X, A] the safe policy of an algorithm that needs one, which by default
    comes from the problem. With `rewards="bernoulli"` the learner is not told the rewards, but sees
    a sample of 0 or 1 in every step. `on_progress` is called after every chunk; setting `stop` ends
    the run after the current one. On the engine gpu this is `run_many` with one run.
    """
    check_counts(episodes, seed)
    options = RunOptions(
        engine=engine,
        precision=precision,
        chunk=chunk,
        solution=solution,
        baseline=baseline,
        rewards=rewards,
        on_progress=on_progress,
        stop=stop,
    )
    return play(problem, [Job(algorithm, seed)], episodes, options)[0]


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
    """Many runs over the cores, in the order of `jobs`; no result depends on the number of workers.

    Ctrl-C ends every run after its chunk. On the engine gpu, and on auto where it is worth it, runs
    are a few launches (`run_on_gpu.run_many_with_gpu`): float32 is a choice there, and `on_message`
    is told what auto chose. What else there is to choose is as in `run`.
    """
    if not isinstance(jobs, Sequence) or not all(isinstance(job, Job) for job in jobs):
        raise InputError("the jobs are not a list of Job(algorithm, seed)")
    if not jobs:
        raise InputError("there is no run to be done")
    for job in jobs:
        check_counts(episodes, job.seed)
    options = RunOptions(
        engine=engine,
        precision=precision,
        workers=workers,
        chunk=chunk,
        solution=solution,
        baseline=baseline,
        rewards=rewards,
        on_progress=on_progress,
        on_message=on_message,
        stop=stop,
    )
    return play(problem, jobs, episodes, options)


def play(problem: CMDP, jobs: Sequence[Job], episodes: int, options: RunOptions) -> list[Run]:
    """Solve once, then play on the card or on the cores; a single run in this thread."""
    jobs = [Job(as_row(job.algorithm), job.seed) for job in jobs]
    options = replace(options, solution=options.optimum(problem))
    if options.engine in ("auto", "gpu"):
        from cmdplab.experiments.run_on_gpu import run_many_with_gpu  # numba-cuda is an extra

        return run_many_with_gpu(problem, jobs, episodes, options)
    check_single(options.precision)
    if len(jobs) == 1:
        return [play_one(problem, jobs[0], episodes, options)]
    return over_threads(problem, jobs, episodes, options)


def jobs(algorithms: Iterable[Row], seeds: int) -> list[Job]:
    """Every algorithm on the seeds 0, 1, ..., with common random numbers on each seed."""
    whole_number("seeds", seeds, 1)
    algorithms = list(algorithms)
    if seeds * len(algorithms) > MOST_JOBS:
        raise InputError(f"{seeds} seeds of {len(algorithms)} algorithms are more than {MOST_JOBS}")
    return [Job(row, seed) for seed in range(seeds) for row in algorithms]
