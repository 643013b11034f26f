"""Locks between processes: a file that one process holds, and that is free when it dies.

The system keeps the lock (flock on POSIX, the file's first byte on Windows), so the file of a
killed process blocks nobody. A network file system that has no locks is an error.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from cmdplab.errors import StorageError, storage

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

RETRY = 0.05  # seconds between two attempts to get a lock


class BusyError(StorageError):
    """The error if another process holds the lock."""


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock while the block lasts; if another process has it, wait or raise `BusyError`."""
    while (handle := _taken(path)) is None:
        if not wait:
            raise BusyError(f"another process works in {path.parent}")
        time.sleep(RETRY)
    try:
        yield
    finally:
        os.close(handle)


def removed(path: Path) -> None:
    """Remove the file of a lock that this process holds; Windows keeps an open file."""
    with suppress(PermissionError):
        path.unlink(missing_ok=True)


def _taken(path: Path) -> int | None:
    """Return the open file of the lock, or None if another process has it."""
    while True:
        with storage(f"cannot lock {path}"):
            try:
                handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)  # NFS: only writable files
            except PermissionError:
                handle = os.open(path, os.O_RDONLY)  # enough to see whether it is held
            try:
                free = _grabbed(handle)
            except OSError:
                os.close(handle)
                raise
        with suppress(FileNotFoundError):
            # On Windows an open file always has its name.
            if free and (fcntl is None or os.path.samestat(path.stat(), os.fstat(handle))):
                return handle
        os.close(handle)
        if not free:
            return None
        # The holder has removed the file meanwhile: its name stands for another file, or for none.


def _grabbed(handle: int) -> bool:
    """Lock an open file without waiting; return False if another process has the lock."""
    try:
        if fcntl is None:
            windows: Any = import_module("msvcrt")
            windows.locking(handle, windows.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if fcntl is None or isinstance(error, BlockingIOError):
            return False
        raise
    return True
