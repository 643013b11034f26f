"""What runs leave on disk: curves as Parquet, which every table library reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cmdplab.files import written_whole

if TYPE_CHECKING:
    from cmdplab.running import Run


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
