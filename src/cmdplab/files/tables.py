"""Tables as Parquet files and as comma-separated values (CSV).

The unpacked size of a Parquet table is checked from its metadata before it is unpacked.

A spreadsheet treats text that begins with = + - @, a tab or a line break as a formula. The CSV
writer puts an apostrophe before such text, and the reader removes it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmdplab.errors import InputError, check_installed
from cmdplab.files.read import (
    LARGEST,
    UnfitError,
    damaged,
    first_line,
    parse_json,
    read_bytes,
    say_without,
)

KEY = b"cmdplab.digests"  # in the metadata of the file: name of a column -> its digest
LONGEST_WORD = 1000  # letters
FORMULA = r"'*[=+\-@\t\r\n]"  # beginning of cells that a spreadsheet may compute
_FORMULA = re.compile(FORMULA)
_SPECIAL = re.compile(r'[",\r\n]')
_NUMBER = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")


def write_table(table: Any, path: str | Path, **options: Any) -> str:
    """Write an Arrow table of 64-bit numbers and words to a Parquet file. Return its sha256.

    The metadata get the digest of each column. options : for `pyarrow.parquet.ParquetWriter`.
    """
    check_installed("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    stated = {KEY: json.dumps({n: _digest(n, table[n]) for n in table.column_names})}
    whole = table.replace_schema_metadata(stated)
    stream = pa.BufferOutputStream()  # Arrow writes in small pieces
    with pq.ParquetWriter(stream, whole.schema, **options) as file:
        file.write_table(whole)
        file.add_key_value_metadata(stated)  # also if the schema of Arrow is not kept
    content = memoryview(stream.getvalue())
    Path(path).write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def read_table(
    path: str | Path, words: Sequence[str] = (), sha256: str = "", columns: Any = None
) -> Any:
    """Return the Arrow table of a Parquet file. words : the names of its columns of text.

    sha256 : the digest of the file in a manifest, or "". columns : the names to read; None: all.
    Warn if neither the manifest nor the file states a digest.
    """
    data = read_bytes(path)
    if sha256 and hashlib.sha256(data).hexdigest() != sha256:
        raise damaged(path)
    try:
        table, stated = _table(data, list(words), columns)
    except UnfitError as error:
        raise InputError(f"{path} {error}") from None
    except Exception as error:  # Arrow raises many kinds, those of Python among them
        raise InputError(f"{path} cannot be read: {first_line(error)}") from None
    if stated is not None:
        digests = parse_json(stated.decode("utf-8", "replace"), f"the digests of {path}")
        wanted = set(digests) if isinstance(digests, dict) else {""}
        wanted = wanted if columns is None else wanted & {*columns}
        names = table.column_names
        if wanted != {*names} or any(digests[n] != _digest(n, table[n]) for n in names):
            raise damaged(path)
    elif not sha256:
        say_without(Path(path).name)
    return table


def _table(data: bytes, words: list[str], columns: Any) -> tuple[Any, bytes | None]:
    check_installed("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Words stay codes of a dictionary: repeated long words could fill the memory.
    with pq.ParquetFile(pa.BufferReader(data), read_dictionary=words) as file:
        about, schema = file.metadata, file.schema_arrow
        _check_sizes(about)
        if len(schema.names) != about.num_columns or len({*schema.names}) < len(schema.names):
            raise UnfitError("holds tables within its columns, or a column twice")
        for kind in schema.types:
            plain = kind.value_type if pa.types.is_dictionary(kind) else kind
            if plain != pa.string() and (plain != kind or kind not in (pa.int64(), pa.float64())):
                shown = first_line(ValueError(str(kind)))[:40]
                raise UnfitError(f"holds {shown}, not plain numbers and words")
        table = file.read(columns=columns, use_threads=False)
    table.validate(full=True)
    if table.num_rows != about.num_rows:
        raise UnfitError(f"says {about.num_rows} rows and has {table.num_rows}")
    for name in table.column_names:
        if table[name].null_count:
            raise UnfitError(f"has holes in the column {name!r}")
        if not pa.types.is_primitive(table[name].type):
            coded(table[name])
    stated = (about.metadata or {}).get(KEY) or (schema.metadata or {}).get(KEY)
    return table.unify_dictionaries().replace_schema_metadata(None), stated


def _check_sizes(about: Any) -> None:
    """Refuse sizes that contradict each other or exceed `LARGEST`. about : the file's metadata."""
    # Single columns are not read: Arrow ends the process if a footer is wrong there.
    groups = [about.row_group(n) for n in range(about.num_row_groups)]
    rows = [group.num_rows for group in groups]
    sizes = [group.total_byte_size for group in groups]
    if min([*rows, *sizes], default=0) < 0 or sum(rows) != about.num_rows:
        raise UnfitError("has counts that do not fit each other")
    if max(sum(sizes), 8 * sum(rows) * about.num_columns) > LARGEST:
        raise UnfitError(f"would unpack to more than {LARGEST} bytes")


def _digest(name: str, column: Any) -> str:
    """Return a hash of a column's name, type and values. Chunks and encoding do not matter."""
    total = hashlib.sha256(name.encode())
    kind = str(column.type)
    if kind in ("int64", "double"):
        total.update(f" {kind} {len(column)} ".encode())
        for chunk in column.chunks:
            total.update(np.ascontiguousarray(chunk.to_numpy(zero_copy_only=False)).data)
    else:  # words, each with the number of its repetitions in a row
        codes, words = coded(column)
        ends = np.append(np.flatnonzero(codes[1:] != codes[:-1]) + 1, len(codes))
        lengths = np.diff(ends, prepend=0)
        runs = [(words[codes[end - 1]], int(n)) for end, n in zip(ends, lengths, strict=True) if n]
        total.update(json.dumps(runs).encode())
    return total.hexdigest()[:32]


def coded(column: Any) -> tuple[Any, list[str]]:
    """Return a column of words as codes [rows] and the list of words that the codes index."""
    import pyarrow as pa

    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    whole = encoded.unify_dictionaries().combine_chunks()
    words = [str(each) for each in whole.dictionary.to_pylist()]
    if any(len(each) > LONGEST_WORD for each in words):
        raise UnfitError(f"holds names of more than {LONGEST_WORD} letters")
    return np.asarray(whole.indices), words


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows of cells as CSV text. Floats keep all digits. None becomes an empty cell."""
    lines = (",".join(map(_written, row)) or '""' for row in rows)
    return "".join(f"{line}\n" for line in lines)


def csv_rows(text: str) -> list[tuple[int, list[str]]]:
    """Return (line number, cells) for each row of CSV text. The number is that of its last line."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        return [(reader.line_num, [_read(cell) for cell in row]) for row in reader]
    except csv.Error as error:
        raise InputError(f"line {reader.line_num}: {error}") from None


def _written(cell: Any) -> str:
    text = "" if cell is None else str(cell)
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        text = f"'{text}"
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if _SPECIAL.search(text) else text


def _read(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
