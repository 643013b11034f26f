"""Parquet files: what a table would take is known from its metadata before a page is unpacked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmdplab.errors import InputError
from cmdplab.files.digests import damaged, say_without
from cmdplab.files.read import LARGEST, first_line, parse_json, read_bytes

KEY = b"cmdplab.digests"  # in the metadata of the file: name of a column -> its digest
LONGEST_WORD = 1000  # letters


def write_table(table: Any, path: str | Path, **options: Any) -> None:
    """Write columns of 64-bit numbers and of words, with their digests in the metadata of the file.

    `options` are those of `pyarrow.parquet.ParquetWriter`.
    """
    import pyarrow.parquet as pq

    stated = {KEY: json.dumps({n: _digest(n, table[n]) for n in table.column_names})}
    whole = table.replace_schema_metadata(stated)
    # Arrow takes a name such as run:1 for the address of another file system.
    with (
        Path(path).open("wb") as stream,
        pq.ParquetWriter(stream, whole.schema, **options) as writer,
    ):
        writer.write_table(whole)
        writer.add_key_value_metadata(stated)  # also where the schema of Arrow is not kept


def read_table(
    path: str | Path, words: Sequence[str] = (), sha256: str = "", columns: Any = None
) -> Any:
    """A table of whole numbers, floats and words; `words` are the columns that hold the last.

    `sha256` is that of the file, where a manifest knows it. Where neither it nor the file itself
    has a digest, that is said. `columns` are those that are wanted; None: all.
    """
    data = read_bytes(path)
    if sha256 and hashlib.sha256(data).hexdigest() != sha256:
        raise damaged(path)
    try:
        table, known = _table(data, list(words), columns)
    except _UnfitError as error:
        raise InputError(f"{path} {error}") from None
    except Exception as error:  # Arrow raises many kinds, those of Python among them
        raise InputError(f"{path} cannot be read: {first_line(error)}") from None
    if known is not None:
        digests = parse_json(known.decode("utf-8", "replace"), f"the digests of {path}")
        _check(path, table, digests, columns)
    elif not sha256:
        say_without(Path(path).name)
    return table


class _UnfitError(ValueError):
    """A fault of a table, without the name of its file."""


def _table(data: bytes, words: list[str], columns: Any) -> tuple[Any, bytes | None]:
    """The table, and the digests that the file states."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Words stay numbers into a list of words: repeating a long one could fill any memory.
    with pq.ParquetFile(pa.BufferReader(data), read_dictionary=words) as file:
        about, schema = file.metadata, file.schema_arrow
        _check_sizes(about)
        if len(schema.names) != about.num_columns or len({*schema.names}) < len(schema.names):
            raise _UnfitError("holds tables within its columns, or a column twice")
        for field in schema:
            if not _is_plain(field.type):
                kind = first_line(ValueError(str(field.type)))[:40]
                raise _UnfitError(f"holds {kind}, not plain numbers and words")
        table = file.read(columns=columns, use_threads=False)
    table.validate(full=True)
    if table.num_rows != about.num_rows:
        raise _UnfitError(f"says {about.num_rows} rows and has {table.num_rows}")
    for name in table.column_names:
        if table[name].null_count:
            raise _UnfitError(f"has holes in the column {name!r}")
        if not pa.types.is_primitive(table[name].type):
            coded(table[name])
    known = (about.metadata or {}).get(KEY) or (schema.metadata or {}).get(KEY)
    return table.unify_dictionaries().replace_schema_metadata(None), known


def _is_plain(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return bool(kind.value_type == pa.string())
    return kind in (pa.int64(), pa.float64(), pa.string())


def _check_sizes(about: Any) -> None:
    """Declared sizes against each other and against what is sensible.

    Nothing is asked of single columns here: Arrow ends the process where a footer is wrong there.
    """
    groups = [about.row_group(n) for n in range(about.num_row_groups)]
    rows = [group.num_rows for group in groups]
    sizes = [group.total_byte_size for group in groups]
    if min([*rows, *sizes], default=0) < 0 or sum(rows) != about.num_rows:
        raise _UnfitError("has counts that do not fit each other")
    if max(sum(sizes), 8 * sum(rows) * about.num_columns) > LARGEST:
        raise _UnfitError(f"would unpack to more than {LARGEST} bytes")


def _check(path: str | Path, table: Any, digests: Any, columns: Any) -> None:
    wanted = set(digests) if isinstance(digests, dict) else {""}
    wanted = wanted if columns is None else wanted & {*columns}
    if wanted != {*table.column_names}:
        raise damaged(path)
    if any(digests[name] != _digest(name, table[name]) for name in table.column_names):
        raise damaged(path)


def _digest(name: str, column: Any) -> str:
    """A hash of the name, the type and the values of a column, however it is cut and encoded."""
    import pyarrow as pa

    total = hashlib.sha256(name.encode())
    kind = column.type
    if kind in (pa.int64(), pa.float64()):
        total.update(f" {kind} {len(column)} ".encode())
        for chunk in column.chunks:
            total.update(chunk.to_numpy(zero_copy_only=False).tobytes())
    else:
        total.update(json.dumps(_runs(column)).encode())
    return total.hexdigest()[:32]


def _runs(column: Any) -> list[tuple[str, int]]:
    """Words, each with how often it stands in a row."""
    codes, words = coded(column)
    ends = np.append(np.flatnonzero(codes[1:] != codes[:-1]) + 1, len(codes))
    lengths = np.diff(ends, prepend=0)
    return [(words[codes[end - 1]], int(n)) for end, n in zip(ends, lengths, strict=True) if n]


def coded(column: Any) -> tuple[Any, list[str]]:
    """A column of words as numbers [rows] into a list of words."""
    import pyarrow as pa

    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    whole = encoded.unify_dictionaries().combine_chunks()
    words = [str(each) for each in whole.dictionary.to_pylist()]
    if any(len(each) > LONGEST_WORD for each in words):
        raise _UnfitError(f"holds names of more than {LONGEST_WORD} letters")
    return np.asarray(whole.indices), words
