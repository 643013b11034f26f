"""Cache of the tables of all finished runs of a large sweep, in a few files that load fast.

DIR/.columns/NAME/ has one file for each set of columns. It holds the rows of the file NAME of many
runs, and the sha256 of each run's file. Rows are used only if this hash equals that of the
manifest. A cache file is named by its own sha256, which shows damage. Missing rows are read from
the folders of the runs and added.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cmdplab.errors import InputError
from cmdplab.experiments.records.tables import LABELS, read_one
from cmdplab.experiments.status import home_of
from cmdplab.experiments.work import Work
from cmdplab.files import LARGEST, file_digest as sha256
from cmdplab.types import Array

FOLDER = ".columns"
FEWEST = 200  # fewer runs get no cache
_KEY = b"cmdplab.runs"

Table = dict[str, Array]


class _Rows(NamedTuple):
    source: str
    table: Table


class Columns:
    """Cache of the tables of a sweep's runs. `save` adds the tables read from run folders."""

    def __init__(self, works: Sequence[Work]) -> None:
        home = home_of(works) if len(works) >= FEWEST else None
        self._folder = None if home is None else home / FOLDER
        self._known: dict[str, dict[str, _Rows]] = {}
        self._new: set[str] = set()

    def table(self, work: Work, name: str, source: str) -> Table:
        """Return the columns of the file `name` of a run. source : its sha256, or "" if unknown."""
        run = work.folder
        if self._folder is None or not source:
            return read_one(run / name, work.settings.seed, source)
        if name not in self._known:
            self._known[name] = _read(self._folder / name)
        known = self._known[name].get(run.name)
        if known is not None and known.source == source:
            return known.table
        if (found := _as_written(run / name, source)) is None:
            return read_one(run / name, work.settings.seed, source)
        self._known[name][run.name] = _Rows(source, found)
        self._new.add(name)
        return found

    def save(self) -> None:
        """Write the tables that were read to the cache. Do nothing if it cannot be written."""
        if self._folder is not None:
            with suppress(OSError, InputError):
                for name in sorted(self._new):
                    _write(self._folder / name, self._known[name])
                self._new.clear()


@contextmanager
def columns_of(works: Sequence[Work]) -> Iterator[Columns]:
    """Yield the cache of these works' tables. Save it at the end of the `with` block."""
    columns = Columns(works)
    yield columns
    columns.save()


def _as_written(path: Path, source: str) -> Table | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with suppress(OSError, pa.ArrowException):
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() == source:
            table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
            names = [name for name in table.column_names if name not in LABELS]
            return {name: np.asarray(table[name], dtype=np.float64) for name in names}
    return None


def _write(folder: Path, runs: dict[str, _Rows]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    before, kinds = set(folder.glob("*.parquet")), dict[tuple[str, ...], list[str]]()
    for run, rows in runs.items():
        kinds.setdefault(tuple(rows.table), []).append(run)
    for kind, mine in kinds.items():
        tables = [runs[run].table for run in mine]
        lengths = [len(table[kind[0]]) for table in tables]
        about = list(zip(mine, lengths, (runs[run].source for run in mine), strict=True))
        whole = pa.table({name: np.concatenate([t[name] for t in tables]) for name in kind})
        whole = whole.replace_schema_metadata({_KEY: json.dumps(about)})
        temporary = folder / f".{os.getpid()}.new"
        dense = {"use_dictionary": False, "use_byte_stream_split": True, "write_statistics": False}
        with temporary.open("wb") as stream:
            pq.write_table(whole, stream, compression="zstd", **dense)
        target = folder / f"{sha256(temporary)}.parquet"
        temporary.replace(target)
        before.discard(target)
    for old in before:
        old.unlink(missing_ok=True)


def _read(folder: Path) -> dict[str, _Rows]:
    found: dict[str, _Rows] = {}
    for path in sorted(folder.glob("*.parquet")):
        with suppress(Exception):  # any damage: the runs' own files are read then
            found |= _rows(path)
    return found


def _rows(path: Path) -> dict[str, _Rows]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.stat().st_size > LARGEST:
        return {}
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != path.stem:
        return {}
    table = pq.ParquetFile(pa.BufferReader(content)).read()
    columns = {name: table[name].to_numpy() for name in table.column_names}
    found, first = {}, 0
    for run, length, source in json.loads(table.schema.metadata[_KEY]):
        mine = slice(first, first + length)
        found[run] = _Rows(source, {name: each[mine] for name, each in columns.items()})
        first += length
    return found
