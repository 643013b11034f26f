"""One run in a folder: it saves checkpoints, stops on request and resumes to the last bit.

A work (`work.Work`) is a run with its folder. After any end of the process, the folder holds a
finished run, a checkpoint, or nothing. A file lock keeps other processes out. The operating system
releases it when the process dies.
"""

from __future__ import annotations

import math
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cmdplab.algorithms.custom import CUSTOM
from cmdplab.algorithms.identity import fields_of
from cmdplab.errors import CmdplabError, InputError, StorageError
from cmdplab.experiments import checkpoint, manifest
from cmdplab.experiments.manifest import Manifest
from cmdplab.experiments.records.tables import put_runs
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.experiments.work import Entries, Event, OnEvent, Work
from cmdplab.files import file_digest, put_sealed
from cmdplab.files.locks import BusyError, locked, removed
from cmdplab.files.write import flush, written_whole

if TYPE_CHECKING:
    from cmdplab.algorithms.row import Row
    from cmdplab.experiments.play import Playing, Reached, Run, Snapshot

CHECKPOINT_EVERY = 30.0  # seconds
# Seconds of a run from which its files are flushed. A shorter one takes less time to play again
# than to flush, and its digests tell whether a power cut damaged it.
FLUSHED_FROM = 1.0
CURVES = "curves.parquet"
MISTAKES = "mistakes.parquet"
FILES: tuple[str, ...] = (CURVES, MISTAKES, checkpoint.NEWEST)
LOCK = ".lock"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Lock the folder of a run during a `with` block. Raise `BusyError` if it is locked already."""
    with locked(folder / LOCK):
        yield


def is_held(folder: Path) -> bool:
    """Return True if a process has the lock of the run in this folder."""
    if not (folder / LOCK).exists():
        return False
    try:
        with held(folder):
            return False
    except BusyError:
        return True
    except StorageError:  # a file of another person, which cannot be locked
        return False


def do_one(
    work: Work,
    *,
    stop: Callable[[], bool] = lambda: False,
    on_progress: OnEvent = lambda event: None,
    every: float,
    patience: float = 0.0,
    entries: Entries | None = None,
) -> tuple[Event, Manifest | None]:
    """Play the missing part of a run. Return the event of its end, and its manifest or None.

    stop : asked after every chunk. If another process has the lock, wait for up to `patience`
    seconds. every : seconds between checkpoints. entries : a cache of solved problems.
    """
    name, deadline = work.folder.name, time.monotonic() + patience
    while True:
        try:
            record = run_in_folder(
                work, stop=stop, on_progress=on_progress, every=every, entries=entries
            )
            return Event(name, record.status, record.error), record
        except BusyError:
            if time.monotonic() >= deadline or stop():
                return Event(name, "busy", "another process works on it"), None
            time.sleep(0.5)
        except Exception as error:  # a folder that cannot be written, a record that is newer
            return Event(name, "failed", str(error)), None


def run_in_folder(
    work: Work,
    *,
    stop: Callable[[], bool] = lambda: False,
    on_progress: OnEvent = lambda event: None,
    every: float = CHECKPOINT_EVERY,
    entries: Entries | None = None,
) -> Manifest:
    """Play the missing part of a run: nothing, the part after its checkpoint, or all of it.

    Return its manifest. Raise `BusyError` if another process has the lock. An error of the run is
    recorded, not raised. stop : asked after every chunk. every : seconds between checkpoints.
    entries : a cache of solved problems.
    """
    # Half a second, for which `status` has no use.
    from cmdplab.experiments.play import Playing, play_one

    def tell(playing: Playing) -> None:
        *_, seconds = run = playing.standing()
        s = run.summary
        rate = (s.episodes - playing.first) / max(seconds, 1e-9)
        far = (s.episodes, rate, s.final_gap, s.final_violation)
        on_progress(Event(work.folder.name, "running", "", *far))

    work.folder.mkdir(parents=True, exist_ok=True)
    with held(work.folder):
        store = Recorded(work.folder, work.settings)
        if store.record.status != "done":
            try:
                if work.settings.precision is not None:
                    raise InputError(f"a run in {work.settings.precision} needs the engine gpu")
                entry = (entries or Entries()).of(work)
                store.enter(entry.algorithm, manifest.machine())
                if work.settings.preset == CUSTOM:
                    # Refuses now, not at a checkpoint, what cannot be stored or made again.
                    first = Playing(entry, snapshot=store.snapshot)
                    Playing(entry, snapshot=first.reached().snapshot())
                play_one(entry, store, store.target, stopped=stop, tell=tell, every=every)
            except Exception as error:
                store.fail(error)
        return store.record


class Recorded:
    """Store of a run in a folder: its tables, its checkpoints and its manifest.

    The caller holds the lock of the folder. The manifest of a finished run stays unchanged. Any
    other manifest is prepared for the next attempt.
    """

    def __init__(self, folder: Path, settings: RunSettings) -> None:
        self.folder, self.snapshot = folder, None
        self.target = math.inf if settings.episodes is None else float(settings.episodes)
        for left in folder.glob(".*.tmp"):  # temporary files of a killed process
            left.unlink(missing_ok=True)
        known = _known(folder, settings)
        self.record = known or Manifest(settings=settings, status="running")
        self._spent = self.record.seconds
        if known is not None:
            known.checked_row()
            if is_done(folder, known):
                removed(folder / LOCK)  # thousands of finished runs need none
                return
        from cmdplab.numerics.noise import philox_key  # loads a compiler

        if self.record.status == "done":
            self.record.notes += _aside(folder, self.record)
        self.record.stream = [hex(int(each)) for each in philox_key(settings.seed)]
        self.record.status, self.record.error = "running", ""
        self.record.attempts += 1

    snapshot: Snapshot | None

    def enter(self, row: Row, here: dict[str, str]) -> None:
        """Find the snapshot to resume from. Write row and machine (`here`) into the manifest."""
        record, settings = self.record, self.record.settings
        found, complaints = checkpoint.find(self.folder)
        record.notes += complaints
        if found is None and complaints:
            record.notes.append("starting again")
        elif found is not None and str(found.pop("run", "")) != settings.folder:
            record.notes.append("the checkpoint belongs to another run; starting again")
            found = None
        if found is not None and record.machine:
            record.notes += _changes(record, here)
        record.machine, record.versions, record.row = here, manifest.versions(), fields_of(row)
        self.snapshot = found
        manifest.write(self.folder, record)

    def save(self, reached: Reached, seconds: float) -> None:
        """Write a checkpoint of a run in progress. seconds : the playing time of this attempt."""
        self._keep(reached, seconds, None)

    def close(self, reached: Reached | None, seconds: float) -> None:
        """Write tables, checkpoint and manifest of a finished or stopped run.

        `reached` is None if this attempt played no episode: only the manifest is written then.
        """
        self.record.status = "interrupted"
        if reached is None:
            manifest.write(self.folder, self.record)
            return
        run = reached.result(self._spent + seconds)
        if run.summary.episodes >= self.target:
            self.record.status = "done"
        self._keep(reached, seconds, run)
        if self.record.status == "done":
            removed(self.folder / LOCK)

    def fail(self, error: Exception) -> None:
        """Write the error into the manifest, with status "failed"."""
        self.record.status = "failed"
        plain = isinstance(error, CmdplabError)
        self.record.error = str(error) if plain else "".join(traceback.format_exception(error))
        with suppress(CmdplabError):  # the disk may be the cause
            manifest.write(self.folder, self.record)

    def _keep(self, reached: Reached, seconds: float, run: Run | None) -> None:
        """Write and flush checkpoint and manifest, and the tables of `run` if it is given."""
        folder, record = self.folder, self.record
        mine = {"run": np.array(record.settings.folder)}
        summary = reached.measures.summary()
        record.seconds, record.episodes = self._spent + seconds, summary.episodes
        record.summary = summary._asdict()
        done = record.status == "done"
        with ExitStack() as files:
            # Renamed in reverse, the manifest last: it never states what is not there.
            own = files.enter_context(written_whole(folder / manifest.NAME, flushed=False))
            paths = {checkpoint.NEWEST: files.enter_context(checkpoint.replaced(folder))}
            put_sealed(paths[checkpoint.NEWEST], reached.snapshot() | mine, compressed=done)
            if run is not None:
                for name in (CURVES, MISTAKES):
                    paths[name] = files.enter_context(written_whole(folder / name, flushed=False))
                    put_runs([run], "curves" if name == CURVES else "mistakes", paths[name])
            if done:
                record.sha256 = {name: file_digest(paths[name]) for name in FILES}
            manifest.put(own, record)
            if record.seconds >= FLUSHED_FROM:
                flush(own, *paths.values())


def is_done(folder: Path, record: Manifest) -> bool:
    """Return True if the manifest `record` says "done" and all files match its digests."""
    if record.status != "done":
        return False
    return {*FILES} <= {*record.sha256} and not _wrong(folder, record)


def _wrong(folder: Path, record: Manifest) -> list[str]:
    return [name for name, known in record.sha256.items() if file_digest(folder / name) != known]


def _aside(folder: Path, record: Manifest) -> list[str]:
    notes = []
    wrong = _wrong(folder, record)
    for name in (CURVES, MISTAKES):
        if name in wrong and (folder / name).exists():
            os.replace(folder / name, folder / f"{name}.damaged")
            notes.append(f"{name} was damaged; set aside and written again")
    return notes


def _known(folder: Path, settings: RunSettings) -> Manifest | None:
    """Return the manifest of this run, or None if there is none.

    A damaged manifest, or that of another run, is renamed. A new one with a note replaces it.
    """
    record = manifest.read_if_good(folder)
    if record is not None and record.settings.folder == settings.folder:
        return record
    if (folder / manifest.NAME).exists():
        os.replace(folder / manifest.NAME, folder / f"{manifest.NAME}.damaged")
        note = "the manifest was damaged; set aside and begun again"
        return Manifest(settings=settings, status="running", notes=[note])
    return None


def _changes(record: Manifest, here: dict[str, str]) -> list[str]:
    """Return notes on a changed machine or changed packages, which may change the last bits."""
    notes = []
    if any(record.machine.get(what) != here[what] for what in ("processor", "features")):
        was, now = record.machine.get("processor"), here["processor"]
        notes.append(f"resumed on {now} after {was}: equal to about 1e-9, not to the bit")
    for name, now in manifest.versions().items():
        if record.versions.get(name) != now:
            notes.append(f"resumed with {name} {now} after {record.versions.get(name)}")
    return notes
