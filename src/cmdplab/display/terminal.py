"""Tables for people and JSON for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.progress import ProgressColumn, Task
from rich.table import Table
from rich.text import Text

from cmdplab.errors import printable
from cmdplab.types import Array

GAP = 2  # columns of the terminal between two columns of a table
READABLE, EASY = 12, 40  # letters of a line of text that can be read, or is easy to read


class Printer(Console):
    """A console that prints names as text, whatever brackets and control characters they hold."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, **options)

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(printable(text, keep="\n"), **how)


class Words(ProgressColumn):
    """The words of a task: a format with its fields."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form

    def render(self, task: Task) -> Text:
        return Text(printable(self._form.format(task=task)))


def number(value: float | None, digits: int = 4) -> str:
    """Return a number as the cell of a table."""
    return "–" if value is None else f"{value:.{digits}f}"


def numbers(values: Array | Sequence[float] | None, digits: int = 6) -> str:
    """Return a vector as the cell of a table."""
    if values is None:
        return "–"
    return ", ".join(number(each, digits) for each in values) or "none"


def facts(console: Console, title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print two columns, names and values; values wrap between words only."""
    table = Table(title=title, show_header=False, title_justify="left", box=SIMPLE_HEAD)
    table.add_column(style="bold", no_wrap=True)
    room = console.width - max(len(what) for what, _ in rows) - 7  # what lies between and around
    table.add_column()
    for what, value in rows:
        table.add_row(what, _wrapped(value, max(room, _longest_word(value))))
    _unbroken(console, table)


def grid(
    console: Console,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: int = 1,
    least: Sequence[str] = (),
) -> None:
    """Print a table whose first `left` columns are text and the others numbers.

    If the table is too wide, text wraps between words; numbers never wrap. If that is not enough,
    columns are left out and named: first those of `least`, then from the right. Text of `least` is
    left out if its lines would be hard to read.
    """
    natural, narrowest = _widths(header, rows, left, least)
    kept = _kept(header, narrowest, left, least, console.width)
    widths = _shared_out(
        {n: narrowest[n] for n in kept}, {n: natural[n] for n in kept}, console.width
    )
    table = Table(
        title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False
    )
    for n, width in widths.items():
        justify: Literal["left", "right"] = "left" if n < left else "right"
        table.add_column(_wrapped(header[n], width), justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*(_wrapped(row[n], width) for n, width in widths.items()))
    _unbroken(console, table)
    hidden = [name for n, name in enumerate(header) if n not in widths]
    if hidden:
        count, them = ("1 column", "it") if len(hidden) == 1 else (f"{len(hidden)} columns", "them")
        words = f"{count} hidden ({', '.join(hidden)}); --json or a wider terminal shows {them}"
        console.print(words, style="dim", highlight=False)


def _widths(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: int, least: Sequence[str]
) -> tuple[list[int], list[int]]:
    """Return the width of each column, and the least width that it may have."""
    natural, narrowest = [], []
    for n, name in enumerate(header):
        cells = [row[n] for row in rows]
        widest = max(map(cell_len, cells), default=0)
        words = max(map(_longest_word, [name, *cells]))
        full = max(widest, cell_len(name))
        natural.append(full)
        if n >= left:
            narrowest.append(max(widest, words))  # a header may wrap, its numbers not
        else:
            readable = 0 if n == 0 else EASY if name in least else READABLE
            narrowest.append(min(full, max(words, readable)))
    return natural, narrowest


def _kept(
    header: Sequence[str], narrowest: Sequence[int], left: int, least: Sequence[str], room: int
) -> list[int]:
    """Return the columns that fit; the first one, and that of the first numbers, always stay."""
    kept = list(range(len(header)))
    order = [header.index(name) for name in least]
    order += [n for n in reversed(kept) if n not in order]
    for n in order:
        if sum(narrowest[k] + GAP for k in kept) - 1 <= room:
            break
        if n not in (0, min(left, len(header) - 1)):
            kept.remove(n)
    return kept


def _shared_out(narrowest: dict[int, int], natural: dict[int, int], room: int) -> dict[int, int]:
    """Return the widths of the columns; the narrowest of those that need more get the rest."""
    widths = dict(narrowest)
    spare = room + 1 - sum(width + GAP for width in widths.values())
    while spare > 0 and (wanting := [n for n in widths if widths[n] < natural[n]]):
        widths[min(wanting, key=widths.__getitem__)] += 1
        spare -= 1
    return widths


def _wrapped(text: str, width: int) -> str:
    """Wrap text between words, or at a hyphen between letters: never inside a number."""
    return "\n".join(wrap(text, width, break_long_words=False)) if len(text) > width else text


def _longest_word(text: str) -> int:
    return max(map(len, wrap(text, 1, break_long_words=False)), default=0)


def _unbroken(console: Console, table: Table) -> None:
    """Print a table, wider than the terminal if needed: a broken number is a wrong one."""
    needed = table.__rich_measure__(console, console.options.update(width=10_000)).maximum
    table.width = needed if needed > console.width else None
    console.print(table, crop=False)
