"""Policies in files: .npz holds everything; .csv and .json hold rows, read with the problem.

A counter is two arrays, in .json as lists: `counter_step`, its increments, and `counter`, its
levels and its start. Several counters, and those with a limit or sums of their own, have
`counter` [parts, 3], with the limits, an axis of parts before `counter_step`, and the sums of all
parts one after the other in `counter_sums`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.cmdp.checks import check_format
from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.memory import Counter, Counters, Memory
from cmdplab.cmdp.policy_tables import axes_of, read_rows, rows_of_csv, written_rows
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.errors import InputError, printable
from cmdplab.files import read_json, read_sealed_npz, read_text, write_sealed_npz
from cmdplab.files.tables import csv_text
from cmdplab.files.write import to_json, write_text
from cmdplab.types import Array

FORMAT = "cmdplab-policy-1"
NO_LIMIT = np.iinfo(np.int64).max  # stands in files for a counter without one
COUNTER = ("counter_step", "counter", "counter_sums")


class Parts(NamedTuple):
    """What a policy is made of."""

    array: Array
    labels: Labels
    name: str
    counter: Memory | None


def write(path: str | Path, policy: Parts) -> None:
    """Write a policy, whole or not at all; the ending of the path says how."""
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
    """Read what `write` wrote."""
    kind = Path(path).suffix
    if kind not in (".csv", ".json"):
        arrays = read_sealed_npz(path, ("format", "name", "probability", "labels", *COUNTER))
        check_format(path, "cmdplab policy", arrays, {"name", "probability"}, (FORMAT,))
        labels = Labels.from_json(str(arrays.get("labels", "{}")))
        return Parts(arrays["probability"], labels, str(arrays["name"]), _counter(arrays))
    if problem is None:
        raise InputError(f"a policy in a {kind} file is read with its problem")
    if kind == ".csv":
        array = read_rows(rows_of_csv(read_text(path)), problem)
        return Parts(array, problem.labels, printable(Path(path).stem), None)
    return _from_written(read_json(path), problem)


def _rows(policy: Parts) -> list[dict[str, Any]]:
    axes = axes_of(policy.array, policy.counter)
    return written_rows(policy.array, axes, policy.labels)


def _from_written(values: Any, problem: CMDP | StationaryCMDP) -> Parts:
    if not isinstance(values, dict) or values.get("format") != FORMAT or "rows" not in values:
        raise InputError(f"it is not a policy: an object of format {FORMAT!r} and rows")
    try:
        arrays = {name: np.asarray(values[name]) for name in COUNTER if name in values}
    except ValueError:
        raise InputError("a counter must be lists of whole numbers") from None
    counter = _counter(arrays)
    array = read_rows(values["rows"], problem, counter)
    return Parts(array, problem.labels, str(values.get("name", "policy")), counter)


def _counter_arrays(counter: Memory | None) -> dict[str, npt.NDArray[Any]]:
    """What a file holds of a counter: see the head of the module."""
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
    """The counter of these arrays; none where none of them is there."""
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
