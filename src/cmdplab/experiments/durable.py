"""One run that survives: it checkpoints by time, stops on request, and goes on to the last bit.

Whatever happens to the process, the folder holds a finished run, or a checkpoint to go on from, or
nothing; a lock, which the system releases when a process dies, keeps others out.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cmdplab.algorithms.custom import CUSTOM
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.experiments import checkpoint, manifest
from cmdplab.experiments.experiment import RunSettings, fingerprint
from cmdplab.experiments.manifest import Manifest
from cmdplab.experiments.records.tables import put_curves, put_mistakes
from cmdplab.files.write import flush, renamed
from cmdplab.numerics.noise import philox_key

if TYPE_CHECKING:
    from cmdplab.experiments.run import Playing, Reached, Snapshot
    from cmdplab.solvers import Solution

CHECKPOINT_EVERY = 30.0  # seconds
CURVES = "curves.parquet"
MISTAKES = "mistakes.parquet"
FILES = (CURVES, MISTAKES, checkpoint.NEWEST)
LOCK = ".lock"
MOST_PROBLEMS = 32  # that a worker keeps solved


class BusyError(Exception):
    """Another process works on this run."""


class Standing(NamedTuple):
    """How far a run is."""

    folder: str
    episodes: int
    rate: float  # episodes per second, in this attempt
    gap: float
    violation: float | None
    runs: int = 1  # that go on together: `rate` is of all, gap and violation are medians


class Problems:
    """Problems with their optima, each read and solved once; beyond `most` the oldest go."""

    def __init__(self, *known: tuple[CMDP, Solution], most: int | None = MOST_PROBLEMS) -> None:
        self._most = most
        self._known = {fingerprint(problem): (problem, optimum) for problem, optimum in known}

    def of(self, settings: RunSettings, file: Path) -> tuple[CMDP, Solution]:
        """The problem of a run and its optimum."""
        from cmdplab.solvers import solve_feasible

        mark = settings.fingerprint
        if mark not in self._known:
            problem = problem_of(settings, file)
            if self._most is not None and len(self._known) >= self._most:
                self._known.pop(next(iter(self._known)))
            self._known[mark] = problem, solve_feasible(problem)
        return self._known[mark]


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other processes out of a run's folder; a dead process holds nothing."""
    handle = _locked(folder)
    try:
        yield
    finally:
        os.close(handle)


def _locked(folder: Path) -> int:
    while True:
        handle = os.open(folder / LOCK, os.O_RDONLY | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_there(folder / LOCK, handle):
                return handle
        except BlockingIOError:
            os.close(handle)
            raise BusyError(folder.name) from None
        os.close(handle)  # who finished the run has removed it meanwhile


def _is_there(path: Path, handle: int) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def is_held(folder: Path) -> bool:
    """Whether some process works on the run right now."""
    if not (folder / LOCK).exists():
        return False
    try:
        with held(folder):
            return False
    except BusyError:
        return True
    except OSError:  # not ours to lock, so not ours to know
        return False


def perform(
    folder: Path,
    settings: RunSettings,
    problem_file: Path,
    *,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[Standing], None] = lambda standing: None,
    every: float = CHECKPOINT_EVERY,
    problems: Problems | None = None,
    given: bool = False,
) -> Manifest:
    """Do what is missing of a run: nothing, the rest from its checkpoint, or all of it.

    `given` says that a person gave the import path of its learner, if it is from outside.
    Raises `BusyError` when another process has it. A crash of the run is recorded, not raised.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder):
        record = begin(folder, settings)
        if record.status != "done":
            try:
                playing = _entered(folder, record, problem_file, problems or Problems(), given)
                _advance(folder, record, playing, stop, report, every)
            except Exception as error:
                fail(folder, record, error)
        return record


def begin(folder: Path, settings: RunSettings) -> Manifest:
    """The record of a run: a finished one as it is, any other ready for a next attempt."""
    for left in folder.glob(".*.tmp"):  # of a process that was killed while it wrote
        left.unlink(missing_ok=True)
    known = _known(folder, settings)
    if known is not None and is_done(folder, known):
        (folder / LOCK).unlink(missing_ok=True)  # thousands of finished runs need none
        return known
    record = known or Manifest(settings=settings, status="running")
    record.notes += _aside(folder, record)
    record.stream = [hex(int(each)) for each in philox_key(settings.seed)]
    record.status = "running"
    record.attempts += 1
    record.error = ""
    return record


def fail(folder: Path, record: Manifest, error: Exception) -> None:
    """Record a crash."""
    record.status = "failed"
    plain = isinstance(error, InputError)
    record.error = str(error) if plain else "".join(traceback.format_exception(error))
    with contextlib.suppress(InputError):  # the disk may be what failed
        manifest.write(folder, record)


def is_done(folder: Path, record: Manifest) -> bool:
    """Whether a run is finished and its files are what was written."""
    if record.status != "done":
        return False
    # Runs of versions that counted no mistakes are done all the same.
    return {*FILES} - {MISTAKES} <= {*record.sha256} and not _wrong(folder, record)


def _wrong(folder: Path, record: Manifest) -> list[str]:
    """The files of a finished run that are not what was written."""
    return [
        name for name, known in record.sha256.items() if manifest.sha256(folder / name) != known
    ]


def _aside(folder: Path, record: Manifest) -> list[str]:
    """Set a finished run's damaged tables aside; `checkpoint.find` does so with checkpoints."""
    notes = []
    wrong = _wrong(folder, record) if record.status == "done" else []
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


