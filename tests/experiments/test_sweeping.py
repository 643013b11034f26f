"""Sweeps on the command line and from Python, and reading them back."""

from __future__ import annotations

import json
import re
import sys
import tomllib

import faults
import numpy as np
import pytest
from conftest import ROOT, in_one_process, random_problem

from cmdplab import Experiment, load_runs, sweep
from cmdplab.errors import InputError
from cmdplab.experiments.experiment import parse_experiment, problems, read_experiment, resolve
from cmdplab.experiments.folder import works_of
from cmdplab.experiments.records.load import export
from cmdplab.experiments.sweep import prepare


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swept")
    file = faults.write_experiment(folder, episodes=3000, seeds=2, rows=2)
    sweep(read_experiment(file), folder / "out", base=folder, workers=2)
    return file, folder / "out"


def test_curves_come_back_as_one_tidy_table(swept):
    table = load_runs(swept[1])
    assert set(table["seed"].to_pylist()) == {0, 1}
    assert len(set(table["run"].to_pylist())) == 4
    assert table.column_names[0] == "run"
    frame = load_runs(swept[1], "pandas") if "pandas" in sys.modules or _has("pandas") else None
    if frame is not None:
        assert frame.groupby("run")["episode"].max().eq(3000).all()


def _has(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


@pytest.mark.skipif(not _has("xarray"), reason="needs the extra cmdplab[data]")
@pytest.mark.filterwarnings("ignore")
def test_curves_come_back_as_labelled_arrays(swept, tmp_path):
    data = load_runs(swept[1], "xarray")
    assert data["gap"].dims == ("run", "episode")
    assert set(np.unique(data["algorithm"])) == {"UOpt-RPGPD", "No-regularization"}
    assert export(swept[1], "netcdf", tmp_path / "c.nc").stat().st_size > 0


def test_export(swept, tmp_path):
    import pyarrow.csv
    import pyarrow.parquet

    rows = load_runs(swept[1]).num_rows
    assert pyarrow.csv.read_csv(export(swept[1], "csv", tmp_path / "c.csv")).num_rows == rows
    again = pyarrow.parquet.read_table(export(swept[1], "parquet", tmp_path / "c.parquet"))
    assert again.equals(load_runs(swept[1]))
    with pytest.raises(InputError, match="unknown format"):
        export(swept[1], "xlsx", tmp_path / "c.xlsx")


def test_an_experiment_in_python_is_the_same_as_its_file(swept):
    file, out = swept
    values = tomllib.loads(file.read_text())
    assert Experiment(**values) == read_experiment(file)
    found = resolve(read_experiment(file), problems(read_experiment(file), file.parent))
    assert {each.folder for each in found} == {p.name for p in (out / "runs").iterdir()}


def test_lists_of_values_are_a_grid():
    experiment = parse_experiment(
        {
            "name": "grid",
            "episodes": 10,
            "seeds": [3, 5],
            "problems": [{"environment": "random-printed", "instance_seeds": [0, 1]}],
            "algorithms": [{"name": "uopt-rpgpd", "bonus_scale": [1e-3, 1e-4], "alpha_eta": 0.6}],
        },
        "here",
    )
    found = resolve(experiment, problems(experiment, ROOT))
    assert len(found) == 2 * 2 * 2
    assert {each.row().bonus_scale for each in found} == {1e-3, 1e-4}
    assert found[0].row().policy_step.exponent == 0.6
    assert len({each.folder for each in found}) == 8


@pytest.mark.parametrize("file", sorted((ROOT / "examples" / "experiments").glob("*.toml")))
def test_the_examples_are_valid(file):
    assert resolve(read_experiment(file), problems(read_experiment(file), file.parent))


def test_the_documented_experiment_is_valid():
    text = (ROOT / "docs" / "experiments.md").read_text()
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert parse_experiment(tomllib.loads(block), "docs").name == "bonus-scale"


def test_sweep_status_and_resume_on_the_command_line(call, swept, tmp_path):
    file, by_workers = swept
    out = tmp_path / "cli"
    code, printed, _ = call("sweep", file, "--dry-run", "--json")
    assert (code, len(json.loads(printed)["runs"])) == (0, 4)
    assert not out.exists()
    with in_one_process():
        code, printed, _ = call("sweep", file, "--out", out, "--json")
    assert code == 0
    assert faults.results(out) == faults.results(by_workers)  # whoever does the runs
    assert {each["status"] for each in json.loads(printed)["runs"]} == {"done"}
    code, printed, _ = call("status", out, "--json")
    assert (code, len(json.loads(printed)["runs"])) == (0, 4)
    assert call("status", out)[0] == 0
    assert call("resume", out)[0] == 0
    assert call("export", out, "--to", "csv", "--out", tmp_path / "x.csv")[0] == 0


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("sweep missing.toml", "missing.toml does not exist"),
        ("sweep FILE --set episods=3", "episods: unknown key"),
        ("sweep FILE --set episodes=0", "episodes"),
        ("sweep FILE --workers 0", "workers is 0"),
        ("sweep FILE --set seeds=[]", "seeds"),
        ("sweep FILE --set seeds=1000000000", "seeds"),
        ("sweep FILE --checkpoint-every nan", "checkpoint-every is nan"),
        ("sweep FILE --set algorithms.0.name=nobody", "unknown algorithm 'nobody'"),
        ("sweep FILE --set problems.0.file=gone.npz", "gone.npz does not exist"),
        ("sweep FILE --ray 127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"),
        ("resume nowhere", "nowhere is no experiment"),
        ("status nowhere", "nowhere is no experiment"),
        ("export nowhere", "nowhere is no experiment"),
        ("run --episodes unlimited", "an unlimited run needs --out"),
        ("run --episodes many", "neither a whole number nor"),
    ],
)
def test_bad_input_changes_nothing(call, swept, command, sentence, tmp_path, monkeypatch):
    if "--ray" in command and not _has("ray"):
        sentence = "ray is not installed"
    monkeypatch.chdir(tmp_path)
    before = sorted(p.name for p in tmp_path.iterdir())
    code, _, err = call(*(swept[0] if each == "FILE" else each for each in command.split()))
    assert code == 2
    assert sentence in err
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_sweep_killed_before_it_had_begun_can_begin(swept, tmp_path):
    (tmp_path / "out" / "runs").mkdir(parents=True)
    (tmp_path / "out" / "problems").mkdir()
    with in_one_process():
        found = sweep(read_experiment(swept[0]), tmp_path / "out", base=swept[0].parent)
    assert {each.status for each in found} == {"done"}


