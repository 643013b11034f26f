"""What runs leave on disk: curves as Parquet, which every table library reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cmdplab.files import written_whole
from cmdplab.problem import Array

if TYPE_CHECKING:
    from cmdplab.running import Run

LABELS = ("algorithm", "preset", "seed")
Curves = dict[str, list[dict[str, Array]]]  # by algorithm: the columns of each seed


def write_curves(runs: Sequence[Run], path: Path) -> Path:
    """One table: algorithm, preset, seed, then the columns of `Measures.curves`."""
    with written_whole(path) as temporary:
        put_curves(runs, temporary)
    return path


def write_mistakes(runs: Sequence[Run], path: Path) -> Path:
    """One table: algorithm, preset, seed, then the columns of `Measures.mistakes`."""
    with written_whole(path) as temporary:
        put_mistakes(runs, temporary)
    return path


def put_curves(runs: Sequence[Run], path: Path) -> None:
    """As `write_curves`, for who flushes and renames."""
    _put([(run, run.curves) for run in runs], path)


def put_mistakes(runs: Sequence[Run], path: Path) -> None:
    """As `write_mistakes`, for who flushes and renames."""
    _put([(run, run.mistakes) for run in runs], path)


def _put(measured: list[tuple[Run, dict[str, Array]]], path: Path) -> None:
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
    # Of a short run a third of the file would be dictionaries of numbers that never repeat,
    # statistics and a second schema.
    plain = {"use_dictionary": list(LABELS), "write_statistics": False, "store_schema": False}
    pq.write_table(pa.concat_tables(tables), path, compression="zstd", **plain)


def read_curves(path: Path) -> Curves:
    """What `write_curves` or `write_mistakes` wrote, by algorithm and seed.

    The name of an algorithm that comes in two presets carries its preset.
    """
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = {name: np.asarray(table[name]) for name in table.column_names}
    labels = {name: columns.pop(name) for name in LABELS}
    pairs = list(dict.fromkeys(zip(labels["algorithm"], labels["preset"], strict=True)))
    names = [name for name, _ in pairs]
    curves: Curves = {}
    for name, preset in pairs:
        label = f"{name}:{preset}" if names.count(name) > 1 else str(name)
        here = (labels["algorithm"] == name) & (labels["preset"] == preset)
        for seed in np.unique(labels["seed"][here]):
            mine = here & (labels["seed"] == seed)
            values = {k: np.asarray(v[mine], dtype=np.float64) for k, v in columns.items()}
            curves.setdefault(label, []).append(values)
    return curves
