"""What runs leave on disk: curves as Parquet, which every table library reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cmdplab.errors import InputError
from cmdplab.files import LARGEST_FILE, written_whole
from cmdplab.labels import Kind, labels
from cmdplab.problem import Array

if TYPE_CHECKING:
    import pyarrow as pa

    from cmdplab.running import Run

Curves = dict[str, list[dict[str, Array]]]  # by label: the columns of each seed
Tables = dict[tuple[str, str], dict[int, dict[str, Array]]]  # by (algorithm, preset) and seed
_LABELS = ("algorithm", "preset", "seed")


def write_curves(runs: Sequence[Run], path: Path) -> Path:
    """One table: algorithm, preset, seed, then the columns of `Measures.curves`."""
    return _write([(run, run.curves) for run in runs], path)


def write_mistakes(runs: Sequence[Run], path: Path) -> Path:
    """One table: algorithm, preset, seed, then the columns of `Measures.mistakes`."""
    return _write([(run, run.mistakes) for run in runs], path)


def _write(measured: list[tuple[Run, dict[str, Array]]], path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for run, columns in measured:
        length = len(next(iter(columns.values())))
        labels = {
            "algorithm": pa.array([run.algorithm.name] * length),
            "preset": pa.array([run.algorithm.preset] * length),
            "seed": pa.array([run.seed] * length, pa.int64()),
        }
        whole = {name for name in columns if name == "episode" or "mistake" in name}
        kinds = {name: pa.int64() if name in whole else pa.float64() for name in columns}
        values = {
            name: pa.array(each.astype("int64") if name in whole else each, kinds[name])
            for name, each in columns.items()
        }
        tables.append(pa.table(labels | values))
    with written_whole(path) as temporary:
        pq.write_table(pa.concat_tables(tables), temporary, compression="zstd")
    return path


def read_table(path: Path) -> pa.Table:
    """A Parquet file from outside: never of absurd size, and one sentence where it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(path)
        groups = (about.row_group(n) for n in range(about.num_row_groups))
        if (size := sum(group.total_byte_size for group in groups)) > LARGEST_FILE:
            raise InputError(f"{path} would unpack to {size} bytes, more than {LARGEST_FILE}")
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def read_tables(path: Path) -> Tables:
    """What `write_curves` or `write_mistakes` wrote, by (algorithm, preset) and seed."""
    import pyarrow as pa

    table = read_table(path)
    if not table.num_rows:
        raise InputError(f"{path} holds no runs")
    check_columns(table.column_names, _LABELS, str(path))
    try:
        keys = list(zip(*(table[name].to_pylist() for name in _LABELS), strict=True))
        numbers = {
            name: np.asarray(table[name], dtype=np.float64)
            for name in table.column_names
            if name not in _LABELS
        }
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a table of numbers: {error}") from None
    places: dict[tuple[str, str, int], list[int]] = {}
    for place, (name, preset, seed) in enumerate(keys):
        places.setdefault((str(name), str(preset), int(seed or 0)), []).append(place)
    found: Tables = {}
    for (name, preset, seed), mine in places.items():
        found.setdefault((name, preset), {})[seed] = {k: v[mine] for k, v in numbers.items()}
    return {key: dict(sorted(by_seed.items())) for key, by_seed in found.items()}


def read_curves(path: Path) -> Curves:
    """The same, by label; the seeds in order."""
    found = read_tables(path)
    named = labels([Kind(*pair) for pair in found])
    return {named[Kind(*pair)]: list(by_seed.values()) for pair, by_seed in found.items()}


def read_one(path: Path, seed: int) -> dict[str, Array]:
    """The columns of a table of one run alone."""
    by_seed = [each for many in read_tables(path).values() for each in many.items()]
    if [each for each, _ in by_seed] != [seed]:
        raise InputError(f"{path} is not of that run alone")
    return by_seed[0][1]


def check_columns(columns: Collection[str], needed: Iterable[str], where: str) -> None:
    """Refuse a table that is not what its name says."""
    for name in needed:
        if name not in columns:
            raise InputError(f"{where} has no column {name!r}: it is of a version unknown here")
