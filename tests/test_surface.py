"""What a person sees of the package: names, short representations, errors."""

from __future__ import annotations

import errno
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import in_one_process, random_problem

import cmdplab
from cmdplab import errors
from cmdplab.algorithms.task import Task
from cmdplab.experiments.experiment import parse_experiment
from cmdplab.files import read_bytes
from cmdplab.files.write import writable_folder, written_whole
from cmdplab.solvers.thresholds.frontier import frontier

SEVERAL = random_problem(4, 3, 3, 6)  # more constraints than are shown
HOSTILE = "<script>alert(1)</script> & " + "x" * 900


def in_a_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_subpackages_are_reached_without_importing_them():
    names = cmdplab._SUBPACKAGES
    code = f"import cmdplab\nfor name in {names}: print(getattr(cmdplab, name).__name__)"
    assert in_a_process(code).split() == [f"cmdplab.{name}" for name in names]


def test_dir_lists_every_public_name_and_subpackage():
    assert {*cmdplab.__all__, *cmdplab._SUBPACKAGES} <= {*dir(cmdplab)}


def test_a_star_import_brings_the_names_and_loads_no_extra():
    code = "from cmdplab import *; import sys; print(solve, 'gymnasium' in sys.modules)"
    assert in_a_process(code).endswith("False\n")


def test_a_name_that_is_none_is_an_attribute_error():
    with pytest.raises(AttributeError, match="No cmdplab attribute solver"):
        _ = cmdplab.solver


def shown() -> list[object]:
    problem = SEVERAL
    solution = cmdplab.solve(problem)
    hostile = replace(problem, name=HOSTILE, horizon=0)
    run = cmdplab.run(problem, cmdplab.algorithm("UOpt-RPGPD"), 2000, solution=solution)
    asked = {"problems": [{"environment": HOSTILE}], "algorithms": [{"name": HOSTILE}] * 50}
    return [
        problem,
        hostile,
        random_problem(4, 3, 3, 1, closed=0.4),
        solution,
        cmdplab.solve(random_problem(3, 2, 2, 0)),
        cmdplab.solve(replace(problem, threshold=np.full(6, 3.0), horizon=0)),
        run,
        cmdplab.evaluate(problem, solution.policy),
        frontier(problem),
        parse_experiment({"name": "many", "episodes": 10, **asked}, "here"),
        cmdplab.compare(hostile, ["UOpt-RPGPD", "OptCMDP"], episodes=20, seeds=1),
    ]


def test_what_is_shown_is_short_printable_and_escaped():
    for each in shown():
        text, table = repr(each), each._repr_html_()
        assert 20 < len(text) < 400, text
        assert text.isprintable()
        assert type(each).__name__.split("[")[0] in text
        assert table.startswith("<table>")
        assert "<script>" not in table
        assert len(table) < 5000


def test_what_a_representation_suggests_exists():
    suggested = [(each, dict(each._facts()[1]).get("try", "")) for each in shown()]
    assert {type(each).__name__ for each, words in suggested if words} == {"Solution", "Run"}
    for each, words in suggested:
        for name in re.findall(r"(?:^|, )\.(\w+)", words):
            assert hasattr(each, name), (type(each), name)
        assert type(each).__name__ != "Run" or "verdict undecided before " in repr(each)


def test_a_problem_tells_its_sizes_and_a_solution_its_certificate():
    problem = cmdplab.make("media-streaming")
    assert repr(problem) == (
        "<CMDP media-streaming: horizon 10; states 10; actions 2; constraints 1; thresholds 5; "
        "start buffer 0; kernel stationary>"
    )
    assert "<tr><th>states</th><td>10</td></tr>" in problem._repr_html_()
    assert "optimum 3.2533; certified to " in repr(cmdplab.solve(problem))


def test_results_go_to_other_processes():
    solution = cmdplab.solve(SEVERAL)
    again = pickle.loads(pickle.dumps(solution))
    assert again.value == solution.value
    assert again.policy.to_table() == solution.policy.to_table()
    np.testing.assert_array_equal(again.occupancy, solution.occupancy)
    summary = cmdplab.run(SEVERAL, cmdplab.algorithm("OptCMDP"), 5).summary
    assert pickle.loads(pickle.dumps(summary)) == summary


def test_lists_are_those_of_the_command():
    listed = cmdplab.list_algorithms()
    assert "UOpt-RPGPD" in [each["name"] for each in listed]
    wanted = {"name", "presets", "summary", "needs", "guarantee", "provenance"}
    assert all(wanted <= each.keys() for each in listed)
    assert "published" in [each["name"] for each in cmdplab.list_environments()]


def test_compare_gives_what_single_runs_give():
    rows = ["UOpt-RPGPD", cmdplab.algorithm("UOpt-RPGPD", "printed"), "OptCMDP"]
    found = cmdplab.compare(SEVERAL, rows, episodes=30, seeds=2)
    assert [*found.runs] == ["UOpt-RPGPD:released", "UOpt-RPGPD:printed", "OptCMDP"]
    alone = cmdplab.run(SEVERAL, rows[1], 30, seed=1)
    assert found.runs["UOpt-RPGPD:printed"][1].summary == alone.summary
    record = found.table()[1]
    mine = [run.summary.final_gap for run in found.runs["UOpt-RPGPD:printed"]]
    assert record["final_gap"] == np.median(mine)
    assert (record["algorithm"], record["preset"], record["seeds"]) == ("UOpt-RPGPD", "printed", 2)


