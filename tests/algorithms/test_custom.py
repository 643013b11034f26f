"""Algorithms from outside: the package in tests/visitor, as if it were installed."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import faults
import numpy as np
import pytest
from conftest import ROOT, in_one_process, random_problem
from live_envs import Walk
from oracles import session

import cmdplab
from cmdplab import InputError, Job, plugins
from cmdplab.algorithms import as_row, check_settings, is_own, written_name
from cmdplab.algorithms.custom import Checked, StoredState, custom, packed, unpacked
from cmdplab.errors import CmdplabError, LearnerError
from cmdplab.experiments.experiment import parse_experiment
from cmdplab.experiments.sweep import sweep
from cmdplab.settings import SETTINGS
from cmdplab.studies.predefined import Comparison, carry_out
from cmdplab.testing import ContractError, check_learner

VISITOR = ROOT / "tests" / "visitor"
NAME, PATH = "Priced-planner", "visitor.learner:PricedPlanner"


def install(package: Path, where: Path, **more: dict[str, str]) -> Path:
    """What `pip install --target` leaves: the modules, and what the package registers."""
    about = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    name, version = about["name"], about["version"]
    shutil.copytree(package / name, where / name, ignore=shutil.ignore_patterns("__pycache__"))
    described = where / f"{name}-{version}.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    )
    register(described, {**about["entry-points"], **more})
    return where


def register(described: Path, groups: dict[str, dict[str, str]]) -> None:
    lines = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{name} = {path}" for name, path in entries.items())]
    (described / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return install(VISITOR, tmp_path_factory.mktemp("site"))


@pytest.fixture
def visitor(target, monkeypatch):
    """The package can be imported, here and in processes that are started here."""
    monkeypatch.syspath_prepend(str(target))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(target), *_path()]))
    yield importlib.import_module("visitor.learner")
    for name in [each for each in sys.modules if each.split(".")[0] == "visitor"]:
        del sys.modules[name]


def _path() -> list[str]:
    return [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]


def experiment(*names: str, episodes: int = 60, seeds: int = 1) -> dict:
    return {
        "name": "visit",
        "episodes": episodes,
        "seeds": seeds,
        "problems": [{"environment": "three-state"}],
        "algorithms": [{"name": name} for name in names],
    }


def write_toml(file: Path, values: dict) -> Path:
    lines = [f"{key} = {json.dumps(values[key])}" for key in ("name", "episodes", "seeds")]
    for table in ("problems", "algorithms"):
        for each in values[table]:
            lines += [f"[[{table}]]", *(f"{key} = {json.dumps(each[key])}" for key in each)]
    file.write_text("\n".join(lines) + "\n")
    return file


def command(*arguments: object, cwd: Path, path: Path | None) -> subprocess.CompletedProcess:
    """`cmdplab ...` in a process of its own, with or without the package."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*([str(path)] if path else []), *_path()]),
    }
    program = [sys.executable, "-m", "cmdplab", *map(str, arguments)]
    return subprocess.run(program, cwd=cwd, env=environment, capture_output=True, text=True)


# What may be given


def test_a_learner_a_maker_a_path_and_a_registered_name_give_the_same_run(visitor):
    problem = cmdplab.make("three-state")

    def made(task):
        return visitor.PricedPlanner(task)

    given = (visitor.PricedPlanner, made, custom(made, name="mine"), PATH, NAME, NAME.lower())
    runs = [cmdplab.run(problem, each, 40, seed=2) for each in given]
    for each in runs[1:]:
        assert each.summary == runs[0].summary
        assert all(np.array_equal(a, b) for a, b in zip(each.state, runs[0].state, strict=True))
    names = [run.algorithm.name for run in runs]
    assert names == ["PricedPlanner", "made", "mine", PATH, NAME, NAME]
    assert {run.algorithm.preset for run in runs} == {"custom"}


def test_an_object_that_needs_no_task_is_a_learner(visitor):
    problem = cmdplab.make("three-state")
    task = cmdplab.algorithms.task.Task.of(problem, 0.0)
    run = cmdplab.run(problem, visitor.PricedPlanner(task), 20)
    assert run.summary == cmdplab.run(problem, PATH, 20).summary


