"""One run that survives: it checkpoints by time, stops on request, and goes on to the last bit.

Whatever happens to the process, the folder holds a finished run, or a checkpoint to go on from, or
nothing; a lock, which the system releases when a process dies, keeps others out.
"""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
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
from cmdplab.experiments.work import Entries, Standing, Work
from cmdplab.files import file_digest
from cmdplab.files.locks import BusyError, locked, removed
from cmdplab.files.write import flush, written_whole

if TYPE_CHECKING:
    from cmdplab.algorithms.row import Row
    from cmdplab.experiments.play import Playing, Reached, Snapshot

CHECKPOINT_EVERY = 30.0  # seconds
CURVES = "curves.parquet"
MISTAKES = "mistakes.parquet"
FILES: tuple[str, ...] = (CURVES, MISTAKES, checkpoint.NEWEST)
LOCK = ".lock"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other processes out of a run's folder; a dead process holds nothing."""
    with locked(folder / LOCK):
        yield


def is_held(folder: Path) -> bool:
    """Whether some process works on the run right now."""
    if not (folder / LOCK).exists():
        return False
    try:
        with held(folder):
            return False
    except BusyError:
        return True
    except StorageError:  # not ours to lock, so not ours to know
        return False


def run_in_folder(
    work: Work,
    *,
    stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Standing], None] = lambda standing: None,
    every: float = CHECKPOINT_EVERY,
    entries: Entries | None = None,
) -> Manifest:
    """Do what is missing of a run: nothing, the rest from its checkpoint, or all of it.

    Raises `BusyError` when another process has it. A crash of the run is recorded, not raised.
    """
    folder = work.folder
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder):
        record = begin(folder, work.settings)
        if record.status != "done":
            try:
                playing = _entered(work, record, entries or Entries())
                _play(folder, record, playing, stop, on_progress, every)
            except Exception as error:
                fail(folder, record, error)
        return record


def begin(folder: Path, settings: RunSettings) -> Manifest:
    """The record of a run: a finished one as it is, any other ready for a next attempt."""
    for left in folder.glob(".*.tmp"):  # of a process that was killed while it wrote
        left.unlink(missing_ok=True)
    known = _known(folder, settings)
    if known is not None:
        known.checked_row()
    if known is not None and is_done(folder, known):
        removed(folder / LOCK)  # thousands of finished runs need none
        return known
    from cmdplab.numerics.noise import philox_key  # loads a compiler, as whoever plays does

    record = known or Manifest(settings=settings, status="running")
    if record.status == "done":
        record.notes += _aside(folder, record)
    record.stream = [hex(int(each)) for each in philox_key(settings.seed)]
    record.status = "running"
    record.attempts += 1
    record.error = ""
    return record


def fail(folder: Path, record: Manifest, error: Exception) -> None:
    """Record a crash."""
    record.status = "failed"
    plain = isinstance(error, CmdplabError)
    record.error = str(error) if plain else "".join(traceback.format_exception(error))
    with contextlib.suppress(CmdplabError):  # the disk may be what failed
        manifest.write(folder, record)


def is_done(folder: Path, record: Manifest) -> bool:
    """Whether a run is finished and its files are what was written."""
    if record.status != "done":
        return False
    return {*FILES} <= {*record.sha256} and not _wrong(folder, record)


def _wrong(folder: Path, record: Manifest) -> list[str]:
    """The files of a finished run that are not what was written."""
    return [name for name, known in record.sha256.items() if file_digest(folder / name) != known]


def _aside(folder: Path, record: Manifest) -> list[str]:
    """Set a finished run's damaged tables aside; `checkpoint.find` does so with checkpoints."""
    notes = []
    wrong = _wrong(folder, record)
    for name in (CURVES, MISTAKES):
        if name in wrong and (folder / name).exists():
            os.replace(folder / name, folder / f"{name}.damaged")
            notes.append(f"{name} was damaged; set aside and written again")
    return notes


def _known(folder: Path, settings: RunSettings) -> Manifest | None:
    """The manifest, if it is whole and of this run; else it is set aside."""
    record = manifest.read_if_good(folder)
    if record is not None and record.settings.folder == settings.folder:
        return record
    if (folder / manifest.NAME).exists():
        os.replace(folder / manifest.NAME, folder / f"{manifest.NAME}.damaged")
        fresh = Manifest(settings=settings, status="running")
        fresh.notes.append("the manifest was damaged; set aside and begun again")
        return fresh
    return None


