"""`reproduce` and `compare` as experiments: they survive, and keep to their folders."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import faults
import pytest
from conftest import random_problem
from rich.console import Console

from cmdplab import sweep
from cmdplab.errors import InputError
from cmdplab.experiments import manifest
from cmdplab.experiments.experiment import parse_experiment
from cmdplab.experiments.folder import works_of
from cmdplab.experiments.progress import sweep_shown
from cmdplab.experiments.records.labels import Kind, kind_of, labels
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.experiments.work import Event, Work
from cmdplab.studies.predefined import Comparison, Reproduction, carry_out, prepared

pytestmark = pytest.mark.usefixtures("one_process")

TWO = ("UOpt-RPGPD", "No-regularization")
SHOWN = ("curves.parquet", "mistakes.parquet", "figure1.png", "figure1.pdf")


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def small(out: Path, **given) -> Reproduction:
    return replace(Reproduction(episodes=20_000, seeds=2, algorithms=TWO, out=out), **given)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    study = small(tmp_path_factory.mktemp("study") / "figure1")
    return study, *carry_out(study)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep in which one setting is swept."""
    folder = tmp_path_factory.mktemp("swept")
    values = {
        "name": "scales",
        "episodes": 50,
        "seeds": 2,
        "problems": [{"environment": "three-state"}],
        "algorithms": [{"name": "UOpt-RPGPD", "bonus_scale": [1e-3, 1e-5]}],
    }
    lines = ['name = "scales"', "episodes = 50", "seeds = 2"]
    lines += ["[[problems]]", 'environment = "three-state"']
    lines += ["[[algorithms]]", 'name = "UOpt-RPGPD"', "bonus_scale = [1e-3, 1e-5]"]
    (folder / "scales.toml").write_text("\n".join(lines) + "\n")
    sweep(parse_experiment(values, "here"), folder / "out", workers=2)
    return folder / "scales.toml", folder / "out"


def command(out: Path) -> list[str]:
    given = ["--episodes", "20000", "--seeds", "2", "--out", str(out)]
    return ["reproduce", *given, *(each for name in TWO for each in ("--algorithm", name))]


class LeftHalfWayError(Exception):
    """What a study is broken off with here."""


def test_left_half_way_a_reproduction_ends_with_the_bytes_of_one_that_never_stopped(
    call, reproduced, tmp_path
):
    out = tmp_path / "figure1"

    def leave(event):
        if event.ended:
            raise LeftHalfWayError

    with pytest.raises(LeftHalfWayError):
        carry_out(small(out), on_event=leave)
    assert len([each for each in out.glob("runs/*") if (each / "curves.parquet").exists()]) == 1
    goes_on_to_the_same_end(call, reproduced, out, "the same command")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["the same command", "resume"])
def test_killed_half_way_a_reproduction_ends_with_the_bytes_of_one_that_never_stopped(
    call, reproduced, tmp_path, how
):
    out = tmp_path / "figure1"
    process = subprocess.Popen(
        [sys.executable, "-m", "cmdplab", *command(out), "--workers", "1"],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 100
    while time.monotonic() < end and not list(out.glob("runs/*/curves.parquet")):
        time.sleep(0.02)
    faults.kill(process, signal.SIGKILL)
    finished = [each for each in out.glob("runs/*") if (each / "curves.parquet").exists()]
    assert 1 <= len(finished) < 4
    goes_on_to_the_same_end(call, reproduced, out, how)


def goes_on_to_the_same_end(call, reproduced, out, how):
    assert not (out / "summary.json").exists()
    code, printed, _ = call(*(command(out) if how == "the same command" else ["resume", out]))
    assert code == 0
    assert "UOpt-RPGPD" in printed
    study, _, summary = reproduced
    for name in SHOWN:
        assert (out / name).read_bytes() == (study.out / name).read_bytes(), name
    assert faults.results(out) == faults.results(study.out)
    assert timeless(json.loads((out / "summary.json").read_text())) == timeless(summary)


def timeless(summary: dict) -> dict:
    """A summary without what depends on the clock, and without a digest of that."""
    numbers = {
        name: {k: v for k, v in each.items() if k != "us_per_episode"}
        for name, each in summary["algorithms"].items()
    }
    rest = {key: value for key, value in summary.items() if key != "digest"}
    return rest | {"algorithms": numbers}


def test_given_again_nothing_is_played(call, reproduced):
    study, _, _ = reproduced
    before = content(study.out)
    assert call(*command(study.out), "--json")[0] == 0
    after = content(study.out)
    same = {name for name in before if before[name] == after[name]}
    assert set(before) == set(after)
    assert set(before) - same <= {"report.html", "summary.csv", "summary.tex", "summary.json"}


@pytest.mark.slow
def test_more_seeds_are_an_extension(reproduced, tmp_path):
    carry_out(small(tmp_path / "few", episodes=60, seeds=1))
    carry_out(small(tmp_path / "few", episodes=60, seeds=3))
    carry_out(small(tmp_path / "many", episodes=60, seeds=3))
    for name in SHOWN:
        few, many = tmp_path / "few" / name, tmp_path / "many" / name
        assert few.read_bytes() == many.read_bytes()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"episodes": 30_000}, "with episodes 20000"),
        ({"bonus_scale": 1e-5}, "with bonus_scale 0.001"),
        ({"preset": "printed"}, "with preset released"),
        ({"problem": "random-released"}, "with problem published"),
        ({"seeds": 1}, "with more seeds"),
        ({"algorithms": ("UOpt-RPGPD",)}, "with algorithm No-regularization"),
    ],
)
def test_a_reproduction_with_other_settings_is_refused_and_nothing_changes(
    reproduced, change, sentence
):
    study, _, _ = reproduced
    before = content(study.out)
    with pytest.raises(InputError, match=f"the reproduction 'figure1' {sentence}") as caught:
        carry_out(replace(study, **change))
    assert "figure1-2" in str(caught.value)
    assert content(study.out) == before


