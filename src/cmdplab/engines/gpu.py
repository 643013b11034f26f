"""The GPU engine: many runs of the primal-dual family in one launch, one block of threads each.

The runs of a batch may differ in seed, algorithm, hyper-parameters and problem, but not in sizes.
States stay on the card between chunks. A run equals that of the CPU engine up to rounding, and does
not depend on the batch it is in, nor on how its episodes are cut into chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.algorithms.primal_dual import PrimalDual, State
from cmdplab.algorithms.task import Task
from cmdplab.engines import gpu_arrays
from cmdplab.engines.gpu_kernels import play_kernel, prepare_kernel
from cmdplab.engines.gpu_layout import Form, check_form, form_of
from cmdplab.engines.gpu_limits import (
    MOST_EPISODES,
    PRECISIONS,
    batches,
    check_precision,
    check_room,
    check_row,
    chunk_size,
)
from cmdplab.engines.gpu_measures import CardMeasures
from cmdplab.engines.gpu_philox import round_keys
from cmdplab.engines.gpu_setup import cuda, needed
from cmdplab.engines.protocol import Chunk
from cmdplab.errors import InputError
from cmdplab.measures import Measures, on_grid
from cmdplab.problem import CMDP, Array

# Registers of a thread, of the values tried on an H200 (48 to 128) the fastest at the paper's size:
# fewer spill, and more leave fewer runs on a multiprocessor at a time.
REGISTERS = {"float32": 64, "float64": 128}


class CardChunk(NamedTuple):
    """What one launch gives, on the card, when `played` has happened.

    Who has read it records `read`; only then is its place written again.
    """

    returns: gpu_arrays.Card  # [B, E, 1 + N]
    multiplier: gpu_arrays.Card  # [B, E, N']
    played: Any
    read: Any


class GpuBatch:
    """Runs side by side on the card, advanced together."""

    def __init__(
        self,
        problems: Sequence[CMDP],
        rows: Sequence[PrimalDual],
        tasks: Sequence[Task],
        seeds: Sequence[int],
        states: Sequence[State | None] | None = None,
        precision: str = "float64",
        form: Form | None = None,
        registers: int | None = None,
    ) -> None:
        needed()
        check_precision(precision)
        states = [None] * len(rows) if states is None else states
        if not rows or len({len(each) for each in (problems, rows, tasks, seeds, states)}) > 1:
            raise InputError("a batch needs one problem, row, task and seed for each of its runs")
        for row, task in zip(rows, tasks, strict=True):
            check_row(row, task)
        if len({task.reward.shape for task in tasks}) > 1:
            raise InputError("the problems of a batch differ in their sizes")
        dtype = PRECISIONS[precision]
        self.form = form if form is not None else form_of(tasks[0].reward.shape)
        check_form(self.form, np.dtype(dtype).itemsize)
        check_room(self.form, precision, len(rows), len({id(each) for each in problems}))
        self.runs, self._rows, self._tasks = len(rows), rows, tasks
        self._done = np.array([0 if s is None else s.episode for s in states], np.int64)
        self.kernel = play_kernel(self.form, dtype, registers or REGISTERS[precision])
        self._results: list[CardChunk] = []  # two, by turns: one is read while the other is played
        self._ahead: Array | None = None
        self._playing, self._reading = cuda.stream(), cuda.stream()
        self._put(problems, seeds, states, dtype)

    def _put(
        self,
        problems: Sequence[CMDP],
        seeds: Sequence[int],
        states: Sequence[State | None],
        dtype: type,
    ) -> None:
        """Everything that does not change between chunks, and the states, onto the card."""
        distinct = {id(each): b for b, each in enumerate(problems)}
        order = {each: at for at, each in enumerate(distinct)}
        chosen = list(distinct.values())
        given = [problems[b] for b in chosen], [self._tasks[b] for b in chosen]
        self._worlds = gpu_arrays.worlds(*given, self.form, dtype)
        threshold = np.zeros((self.runs, self.form.columns))
        for b, task in enumerate(self._tasks):
            threshold[b, : len(task.threshold)] = task.threshold
        numbers = [row.numbers(task) for row, task in zip(self._rows, self._tasks, strict=True)]
        self._numbers = cuda.to_device(gpu_arrays.number_rows(numbers))
        starts = np.array([task.start for task in given[1]], np.int32)
        instance = np.array([order[id(each)] for each in problems], np.int32)
        keys = np.stack([round_keys(seed) for seed in seeds])
        which, self._kinds = self._distinct()
        self._which = cuda.to_device(which)
        self._fixed = [cuda.to_device(each) for each in (threshold, starts, instance)]
        self._keys = cuda.to_device(keys)
        self._learners = gpu_arrays.learners(self._tasks, states, self.form, dtype)
        prepare = prepare_kernel(self.form, dtype)[self.runs, self.form.threads]
        prepare(self._numbers, *self._learners[:4])

    def _distinct(self) -> tuple[npt.NDArray[np.int32], list[int]]:
        """Which of the distinct schedules each run has, and a run that has each."""
        kinds: dict[object, int] = {}
        first: list[int] = []
        which = np.empty(self.runs, np.int32)
        for b, (row, task) in enumerate(zip(self._rows, self._tasks, strict=True)):
            key = (row, row.setting(task), int(self._done[b]))
            if key not in kinds:
                kinds[key] = len(first)
                first.append(b)
            which[b] = kinds[key]
        return which, first

    def play(self, episodes: int) -> Chunk:
        """So many more episodes of every run: returns [B, E, 1 + N], multipliers [B, E, N]."""
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

    def _fetched(self, chunk: CardChunk, array: gpu_arrays.Card) -> Array:
        chunk.played.wait(self._reading)
        found = array.copy_to_host(stream=self._reading)
        self._reading.synchronize()
        return np.asarray(found)

    def _place(self, episodes: int) -> CardChunk:
        """Where the next launch writes: not where the one before does."""
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
        """The same as one launch, which is not waited for.

        While the card works, the schedules of a next launch of the same size are computed. All
        copies name their stream: one on the default stream would wait for everything.
        """
        if int(self._done.max()) + episodes > MOST_EPISODES:
            raise InputError(f"the engine gpu counts to {MOST_EPISODES:,} episodes a run, no more")
        chunk, stream = self._place(episodes), self._playing
        if self._ahead is None or self._ahead.shape[1] != episodes:
            self._ahead = self._schedules(episodes)
        chunk.read.wait(stream)
        self.kernel[self.runs, self.form.threads, stream](
            *self._worlds,
            *self._fixed,
            self._numbers,
            cuda.to_device(self._ahead, stream=stream),
            self._which,
            self._keys,
            cuda.to_device(self._done, stream=stream),
            *self._learners,
            chunk.returns,
            chunk.multiplier,
        )
        chunk.played.record(stream)
        self._done = self._done + episodes
        self._ahead = self._schedules(episodes)
        return chunk

    def _schedules(self, episodes: int) -> Array:
        """[D, E, 4], of the distinct algorithms."""
        columns = [
            self._rows[b].schedule(self._tasks[b], int(self._done[b]) + 1, episodes)
            for b in self._kinds
        ]
        return np.stack(columns)

    def measure(
        self,
        optima: Sequence[float],
        episodes: int,
        measures: CardMeasures | None = None,
        keep: Callable[[Array], Array] = on_grid,
    ) -> CardMeasures:
        """So many more episodes, judged on the card; `optima` [B] are the values of optima.

        Given what an earlier call returned, it goes on with that. `keep` says which episodes
        become points of the curves.
        """
        if measures is None:
            thresholds = np.stack([task.threshold for task in self._tasks])
            measures = CardMeasures(optima, thresholds, self.form.horizon, keep)
        while episodes > 0:
            size = min(chunk_size(self.runs), episodes)
            chunk = self.launch(size)
            measures.add(chunk, self._reading)
            episodes -= size
        return measures

    def state(self, run: int) -> State:
        """The state of a run in natural axes: any engine goes on from it."""
        self._playing.synchronize()
        return gpu_arrays.natural_state(self._learners, self.form, run, int(self._done[run]))


def measure_many(
    problems: Sequence[CMDP],
    rows: Sequence[PrimalDual],
    tasks: Sequence[Task],
    seeds: Sequence[int],
    optima: Sequence[float],
    episodes: int,
    precision: str = "float64",
    keep: Callable[[Array], Array] = on_grid,
) -> list[Measures]:
    """The measures of many runs from their start, in as many batches as the card asks for.

    `optima` are the values of optima; `keep` says which episodes become points of the curves.
    """
    needed()
    check_precision(precision)
    form, found = form_of(tasks[0].reward.shape), list[Measures]()
    for part in batches(form, precision, len(rows), len({id(each) for each in problems})):
        batch = GpuBatch(problems[part], rows[part], tasks[part], seeds[part], precision=precision)
        found += batch.measure(optima[part], episodes, keep=keep).measures()
    return found


class GpuSession:
    """A run on the GPU engine: a batch of one."""

    def __init__(
        self,
        problem: CMDP,
        algorithm: PrimalDual,
        task: Task,
        seed: int,
        state: State | None = None,
        precision: str = "float64",
    ) -> None:
        given = None if state is None else [state]
        self._batch = GpuBatch([problem], [algorithm], [task], [seed], given, precision)

    def play(self, episodes: int) -> Chunk:
        chunk = self._batch.play(episodes)
        return Chunk(chunk.returns[0], chunk.multiplier[0])

    def state(self) -> State:
        return self._batch.state(0)
