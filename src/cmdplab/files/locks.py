"""Locks between processes, which the operating system releases when the process dies.

The lock is flock on POSIX and a lock of the file's first byte on Windows. A lock file left by a
dead process blocks nobody. A file system without locks raises a `StorageError`.
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
    """Error if another process holds the lock."""


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a file during a `with` block. If another process has it, wait or raise `BusyError`."""
    while (handle := _taken(path)) is None:
        if not wait:
            raise BusyError(f"another process works in {path.parent}")
        time.sleep(RETRY)
    try:
        yield
    finally:
        os.close(handle)


def removed(path: Path) -> None:
    """Remove a lock file that this process holds. On Windows an open file stays."""
    with suppress(PermissionError):
        path.unlink(missing_ok=True)


def _taken(path: Path) -> int | None:
    while True:
        with storage(f"cannot lock {path}"):
            try:
                handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)  # NFS: only writable files
            except PermissionError:
                handle = os.open(path, os.O_RDONLY)  # enough to test the lock
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