@pytest.mark.parametrize(
    "turn", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 5))]
)
@pytest.mark.usefixtures("undrawn")
def test_a_folder_of_something_else_is_refused_before_anything_is_played(
    call, swept, reproduced, tmp_path, turn
):
    """Byte for byte: each of the commands leaves what is there as it is, and names it."""
    file, folder = swept
    few = ("--episodes", "20", "--seeds", "1")
    compared = ("compare", "--problem", "three-state", "--algorithms", "UOpt-RPGPD", *few)
    assert call(*compared, "--out", tmp_path / "compared")[0] == 0
    assert call("run", "three-state", "--episodes", "20", "--out", tmp_path / "alone")[0] == 0
    letter = tmp_path / "letter"
    letter.mkdir()
    (letter / "letter.txt").write_text("hello")
    held = {
        folder: "the experiment 'scales'",
        tmp_path / "compared": "the comparison 'compare-three-state'",
        tmp_path / "alone": "a single run",
        reproduced[0].out: "the reproduction 'figure1'",
        letter: "other files (letter.txt)",
    }
    commands = {
        compared: tmp_path / "compared",
        ("compare", "--problem", "media-streaming", *few): None,
        ("reproduce", *few): None,
        ("sweep", file): folder,
        ("run", "published", "--episodes", "20"): None,
    }
    for n, (arguments, own) in enumerate(commands.items(), start=turn):
        where, what = list(held.items())[n % len(held)]
        if where == own:
            continue
        before = content(where)
        code, out, err = call(*arguments, "--out", where)
        assert (code, out) == (2, ""), arguments
        assert content(where) == before
        assert err.count("\n") == 1
        single = arguments[0] == "run" and where.name == "alone"
        assert (what in err) != single
        assert f"--out {where}-2" in err


def test_two_comparisons_go_to_two_folders(tmp_path):
    problem = tmp_path / "my own, problem.npz"
    random_problem(3, 2, 2, 1).save(problem)
    folders = [
        Comparison().folder,
        Comparison(problem="three-state").folder,
        Comparison(problem="random-tight", instance_seed=3).folder,
        Comparison(problem=str(problem)).folder,
    ]
    names = ["media-streaming", "three-state", "random-tight-3", "my-own-problem"]
    assert [folder.name for folder in folders] == [f"compare-{name}" for name in names]


@pytest.mark.slow
def test_a_file_of_the_same_name_is_another_problem(tmp_path):
    for n in range(2):
        (tmp_path / str(n)).mkdir()
        random_problem(3, 2, 2, 1, n).save(tmp_path / str(n) / "p.npz")
    given = {"episodes": 20, "seeds": 1, "algorithms": TWO, "out": tmp_path / "out"}
    carry_out(Comparison(problem=str(tmp_path / "0" / "p.npz"), **given))
    with pytest.raises(InputError, match="with fingerprint"):
        prepared(Comparison(problem=str(tmp_path / "1" / "p.npz"), **given))


@pytest.mark.slow
def test_a_lost_list_does_not_open_the_folder_to_others(tmp_path):
    study = small(tmp_path / "out", episodes=20, seeds=1)
    carry_out(study)
    (tmp_path / "out" / "experiment.json").write_text("{")
    before = content(tmp_path / "out")
    with pytest.raises(InputError, match="with episodes 20"):
        carry_out(replace(study, episodes=30))
    assert content(tmp_path / "out") == before
    carry_out(study)
    assert (tmp_path / "out" / "experiment.json.damaged").exists()


