"""The GPU engine: many runs of one family in one launch, one block of threads each.

The runs of a batch may differ in seed, algorithm, hyper-parameters and problem, but not in sizes.
States stay on the card between chunks (the episodes of one launch). A run equals a run of the CPU
engine up to rounding. It does not depend on its batch, nor on the sizes of its chunks. B is the
number of runs, E of episodes, N of constraints, and N' = max(N, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.gpu.arrays import Card, Runs
from cmdplab.engines.gpu.device import cuda, needed
from cmdplab.engines.gpu.families import CARD_FAMILIES
from cmdplab.engines.gpu.limits import (
    PRECISIONS,
    batches,
    check_count,
    check_room,
    check_run,
    chunk_size,
)
from cmdplab.engines.gpu.measures import CardMeasures
from cmdplab.errors import InputError
from cmdplab.measures.measures import Measures, on_grid
from cmdplab.types import Array

_FETCHED = 32  # runs whose states come to the host at a time


class CardChunk(NamedTuple):
    """Results of one launch on the card, complete after the event `played`.

    The reader of the results records the event `read`. Only then is the memory written again.
    """

    returns: Card  # [B, E, 1 + N]
    multiplier: Card  # [B, E, N']
    played: Any  # an event
    read: Any  # an event


class GpuBatch:
    """Runs of one family side by side on the card, advanced together.

    Each sequence has one entry per run. `states` continue earlier runs. `form` replaces the layout
    that the family chooses. `tuning` are options of the family's player.
    """

    def __init__(
        self,
        problems: Sequence[CMDP],
        rows: Sequence[Row],
        tasks: Sequence[Task],
        seeds: Sequence[int],
        states: Sequence[Any] | None = None,
        precision: str = "float64",
        form: Any = None,
        **tuning: Any,
    ) -> None:
        needed()
        states = [None] * len(rows) if states is None else states
        if not rows or len({len(each) for each in (problems, rows, tasks, seeds, states)}) > 1:
            raise InputError("a batch needs one problem, row, task and seed for each of its runs")
        given = zip(problems, rows, tasks, strict=True)
        for run in {tuple(map(id, each)): each for each in given}.values():
            check_run(*run, precision=precision)
        if len({type(row) for row in rows}) > 1:
            raise InputError("the algorithms of a batch are of several families")
        if len({task.reward.shape for task in tasks}) > 1:
            raise InputError("the problems of a batch differ in their sizes")
        family, real = CARD_FAMILIES[type(rows[0])], PRECISIONS[precision]
        self.form = form if form is not None else family.form(tasks[0].reward.shape)
        family.check(self.form, np.dtype(real).itemsize)
        check_room(family, self.form, precision, len(rows), len({id(each) for each in problems}))
        self.runs, self._tasks = len(rows), tasks
        self._done = np.array([0 if s is None else s.episode for s in states], np.int64)
        runs = Runs(problems, rows, tasks, seeds, states)
        self.player = family.player(runs, self.form, real, **tuning)
        self._results: list[CardChunk] = []  # two, by turns: one is read while the other is played
        self._ahead: Array | None = None
        self._playing, self._reading = cuda.stream(), cuda.stream()

    def play(self, episodes: int) -> Chunk:
        """Play E = `episodes` more of every run: returns [B, E, 1 + N], multipliers [B, E, N]."""
        N = self.form.rewards - 1
        returns = np.empty((self.runs, episodes, 1 + N))
        multiplier = np.empty((self.runs, episodes, N))
        before: tuple[CardChunk, slice] | None = None
        at = 0
        while at < episodes or before is not None:
            now: tuple[CardChunk, slice] | None = None
            if at < episodes:
                size = min(chunk_size(self.runs), episodes - at)
                now = self.launch(size), slice(at, at + size)
                at += size
            if before is not None:  # copied while the next one is played
                chunk, part = before
                returns[:, part] = self._fetched(chunk, chunk.returns)
                multiplier[:, part] = self._fetched(chunk, chunk.multiplier)[..., :N]
                chunk.read.record(self._reading)
            before = now
        return Chunk(returns, multiplier)

    def _fetched(self, chunk: CardChunk, array: Card) -> Array:
        chunk.played.wait(self._reading)
        found = array.copy_to_host(stream=self._reading)
        self._reading.synchronize()
        return np.asarray(found)

    def _place(self, episodes: int) -> CardChunk:
        """Return memory for the results of the next launch, other than that of the last launch."""
        if not self._results or self._results[0].returns.shape[1] != episodes:
            self._results = [
                CardChunk(
                    cuda.device_array((self.runs, episodes, self.form.rewards), np.float64),
                    cuda.device_array((self.runs, episodes, self.form.columns), np.float64),
                    cuda.event(),
                    cuda.event(),
                )
                for _ in range(2)
            ]
        self._results.reverse()
        return self._results[0]

    def launch(self, episodes: int) -> CardChunk:
        """Launch `episodes` more episodes of every run; return their results without waiting.

        While the card works, the host computes the schedules of a next launch of equal size. All
        copies name their stream: a copy on the default stream would wait for all streams.
        """
        check_count(int(self._done.max()) + episodes)
        chunk, stream = self._place(episodes), self._playing
        if self._ahead is None or self._ahead.shape[1] != episodes:
            self._ahead = self.player.schedules(self._done, episodes)
        chunk.read.synchronize()  # the host is never more than two launches ahead
        player = self.player
        player.kernel[self.runs, self.form.threads, stream](
            *player.fixed,
            cuda.to_device(self._ahead, stream=stream),
            *player.drawn,
            cuda.to_device(self._done, stream=stream),
            *player.learners,
            chunk.returns,
            chunk.multiplier,
        )
        chunk.played.record(stream)
        self._done = self._done + episodes
        self._ahead = self.player.schedules(self._done, episodes)
        return chunk

    def judge(
        self,
        optima: Sequence[float],
        keep: Callable[[Array], Array] = on_grid,
        before: Sequence[dict[str, Array]] | None = None,
    ) -> CardMeasures:
        """Return measures for `measure`, new or continued.

        optima : the optimal value of each run.
        keep : selects the episodes that become points of the curves.
        before : `Measures.arrays` of each run, to continue earlier measures.
        """
        thresholds = np.stack([task.threshold for task in self._tasks])
        return CardMeasures(optima, thresholds, self.form.horizon, keep, before)

    def measure(
        self,
        optima: Sequence[float],
        episodes: int,
        measures: CardMeasures | None = None,
        keep: Callable[[Array], Array] = on_grid,
    ) -> CardMeasures:
        """Play `episodes` more of every run and judge them on the card, against optimal values [B].

        To continue an earlier call, pass its result as `measures`. `keep` selects the episodes that
        become points of the curves.
        """
        measures = self.judge(optima, keep) if measures is None else measures
        while episodes > 0:
            size = min(chunk_size(self.runs), episodes)
            chunk = self.launch(size)
            measures.add(chunk, self._reading)
            episodes -= size
        return measures

    def state(self, run: int) -> Any:
        """Return the state of one run in natural axes, from which any engine can continue."""
        self._playing.synchronize()
        return self.player.states(slice(run, run + 1), int(self._done[run]))[0]

    def states(self) -> Iterator[Any]:
        """Yield the states of all runs in natural axes, fetched a few at a time."""
        self._playing.synchronize()
        for first in range(0, self.runs, _FETCHED):
            part = slice(first, min(first + _FETCHED, self.runs))
            states = self.player.states(part, 0)
            for state, done in zip(states, self._done[part], strict=True):
                yield state._replace(episode=int(done))


def measure_many(
    problems: Sequence[CMDP],
    rows: Sequence[Row],
    tasks: Sequence[Task],
    seeds: Sequence[int],
    optima: Sequence[float],
    episodes: int,
    precision: str = "float64",
    keep: Callable[[Array], Array] = on_grid,
) -> list[Measures]:
    """Return the measures of many runs from their start, in as many batches as the card needs.

    Each sequence has one entry per run: problem, algorithm, task, seed and optimal value. precision
    : "float64" or "float32". `keep` selects the episodes that become points of the curves.
    """
    needed()
    found = list[Measures]()
    problem_count = len({id(each) for each in problems})
    for part in batches(rows[0], tasks[0], precision, len(rows), problem_count):
        batch = GpuBatch(problems[part], rows[part], tasks[part], seeds[part], precision=precision)
        judged = batch.measure(optima[part], episodes, keep=keep)
        for b in judged.broken()[:1]:
            name = rows[part][b].name
            raise InputError(f"the values of {name} are not finite: a setting is too large")
        found += judged.measures()
    return found


class GpuSession:
    """A run on the GPU engine: a batch of one."""

    def __init__(
        self,
        problem: CMDP,
        algorithm: Row,
        task: Task,
        seed: int,
        state: Any = None,
        precision: str = "float64",
    ) -> None:
        given = None if state is None else [state]
        self._batch = GpuBatch([problem], [algorithm], [task], [seed], given, precision)

    def play(self, episodes: int) -> Chunk:
        chunk = self._batch.play(episodes)
        return Chunk(chunk.returns[0], chunk.multiplier[0])

    def state(self) -> Any:
        return self._batch.state(0)
