"""Executor that plays the runs of a sweep on a GPU, in batches.

Every run has the same folder, lock, checkpoint and manifest as on other engines. A sweep may begin
on one engine and continue on another. Runs not chosen for the GPU go to local workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress

import numpy as np

from cmdplab.engines.choose import Wanted, choose
from cmdplab.engines.gpu.device import card
from cmdplab.errors import CmdplabError
from cmdplab.experiments import manifest
from cmdplab.experiments.durable import Recorded, held
from cmdplab.experiments.executors.local import run_locally
from cmdplab.experiments.executors.worker import Interrupt
from cmdplab.experiments.play import Entry
from cmdplab.experiments.run_on_gpu import PlayingOnGpu, parts, play_batch
from cmdplab.experiments.work import Entries, Event, OnEvent, Work
from cmdplab.files.locks import BusyError

_OTHER_FILES = 256  # open files of this process besides locks

Runs = Sequence[tuple[Work, Entry]]


def gpu_executor(
    engine: str, workers: int | None, on_message: Callable[[str], None]
) -> Callable[[list[Work], OnEvent, Interrupt, float], None]:
    """Return an executor for `sweep`. engine : "auto" or "gpu". workers : None for one per core.

    `on_message` receives a sentence about the choice of the runs for the GPU.
    """
    cores = workers or os.cpu_count() or 1

    def execute(works: list[Work], on_event: OnEvent, interrupt: Interrupt, every: float) -> None:
        made, runs = Entries(most=None), list[tuple[Work, Entry]]()
        for work in works:
            with suppress(CmdplabError):  # the local workers find and record it
                runs.append((work, made.of(work)))
        choice = choose(engine, [_wanted(*each) for each in runs], cores)
        on_message(choice.sentence)
        here = [each for each, there in zip(runs, choice.on_gpu, strict=True) if there]
        for part in _batches(here):
            if not interrupt.asked:
                _play(part, on_event, interrupt, every)
        taken = {work.folder for work, _ in here}
        rest = [work for work in works if work.folder not in taken]
        if rest and not interrupt.asked:
            run_locally(rest, cores, on_event, interrupt, every)

    return execute


def _wanted(work: Work, entry: Entry) -> Wanted:
    settings, record = work.settings, manifest.read_if_good(work.folder)
    wanted = entry.wanted(settings.episodes, settings.precision)
    done = record.episodes if record is not None else 0
    return wanted._replace(episodes=wanted.episodes - done)


def _batches(runs: Runs) -> Iterator[Runs]:
    kinds: dict[tuple[str, int | None], list[tuple[Work, Entry]]] = {}
    for work, entry in runs:
        key = (work.settings.precision or "float64", work.settings.episodes)
        kinds.setdefault(key, []).append((work, entry))
    most = _locks()
    for (precision, _), mine in kinds.items():
        for part in parts([entry for _, entry in mine], precision):
            for first in range(0, len(part), most):
                yield [mine[n] for n in part[first : first + most]]


def _locks() -> int:
    try:
        import resource
    except ImportError:  # Windows, where a process opens up to 8192 files
        return (1 << 13) - _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(wanted - _OTHER_FILES, 1)


def _play(runs: Runs, on_event: OnEvent, interrupt: Interrupt, every: float) -> None:
    """Lock and play a batch, in several parts if the numbers of finished episodes differ."""
    groups: dict[int, list[tuple[Entry, Recorded]]] = {}
    with ExitStack() as locks:
        for work, entry in runs:
            if interrupt.asked:
                return
            store = _taken(work, entry, locks)
            if isinstance(store, Event):
                on_event(store)
            else:
                far = 0 if store.snapshot is None else int(store.snapshot["state_episode"])
                groups.setdefault(far, []).append((entry, store))
        for far in sorted(groups):
            entries, stores = zip(*groups.pop(far), strict=True)
            _play_group(entries, stores, on_event, interrupt, every)


def _taken(work: Work, entry: Entry, locks: ExitStack) -> Recorded | Event:
    """Lock a run and return its store, or return the event of its end if it cannot be played."""
    name, settings = work.folder.name, work.settings
    try:
        work.folder.mkdir(parents=True, exist_ok=True)
        locks.enter_context(held(work.folder))
        store = Recorded(work.folder, settings)
        if store.record.status == "done":
            return Event(name, "done")
        machine = manifest.machine() | card(settings.precision or "float64")
        store.enter(entry.algorithm, machine)
        return store
    except BusyError:
        return Event(name, "busy", "another process works on it")
    except (CmdplabError, OSError) as error:  # a folder that cannot be written, a newer record
        return Event(name, "failed", str(error))


def _play_group(
    entries: Sequence[Entry],
    stores: Sequence[Recorded],
    on_event: OnEvent,
    interrupt: Interrupt,
    every: float,
) -> None:
    first, precision = stores[0], stores[0].record.settings.precision or "float64"

    def tell(playing: PlayingOnGpu) -> None:
        if (standing := playing.measures.standing) is not None:
            gap, *rest = np.median(standing.last, axis=0).tolist()
            rate = (standing.episodes - playing.first) / max(playing.share, 1e-9)
            far = (standing.episodes, rate, gap, rest[0] if rest else None, len(stores))
            on_event(Event(first.folder.name, "running", "", *far))

    try:
        play_batch(
            entries,
            stores,
            first.target,
            precision,
            stopped=lambda: interrupt.asked > 0,
            tell=tell,
            every=every,
            hurried=lambda: interrupt.asked > 1,
        )
        for store in stores:
            if store.record.status == "running":  # stopped at once: its last checkpoint stays
                store.close(None, 0.0)
    except Exception as error:
        for store in stores:
            if store.record.status not in ("done", "failed"):
                store.fail(error)
    for store in stores:
        on_event(Event(store.folder.name, store.record.status, store.record.error))
