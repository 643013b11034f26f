"""Atomic writing of files: a file is complete or not there."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from cmdplab.errors import storage


@contextmanager
def written_whole(path: str | Path, *, flushed: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside `path`. The file is renamed to `path` on success, else removed.

    flushed : False if the caller flushes the file or may lose it.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with storage(f"cannot write {target}"):
            yield temporary
            if flushed:
                flush(temporary)
            temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a UTF-8 text file atomically."""
    with written_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def flush(*paths: Path) -> None:
    """Flush files to disk, in parallel."""
    if len(paths) > 1:
        with ThreadPoolExecutor(len(paths)) as pool:
            list(pool.map(flush, paths))
        return
    with paths[0].open("rb+") as stream:
        os.fsync(stream.fileno())


def writable_folder(path: str | Path) -> Path:
    """Create the folder if it is missing, check that it is writable, and return it."""
    folder = Path(path)
    probe = folder / f".probe.{os.getpid()}"
    with storage(f"cannot write into {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    return folder


def to_json(value: Any, indent: int | None = 2) -> str:
    """Return strict JSON text. NaN and infinities become null, arrays become lists."""
    return json.dumps(_plain(value), indent=indent, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, np.ndarray) and value.dtype.kind in "biu":
        return value.tolist()
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value
