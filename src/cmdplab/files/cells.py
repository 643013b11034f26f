"""Comma-separated values that a spreadsheet shows and does not run.

A spreadsheet takes text that begins with = + - @, a tab or a line break for a formula. Such text
is written with an apostrophe before it, and read without. Numbers stay as they are, as text too.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_SPECIAL = re.compile(r'[",\r\n]')
_NUMBER = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as comma-separated values; floats keep every digit, and None is empty."""
    lines = (",".join(map(_written, row)) or '""' for row in rows)
    return "".join(f"{line}\n" for line in lines)


def csv_rows(text: str) -> list[list[str]]:
    """Return the rows of comma-separated values; `csv.Error` if the text has none."""
    return [[_read(cell) for cell in row] for row in csv.reader(io.StringIO(text), strict=True)]


def _written(cell: Any) -> str:
    text = "" if cell is None else str(cell)
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        text = f"'{text}"
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if _SPECIAL.search(text) else text


def _read(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