def _entered(
    folder: Path, record: Manifest, problem_file: Path, problems: Problems, given: bool
) -> Playing:
    """The run as its checkpoint left it, or from its start."""
    from cmdplab.experiments.run import Playing  # half a second, for which `status` has no use

    settings = record.settings
    if settings.precision is not None:
        raise InputError(f"a run in {settings.precision} needs the engine gpu")
    row = settings.row_to_play(given)
    problem, optimum = problems.of(settings, problem_file)
    playing = Playing(
        problem,
        row,
        settings.seed,
        solution=optimum,
        rewards=settings.rewards or "known",
        snapshot=enter(folder, record, manifest.machine()),
    )
    if settings.preset == CUSTOM:
        playing.snapshot()  # refuses now, not at the first checkpoint, what cannot be stored
    return playing


def problem_of(settings: RunSettings, file: Path) -> CMDP:
    """The problem of a run, which must be the one that it was started on."""
    problem = CMDP.load(file)
    if fingerprint(problem) != settings.fingerprint:
        raise InputError(f"{file} is not the problem that this run was started on")
    return problem


def enter(folder: Path, record: Manifest, here: dict[str, str]) -> Snapshot | None:
    """The snapshot to go on from, if any; the record says that the run goes on, and where."""
    snapshot, complaints = _snapshot(folder, record.settings)
    record.notes += complaints
    if snapshot is not None and record.machine:
        record.notes += _changes(record, here)
    record.machine, record.versions = here, manifest.versions()
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


def _advance(
    folder: Path,
    record: Manifest,
    playing: Playing,
    stop: Callable[[], bool],
    report: Callable[[Standing], None],
    every: float,
) -> None:
    from cmdplab.experiments.run import FIRST_CHUNK

    settings = record.settings
    target = np.inf if settings.episodes is None else settings.episodes
    before, began, spent = playing.episodes, time.monotonic(), record.seconds
    saved, size = began, FIRST_CHUNK
    while playing.episodes < target and not stop():
        size = playing.advance(int(min(size, target - playing.episodes)))
        now = time.monotonic()
        s = playing.summary()
        rate = (playing.episodes - before) / max(now - began, 1e-9)
        report(Standing(folder.name, playing.episodes, rate, s.final_gap, s.final_violation))
        record.seconds = spent + now - began
        if now - saved >= every:
            save(folder, record, playing.reached())
            saved = now
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
    tables = {CURVES: partial(put_curves, run), MISTAKES: partial(put_mistakes, run)}
    _keep(folder, record, reached, tables)
    if record.status == "done":
        (folder / LOCK).unlink(missing_ok=True)


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
        own = files.enter_context(renamed(folder / manifest.NAME))
        paths = {checkpoint.NEWEST: files.enter_context(checkpoint.replaced(folder))}
        checkpoint.write(paths[checkpoint.NEWEST], reached.snapshot() | mine, last=done)
        for name, put in tables.items():
            paths[name] = files.enter_context(renamed(folder / name))
            put(paths[name])
        if done:
            record.sha256 = {name: manifest.sha256(paths[name]) for name in FILES}
        manifest.put(own, record)
        flush(own, *paths.values())


def _snapshot(folder: Path, settings: RunSettings) -> tuple[Snapshot | None, list[str]]:
    found = checkpoint.find(folder)
    if found.snapshot is None:
        again = [*found.complaints, "starting again"] if found.complaints else []
        return None, again
    if str(found.snapshot.pop("run", "")) != settings.folder:
        return None, [*found.complaints, "the checkpoint belongs to another run; starting again"]
    if "measure_mistakes" not in found.snapshot:
        return None, [*found.complaints, "the checkpoint is of an older version; starting again"]
    return found.snapshot, found.complaints
