"""Compiled code is kept on disk, is never older than its formulas, and says when it is made."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cmdplab
from cmdplab import messages
from cmdplab.numerics import compiling

PROGRAM = """
import numpy as np
from cmdplab import CMDP, algorithm
from cmdplab.algorithms.task import Task
from cmdplab.engines.families import session
kernel = np.full((2, 2, 2), 0.5)
reward = np.array([[[1.0, 0.0], [0.2, 0.9]], [[0.1, 0.8], [0.7, 0.3]]])
problem = CMDP(kernel, reward, [0.5], horizon=3)
run = session("cpu", problem, algorithm("UOpt-RPGPD"), Task.of(problem, 1.0), 0)
print(repr(float(run.play(50).returns[-1, 0])))
"""


SOLVE = ("-m", "cmdplab", "solve", "three-state", "--json")
COMPILED = """
import json
from numba.core import event
seen = []
class Listener(event.Listener):
    def on_start(self, event):
        seen.append((event.data["dispatcher"].__module__, str(event.data["args"])))
    def on_end(self, event):
        pass
event.register("numba:compile", Listener())
import cmdplab
cmdplab.quiet()
cmdplab.solve(cmdplab.make("three-state"))
print(json.dumps(seen))
"""


def run(package: Path, cache: Path) -> str:
    return python("-c", PROGRAM, package=package, cache=cache).stdout


def python(*arguments, cache, package=Path(cmdplab.__file__).parents[1], quiet=""):
    environment = {**os.environ, "PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment | {messages.QUIET: quiet},
        capture_output=True,
        text=True,
        check=True,
        cwd=cache,
    )


@pytest.fixture
def copy(tmp_path):
    source = Path(cmdplab.__file__).parent
    shutil.copytree(source, tmp_path / "lib" / "cmdplab")
    (tmp_path / "cache").mkdir()
    return tmp_path / "lib", tmp_path / "cache"


@pytest.mark.slow
def test_an_edited_formula_is_compiled_anew_and_an_edited_row_is_not(copy):
    package, cache = copy
    before = run(package, cache)
    kept = set(cache.rglob("*-*"))
    formulas = package / "cmdplab" / "algorithms" / "equations.py"
    text = formulas.read_text()
    assert "+ eta * q" in text
    formulas.write_text("# edited\n" + re.sub(r'    """(?=\w)', '    """Edited: ', text))
    with (package / "cmdplab" / "algorithms" / "uopt_rpgpd.py").open("a") as row:
        row.write("EDITED = 1\n")
    assert run(package, cache) == before
    assert set(cache.rglob("*-*")) == kept
    formulas.write_text(text.replace("+ eta * q", "- eta * q"))
    assert run(package, cache) != before
    assert set(cache.rglob("*-*")) > kept
    formulas.write_text(text)
    assert run(package, cache) == before


@pytest.mark.slow
def test_a_solve_on_a_full_disk_prints_its_optimum(tmp_path):
    """The limit of a file's size stands in for the disk: what is compiled is larger."""
    limited = "ulimit -f 8; " + " ".join([sys.executable, *SOLVE])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), messages.QUIET: ""}
    done = subprocess.run(["bash", "-c", limited], env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    assert json.loads(done.stdout)["value"] == 2.0
    _, unkept = done.stderr.splitlines()
    assert unkept.startswith("compiled code is not kept, and compiled again in every process: ")
    assert unkept.endswith("File too large")


def test_a_solve_loads_no_linear_algebra_of_scipy(tmp_path):
    code = "import sys, cmdplab; cmdplab.solve(cmdplab.make('three-state'))"
    done = python("-c", f"{code}; print('scipy.linalg' in sys.modules)", cache=tmp_path)
    assert done.stdout.split() == ["False"], done.stderr


def load_all_compiled_code() -> None:
    from cmdplab.engines import families  # noqa: F401
    from cmdplab.gym import dynamics  # noqa: F401


@pytest.mark.slow
def test_a_first_solve_says_what_it_compiles_and_the_next_one_compiles_nothing(tmp_path):
    first = python(*SOLVE, cache=tmp_path)
    said = first.stderr.splitlines()
    assert len(said) == 1
    assert re.fullmatch(r"compiling the solver: about \d+ s, once for this version", said[0])
    again = python(*SOLVE, cache=tmp_path)
    assert again.stderr == ""
    assert json.loads(first.stdout) == json.loads(again.stdout)


@pytest.mark.slow
def test_quiet_is_quiet_and_a_solve_compiles_nothing_for_boxes_or_engines(tmp_path):
    (tmp_path / "one").mkdir()
    ended = python("-c", COMPILED, cache=tmp_path / "one")
    assert ended.stderr == ""
    compiled = json.loads(ended.stdout)
    assert any("TableModel(" in arguments for _, arguments in compiled)
    assert not [each for each in compiled if re.search(r"\b(Model|ListedBox)\(", each[1])]
    assert not [each for each in compiled if each[0].startswith("cmdplab.engines")]
    (tmp_path / "two").mkdir()
    assert python(*SOLVE, cache=tmp_path / "two", quiet="1").stderr == ""


def test_whatever_python_calls_has_words_for_what_it_is():
    load_all_compiled_code()
    modules = {each.__module__ for each in compiling.called()}
    ours = {each for each in modules if each.startswith("cmdplab.")}
    assert {
        "cmdplab.solvers.value_iteration",
        "cmdplab.algorithms.families.primal_dual",
    } <= ours
    # Called from Python by tests alone.
    inner = {
        "loops",
        "storage",
        "boxes",
        "episodes",
        "planner",
        "session",
        "sorting",
        "vector_math",
        "equations",
    }
    for module in ours:
        assert module.split(".")[-1] in inner or module.startswith(tuple(messages.COMPILED))


def test_a_wait_is_announced_once(capsys, monkeypatch):
    monkeypatch.setattr(messages, "_SAID", set())
    monkeypatch.delenv(messages.QUIET, raising=False)
    messages.announce("something")
    messages.announce("something")
    assert capsys.readouterr().err == "something\n"
    monkeypatch.setenv(messages.QUIET, "1")
    messages.announce("something else")
    assert capsys.readouterr().err == ""
