"""Reading records back: a tidy table, or a labelled array, of every run in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cmdplab.errors import InputError
from cmdplab.experiment import OVERRIDES
from cmdplab.files import LARGEST_FILE, written_whole
from cmdplab.index import Index
from cmdplab.surviving import CURVES
from cmdplab.sweeping import works_of

LABELS = ("run", "problem", "algorithm", "preset", *OVERRIDES, "seed")
_WORDS = {"run", "problem", "algorithm", "preset", "replan"}
_WHOLE = {"tuned_for", "seed"}


def load(folder: str | Path, to: str = "arrow") -> Any:
    """The curves of every run in a folder, as `arrow`, `pandas` or `xarray` (with the extra).

    A row is a grid point of a run: its labels, then the columns of docs/records.md. Runs without
    curves yet are left out.
    """
    table = _table(Path(folder))
    if to == "arrow":
        return table
    if to == "pandas":
        return table.to_pandas()
    if to == "xarray":
        return _dataset(table)
    raise InputError(f"unknown form {to!r}: choose arrow, pandas or xarray")


def _table(folder: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables, works = [], works_of(folder)
    index = Index(works)
    for work in works:
        path = work.folder / CURVES
        if not path.exists():
            continue
        if index.status(work).status == "damaged":
            raise InputError(f"{work.folder} is damaged: `cmdplab resume` makes it whole again")
        try:
            about = pq.read_metadata(path)
            groups = (about.row_group(n) for n in range(about.num_row_groups))
            size = sum(group.total_byte_size for group in groups)
            if size > LARGEST_FILE:
                raise InputError(f"{path} would unpack to {size} bytes, more than {LARGEST_FILE}")
            table = pq.read_table(path)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path} cannot be read: {error}") from None
        labels = dict.fromkeys(OVERRIDES) | work.settings.model_dump() | {"run": work.folder.name}
        for position, name in enumerate(LABELS):
            if name in table.column_names:
                table = table.drop_columns([name])
            kind = pa.string() if name in _WORDS else pa.float64()
            kind = pa.int64() if name in _WHOLE else kind
            column = pa.array([labels[name]] * table.num_rows, kind)
            table = table.add_column(position, name, column)
        tables.append(table)
    if not tables:
        raise InputError(f"{folder} holds no curves yet")
    return pa.concat_tables(tables, promote_options="default")


def _dataset(table: Any) -> Any:
    try:
        import pandas as pd
        import xarray as xr
    except ImportError:
        raise InputError("xarray is not installed: pip install 'cmdplab[data]'") from None
    frame: pd.DataFrame = table.to_pandas()
    labels = frame.drop_duplicates("run").set_index("run")[list(LABELS[1:])]
    numbers = frame.drop(columns=list(LABELS[1:])).set_index(["run", "episode"])
    data: xr.Dataset = numbers.to_xarray()
    for name in LABELS[1:]:
        data = data.assign_coords({name: ("run", labels.loc[data["run"].values, name].to_numpy())})
    return data


def export(folder: str | Path, kind: str, path: str | Path) -> Path:
    """Write the curves of a folder as csv, parquet or netcdf."""
    import pyarrow.csv
    import pyarrow.parquet

    target = Path(path)
    if kind == "netcdf":
        data = load(folder, "xarray")
        with written_whole(target) as temporary:
            data.to_netcdf(temporary, engine="h5netcdf")
        return target
    writers = {"csv": pyarrow.csv.write_csv, "parquet": pyarrow.parquet.write_table}
    if kind not in writers:
        raise InputError(f"unknown format {kind!r}: choose csv, parquet or netcdf")
    with written_whole(target) as temporary:
        writers[kind](load(folder), temporary)
    return target