def _entered(work: Work, record: Manifest, entries: Entries) -> Playing:
    """The run as its checkpoint left it, or from its start."""
    # Half a second, for which `status` has no use.
    from cmdplab.experiments.play import Playing

    if record.settings.precision is not None:
        raise InputError(f"a run in {record.settings.precision} needs the engine gpu")
    entry = entries.of(work)
    snapshot = enter(work.folder, record, entry.algorithm, manifest.machine())
    playing = Playing(entry, snapshot=snapshot)
    if record.settings.preset == CUSTOM:
        # Refuses now, not at a checkpoint or after a kill, what cannot be stored or made again.
        Playing(entry, snapshot=playing.reached().snapshot())
    return playing


def enter(folder: Path, record: Manifest, row: Row, here: dict[str, str]) -> Snapshot | None:
    """The snapshot to go on from, if any; the record says that the run goes on, and where."""
    snapshot, complaints = _snapshot(folder, record.settings)
    record.notes += complaints
    if snapshot is not None and record.machine:
        record.notes += _changes(record, here)
    record.machine, record.versions, record.row = here, manifest.versions(), fields_of(row)
    record.status = "running"
    manifest.announce(folder, record)
    return snapshot


def _changes(record: Manifest, here: dict[str, str]) -> list[str]:
    """What may change the last bits of a resumed run."""
    notes = []
    if any(record.machine.get(what) != here[what] for what in ("processor", "features")):
        was, now = record.machine.get("processor"), here["processor"]
        notes.append(f"resumed on {now} after {was}: equal to about 1e-9, not to the bit")
    for name, now in manifest.versions().items():
        if record.versions.get(name) != now:
            notes.append(f"resumed with {name} {now} after {record.versions.get(name)}")
    return notes


def _play(
    folder: Path,
    record: Manifest,
    playing: Playing,
    stop: Callable[[], bool],
    on_progress: Callable[[Standing], None],
    every: float,
) -> None:
    """Play a run to its end or to a stop, with a checkpoint now and then."""
    from cmdplab.experiments.play import play_on

    target = np.inf if record.settings.episodes is None else record.settings.episodes
    before, spent, saved = playing.episodes, record.seconds, 0.0

    def after() -> None:
        nonlocal saved
        _, _, s, *_, seconds = playing.standing()
        rate = (s.episodes - before) / max(seconds, 1e-9)
        on_progress(Standing(folder.name, s.episodes, rate, s.final_gap, s.final_violation))
        record.seconds = spent + seconds
        if seconds - saved >= every:
            save(folder, record, playing.reached())
            saved = seconds

    play_on(playing, target, stop, after)
    close(folder, record, playing.reached() if playing.episodes else None)


def close(folder: Path, record: Manifest, reached: Reached | None) -> None:
    """Leave a run that is done or was stopped: its tables, its checkpoint, its manifest."""
    settings = record.settings
    record.status = "interrupted"
    if reached is None:
        manifest.write(folder, record)
        return
    run = [reached.so_far(record.seconds)]
    if settings.episodes is not None and run[0].summary.episodes >= settings.episodes:
        record.status = "done"
    tables = {CURVES: partial(put_runs, run, "curves")}
    tables |= {MISTAKES: partial(put_runs, run, "mistakes")}
    _keep(folder, record, reached, tables)
    if record.status == "done":
        removed(folder / LOCK)


def save(folder: Path, record: Manifest, reached: Reached) -> None:
    """A checkpoint of a run that goes on."""
    _keep(folder, record, reached, {})


def _keep(
    folder: Path,
    record: Manifest,
    reached: Reached,
    tables: Mapping[str, Callable[[Path], None]],
) -> None:
    """Checkpoint, tables and manifest, flushed together."""
    mine = {"run": np.array(record.settings.folder)}
    summary = reached.measures.summary()
    record.episodes = summary.episodes
    record.summary = summary._asdict()
    done = record.status == "done"
    with contextlib.ExitStack() as files:
        # Renamed in reverse, the manifest last: it never promises what is not there.
        own = files.enter_context(written_whole(folder / manifest.NAME, flushed=False))
        paths = {checkpoint.NEWEST: files.enter_context(checkpoint.replaced(folder))}
        checkpoint.write(paths[checkpoint.NEWEST], reached.snapshot() | mine, last=done)
        for name, put in tables.items():
            paths[name] = files.enter_context(written_whole(folder / name, flushed=False))
            put(paths[name])
        if done:
            record.sha256 = {name: file_digest(paths[name]) for name in FILES}
        manifest.put(own, record)
        flush(own, *paths.values())


def _snapshot(folder: Path, settings: RunSettings) -> tuple[Snapshot | None, list[str]]:
    found = checkpoint.find(folder)
    if found.snapshot is None:
        again = [*found.complaints, "starting again"] if found.complaints else []
        return None, again
    if str(found.snapshot.pop("run", "")) != settings.folder:
        return None, [*found.complaints, "the checkpoint belongs to another run; starting again"]
    return found.snapshot, found.complaints
