"""Policies as long tables: a row for each step, state, level of the counter and action.

    {"step": 0, "state": "busy", "action": "serve", "probability": 0.7}

Names stand where the problem has them, numbers where not. A table may leave out actions of
probability zero, and states that its policy never reaches; whatever else is missing is refused.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from cmdplab.checks import is_whole
from cmdplab.cmdp import exact
from cmdplab.cmdp.checks import POLICY_TOLERANCE, check_problem
from cmdplab.cmdp.labels import AXES, Labels, choices
from cmdplab.cmdp.memory import Memory, counted_occupancy, mass_by_next_level
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.errors import InputError
from cmdplab.files.tables import csv_rows
from cmdplab.types import Array, Mask

Row = dict[str, Any]
LARGEST = 500_000_000  # numbers of a policy: 4 GB


def axes_of(array: Array, counter: Memory | None) -> str:
    """A letter for each axis of a policy: h step, k counter, x state, a action."""
    memory = "" if counter is None else "k"
    return ("h" if array.ndim == 3 + len(memory) else "") + memory + "xa"


def written_rows(array: Array, axes: str, labels: Labels, kept: Mask | None = None) -> list[Row]:
    """The rows of a policy; with `kept` [..., X] those alone, and no probability of zero."""
    chosen = np.ones_like(array, dtype=bool) if kept is None else kept[..., None] & (array > 0.0)
    sizes = zip(axes, array.shape, strict=True)
    names: list[Sequence[Any]] = [labels.along(axis) or range(size) for axis, size in sizes]
    columns = [AXES[axis] for axis in axes]
    rows = []
    for index in np.argwhere(chosen).tolist():
        row = {what: name[n] for what, name, n in zip(columns, names, index, strict=True)}
        rows.append({**row, "probability": float(array[tuple(index)])})
    return rows


def read_rows(table: Any, problem: CMDP | StationaryCMDP, counter: Memory | None = None) -> Array:
    """The probabilities that a table says, for the sizes and names of a problem.

    table : rows as mappings, or a DataFrame of pandas. Without a column "step" the policy is
    stationary. Rows are counted from 1 in what is said about them.
    """
    check_problem(problem)
    records = _records(table)
    opened = problem.opened
    stepwise = opened.ndim == 3 and any("step" in each for each in records)
    axes = ("h" if stepwise else "") + ("k" if counter is not None else "") + "xa"
    sizes = {"h": len(opened), "x": problem.states, "a": problem.actions}
    sizes["k"] = 1 if counter is None else counter.levels
    shape = [sizes[axis] for axis in axes]
    if prod(shape) > LARGEST:
        raise InputError(f"a policy of {' x '.join(map(str, shape))} numbers is too large")
    array, first = np.zeros(shape), dict[tuple[int, ...], int]()
    finds = [_finder(axis, sizes[axis], problem.labels) for axis in axes]
    for number, record in enumerate(records, start=1):
        index = tuple(find(record, number) for find in finds)
        if index in first:
            where = problem.labels.in_words(axes, index)
            raise InputError(
                f"row {number} of the table says {where} again, after row {first[index]}"
            )
        first[index] = number
        array[index] = _probability(record, number)
    _fill(array, axes, first, problem, counter)
    return array


def _records(table: Any) -> list[Mapping[str, Any]]:
    if hasattr(table, "to_dict"):
        table = table.to_dict("records")
    if not isinstance(table, Iterable) or isinstance(table, str | bytes | Mapping):
        raise InputError("a table of a policy must be a list of rows, or a DataFrame")
    records = list(table)
    for number, each in enumerate(records, start=1):
        if not isinstance(each, Mapping):
            raise InputError(f"row {number} of the table is no mapping of columns to values")
    if not records:
        raise InputError("the table of the policy has no rows")
    return records


def _finder(axis: str, size: int, labels: Labels) -> Any:
    """A function from a row and its number to the place along an axis."""
    what = AXES[axis]
    known: dict[Any, int] = {str(n): n for n in range(size)}
    known |= {name: n for n, name in enumerate(labels.along(axis))}

    def find(record: Mapping[str, Any], number: int) -> int:
        if what not in record:
            raise InputError(f"row {number} of the table has no {what!r}")
        given = record[what]
        if is_whole(given) or (isinstance(given, float | np.floating) and given.is_integer()):
            given = int(given)  # names that are digits come back from pandas as numbers
        found = known.get(str(given)) if isinstance(given, int | str) else None
        if found is None:
            say = choices(what, labels.along(axis), size)
            raise InputError(f"row {number} of the table: there is no {what} {given!r}: {say}")
        return found

    return find


def _probability(record: Mapping[str, Any], number: int) -> float:
    given = record.get("probability")
    try:
        p = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        p = np.nan
    if isinstance(given, bool) or not 0.0 <= p <= 1.0 + POLICY_TOLERANCE:
        raise InputError(f"row {number} of the table: {given!r} is not a probability")
    return p


def _fill(
    array: Array,
    axes: str,
    first: dict[tuple[int, ...], int],
    problem: CMDP | StationaryCMDP,
    counter: Memory | None,
) -> None:
    """Give states that the policy never reaches equal probabilities; a state it reaches must stand.

    Rows of a wrong sum are refused here too, with the number of their first row.
    """
    said = np.zeros(array.shape[:-1], dtype=bool)
    for index in first:
        said[index[:-1]] = True
    total = array.sum(axis=-1)
    wrong = np.argwhere(said & (np.abs(total - 1.0) > POLICY_TOLERANCE))
    if len(wrong):
        index = tuple(wrong[0].tolist())
        number = min(n for place, n in first.items() if place[:-1] == index)
        where = problem.labels.in_words(axes, index)
        raise InputError(
            f"the rows of {where}, from row {number} on, sum to {total[index]:.9g}, not to 1"
        )
    opened = problem.opened
    if opened.ndim == 3 and "h" not in axes:
        opened = np.asarray(opened.all(axis=0))
    opened = opened[..., None, :, :] if "k" in axes else opened
    even = opened / np.maximum(opened.sum(axis=-1, keepdims=True), 1)
    array[~said] = np.broadcast_to(even, array.shape)[~said]
    if said.all():
        return
    missing = np.argwhere(~said & reached(problem, array, counter))
    if len(missing):
        where = problem.labels.in_words(axes, missing[0].tolist())
        raise InputError(f"the table has no row for {where}, which its policy reaches")


def rows_of_csv(text: str) -> list[Row]:
    """Return the rows of comma-separated values; the first line names the columns."""
    try:
        header, *rows = csv_rows(text) or [[]]
    except csv.Error as error:
        raise InputError(f"it cannot be read as .csv: {error}") from None
    rows = [row for row in rows if row]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise InputError(f"row {number} of the table has another number of columns")
    return [dict(zip(header, row, strict=True)) for row in rows]


def reached(problem: CMDP | StationaryCMDP, array: Array, counter: Memory | None) -> Mask:
    """Where a policy comes with positive probability, in the shape of its rows."""
    if isinstance(problem, StationaryCMDP):
        return _reached_without_end(problem, array, counter)
    levels = 0 if counter is None else 1
    stationary = array.ndim == 2 + levels
    rows = np.broadcast_to(array, (problem.horizon, *array.shape)) if stationary else array
    if counter is None:
        pairs = exact.occupancy(problem, rows)
    else:
        pairs = counted_occupancy(problem, rows, counter)
    found = np.asarray(pairs.sum(axis=-1) > 0.0)
    return np.asarray(found.any(axis=0)) if stationary else found


def _reached_without_end(problem: StationaryCMDP, array: Array, counter: Memory | None) -> Mask:
    """[X] or [K, X]: every state that follows, sooner or later, from the start."""
    start = np.asarray(problem.start) > 0.0
    if counter is None:
        here = start
    else:
        here = np.zeros((counter.levels, problem.states), dtype=bool)
        here[counter.start] = start
    while True:
        pairs = np.where(here[..., None], array > 0.0, False).astype(np.float64)
        if counter is None:
            after = problem.kernel.forward(0, pairs) > 0.0
        else:
            moved = mass_by_next_level(pairs, counter.next_levels(0))
            after = np.stack([problem.kernel.forward(0, each) > 0.0 for each in moved])
        if not (after & ~here).any():
            return here
        here = here | after
