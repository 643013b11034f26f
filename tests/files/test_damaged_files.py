"""Damaged files that users met: each is one sentence, and no changed number is believed."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, random_problem
from made_up_records import records

from cmdplab import load_runs
from cmdplab.algorithms import algorithm
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.experiments.durable import run_in_folder
from cmdplab.experiments.folder import works_of
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.experiments.work import Work
from cmdplab.report import gather


def one_sentence(code: int, err: str) -> bool:
    return code == 2 and err.startswith("cmdplab: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("kind", "name"), [("gap", "curves.parquet"), ("mistakes", "mistakes.parquet")]
)
def test_a_figure_of_a_damaged_table_is_refused_in_one_sentence(call, tmp_path, kind, name):
    made = records(tmp_path / "made", names=("UOpt-RPGPD",), seeds=1, episodes=60)
    made = works_of(made)[0].folder
    whole = (made / name).read_bytes()
    middle = bytearray(whole)
    middle[len(whole) // 2] ^= 1
    for content in (whole[: len(whole) // 2], b"PAR1", b"", whole[:-20] + whole[-19:], middle):
        (made / name).write_bytes(content)
        code, _, err = call("plot", made, kind, "--out", tmp_path / "x.svg")
        assert one_sentence(code, err), err
        assert name in err
    assert not (tmp_path / "x.svg").exists()


def with_header(text: str, data: bytes = b"\0" * 96) -> bytes:
    """An .npy file whose header says `text`."""
    padded = text.ljust(118)[:117] + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode() + data


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (6000000000000,), }",  # 43.7 TiB
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**30},), }}",  # OverflowError
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 2, }",  # TokenError
        "{'descr': '|O', 'fortran_order': False, 'shape': (12,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, -3, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2\f 3, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (12), }",
        "{'descr': '<f8', 'fortran_order': 2, 'shape': (2, 3, 2), }",
        "{'descr': '<f8', 'descr': '<f8', 'shape': (2, 3, 2), }",
    ],
)
def test_a_policy_whose_header_lies_is_refused_in_one_sentence(call, tmp_path, header):
    problem = random_problem(3, 2, 2, 1)
    problem.save(tmp_path / "p.npz")
    (tmp_path / "policy.npy").write_bytes(with_header(header))
    given = ("--algorithm", "OptPess-LP", "--baseline", tmp_path / "policy.npy")
    code, _, err = call("run", tmp_path / "p.npz", *given)
    assert one_sentence(code, err), err
    assert "policy.npy cannot be read as a policy" in err


@pytest.mark.parametrize("letter", [0x110000, 0xFFFFFFFF, 0xD800])
def test_text_that_is_no_text_is_refused(tmp_path, letter):
    random_problem(3, 2, 2, 1).save(tmp_path / "p.npz")
    arrays = dict(np.load(tmp_path / "p.npz"))
    arrays["name"] = np.full(6, letter, np.uint32).view("<U6").reshape(())
    arrays.pop("digest", None)
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(InputError, match=r"p\.npz cannot be read as \.npz: 'name' holds text"):
        CMDP.load(tmp_path / "p.npz")


def places(value: object, path: tuple = ()) -> list[tuple]:
    """Where the numbers of a JSON value are."""
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        return [place for key, each in inside for place in places(each, (*path, key))]
    return [path] if isinstance(value, int | float) else []


def test_no_changed_number_of_a_manifest_is_believed(tmp_path):
    made = records(tmp_path / "made", names=("UOpt-RPGPD",), seeds=1, episodes=60)
    file = works_of(made)[0].folder / "manifest.json"
    text = file.read_text()
    assert len(places(json.loads(text))) > 15
    for path in places(json.loads(text)):
        values = json.loads(text)
        here = values
        for key in path[:-1]:
            here = here[key]
        here[path[-1]] = here[path[-1]] * 1.001 + 0.001
        file.write_text(json.dumps(values))
        with pytest.raises(InputError, match=r"holds no finished run|newer cmdplab|schema"):
            gather(made)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory) -> Path:
    """The folder of a run that was stopped: its manifest knows no digest of its curves."""
    problem = random_problem(3, 2, 2, 1)
    folder = tmp_path_factory.mktemp("stopped") / "run"
    folder.mkdir()
    problem.save(folder / "problem.npz")
    settings = RunSettings.of(problem, algorithm("UOpt-RPGPD", "printed"), 10**7, 0)
    looks = iter(range(10**9))
    record = run_in_folder(
        Work(folder, settings, folder / "problem.npz"), stop=lambda: next(looks) >= 2
    )
    assert record.status == "interrupted"
    return folder


def test_no_changed_curve_of_an_interrupted_run_is_loaded(interrupted):
    path = interrupted / "curves.parquet"
    whole, expected = path.read_bytes(), load_runs(interrupted)
    table = pq.read_table(path)
    for place, name in enumerate(table.column_names[3:], start=3):
        values = table[name].to_pylist()
        values[1] += 1
        changed = table.set_column(place, name, pa.array(values, table[name].type))
        pq.write_table(changed, path)
        with pytest.raises(InputError, match=r"curves\.parquet is damaged"):
            load_runs(interrupted)
    rng = np.random.default_rng(0)
    for _ in range(300):
        data = bytearray(whole)
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        with suppress(InputError):
            assert load_runs(interrupted).equals(expected)
    path.write_bytes(whole)


@pytest.mark.parametrize("files", [150, pytest.param(2600, marks=pytest.mark.slow)])
def test_damaged_files_are_refused_or_read_rightly(files):
    """Always the same ones; `make fuzz` reads a hundred thousand."""
    script = ROOT / "tests" / "fuzz_readers.py"
    command = [sys.executable, "-W", "error", str(script), str(files), "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
