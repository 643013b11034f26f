"""The door for files: it reads what NumPy, json and Arrow read, or says one sentence."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import random_problem
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays_of
from made_up_records import records

from cmdplab import load_runs
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.experiments import checkpoint
from cmdplab.experiments.records.tables import read_curves
from cmdplab.files import (
    MissingError,
    NoDigestWarning,
    arrays,
    file_digest,
    parse_json,
    parse_toml,
    read_json,
    read_npy,
    read_npz,
    read_table,
    read_text,
    read_toml,
    sealed,
    tables,
    unsealed,
    write_table,
)
from cmdplab.formats import read_problem

KINDS = st.sampled_from(
    ["<f8", ">f8", "<f4", "<f2", "|b1", "<i8", ">i4", "|u1", "<u2", "<U5", ">U3"]
)
LETTERS = st.characters(min_codepoint=1, max_codepoint=0x10FFFF, exclude_categories=["Cs"])


@st.composite
def any_array(draw: st.DrawFn) -> np.ndarray:
    kind = np.dtype(draw(KINDS))
    shape = draw(arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    words = {"elements": st.text(LETTERS, max_size=3)} if kind.kind == "U" else {}
    array = draw(arrays_of.arrays(kind, shape, **words))
    return np.asfortranarray(array) if draw(st.booleans()) and array.ndim > 1 else array


# --- arrays ---------------------------------------------------------------------------------------


@given(any_array())
def test_arrays_are_what_numpy_reads(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("npy") / "a.npy"
    np.save(path, array)
    expected, found = np.load(path), read_npy(path)
    np.testing.assert_array_equal(found, expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype.newbyteorder("="))
    assert found.flags.c_contiguous
    assert found.flags.writeable
    for save in (np.savez, np.savez_compressed):
        save(path.with_suffix(".npz"), a=array, b=array)
        both = read_npz(path.with_suffix(".npz"))
        np.testing.assert_array_equal(both["a"], expected)
        assert list(both) == ["a", "b"]


def test_headers_of_other_programs_are_read(tmp_path):
    """Any order of the keys, any spaces, either quote, and the versions 2 and 3 of the format."""
    data = np.arange(6.0)
    header = b"""{"shape" : ( 2,3 ) , "fortran_order":False,\n"descr": "<f8"}"""
    for version in (1, 2, 3):
        length = len(header).to_bytes(2 if version == 1 else 4, "little")
        content = b"\x93NUMPY" + bytes([version, 0]) + length + header + data.tobytes()
        (tmp_path / "a.npy").write_bytes(content)
        np.testing.assert_array_equal(read_npy(tmp_path / "a.npy"), data.reshape(2, 3))


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.array([None]), "holds '|O', not plain numbers, booleans or text"),
        (np.zeros(2, dtype="c16"), "holds '<c16'"),
        (np.zeros(2, dtype="M8[s]"), "holds '<M8[s]'"),
        (np.zeros(2, dtype=[("a", "f8")]), "holds '|V8', not plain numbers"),
        (np.array([0, 2], dtype=np.uint8).view(bool), "neither true nor false"),
    ],
)
def test_arrays_that_are_not_plain_are_refused(tmp_path, array, sentence):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(InputError) as caught:
        read_npy(tmp_path / "a.npy")
    assert sentence in str(caught.value)


def test_every_cut_and_every_longer_file_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(4.0))
    whole = (tmp_path / "a.npy").read_bytes()
    for data in [*(whole[:n] for n in range(len(whole))), whole + b"\0"]:
        (tmp_path / "a.npy").write_bytes(data)
        with pytest.raises(InputError, match=r"a\.npy cannot be read as \.npy"):
            read_npy(tmp_path / "a.npy")


def archive(path, *members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in members:
            file.writestr(name, data)


def test_archives_that_are_not_plain_are_refused(tmp_path):
    path, out = tmp_path / "a.npz", io.BytesIO()
    np.save(out, np.zeros(3))
    member = ("a.npy", out.getvalue())
    archive(path, member, compression=zipfile.ZIP_LZMA)
    with pytest.raises(InputError, match="compressed in a way unknown here"):
        read_npz(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive(path, member, member)
    with pytest.raises(InputError, match="stands twice"):
        read_npz(path)
    archive(path, ("notes.txt", b"hello"))
    with pytest.raises(InputError, match=r"'notes\.txt' is not an array"):
        read_npz(path)
    archive(path, member)
    data = path.read_bytes().replace(member[1], member[1][:-8] + b"\0" * 7 + b"\1")
    path.write_bytes(data)
    with pytest.raises(InputError, match="CRC"):
        read_npz(path)


def test_an_archive_that_claims_more_than_it_can_hold_asks_for_no_memory(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.zeros(100))
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02") + 24  # the size of the member, in the directory
    monkeypatch.setattr(np, "empty", None)
    for size, sentence in ((1 << 30, "cannot be as large as it says"), (2000, "should hold")):
        data[at : at + 4] = size.to_bytes(4, "little")
        path.write_bytes(data)
        with pytest.raises(InputError, match=sentence):
            read_npz(path)
    monkeypatch.setattr(arrays, "LARGEST", 500)
    with pytest.raises(InputError, match="would unpack to 2000 bytes, more than 500"):
        read_npz(path)


# --- text -----------------------------------------------------------------------------------------


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**30), 10**30)
        | st.floats(allow_nan=False, allow_infinity=False) | st.text(LETTERS, max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(LETTERS), inner),
        max_leaves=8,
    )
)  # fmt: skip
def test_json_is_what_json_reads(value):
    for ascii_only in (True, False):
        assert parse_json(json.dumps(value, ensure_ascii=ascii_only), "it") == value
    whole = {"value": value}
    text = sealed(json.dumps(whole))
    assert unsealed(json.loads(text), "it", "it") == whole
    assert unsealed(json.loads(sealed(json.dumps(whole), indent=1)), "it", "it") == whole


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("NaN", "NaN is not a finite number"),
        ("[1, -Infinity]", "-Infinity is not a finite number"),
        ("1e999", "1e999 is not a finite number"),
        ("9" * 400, "has more than 40 digits"),
        ("9" * 5000, "has more than 40 digits"),
        ('{"a": 1, "a": 1}', "the key 'a' stands twice"),
        (r'"\ud800"', "half a character"),
        ("[" * 40 + "]" * 40, "nested too deeply"),
        ('{"a":' * 40 + "1" + "}" * 40, "nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
        ("{", "line 1 column 2"),
        ("", "line 1 column 1"),
    ],
)
def test_json_that_is_not_strict_is_refused(tmp_path, text, sentence):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=r"a\.json cannot be read") as caught:
        read_json(tmp_path / "a.json")
    assert sentence in str(caught.value)


def test_what_is_no_file_is_said(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    for path, sentence in ((tmp_path, "is not a file"), (tmp_path / "pipe", "is not a file")):
        for reader in (read_text, read_json, read_toml, read_npy, read_npz, read_table):
            with pytest.raises(InputError, match=sentence):
                reader(path)
    with pytest.raises(MissingError, match="does not exist"):
        read_text(tmp_path / "none")
    (tmp_path / "a.txt").write_bytes(b"\xff")
    with pytest.raises(InputError, match="is not text"):
        read_text(tmp_path / "a.txt")
    assert file_digest(tmp_path / "a.txt") == hashlib.sha256(b"\xff").hexdigest()
    assert file_digest(tmp_path / "pipe") == file_digest(tmp_path / "none") == ""
    (tmp_path / "a.txt").write_text("[1,2,3]\n\n\n")
    with pytest.raises(InputError, match="is larger than 5 bytes"):
        read_text(tmp_path / "a.txt", 5)
    monkeypatch.setattr("cmdplab.files.read.MOST_LINES", 2)
    with pytest.raises(InputError, match="has more than 2 lines"):
        read_text(tmp_path / "a.txt")
    monkeypatch.setattr("cmdplab.files.read.MOST_VALUES", 2)
    with pytest.raises(InputError, match="holds more than 2 values"):
        parse_json("[1,2,3]", "it")


def test_a_sentence_stays_one_line_whatever_a_name_holds():
    assert str(InputError("a\nb\x1b[31m\tc\x7f ü")) == "a?b?[31m?c? ü"


# --- tables ---------------------------------------------------------------------------------------


def table_of(rows: int = 30) -> pa.Table:
    name = pa.array(["a"] * (rows // 2) + ["b"] * (rows - rows // 2))
    return pa.table({"name": name, "n": np.arange(rows), "x": np.linspace(0.0, 1.0, rows)})


STORED = [
    *({}, {"store_schema": False}, {"use_dictionary": False}, {"write_statistics": False}),
    *({"compression": "gzip"}, {"data_page_version": "2.0"}),
]


@pytest.mark.parametrize("how", STORED)
def test_digests_are_of_values_not_of_how_they_are_stored(tmp_path, how):
    write_table(table_of(), tmp_path / "t.parquet", **how)
    found = read_table(tmp_path / "t.parquet", ["name"])
    assert found.to_pylist() == table_of().to_pylist()
    part = read_table(tmp_path / "t.parquet", ["name"], columns=["x"])
    assert part.column_names == ["x"]
    again = pq.read_table(tmp_path / "t.parquet")
    pq.write_table(again, tmp_path / "t.parquet", row_group_size=7)  # its metadata comes along
    assert read_table(tmp_path / "t.parquet", ["name"]).to_pylist() == again.to_pylist()


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.take(pa.array([1, 0, *range(2, 30)])),
        lambda t: t.slice(0, 29),
        lambda t: t.drop_columns(["n"]),
        lambda t: t.rename_columns(["name", "m", "x"]),
        lambda t: t.append_column("y", t["x"]),
        lambda t: t.set_column(2, "x", pa.array(np.nextafter(np.asarray(t["x"]), 2.0))),
        lambda t: t.set_column(0, "name", pa.array(["a"] * 14 + ["b"] * 16)),
        lambda t: t.set_column(1, "n", pa.array(np.arange(30.0))),
    ],
)
def test_any_change_of_a_table_is_noticed(tmp_path, change):
    write_table(table_of(), tmp_path / "t.parquet")
    stated = pq.read_metadata(tmp_path / "t.parquet").metadata
    pq.write_table(change(table_of()).replace_schema_metadata(stated), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet is damaged: .* does not match its digest"):
        read_table(tmp_path / "t.parquet", ["name"])


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (pa.array([1, None]), "has holes in the column 'n'"),
        (pa.array([[1], [2]]), "holds list<"),
        (pa.array([1.0, 2.0], pa.float32()), "holds float, not plain numbers and words"),
        (pa.array(["a", "x" * 2000]), "holds names of more than 1000 letters"),
    ],
)
def test_tables_that_are_not_plain_are_refused(tmp_path, column, sentence):
    pq.write_table(pa.table({"n": column}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=sentence):
        read_table(tmp_path / "t.parquet", ["n"] if column.type == pa.string() else [])


def test_the_size_of_a_table_is_known_before_it_is_read(tmp_path, monkeypatch):
    """Ten million equal numbers take 80 MB, and a file of a few kilobytes."""
    numbers = pa.array(np.zeros(10**7, dtype=np.int64))
    pq.write_table(pa.table({"n": numbers}), tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 100_000
    monkeypatch.setattr(tables, "LARGEST", 70 << 20)
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError, match="would unpack to more than 73400320 bytes"):
        read_table(tmp_path / "t.parquet")
    assert pa.total_allocated_bytes() - before < 1 << 20


FLIPS = """
import sys, warnings
from pathlib import Path
from cmdplab.errors import InputError
from cmdplab.files import read_table
warnings.simplefilter("ignore")
path = Path(sys.argv[1])
whole = path.read_bytes()
length = int.from_bytes(whole[-8:-4], "little") + 8
refused = 0
for place in range(len(whole) - length, len(whole)):
    data = bytearray(whole)
    data[place] ^= 1 << place % 8
    path.write_bytes(data)
    try:
        read_table(path, ["name"])
    except InputError:
        refused += 1
