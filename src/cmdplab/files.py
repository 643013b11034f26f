"""Files that are there whole or not at all, and files from outside."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab.errors import InputError

LARGEST_FILE = 8 << 30  # bytes that one file from outside may unpack to


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`: flushed and renamed on success, removed on failure."""
    with renamed(path) as temporary:
        yield temporary
        flush(temporary)


def flush(*paths: Path) -> None:
    """Have files on the disk. All at once: the disk takes as long for five as for one."""

    def one(path: Path) -> None:
        with path.open("rb+") as stream:
            os.fsync(stream.fileno())

    if len(paths) == 1:
        one(*paths)
        return
    with ThreadPoolExecutor(len(paths)) as pool:
        list(pool.map(one, paths))


@contextmanager
def renamed(path: str | Path) -> Iterator[Path]:
    """As `written_whole`, for who flushes several files together, or has nothing to lose."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def writable_folder(path: str | Path) -> Path:
    """Create the folder if need be and make sure that a file can be written in it."""
    folder = Path(path)
    probe = folder / f".probe.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"cannot write into {folder}: {error.strerror or error}") from None
    return folder


def read_npz(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an .npz from outside: never unpickled, never of absurd size."""
    if Path(path).exists() and not Path(path).is_file():
        raise InputError(f"{path} is not a file")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > LARGEST_FILE:
            raise InputError(f"{path} would unpack to {size} bytes, more than {LARGEST_FILE}")
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        for key, each in arrays.items():
            if not isinstance(each, np.ndarray):  # NumPy hands out other members as bytes
                raise InputError(f"{path} cannot be read as .npz: {key!r} is not an array")
        return arrays
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except InputError:
        raise
    except Exception as error:  # zipfile, zlib and numpy each raise kinds of their own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path} cannot be read as .npz: {reason}") from None
