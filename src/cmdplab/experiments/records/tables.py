"""Curves and mistakes of runs as Parquet tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cmdplab.errors import InputError
from cmdplab.experiments.records.labels import Kind, labels
from cmdplab.files import read_table, write_table
from cmdplab.files.tables import coded
from cmdplab.measures.safety import BASELINE
from cmdplab.types import Array

if TYPE_CHECKING:
    from cmdplab.experiments.play import Run

Curves = dict[str, list[dict[str, Array]]]  # by algorithm: columns of each seed
Tables = dict[tuple[str, str], dict[int, dict[str, Array]]]  # by (algorithm, preset) and seed

_NAMES = ("algorithm", "preset")
LABELS = (*_NAMES, "seed")
_GRIDS = ("episode", "epsilon")  # grids of curves and of mistakes
_MOST = 2.0**53  # whole numbers up to which floats are exact
LARGEST = 1e30  # a horizon and a number of episodes make no larger number


def put_runs(runs: Sequence[Run], what: Literal["curves", "mistakes"], path: Path) -> str:
    """Write the curves or the mistakes of runs as one Parquet table. Return the sha256 of the file.

    The columns are algorithm, preset and seed, then those of `what`. The caller flushes the file.
    """
    import pyarrow as pa

    tables = []
    for run in runs:
        columns: dict[str, Array] = getattr(run, what)
        length = len(next(iter(columns.values())))
        code = np.zeros(length, dtype=np.int32)
        labels = {
            name: pa.DictionaryArray.from_arrays(code, [getattr(run.algorithm, word)])
            for name, word in zip(_NAMES, ("name", "preset"), strict=True)
        }
        labels["seed"] = np.full(length, run.seed)
        tables.append(
            pa.table(
                labels | {n: v.astype("int64") if _is_whole(n) else v for n, v in columns.items()}
            )
        )
    # Of a short run a third of the file would be dictionaries of numbers that never repeat,
    # statistics and a second schema.
    plain = {"use_dictionary": list(LABELS), "write_statistics": False, "store_schema": False}
    whole = pa.concat_tables(tables, promote_options="default")  # some lack the column of shares
    return write_table(whole, path, compression="zstd", **plain)


def _is_whole(name: str) -> bool:
    return name in ("episode", "seed") or "mistake" in name


def read_records(path: Path, sha256: str = "", columns: Sequence[str] | None = None) -> Any:
    """Return the table that `put_runs` wrote. Check its columns and their types.

    sha256 : the digest that a manifest states, or "". columns : the names to read, or None for all.
    """
    import pyarrow as pa

    table = read_table(path, _NAMES, sha256, columns)
    needed = (*LABELS, *_GRIDS[: "epsilon" not in table.column_names])
    wanted = [name for name in needed if columns is None or name in columns]
    check_columns(table.column_names, wanted, str(path))
    words = pa.dictionary(pa.int32(), pa.string())
    for name in table.column_names:
        kind = table[name].type
        number = pa.int64() if _is_whole(name) else pa.float64()
        if kind != (words if name in _NAMES else number):
            raise InputError(f"{path} has {kind} in the column {name!r}")
    return table


def read_tables(path: Path, sha256: str = "") -> Tables:
    """Return the tables that `put_runs` wrote, as {(algorithm, preset): {seed: columns}}.

    sha256 : the digest that a manifest states, or "".
    """
    table = read_records(path, sha256)
    if not table.num_rows:
        raise InputError(f"{path} holds no runs")
    columns = {
        name: np.asarray(table[name], dtype=np.float64)
        for name in table.column_names
        if name not in LABELS
    }
    (names, name_of), (presets, preset_of) = (coded(table[name]) for name in _NAMES)
    keys = np.stack([names, presets, np.asarray(table["seed"])], axis=1)
    runs, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(which.reshape(-1)))[:-1])
    found: Tables = {}
    for n in np.argsort(first):
        key = name_of[runs[n, 0]], preset_of[runs[n, 1]]
        values = {k: v[rows[n]] for k, v in columns.items()}
        if BASELINE in values and np.isnan(values[BASELINE]).all():
            del values[BASELINE]  # the column belongs to another algorithm
        found.setdefault(key, {})[int(runs[n, 2])] = values
    for (name, _), by_seed in found.items():
        _check_runs(by_seed, name, path)
    return {key: dict(sorted(by_seed.items())) for key, by_seed in found.items()}


def _check_runs(by_seed: dict[int, dict[str, Array]], name: str, path: Path) -> None:
    """Refuse impossible values, grids that do not rise, and grids that differ between seeds."""
    first = next(iter(by_seed.values()))
    (grid,) = (each for each in _GRIDS if each in first)
    for seed, columns in by_seed.items():
        for column, values in columns.items():
            wrong = ~(np.abs(values) <= (_MOST if _is_whole(column) else LARGEST))
            if wrong.any():
                what = f"{column} of {name} (seed {seed}) is {values[wrong][0]:g}"
                raise InputError(f"{path}: {what}, which no run can give")
        if not np.array_equal(columns[grid], first[grid]):
            raise InputError(f"{path}: the seeds of {name} do not share one {grid} grid")
        if columns[grid][0] <= 0.0 or (np.diff(columns[grid]) <= 0.0).any():
            raise InputError(f"{path}: {grid} of {name} (seed {seed}) does not rise")


def read_curves(path: Path, sha256: str = "") -> Curves:
    """Return {label: columns of each seed, in the order of the seeds} from a file of `put_runs`.

    sha256 : the digest that a manifest states, or "".
    """
    found = read_tables(path, sha256)
    named = labels([Kind(*pair) for pair in found])
    return {named[Kind(*pair)]: list(by_seed.values()) for pair, by_seed in found.items()}


def read_one(path: Path, seed: int, sha256: str = "") -> dict[str, Array]:
    """Return the columns of a table that holds one run, of this seed. Refuse any other table."""
    found = [each for by_seed in read_tables(path, sha256).values() for each in by_seed.items()]
    if [each for each, _ in found] != [seed]:
        raise InputError(f"{path} is not of that run alone")
    return found[0][1]


def check_columns(columns: Collection[str], needed: Iterable[str], where: str) -> None:
    """Raise an `InputError` if a column of `needed` is missing in the table named `where`."""
    for name in needed:
        if name not in columns:
            raise InputError(f"{where} has no column {name!r}: it is of a version unknown here")
