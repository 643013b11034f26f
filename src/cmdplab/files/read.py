"""Reading of files as bytes, text, JSON and TOML, and digests that show damage.

A JSON file contains the digest of its other keys, an .npz file that of its other arrays, a Parquet
file one per column. Files without a digest are read too.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import stat
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from cmdplab.errors import CmdplabError, InputError, printable, storage

DIGEST = "digest"
LARGEST = 8 << 30  # bytes that one file from outside may hold or unpack to
LARGEST_TEXT = 1 << 30  # bytes
LARGEST_TOML = 1 << 20  # bytes: a person writes it
MOST_LINES = 50_000_000
MOST_VALUES = 20_000_000  # of a JSON file: the settings of a million runs
LONGEST_NUMBER = 40  # digits of a whole number: floats reach further
DEEPEST = 32  # lists and objects within each other


class MissingError(InputError):
    """Error for a file that does not exist."""


class UnfitError(ValueError):
    """Error for unfit content of a file. The message lacks the name of the file."""


class NoDigestWarning(UserWarning):
    """Warning about a record without a digest, whose changes cannot be detected."""


@contextmanager
def opened(path: str | Path, limit: int = LARGEST) -> Iterator[tuple[BinaryIO, int]]:
    """Open a plain file of at most `limit` bytes. Yield its stream and its number of bytes."""
    if not isinstance(path, str | os.PathLike):  # a number would be an open file
        raise InputError(f"{path!r} is not the path of a file")
    with storage(f"{path} cannot be read"):
        try:
            about = os.stat(path)  # before `open`, which waits if the file is a pipe
            if not stat.S_ISREG(about.st_mode):
                raise InputError(f"{path} is not a file")
            if about.st_size > limit:
                raise InputError(f"{path} is larger than {limit} bytes")
            with open(path, "rb") as stream:
                yield stream, about.st_size
        except FileNotFoundError:
            raise MissingError(f"{path} does not exist") from None
        except OSError as error:
            if error.errno == errno.EINVAL:  # a seek before the file: its message is complete
                raise InputError(f"{path} cannot be read: {error.strerror}") from None
            raise
        except MemoryError:
            raise InputError(f"{path} needs more memory than there is") from None


def read_bytes(path: str | Path, limit: int = LARGEST) -> bytes:
    """Return all bytes of a file. limit : the largest number of bytes allowed."""
    with opened(path, limit) as (stream, size):
        data = stream.read(size + 1)
    if len(data) > size:
        raise InputError(f"{path} grew while it was read")
    return data


def file_digest(path: str | Path) -> str:
    """Return the sha256 of a file, or "" if it cannot be read."""
    try:
        with opened(path) as (stream, _):
            return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
    except CmdplabError:
        return ""


def read_text(path: str | Path, limit: int = LARGEST_TEXT) -> str:
    """Return the text of a UTF-8 file. All line ends become newlines. limit : in bytes."""
    data = read_bytes(path, limit)
    if data.count(b"\n") > MOST_LINES:
        raise InputError(f"{path} has more than {MOST_LINES} lines")
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text") from None


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return the content of a TOML file as a dictionary."""
    text = read_text(path, LARGEST_TOML)
    try:
        return parse_toml(text)
    except ValueError as error:
        raise InputError(f"{path} cannot be read as TOML: {first_line(error)}") from None


# Strings and comments are skipped. A closing quote may be missing, and no part of a token is tried
# again: the search takes linear time on each text.
_WORD = r"""(?>[\w-]+|"(?:[^"\\\n]|\\[^\n])*"?|'[^'\n]*'?)"""
_DOT = r"[ \t]*+\.[ \t]*+"
_TOML_TOKEN = re.compile(
    r'"{3}(?s:[^"\\]|\\.|"(?!""))*+(?:"{3})?'
    rf"|'{{3}}(?:[^']|'(?!''))*+(?:'{{3}})?|\#[^\n]*+"
    rf"|(?P<deep>{_WORD}(?:{_DOT}{_WORD}){{{DEEPEST},}}+)|{_WORD}(?:{_DOT}{_WORD})*+"
)


def parse_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML text as a dictionary. Raise `ValueError` if it is invalid.

    Keys of more than `DEEPEST` parts are refused first, since the parser takes quadratic time for
    them.
    """
    deep = next((token["deep"] for token in _TOML_TOKEN.finditer(text) if token["deep"]), None)
    if deep is not None:
        raise ValueError(f"the key {deep[:24]}... has more than {DEEPEST} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json(path: str | Path, limit: int = LARGEST_TEXT) -> Any:
    """Return the value of a JSON file of at most `limit` bytes, checked as in `parse_json`."""
    return parse_json(read_text(path, limit), str(path))


def parse_json(text: str, where: str) -> Any:
    """Return the value of a JSON text. Refuse infinite numbers, double keys and deep nesting.

    where : the source of the text, for error messages.
    """
    if sum(map(text.count, ",[{")) > MOST_VALUES:
        raise InputError(f"{where} holds more than {MOST_VALUES} values")
    try:
        value = json.loads(
            text,
            parse_int=_whole,
            parse_float=_finite,
            parse_constant=_finite,
            object_pairs_hook=_distinct,
        )
        _check_depth(value)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise InputError(f"{where} cannot be read: it is nested too deeply") from None
    except UnicodeEncodeError:
        raise InputError(f"{where} cannot be read: it holds half a character") from None
    except ValueError as error:
        raise InputError(f"{where} cannot be read: {first_line(error)}") from None
    return value


def _whole(text: str) -> int:
    if len(text) <= LONGEST_NUMBER:
        return int(text)
    raise ValueError(f"{text[:24]}... has more than {LONGEST_NUMBER} digits")


def _finite(text: str) -> float:
    if math.isfinite(number := float(text)):
        return number
    raise ValueError(f"{text[:24]} is not a finite number")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} stands twice")
    return found


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        inside = (each.values() if isinstance(each, dict) else each for each in level
                  if isinstance(each, dict | list))  # fmt: skip
        level = [each for values in inside for each in values if isinstance(each, dict | list)]
        if not level:
            return
    raise RecursionError


def first_line(error: Exception) -> str:
    """Return the text of an error as one printable line of at most 200 characters."""
    return printable(" ".join(str(error).split())[:200] or type(error).__name__)


def damaged(path: object) -> InputError:
    """Return the error for a file whose content does not match its digest."""
    return InputError(f"{path} is damaged: its content does not match its digest")


def say_without(name: str) -> None:
    """Warn that files called `name` have no digest."""
    words = f"{name} has no digest: cannot tell whether it was changed"
    warnings.warn(words, NoDigestWarning, stacklevel=3)


def sealed(text: str, indent: int = 2) -> str:
    """Return the text of a JSON object after its digest is added as the last key."""
    values = parse_json(text, "the record")
    values[DIGEST] = _digest(values)
    return json.dumps(values, indent=indent)


def unsealed(values: Any, path: object, name: str) -> Any:
    """Return a JSON object without its digest. Raise an `InputError` if the digest does not match.

    path : the file, for the error. name : its name, for the warning if there is no digest.
    """
    if not isinstance(values, dict):
        return values
    rest = {key: value for key, value in values.items() if key != DIGEST}
    if DIGEST not in values:
        say_without(name)
    elif values[DIGEST] != _digest(rest):
        raise damaged(path)
    return rest


def _digest(values: Any) -> str:
    """Return the sha256 of a JSON value. Spaces and the order of keys do not matter."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
