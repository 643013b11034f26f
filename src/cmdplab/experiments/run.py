"""Running learners: one run, or many over all cores."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

from cmdplab.algorithms import as_row
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.custom import Given, packed
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Feedback
from cmdplab.checks import checked_episodes, is_whole
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.choose import check_single
from cmdplab.engines.families import family, session
from cmdplab.errors import InputError
from cmdplab.measures.measures import Measures, Summary
from cmdplab.solvers import Solution, solve_feasible
from cmdplab.types import Array

CHUNK_SECONDS = 0.2  # between two looks at progress: how long a stop may have to wait
MOST_JOBS = 1_000_000

FIRST_CHUNK = 16

Progress = Callable[["Run"], None]
Snapshot = dict[str, Array]


class Run(NamedTuple):
    """What a run has given so far."""

    algorithm: Row
    seed: int
    summary: Summary
    curves: dict[str, Array]  # columns over the grid of episodes; empty while the run goes on
    mistakes: dict[str, Array]  # columns over the grid of epsilon; empty while the run goes on
    state: Any  # what the learner needs to go on; None while the run goes on
    seconds: float

    @property
    def us_per_episode(self) -> float:
        """Microseconds per episode, exact returns and measures included."""
        return 1e6 * self.seconds / self.summary.episodes


class Job(NamedTuple):
    """One run to be done."""

    algorithm: Any  # what `run` takes: a row, a name, a learner from outside
    seed: int


class Reached(NamedTuple):
    """How far a run is: all of it but the problem."""

    algorithm: Row
    seed: int
    measures: Measures
    state: Any

    def so_far(self, seconds: float) -> Run:
        """What the run has given."""
        m = self.measures
        measured = (m.summary(), m.curves(), m.mistakes())
        return Run(self.algorithm, self.seed, *measured, self.state, seconds)

    def snapshot(self) -> Snapshot:
        """Everything, as arrays with names."""
        state = {f"state_{k}": v for k, v in packed(self.algorithm.name, self.state).items()}
        return state | {f"measure_{k}": v for k, v in self.measures.arrays().items()}


class Playing:
    """A run in progress: a session on an engine and its measures, advanced together.

    A snapshot holds all of it but the problem and the row; from it a run goes on to the last bit.
    """

    def __init__(
        self,
        problem: CMDP,
        algorithm: Row,
        seed: int,
        *,
        engine: str = "cpu",
        solution: Solution | None = None,
        baseline: Array | None = None,
        rewards: Feedback = "known",
        snapshot: Snapshot | None = None,
    ) -> None:
        optimum = solution if solution is not None else solve_feasible(problem)
        if optimum.value is None:
            raise InputError(f"{problem.name} cannot be run: {optimum.message}")
        task = task_for(algorithm, problem, optimum, baseline, rewards)
        state = None if snapshot is None else saved_state(algorithm, snapshot)
        self._row, self._seed = algorithm, seed
        self._session = session(engine, problem, algorithm, task, seed, state)
        known = (optimum.value, problem.threshold, problem.horizon)
        self._measures = Measures(*known)
        if snapshot is not None:
            self._measures = Measures.resumed(*known, saved_measures(snapshot))
        self.episodes = 0 if state is None else state.episode

    def advance(self, episodes: int) -> int:
        """Play so many more episodes; how many would have taken `CHUNK_SECONDS`."""
        began = time.perf_counter()
        self._measures.add(self._session.play(episodes))
        self.episodes += episodes
        took = max(time.perf_counter() - began, 1e-6)
        return max(1, min(4 * episodes, int(episodes * CHUNK_SECONDS / took)))

    def summary(self) -> Summary:
        """Where the run stands."""
        return self._measures.summary()

    def state(self) -> Any:
        """The learner's state."""
        return self._session.state()

    def reached(self) -> Reached:
        """All that the run has come to."""
        return Reached(self._row, self._seed, self._measures, self.state())

    def snapshot(self) -> Snapshot:
        """Everything, as arrays with names."""
        return self.reached().snapshot()


def saved_measures(snapshot: Snapshot) -> dict[str, Array]:
    """The arrays of the measures out of those of a snapshot."""
    mark = "measure_"
    return {k.removeprefix(mark): v for k, v in snapshot.items() if k.startswith(mark)}


