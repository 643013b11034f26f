"""Batches of runs on a GPU, for runs in memory and runs in folders."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np

from cmdplab.engines.gpu.batch import GpuBatch
from cmdplab.engines.gpu.limits import batches, check_precision, chunk_size
from cmdplab.errors import InputError
from cmdplab.experiments.play import (
    Entry,
    Memory,
    OnProgress,
    Reached,
    Run,
    Store,
    part,
    play_on,
    saved_state,
)
from cmdplab.measures.measures import Summary

REPORT_EVERY = 0.5  # seconds between two reports of a batch
SAVING_SHARE = 10.0  # a checkpoint of a whole batch takes at most a tenth of the time
_WRITERS = 8  # threads: writing, hashing and packing hold no lock
_AT_ONCE = 64  # runs whose states are on the host at a time


class PlayingOnGpu:
    """Batch of runs in progress on the GPU, with their measures: the counterpart of `Playing`.

    All runs have one algorithm family, one problem size and one number of finished episodes.
    """

    def __init__(
        self, entries: Sequence[Entry], stores: Sequence[Store], precision: str = "float64"
    ) -> None:
        self._entries = entries
        columns = zip(*entries, strict=True)
        problems, rows, tasks, seeds, self._optima = (list(each) for each in columns)
        states, before = None, None
        if stores[0].snapshot is not None:
            snapshots = [store.snapshot or {} for store in stores]
            states = [saved_state(*each) for each in zip(rows, snapshots, strict=True)]
            before = [part(each, "measure_") for each in snapshots]
        self._batch = GpuBatch(problems, rows, tasks, seeds, states, precision)
        self.measures = self._batch.judge(self._optima, before=before)
        self.episodes = self.first = 0 if states is None else states[0].episode
        self.chunk = chunk_size(len(entries))  # episodes of a launch
        self._began = time.perf_counter()

    @property
    def share(self) -> float:
        """Seconds per run: the time since the batch was begun, divided by its number of runs."""
        return (time.perf_counter() - self._began) / len(self._entries)

    def advance(self, episodes: int) -> None:
        """Let every run play `episodes` more episodes."""
        self._batch.measure(self._optima, episodes, self.measures)
        self.episodes += episodes

    def reached(self) -> Iterator[Reached]:
        """Yield state and measures of each run at the present episode."""
        judged, states = self.measures.each(), self._batch.states()
        for entry, measures, state in zip(self._entries, judged, states, strict=True):
            yield Reached(entry.algorithm, entry.seed, measures, state)


def parts(entries: Sequence[Entry], precision: str) -> list[list[int]]:
    """Return batches of indices of entries. A batch has one family and size and fits the GPU."""
    kinds: dict[object, list[int]] = {}
    for n, entry in enumerate(entries):
        kinds.setdefault((type(entry.algorithm), entry.task.reward.shape), []).append(n)
    found = []
    for mine in kinds.values():
        first = entries[mine[0]]
        problems = len({id(entries[n].problem) for n in mine})
        cuts = batches(first.algorithm, first.task, precision, len(mine), problems)
        found += [mine[cut] for cut in cuts]
    return found


def play_batch(
    entries: Sequence[Entry],
    stores: Sequence[Store],
    episodes: float,
    precision: str,
    *,
    stopped: Callable[[], bool],
    tell: Callable[[PlayingOnGpu], None],
    every: float = math.inf,
    hurried: Callable[[], bool] = lambda: False,
) -> None:
    """Play one batch to episode `episodes` or to a stop. Each store keeps the run of its entry.

    The numbers equal those of the engine cpu up to rounding. The seconds of a run are those of the
    batch divided by its number of runs. At least `every` seconds lie between two checkpoints. Once
    `hurried()` is True, no further runs are saved.
    """
    playing = PlayingOnGpu(entries, stores, precision)
    for store in stores:
        store.snapshot = None  # the state is on the GPU now
    told = saved = time.monotonic()
    pause = every

    def after() -> None:
        nonlocal told, saved, pause
        now = time.monotonic()
        if now - told >= REPORT_EVERY:
            told = now
            tell(playing)
        if now - saved >= pause and playing.episodes < episodes:
            _keep(playing, stores, hurried, last=False)
            saved = time.monotonic()
            pause = max(every, SAVING_SHARE * (saved - now))

    play_on(playing, episodes, stopped, after)
    if playing.episodes:
        _keep(playing, stores, hurried, last=True)


def _keep(
    playing: PlayingOnGpu, stores: Sequence[Store], hurried: Callable[[], bool], *, last: bool
) -> None:
    broken, share = set(playing.measures.broken()), playing.share

    def one(n: int, reached: Reached) -> None:
        try:
            if n in broken:
                name, seed = reached.algorithm.name, reached.seed
                values = f"the values of {name} (seed {seed})"
                raise InputError(f"{values} are not finite: a setting is too large")
            (stores[n].close if last else stores[n].save)(reached, share)
        except Exception as error:
            stores[n].fail(error)

    numbered = enumerate(playing.reached())
    with ThreadPoolExecutor(_WRITERS) as pool:
        while (some := list(islice(numbered, _AT_ONCE))) and not hurried():
            list(pool.map(lambda pair: one(*pair), some))


def play_batches(
    runs: Sequence[tuple[Entry, Memory]],
    episodes: int,
    precision: str,
    on_progress: OnProgress | None,
    stopped: Callable[[], bool],
) -> None:
    """Play runs in memory on the GPU, batch by batch. After a stop no further batch begins."""
    check_precision(precision)
    for batch in parts([entry for entry, _ in runs], precision):
        if stopped():
            return
        entries, stores = zip(*(runs[n] for n in batch), strict=True)

        def tell(playing: PlayingOnGpu, entries: Sequence[Entry] = entries) -> None:
            if on_progress and (standing := playing.measures.standing):
                for entry, last in zip(entries, standing.last, strict=True):
                    on_progress(_standing(entry, standing.episodes, last, playing.share))

        play_batch(entries, stores, episodes, precision, stopped=stopped, tell=tell)
        for store in stores:
            if on_progress and store.run is not None:
                on_progress(store.run)


def _standing(entry: Entry, episodes: int, last: Sequence[float], seconds: float) -> Run:
    violation = float(last[1]) if len(last) > 1 else None
    later = (np.nan, np.nan, np.nan, np.nan, None, None)
    summary = Summary(episodes, float(last[0]), violation, *later)
    return Run(entry.algorithm, entry.seed, summary, {}, {}, None, seconds)
