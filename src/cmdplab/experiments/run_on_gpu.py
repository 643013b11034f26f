"""Many runs at once on a GPU: what `play.over_threads` does with threads, as a few launches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from cmdplab.engines.gpu.batch import GpuBatch
from cmdplab.engines.gpu.limits import batches, check_precision, chunk_size
from cmdplab.engines.gpu.measures import Standing
from cmdplab.errors import InputError
from cmdplab.experiments.play import (
    Entry,
    OnProgress,
    Reached,
    Run,
    Snapshot,
    play_on,
    saved_measures,
    saved_state,
)
from cmdplab.measures.measures import Summary

REPORT_EVERY = 1.0  # seconds between two reports of a batch, each of which names all its runs


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
    entries: Sequence[Entry],
    episodes: int,
    precision: str,
    on_gpu: Sequence[bool],
    on_cores: Callable[[Sequence[Entry]], list[Run]],
    on_progress: OnProgress | None,
    stopped: Callable[[], bool],
) -> list[Run]:
    """Return all runs in order: those of the card are a few launches, then come any others.

    The numbers are those of the engine cpu, up to rounding. `seconds` of a run is its share of what
    its batch took. A stop ends a batch after the current launch; runs that never began are left
    out.
    """
    check_precision(precision)
    found: dict[int, Run] = {}
    for part in parts(entries, np.flatnonzero(on_gpu).tolist(), precision):
        if not stopped():
            batch = [entries[n] for n in part]
            runs = _batch(batch, episodes, precision, on_progress, stopped)
            found |= dict(zip(part, runs, strict=True))
    left = [n for n, there in enumerate(on_gpu) if not there]
    if left and not (found and stopped()):
        found |= dict(zip(left, on_cores([entries[n] for n in left]), strict=True))
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


def _batch(
    entries: Sequence[Entry],
    episodes: int,
    precision: str,
    on_progress: OnProgress | None,
    stopped: Callable[[], bool],
) -> list[Run]:
    """One batch to its end, or to a stop."""
    playing = PlayingOnGpu(entries, precision)
    began = told = time.perf_counter()

    def share() -> float:
        return (time.perf_counter() - began) / len(entries)

    def after() -> None:
        nonlocal told
        if on_progress and time.perf_counter() - told >= REPORT_EVERY:
            told = time.perf_counter()
            _report(playing, entries, share(), on_progress)

    play_on(playing, episodes, lambda: playing.episodes > 0 and stopped(), after)
    for n in playing.broken()[:1]:
        name, seed = entries[n].algorithm.name, entries[n].seed
        raise InputError(
            f"the values of {name} (seed {seed}) are not finite: a setting is too large"
        )
    seconds = share()
    runs = [each.so_far(seconds) for each in playing.reached()]
    for run in runs:
        if on_progress:
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
