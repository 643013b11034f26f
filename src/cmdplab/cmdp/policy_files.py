"""Policies as long tables, and as files that hold these tables or the arrays.

    {"step": 0, "state": "busy", "action": "serve", "probability": 0.7}

A row has a step, a state, a level of the counter and an action: names if the problem has them, else
numbers. A table may leave out actions of probability zero, and states that its policy never
reaches. A table that lacks any other row is refused.

A .npz file holds every array of a policy, and a .json file all but the problem. A counter is stored
as its steps, levels, start and limit. Without a limit, the largest integer is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.cmdp import exact
from cmdplab.cmdp.bundle import check_format, check_problem
from cmdplab.cmdp.checks import POLICY_TOLERANCE
from cmdplab.cmdp.columns import columns_of, places, probabilities, repeated
from cmdplab.cmdp.labels import AXES, Labels
from cmdplab.cmdp.memory import Counter, Counters, Memory, counted_occupancy, mass_by_next_level
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.errors import InputError, printable
from cmdplab.files import read_json, read_sealed_npz, write_sealed_npz
from cmdplab.files.tables import csv_text
from cmdplab.files.write import to_json, write_text
from cmdplab.types import Array, Indices, Mask

Row = dict[str, Any]
LARGEST = 500_000_000  # the most numbers of a policy: 4 GB


def axes_of(array: Array, counter: Memory | None) -> str:
    """Return the letters of the axes of a policy: h step, k counter, x state, a action."""
    memory = "" if counter is None else "k"
    return ("h" if array.ndim == 3 + len(memory) else "") + memory + "xa"


def written_rows(array: Array, axes: str, labels: Labels, kept: Mask | None = None) -> list[Row]:
    """Return the rows of a policy's table, or only the positive ones where `kept` [..., X] is True.

    axes : the letters of the axes of `array`, from `axes_of`.
    """
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
    """Return the probabilities in a policy's table, with the axes of `axes_of`.

    problem : for sizes and names. `columns.columns_of` lists the kinds of tables. Without a column
    "step" the policy is stationary. A policy with a counter needs the column "counter".
    """
    check_problem(problem)
    given, opened = columns_of(table), problem.opened
    stepwise = opened.ndim == 3 and "step" in given.values
    axes = ("h" if stepwise else "") + ("k" if counter is not None else "") + "xa"
    sizes = {"h": len(opened), "x": problem.states, "a": problem.actions}
    sizes["k"] = 1 if counter is None else counter.levels
    shape = tuple(sizes[axis] for axis in axes)
    if prod(shape) > LARGEST:
        raise InputError(f"a policy of {' x '.join(map(str, shape))} numbers is too large")
    index = tuple(places(given, AXES[e], e, problem.labels, sizes[e]) for e in axes)
    twice = repeated(zip(*index, strict=True))
    if twice is not None:
        number, first = twice
        where = problem.labels.in_words(axes, [int(each[number]) for each in index])
        raise InputError(f"{given.rows[number]} says {where} again, after {given.rows[first]}")
    array = np.zeros(shape)
    array[index] = probabilities(given, POLICY_TOLERANCE)
    _fill(array, axes, given.rows, index, problem, counter)
    return array


def _fill(
    array: Array,
    axes: str,
    rows: list[str],
    index: tuple[Indices, ...],
    problem: CMDP | StationaryCMDP,
    counter: Memory | None,
) -> None:
    """Set equal probabilities in states that the table lacks, if the policy never reaches them.

    Refuse a table that lacks a state the policy reaches, or whose rows have a wrong sum.
    """
    said = np.zeros(array.shape[:-1], dtype=bool)
    said[index[:-1]] = True
    total = array.sum(axis=-1)
    wrong = np.argwhere(said & (np.abs(total - 1.0) > POLICY_TOLERANCE))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        first = np.all([each == n for each, n in zip(index, place, strict=False)], axis=0).argmax()
        where = problem.labels.in_words(axes, place)
        raise InputError(
            f"the rows of {where}, from {rows[first]} on, sum to {total[place]:.9g}, not to 1"
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


def reached(problem: CMDP | StationaryCMDP, array: Array, counter: Memory | None) -> Mask:
    """Return True for the rows that a policy reaches with positive probability, [H, K, X].

    array : the policy. The axes of steps and levels are absent if it lacks them.
    """
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
    """Return booleans [X] or [K, X]: True for states that a path from the start reaches."""
    rows = array[None] if counter is None else array
    here = np.zeros(rows.shape[:-1], dtype=bool)
    here[0 if counter is None else counter.start] = np.asarray(problem.start) > 0.0
    while True:
        pairs = np.where(here[..., None], rows > 0.0, False).astype(np.float64)
        if counter is not None:
            pairs = mass_by_next_level(pairs, counter.next_levels(0))
        after = np.stack([problem.kernel.forward(0, each) > 0.0 for each in pairs])
        if not (after & ~here).any():
            return here[0] if counter is None else here
        here = here | after


FORMAT = "cmdplab-policy-1"
NO_LIMIT = np.iinfo(np.int64).max  # limit in files of a counter without limit
COUNTER = ("counter_step", "counter", "counter_sums")


class Parts(NamedTuple):
    """Fields of a policy in a file."""

    array: Array
    labels: Labels
    name: str
    counter: Memory | None


def write(path: str | Path, policy: Parts) -> None:
    """Write a policy to a file, atomically. The ending of the path gives the format."""
    kind = Path(path).suffix
    if kind == ".npz":
        names = {"format": FORMAT, "name": policy.name}
        if policy.labels != Labels():
            names["labels"] = policy.labels.to_json()
        arrays = {"probability": policy.array, **{k: np.array(v) for k, v in names.items()}}
        write_sealed_npz(path, arrays | _counter_arrays(policy.counter))
    elif kind == ".json":
        head = {"format": FORMAT, "name": policy.name, **_counter_arrays(policy.counter)}
        write_text(path, to_json({**head, "rows": _rows(policy)}, indent=1) + "\n")
    elif kind == ".csv":
        if policy.counter is not None:
            raise InputError(f"{path}: a .csv cannot hold the counter; .npz and .json can")
        rows = _rows(policy)
        write_text(path, csv_text([rows[0], *(row.values() for row in rows)]))
    else:
        raise InputError(f"{path} is no .npz, .csv or .json, which a policy can be written to")


def read(path: str | Path, problem: CMDP | StationaryCMDP | None) -> Parts:
    """Read a policy from a file of `write`. Files .csv and .json need the problem."""
    kind = Path(path).suffix
    if kind not in (".csv", ".json"):
        arrays = read_sealed_npz(path, ("format", "name", "probability", "labels", *COUNTER))
        check_format(path, "cmdplab policy", arrays, {"name", "probability"}, (FORMAT,))
        labels = Labels.from_json(str(arrays.get("labels", "{}")))
        return Parts(arrays["probability"], labels, str(arrays["name"]), _counter(arrays))
    if problem is None:
        raise InputError(f"a policy in a {kind} file is read with its problem")
    if kind == ".csv":
        array = read_rows(path, problem)
        return Parts(array, problem.labels, printable(Path(path).stem), None)
    return _from_written(read_json(path), problem)


def _rows(policy: Parts) -> list[dict[str, Any]]:
    axes = axes_of(policy.array, policy.counter)
    return written_rows(policy.array, axes, policy.labels)


def _from_written(values: Any, problem: CMDP | StationaryCMDP) -> Parts:
    if (
        not isinstance(values, dict)
        or values.get("format") != FORMAT
        or not isinstance(values.get("rows"), list)
    ):
        raise InputError(f"it is not a policy: an object of format {FORMAT!r} and rows")
    try:
        arrays = {name: np.asarray(values[name]) for name in COUNTER if name in values}
    except ValueError:
        raise InputError("a counter must be lists of whole numbers") from None
    counter = _counter(arrays)
    array = read_rows(values["rows"], problem, counter)
    return Parts(array, problem.labels, str(values.get("name", "policy")), counter)


def _counter_arrays(counter: Memory | None) -> dict[str, npt.NDArray[Any]]:
    if counter is None:
        return {}
    parts = counter.parts if isinstance(counter, Counters) else (counter,)
    if counter is parts[0] and parts[0].limit is None and parts[0].sums is None:
        sizes = np.array([counter.levels, counter.start])
        return {"counter_step": counter.step, "counter": sizes}
    limits = [NO_LIMIT if each.limit is None else each.limit for each in parts]
    sizes = np.array([(e.levels, e.start, limit) for e, limit in zip(parts, limits, strict=True)])
    found = {"counter_step": Counters(parts).step, "counter": sizes}
    if any(each.sums is not None for each in parts):
        found["counter_sums"] = np.concatenate([each.every_sum for each in parts])
    return found


def _counter(arrays: Mapping[str, npt.NDArray[Any]]) -> Memory | None:
    if not any(name in arrays for name in COUNTER):
        return None
    if "counter_step" not in arrays or "counter" not in arrays:
        raise InputError("a counter needs both 'counter_step' and 'counter'")
    step, sizes = arrays["counter_step"], arrays["counter"]
    if sizes.dtype.kind not in "iu" or sizes.shape not in ((2,), (*step.shape[:1], 3)):
        raise InputError("'counter' must be whole numbers: the levels, the start and the limit")
    if sizes.ndim == 1:
        return Counter(step, int(sizes[0]), int(sizes[1]))
    ends = np.cumsum(np.maximum(sizes[:, 0], 0))
    sums = arrays.get("counter_sums")
    if sums is not None and sums.shape != (ends[-1],):
        raise InputError(f"'counter_sums' must be {ends[-1]} whole numbers, one for each level")
    each_sums = [None] * len(sizes) if sums is None else np.split(sums, ends[:-1])
    parts = tuple(
        Counter(each, levels, start, None if limit == NO_LIMIT else limit, listed)
        for each, (levels, start, limit), listed in zip(
            step, sizes.tolist(), each_sums, strict=True
        )
    )
    return parts[0] if len(parts) == 1 else Counters(parts)
