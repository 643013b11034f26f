"""One run: its input, the loop that plays it, and its result.

A row is an algorithm with its settings. An entry is the whole input of a run. A store keeps the
results: `Memory` in this module, or a folder (`durable.Recorded`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
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
from cmdplab.engines.choose import Wanted
from cmdplab.engines.families import policy_of, session, state_of
from cmdplab.errors import InputError, shown
from cmdplab.measures.measures import Measures, Summary
from cmdplab.measures.verdict import verdict
from cmdplab.solvers import Solution, solve_feasible
from cmdplab.types import Array, frozen

CHUNK_SECONDS = 0.2  # between two looks at progress: a stop waits at most that long
FIRST_CHUNK = 16

OnProgress = Callable[["Run"], None]
Snapshot = dict[str, Array]


@display.shown
@frozen
class Run(NamedTuple):
    """Result of a run, or its present numbers while it goes on."""

    algorithm: Row
    seed: int
    summary: Summary
    curves: dict[str, Array]  # columns over the grid of episodes; empty while the run goes on
    mistakes: dict[str, Array]  # columns over the grid of epsilon; empty while the run goes on
    state: Any  # state of the learner; None while the run goes on
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
        if self.curves:
            facts.insert(4, ("verdict", verdict(self.curves, 1).words))
            facts.append(("try", ".policy(problem), .curves, cmdplab.figures.figure(run, 'gap')"))
        row = self.algorithm
        return f"Run of {display.name(f'{row.name} ({row.preset})')}", facts

    @property
    def us_per_episode(self) -> float:
        """Microseconds per episode, including exact returns and measures."""
        return 1e6 * self.seconds / self.summary.episodes

    def policy(self, problem: CMDP, solution: Solution | None = None) -> Policy:
        """Return the policy after the last episode, with the labels of the problem.

        solution : the certified optimum of the problem. None: the problem is solved here.
        """
        if self.state is None:
            raise InputError("the run goes on: it has a policy to give when it has ended")
        row = self.algorithm
        task = task_for(row, problem, solution or solve_feasible(problem))
        array = np.array(policy_of(row, task, self.state), dtype=np.float64)
        if array.shape != problem.reward.shape[1:]:
            raise InputError(f"this run learnt another problem: its policy is {array.shape}")
        array /= array.sum(axis=-1, keepdims=True)  # float32 sums of a GPU are off by 1e-7
        return Policy(array, problem.labels, f"{row.name}, seed {self.seed}")


class Job(NamedTuple):
    """One run of `run_many`: an algorithm and a seed."""

    algorithm: Any  # a row, a name, or a learner from outside
    seed: int


def check_workers(workers: int | None) -> None:
    """Raise an `InputError` if `workers` is below 1. None means one worker per core."""
    if workers is not None and workers < 1:
        raise InputError(f"workers is {workers}, not a positive number")


def check_counts(episodes: int, seed: int) -> None:
    """Raise an `InputError` for an invalid number of episodes, or a seed outside [0, 2^63)."""
    checked_episodes(episodes)
    if not is_whole(seed) or not 0 <= seed < 1 << 63:
        raise InputError(f"seed is {shown(seed)}, not a number >= 0 and below 2^63")


class Entry(NamedTuple):
    """Input of one run: problem, row of the algorithm, learner's task, seed and optimal value."""

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
        """Return the entry of a run. The problem is solved here if `solution` is None.

        baseline : the safe policy [H, X, A] of an algorithm that needs one. rewards : "known", or
        "bernoulli" if the learner sees samples only.
        """
        optimum = solution if solution is not None else solve_feasible(problem)
        if optimum.value is None:
            raise InputError(f"{problem.name} cannot be run: {optimum.message}")
        task = task_for(row, problem, optimum, baseline, rewards)
        return cls(problem, row, task, seed, optimum.value)

    def wanted(self, episodes: float | None, precision: str | None) -> Wanted:
        """Return the run as input of `choose`. None: unlimited episodes, or precision float64."""
        left = math.inf if episodes is None else float(episodes)
        return Wanted(self.problem, self.algorithm, self.task, left, precision or "float64")


class Reached(NamedTuple):
    """State and measures of a run at one episode, which its store saves."""

    algorithm: Row
    seed: int
    measures: Measures
    state: Any

    def result(self, seconds: float) -> Run:
        """Return the result of the run, with curves and state. seconds : its playing time."""
        m = self.measures
        measured = (m.summary(), m.curves(), m.mistakes())
        return Run(self.algorithm, self.seed, *measured, self.state, seconds)

    def snapshot(self) -> Snapshot:
        """Return state and measures as arrays by name."""
        state = {f"state_{k}": v for k, v in packed(self.algorithm.name, self.state).items()}
        return state | {f"measure_{k}": v for k, v in self.measures.arrays().items()}


