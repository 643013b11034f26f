"""Checkpoints: a snapshot on disk that is whole, or known not to be.

Each is an .npz with a digest of its content, written beside the one before it. Reading goes from
the newest to the oldest. A damaged checkpoint is set aside, never deleted and never trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cmdplab.errors import CmdplabError, storage
from cmdplab.files import put_sealed, read_sealed_npz
from cmdplab.files.write import flush, written_whole

if TYPE_CHECKING:
    from cmdplab.experiments.play import Snapshot

NEWEST, BEFORE = "checkpoint.npz", "checkpoint.before.npz"
_NEW = "checkpoint.new.npz"


class Found(NamedTuple):
    """The newest good snapshot of a folder, if there is one, and complaints about others."""

    snapshot: Snapshot | None
    complaints: list[str]


def save(folder: Path, snapshot: Snapshot) -> None:
    """Write the newest checkpoint of a folder, flushed."""
    with replaced(folder) as temporary:
        put_sealed(temporary, snapshot, compressed=False)
        flush(temporary)


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Yield a path for the next checkpoint; the one before it stays until the next one is whole.

    The caller flushes.
    """
    newest = folder / NEWEST
    with written_whole(folder / _NEW, flushed=False) as temporary:
        yield temporary
    with storage(f"cannot write {newest}"):
        if newest.exists():
            os.replace(newest, folder / BEFORE)
        os.replace(folder / _NEW, newest)


def find(folder: Path) -> Found:
    """Return the newest good snapshot; rename and mention damaged files."""
    complaints: list[str] = []
    # A crash can leave the newest under its first name, under which it is whole.
    for path in (folder / name for name in (_NEW, NEWEST, BEFORE)):
        if not path.exists():
            continue
        try:
            arrays = read_sealed_npz(path, ours=True)
            return Found(arrays, complaints)
        except CmdplabError as error:
            names = (path.with_name(f"{path.name}.damaged-{n}") for n in count())
            aside = next(each for each in names if not each.exists())
            os.replace(path, aside)
            complaints.append(f"{error}; set aside as {aside.name}")
    return Found(None, complaints)
