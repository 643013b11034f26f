"""Tables and logged episodes, whichever way they were given, as columns of names and numbers.

A table is a CSV file, a pandas `DataFrame`, a list of dictionaries, or a dictionary of columns.
Every complaint names its row: rows of data are counted from 1, lines of a file as an editor does.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cmdplab.checks import is_whole
from cmdplab.cmdp.bundle import Bundle
from cmdplab.cmdp.labels import AXES, Labels, choices
from cmdplab.errors import InputError
from cmdplab.files import read_text
from cmdplab.files.read import LONGEST_NUMBER
from cmdplab.types import Array, Indices


class Columns(NamedTuple):
    """The columns of a table by name, and what its rows are called."""

    values: dict[str, list[Any]]
    rows: list[str]  # "row 3", or "line 4" of a file

    def column(self, name: str, advice: str = "") -> list[Any]:
        """A column, or one sentence that says which there are, and what to do."""
        if name not in self.values:
            has = ", ".join(self.values)
            raise InputError(f"the table has no column {name!r}; it has {has}{advice}")
        return self.values[name]


def columns_of(table: Any) -> Columns:
    """The columns of a table, whichever way it was given."""
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
    """The columns of a DataFrame; what pandas calls missing, in any of its ways, is None."""
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
    if not isinstance(table, Sequence) or not all(isinstance(each, Mapping) for each in table):
        raise InputError("a table is a CSV file, a DataFrame, or a list of dictionaries")
    names = {str(name): None for each in table for name in each}
    return {name: [each.get(name) for each in table] for name in names}


def _of_file(path: str | Path) -> Columns:
    text = read_text(path)
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        found = [(reader.line_num, row) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}") from None
    if len(set(header)) < len(header) or not found:
        raise InputError(f"{path} has no rows, or a column twice: {', '.join(header)}")
    for line, row in found:
        if len(row) != len(header):
            raise InputError(f"{path}, line {line}: {len(row)} cells, but {len(header)} columns")
    values = {name: [row[n].strip() for _, row in found] for n, name in enumerate(header)}
    return Columns(values, [f"{path}, line {line}" for line, _ in found])


def names(given: Columns, column: str) -> list[str]:
    """A column of names; a cell that is empty is refused."""
    found = []
    for row, cell in zip(given.rows, given.column(column), strict=True):
        missing = cell is None or (isinstance(cell, float) and math.isnan(cell))
        if isinstance(cell, float) and not missing and cell.is_integer():
            cell = int(cell)  # pandas reads whole numbers beside an empty cell as floats
        if is_whole(cell) and abs(int(cell)) >= 10**LONGEST_NUMBER:
            raise InputError(f"{row}: the {column} has more than {LONGEST_NUMBER} digits")
        text = "" if missing else str(cell).strip()
        if not text or not text.isprintable():
            raise InputError(f"{row}: the {column} is {text!r}, not a name")
        found.append(text)
    return found


def numbers(given: Columns, column: str) -> Array:
    """A column of finite numbers."""
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


def ordered(names: list[str]) -> list[str]:
    """Names in the order in which they come; whole numbers 0..n - 1 in theirs."""
    found = list(dict.fromkeys(names))
    numbers = [str(n) for n in range(len(found))]
    return numbers if set(found) == set(numbers) else found


def numbered(texts: list[str], names: list[str]) -> Indices:
    """The places of texts among names; -1 for what is none of them."""
    place = {each: n for n, each in enumerate(names)}
    return np.array([place.get(each, -1) for each in texts], dtype=np.int64)


def kept(names: list[str]) -> tuple[str, ...]:
    """The names, or none where they are the numbers themselves."""
    return () if names == [str(n) for n in range(len(names))] else tuple(names)


def limits(what: str, given: Mapping[str, float] | None) -> dict[str, float]:
    """Return {column: limit} of utilities or costs."""
    if not isinstance(given, Mapping | None):
        raise InputError(f"the {what} are {given!r}, not columns with their limits")
    return dict(given or {})


class Log(NamedTuple):
    """E logged steps in their order, by number."""

    state: Indices  # [E]
    action: Indices  # [E]
    following: Indices  # [E], -1 if an episode ended and its last state is not given
    step: Indices  # [E], counted from 0 in each episode
    began: Indices  # the first state of each episode
    signals: dict[str, Array]  # [E] each: the reward, then utilities and costs
    rows: list[str]  # the name of each row
    labels: Labels  # names of states and actions, if they are not numbers
    sizes: tuple[int, int]  # [X, A]


def log_of(data: Any, signals: list[str], known: Bundle | None = None) -> Log:
    """Return the log of a table, or of a list of episodes of (state, action, reward, ..., next).

    `known` is a problem that gives the names and the numbers of states and actions. Without it
    they are numbered as they come. If `signals` is empty, a step of a list may hold any values
    between action and next.
    """
    if len(set(signals)) < len(signals):
        raise InputError(f"a column is used twice: {', '.join(signals)}")
    rows = _of_episodes(data, signals) if _episodes(data) else columns_of(data)
    for column in ("episode", "state", "action"):
        rows.column(column)
    state, action, episode = (names(rows, each) for each in ("state", "action", "episode"))
    first = np.array([n == 0 or episode[n] != episode[n - 1] for n in range(len(episode))])
    again = [each for each, new in zip(episode, first, strict=True) if new]
    if len(set(again)) < len(again):
        twice = next(each for each in again if again.count(each) > 1)
        raise InputError(f"the rows of episode {twice} are not together")
    starts = np.flatnonzero(first)
    step = np.arange(len(first)) - np.repeat(starts, np.diff([*starts, len(first)]))
    _check_steps(rows, step)
    if "next" in rows.values:
        following = names(rows, "next")
    else:  # the state of the following row of the same episode; nothing after the last
        ends = [*first[1:], True]
        following = ["" if end else x for end, x in zip(ends, [*state[1:], ""], strict=True)]
    if known is None:
        states = ordered([*state, *(each for each in following if each)])
        labels = Labels(kept(states), kept(actions := ordered(action)))
        sizes = (len(states), len(actions))
    else:
        labels, sizes = known.labels, (known.states, known.actions)
    given = {"state": (state, "x"), "action": (action, "a"), "next": (following, "x")}
    at = {what: _known(rows, what, *each, labels, sizes) for what, each in given.items()}
    return Log(
        state=at["state"],
        action=at["action"],
        following=at["next"],
        step=step,
        began=at["state"][first],
        signals={each: numbers(rows, each) for each in signals},
        rows=rows.rows,
        labels=labels,
        sizes=sizes,
    )


def _known(
    rows: Columns, column: str, texts: list[str], axis: str, labels: Labels, sizes: tuple[int, int]
) -> Indices:
    """Return [E]: the numbers of names, -1 for empty ones; refuse a name that is not known."""
    size = sizes["xa".index(axis)]
    place = {str(n): n for n in range(size)} | {e: n for n, e in enumerate(labels.along(axis))}
    found = np.array([place.get(each, -1) for each in texts], dtype=np.int64)
    wrong = next((n for n in np.flatnonzero(found < 0) if texts[n]), None)
    if wrong is not None:
        known = choices(AXES[axis], labels.along(axis), size)
        raise InputError(f"{rows.rows[wrong]}: there is no {column} {texts[wrong]!r}: {known}")
    return found


def _episodes(data: Any) -> bool:
    """Return True for a list of episodes, and False for a table."""
    listed = isinstance(data, list | tuple)
    return listed and not any(isinstance(each, Mapping) for each in data)


def _of_episodes(data: Any, signals: list[str]) -> Columns:
    header = ["state", "action", *signals, "next"]
    found: list[dict[str, Any]] = []
    called: list[str] = []
    for k, episode in enumerate(data):
        if not isinstance(episode, Iterable):
            raise InputError(f"episode {k} is {episode!r}, not a list of steps")
        for h, step in enumerate(episode):
            listed = isinstance(step, list | tuple)
            if listed and not signals and len(step) > len(header):
                step = (*step[:2], step[-1])
            if not listed or len(step) != len(header):
                raise InputError(f"episode {k}, step {h} is not ({', '.join(header)})")
            found.append({"episode": k, **dict(zip(header, step, strict=True))})
            called.append(f"episode {k}, step {h}")
    if not found:
        raise InputError("there is no step in these episodes")
    values = {name: [each[name] for each in found] for name in ("episode", *header)}
    return Columns(values, called)


def _check_steps(rows: Columns, step: Indices) -> None:
    """A column of steps must count every episode from 0, or from 1."""
    if "step" not in rows.values:
        return
    given = numbers(rows, "step")
    wrong = np.flatnonzero(given - given[0] != step)
    if len(wrong) or given[0] not in (0.0, 1.0):
        at = int(wrong[0]) if len(wrong) else 0
        raise InputError(f"{rows.rows[at]}: the step is {given[at]:g}, not the next of its episode")
