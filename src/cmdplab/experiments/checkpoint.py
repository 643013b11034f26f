"""Checkpoints of runs on disk, with a digest that shows damage.

A checkpoint is an .npz file with a digest of its content. The folder also keeps the checkpoint
before it. Readers try the newest first. They rename a damaged checkpoint and never use it.
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
    """Newest good snapshot of a folder or None, and complaints about damaged checkpoints."""

    snapshot: Snapshot | None
    complaints: list[str]


def save(folder: Path, snapshot: Snapshot) -> None:
    """Write a snapshot as the newest checkpoint of a folder, and flush it to disk."""
    with replaced(folder) as temporary:
        put_sealed(temporary, snapshot, compressed=False)
        flush(temporary)


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Yield a temporary path for the next checkpoint of a folder. The caller writes and flushes it.

    On success the file becomes the newest checkpoint. The newest so far is kept as the one before.
    """
    newest = folder / NEWEST
    with written_whole(folder / _NEW, flushed=False) as temporary:
        yield temporary
    with storage(f"cannot write {newest}"):
        if newest.exists():
            os.replace(newest, folder / BEFORE)
        os.replace(folder / _NEW, newest)


def find(folder: Path) -> Found:
    """Return the newest good snapshot. Rename damaged checkpoints and report each of them."""
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
