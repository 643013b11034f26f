"""Output of the commands: JSON, tables and sentences on standard output, the rest beside it.

`results.toml` declares the fields of every result. The JSON object has all of them, a table those
with a header, and docs/json.md is printed from them. Rich is loaded at the first table or sentence.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from functools import cache
from importlib.resources import files
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import typer

from cmdplab.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_OF_A_FILE = 120
Cells = Sequence[str]


class Field(NamedTuple):
    """A field of a result."""

    type: str  # in words; a word with a capital letter is another result
    meaning: str
    unit: str = ""
    header: str = ""  # of its column in a terminal
    form: str = ""  # of its cells: a format of Python, or one of `FORMS`


class Result(NamedTuple):
    """An object that commands print as JSON, or a part of such objects."""

    fields: dict[str, Field]
    about: str
    command: str = ""  # in Markdown; empty for a part
    versions: Mapping[str, int] = {}  # of its schemas


class Answer(NamedTuple):
    """The answer of a command: an object of a schema for scripts, and its text for people."""

    schema: str
    value: Any  # a mapping or a tuple with the declared fields
    show: Callable[[], object]  # prints the text
    last: str = ""  # a sentence on standard error behind it
    code: int = 0  # of the exit

    def give(self, as_json: bool) -> None:
        """Print the object or the text, then the last sentence, and exit with the code."""
        if as_json:
            from cmdplab.files.write import to_json

            fields = self.value._asdict() if hasattr(self.value, "_asdict") else self.value
            print(to_json({"schema": stamp(self.schema), **fields}))
        else:
            self.show()
        say(self.last)
        if self.code:
            raise typer.Exit(self.code)


def of_file(schema: str, path: Path, notes: Sequence[str] = ()) -> Answer:
    """Return the answer of a command that wrote one file: its path."""
    value = {"file": str(path), "notes": list(notes)}
    return Answer(schema, value, lambda: print(printable(str(path))))


@cache
def results() -> dict[str, Result]:
    """Return every declared result."""
    text = (files("cmdplab.cli") / "results.toml").read_text(encoding="utf-8")
    return {
        title: Result(**(values | {"fields": {k: Field(*v) for k, v in values["fields"].items()}}))
        for title, values in tomllib.loads(text).items()
    }


def stamp(name: str) -> str:
    """Return the schema of an object with its version, such as "cmdplab.solve/1"."""
    (version,) = (each.versions[name] for each in results().values() if name in each.versions)
    return f"cmdplab.{name}/{version}"


def print_rows(
    title: str,
    result: str,
    columns: str,
    rows: Sequence[Any],
    least: Cells = (),
    **cells: Callable[[Any], str],
) -> None:
    """Print a table whose columns are fields of a result, or of several.

    A name that is no declared field is a column of text. `cells` make the cells of a column from a
    row. The columns without a format at the beginning are aligned to the left. Without a row
    nothing is printed.
    """
    if not rows:
        return
    declared = {k: v for title in result.split() for k, v in results()[title].fields.items()}
    fields = {name: declared.get(name, Field("text", "", header=name)) for name in columns.split()}

    def cell_of(row: Any, name: str) -> str:
        if name in cells:
            return cells[name](row)
        value = row[name] if isinstance(row, Mapping) else getattr(row, name)
        return cell(value, fields[name])

    left = len([*takewhile(lambda field: not field.form, fields.values())])
    header = [field.header for field in fields.values()]
    print_table(title, header, [[cell_of(row, n) for n in fields] for row in rows], left, least)


def print_facts(
    title: str, result: str, value: Mapping[str, Any], **more: Sequence[tuple[str, str]]
) -> None:
    """Print a line for each field of a result that has a header, and is not left out of `value`.

    `more` are further lines below the line of a field.
    """
    from cmdplab.display.terminal import facts

    rows: list[tuple[str, str]] = []
    for name, field in results()[result].fields.items():
        if field.header and name in value:
            rows.append((field.header, cell(value[name], field)))
        rows += more.get(name, [])
    facts(console(), title, rows)


def print_numbers(title: str, result: str, value: Any, names: str) -> None:
    """Print a line for each of the fields: its header, its meaning up to a semicolon, its value."""
    fields = results()[result].fields
    rows = [
        [fields[n].header, fields[n].meaning.split(";")[0], cell(getattr(value, n), fields[n])]
        for n in names.split()
    ]
    print_table(title, ["", "meaning", "value"], rows, left=2)


def cell(value: Any, field: Field) -> str:
    """Return a value as the field declares it: – for None, numbers of a list with commas."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if hasattr(value, "__len__") and not isinstance(value, str):
        return ", ".join(cell(each, field) for each in value) or "none"
    if isinstance(value, str):
        return value
    return FORMS[field.form](value) if field.form in FORMS else f"{value:{field.form}}"


def large(value: float | None) -> str:
    """Return a sum without digits after the point, or with two digits in all."""
    if value is None:
        return "–"
    return f"{value:.0f}" if abs(value) < 1e4 else f"{value:.1e}".replace("e+0", "e")


def power(log10: float) -> str:
    """Return a number by its logarithm: as a power of ten from a million on."""
    return f"{10.0**log10:.3g}" if log10 < 6.0 else f"10^{log10:.1f}"


FORMS: dict[str, Callable[[Any], str]] = {
    "large": large,
    "power": power,
    "percent": lambda share: f"{100.0 * share:.1f} %",
}


def console() -> Console:
    """Return standard output, as wide as its terminal; a file has room for every column."""
    from cmdplab.display.terminal import Printer

    made = Printer()
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = WIDTH_OF_A_FILE
    return made


def errors() -> Console:
    """Return standard error, for progress and warnings."""
    from cmdplab.display.terminal import Printer

    return Printer(stderr=True)


def printing_aside() -> redirect_stdout[TextIO]:
    """Send to standard error the output of code from outside: standard output may be JSON."""
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
    """Print the explanation of a table, less bright than a sentence."""
    console().print(text, style="dim", highlight=False, soft_wrap=soft_wrap)


def print_table(
    title: str, header: Cells, rows: Sequence[Cells], left: int = 1, least: Cells = ()
) -> None:
    """Print a table whose first `left` columns are text: `display.terminal.grid`."""
    from cmdplab.display import terminal

    terminal.grid(console(), title, header, rows, left, least)