def saved_state(row: Row, snapshot: Snapshot) -> Any:
    """The learner's state out of the arrays of a snapshot."""
    kind, mark = family(row).state, "state_"
    arrays = {k.removeprefix(mark): v for k, v in snapshot.items() if k.startswith(mark)}
    kept = getattr(kind, "_fields", arrays)  # newer fields may lack
    arrays = {name: arrays[name] for name in kept if name in arrays}
    return kind(**{name: each.item() if each.ndim == 0 else each for name, each in arrays.items()})


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
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Run:
    """Let one algorithm learn one problem, and measure every episode exactly.

    An algorithm is a row, a name, or a learner from outside (`algorithms.as_row`).
    The same (problem, algorithm, seed) gives the same numbers to the last bit, whatever the chunk,
    which by default is what takes about 0.2 s. `solution` is the certified optimum, if it is known
    already; `baseline` [H, X, A] the safe policy of an algorithm that needs one, which by default
    comes from the problem. With `rewards="bernoulli"` the learner is not told the rewards, but sees
    a sample of 0 or 1 in every step. `progress` is called after every chunk; setting `stop` ends
    the run after the current one. On the engine gpu this is `run_many` with one run.
    """
    check_counts(episodes, seed)
    row = as_row(algorithm)
    given: dict[str, Any] = {"solution": solution, "baseline": baseline, "rewards": rewards}
    if engine in ("auto", "gpu"):
        given |= {"engine": engine, "precision": precision, "progress": progress, "stop": stop}
        return run_many(problem, [Job(row, seed)], episodes, **given)[0]
    check_single(precision)
    if chunk is not None and chunk < 1:
        raise InputError(f"chunk is {chunk}, not a positive number of episodes")
    playing = Playing(problem, row, seed, engine=engine, **given)
    began = time.perf_counter()
    size = chunk or FIRST_CHUNK
    while playing.episodes < episodes and not (stop and stop.is_set()):
        size = playing.advance(min(size, episodes - playing.episodes))
        size = chunk or size
        if progress:
            seconds = time.perf_counter() - began
            progress(Run(row, seed, playing.summary(), {}, {}, None, seconds))
    if not playing.episodes:
        raise InterruptedError("stopped before the first chunk was done")
    seconds = time.perf_counter() - began
    return playing.reached().so_far(seconds)


def run_many(
    problem: CMDP,
    jobs: Sequence[Job],
    episodes: int,
    *,
    engine: str = "cpu",
    precision: str = "float64",
    workers: int | None = None,
    solution: Solution | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda sentence: None,
    **options: Any,
) -> list[Run]:
    """Many runs over the cores, in the order of `jobs`; no result depends on the number of workers.

    Ctrl-C ends every run after its chunk. On the engine gpu, and on auto where it is worth it, runs
    are a few launches (`running_on_gpu.run_many_with_gpu`): float32 is a choice there, and `say` is
    told what auto chose. Further options are those of `run`.
    """
    if not jobs:
        raise InputError("there is no run to be done")
    for job in jobs:
        check_counts(episodes, job.seed)
    jobs = [Job(as_row(job.algorithm), job.seed) for job in jobs]
    check_workers(workers)
    optimum = solution if solution is not None else solve_feasible(problem)
    given = {"workers": workers, "solution": optimum, "progress": progress, **options}
    if engine in ("auto", "gpu"):
        from cmdplab.experiments.run_on_gpu import run_many_with_gpu  # numba-cuda is an extra

        given |= {"precision": precision, "say": say}
        return run_many_with_gpu(problem, jobs, episodes, engine=engine, **given)
    check_single(precision)
    return over_threads(problem, jobs, episodes, engine=engine, **given)


def over_threads(
    problem: CMDP,
    jobs: Sequence[Job],
    episodes: int,
    workers: int | None,
    solution: Solution,
    progress: Progress | None,
    stop: threading.Event | None = None,
    **options: Any,
) -> list[Run]:
    """A thread a run: that suffices, since the compiled loops hold no lock."""
    stop = stop or threading.Event()

    def one(job: Job) -> Run:
        given = {"solution": solution, "progress": progress, "stop": stop, **options}
        return run(problem, job.algorithm, episodes, job.seed, **given)

    with ThreadPoolExecutor(max_workers=workers or os.cpu_count() or 1) as pool:
        futures = [pool.submit(one, job) for job in jobs]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()  # raises what the first failure raised
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
        return [future.result() for future in futures]


def jobs(algorithms: Iterable[Row], seeds: int) -> list[Job]:
    """Every algorithm on the seeds 0, 1, ..., with common random numbers on each seed."""
    if seeds < 1:
        raise InputError(f"seeds is {seeds}, not a positive number")
    algorithms = list(algorithms)
    if seeds * len(algorithms) > MOST_JOBS:
        raise InputError(f"{seeds} seeds of {len(algorithms)} algorithms are more than {MOST_JOBS}")
    return [Job(row, seed) for seed in range(seeds) for row in algorithms]


def check_workers(workers: int | None) -> None:
    """None means one per core."""
    if workers is not None and workers < 1:
        raise InputError(f"workers is {workers}, not a positive number")


def check_counts(episodes: int, seed: int) -> None:
    """Refuse what cannot be run before anything is touched."""
    checked_episodes(episodes)
    if not is_whole(seed) or not 0 <= seed < 1 << 63:
        raise InputError(f"seed is {seed}, not a number >= 0 and below 2^63")
