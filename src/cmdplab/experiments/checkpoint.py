"""Checkpoints: a snapshot on disk that is whole, or known not to be.

Each is an .npz with a digest of its own content, written beside the one before it. Reading goes
from the newest to the oldest; what is damaged is set aside, never deleted and never trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmdplab.errors import CmdplabError, storage
from cmdplab.files import DIGEST, digest_of_arrays, read_npz
from cmdplab.files.read import damaged
from cmdplab.files.write import flush, written_whole

if TYPE_CHECKING:
    from cmdplab.experiments.play import Snapshot

NEWEST, BEFORE = "checkpoint.npz", "checkpoint.before.npz"


class Found(NamedTuple):
    """The newest good snapshot of a folder, if there is one, and what was wrong with others."""

    snapshot: Snapshot | None
    complaints: list[str]


def write(path: Path, snapshot: Snapshot, last: bool = False) -> None:
    """Write a snapshot with its digest; the last one of a run stays, so it is compressed."""
    content: dict[str, Any] = {**snapshot, DIGEST: np.array(digest_of_arrays(snapshot))}
    with path.open("wb") as stream:
        (np.savez_compressed if last else np.savez)(stream, **content)


def save(folder: Path, snapshot: Snapshot) -> None:
    """Write a checkpoint; the one before it stays until this one is whole on disk."""
    with replaced(folder) as temporary:
        write(temporary, snapshot)
        flush(temporary)


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Yield a path for the next checkpoint; the one before it stays until that one is whole.

    Whoever writes there flushes.
    """
    newest, before = folder / NEWEST, folder / BEFORE
    with written_whole(folder / "checkpoint.new.npz", flushed=False) as temporary:
        yield temporary
    with storage(f"cannot write {newest}"):
        if newest.exists():
            os.replace(newest, before)
        os.replace(folder / "checkpoint.new.npz", newest)


def find(folder: Path) -> Found:
    """The newest good snapshot; a damaged file is renamed and mentioned."""
    complaints: list[str] = []
    # A crash can leave the newest under its first name: it is whole, or it would not be there.
    for name in ("checkpoint.new.npz", NEWEST, BEFORE):
        path = folder / name
        if not path.exists():
            continue
        try:
            return Found(_read(path), complaints)
        except CmdplabError as error:
            aside = _aside(path)
            complaints.append(f"{error}; set aside as {aside.name}")
    return Found(None, complaints)


def _read(path: Path) -> Snapshot:
    arrays = read_npz(path)
    stated = str(arrays.pop(DIGEST, ""))
    if stated != digest_of_arrays(arrays):
        raise damaged(path.name)
    return arrays


def _aside(path: Path) -> Path:
    for n in range(1000):
        aside = path.with_name(f"{path.name}.damaged-{n}")
        if not aside.exists():
            break
    os.replace(path, aside)
    return aside
