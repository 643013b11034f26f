"""A run while it is played, and what it has given: the parts of `run`, `run_many` and of sweeps."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, NamedTuple, Protocol

import numpy as np

from cmdplab import display
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.custom import packed
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Feedback, Task
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


class Entry(NamedTuple):
    """One run to be played, with all that it needs: who makes an entry hands it on."""

    problem: CMDP
    algorithm: Row
    task: Task
    seed: int
    optimum: float

    @classmethod
    def of(
        cls,
        problem: CMDP,
        row: Row,
        seed: int,
        solution: Solution | None = None,
        baseline: Array | None = None,
        rewards: Feedback = "known",
    ) -> Entry:
        """Return the run of a row; the problem is solved here if no solution is given."""
        optimum = solution if solution is not None else solve_feasible(problem)
        if optimum.value is None:
            raise InputError(f"{problem.name} cannot be run: {optimum.message}")
        task = task_for(row, problem, optimum, baseline, rewards)
        return cls(problem, row, task, seed, optimum.value)


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

    A snapshot holds all of it but the entry; from it a run goes on to the last bit.
    """

    def __init__(self, entry: Entry, engine: str = "cpu", snapshot: Snapshot | None = None) -> None:
        problem, row, task, seed, optimum = self._entry = entry
        state = None if snapshot is None else saved_state(row, snapshot)
        self._session = session(engine, problem, row, task, seed, state)
        known = (optimum, problem.threshold, problem.horizon)
        self._measures = Measures(*known, row.tosses_coin)
        if snapshot is not None:
            self._measures = Measures.resumed(*known, saved_measures(snapshot))
        self.episodes = 0 if state is None else state.episode
        self.chunk = FIRST_CHUNK  # episodes until the next look, which take about `CHUNK_SECONDS`
        self.began = time.perf_counter()

    def advance(self, episodes: int) -> None:
        """Play so many more episodes."""
        began = time.perf_counter()
        self._measures.add(self._session.play(episodes))
        self.episodes += episodes
        took = max(time.perf_counter() - began, 1e-6)
        self.chunk = max(1, min(4 * episodes, int(episodes * CHUNK_SECONDS / took)))

    def standing(self) -> Run:
        """Return the run so far, without its curves and its state."""
        seconds = time.perf_counter() - self.began
        row, seed = self._entry.algorithm, self._entry.seed
        return Run(row, seed, self._measures.summary(), {}, {}, None, seconds)

    def reached(self) -> Reached:
        """Return all that the run has come to."""
        row, seed = self._entry.algorithm, self._entry.seed
        return Reached(row, seed, self._measures, self._session.state())


class Advancing(Protocol):
    """A run or a batch of runs in progress."""

    episodes: int
    chunk: int

    def advance(self, episodes: int) -> None:
        """Play so many more episodes."""


def play_on(
    playing: Advancing,
    episodes: float,
    stopped: Callable[[], bool],
    after: Callable[[], None],
    chunk: int | None = None,
) -> None:
    """Play up to so many episodes or until a stop, and call `after` between two chunks."""
    while playing.episodes < episodes and not stopped():
        playing.advance(int(min(chunk or playing.chunk, episodes - playing.episodes)))
        after()


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


def play_one(
    entry: Entry,
    episodes: int,
    engine: str,
    chunk: int | None,
    on_progress: OnProgress | None,
    stopped: Callable[[], bool],
) -> Run:
    """Play one run in memory, to its end or to a stop."""
    playing = Playing(entry, engine)

    def after() -> None:
        if on_progress:
            on_progress(playing.standing())

    play_on(playing, episodes, stopped, after, chunk)
    if not playing.episodes:
        raise InterruptedError("stopped before the first chunk was done")
    return playing.reached().so_far(time.perf_counter() - playing.began)


def over_threads(
    entries: Sequence[Entry],
    one: Callable[[Entry], Run],
    workers: int | None,
    stop: threading.Event,
) -> list[Run]:
    """Play each run in a thread: that suffices, since the compiled loops hold no lock."""
    with ThreadPoolExecutor(max_workers=workers or os.cpu_count() or 1) as pool:
        futures = [pool.submit(one, entry) for entry in entries]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()  # raises what the first failure raised
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
        return [future.result() for future in futures]