def test_a_name_is_accepted_wherever_a_row_is():
    problem = random_problem(3, 2, 2, 1)
    rows = [cmdplab.algorithm("UOpt-RPGPD"), "UOpt-RPGPD", "uopt-rpgpd:released"]
    runs = cmdplab.run_many(problem, [Job(row, 0) for row in rows], 30)
    assert {run.summary for run in runs} == {runs[0].summary}
    assert cmdplab.run(problem, "OptCMDP:printed", 5).algorithm.preset == "printed"


def test_what_is_played_is_measured_exactly_and_on_both_engines_alike(visitor):
    problem = cmdplab.make("three-state")
    cpu, host = (cmdplab.run(problem, PATH, 30, engine=engine) for engine in ("cpu", "host"))
    assert cpu.summary == host.summary
    best = cmdplab.solve(problem).value
    last = cmdplab.run(problem, PATH, 29).state
    task = cmdplab.algorithms.task.Task.of(problem, 0.0)
    policy = visitor.PricedPlanner(task).policy(last)
    assert cpu.summary.final_gap == pytest.approx(
        best - cmdplab.evaluate(problem, policy).returns[0]
    )


def test_it_learns_from_samples_where_rewards_are_not_told(visitor):
    problem = cmdplab.make("three-state")
    told, seen = (cmdplab.run(problem, PATH, 50, rewards=how) for how in ("known", "bernoulli"))
    assert set(np.unique(seen.state.earned % 1.0)) == {0.0}
    assert told.summary != seen.summary


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (5, "5 is no algorithm"),
        (None, "None is no algorithm"),
        ("nobody", "unknown algorithm 'nobody'"),
        ("OptCDMP:released", "did you mean 'OptCMDP'"),
        ("OptCMDP:reprinted", "unknown preset 'reprinted'"),
        ("no.such.module:name", "no.such.module cannot be imported: ModuleNotFoundError"),
        ("visitor.learner:nothing", "visitor.learner has no nothing"),
        ("visitor.learner:", "is no import path: write package.module:name"),
        ("visitor learner:x y", "is no import path: write package.module:name"),
    ],
)
def test_what_is_no_algorithm_is_refused_in_a_sentence(visitor, given, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        cmdplab.run(random_problem(3, 2, 2, 1), given, 5)


@pytest.mark.parametrize("text", ["raise ValueError('one\\ntwo')", "raise SystemExit(3)", "def ("])
def test_a_module_that_cannot_be_imported_is_one_sentence(tmp_path, monkeypatch, call, text):
    (tmp_path / "unsound.py").write_text(text + "\n")
    monkeypatch.chdir(tmp_path)
    code, out, err = call("run", "three-state", "--algorithm", "unsound:make", "--episodes", "5")
    sys.path.remove(str(tmp_path))
    assert (code, out) == (2, "")
    assert err.startswith("cmdplab: unsound:make: unsound cannot be imported: ")
    assert err.count("\n") == 1


def test_its_own_settings_are_none(visitor):
    row = as_row(PATH)
    assert set(row.settings().values()) == {None}
    with pytest.raises(InputError, match="has no setting bonus_scale"):
        row.with_settings(bonus_scale=1.0)
    assert not any(row.reads(name) for name in SETTINGS)
    with pytest.raises(InputError, match=f"{PATH} has no bonus_scale: UOpt-RPGPD, "):
        check_settings([row], {"bonus_scale": 1.0})
    assert "nothing is proved" in row.heuristic
    assert row.provenance == "from outside cmdplab"
    with pytest.raises(InputError, match="from outside cmdplab and has no presets"):
        as_row(PATH, "printed")


# The contract

BROKEN = {
    "Negative": "broke the contract in episode 4: its policy has -0.1 at [",
    "Shape": "broke the contract in episode 1: its policy has the shape",
    "NoNumber": "broke the contract in episode 1: its policy has nan at [0, 0, 0]",
    "Sum": "broke the contract in episode 1: its policy sums to 0.5 at [0, 0], not to 1",
    "Text": "broke the contract in episode 1: its policy is not an array of real numbers",
    "Count": "after episode 1: state.episode is 7, not the number of episodes done, 1",
    "Prices": "broke the contract after episode 1: state.multiplier has an entry below zero",
    "NoMultiplier": "broke the contract before the first episode: its state has no field episode",
    "Raises": "failed in episode 5: KeyError: 'lost' (broken.py, line 54)",
    "Exits": "failed in episode 1: SystemExit: 0",
    "NotMade": "cannot be made: RuntimeError: first line",
    "SameState": "after episode 1: observe gave the old state back, not a new one",
    "NotAnArray": "failed in episode 1: RuntimeError: on another device",
    "NoProperty": "failed before the first episode: ValueError: none yet",
    "nothing": "made a NoneType, which is no learner with init, policy and observe",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_contract_is_a_sentence_with_the_name_in_it(visitor, name):
    path = f"visitor.broken:{name}"
    with pytest.raises(LearnerError) as caught:
        cmdplab.run(cmdplab.make("three-state"), path, 20)
    assert str(caught.value).startswith(f"{path} ")
    assert BROKEN[name] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", BROKEN)
def test_the_contract_says_the_same_before_anything_is_run(visitor, name):
    with pytest.raises(ContractError, match=re.escape(BROKEN[name])):
        check_learner(f"visitor.broken:{name}", cmdplab.make("three-state"))


def test_the_visitor_keeps_the_contract(visitor):
    check_learner(visitor.PricedPlanner, episodes=30)
    with pytest.raises(ContractError, match=r"state\.pages is a tuple, not an array or a number"):
        check_learner("visitor.broken:Unstorable", cmdplab.make("three-state"))


def test_in_a_sweep_a_broken_learner_fails_alone(visitor, tmp_path):
    names = ("visitor.broken:Negative", "visitor.broken:Exits", PATH, "UOpt-RPGPD")
    values = parse_experiment(experiment(*names), "here")
    found = {each.algorithm: each for each in sweep(values, tmp_path / "out", workers=1)}
    assert {name: found[name].status for name in names} == {
        "visitor.broken:Negative": "failed",
        "visitor.broken:Exits": "failed",
        PATH: "done",
        "UOpt-RPGPD": "done",
    }
    assert found[names[0]].error.startswith("visitor.broken:Negative broke the contract")


def test_on_the_command_line_a_broken_contract_is_exit_code_2(visitor, call, tmp_path):
    given = ("run", "three-state", "--algorithm", "visitor.broken:Raises", "--episodes", "20")
    code, out, err = call(*given)
    assert (code, out) == (2, "")
    assert err == f"cmdplab: visitor.broken:Raises {BROKEN['Raises']}\n"
    assert call(*given, "--out", tmp_path / "one")[0] == 2


@pytest.mark.slow
def test_a_comparison_shows_the_others_where_a_learner_from_outside_fails(visitor, call, tmp_path):
    both = ("--algorithms", "visitor.broken:Raises,UOpt-RPGPD", "--episodes", "50", "--seeds", "1")
    given = ("compare", "--problem", "three-state", *both, "--out", tmp_path / "two")
    code, out, _ = call(*given)
    assert code == 2
    assert "1 done, 1 failed" in out
    assert "open " in out
    assert list(json.loads((tmp_path / "two" / "summary.json").read_text())["algorithms"]) == [
        "UOpt-RPGPD"
    ]
    assert (tmp_path / "two" / "compare.png").exists()
    assert "visitor.broken:Raises failed in episode 5" in (
        tmp_path / "two" / "report.html"
    ).read_text().replace("&#39;", "'")
    code, out, _ = call(*given, "--json")
    assert code == 2
    assert [each["status"] for each in json.loads(out)["runs"]] == ["failed", "done"]
    study = Comparison("three-state", algorithms=("visitor.broken:Raises", "UOpt-RPGPD"))
    study = replace(study, episodes=50, seeds=1, out=tmp_path / "three")
    with pytest.raises(CmdplabError, match="Raises, seed 0, is failed: "):
        carry_out(study)
    assert (tmp_path / "three" / "compare.png").exists()


@pytest.mark.slow
def test_what_a_learner_prints_is_not_mixed_with_json(visitor, target, tmp_path):
    given = ("--episodes", "20", "--json")
    alone = ("run", "three-state", "--algorithm", "visitor.broken:Chatty", *given)
    study = ("compare", "--problem", "three-state", "--algorithms", "visitor.broken:Chatty", *given)
    for arguments in (alone, (*alone, "--out", "one"), (*study, "--seeds", "1", "--out", "two")):
        done = command(*arguments, cwd=tmp_path, path=target)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["schema"]
        assert done.stderr.count("{ thinking") == 20


def test_multipliers_are_those_of_their_episodes_though_the_learner_keeps_one_array(visitor):
    run = cmdplab.run(cmdplab.make("three-state"), "visitor.broken:InPlace", 40)
    np.testing.assert_array_equal(run.curves["multiplier_1"], run.curves["episode"])


def test_two_learners_of_one_name_are_not_one_line(visitor):
    problem = cmdplab.make("three-state")
    two = [lambda task: visitor.PricedPlanner(task), lambda task: visitor.PricedPlanner(task)]
    asked = {"episodes": 10, "seeds": 1}
    with pytest.raises(InputError, match="two of the algorithms are called <lambda>: name them"):
        cmdplab.compare(problem, two, **asked)
    found = cmdplab.compare(problem, [custom(two[0], "a"), custom(two[1], "b")], **asked)
    assert list(found.runs) == ["a", "b"]
    assert list(cmdplab.compare(problem, two[0], **asked).runs) == ["<lambda>"]
    assert list(cmdplab.compare(problem, "UOpt-RPGPD", **asked).runs) == ["UOpt-RPGPD"]


@pytest.mark.slow
def test_compare_keeps_a_class_in_a_folder_by_its_path(visitor, tmp_path):
    asked = {"episodes": 10, "seeds": 1, "out": tmp_path / "out"}
    found = cmdplab.compare("three-state", [visitor.PricedPlanner, "UOpt-RPGPD"], **asked)
    assert list(found.runs) == [PATH, "UOpt-RPGPD"]
    with pytest.raises(InputError, match="cannot be found again by another process"):
        cmdplab.compare("three-state", [lambda task: None], **asked)


# States as arrays


class Kept(NamedTuple):
    whole: int
    real: float
    truth: bool
    single: np.float32
    table: np.ndarray
    nothing: np.ndarray


def test_a_state_comes_back_from_arrays_as_it_was():
    first = Kept(0, 0.0, False, np.float32(0), np.zeros((2, 3), np.int32), np.zeros(0))
    table = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    state = Kept(7, 0.1, True, np.float32(0.3), table, np.zeros(0))
    arrays = {name: each.copy() for name, each in packed("it", state).items()}
    again = unpacked("it", first, vars(StoredState(**arrays)))
    for before, after in zip(state, again, strict=True):
        assert type(before) is type(after)
        assert np.array_equal(before, after)
    assert again.table.dtype == np.int32
    # A number that was whole at first and is no more keeps its fraction.
    assert unpacked("it", first, arrays | {"whole": np.array(0.5)}).whole == 0.5


@pytest.mark.parametrize(
    "value",
    [
        *("text", None, [1.0], (1.0,), {}, np.array([{}]), 1j, 1 << 80),
        *(np.ma.array([1.0], mask=[True]), np.asarray([1.0]).view(np.recarray)),
    ],
)
def test_a_state_of_anything_else_cannot_be_stored(value):
    class Odd(NamedTuple):
        odd: object

    with pytest.raises(LearnerError, match=r"it cannot be stored: state\.odd is a .*not an array"):
        packed("it", Odd(value))


def test_a_state_of_other_fields_is_not_guessed():
    first = Kept(0, 0.0, False, np.float32(0), np.zeros(1), np.zeros(0))
    arrays = packed("it", first)
    with pytest.raises(LearnerError, match="only its stored state has a field 'more'"):
        unpacked("it", first, {**arrays, "more": np.zeros(1)})
    arrays.pop("table")
    with pytest.raises(LearnerError, match="only its present state has a field 'table'"):
        unpacked("it", first, arrays)
    with pytest.raises(LearnerError, match="its state is a dict, not a NamedTuple or a dataclass"):
        packed("it", {"episode": 0})


def test_a_state_that_cannot_be_stored_runs_in_memory_and_not_in_a_folder(visitor, tmp_path):
    run = cmdplab.run(cmdplab.make("three-state"), "visitor.broken:Unstorable", 20)
    assert run.state.pages == ("seen",) * 20
    names = ("visitor.broken:Unstorable", "visitor.broken:NotMadeAgain")
    values = parse_experiment(experiment(*names), "here")
    with in_one_process():
        found = {each.algorithm: each for each in sweep(values, tmp_path / "out")}
    assert {(each.status, each.episodes) for each in found.values()} == {("failed", 0)}
    unstorable, other = (found[name].error for name in names)
    assert unstorable.endswith("state.pages is a tuple, not an array or a number")
    assert "visitor.broken:NotMadeAgain cannot make its state again: TypeError" in other


# Folders


def test_what_another_process_cannot_find_is_refused_before_anything_is_written(visitor, tmp_path):
    local = custom(visitor.PricedPlanner, name="mine")
    for given in (lambda task: None, local, visitor.PricedPlanner(None)):
        with pytest.raises(InputError, match=r"algorithms\.0\.name: "):
            parse_experiment(experiment(given), "here")
        with pytest.raises(InputError, match=r"package\.module:name"):
            carry_out(Comparison("three-state", algorithms=(given,), out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    assert written_name(visitor.PricedPlanner) == PATH
    assert written_name(as_row(PATH)) == PATH
    assert written_name(as_row(NAME)) == NAME
    assert written_name(cmdplab.algorithm("OptCMDP", "released")) == "OptCMDP:released"


def test_a_comparison_takes_a_class_and_shows_it_beside_ours(visitor, tmp_path):
    both = (visitor.PricedPlanner, "UOpt-RPGPD")
    study = Comparison("three-state", episodes=60, seeds=2, algorithms=both, out=tmp_path / "out")
    with in_one_process():
        runs, summary = carry_out(study)
    assert list(summary["algorithms"]) == [PATH, "UOpt-RPGPD"]
    assert (
        summary["algorithms"][PATH]["heuristic"] == "from outside cmdplab: nothing is proved here"
    )
    assert runs[0].state.episode == 60
    assert (tmp_path / "out" / "report.html").exists()
    plain = cmdplab.run(cmdplab.make("three-state"), visitor.PricedPlanner, 60, seed=0)
    assert runs[0].summary == plain.summary


@pytest.mark.slow
def test_killed_and_resumed_a_sweep_ends_with_the_bytes_of_one_that_never_stopped(
    visitor, target, tmp_path
):
    file = write_toml(tmp_path / "visit.toml", experiment(PATH, NAME, episodes=3_000, seeds=2))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    faults.finish(file, whole)
    process = faults.start(file, killed, workers=1)
    assert faults.wait_until(lambda: bool(list(killed.glob("runs/*/checkpoint.npz"))))
    faults.kill(process)
    assert faults.results(killed) != faults.results(whole)
    asked = command("resume", killed, cwd=tmp_path, path=target)
    assert asked.returncode == 2
    assert asked.stderr == (
        f"cmdplab: {PATH} is from outside cmdplab: give it again, --algorithm {PATH}, "
        "or install the package that registers it\n"
    )
    other = command("resume", killed, "--algorithm", "other:name", cwd=tmp_path, path=target)
    assert other.returncode == 2
    assert "there is no run of other:name here" in other.stderr
    done = command("resume", killed, "--algorithm", PATH, cwd=tmp_path, path=target)
    assert done.returncode == 0, done.stderr
    assert faults.results(killed) == faults.results(whole)
    assert len(faults.results(whole)) == 4


@pytest.mark.slow
def test_records_are_read_without_the_package_and_nothing_is_imported(visitor, target, tmp_path):
    out, trap = tmp_path / "out", tmp_path / "trap"
    (trap / "visitor").mkdir(parents=True)
    (trap / "visitor" / "__init__.py").write_text("open('imported', 'w'); raise SystemExit\n")
    sweep(parse_experiment(experiment(PATH, "UOpt-RPGPD", seeds=5), "here"), out, workers=2)
    read = [("status", out), ("report", out), ("export", out), ("audit", out), ("plot", out, "gap")]
    read += [("resume", out)]  # nothing is left to be done
    for arguments in read:
        done = command(*arguments, cwd=tmp_path, path=trap)
        assert done.returncode == 0, done.stderr
    assert not (tmp_path / "imported").exists()
    assert set(cmdplab.load_runs(out).column("algorithm").to_pylist()) == {PATH, "UOpt-RPGPD"}
    assert PATH in (out / "report.html").read_text()
    assert PATH in (out / "audit" / "audit.csv").read_text()


def test_a_single_run_in_a_folder_goes_on_with_the_same_command(visitor, call, tmp_path):
    out = tmp_path / "one"
    given = ("run", "three-state", "--algorithm", PATH, "--episodes", "40", "--out", out, "--json")
    first = json.loads(call(*given)[1])
    again = json.loads(call(*given)[1])
    assert (first["status"], first["preset"], first["settings"]) == ("done", "custom", {})
    assert (
        first["multiplier"]
        == again["multiplier"]
        == json.loads(call(*given[:-3], "--json")[1])["multiplier"]
    )


def test_an_experiment_says_what_it_names(visitor, call, tmp_path):
    file = write_toml(tmp_path / "visit.toml", experiment(PATH, "OptCMDP:released"))
    code, out, _ = call("sweep", file, "--dry-run", "--json")
    assert code == 0
    runs = json.loads(out)["runs"]
    assert [(run["algorithm"], run["preset"]) for run in runs] == [
        (PATH, "custom"),
        ("OptCMDP", "released"),
    ]


def test_a_plan_is_shown_without_importing_the_learners_of_its_file(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs.py").write_text("open('imported', 'w')\n")
    file = write_toml(tmp_path / "x.toml", experiment("theirs:learner", "nowhere.at.all:it"))
    code, out, _ = call("sweep", file, "--dry-run", "--json")
    runs = json.loads(out)["runs"]
    assert code == 0
    assert [run["algorithm"] for run in runs] == ["theirs:learner", "nowhere.at.all:it"]
    assert {run["preset"] for run in runs} == {"custom"}
    assert "theirs:learner" in call("sweep", file, "--dry-run")[1]
    assert not (tmp_path / "imported").exists()
    assert "theirs" not in sys.modules
    wrong = write_toml(tmp_path / "y.toml", experiment("UOpt-RPGDP"))
    assert "did you mean 'UOpt-RPGPD'" in call("sweep", wrong, "--dry-run")[2]


@pytest.mark.slow
def test_a_module_beside_the_person_is_found(tmp_path, target):
    shutil.copy(target / "visitor" / "learner.py", tmp_path / "mine.py")
    done = command(
        *("compare", "--problem", "three-state", "--episodes", "30", "--seeds", "1", "--out", "c"),
        *("--algorithms", "mine:PricedPlanner"),
        cwd=tmp_path,
        path=None,
    )
    assert done.returncode == 0, done.stderr


def test_on_a_card_it_is_refused_in_a_sentence(visitor, call):
    given = ("run", "three-state", "--algorithm", PATH, "--episodes", "5", "--engine", "gpu")
    code, _, err = call(*given)
    assert code == 2
    assert err.count("\n") == 1


def test_help_says_that_importing_runs_code(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("run", "compare", "resume", "plot"):
        shown = re.sub(r"[\s│]+", " ", call(name, "--help")[1])
        assert "importing it runs that module's code" in shown, name


# Live


def test_a_learner_from_outside_learns_live_and_goes_on_from_its_checkpoint(visitor, tmp_path):
    given = {"horizon": 3, "budget": 1.0, "evaluate": 50}
    whole = cmdplab.learn(Walk(), visitor.PricedPlanner, episodes=40, **given)
    cmdplab.learn(Walk(), PATH, episodes=25, checkpoint=tmp_path, **given)
    again = cmdplab.learn(Walk(), PATH, episodes=40, checkpoint=tmp_path, **given)
    np.testing.assert_array_equal(whole.policy, again.policy)
    np.testing.assert_array_equal(whole.multiplier, again.multiplier)
    unstorable = "visitor.broken:Unstorable"
    with pytest.raises(LearnerError, match="cannot be stored"):
        cmdplab.learn(Walk(), unstorable, episodes=5, checkpoint=tmp_path / "no", **given)


def test_a_session_observes_what_it_would_have_played(visitor):
    problem = cmdplab.make("three-state")
    row = as_row(PATH)
    task = cmdplab.algorithms.task.Task.of(problem, 0.0)
    playing, observing = (session("cpu", problem, row, task, 4) for _ in range(2))
    playing.play(1)
    policy = observing.policy()
    actions = [observing.act(h, problem.start, 0.5) for h in range(problem.horizon)]
    np.testing.assert_array_equal(actions, policy[:, problem.start].argmax(axis=-1))
    assert isinstance(observing.state(), visitor.State)
    states = np.full(problem.horizon + 1, problem.start)
    observing.observe(states, actions)
    assert observing.state().episode == 1


# Entry points


@pytest.fixture
def quarrel(target, tmp_path, monkeypatch):
    """Packages that register names of our own, the same name twice, and what does not exist."""
    for name, entries in {
        "first": {"UOpt-RPGPD": PATH, "Twice": PATH, "Broken": "visitor.learner:nothing"},
        "second": {"Twice": PATH},
    }.items():
        described = tmp_path / f"{name}-2.0.dist-info"
        described.mkdir()
        (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n")
        of_environments = {"Cliff": "visitor.corridor:corridor", "lost": "visitor.lost:nothing"}
        groups = {plugins.ALGORITHMS: entries, plugins.ENVIRONMENTS: of_environments}
        register(described, groups if name == "first" else {plugins.ALGORITHMS: entries})
    monkeypatch.syspath_prepend(str(tmp_path))


def test_what_a_package_registers_is_listed_as_from_outside_without_importing_it(visitor, call):
    del sys.modules["visitor.learner"]
    listed = json.loads(call("list", "algorithms", "--json")[1])["algorithms"]
    (mine,) = [each for each in listed if each["name"] == NAME]
    assert mine["provenance"] == {"custom": f"from outside cmdplab: {PATH} of visitor 1.0"}
    listed = json.loads(call("list", "environments", "--json")[1])["environments"]
    assert {each["name"]: each["states"] for each in listed}["corridor"] is None
    assert "visitor.learner" not in sys.modules
    assert "visitor.corridor" not in sys.modules
    assert call("list", "algorithms")[0] == call("list", "environments")[0] == 0


def test_an_environment_from_outside_is_made_by_its_name(visitor, call):
    assert cmdplab.make("Corridor").name == "corridor"
    assert call("run", "corridor", "--algorithm", NAME, "--episodes", "20")[0] == 0
    with pytest.raises(InputError, match="corridor is one instance"):
        cmdplab.make("corridor", 3)


def test_a_name_of_our_own_is_not_taken_over(visitor, quarrel, call):
    code, _, err = call("run", "three-state", "--algorithm", "uopt-rpgpd", "--episodes", "5")
    assert code == 2
    assert err == (
        "cmdplab: first 2.0 registers UOpt-RPGPD, which is a name of cmdplab's own: uninstall it, "
        "or let it choose another name\n"
    )
    with pytest.raises(InputError, match=r"first 2\.0 registers Cliff"):
        cmdplab.make("cliff")
    with pytest.raises(InputError, match="UOpt-RPGPD is a name of cmdplab's own"):
        cmdplab.run(random_problem(3, 2, 2, 1), custom(visitor.PricedPlanner, "UOpt-RPGPD"), 5)


def test_a_broken_entry_point_harms_only_who_asks_for_it(visitor, quarrel):
    problem = cmdplab.make("three-state")
    assert cmdplab.run(problem, NAME, 5).summary == cmdplab.run(problem, PATH, 5).summary
    assert cmdplab.run(problem, "OptCMDP", 5).algorithm.name == "OptCMDP"
    with pytest.raises(InputError, match=r"Broken of first 2\.0: .* has no nothing"):
        cmdplab.run(problem, "broken", 5)
    with pytest.raises(InputError, match=r"first 2\.0 and second 2\.0 both register Twice"):
        cmdplab.run(problem, "Twice", 5)
    with pytest.raises(InputError, match=r"lost of first 2\.0: .* cannot be imported"):
        cmdplab.make("lost")


def test_what_is_installed_while_a_process_runs_is_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    assert plugins.plugin(plugins.ALGORITHMS, "Late") is None
    described = tmp_path / "late-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 1.0\n")
    register(described, {plugins.ALGORITHMS: {"Late": PATH}})
    os.utime(tmp_path, ns=(1, 1))  # another moment, however coarse the clock of the disk is
    found = plugins.plugin(plugins.ALGORITHMS, "Late")
    assert (found.path, found.package) == (PATH, "late 1.0")


def test_no_name_of_ours_looks_like_one_from_outside():
    assert all(is_own(name) for name, _ in cmdplab.algorithms.ALGORITHMS)
    assert not is_own(NAME)


def test_a_wrapper_that_is_no_learner_is_refused():
    task = cmdplab.algorithms.task.Task.of(random_problem(3, 2, 2, 1), 0.0)
    with pytest.raises(LearnerError, match="it made a object, which is no learner"):
        Checked("it", object(), task)


def test_the_page_shows_the_very_file_that_is_run_here():
    page = (ROOT / "docs" / "add-an-algorithm.md").read_text()
    assert f"```python\n{(VISITOR / 'visitor' / 'learner.py').read_text()}```" in page
    registered = (VISITOR / "pyproject.toml").read_text()
    shown = re.findall(r"^```toml\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert any(block in registered for block in shown)
