"""Values as a console and a notebook show them: a title, and a few facts.

A class has the method `_facts` and is decorated with `shown`. Names come from files and may hold
any character: they are made printable, escaped and cut.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from cmdplab.errors import printable

LONGEST = 390  # letters of a representation
LONGEST_NAME = 60
MOST_NUMBERS = 4  # of a vector
EVERY = 0.2  # seconds between two updates of a cell

Facts = Sequence[tuple[str, str]]  # what, and its value


class Shown(Protocol):
    """A class with a title and facts."""

    def _facts(self) -> tuple[str, Facts]: ...


Kind = TypeVar("Kind", bound=type[Shown])


def shown(cls: Kind) -> Kind:
    """Give a class a short `repr` and a table for notebooks, both made of its facts."""
    cls.__repr__ = _line  # type: ignore[assignment]
    cls._repr_html_ = _table  # type: ignore[attr-defined]
    return cls


def _line(self: Shown) -> str:
    """Return one line: <title: what value; what value>."""
    title, facts = self._facts()
    text = "; ".join(f"{what} {value}" for what, value in facts)
    return f"<{_cut(f'{title}: {text}', LONGEST)}>"


def _table(self: Shown) -> str:
    """Return a table of two columns for notebooks."""
    title, facts = self._facts()
    rows = (f"<tr><th>{escape(what)}</th><td>{escape(value)}</td></tr>" for what, value in facts)
    return f"<table><caption>{escape(title)}</caption>{''.join(rows)}</table>"


def words_and_table(text: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return HTML: `text` as a paragraph, and a table if it has rows. Both are escaped here."""
    words = escape(text).replace("\n", "<br>")
    if not rows:
        return f"<p>{words}</p>"
    head = "".join(f"<th>{escape(each)}</th>" for each in header)
    lines = ("".join(f"<td>{escape(each)}</td>" for each in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<p>{words}</p><table><tr>{head}</tr>{body}</table>"


def name(given: object) -> str:
    """Return a name as printable text of at most `LONGEST_NAME` letters."""
    return _cut(printable(str(given)), LONGEST_NAME)


def number(value: float | None) -> str:
    """Return a number with six digits."""
    return "none" if value is None else f"{value:.6g}"


def numbers(values: Iterable[float] | None) -> str:
    """Return the first numbers of a vector, and its length if it has more."""
    if values is None:
        return "none"
    each = np.asarray(values, dtype=float).ravel()
    first = ", ".join(map(number, each[:MOST_NUMBERS]))
    return f"{first}, ... ({len(each)})" if len(each) > MOST_NUMBERS else first or "none"


def shape(array: npt.NDArray[Any] | None, axes: str) -> str:
    """Return the sizes of an array with the names of its axes: "10 x 30 x 3 (H x X x A)"."""
    return "none" if array is None else f"{' x '.join(map(str, array.shape))} ({axes})"


def count(n: int, what: str) -> str:
    """Return a number with its noun in singular or plural."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def bar(done: int, total: int | None, words: str) -> str:
    """Return a bar and words as HTML; without a total the bar shows no share."""
    of = "" if total is None else f" value='{done}' max='{max(total, 1)}'"
    return f"<progress{of}></progress> <small>{escape(words)}</small>"


class Cell:
    """One place in the output of the present cell of a notebook: a bar that needs no widgets."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html, self._last = HTML, 0.0
        self._place: Any = display(HTML(""), display_id=True)

    def show(self, done: int, total: int | None, words: str, *, ended: bool) -> None:
        """Write the bar, unless it was written a moment ago; always write the last one."""
        now = time.monotonic()
        if ended or now - self._last >= EVERY:
            self._last = now
            self._place.update(self._html(bar(done, total, words)))
