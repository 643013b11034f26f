"""Many runs at once on a GPU: what `play.over_threads` does with threads, as a few launches."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.choose import Wanted, choose
from cmdplab.engines.gpu.batch import GpuBatch
from cmdplab.engines.gpu.limits import batches, check_precision, chunk_size
from cmdplab.engines.gpu.measures import Standing
from cmdplab.errors import InputError
from cmdplab.experiments.play import (
    Job,
    OnProgress,
    Reached,
    Run,
    RunOptions,
    Snapshot,
    over_threads,
    saved_measures,
    saved_state,
)
from cmdplab.measures.measures import Summary

REPORT_EVERY = 1.0  # seconds between two reports of a batch, each of which names all its runs


class Entry(NamedTuple):
    """One run of a batch."""

    problem: CMDP
    algorithm: Row
    task: Task
    seed: int
    optimum: float


class PlayingOnGpu:
    """Runs in progress on the card, with their measures: the counterpart of `Playing`.

    They are of one family and of one size. Snapshots, if given, are equally far.
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        precision: str = "float64",
        snapshots: Sequence[Snapshot] | None = None,
    ) -> None:
        self._entries = entries
        columns = zip(*entries, strict=True)
        problems, rows, tasks, seeds, self._optima = (list(each) for each in columns)
        states, before = None, None
        if snapshots is not None:
            pairs = zip(entries, snapshots, strict=True)
            states = [saved_state(each.algorithm, snapshot) for each, snapshot in pairs]
            before = [saved_measures(snapshot) for snapshot in snapshots]
        self._batch = GpuBatch(problems, rows, tasks, seeds, states, precision)
        self._measures = self._batch.judge(self._optima, before=before)
        self.episodes = 0 if states is None else states[0].episode
        self.chunk = chunk_size(len(entries))  # episodes of a launch

    def advance(self, episodes: int) -> None:
        """Let every run play so many more episodes."""
        self._batch.measure(self._optima, episodes, self._measures)
        self.episodes += episodes

    def standing(self) -> Standing | None:
        """Where all runs stood one launch ago."""
        return self._measures.standing

    def broken(self) -> list[int]:
        """The runs whose values are not finite."""
        return self._measures.broken()

    def reached(self) -> Iterator[Reached]:
        """All that every run has come to, one after the other."""
        judged, states = self._measures.each(), self._batch.states()
        for entry, measures, state in zip(self._entries, judged, states, strict=True):
            yield Reached(entry.algorithm, entry.seed, measures, state)


def run_many_with_gpu(
    problem: CMDP,
    jobs: Sequence[Job],
    episodes: int,
    options: RunOptions,
    tolerance: float | None = None,
) -> list[Run]:
    """All runs in the order of `jobs`: those of the GPU as a few launches, then any others.

    The numbers are those of the engine cpu, up to rounding. `seconds` of a run is its share of what
    its batch took. A stop ends a batch after the current launch; runs that never began are left
    out. `tolerance` is what the caller needs of gaps and violations: float32 may not give it.
    """
    check_precision(options.precision, tolerance)
    solution = options.optimum(problem)
    if solution.value is None:
        raise InputError(f"{problem.name} cannot be run: {solution.message}")
    told = {id(job.algorithm): job.algorithm for job in jobs}
    tasks = {
        key: task_for(row, problem, solution, options.baseline, options.rewards)
        for key, row in told.items()
    }
    entries = [
        Entry(problem, job.algorithm, tasks[id(job.algorithm)], job.seed, solution.value)
        for job in jobs
    ]
    wanted = [
        Wanted(problem, each.algorithm, each.task, episodes, options.precision) for each in entries
    ]
    choice = choose(options.engine, wanted, options.workers or os.cpu_count() or 1)
    options.on_message(choice.sentence)
    taken = [n for n, there in enumerate(choice.on_gpu) if there]
    found: dict[int, Run] = {}
    for part in parts(entries, taken, options.precision):
        if not options.stopped:
            runs = _batch([entries[n] for n in part], episodes, options)
            found |= dict(zip(part, runs, strict=True))
    left = [n for n, there in enumerate(choice.on_gpu) if not there]
    if left and not (found and options.stopped):
        on_cores = replace(options, engine="cpu", precision="float64", solution=solution)
        runs = over_threads(problem, [jobs[n] for n in left], episodes, on_cores)
        found |= dict(zip(left, runs, strict=True))
    if not found:
        raise InterruptedError("stopped before the first launch was done")
    return [found[n] for n in sorted(found)]


def parts(entries: Sequence[Entry], which: Sequence[int], precision: str) -> list[list[int]]:
    """The runs of `which` in batches: of one family and one size, and such that the card holds."""
    kinds: dict[object, list[int]] = {}
    for n in which:
        kind = (type(entries[n].algorithm), entries[n].task.reward.shape)
        kinds.setdefault(kind, []).append(n)
    found = []
    for mine in kinds.values():
        first = entries[mine[0]]
        problems = len({id(entries[n].problem) for n in mine})
        cuts = batches(first.algorithm, first.task, precision, len(mine), problems)
        found += [mine[cut] for cut in cuts]
    return found


def _batch(entries: Sequence[Entry], episodes: int, options: RunOptions) -> list[Run]:
    """One batch to its end, or to a stop."""
    playing = PlayingOnGpu(entries, options.precision)
    began = told = time.perf_counter()

    def share() -> float:
        return (time.perf_counter() - began) / len(entries)

    on_progress = options.on_progress or (lambda run: None)
    while playing.episodes < episodes and not (playing.episodes and options.stopped):
        playing.advance(min(playing.chunk, episodes - playing.episodes))
        if options.on_progress and time.perf_counter() - told >= REPORT_EVERY:
            told = time.perf_counter()
            _report(playing, entries, share(), on_progress)
    for n in playing.broken()[:1]:
        name, seed = entries[n].algorithm.name, entries[n].seed
        raise InputError(
            f"the values of {name} (seed {seed}) are not finite: a setting is too large"
        )
    seconds = share()
    runs = [each.so_far(seconds) for each in playing.reached()]
    for run in runs:
        on_progress(run)
    return runs


def _report(
    playing: PlayingOnGpu, entries: Sequence[Entry], seconds: float, on_progress: OnProgress
) -> None:
    """Where every run stands; what is summed up stays on the card until the end."""
    standing = playing.standing()
    if standing is None:
        return
    for entry, last in zip(entries, standing.last, strict=True):
        violation = float(last[1]) if len(last) > 1 else None
        later = (np.nan, np.nan, np.nan, np.nan, None, None)
        summary = Summary(standing.episodes, float(last[0]), violation, *later)
        on_progress(Run(entry.algorithm, entry.seed, summary, {}, {}, None, seconds))
