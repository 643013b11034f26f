"""Names from files: none of them steers a terminal, and every problem that is saved loads again."""

from __future__ import annotations

import io
import unicodedata

import numpy as np
import pytest
from conftest import random_problem
from hypothesis import given, strategies as st

from cmdplab.cmdp.policy import Policy
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Average, StationaryCMDP
from cmdplab.display.terminal import Printer, grid
from cmdplab.errors import InputError, printable
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.files import write_sealed_npz

STEERING = ("\x1b[2J", "a\0b", "a\u202eb", "a\u2028b", "a\u2029b", "\x9b31m", "a\u200bb", "a\rb")
WRONG = (*STEERING, "", " ", "x" * 1001, 5, None, "\ud800")


@given(text=st.text())
def test_what_is_printed_steers_nothing(text):
    shown = printable(text)
    assert len(shown) == len(text)
    assert {unicodedata.category(each) for each in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"} == set()


@pytest.mark.parametrize("name", WRONG)
def test_a_name_that_cannot_be_printed_is_refused_everywhere(name):
    p = random_problem(3, 2, 2, 1)
    arrays = (p.table[0], p.reward[:, 0], p.threshold)
    for make in (
        lambda: CMDP(p.transition, p.reward, p.threshold, name=name),
        lambda: StationaryCMDP(*arrays, Average(), name=name),
        lambda: Policy(np.eye(2), name=name),
        lambda: Policy.deterministic(np.array([0, 1]), 2, name=name),
        lambda: RunSettings(
            problem=name, fingerprint="0" * 32, algorithm="x", preset="custom", episodes=1, seed=0
        ),
    ):
        with pytest.raises(ValueError, match=r"printable|letters|string") as refused:
            make()
        assert len(str(refused.value)) < 1001


@given(name=st.text(min_size=1))
def test_a_problem_whose_name_is_accepted_loads_again(tmp_path_factory, name):
    p = random_problem(2, 2, 1, 0)
    try:
        named = CMDP(p.transition, p.reward, p.threshold, name=name)
    except InputError:
        return
    path = tmp_path_factory.getbasetemp() / "named.npz"
    named.save(path)
    assert CMDP.load(path).name == name


@pytest.mark.parametrize("name", STEERING)
def test_a_file_whose_name_of_the_problem_steers_is_refused_in_one_line(call, name, tmp_path):
    p = random_problem(3, 2, 2, 1)
    arrays = {"transition": p.table, "reward": p.reward, "threshold": p.threshold}
    words = {"format": "cmdplab-cmdp-1", "name": name, "start": 0}
    write_sealed_npz(tmp_path / "p.npz", arrays | {k: np.array(v) for k, v in words.items()})
    for command in ("solve", "describe"):
        code, out, err = call(command, tmp_path / "p.npz")
        assert (code, out) == (2, "")
        assert err == printable(err.removesuffix("\n")) + "\n"
        assert "not a printable name" in err


@pytest.mark.parametrize("name", STEERING)
def test_tables_and_lines_show_a_question_mark(name):
    stream = io.StringIO()
    console = Printer(file=stream, force_terminal=True, width=60)
    grid(console, name, (name, "n"), [(f"[red]{name}", "1")])
    console.print(name, highlight=False)
    without = stream.getvalue().replace("\x1b[", "").replace("\n", "")  # Rich's own colours
    assert printable(without) == without
    assert "[red]" in without
    assert without.count("?") >= 3


def test_a_file_whose_own_name_steers_is_still_read(call, tmp_path):
    path = tmp_path / "a\x1b[31m\u202eb.csv"
    path.write_text("state,action,next,probability,reward\nx,go,x,1,1\n")
    code, out, err = call("solve", path, "--horizon", "2")
    assert code == 0
    assert printable(out + err, "\n") == out + err
    code, out, err = call("status", tmp_path / "none\x1b[31m\u202eb")
    assert code == 2
    assert printable(err, "\n") == err


def test_a_long_cell_is_shortened_in_a_message():
    for cell in ("x" * 5000, "x y " * 1250, "'" * 5000):
        said = str(InputError(f"row 7: the state is {cell!r}, not a name"))
        assert len(said) <= 1000
        assert said.startswith("row 7: the state is ")
        assert said.endswith("not a name")
