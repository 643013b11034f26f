"""Locks between processes: a file that one process holds, and that is free when it dies.

The system keeps the lock (flock on POSIX, the file's first byte on Windows), not the file: what a
killed process leaves behind holds nobody up. On network file systems it holds as far as they
support it; where they do not, that is said and nothing is written.
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

RETRY = 0.05  # seconds between two attempts of one who waits


class BusyError(StorageError):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock while the block lasts; `BusyError` where another has it, or wait for it."""
    handle = _taken(path)
    while handle is None and wait:
        time.sleep(RETRY)
        handle = _taken(path)
    if handle is None:
        raise BusyError(f"another process works in {path.parent}")
    try:
        yield
    finally:
        os.close(handle)


def removed(path: Path) -> None:
    """Remove the file of a lock that we hold; Windows keeps a file that is open, harmlessly."""
    with suppress(PermissionError):
        path.unlink(missing_ok=True)


def _taken(path: Path) -> int | None:
    """The open file of the lock, or None where another process has it."""
    while True:
        with storage(f"cannot lock {path}"):
            handle = _opened(path)
            try:
                free = _grabbed(handle)
            except OSError:
                os.close(handle)
                raise
        if free and _is_there(path, handle):
            return handle
        os.close(handle)
        if not free:
            return None
        # Who held it has removed the file meanwhile: the name stands for another, or for none.


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)  # NFS locks what can be written
    except PermissionError:
        return os.open(path, os.O_RDONLY)  # somebody else's: enough to see whether it is held


def _grabbed(handle: int) -> bool:
    """Lock an open file without waiting; whether that went well."""
    if fcntl is None:
        windows: Any = import_module("msvcrt")
        try:
            windows.locking(handle, windows.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_there(path: Path, handle: int) -> bool:
    """Whether an open file is still the one of that name; on Windows it cannot be another."""
    if fcntl is None:
        return True
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
