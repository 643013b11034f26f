"""The runs of a sweep on a GPU: played in batches, recorded one by one.

Every run has the folder, lock, checkpoint and manifest that it has elsewhere: a sweep may begin on
one engine and go on with another. Runs that are not for the card go to the local workers.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from cmdplab.engines.choose import Wanted, choose
from cmdplab.engines.gpu.device import card
from cmdplab.errors import CmdplabError, InputError
from cmdplab.experiments import manifest
from cmdplab.experiments.durable import begin, close, enter, fail, held, save
from cmdplab.experiments.executors.local import run_locally
from cmdplab.experiments.executors.signals import Interrupt
from cmdplab.experiments.manifest import Manifest
from cmdplab.experiments.play import Entry, Reached, Snapshot, play_on
from cmdplab.experiments.run_on_gpu import PlayingOnGpu, parts
from cmdplab.experiments.work import Ended, Entries, OnEvent, Standing, Work
from cmdplab.files.locks import BusyError

REPORT_EVERY = 0.5  # seconds
SAVING_SHARE = 10.0  # a checkpoint of a whole batch takes at most a tenth of the time
_WRITERS = 8  # threads: writing, hashing and packing hold no lock
_AT_ONCE = 64  # runs whose states are on the host at a time
_OTHER_FILES = 256  # that this process may need beside a lock for every run

Keep = Callable[..., None]  # (folder, record, reached)


class Taken(NamedTuple):
    """A run of a batch, its lock held."""

    work: Work
    entry: Entry
    record: Manifest
    spent: float  # seconds, in earlier attempts

    def end(self) -> Ended:
        """How it ended."""
        return Ended(self.work.folder.name, self.record.status, self.record.error)


def gpu_executor(
    engine: str, workers: int | None, on_message: Callable[[str], None]
) -> Callable[[list[Work], OnEvent, Interrupt, float], None]:
    """An executor for `sweep` on the engines auto and gpu; `on_message` is told what auto chose."""
    return partial(_execute, engine, workers or os.cpu_count() or 1, on_message)


def _execute(
    engine: str,
    workers: int,
    on_message: Callable[[str], None],
    works: list[Work],
    on_event: OnEvent,
    interrupt: Interrupt,
    every: float,
) -> None:
    made = Entries(most=None)
    runs = [(work, entry) for work in works if (entry := _entry(made, work)) is not None]
    choice = choose(engine, [_wanted(*each) for each in runs], workers)
    on_message(choice.sentence)
    here = [each for each, there in zip(runs, choice.on_gpu, strict=True) if there]
    for part in _batches(here):
        if not interrupt.asked:
            _play(part, on_event, interrupt, every)
    taken = {work.folder for work, _ in here}
    rest = [work for work in works if work.folder not in taken]
    if rest and not interrupt.asked:
        run_locally(rest, workers, on_event, interrupt, every)


def _wanted(work: Work, entry: Entry) -> Wanted:
    """What is left of a run: stragglers are few, and auto leaves them to the cores."""
    settings, record = work.settings, manifest.read_if_good(work.folder)
    target = math.inf if settings.episodes is None else settings.episodes
    left = target - (record.episodes if record is not None else 0)
    precision = settings.precision or "float64"
    return Wanted(entry.problem, entry.algorithm, entry.task, left, precision)


def _entry(entries: Entries, work: Work) -> Entry | None:
    """None where something is wrong: the local workers find and record it."""
    try:
        return entries.of(work)
    except CmdplabError:
        return None


def _batches(runs: Sequence[tuple[Work, Entry]]) -> Iterator[list[tuple[Work, Entry]]]:
    """Runs of one precision, length, family and size, as many as the card and the system hold."""
    kinds: dict[object, list[tuple[Work, Entry]]] = {}
    for work, entry in runs:
        key = (work.settings.precision, work.settings.episodes)
        kinds.setdefault(key, []).append((work, entry))
    most = _locks()
    for mine in kinds.values():
        precision = mine[0][0].settings.precision or "float64"
        for part in parts([entry for _, entry in mine], range(len(mine)), precision):
            for first in range(0, len(part), most):
                yield [mine[n] for n in part[first : first + most]]


def _locks() -> int:
    """How many runs can be locked at a time: a lock is an open file."""
    try:
        import resource
    except ImportError:  # Windows, where a process opens up to 8192 files
        return (1 << 13) - _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(wanted - _OTHER_FILES, 1)


def _play(
    runs: Sequence[tuple[Work, Entry]], on_event: OnEvent, interrupt: Interrupt, every: float
) -> None:
    """A batch; runs that are not equally far are played one group after the other."""
    groups: dict[int, list[tuple[Taken, Snapshot | None]]] = {}
    with ExitStack() as locks:
        for work, entry in runs:
            if interrupt.asked:
                return
            found = _taken(work, entry, locks)
            if isinstance(found, Ended):
                on_event(found)
            else:
                snapshot = found[1]
                far = 0 if snapshot is None else int(snapshot["state_episode"])
                groups.setdefault(far, []).append(found)
        for far in sorted(groups):
            pairs = groups.pop(far)
            group = [taken for taken, _ in pairs]
            snapshots = [snapshot for _, snapshot in pairs if snapshot is not None] or None
            del pairs
            try:
                _advance(group, snapshots, on_event, interrupt, every)
            except Exception as error:
                for each in group:
                    if each.record.status not in ("done", "failed"):
                        fail(each.work.folder, each.record, error)
            for each in group:
                on_event(each.end())


def _taken(work: Work, entry: Entry, locks: ExitStack) -> tuple[Taken, Snapshot | None] | Ended:
    """A run that is ours now, with the snapshot to go on from, or how it ended."""
    name, settings = work.folder.name, work.settings
    try:
        work.folder.mkdir(parents=True, exist_ok=True)
        locks.enter_context(held(work.folder))
        record = begin(work.folder, settings)
        if record.status == "done":
            return Ended(name, "done", "")
        machine = manifest.machine() | card(settings.precision or "float64")
        snapshot = enter(work.folder, record, entry.algorithm, machine)
        return Taken(work, entry, record, record.seconds), snapshot
    except BusyError:
        return Ended(name, "busy", "another process works on it")
    except (CmdplabError, OSError) as error:  # a folder that cannot be written, a newer record
        return Ended(name, "failed", str(error))


def _advance(
    group: Sequence[Taken],
    snapshots: list[Snapshot] | None,
    on_event: OnEvent,
    interrupt: Interrupt,
    every: float,
) -> None:
    settings = group[0].work.settings
    given = [each.entry for each in group]
    playing = PlayingOnGpu(given, settings.precision or "float64", snapshots)
    if snapshots is not None:
        snapshots.clear()  # they are on the card now
    target = math.inf if settings.episodes is None else settings.episodes
    before, began, pause = playing.episodes, time.monotonic(), every
    saved = told = began

    def after() -> None:
        nonlocal saved, told, pause
        now = time.monotonic()
        if now - told >= REPORT_EVERY:
            told = now
            _report(group, playing, before, now - began, on_event)
        if now - saved >= pause and playing.episodes < target:
            _keep(save, group, playing, (now - began) / len(group), interrupt)
            saved = time.monotonic()
            pause = max(every, SAVING_SHARE * (saved - now))

    play_on(playing, target, lambda: interrupt.asked > 0, after)
    if playing.episodes:
        _keep(close, group, playing, (time.monotonic() - began) / len(group), interrupt)
    for each in group:
        if each.record.status == "running":  # stopped at once: what was saved before stays
            each.record.status = "interrupted"
            manifest.write(each.work.folder, each.record)


def _report(
    group: Sequence[Taken], playing: PlayingOnGpu, before: int, seconds: float, on_event: OnEvent
) -> None:
    """One line for the batch, under the name of its first run."""
    standing = playing.standing()
    if standing is None:
        return
    middle = np.median(standing.last, axis=0)
    rate = len(group) * (standing.episodes - before) / max(seconds, 1e-9)
    violation = float(middle[1]) if len(middle) > 1 else None
    name = group[0].work.folder.name
    on_event(Standing(name, standing.episodes, rate, float(middle[0]), violation, len(group)))


def _keep(
    how: Keep, group: Sequence[Taken], playing: PlayingOnGpu, share: float, interrupt: Interrupt
) -> None:
    """Write every run down; one that cannot be written, or is not finite, fails alone."""
    broken = set(playing.broken())

    def one(n: int, reached: Reached) -> None:
        folder, record = group[n].work.folder, group[n].record
        record.seconds = group[n].spent + share
        if record.status == "failed":
            return
        try:
            if n in broken:
                raise InputError("its values are not finite: a setting is too large")
            how(folder, record, reached)
        except Exception as error:
            fail(folder, record, error)

    numbered = enumerate(playing.reached())
    with ThreadPoolExecutor(_WRITERS) as pool:
        while part := list(islice(numbered, _AT_ONCE)):
            if interrupt.asked > 1:
                return
            list(pool.map(lambda pair: one(*pair), part))
