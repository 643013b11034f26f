"""Values as a console and a notebook show them: a title, and a few facts.

A class says what it is in `_facts` and is decorated with `shown`; all else of it stays as it is.
Names come from files and may hold anything: they are made printable, escaped and cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from cmdplab.errors import printable

LONGEST = 390  # letters of a representation
LONGEST_NAME = 60
MOST_NUMBERS = 4  # of a vector

Facts = Sequence[tuple[str, str]]  # what, and its value


class Shown(Protocol):
    """Anything that can tell a title and facts about itself."""

    def _facts(self) -> tuple[str, Facts]: ...


Kind = TypeVar("Kind", bound=type[Shown])


def shown(cls: Kind) -> Kind:
    """Give a class a short `repr` and a table for notebooks, both made of its facts."""
    cls.__repr__ = _line  # type: ignore[assignment]
    cls._repr_html_ = _table  # type: ignore[attr-defined]
    return cls


def _line(self: Shown) -> str:
    """One line: <title: what value; what value>."""
    title, facts = self._facts()
    text = "; ".join(f"{what} {value}" for what, value in facts)
    return f"<{_cut(f'{title}: {text}', LONGEST)}>"


def _table(self: Shown) -> str:
    """A table of two columns for notebooks."""
    title, facts = self._facts()
    rows = (f"<tr><th>{escape(what)}</th><td>{escape(value)}</td></tr>" for what, value in facts)
    return f"<table><caption>{escape(title)}</caption>{''.join(rows)}</table>"


def words_and_table(text: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A paragraph, and a table below it unless it has no rows, for notebooks."""
    words = escape(text).replace("\n", "<br>")
    if not rows:
        return f"<p>{words}</p>"
    head = "".join(f"<th>{escape(each)}</th>" for each in header)
    lines = ("".join(f"<td>{escape(each)}</td>" for each in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<p>{words}</p><table><tr>{head}</tr>{body}</table>"


def name(given: object) -> str:
    """A name that can be printed, on one line and not for pages."""
    return _cut(printable(str(given)), LONGEST_NAME)


def number(value: float | None) -> str:
    """A number with as many digits as a reader wants to see at first."""
    return "none" if value is None else f"{value:.6g}"


def numbers(values: Iterable[float] | None) -> str:
    """The first numbers of a vector, and how many there are where that is not all."""
    if values is None:
        return "none"
    each = np.asarray(values, dtype=float).ravel()
    first = ", ".join(map(number, each[:MOST_NUMBERS]))
    return f"{first}, ... ({len(each)})" if len(each) > MOST_NUMBERS else first or "none"


def shape(array: npt.NDArray[Any] | None, axes: str) -> str:
    """The sizes of an array with the names of its axes: "10 x 30 x 3 (H x X x A)"."""
    return "none" if array is None else f"{' x '.join(map(str, array.shape))} ({axes})"


def count(n: int, what: str) -> str:
    """So many of something."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
