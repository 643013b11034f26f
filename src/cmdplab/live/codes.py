"""Codes: the values of one space of an environment as the numbers 0..n - 1, with a name for each.

A code is plain data and can be written to a file. Gymnasium is never imported.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from cmdplab.errors import InputError

MANY = 100_000  # numbers beyond which names are not written out

Shape = Literal["tuple", "dict", "array", "bits"]


@dataclass(frozen=True)
class Whole:
    """Code of a Discrete space: the whole numbers start..start + size - 1."""

    size: int
    start: int = 0

    def number(self, value: Any) -> int:
        """Return the number of a value. Refuse a value outside the space."""
        try:
            n = (value if type(value) is int else operator.index(_scalar(value))) - self.start
        except TypeError:
            raise InputError(f"{value!r} is not a whole number") from None
        if not 0 <= n < self.size:
            raise InputError(f"{value} is outside {self.start} to {self.start + self.size - 1}")
        return n

    def value(self, number: int) -> int:
        """Return the value of the environment for a number."""
        return self.start + number

    def name(self, number: int) -> str:
        """Return the environment's value as text."""
        return str(self.start + number)


@dataclass(frozen=True)
class Named:
    """Code of values that are names, as in logs."""

    words: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of names."""
        return len(self.words)

    def number(self, value: Any) -> int:
        """Return the number of a name. Refuse an unknown name."""
        word = str(_scalar(value))
        if word not in self._places:
            raise InputError(f"{word!r} is none of {', '.join(self.words[:6])}, ...")
        return self._places[word]

    def value(self, number: int) -> str:
        """Return the name of a number."""
        return self.words[number]

    name = value

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: n for n, word in enumerate(self.words)}


@dataclass(frozen=True)
class Cells:
    """Code of one dimension of a Box, cut at the edges: cell i has edges[i - 1] <= v < edges[i].

    points : the value that represents each cell.
    """

    edges: tuple[float, ...]  # rising, one fewer than the points
    points: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.points)

    def number(self, value: Any) -> int:
        """Return the cell of a value. Values beyond the outer edges belong to the outer cells."""
        try:
            number = float(_scalar(value))
        except (TypeError, ValueError):
            raise InputError(f"{value!r} is not a number") from None
        if math.isnan(number):
            raise InputError(f"{value!r} is not a number")
        return int(np.searchsorted(self.edges, number, side="right"))

    def value(self, number: int) -> float:
        """Return the point that represents a cell."""
        return self.points[number]

    def name(self, number: int) -> str:
        """Return the interval of a cell, such as "0.5..1", or the value of the only cell."""
        if not self.edges:
            return f"{self.points[number]:.4g}"
        low = "-inf" if number == 0 else f"{self.edges[number - 1]:.4g}"
        high = "inf" if number == len(self.edges) else f"{self.edges[number]:.4g}"
        return f"{low}..{high}"


@dataclass(frozen=True)
class Levels(Cells):
    """Code of one dimension of a Box of actions: a few points."""

    def name(self, number: int) -> str:
        """Return the point of a number as text."""
        return f"{self.points[number]:.4g}"


@dataclass(frozen=True)
class Several:
    """Code of several parts: a Tuple, Dict, MultiDiscrete, MultiBinary, or a Box of cells.

    The last part varies fastest. keys : those of a Dict. sizes : the shape of an array.
    """

    parts: tuple[Code, ...]
    shape: Shape
    keys: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()

    @cached_property
    def size(self) -> int:
        """Product of the parts' sizes."""
        return math.prod(each.size for each in self.parts)

    def number(self, value: Any) -> int:
        """Return the number of a value of the environment. Refuse a value of another form."""
        n = 0
        for part, each in zip(self.parts, self._split(value), strict=True):
            n = n * part.size + part.number(each)
        return n

    def value(self, number: int) -> Any:
        """Return the environment's value of a number, in the type of its space."""
        values = [part.value(each) for part, each in self._digits(number)]
        if self.shape == "dict":
            return dict(zip(self.keys, values, strict=True))
        if self.shape == "tuple":
            return tuple(values)
        if self.shape == "bits":
            return np.array(values, dtype=np.int8).reshape(self.sizes)
        real = any(isinstance(each, Cells) for each in self.parts)
        return np.array(values, dtype=np.float32 if real else np.int64).reshape(self.sizes)

    def name(self, number: int) -> str:
        """Return the names of the parts as one text, with the keys of a Dict."""
        names = [part.name(each) for part, each in self._digits(number)]
        if self.shape == "dict":
            return ", ".join(f"{k}={v}" for k, v in zip(self.keys, names, strict=True))
        return names[0] if len(names) == 1 else f"({', '.join(names)})"

    def _digits(self, number: int) -> list[tuple[Code, int]]:
        digits = []
        for part in reversed(self.parts):
            number, digit = divmod(number, part.size)
            digits.append((part, digit))
        return digits[::-1]

    def _split(self, value: Any) -> list[Any]:
        if self.shape == "dict":
            if not hasattr(value, "keys") or set(value.keys()) != set(self.keys):
                raise InputError(f"{value!r} has not the keys {', '.join(self.keys)}")
            return [value[key] for key in self.keys]
        if self.shape == "tuple":
            values = list(value) if isinstance(value, tuple | list | np.ndarray) else [value]
        else:
            values = np.asarray(value).ravel().tolist()
        if len(values) != len(self.parts):
            raise InputError(f"{value!r} has {len(values)} parts, not {len(self.parts)}")
        return values


Code = Whole | Named | Cells | Several


def names(code: Code) -> tuple[str, ...]:
    """Return the name of each number, or () if a space counts from 0 or is too large."""
    if code.size > MANY or (isinstance(code, Whole) and code.start == 0):
        return ()
    found = tuple(code.name(n) for n in range(code.size))
    return found if len(set(found)) == len(found) else ()  # cells may look alike when rounded


def described(code: Code) -> dict[str, Any]:
    """Return a code as plain data, which `restored` reads."""
    if isinstance(code, Whole):
        return {"kind": "whole", "size": code.size, "start": code.start}
    if isinstance(code, Named):
        return {"kind": "named", "words": list(code.words)}
    if isinstance(code, Cells):
        kind = "levels" if isinstance(code, Levels) else "cells"
        return {"kind": kind, "edges": list(code.edges), "points": list(code.points)}
    parts = [described(each) for each in code.parts]
    told = {"shape": code.shape, "keys": list(code.keys), "sizes": list(code.sizes)}
    return {"kind": "several", "parts": parts, **told}


def restored(values: Any) -> Code:
    """Return the code that `described` wrote as plain data."""
    try:
        kind = values["kind"]
        if kind == "whole":
            return Whole(int(values["size"]), int(values["start"]))
        if kind == "named":
            return Named(tuple(map(str, values["words"])))
        if kind in ("cells", "levels"):
            made = Levels if kind == "levels" else Cells
            ends = [tuple(float(v) for v in values[each]) for each in ("edges", "points")]
            return made(*ends)
        if kind == "several":
            parts = tuple(restored(each) for each in values["parts"])
            keys, sizes = tuple(map(str, values["keys"])), tuple(map(int, values["sizes"]))
            return Several(parts, values["shape"], keys, sizes)
    except (KeyError, TypeError, ValueError):
        pass
    raise InputError("the numbering of a space cannot be read")


def _scalar(value: Any) -> Any:
    """Return the number in an array of size 1. Return any other value unchanged."""
    return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