def test_a_folder_without_a_name_is_refused_with_a_name(call, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("diary.txt").write_text("dear diary")
    for command in ("reproduce", "compare", "run"):
        code, _, err = call(command, "--episodes", "5", "--out", ".")
        assert (code, f"--out {tmp_path / 'here-2'}" in err) == (2, True)


def test_run_with_out_starts_no_process_and_solves_once(call, tmp_path, monkeypatch):
    import multiprocessing.process

    from cmdplab.experiments import play

    solved, solve = [], play.solve_feasible

    def once(problem):
        solved.append(problem.name)
        return solve(problem)

    def never(self):
        raise AssertionError("a process was started")

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", never)
    monkeypatch.setattr(play, "solve_feasible", once)
    code, printed, _ = call("run", "three-state", "--episodes", "50", "--out", tmp_path, "--json")
    assert (code, json.loads(printed)["status"]) == (0, "done")
    assert solved == ["three-state"]  # by the command, whose solution was then used
    monkeypatch.undo()
    assert manifest.read(tmp_path).episodes == 50


def test_an_audit_refuses_its_file_before_it_runs(call, swept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("mine")
    for out in (tmp_path / "taken", tmp_path / "taken" / "there"):
        code, _, err = call("audit", swept[0], "--out", out)
        assert (code, "taken is a file" in err) == (2, True)
    code, _, err = call("audit", swept[0], "--out", swept[1])
    assert (code, "holds records of runs" in err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_labels_name_what_differs_and_no_more():
    def run(**given) -> Kind:
        head = {"problem": "p", "fingerprint": "0" * 32, "algorithm": "UOpt-RPGPD", "seed": 0}
        return kind_of(RunSettings(**head | {"preset": "released", "episodes": 9} | given))

    one, fine, long = run(), run(bonus_scale=1e-5), run(episodes=1000)
    assert labels([one, run(seed=7), run(problem="q")]) == {one: "UOpt-RPGPD"}
    names = labels([one, fine])
    assert list(names.values()) == [
        "UOpt-RPGPD (bonus_scale none)",
        "UOpt-RPGPD (bonus_scale 1e-05)",
    ]
    assert labels([one, long])[long] == "UOpt-RPGPD (1,000 episodes)"
    printed, other = run(preset="printed", delta=0.3), run(algorithm="DOPE", delta=0.7)
    assert list(labels([one, printed, other]).values()) == [
        "UOpt-RPGPD:released",
        "UOpt-RPGPD:printed",
        "DOPE",
    ]
    close = [run(bonus_scale=0.1234567), run(bonus_scale=0.1234568)]
    assert len(set(labels(close).values())) == 2
    assert labels([one, run(rewards="bernoulli")])[one] == "UOpt-RPGPD (rewards known)"


def test_every_table_shows_what_is_swept(call, swept, tmp_path):
    file, folder = swept
    scales = ("bonus_scale 0.001", "bonus_scale 1e-05")
    for arguments in (("sweep", file, "--dry-run"), ("status", folder), ("resume", folder)):
        code, out, _ = call(*arguments)
        assert code == 0
        flat = " ".join(out.split())
        assert "three-state" in flat
        assert all(scale in flat for scale in scales), arguments
        rows = json.loads(call(*arguments, "--json")[1])["runs"]
        assert {(row["label"], row["seed"]) for row in rows} == {
            (f"UOpt-RPGPD ({scale})", seed) for scale in scales for seed in range(2)
        }
        assert {row["problem"] for row in rows} == {"three-state"}
    assert f"cmdplab report {folder}" in " ".join(call("resume", folder)[1].split())


def test_progress_names_the_run(monkeypatch):
    monkeypatch.setattr("cmdplab.experiments.progress.LINE_EVERY", 0.0)
    head = {"fingerprint": "0" * 32, "algorithm": "DOPE", "preset": "printed", "episodes": 100}
    runs = [RunSettings(problem="lake", seed=seed, **head) for seed in range(2)]
    works = [Work(Path(run.folder), run, Path("p.npz"), "DOPE (delta 0.5)") for run in runs]
    for terminal in (False, True):
        console = Console(width=200, record=True, force_terminal=terminal, quiet=not terminal)
        console.quiet = False
        with sweep_shown(works, console) as tell:
            tell(Event(works[0].folder.name, "running", "", 40, 20.0, 0.25))
            tell(Event(works[1].folder.name, "failed", "Traceback\nValueError: no"))
            tell(Event(works[0].folder.name, "done"))
        text = console.export_text()
        assert f"DOPE (delta 0.5) on lake, seed 1 ({works[1].folder.name}) failed: Val" in text
        if not terminal:
            line = "0 of 2 runs, 40 of 200 episodes, 20/s, 8 s left; "
            assert f"{line}DOPE (delta 0.5) on lake, seed 0: gap +0.250" in text
            assert "2 of 2 runs, 100 of 200 episodes" in text


def test_the_runs_of_a_study_are_those_of_an_experiment(reproduced, call):
    study, runs, _ = reproduced
    works = works_of(study.out)
    assert [(work.label, work.settings.seed) for work in works] == [
        (run.algorithm.name, run.seed) for run in runs
    ]
    assert call("audit", study.out, "--json")[0] == 0
    code, out, _ = call("status", study.out, "--json")
    assert (code, {each["status"] for each in json.loads(out)["runs"]}) == (0, {"done"})
