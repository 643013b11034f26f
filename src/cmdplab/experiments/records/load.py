"""Readers of records: the curves of all runs in a folder as one table, and finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cmdplab.errors import InputError, check_installed
from cmdplab.experiments import checkpoint, manifest
from cmdplab.experiments.durable import CURVES, MISTAKES
from cmdplab.experiments.folder import works_of
from cmdplab.experiments.play import Run, saved_state
from cmdplab.experiments.records.tables import read_one, read_records
from cmdplab.experiments.status import Index, status_by
from cmdplab.experiments.work import Work
from cmdplab.files.tables import FORMULA
from cmdplab.files.write import written_whole
from cmdplab.measures.measures import Summary
from cmdplab.settings import SETTINGS

_KINDS: dict[str, type] = dict.fromkeys(("run", "problem", "algorithm", "preset"), str)
_KINDS |= {name: declared.kind for name, declared in SETTINGS.items()} | {"seed": int}
LABELS = tuple(_KINDS)


def load_runs(folder: str | Path, to: str = "arrow") -> Any:
    """Return the curves of all runs in a folder as one table. to : "arrow", "pandas" or "xarray".

    A row is one grid point of one run: the labels of the run, then the columns of docs/records.md.
    Runs without curves are left out. The form xarray needs the extra `data`.
    """
    forms = {"arrow": lambda table: table, "pandas": lambda t: t.to_pandas(), "xarray": _dataset}
    if to not in forms:
        raise InputError(f"unknown form {to!r}: choose arrow, pandas or xarray")
    return forms[to](_table(Path(folder)))


def _table(folder: Path) -> Any:
    import pyarrow as pa

    tables, works = [], works_of(folder)
    index = Index(works)
    for work in works:
        if not (work.folder / CURVES).exists():
            continue
        if index.status(work).status == "damaged":
            raise InputError(f"{work.folder} is damaged: `cmdplab resume` makes it whole again")
        known = work.settings.model_dump() | {"run": work.folder.name}
        sha256 = index.sha256[work.folder.name].get(CURVES, "")
        table = read_records(work.folder / CURVES, sha256)
        tables.append(_labelled(table, known))
    if not tables:
        raise InputError(f"{folder} holds no curves yet")
    return pa.concat_tables(tables, promote_options="default")


def _labelled(table: Any, known: dict[str, Any]) -> Any:
    import pyarrow as pa

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    labels = {
        name: pa.array([known.get(name)] * table.num_rows, kinds[kind])
        for name, kind in _KINDS.items()
    }
    numbers = {name: table[name] for name in table.column_names if name not in labels}
    return pa.table(labels | numbers)


def recall(work: Work) -> Run:
    """Return a finished run from its records, equal to the result of `run`."""
    record = manifest.read_if_good(work.folder)
    status = status_by(work, record)
    if status.status != "done" or record is None:
        raise InputError(f"{work.folder} is {status.status}: `cmdplab resume` goes on with it")
    snapshot = checkpoint.find(work.folder).snapshot
    if snapshot is None:
        raise InputError(f"{work.folder} has no checkpoint that can be read")
    row, seed = record.checked_row(), work.settings.seed
    curves, mistakes = (read_one(work.folder / name, seed) for name in (CURVES, MISTAKES))
    summary, state = Summary(**record.summary), saved_state(row, snapshot)  # type: ignore[arg-type]
    return Run(row, seed, summary, curves, mistakes, state, record.seconds)


def _dataset(table: Any) -> Any:
    check_installed("xarray")
    import pandas as pd
    import xarray as xr

    frame: pd.DataFrame = table.to_pandas()
    labels = frame.drop_duplicates("run").set_index("run")[list(LABELS[1:])]
    numbers = frame.drop(columns=list(LABELS[1:])).set_index(["run", "episode"])
    data: xr.Dataset = numbers.to_xarray()
    for name in LABELS[1:]:
        data = data.assign_coords({name: ("run", labels.loc[data["run"].values, name].to_numpy())})
    return data


def export(folder: str | Path, kind: str, path: str | Path) -> Path:
    """Write the curves of a folder to `path` and return it. kind : "csv", "parquet" or "netcdf"."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv
    import pyarrow.parquet

    target = Path(path)
    if kind == "netcdf":
        data = load_runs(folder, "xarray")
        with written_whole(target) as temporary:
            data.to_netcdf(temporary.absolute(), engine="h5netcdf")  # run::1 is an address
        return target
    writers = {"csv": pyarrow.csv.write_csv, "parquet": pyarrow.parquet.write_table}
    if kind not in writers:
        raise InputError(f"unknown format {kind!r}: choose csv, parquet or netcdf")
    table = load_runs(folder)
    if kind == "csv":  # as `files.tables.csv_text` writes such text
        for n, field in enumerate(table.schema):
            if pa.types.is_string(field.type):
                safe = pc.replace_substring_regex(table[n], f"^({FORMULA})", r"'\1")
                table = table.set_column(n, field, safe)
    with written_whole(target) as temporary, temporary.open("wb") as stream:
        writers[kind](table, stream)
    return target
