"""Tables of several kinds as columns of names and numbers.

A table is a CSV file, a pandas `DataFrame`, a list of dictionaries, or a dictionary of columns.
An error names its row: rows of data are counted from 1, and lines of a file as in an editor.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cmdplab.checks import is_whole
from cmdplab.cmdp.labels import AXES, Labels, choices
from cmdplab.errors import InputError
from cmdplab.files import read_text
from cmdplab.files.read import LONGEST_NUMBER
from cmdplab.files.tables import csv_rows
from cmdplab.types import Array, Indices


class Columns(NamedTuple):
    """Columns of a table by name, and the names of its rows."""

    values: dict[str, list[Any]]
    rows: list[str]  # "row 3", or "line 4" of a file

    def column(self, name: str, advice: str = "") -> list[Any]:
        """Return the cells of a column. Refuse an unknown name; `advice` ends the error."""
        if name not in self.values:
            has = ", ".join(self.values)
            raise InputError(f"the table has no column {name!r}; it has {has}{advice}")
        return self.values[name]


def columns_of(table: Any) -> Columns:
    """Return the columns of a table of any kind in this module."""
    if isinstance(table, str | Path):
        return _of_file(table)
    if hasattr(table, "columns") and hasattr(table, "to_dict"):  # pandas
        values = _of_frame(table)
    elif isinstance(table, Mapping):
        values = {str(name): list(column) for name, column in table.items()}
    else:
        values = _of_records(table)
    sizes = {len(each) for each in values.values()}
    if len(sizes) != 1 or not max(sizes):
        raise InputError("the table is empty, or its columns have different lengths")
    return Columns(values, [f"row {n + 1}" for n in range(sizes.pop())])


def _of_frame(table: Any) -> dict[str, list[Any]]:
    names = [str(name) for name in table.columns]
    if len(set(names)) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        raise InputError(f"the table has the column {twice!r} twice")
    found = {}
    for n, name in enumerate(names):
        column = table.iloc[:, n]
        cells = zip(column.tolist(), column.isna().tolist(), strict=True)
        found[name] = [None if absent else cell for cell, absent in cells]
    return found


def _of_records(table: Any) -> dict[str, list[Any]]:
    rows = list(table) if isinstance(table, Iterable) else [table]
    if not all(isinstance(each, Mapping) for each in rows):
        raise InputError("a table is a CSV file, a DataFrame, or a list of dictionaries")
    names = {str(name): None for each in rows for name in each}
    return {name: [each.get(name) for each in rows] for name in names}


def _of_file(path: str | Path) -> Columns:
    try:
        (_, first), *rows = csv_rows(read_text(path)) or [(1, [])]
    except InputError as error:
        raise error if str(path) in str(error) else InputError(f"{path}, {error}") from None
    header = [name.strip() for name in first]
    found = [(line, row) for line, row in rows if any(map(str.strip, row))]
    if len(set(header)) < len(header) or not found:
        raise InputError(f"{path} has no rows, or a column twice: {', '.join(header)}")
    for line, row in found:
        if len(row) != len(header):
            raise InputError(f"{path}, line {line}: {len(row)} cells, but {len(header)} columns")
    values = {name: [row[n].strip() for _, row in found] for n, name in enumerate(header)}
    return Columns(values, [f"{path}, line {line}" for line, _ in found])


def _text(row: str, column: str, cell: Any) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, float | np.floating) and cell.is_integer():
        cell = int(cell)  # pandas reads whole numbers beside an empty cell as floats
    if is_whole(cell) and abs(int(cell)) >= 10**LONGEST_NUMBER:
        raise InputError(f"{row}: the {column} has more than {LONGEST_NUMBER} digits")
    return str(cell)


def names(given: Columns, column: str) -> list[str]:
    """Return the cells of a column as names. Refuse empty and unprintable cells."""
    found = []
    for row, cell in zip(given.rows, given.column(column), strict=True):
        text = _text(row, column, cell).strip()
        if not text or not text.isprintable():
            raise InputError(f"{row}: the {column} is {text!r}, not a name")
        found.append(text)
    return found


def places(
    given: Columns, column: str, axis: str, labels: Labels, size: int, texts: Sequence[str] = ()
) -> Indices:
    """Return the numbers of the names in a column, along an axis x, a, h or k of the labels.

    size : the length of the axis. A text like "3" is a name if the labels have it, else a number.
    texts : cells that replace those of the column. An empty one becomes -1.
    """
    names = labels.along(axis)
    known = {str(n): n for n in range(size)}
    known |= {name.strip(): n for n, name in enumerate(names)}
    known |= {name: n for n, name in enumerate(names)}
    found = np.empty(len(given.rows), dtype=np.int64)
    for n, cell in enumerate(texts or given.column(column)):
        text = _text(given.rows[n], column, cell)
        place = -1 if texts and not text else known.get(text)
        if place is None:
            say = choices(AXES[axis], names, size)
            raise InputError(f"{given.rows[n]}: there is no {column} {text!r}: {say}")
        found[n] = place
    return found


def repeated(keys: Iterable[Hashable]) -> tuple[int, int] | None:
    """Return the indices of the first repeated key and its first occurrence, or None."""
    seen: dict[Hashable, int] = {}
    for n, key in enumerate(keys):
        if seen.setdefault(key, n) != n:
            return n, seen[key]
    return None


def numbers(given: Columns, column: str) -> Array:
    """Return the cells of a column as finite numbers. Refuse other cells."""
    found = np.empty(len(given.rows))
    for n, cell in enumerate(given.column(column)):
        try:
            found[n] = math.nan if isinstance(cell, bool) else float(cell)
        except (TypeError, ValueError, OverflowError):
            found[n] = math.nan
        if is_whole(cell) and abs(int(cell)) >= 10**LONGEST_NUMBER:
            raise InputError(f"{given.rows[n]}: the {column} has more than {LONGEST_NUMBER} digits")
        if not math.isfinite(found[n]):
            raise InputError(f"{given.rows[n]}: the {column} is {cell!r}, not a finite number")
    return found


def probabilities(given: Columns, tolerance: float) -> Array:
    """Return the column "probability". Refuse numbers outside [0, 1 + tolerance]."""
    found = numbers(given, "probability")
    wrong = np.flatnonzero(~((found >= 0.0) & (found <= 1.0 + tolerance)))
    if len(wrong):
        raise InputError(f"{given.rows[wrong[0]]}: {found[wrong[0]]:g} is not a probability")
    return found


def ordered(names: list[str]) -> list[str]:
    """Return the distinct names by first appearance. Names "0".."n - 1" get numeric order."""
    found = list(dict.fromkeys(names))
    numbers = [str(n) for n in range(len(found))]
    return numbers if set(found) == set(numbers) else found


def kept(names: list[str]) -> tuple[str, ...]:
    """Return the names as labels. Return () if they are "0".."n - 1" in order."""
    return () if names == [str(n) for n in range(len(names))] else tuple(names)


def limits(what: str, given: Mapping[str, float] | None) -> dict[str, float]:
    """Return {column: limit} from `given`. Refuse any other type. what : "utilities" or "costs"."""
    if not isinstance(given, Mapping | None):
        raise InputError(f"the {what} are {given!r}, not columns with their limits")
    return dict(given or {})