@pytest.mark.slow
def test_a_damaged_problem_is_written_again(swept, tmp_path):
    file, _ = swept
    experiment = read_experiment(file, ["seeds=1"])
    sweep(experiment, tmp_path / "out", base=file.parent)
    (problem,) = (tmp_path / "out" / "problems").iterdir()
    problem.write_bytes(problem.read_bytes()[:100])
    found = sweep(read_experiment(file), tmp_path / "out", base=file.parent)
    assert {each.status for each in found} == {"done"}


@pytest.mark.slow
def test_a_damaged_list_of_runs_is_set_aside(swept, tmp_path):
    file, _ = swept
    sweep(read_experiment(file, ["seeds=1"]), tmp_path / "out", base=file.parent)
    listing = tmp_path / "out" / "experiment.json"
    listing.write_bytes(listing.read_bytes()[:100])
    with pytest.raises(InputError, match="cannot be read"):
        load_runs(tmp_path / "out")
    found = sweep(read_experiment(file, ["seeds=1"]), tmp_path / "out", base=file.parent)
    assert {each.status for each in found} == {"done"}
    assert (tmp_path / "out" / "experiment.json.damaged").exists()


def test_one_run_of_a_sweep_can_be_resumed_by_itself(call, swept):
    folder = next(iter((swept[1] / "runs").iterdir()))
    code, out, _ = call("resume", folder, "--json")
    assert code == 0
    assert json.loads(out)["runs"][0]["status"] == "done"


def test_run_with_other_settings_names_the_difference(call, tmp_path):
    assert call("run", "--episodes", "50", "--out", tmp_path / "r", "--json")[0] == 0
    code, _, err = call("run", "--episodes", "60", "--out", tmp_path / "r")
    assert code == 2
    assert "holds a run with episodes 50" in err


def test_a_folder_of_other_things_is_refused(call, swept, tmp_path):
    (tmp_path / "diary.txt").write_text("dear diary")
    code, _, err = call("sweep", swept[0], "--out", tmp_path)
    assert code == 2
    assert "holds other files (diary.txt)" in err
    code, _, err = call("run", "--episodes", "10", "--out", tmp_path)
    assert code == 2


def test_an_infeasible_problem_is_refused_before_anything_is_written(call, tmp_path):
    problem = random_problem(3, 2, 2, 1)
    type(problem)(problem.transition, problem.reward, [2.0], problem.start).save(tmp_path / "p.npz")
    head = 'name = "e"\nepisodes = 5\n[[problems]]\nfile = "p.npz"\n'
    (tmp_path / "e.toml").write_text(head + '[[algorithms]]\nname = "UOpt-RPGPD"\n')
    code, _, err = call("sweep", tmp_path / "e.toml", "--out", tmp_path / "out")
    assert code == 2
    assert "cannot be run" in err
    assert not (tmp_path / "out").exists()


def test_a_sweep_says_what_is_missing_before_it_starts(tmp_path):
    random_problem(3, 2, 2, 0).save(tmp_path / "free.npz")
    experiment = parse_experiment(
        {
            "name": "missing",
            "episodes": 10,
            "problems": [{"file": "free.npz"}],
            "algorithms": [{"name": "UOpt-RPGPD"}, {"name": "DOPE"}],
        },
        "here",
    )
    with pytest.raises(InputError, match="DOPE needs a constraint"):
        sweep(experiment, tmp_path / "out", base=tmp_path)
    assert not (tmp_path / "out").exists()


def test_an_unlimited_sweep_is_read_again(tmp_path):
    asked = {"name": "long", "episodes": "unlimited", "seeds": 2}
    asked |= {"problems": [{"environment": "three-state"}], "algorithms": [{"name": "UOpt-RPGPD"}]}
    experiment = parse_experiment(asked, "here")
    works = prepare(experiment, problems(experiment, tmp_path), tmp_path)
    assert [each.settings.episodes for each in works_of(tmp_path)] == [None, None]
    assert [each.settings for each in works_of(tmp_path)] == [each.settings for each in works]
