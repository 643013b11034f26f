"""Arrays of .npy and .npz files, whose headers are read here before NumPy sees anything.

Plain numbers, booleans and text only: no objects, so nothing to unpickle, and no header is ever
evaluated. An array is as large as its file says and as its file is, or it is refused.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.errors import CmdplabError, InputError
from cmdplab.files.digests import DIGEST, damaged, digest_of_arrays
from cmdplab.files.read import LARGEST, first_line, opened
from cmdplab.files.write import written_whole

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 10_000  # bytes, as NumPy has it
LONGEST_TEXT = 1 << 20  # letters
MOST_AXES = 32
MOST_MEMBERS = 10_000
MOST_SQUEEZED = 1100  # a byte of an archive holds at most 1032
CHUNK = 1 << 24

_SHAPE = r"\(\s*(?:[0-9]{1,18}\s*,\s*)+(?:[0-9]{1,18}\s*)?\)|\(\s*\)"
_ITEM = rf"""['"](descr|fortran_order|shape)['"]\s*:\s*(['"][^'"]*['"]|True|False|{_SHAPE})"""
_HEADER = re.compile(rf"\{{\s*{_ITEM}\s*,\s*{_ITEM}\s*,\s*{_ITEM}\s*,?\s*\}}\s*", re.ASCII)
_TYPES = re.compile(r"[<>|=]?(?:b1|[iu][1248]|f[248]|U[1-9][0-9]{0,6})", re.ASCII)


class Header(NamedTuple):
    """Type, shape and order of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool  # the first axis varies fastest

    @property
    def size(self) -> int:
        """Bytes of its data."""
        return math.prod(self.shape) * self.dtype.itemsize


class _WrongError(ValueError):
    """A fault of an array, without the name of its file."""


def read_npy(path: str | Path, what: str = ".npy") -> npt.NDArray[Any]:
    """The array of an .npy file; `what` is the word for it in a complaint."""
    try:
        with opened(path) as (stream, size):
            return _array(stream, size)
    except _WrongError as error:
        raise InputError(f"{path} cannot be read as {what}: {error}") from None


def read_npz(path: str | Path, names: Collection[str] = ("",)) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an .npz file whose names begin with one of `names`; by default all.

    Others are not unpacked: a file of 2 MB can hold a gigabyte that nobody reads.
    """
    try:
        with opened(path) as (stream, size), zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            _check_members(path, members, size)
            wanted = [each for each in members if each.filename.startswith(tuple(names))]
            return {_key(each): _member(archive, each) for each in wanted}
    except CmdplabError:
        raise
    except _WrongError as error:
        raise InputError(f"{path} cannot be read as .npz: {error}") from None
    except Exception as error:  # zipfile and zlib each raise kinds of their own
        raise InputError(f"{path} cannot be read as .npz: {first_line(error)}") from None


def write_sealed_npz(path: str | Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write arrays and their digest as a compressed .npz, whole or not at all."""
    with written_whole(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **arrays, digest=np.array(digest_of_arrays(arrays)))  # type: ignore[arg-type]


def read_sealed_npz(
    path: str | Path, names: Collection[str] = ("",)
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays as `read_npz` does, if they match the digest; files of others have none."""
    arrays = read_npz(path, (*names, DIGEST))
    stated = arrays.pop(DIGEST, None)
    if stated is not None and str(stated) != digest_of_arrays(arrays):
        advice = "if you changed it, leave out the array 'digest'"
        raise InputError(f"{damaged(path)}; {advice}")
    return arrays


def _check_members(path: str | Path, members: list[zipfile.ZipInfo], size: int) -> None:
    total = sum(each.file_size for each in members)
    if total > LARGEST:
        raise InputError(f"{path} would unpack to {total} bytes, more than {LARGEST}")
    if len(members) > MOST_MEMBERS or len({each.filename for each in members}) < len(members):
        raise _WrongError("an array stands twice, or there are too many")
    for each in members:
        if each.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _WrongError(f"{_key(each)!r} is compressed in a way unknown here")
        if each.compress_size > size or each.file_size > MOST_SQUEEZED * (each.compress_size + 1):
            raise _WrongError(f"{_key(each)!r} cannot be as large as it says")


def _key(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    try:
        with archive.open(member) as stream:
            return _array(stream, member.file_size)  # type: ignore[arg-type]
    except _WrongError as error:
        raise _WrongError(f"{_key(member)!r} {error}") from None


def _array(stream: BinaryIO, size: int) -> npt.NDArray[Any]:
    """The array that makes up all of a stream of so many bytes."""
    header, used = _header(stream)
    if header.size != size - used:
        raise _WrongError(f"should hold {header.size} bytes and holds {size - used}")
    data = np.empty(header.size, dtype=np.uint8)
    for start in range(0, header.size, CHUNK):
        piece = stream.read(min(CHUNK, header.size - start))
        if len(piece) < min(CHUNK, header.size - start):
            raise _WrongError("ends too early")
        data[start : start + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
    if stream.read(1):  # also where an archive compares its checksum
        raise _WrongError("goes on after its end")
    _check_data(data, header.dtype)
    array = data.view(header.dtype).reshape(header.shape, order="F" if header.fortran else "C")
    return np.ascontiguousarray(array, dtype=header.dtype.newbyteorder("=")).reshape(header.shape)


def _header(stream: BinaryIO) -> tuple[Header, int]:
    """Read the header: its content, and how many bytes it takes."""
    start = stream.read(8)
    if start[:6] != MAGIC or len(start) < 8:
        raise _WrongError("is not an array")
    if start[6:] not in (b"\x01\x00", b"\x02\x00", b"\x03\x00"):
        raise _WrongError("is of a version of the format unknown here")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(stream.read(width), "little")
    if length > LONGEST_HEADER:
        raise _WrongError("has a header that is too long")
    text = stream.read(length)
    if len(text) < length:
        raise _WrongError("ends within its header")
    return _parsed(text.decode("latin1")), 8 + width + length


def _parsed(text: str) -> Header:
    found = _HEADER.fullmatch(text)
    pairs = () if found is None else found.groups()
    items = dict(zip(pairs[::2], pairs[1::2], strict=True))
    if len(items) < 3:
        raise _WrongError("has a header that is not one of plain numbers or text")
    kind, order = items["descr"].strip("'\""), items["fortran_order"]
    if not _TYPES.fullmatch(kind):
        raise _WrongError(f"holds {kind[:24]!r}, not plain numbers, booleans or text")
    if order not in ("True", "False") or not items["shape"].startswith("("):
        raise _WrongError("has a header that makes no sense")
    shape = tuple(int(each) for each in re.findall("[0-9]+", items["shape"]))
    dtype = np.dtype(kind)
    # Empty axes do not excuse the others: NumPy multiplies them all the same.
    whole = math.prod(max(each, 1) for each in shape) * max(dtype.itemsize, 1)
    if len(shape) > MOST_AXES or whole > LARGEST or dtype.itemsize > 4 * LONGEST_TEXT:
        raise _WrongError(f"would take {whole} bytes in {len(shape)} axes")
    return Header(dtype, shape, order == "True")


def _check_data(data: npt.NDArray[np.uint8], dtype: np.dtype[Any]) -> None:
    """Bytes that are no boolean, and numbers that are no letter, are not left to NumPy."""
    if dtype.kind == "b" and (data > 1).any():
        raise _WrongError("holds booleans that are neither true nor false")
    if dtype.kind == "U" and dtype.itemsize:
        letters = data.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        if ((letters > 0x10FFFF) | ((letters >= 0xD800) & (letters <= 0xDFFF))).any():
            raise _WrongError("holds text that is none")