def test_compare_in_a_folder_gives_the_same_and_keeps_it(tmp_path):
    asked = {"episodes": 40, "seeds": 1, "workers": 1}
    with in_one_process():
        kept = cmdplab.compare("three-state", ["OptCMDP"], out=tmp_path / "kept", **asked)
    in_memory = cmdplab.compare("three-state", ["OptCMDP"], **asked)
    assert kept.runs["OptCMDP"][0].summary == in_memory.runs["OptCMDP"][0].summary
    assert (tmp_path / "kept" / "report.html").exists()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"algorithms": []}, "name at least one algorithm"),
        ({"algorithms": ["OptCMPD"]}, "did you mean 'OptCMDP'"),
        ({"seeds": 0}, "seeds is 0"),
        ({"episodes": 0}, "episodes is 0"),
        ({"out": "somewhere"}, "a comparison in a folder names its problem"),
    ],
)
def test_compare_refuses_in_a_sentence(given, sentence):
    with pytest.raises(cmdplab.InputError, match=sentence):
        cmdplab.compare(SEVERAL, **{"episodes": 5, "seeds": 1, **given})


# What pages import.
PLACES = (
    "from cmdplab import CMDP, Experiment, InputError, Job, PrimalDual, Run, Solution, algorithm",
    "from cmdplab import describe, learn, make, run, run_many, solve, sweep",
    "from cmdplab.algorithms.families.primal_dual import Bonus",
    "from cmdplab.algorithms.task import Task",
    "from cmdplab.engines.host import HostSession",
    "from cmdplab.environments import Environment",
    "from cmdplab.environments.random_cmdp import independent_rewards, random_cmdp",
    "from cmdplab.formats import from_action_first, from_gymnasium, from_state_first",
    "from cmdplab.formats import to_action_first, to_state_first",
    "from cmdplab.gym import FromSafety, FromVectorReward, ProblemEnv, TimeAware, ToSafety",
    "from cmdplab.live import shown",
    "from cmdplab.measures import Measures",
    "from cmdplab.testing import check_learner",
)
IMPORTS = """
import warnings
for statement in {statements}:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        exec(compile(statement, "here.py", "exec"))
    ours = [each for each in told if each.category is FutureWarning]
    print(bool(ours), *{{each.filename for each in ours}})  # `from` looks twice for a name
"""


def test_a_task_without_constraints_has_an_infinite_slater_gap():
    free = cmdplab.solve(random_problem(3, 2, 2, 0))
    assert free.slater_gap is None
    assert Task.of(SEVERAL, free.slater_gap).slater_gap == np.inf


def test_the_places_that_pages_import_from_are_there_and_say_nothing():
    found = in_a_process(IMPORTS.format(statements=PLACES)).splitlines()
    assert found == ["False"] * len(PLACES)


@pytest.mark.parametrize(
    ("error", "kinds"),
    [
        (errors.InputError, (ValueError,)),
        (errors.LearnerError, (errors.InputError,)),
        (errors.OpenCertificateError, (errors.InputError,)),
        (errors.StorageError, (OSError,)),
        (errors.EngineError, (RuntimeError,)),
    ],
)
def test_every_error_is_ours_and_the_one_of_python_that_says_the_same(error, kinds):
    assert issubclass(error, (errors.CmdplabError, *kinds))
    again = pickle.loads(pickle.dumps(error("a line\nand another")))
    assert (type(again), str(again)) == (error, "a line?and another")


def test_bad_input_storage_and_engine_are_different_things():
    kinds = (errors.InputError, errors.StorageError, errors.EngineError)
    assert not any(issubclass(a, b) for a in kinds for b in kinds if a is not b)


def test_a_full_disk_is_no_bad_input(tmp_path, monkeypatch):
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(errors.StorageError, match=r"cannot write .*p\.npz: No space left") as told:
        SEVERAL.save(tmp_path / "p.npz")
    assert not isinstance(told.value, errors.InputError)
    assert list(tmp_path.iterdir()) == []


def test_the_file_that_could_not_be_written_is_the_one_that_is_named(tmp_path):
    with (
        pytest.raises(errors.StorageError) as told,
        written_whole(tmp_path / "outer", flushed=False),
        written_whole(tmp_path / "inner", flushed=False),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(told.value) == f"cannot write {tmp_path}/inner: No space left on device"


def test_what_the_system_refuses_is_storage_and_what_is_missing_is_input(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.StorageError, match="cannot be read: Not a directory"):
        read_bytes(tmp_path / "file" / "below")
    with pytest.raises(errors.StorageError, match="cannot write into"):
        writable_folder(tmp_path / "file" / "below")
    with pytest.raises(errors.InputError, match="does not exist"):
        read_bytes(tmp_path / "none")


def test_no_card_is_no_bad_input(monkeypatch):
    from cmdplab.engines.gpu import device

    monkeypatch.setattr(device, "missing", lambda: "there is no CUDA device here")
    with pytest.raises(errors.EngineError, match="no CUDA device here; the engine cpu works"):
        cmdplab.run(SEVERAL, cmdplab.algorithm("UOpt-RPGPD"), 5, engine="gpu")


def test_the_command_says_storage_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    out = Path("file") / "below"
    call = [sys.executable, "-m", "cmdplab", "run", "three-state", "--episodes", "5"]
    done = subprocess.run([*call, "--out", str(out)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("cmdplab: cannot write into file/below")
