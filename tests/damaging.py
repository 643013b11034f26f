"""How files get damaged: bits, slices, lines and numbers, and values beneath any checksum."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NUMBERS = (
    *("nan", "-1", "0", "1e999", "-1e999", "1e-999", "99999999", "10000000000000", "9" * 400),
    *("0.5", "2", "1.0000001", "inf", "-0.0", "1/0", "1/3", "0x10", "1_0", "1e", ".", "", "[0,1]"),
    *("true", "\u0663", "18446744073709551616", "9223372036854775808", "-9223372036854775809"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, "", "text", "\ud800", "a\nb", [], [[1.0]], {}, {"a": 1}, 0, -1, 0.5, -0.0, 7),
    *(10**12, 10**30, 10**400, 1e308, 1e-320, float("nan"), float("inf"), "1", [None], "x" * 2000),
)
AWKWARD = (np.nan, np.inf, -1.0, 2.0, 1e300, 1e-320, -0.0)


def _flip(data: bytearray, rng: np.random.Generator) -> bytearray:
    data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    return data


def _cut(data: bytearray, rng: np.random.Generator) -> bytearray:
    return data[: rng.integers(len(data) + 1)]


def _move(data: bytearray, rng: np.random.Generator) -> bytearray:
    """A slice is copied, or swapped away, to another place."""
    start, to = rng.integers(len(data), size=2)
    piece = data[start : start + rng.integers(1, 60)]
    if rng.random() < 0.5:
        del data[start : start + len(piece)]
    return data[:to] + piece + data[to:]


def _lines(data: bytearray, rng: np.random.Generator) -> bytearray:
    lines = data.split(b"\n")
    here, there = rng.integers(len(lines), size=2)
    if rng.random() < 0.5:
        lines.insert(int(there), lines[here])
    else:
        del lines[here]
    return bytearray(b"\n".join(lines))


def _number(data: bytearray, rng: np.random.Generator) -> bytearray:
    found = list(re.finditer(rb"[0-9][0-9._e-]*", data))
    if not found:
        return data
    place = found[rng.integers(len(found))]
    new = NUMBERS[rng.integers(len(NUMBERS))].encode()
    return data[: place.start()] + new + data[place.end() :]


CHANGES = (_flip, _flip, _cut, _move, _lines, _number, _number, _number)


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The same bytes, changed in one way or two."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 3)):
        if changed:
            changed = CHANGES[rng.integers(len(CHANGES))](changed, rng)
    return bytes(changed)


def damaged_npy(data: bytes, rng: np.random.Generator) -> bytes:
    """An array with a damaged header, damaged bytes, or an awkward number, type or shape."""
    match rng.integers(3):
        case 0:
            return npy(_awkward(data, rng))
        case 1:
            return damaged(data[:128], rng) + data[128:]
        case _:
            return damaged(data, rng)


def damaged_archive(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage beneath the checksums: a member is changed and the archive made anew."""
    if rng.random() < 0.3:
        return damaged(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = sorted(members)
    name = names[rng.integers(len(names))]
    match rng.integers(4):
        case 0:
            members[name] = damaged(members[name], rng)
        case 1:
            members[name] = npy(_awkward(members[name], rng))
        case 2:
            members[name] = members[names[rng.integers(len(names))]]
        case _:
            del members[name]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    return out.getvalue()


def _awkward(member: bytes, rng: np.random.Generator) -> np.ndarray:
    """A member as an array with one awkward number, another type or another shape."""
    array = np.load(io.BytesIO(member), allow_pickle=False)
    kinds = ("f4", "f2", "i8", "u1", "?", "c16", "U3", "M8[s]", "f8", ">f8", "f16")
    with np.errstate(all="ignore"):
        match rng.integers(4):
            case 0 if array.dtype.kind == "f" and array.size:
                changed = array.copy()
                changed.flat[rng.integers(array.size)] = AWKWARD[rng.integers(len(AWKWARD))]
                return changed
            case 1 if array.dtype.kind in "fi":
                return array.astype(kinds[rng.integers(len(kinds))])
            case 2 if array.ndim > 1:
                return np.asfortranarray(array)
            case _:
                return array[None] if rng.random() < 0.5 else array.reshape(-1)


def npy(array: np.ndarray) -> bytes:
    """The bytes of an .npy file."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def damaged_json(data: bytes, rng: np.random.Generator) -> bytes:
    """Damaged text, or a value that becomes another one, goes, or gets another key."""
    if rng.random() < 0.4:
        return damaged(data, rng)
    values = json.loads(data)
    here: Any = values
    while isinstance(here, dict | list) and here:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key, before = keys[rng.integers(len(keys))], here
        here = before[key]
        if rng.random() < 0.2:
            break
    match rng.integers(4):
        case 0:
            del before[key]
        case 1 if isinstance(before, dict):
            before[f"{key}s"] = before.pop(key)
        case 2 if isinstance(here, int | float):
            before[key] = float(here) * (1.0 + rng.standard_normal()) if rng.random() < 0.5 else 3
        case _:
            before[key] = VALUES[rng.integers(len(VALUES))]
    return json.dumps(values, indent=2).encode()


def damaged_table(data: bytes, rng: np.random.Generator) -> bytes:
    """Damaged bytes, or a table whose content changed while its metadata stayed."""
    if rng.random() < 0.5:
        return _flipped(data, rng) if rng.random() < 0.5 else damaged(data, rng)
    table = pq.read_table(io.BytesIO(data))
    place = int(rng.integers(table.num_columns))
    name, column = table.column_names[place], table.column(place)
    values = column.to_pylist()
    row = int(rng.integers(len(values)))
    match rng.integers(6):
        case 0:
            values[row] = values[(row + 1) % len(values)]
        case 1 if not isinstance(values[0], str):
            extremes = (2**63 - 1, -(2**63), 2**60, -1, 0) if column.type == pa.int64() else AWKWARD
            values[row] = extremes[rng.integers(len(extremes))]
        case 2:
            values[row] = None if rng.random() < 0.5 else values[row]
        case 3:
            kinds = (pa.float32(), pa.int32(), pa.large_string(), pa.string(), pa.float64())
            kind = kinds[rng.integers(len(kinds))]
            new = [str(v) if pa.types.is_large_string(kind) or kind == pa.string() else 1
                   for v in values]  # fmt: skip
            return _parquet(table.set_column(place, name, pa.array(new, kind)))
        case 4:
            other = table.column_names[rng.integers(table.num_columns)]
            changed = table.drop_columns([name]) if rng.random() < 0.5 else None
            names = [other if n == name else n for n in table.column_names]
            return _parquet(table.rename_columns(names) if changed is None else changed)
        case _:
            order = rng.permutation(table.num_rows) if rng.random() < 0.5 else np.arange(row)
            return _parquet(table.take(pa.array(order)))
    return _parquet(table.set_column(place, name, pa.array(values, column.type)))


def _flipped(data: bytes, rng: np.random.Generator) -> bytes:
    """One bit or a few: what survives most checks."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        changed = _flip(changed, rng)
    return bytes(changed)


def _parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()