class Store(Protocol):
    """Keeper of the state and the results of a run."""

    snapshot: Snapshot | None  # the run resumes from it

    def save(self, reached: Reached, seconds: float) -> None:
        """Save a run in progress. seconds : its playing time so far."""

    def close(self, reached: Reached | None, seconds: float) -> None:
        """Save a finished or stopped run. `reached` is None if it has played no episode."""

    def fail(self, error: Exception) -> None:
        """Save the error that ended the run."""


class Memory:
    """Store of a run in memory. The attribute `run` holds the result."""

    snapshot: Snapshot | None = None
    run: Run | None = None

    def save(self, reached: Reached, seconds: float) -> None:
        """Do nothing, since a run in memory ends with its process."""

    def close(self, reached: Reached | None, seconds: float) -> None:
        if reached is None:
            raise InterruptedError("stopped before the first chunk was done")
        self.run = reached.result(seconds)

    def fail(self, error: Exception) -> None:
        raise error


class Playing:
    """Run in progress: a session of an engine and the measures of its episodes.

    A snapshot holds the state and the measures. A run resumed from it gives the same bits as the
    uninterrupted run.
    """

    def __init__(self, entry: Entry, engine: str = "cpu", snapshot: Snapshot | None = None) -> None:
        problem, row, task, seed, optimum = self._entry = entry
        state = None if snapshot is None else saved_state(row, snapshot)
        self._session = session(engine, problem, row, task, seed, state)
        known = (optimum, problem.threshold, problem.horizon)
        self._measures = Measures(*known, row.tosses_coin)
        if snapshot is not None:
            self._measures = Measures.resumed(*known, part(snapshot, "measure_"))
        self.episodes = self.first = 0 if state is None else state.episode
        self.chunk = FIRST_CHUNK  # episodes until the next look, which take about `CHUNK_SECONDS`
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the run was begun or resumed."""
        return time.perf_counter() - self._began

    def advance(self, episodes: int) -> None:
        """Play `episodes` more episodes and measure them. Adapt the size of the next chunk."""
        began = time.perf_counter()
        self._measures.add(self._session.play(episodes))
        self.episodes += episodes
        took = max(time.perf_counter() - began, 1e-6)
        self.chunk = max(1, min(4 * episodes, int(episodes * CHUNK_SECONDS / took)))

    def standing(self) -> Run:
        """Return the present summary of the run, without curves and state."""
        row, seed = self._entry.algorithm, self._entry.seed
        return Run(row, seed, self._measures.summary(), {}, {}, None, self.seconds)

    def reached(self) -> Reached:
        """Return state and measures at the present episode."""
        row, seed = self._entry.algorithm, self._entry.seed
        return Reached(row, seed, self._measures, self._session.state())


class Advancing(Protocol):
    """Protocol of a run or a batch of runs in progress. chunk : number of episodes to play next."""

    episodes: int
    chunk: int

    def advance(self, episodes: int) -> None:
        """Play `episodes` more episodes."""


def play_on(
    playing: Advancing,
    episodes: float,
    stopped: Callable[[], bool],
    after: Callable[[], None],
    chunk: int | None = None,
) -> None:
    """Play in chunks up to episode `episodes` or until `stopped()`. Call `after` after every chunk.

    chunk : episodes per chunk. None: the attribute `chunk` of `playing`.
    """
    while playing.episodes < episodes and not stopped():
        playing.advance(int(min(chunk or playing.chunk, episodes - playing.episodes)))
        after()


def play_one(
    entry: Entry,
    store: Store,
    episodes: float,
    *,
    engine: str = "cpu",
    stopped: Callable[[], bool] = lambda: False,
    tell: Callable[[Playing], None] = lambda playing: None,
    chunk: int | None = None,
    every: float = math.inf,
) -> None:
    """Play one run to episode `episodes` or until `stopped()`. Save it in `store` at the end.

    It is also saved every `every` seconds. After every chunk of `chunk` episodes, `tell` is called
    with the run in progress.
    """
    playing, saved = Playing(entry, engine, store.snapshot), 0.0

    def after() -> None:
        nonlocal saved
        tell(playing)
        if playing.seconds - saved >= every:
            store.save(playing.reached(), playing.seconds)
            saved = playing.seconds

    play_on(playing, episodes, stopped, after, chunk)
    store.close(playing.reached() if playing.episodes else None, playing.seconds)


def part(arrays: Mapping[str, Any], mark: str) -> dict[str, Any]:
    """Return the arrays whose names begin with the prefix `mark`, under names without it."""
    return {k.removeprefix(mark): v for k, v in arrays.items() if k.startswith(mark)}


def saved_state(row: Row, snapshot: Snapshot) -> Any:
    """Return the state of the learner of `row` from the arrays of a snapshot."""
    kind, arrays = state_of(row), part(snapshot, "state_")
    kept = getattr(kind, "_fields", arrays)  # newer fields may be missing
    arrays = {name: arrays[name] for name in kept if name in arrays}
    return kind(**{name: each.item() if each.ndim == 0 else each for name, each in arrays.items()})
