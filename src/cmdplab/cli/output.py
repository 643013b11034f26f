"""Where commands print: tables and sentences on standard output, or JSON; the rest beside it.

Only these functions know Rich and its tables, which they load when they print.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from cmdplab.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_OF_A_FILE = 120
Cells = Sequence[str]
_LATER = {"audit": 2, "describe": 2}  # versions of objects; of all others it is 1


def console() -> Console:
    """Standard output: as wide as its terminal; a file or a pipe has room for every column."""
    from cmdplab.display.terminal import Printer

    made = Printer()
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = WIDTH_OF_A_FILE
    return made


def errors() -> Console:
    """Standard error, where progress and warnings go."""
    from cmdplab.display.terminal import Printer

    return Printer(stderr=True)


def printing_aside() -> redirect_stdout[TextIO]:
    """Let what code from outside prints go to standard error: the output is ours, often JSON."""
    return redirect_stdout(sys.stderr)


def warn(sentence: str) -> None:
    """Print a warning on standard error; an empty sentence prints nothing."""
    say(f"warning: {sentence}" if sentence else "")


def say(sentence: str) -> None:
    """Print one line on standard error; an empty sentence prints nothing."""
    if sentence:
        errors().print(sentence, highlight=False, soft_wrap=True)


def print_line(text: str, soft_wrap: bool = False) -> None:
    """Print a sentence on standard output, broken between words, or by the terminal."""
    console().print(text, highlight=False, soft_wrap=soft_wrap)


def print_note(text: str, soft_wrap: bool = False) -> None:
    """Print what explains a table: as `print_line`, and less bright."""
    console().print(text, style="dim", highlight=False, soft_wrap=soft_wrap)


def print_table(
    title: str, header: Cells, rows: Sequence[Cells], left: int = 1, least: Cells = ()
) -> None:
    """Print a table whose first `left` columns are text: `display.terminal.grid`."""
    from cmdplab.display.terminal import grid

    grid(console(), title, header, rows, left, least)


def stamp(name: str) -> str:
    """Name the schema of an object, such as "cmdplab.solve/1"; docs/json.md says when it grows."""
    return f"cmdplab.{name}/{_LATER.get(name, 1)}"


def print_json(name: str, value: Any) -> None:
    """Print an object for scripts; the schema of that name comes first (docs/json.md)."""
    from cmdplab.files.write import to_json

    fields = value._asdict() if hasattr(value, "_asdict") else value
    print(to_json({"schema": stamp(name), **fields}))


def print_file(name: str, path: Path, as_json: bool, notes: Sequence[str] = ()) -> None:
    """Print the path of the file that a command wrote, alone or in an object."""
    if as_json:
        print_json(name, {"file": str(path), "notes": list(notes)})
    else:
        print(printable(str(path)))
