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

Curves = dict[str, list[dict[str, Array]]]  # by algorithm: the columns of each seed


def write_curves(runs: Sequence[Run], path: Path) -> Path:
    """One table: algorithm, preset, seed, then the columns of `Measures.curves`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for run in runs:
        length = len(run.curves["episode"])
        columns = {
            "algorithm": pa.array([run.algorithm.name] * length),
            "preset": pa.array([run.algorithm.preset] * length),
            "seed": pa.array([run.seed] * length, pa.int64()),
            **{name: pa.array(values) for name, values in run.curves.items()},
        }
        columns["episode"] = pa.array(run.curves["episode"].astype("int64"))
        tables.append(pa.table(columns))
    with written_whole(path) as temporary:
        pq.write_table(pa.concat_tables(tables), temporary, compression="zstd")
    return path


def read_curves(path: Path) -> Curves:
    """What `write_curves` wrote, by algorithm (with its preset, if it has two) and then by seed."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = {name: np.asarray(table[name]) for name in table.column_names}
    labels = {name: columns.pop(name) for name in ("algorithm", "preset", "seed")}
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
