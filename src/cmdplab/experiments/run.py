"""`run` and `run_many`: learners in memory, one run or many over all cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence

from cmdplab.algorithms import as_row
from cmdplab.algorithms.custom import Given
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Feedback
from cmdplab.checks import check_single, whole_number
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.choose import Wanted, choose
from cmdplab.errors import InputError
from cmdplab.experiments.play import (
    Entry,
    Job,
    OnProgress,
    Run,
    check_counts,
    check_workers,
    over_threads,
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
    """Let one algorithm learn one problem, and measure every episode exactly.

    An algorithm is a row, a name, or a learner from outside (`algorithms.as_row`).
    The same (problem, algorithm, seed) gives the same numbers to the last bit, whatever the chunk,
    which by default is what takes about 0.2 s. `solution` is the certified optimum, if it is known
    already; `baseline` [H, X, A] the safe policy of an algorithm that needs one, which by default
    comes from the problem. With `rewards="bernoulli"` the learner is not told the rewards, but sees
    a sample of 0 or 1 in every step. `on_progress` is called after every chunk; setting `stop` ends
    the run after the current one. On the engine gpu this is `run_many` with one run.
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
    """Play on the card or on the cores; a single run in this thread."""
    stop = stop or threading.Event()

    on_card = engine in ("auto", "gpu")

    def one(entry: Entry) -> Run:
        place = "cpu" if on_card else engine
        return play_one(entry, episodes, place, chunk, on_progress, stop.is_set)

    def on_cores(these: Sequence[Entry]) -> list[Run]:
        return over_threads(these, one, workers, stop)

    if on_card:
        from cmdplab.experiments import run_on_gpu  # numba-cuda is an extra

        cores = workers or os.cpu_count() or 1
        wanted = [
            Wanted(each.problem, each.algorithm, each.task, episodes, precision) for each in entries
        ]
        choice = choose(engine, wanted, cores)
        on_message(choice.sentence)
        return run_on_gpu.run_many_with_gpu(
            entries, episodes, precision, choice.on_gpu, on_cores, on_progress, stop.is_set
        )
    check_single(precision)
    return [one(entries[0])] if len(entries) == 1 else on_cores(entries)


def jobs(algorithms: Iterable[Row], seeds: int) -> list[Job]:
    """Every algorithm on the seeds 0, 1, ..., with common random numbers on each seed."""
    whole_number("seeds", seeds, 1)
    algorithms = list(algorithms)
    if seeds * len(algorithms) > MOST_JOBS:
        raise InputError(f"{seeds} seeds of {len(algorithms)} algorithms are more than {MOST_JOBS}")
    return [Job(row, seed) for seed in range(seeds) for row in algorithms]
