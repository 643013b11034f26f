"""The command line: shapes that scripts rely on, one sentence and code 2 for bad input."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from typing import Any

import faults
import numpy as np
import pytest
import typer.main
from conftest import random_problem

from cmdplab import cli
from cmdplab.cli.options import sentences
from cmdplab.cmdp.problem import CMDP


def test_help_teaches_and_imports_nothing_heavy():
    heavy = "[m for m in ('numpy', 'numba', 'scipy', 'matplotlib') if m in sys.modules]"
    check = f"import sys, cmdplab.cli; print({heavy})"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_ray_without_an_address_is_a_local_cluster():
    assert cli._arguments(["sweep", "f", "--ray"]) == ["sweep", "f", "--ray", "local"]
    assert cli._arguments(["sweep", "--ray", "--json"]) == ["sweep", "--ray", "local", "--json"]
    assert cli._arguments(["sweep", "--ray", "h:1"]) == ["sweep", "--ray", "h:1"]


def test_help_of_every_command(call):
    for command in [each.name for each in cli.app.registered_commands]:
        code, out, _ = call(command, "--help")
        assert code == 0
        assert "Usage" in out


def test_there_are_at_most_twenty_commands_and_the_help_names_them(call):
    shown = call("--help")[1]
    assert len(cli.COMMANDS) <= 20
    assert all(f" {name} " in shown for name in cli.COMMANDS)
    assert " export " not in shown


def test_an_option_that_a_command_lacks_is_found_at_others(call):
    code, out, err = call("status", "here", "--horizon", "3")
    assert (code, out) == (2, "")
    assert err.startswith("cmdplab: No such option: --horizon; commands that have it: run, solve, ")
    assert "commands that have it" not in call("run", "--nonsense", "3")[2]


def test_a_table_is_run_with_the_options_that_solve_takes(call, tmp_path):
    table = tmp_path / "ward.csv"
    table.write_text("state,action,next,probability,reward,fuel\nx,go,x,1,1,0.5\nx,stay,x,1,0,0\n")
    roles = ("--horizon", "4", "--cost", "fuel", "--budget", "1")
    answer = json.loads(call("run", table, *roles, "--episodes", "50", "--json")[1])
    assert (answer["problem"], answer["episodes"]) == ("ward", 50)
    out = tmp_path / "kept"
    kept = json.loads(call("run", table, *roles, "--episodes", "50", "--out", out, "--json")[1])
    assert kept["strong_regret"] == answer["strong_regret"]
    assert json.loads(call("resume", out, "--json")[1])["runs"][0]["status"] == "done"
    code, _, err = call("run", table, "--episodes", "50")
    assert code == 2
    assert "a .csv file needs --horizon, --discount or --average" in err


def test_convert_and_export_write_the_curves_of_a_folder(call, tmp_path):
    call("run", "three-state", "--episodes", "20", "--out", tmp_path / "r")
    for suffix, kind in (("csv", "csv"), ("parquet", "parquet"), ("nc", "netcdf")):
        one, two = (tmp_path / f"{name}.{suffix}" for name in ("one", "two"))
        assert call("convert", tmp_path / "r", one)[0] == 0
        assert call("export", tmp_path / "r", "--to", kind, "--out", two)[0] == 0
        assert one.stat().st_size == two.stat().st_size > 0
    code, _, err = call("convert", tmp_path / "r", tmp_path / "p.npz")
    assert code == 2
    assert "is a folder of records" in err
    assert call("convert", tmp_path / "r", tmp_path / "p.csv", "--horizon", "3")[0] == 2


def test_no_cell_of_a_written_csv_begins_a_formula(call, tmp_path):
    problem = random_problem(3, 2, 2, 1)
    for n, name in enumerate(("=1+1", "+x", "@SUM(A1)", "-y")):
        named = CMDP(problem.transition, problem.reward, problem.threshold, name=name)
        named.save(tmp_path / "p.npz")
        out = tmp_path / str(n)
        assert call("run", tmp_path / "p.npz", "--episodes", "20", "--out", out)[0] == 0
        assert call("convert", out, tmp_path / "curves.csv")[0] == 0
        assert call("report", out)[0] == call("audit", out)[0] == 0
        for file in (tmp_path / "curves.csv", out / "summary.csv", out / "audit" / "audit.csv"):
            cells = {cell for row in csv.reader(file.read_text().splitlines()) for cell in row}
            assert f"'{name}" in cells
            assert name not in cells


def test_solve_json(call):
    code, out, _ = call("solve", "published", "--json")
    answer = json.loads(out)
    assert code == 0
    assert {"value", "multiplier", "slater_gap", "primal", "dual", "gap", "feasible"} <= set(answer)
    assert answer["feasible"] is True
    assert answer["value"] == pytest.approx(5.18840, abs=1e-5)


def test_solve_says_when_there_is_no_solution(call, tmp_path):
    problem = random_problem(3, 2, 2, 1)
    CMDP(problem.transition, problem.reward, [2.0], problem.start).save(tmp_path / "p.npz")
    code, out, _ = call("solve", tmp_path / "p.npz", "--json")
    answer = json.loads(out)
    assert (code, answer["feasible"], answer["value"]) == (0, False, None)
    assert call("describe", tmp_path / "p.npz", "--json")[0] == 0
    assert "no policy meets" in call("solve", tmp_path / "p.npz")[1]
    code, out, err = call("run", tmp_path / "p.npz", "--episodes", "10")
    assert code == 2
    assert "cannot be run" in err


def test_no_constraints_are_null_and_empty(call, tmp_path):
    random_problem(3, 2, 2, 0).save(tmp_path / "p.npz")
    answer = json.loads(call("solve", tmp_path / "p.npz", "--json")[1])
    assert (answer["slater_gap"], answer["multiplier"]) == (None, [])
    result = json.loads(call("run", tmp_path / "p.npz", "--episodes", "50", "--json")[1])
    assert (result["final_violation"], result["multiplier"]) == (None, [])


def test_describe_json(call):
    answer = json.loads(call("describe", "random-independent", "--instance-seed", "3", "--json")[1])
    assert answer["states"] == 30
    assert answer["unconstrained_optimum"] >= answer["optimum"]


def test_list_json(call):
    for what in ("algorithms", "environments"):
        rows = json.loads(call("list", what, "--json")[1])[what]
        assert all(row["name"] for row in rows)
    assert {"UOpt-RPGPD", "No-adjustment"} <= {
        row["name"] for row in json.loads(call("list", "algorithms", "--json")[1])["algorithms"]
    }


def test_run_writes_what_it_says(call, tmp_path):
    import pyarrow.parquet as pq

    out = tmp_path / "deep" / "run"
    code, printed, _ = call("run", "--episodes", "3000", "--out", out, "--json")
    assert code == 0
    files = sorted(p.name for p in out.iterdir() if not p.name.startswith("."))
    tables = ["curves.parquet", "manifest.json", "mistakes.parquet", "problem.npz"]
    assert files == ["checkpoint.npz", *tables]
    assert json.loads(printed)["status"] == "done"
    table = pq.read_table(out / "curves.parquet")
    assert table["episode"][-1].as_py() == 3000
    assert {"gap_min", "violation_max", "strong_regret", "multiplier_1"} <= set(table.column_names)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("run --episodes 0", "episodes is 0, not a positive number"),
        ("run --episodes -5", "episodes is -5"),
        ("run --seed -1", "seed is -1"),
        ("run --seed 99999999999999999999", "below 2^63"),
        ("run published --instance-seed 7", "takes no instance seed"),
        ("run --preset printed --bonus-scale 1e308 --episodes 9", "not finite"),
        ("reproduce --workers -3", "workers is -3"),
        ("reproduce --seeds 100000000", "more than"),
        ("run --alpha-eta 1.5", "alpha is 1.5, outside (0, 1]"),
        ("run --alpha-tau 0", "alpha is 0, outside (0, 1]"),
        ("run --alpha-tau nan", "alpha is nan"),
        ("run --bonus-scale -1", "bonus_scale is -1"),
        ("run --bonus-scale nan", "bonus_scale is nan"),
        ("run --algorithm UOpt-RPGDP", "did you mean 'UOpt-RPGPD'"),
        ("run --algorithm OptPrimalDual-CMDP --alpha-eta 0.6", "has no alpha_eta"),
        ("run publishd", "did you mean 'published'"),
        ("run --precision float32", "only the engine gpu has float32"),
        ("run --precision float32 --engine host", "only the engine gpu has float32"),
        ("compare --precision float32", "only the engine gpu has float32"),
        ("run --engine tpu", "tpu"),
        ("solve missing.npz", "missing.npz does not exist"),
        ("solve random-printed --instance-seed -2", "instance seed is -2"),
        ("reproduce --seeds 0", "seeds is 0"),
        ("reproduce --episodes 0", "episodes is 0"),
        ("reproduce --preset neither", "neither"),
        ("reproduce --out /proc/nowhere", "cannot write"),
        ("run --out /proc/nowhere", "cannot write"),
        ("run --episodes 0 --out here", "episodes is 0"),
        ("list birds", "birds"),
        ("fly", "fly"),
        ("solve", "Missing argument"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(call, command, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*command.split())
    assert code == 2
    assert sentence in err
    assert err.count("\n") == 1
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_names_with_brackets_are_only_names(call, tmp_path):
    problem = random_problem(3, 2, 2, 1)
    named = CMDP(problem.transition, problem.reward, problem.threshold, name="[/oops] [bold]x")
    named.save(tmp_path / "p.npz")
    for command in ("solve", "describe"):
        code, out, _ = call(command, tmp_path / "p.npz")
        assert code == 0
        assert "[/oops] [bold]x" in out
    assert call("run", tmp_path / "p.npz", "--episodes", "20")[0] == 0


@pytest.mark.slow
def test_ctrl_c_ends_soon_and_keeps_what_was_done(tmp_path, call):
    out = tmp_path / "figure"
    command = [sys.executable, "-m", "cmdplab", "reproduce", "--episodes", "100000000"]
    process = subprocess.Popen(
        [*command, "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        # A shell that runs the tests in the background has SIGINT ignored; children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    faults.wait_until_under_way(out)
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"go on with: cmdplab resume {out}" in err.replace("\n", "")
    assert "Traceback" not in err
    found = json.loads(call("status", out, "--json")[1])["runs"]
    assert {each["status"] for each in found} == {"interrupted", "missing"}
    assert any(each["episodes"] for each in found)
    assert not (out / "figure1.png").exists()


def test_exponents_outside_the_theorem_are_a_warning(call):
    code, _, err = call("run", "--alpha-eta", "0.4", "--episodes", "50", "--json")
    assert code == 0
    assert "outside the region of the theorem" in err


def test_a_foreign_file_is_refused(call, tmp_path):
    np.savez(tmp_path / "f.npz", a=np.ones(2))
    code, _, err = call("solve", tmp_path / "f.npz")
    assert code == 2
    assert "is not a cmdplab problem" in err


def test_every_option_has_a_sentence_and_every_sentence_an_option():
    group: Any = typer.main.get_command(cli.app)
    commands = group.commands
    assert all(each.help for command in commands.values() for each in command.params)
    names = {name: {each.name for each in command.params} for name, command in commands.items()}
    for section, said in sentences().items():
        has = names.get(section, set.union(*names.values()))
        assert {name for name in said if name != "arguments"} <= has
        assert {*said.get("arguments", {})} <= has
        assert set(said) & set(said.get("arguments", {})) == set()
