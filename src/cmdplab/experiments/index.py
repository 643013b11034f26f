"""The index of a sweep: where thousands of runs stand, without opening their files.

DIR/.index holds a line for a run: where it stands, and the size and time of change of the files
from which that was found. The truth stays in the runs' folders: a line counts only while the files
are still those, and a missing, old or damaged line costs a look into the folder, no more.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

from cmdplab.errors import InputError
from cmdplab.experiments import manifest
from cmdplab.experiments.durable import FILES
from cmdplab.experiments.status import RunStatus, missing, status_by
from cmdplab.experiments.work import Work
from cmdplab.files.write import written_whole

EXPERIMENT = "experiment.json"  # lists the runs of a folder
NAME = ".index"
_FILES = (manifest.NAME, *FILES)
_LASTING = {"done", "failed", "interrupted"}  # until a file changes, whoever goes on with it
_TICK = 100_000_000  # nanoseconds: files changed twice within a tick of the clock look unchanged
_KEPT = ("status", "episodes", "rate", "gap", "violation", "error", "notes")
_LONGEST = 1 << 16  # bytes of a line: a traceback that is longer is read from its manifest

Seen = list[list[int]]  # size and time of change of each file, [] where there is none


class Index:
    """What is known of the runs of a sweep; it reads what it does not know, and remembers it."""

    def __init__(self, works: Sequence[Work]) -> None:
        home = home_of(works)
        self._file = None if home is None else home / NAME
        self._lines, self._written = _read(self._file, len(works))
        self._new: list[bytes] = []

    def status(self, work: Work) -> RunStatus:
        """Where a run stands, as `status_of` says."""
        seen = _seen(work.folder)
        known = self._lines.get(work.folder.name)
        if known is not None and known["seen"] == seen:
            return missing(work)._replace(**{name: known[name] for name in _KEPT})
        record = manifest.read_if_good(work.folder)
        status = status_by(work, record)
        if record is not None and status.status in _LASTING and _is_old(seen):
            line = {"run": status.folder, "seen": seen, "sha256": record.sha256}
            line |= {name: getattr(status, name) for name in _KEPT}
            self._lines[status.folder] = line
            self._new.append(sealed_line(line))
        return status

    def digests(self, work: Work) -> dict[str, str]:
        """Of the files of a finished run."""
        known = self._lines.get(work.folder.name)
        if known is not None and known["seen"] == _seen(work.folder):
            return dict(known["sha256"])
        record = manifest.read_if_good(work.folder)
        return {} if record is None else record.sha256

    def save(self) -> None:
        """Append what is new, so that several processes can; where nobody may write, nothing."""
        if self._file is None or not self._new:
            return
        lines, self._new = self._new, []
        self._written += len(lines)
        with suppress(OSError, InputError):
            if self._written <= 2 * len(self._lines) + 100:
                with self._file.open("ab") as stream:
                    stream.write(b"\n" + b"\n".join(lines) + b"\n")
                return
            with written_whole(self._file, flushed=False) as temporary:  # most are old
                temporary.write_bytes(b"\n".join(map(sealed_line, self._lines.values())) + b"\n")
            self._written = len(self._lines)


def statuses(works: Sequence[Work]) -> list[RunStatus]:
    """Where runs stand."""
    index = Index(works)
    found = [index.status(work) for work in works]
    index.save()
    return found


def home_of(works: Sequence[Work]) -> Path | None:
    """The folder of the experiment; None for a run in a folder of its own."""
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
    """Whether a later change of a file would show in its time."""
    return all(each[1] + _TICK < time.time_ns() for each in seen if each)


def sealed_line(line: dict[str, Any]) -> bytes:
    """JSON on one line, after its checksum: a half-written one is told from a whole one."""
    text = json.dumps(line, separators=(",", ":")).encode()
    return b"%08x %s" % (zlib.crc32(text), text)


def _read(file: Path | None, runs: int) -> tuple[dict[str, dict[str, Any]], int]:
    """The last good line of each run, and how many lines there are."""
    try:
        if file is None or file.stat().st_size > (4 * runs + 1000) * 4096:  # not ours
            return {}, 0
        lines = file.read_bytes().split(b"\n")
    except OSError:
        return {}, 0
    found = {line["run"]: line for line in good_lines(lines, {"run", "seen", "sha256", *_KEPT})}
    return found, len(lines)


def good_lines(lines: Iterable[bytes], needed: Set[str]) -> Iterable[dict[str, Any]]:
    """What `sealed_line` wrote, as far as it is whole and has the fields needed."""
    for text in lines:
        mark, _, content = text.partition(b" ")
        if mark == b"%08x" % zlib.crc32(content) and len(text) < _LONGEST:
            with suppress(ValueError, RecursionError):
                line = json.loads(content)
                if isinstance(line, dict) and needed <= line.keys():
                    yield line