print(refused, length)
"""


def test_no_flipped_bit_of_a_footer_ends_the_process(tmp_path):
    """Arrow's statistics of a single column do, if they are asked for."""
    pq.write_table(table_of(), tmp_path / "t.parquet")
    command = [sys.executable, "-c", FLIPS, str(tmp_path / "t.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    refused, length = map(int, done.stdout.split())
    assert length > refused > length / 4


# --- records without digests ----------------------------------------------------------------------


def without_digest(folder: Path) -> Path:
    """A lone table of curves, without digests."""
    made = records(folder / "made", names=("UOpt-RPGPD",), seeds=2, episodes=60)
    table = pq.read_table(made / "curves.parquet").replace_schema_metadata(None)
    (folder / "lone").mkdir()
    pq.write_table(table, folder / "lone" / "curves.parquet")
    return folder / "lone"


def test_curves_without_digests_are_read_with_a_note(tmp_path):
    lone = without_digest(tmp_path)
    with pytest.warns(NoDigestWarning) as caught:
        found = read_curves(lone / "curves.parquet")
    note = "curves.parquet has no digest: cannot tell whether it was changed"
    assert [str(each.message) for each in caught] == [note]
    np.testing.assert_equal(found, read_curves(tmp_path / "made" / "curves.parquet"))


def test_thousands_of_curves_without_digests_are_noted_once(tmp_path):
    lone = without_digest(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            read_curves(lone / "curves.parquet")
    assert len(caught) == 1


def test_the_command_says_so_in_plain_words(call, tmp_path):
    lone = without_digest(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, _, err = call("plot", lone, "gap")
    said = [line for line in err.splitlines() if "digest" in line]
    assert code == 0
    assert said == [
        "cmdplab: warning: curves.parquet has no digest: cannot tell whether it was changed"
    ]


def test_a_checkpoint_whose_number_became_a_list_of_one_is_damaged(tmp_path):
    checkpoint.save(tmp_path, {"episode": np.array(7), "rows": np.arange(6.0).reshape(2, 3)})
    arrays = dict(np.load(tmp_path / checkpoint.NEWEST))
    np.savez(tmp_path / checkpoint.NEWEST, **{**arrays, "episode": np.array([7])})
    assert "does not match its digest" in checkpoint.find(tmp_path).complaints[0]


def test_what_is_loaded_carries_no_digest_of_a_part(tmp_path):
    """The digests are of one run's columns, and a table of all runs has others."""
    from fuzz_readers import _run

    folder = _run(tmp_path / "run", 20, 10**9)
    assert load_runs(folder).schema.metadata is None


# --- what nobody reads, and what would take for ever ----------------------------------------------


def test_arrays_that_nobody_reads_are_not_unpacked(tmp_path):
    problem = random_problem(3, 2, 3, 1)
    problem.save(tmp_path / "p.npz")
    arrays_ = dict(np.load(tmp_path / "p.npz")) | {"extra": np.arange(5000.0)}
    del arrays_["digest"]
    np.savez(tmp_path / "q.npz", **arrays_)
    content = (tmp_path / "q.npz").read_bytes()
    spoilt = content.replace(np.arange(4000.0, 4500.0).tobytes(), np.zeros(500).tobytes())
    assert spoilt != content  # whoever unpacks the array finds a wrong checksum
    (tmp_path / "q.npz").write_bytes(spoilt)
    with pytest.raises(InputError, match="cannot be read"):
        read_npz(tmp_path / "q.npz")
    np.testing.assert_array_equal(CMDP.load(tmp_path / "q.npz").reward, problem.reward)
    np.testing.assert_array_equal(read_problem(tmp_path / "q.npz").reward, problem.reward)


@pytest.mark.parametrize(
    "text",
    ["KEY=1", "[KEY]", "[[KEY]]", "x={KEY=1}", "x=[{KEY=1}]", "a=1 # note\nKEY=1", "s='a'\nKEY=1"],
)
@pytest.mark.parametrize("part", ["a", '"a"', "'a.b'", '"\\""'])
def test_keys_of_many_parts_are_refused_before_they_are_parsed(text, part, monkeypatch):
    monkeypatch.setattr("tomllib.loads", lambda text: pytest.fail("it was parsed"))
    with pytest.raises(ValueError, match="has more than 32 parts"):
        parse_toml(text.replace("KEY", " . ".join([part] * 100_000)))


def test_dots_in_strings_and_comments_are_no_parts_of_keys():
    dots = "a." * 100 + "a"
    assert parse_toml(f'x = "{dots}" # {dots}')["x"] == dots
    assert parse_toml(f"x = '{dots}'")["x"] == dots
    for quote in ('"' * 3, "'" * 3):
        assert parse_toml(f"x = {quote}\n{dots}\n{quote}")["x"] == f"{dots}\n"
    deep = parse_toml(f"{'.'.join('a' * 32)} = 1")
    for _ in range(31):
        deep = deep["a"]
    assert deep == {"a": 1}
