"""Status of runs, and an index of statuses that avoids opening the files of thousands of runs.

DIR/.index has a line for each run: its status, and size and time of change of its files. A line is
used only while its files are unchanged. Otherwise the status is derived from the run's folder.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from cmdplab.errors import InputError
from cmdplab.experiments import manifest
from cmdplab.experiments.durable import FILES, is_done, is_held
from cmdplab.experiments.manifest import Manifest
from cmdplab.experiments.work import Event, Work
from cmdplab.files.write import written_whole

EXPERIMENT = "experiment.json"  # lists the runs of a folder
NAME = ".index"
_FILES = (manifest.NAME, *FILES)
_LASTING = {"done", "failed", "interrupted"}  # until a file changes
_TICK = 100_000_000  # nanoseconds: files changed twice within a tick of the clock look unchanged
_KEPT = ("status", "episodes", "rate", "gap", "violation", "error", "notes")
_LONGEST = 1 << 16  # bytes of a line: a traceback that is longer is read from its manifest

Seen = list[list[int]]  # size and time of change of each file, [] if it is missing


class RunStatus(NamedTuple):
    """Status of one run, as `cmdplab status` prints it in a line."""

    folder: str
    problem: str
    algorithm: str
    preset: str
    seed: int
    status: str  # missing, running, interrupted, done, damaged, failed
    episodes: int
    of: int | None
    rate: float | None  # episodes per second of computing
    gap: float | None
    violation: float | None
    error: str
    notes: list[str]  # notes on renamed files, another processor, ...
    precision: str = "float64"
    label: str = ""  # the algorithm, and differing settings
    settings: dict[str, Any] = {}  # noqa: RUF012 - all of the algorithm's settings


def status_of(work: Work) -> RunStatus:
    """Return the status of a run from its manifest, its files and its lock."""
    return status_by(work, manifest.read_if_good(work.folder))


def status_by(work: Work, record: Manifest | None, status: str = "") -> RunStatus:
    """Return the status of a run from its manifest `record`, "missing" if that is None.

    If `status` is empty, derive it from the files and the lock.
    """
    if record is None:
        return _missing(work)
    return _missing(work)._replace(
        status=status or _status(work, record),
        episodes=record.episodes,
        rate=record.episodes / record.seconds if record.seconds else None,
        gap=record.summary.get("final_gap"),
        violation=record.summary.get("final_violation"),
        error=record.error,
        notes=record.notes,
    )


def with_end(status: RunStatus, end: Event | None) -> RunStatus:
    """Add the error of the event `end` to a status whose files do not show it."""
    if end is None or not end.error:
        return status
    if end.status == "failed" and status.status != "failed":
        return status._replace(status="failed", error=end.error)
    if end.status == "interrupted" and status.status in ("interrupted", "missing"):
        return status._replace(error=end.error)
    return status


def _missing(work: Work) -> RunStatus:
    s = work.settings
    head = (work.folder.name, s.problem, s.algorithm, s.preset, s.seed)
    tail = (s.precision or "float64", work.label, dict(s.settings()))
    return RunStatus(*head, "missing", 0, s.episodes, None, None, None, "", [], *tail)


def _status(work: Work, record: Manifest) -> str:
    if record.settings.folder != work.settings.folder:
        return "damaged"  # it is of another run
    if record.status == "running" and not is_held(work.folder):
        return "interrupted"  # its process is gone
    if record.status == "done" and not is_done(work.folder, record):
        return "damaged"
    return record.status


class Index:
    """Index of the statuses of a sweep's runs. Statuses that it lacks are read from the folders."""

    def __init__(self, works: Sequence[Work]) -> None:
        home = home_of(works)
        self._file = None if home is None else home / NAME
        self._lines, self._written = _read(self._file, len(works))
        self._new: list[bytes] = []
        self.sha256: dict[str, dict[str, str]] = {}  # run -> file -> hash, set by `status`

    def status(self, work: Work) -> RunStatus:
        """Return the status of a run, as `status_of` does. Set `sha256` of the run."""
        seen = _seen(work.folder)
        known = self._lines.get(work.folder.name)
        if known is not None and known["seen"] == seen:
            self.sha256[work.folder.name] = known["sha256"]
            return _missing(work)._replace(**{name: known[name] for name in _KEPT})
        record = manifest.read_if_good(work.folder)
        self.sha256[work.folder.name] = {} if record is None else record.sha256
        status = status_by(work, record)
        if record is not None and status.status in _LASTING and _is_old(seen):
            line = {"run": status.folder, "seen": seen, "sha256": record.sha256}
            line |= {name: getattr(status, name) for name in _KEPT}
            self._lines[status.folder] = line
            self._new.append(sealed_line(line))
        return status

    def save(self) -> None:
        """Append new lines to the index file. Do nothing if it cannot be written."""
        if self._file is None or not self._new:
            return
        lines, self._new = self._new, []
        self._written += len(lines)
        with suppress(OSError, InputError):
            if self._written <= 2 * len(self._lines) + 100:
                with self._file.open("ab") as stream:
                    stream.write(b"\n" + b"\n".join(lines) + b"\n")
                return
            with written_whole(self._file, flushed=False) as temporary:  # most lines are old
                temporary.write_bytes(b"\n".join(map(sealed_line, self._lines.values())) + b"\n")
            self._written = len(self._lines)


def statuses(works: Sequence[Work]) -> list[RunStatus]:
    """Return the status of each run, and update the index."""
    index = Index(works)
    found = [index.status(work) for work in works]
    index.save()
    return found


def home_of(works: Sequence[Work]) -> Path | None:
    """Return the folder of the experiment of these works. None for a run in a folder of its own."""
    homes = {work.folder.parent for work in works}
    home = homes.pop().parent if len(homes) == 1 else None
    return home if home is not None and (home / EXPERIMENT).exists() else None


def _seen(folder: Path) -> Seen:
    found: Seen = []
    for name in _FILES:
        try:
            about = os.stat(f"{folder}/{name}")
            found.append([about.st_size, about.st_ctime_ns])
        except OSError:
            found.append([])
    return found


def _is_old(seen: Seen) -> bool:
    return all(each[1] + _TICK < time.time_ns() for each in seen if each)


def sealed_line(line: dict[str, Any]) -> bytes:
    """Return `line` as one line of JSON after a checksum, which shows a half-written line."""
    text = json.dumps(line, separators=(",", ":")).encode()
    return b"%08x %s" % (zlib.crc32(text), text)


def good_lines(lines: Iterable[bytes], needed: Set[str]) -> Iterable[dict[str, Any]]:
    """Yield the undamaged lines of `sealed_line` that have all fields in `needed`."""
    for text in lines:
        mark, _, content = text.partition(b" ")
        if mark == b"%08x" % zlib.crc32(content) and len(text) < _LONGEST:
            with suppress(ValueError, RecursionError):
                line = json.loads(content)
                if isinstance(line, dict) and needed <= line.keys():
                    yield line


def _read(file: Path | None, runs: int) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the last good line of each run by its name, and the number of lines of an index file.

    runs : the number of runs. A file that is missing, or too large for so many runs, gives ({}, 0).
    """
    try:
        if file is None or file.stat().st_size > (4 * runs + 1000) * 4096:  # not ours
            return {}, 0
        lines = file.read_bytes().split(b"\n")
    except OSError:
        return {}, 0
    found = {line["run"]: line for line in good_lines(lines, {"run", "seen", "sha256", *_KEPT})}
    return found, len(lines)
