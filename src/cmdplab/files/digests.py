"""Digests: whether a file is what was written.

A JSON file holds the digest of the rest of it, an .npz that of its other arrays, a Parquet file one
for each of its columns. Files of others, and of versions that wrote none, are read all the same.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from cmdplab.errors import InputError
from cmdplab.files.read import parse_json

DIGEST = "digest"


class NoDigestWarning(UserWarning):
    """A record has no digest: nobody can tell whether it was changed."""


def damaged(path: object) -> InputError:
    """The error for a file whose content is not what was written."""
    return InputError(f"{path} is damaged: its content does not match its digest")


def say_without(name: str) -> None:
    """Warn, once for each name of a file: a sweep has thousands of the same name."""
    words = f"{name} has no digest: cannot tell whether it was changed"
    warnings.warn(words, NoDigestWarning, stacklevel=3)


def digest_of_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """A hash of names, shapes, types and numbers."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        total.update(f"{name} {array.shape} {array.dtype.str}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def digest_of_values(values: Any) -> str:
    """A hash of what JSON can say, whatever the order of keys and the spaces."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(text: str, indent: int = 2) -> str:
    """The text of a JSON object, with its digest as the last key."""
    values = parse_json(text, "the record")
    values[DIGEST] = digest_of_values(values)
    return json.dumps(values, indent=indent)


def unsealed(values: Any, path: object, name: str) -> Any:
    """An object without its digest, which must match; where there is none, that is said."""
    if not isinstance(values, dict):
        return values
    rest = {key: value for key, value in values.items() if key != DIGEST}
    if DIGEST not in values:
        say_without(name)
    elif values[DIGEST] != digest_of_values(rest):
        raise damaged(path)
    return rest
