"""A run while it is played, and what it has given: the parts of `run`, `run_many` and of sweeps."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cmdplab import display
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.custom import packed
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Feedback
from cmdplab.checks import checked_episodes, is_whole
from cmdplab.cmdp.policy import Policy
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import family, session
from cmdplab.errors import InputError
from cmdplab.measures.measures import Measures, Summary
from cmdplab.solvers import Solution, solve_feasible
from cmdplab.types import Array, frozen

CHUNK_SECONDS = 0.2  # between two looks at progress: how long a stop may have to wait
FIRST_CHUNK = 16

OnProgress = Callable[["Run"], None]
Snapshot = dict[str, Array]


@display.shown
@frozen
class Run(NamedTuple):
    """What a run has given so far."""

    algorithm: Row
    seed: int
    summary: Summary
    curves: dict[str, Array]  # columns over the grid of episodes; empty while the run goes on
    mistakes: dict[str, Array]  # columns over the grid of epsilon; empty while the run goes on
    state: Any  # what the learner needs to go on; None while the run goes on
    seconds: float

    def _facts(self) -> tuple[str, display.Facts]:
        s = self.summary
        facts = [
            ("seed", str(self.seed)),
            ("episodes", f"{s.episodes:,}"),
            ("final gap", display.number(s.final_gap)),
            ("final violation", display.number(s.final_violation)),
            ("strong regret", display.number(s.strong_regret)),
            ("strong violation regret", display.number(s.strong_violation_regret)),
            ("curves", display.count(len(self.curves.get("episode", ())), "point")),
            ("seconds", display.number(self.seconds)),
        ]
        row = self.algorithm
        return f"Run of {display.name(f'{row.name} ({row.preset})')}", facts

    @property
    def us_per_episode(self) -> float:
        """Microseconds per episode, exact returns and measures included."""
        return 1e6 * self.seconds / self.summary.episodes

    def policy(self, problem: CMDP, solution: Solution | None = None) -> Policy:
        """The policy after the last episode, with the labels of the problem that was learnt.

        `solution` is the certified optimum, where it is known: what some learners are told of it.
        """
        if self.state is None:
            raise InputError("the run goes on: it has a policy to give when it has ended")
        row = self.algorithm
        task = task_for(row, problem, solution or solve_feasible(problem))
        array = np.array(family(row).plain(row, task).policy(self.state), dtype=np.float64)
        if array.shape != problem.reward.shape[1:]:
            raise InputError(f"this run learnt another problem: its policy is {array.shape}")
        array /= array.sum(axis=-1, keepdims=True)  # sums of a card's float32 are off by 1e-7
        return Policy(array, problem.labels, f"{row.name}, seed {self.seed}")


class Job(NamedTuple):
    """One run to be done."""

    algorithm: Any  # what `run` takes: a row, a name, a learner from outside
    seed: int


def check_workers(workers: int | None) -> None:
    """None means one per core."""
    if workers is not None and workers < 1:
        raise InputError(f"workers is {workers}, not a positive number")


def check_counts(episodes: int, seed: int) -> None:
    """Refuse what cannot be run before anything is touched."""
    checked_episodes(episodes)
    if not is_whole(seed) or not 0 <= seed < 1 << 63:
        raise InputError(f"seed is {seed}, not a number >= 0 and below 2^63")


@dataclass(frozen=True)
class RunOptions:
    """How runs are played, beside what is run: what `run` and `run_many` take by keyword."""

    engine: str = "cpu"
    precision: str = "float64"
    workers: int | None = None  # None: one per core
    chunk: int | None = None  # episodes between two looks; None: what takes about 0.2 s
    solution: Solution | None = None  # the certified optimum, where it is known already
    baseline: Array | None = None  # [H, X, A], where it is not the default one
    rewards: Feedback = "known"
    on_progress: OnProgress | None = None
    on_message: Callable[[str], None] = lambda sentence: None
    stop: threading.Event | None = None

    def __post_init__(self) -> None:
        check_workers(self.workers)
        if self.chunk is not None and self.chunk < 1:
            raise InputError(f"chunk is {self.chunk}, not a positive number of episodes")

    def optimum(self, problem: CMDP) -> Solution:
        """The solution that is known, or found now."""
        return self.solution if self.solution is not None else solve_feasible(problem)

    @property
    def stopped(self) -> bool:
        """Whether the runs are to end."""
        return self.stop is not None and self.stop.is_set()


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
        options: RunOptions = RunOptions(),
        snapshot: Snapshot | None = None,
    ) -> None:
        optimum = options.optimum(problem)
        if optimum.value is None:
            raise InputError(f"{problem.name} cannot be run: {optimum.message}")
        task = task_for(algorithm, problem, optimum, options.baseline, options.rewards)
        state = None if snapshot is None else saved_state(algorithm, snapshot)
        self._row, self._seed = algorithm, seed
        self._session = session(options.engine, problem, algorithm, task, seed, state)
        known = (optimum.value, problem.threshold, problem.horizon)
        self._measures = Measures(*known, algorithm.tosses_coin)
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
        return Reached(self._row, self._seed, self._measures, self._session.state())

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


def play_one(problem: CMDP, job: Job, episodes: int, options: RunOptions) -> Run:
    """One run on the cores, to its end or to a stop."""
    playing = Playing(problem, *job, options)
    began = time.perf_counter()
    size = options.chunk or FIRST_CHUNK
    while playing.episodes < episodes and not options.stopped:
        size = playing.advance(min(size, episodes - playing.episodes))
        size = options.chunk or size
        if options.on_progress:
            seconds = time.perf_counter() - began
            options.on_progress(Run(*job, playing.summary(), {}, {}, None, seconds))
    if not playing.episodes:
        raise InterruptedError("stopped before the first chunk was done")
    return playing.reached().so_far(time.perf_counter() - began)


def over_threads(
    problem: CMDP, jobs: Sequence[Job], episodes: int, options: RunOptions
) -> list[Run]:
    """A thread a run: that suffices, since the compiled loops hold no lock."""
    stop = options.stop or threading.Event()
    options = replace(options, stop=stop)
    with ThreadPoolExecutor(max_workers=options.workers or os.cpu_count() or 1) as pool:
        futures = [pool.submit(play_one, problem, job, episodes, options) for job in jobs]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()  # raises what the first failure raised
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
        return [future.result() for future in futures]
