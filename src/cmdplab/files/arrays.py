"""Arrays in .npy and .npz files: plain numbers, booleans and text, but no Python objects.

NumPy reads the header. The size that it states must match the size of the data, before any memory
is allocated.
"""

from __future__ import annotations

import hashlib
import math
import warnings
import zipfile
from collections.abc import Collection, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from cmdplab.errors import CmdplabError, InputError
from cmdplab.files.read import DIGEST, LARGEST, UnfitError, damaged, first_line, opened
from cmdplab.files.write import written_whole

MOST_AXES = 32
MOST_MEMBERS = 10_000
MOST_SQUEEZED = 1100  # a byte of an archive holds at most 1032
CHUNK = 1 << 24
SMALL = 1 << 26

_Array = npt.NDArray[Any]


def read_npy(path: str | Path, what: str = ".npy") -> _Array:
    """Return the array of an .npy file. what : the kind of file, for error messages."""
    try:
        with opened(path) as (stream, size):
            return _array(stream, size)
    except UnfitError as error:
        raise InputError(f"{path} cannot be read as {what}: {error}") from None


def read_npz(
    path: str | Path, names: Collection[str] = ("",), largest: int = 0
) -> dict[str, _Array]:
    """Return the arrays of an .npz file whose names begin with one of `names`, by default all.

    Other arrays are not unpacked. largest : the limit of the unpacked size in bytes; 0: `LARGEST`.
    """
    try:
        with opened(path) as (stream, size), zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            _check_members(path, members, size, largest or LARGEST)
            wanted = [each for each in members if each.filename.startswith(tuple(names))]
            return {_key(each): _member(archive, each) for each in wanted}
    except CmdplabError:
        raise
    except Exception as error:  # zipfile and zlib each raise kinds of their own
        raise InputError(f"{path} cannot be read as .npz: {first_line(error)}") from None


def digest_of_arrays(arrays: Mapping[str, _Array]) -> str:
    """Return the sha256 of the names, shapes, types and values of arrays."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        total.update(f"{name} {array.shape} {array.dtype.str}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def write_sealed_npz(path: str | Path, arrays: Mapping[str, _Array]) -> None:
    """Write arrays and their digest as a compressed .npz file, atomically."""
    with written_whole(path) as temporary:
        put_sealed(temporary, arrays)


def put_sealed(path: Path, arrays: Mapping[str, _Array], *, compressed: bool = True) -> None:
    """Write arrays and their digest into an .npz file, which the caller flushes and renames."""
    content: Any = {**arrays, DIGEST: np.array(digest_of_arrays(arrays))}
    small = sum(each.nbytes for each in content.values()) <= SMALL
    with BytesIO() if small else path.open("wb") as stream:  # NumPy writes in small pieces
        (np.savez_compressed if compressed else np.savez)(stream, **content)
        if isinstance(stream, BytesIO):
            path.write_bytes(stream.getvalue())


def read_sealed_npz(
    path: str | Path, names: Collection[str] = ("",), *, ours: bool = False
) -> dict[str, _Array]:
    """Return arrays as `read_npz` does. Raise an `InputError` if the stated digest differs.

    A file that is `ours` must have a digest. Other files may lack it. If `names` leaves arrays out,
    a small file is read whole, because its digest covers all arrays.
    """
    arrays = read_npz(path, (*names, DIGEST))
    stated = arrays.pop(DIGEST, None)
    if (stated is None and not ours) or str(stated) == digest_of_arrays(arrays):
        return arrays
    if ours:
        raise damaged(path)
    try:
        every = read_npz(path, largest=SMALL)
    except InputError:  # too large to be read whole for its digest
        every = {}
    if str(every.pop(DIGEST, None)) != digest_of_arrays(every):
        raise InputError(f"{damaged(path)}; if you changed it, leave out the array 'digest'")
    return arrays


def _check_members(
    path: str | Path, members: list[zipfile.ZipInfo], size: int, largest: int
) -> None:
    total = sum(each.file_size for each in members)
    if total > largest:
        raise InputError(f"{path} would unpack to {total} bytes, more than {largest}")
    if len(members) > MOST_MEMBERS or len({each.filename for each in members}) < len(members):
        raise UnfitError("an array stands twice, or there are too many")
    for each in members:
        if each.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UnfitError(f"{_key(each)!r} is compressed in a way unknown here")
        if each.compress_size > size or each.file_size > MOST_SQUEEZED * (each.compress_size + 1):
            raise UnfitError(f"{_key(each)!r} cannot be as large as it says")


def _key(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> _Array:
    try:
        with archive.open(member) as stream:
            return _array(stream, member.file_size)  # type: ignore[arg-type]
    except UnfitError as error:
        raise UnfitError(f"{_key(member)!r} {error}") from None


def _array(stream: BinaryIO, size: int) -> _Array:
    shape, fortran, dtype = _header(stream)
    held, needed = size - stream.tell(), math.prod(shape) * dtype.itemsize
    if needed != held:
        raise UnfitError(f"should hold {needed} bytes and holds {held}")
    data = np.empty(needed, dtype=np.uint8)
    for start in range(0, needed, CHUNK):
        piece = stream.read(min(CHUNK, needed - start))
        if len(piece) < min(CHUNK, needed - start):
            raise UnfitError("ends too early")
        data[start : start + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
    if stream.read(1):  # here an archive compares its checksum
        raise UnfitError("goes on after its end")
    _check_data(data, dtype)
    array = data.view(dtype).reshape(shape, order="F" if fortran else "C")
    return np.ascontiguousarray(array, dtype=dtype.newbyteorder("=")).reshape(shape)


def _header(stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order (True: Fortran) and type of an array of numbers, booleans or text."""
    try:
        version = npy.read_magic(stream)
    except ValueError:
        raise UnfitError("is not an array") from None
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise UnfitError("is of a version of the format unknown here")
    # Version 3 differs from version 2 in names of fields, which plain arrays do not have.
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    try:
        with warnings.catch_warnings(action="ignore"):  # on headers of Python 2
            shape, fortran, dtype = read(stream)
    except zipfile.BadZipFile:
        raise
    except Exception as error:  # also errors of the tokenizer and of big integers
        raise UnfitError(f"has a header that makes no sense: {first_line(error)}") from None
    if dtype.kind not in "biufU" or dtype.itemsize > (8 if dtype.kind != "U" else LARGEST):
        raise UnfitError(f"holds {dtype.str[:24]!r}, not plain numbers, booleans or text")
    # Empty axes do not excuse the others: NumPy multiplies them all the same.
    whole = math.prod(max(each, 1) for each in shape) * dtype.itemsize
    if min(shape, default=0) < 0 or len(shape) > MOST_AXES or not 0 < whole <= LARGEST:
        raise UnfitError(f"cannot have {len(shape)} axes and take {whole} bytes")
    return shape, fortran, dtype


def _check_data(data: npt.NDArray[np.uint8], dtype: np.dtype[Any]) -> None:
    if dtype.kind == "b" and (data > 1).any():
        raise UnfitError("holds booleans that are neither true nor false")
    if dtype.kind == "U":
        letters = data.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        if ((letters > 0x10FFFF) | ((letters >= 0xD800) & (letters <= 0xDFFF))).any():
            raise UnfitError("holds text that is none")
