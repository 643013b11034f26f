"""Runs and sweeps on the GPU engine, in Numba's simulator: test_gpu.py runs this on its own."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
import simulated_gpu  # noqa: F401  (completes the simulator)
from conftest import ROOT

from cmdplab import CMDP
from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.cmdp.transitions import Sparse
from cmdplab.engines import choose
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.errors import InputError
from cmdplab.experiments import checkpoint, manifest, run_on_gpu
from cmdplab.experiments.durable import CURVES, Recorded, held, run_in_folder
from cmdplab.experiments.executors import gpu
from cmdplab.experiments.executors.worker import Interrupt
from cmdplab.experiments.experiment import parse_experiment
from cmdplab.experiments.folder import works_of
from cmdplab.experiments.play import Job
from cmdplab.experiments.records.tables import read_curves
from cmdplab.experiments.run import jobs, run, run_many
from cmdplab.experiments.run_on_gpu import PlayingOnGpu
from cmdplab.experiments.status import status_of
from cmdplab.experiments.sweep import sweep
from cmdplab.solvers import solve_feasible

RELEASED = algorithm("UOpt-RPGPD", "released")
FEW = [RELEASED, algorithm("UOpt-RPGPD", "printed")]
ROUNDING = 1e-13
EPISODES = 6


def equal(mine, theirs):
    """The same run, up to rounding."""
    assert (mine.algorithm, mine.seed) == (theirs.algorithm, theirs.seed)
    assert mine.summary == pytest.approx(theirs.summary, abs=ROUNDING)
    for name, column in theirs.curves.items():
        np.testing.assert_allclose(mine.curves[name], column, rtol=0, atol=ROUNDING)
    assert mine.mistakes.keys() == theirs.mistakes.keys()
    np.testing.assert_array_equal(mine.state.counts, theirs.state.counts)


@pytest.mark.slow
def test_many_runs_are_those_of_the_cpu_and_all_are_reported():
    problem, told = random_problem(3, 2, 2, 1), []
    work = jobs(FEW, 1)
    ours = run_many(problem, work, 5, engine="gpu", on_progress=told.append)
    for mine, theirs in zip(ours, run_many(problem, work, 5), strict=True):
        equal(mine, theirs)
    assert [each.summary for each in told[-2:]] == [each.summary for each in ours]


def test_one_run_is_that_of_the_cpu():
    problem = random_problem(3, 2, 2, 0)
    equal(run(problem, FEW[1], 4, 3, engine="gpu"), run(problem, FEW[1], 4, 3))


def test_a_stop_ends_a_batch_before_it_begins():
    stop = threading.Event()
    stop.set()
    with pytest.raises(InterruptedError):
        run_many(random_problem(3, 2, 2, 1), jobs(FEW, 1), 5, engine="gpu", stop=stop)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the simulator's NumPy
def test_a_setting_that_is_too_large_is_named():
    wild = FEW[1].with_settings(bonus_scale=1e308)
    with pytest.raises(InputError, match=r"UOpt-RPGPD \(seed 0\) are not finite"):
        run_many(random_problem(3, 2, 2, 1), [Job(wild, 0)], 5, engine="gpu")


@pytest.mark.slow
def test_auto_takes_what_is_worth_it_and_leaves_the_rest_to_the_cpu(monkeypatch):
    problem, said = random_problem(3, 2, 2, 1), []
    work = jobs([RELEASED, algorithm("OptCMDP")], 2)
    given = {"engine": "auto", "workers": 1, "on_message": said.append}
    small = run_many(problem, work, EPISODES, **given)
    monkeypatch.setattr(choose, "RUNS_A_CORE", 1)
    monkeypatch.setattr(choose, "WORTH_SECONDS", 0.0)
    split = run_many(problem, work, EPISODES, **given)
    assert said[0].startswith("engine cpu: for the GPU this is too little work")
    assert said[1] == "engine gpu: 2 runs; engine cpu: 2 (OptCMDP)"
    for mine, theirs in zip(split, small, strict=True):
        assert (mine.algorithm.name, mine.seed) == (theirs.algorithm.name, theirs.seed)
        assert mine.summary == pytest.approx(theirs.summary, abs=ROUNDING)


def test_runs_need_neither_tables_nor_a_terminal():
    heavy = {"pydantic", "pyarrow", "matplotlib", "typer", "pandas"}
    code = "import simulated_gpu, sys; from cmdplab import algorithm, make, run_many, Job;"
    code += "from cmdplab.testing.contract import random_problem;"
    code += (
        "run_many(random_problem(3, 2, 2, 1), [Job(algorithm('UOpt-RPGPD'), 0)], 1, engine='gpu');"
    )
    code += f"assert not {heavy!r} & {{name.split('.')[0] for name in sys.modules}}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT / "tests")


def experiment_of(tmp_path, **changes):
    random_problem(3, 2, 2, 1).save(tmp_path / "problem.npz")
    values = {
        "name": "small",
        "episodes": EPISODES,
        "seeds": 2,
        "problems": [{"file": "problem.npz"}],
        "algorithms": [{"name": "UOpt-RPGPD", "preset": "released"}, {"name": "OptCMDP"}],
    }
    return parse_experiment(values | changes, "test")


def records(folder):
    """Curves and counts of every run of a folder, by the run's name."""
    found = {}
    for work in works_of(folder):
        ((_, (columns,)),) = read_curves(work.folder / CURVES).items()
        found[work.folder.name] = columns, checkpoint.find(work.folder).snapshot
    return found


def test_a_sweep_on_the_gpu_leaves_what_one_on_the_cpu_leaves(tmp_path, monkeypatch):
    monkeypatch.setattr(choose, "RUNS_A_CORE", 1)
    monkeypatch.setattr(choose, "WORTH_SECONDS", 0.0)
    experiment, told, said = experiment_of(tmp_path), [], []
    given = {"base": tmp_path, "workers": 1}
    cpu = sweep(experiment, tmp_path / "cpu", **given)
    gpu = sweep(
        experiment,
        tmp_path / "gpu",
        **given,
        engine="auto",
        on_event=told.append,
        on_message=said.append,
    )
    assert said == ["engine gpu: 2 runs; engine cpu: 2 (OptCMDP)"]
    assert {each.status for each in (*cpu, *gpu)} == {"done"}
    assert sum(each.ended for each in told) == 4
    theirs = records(tmp_path / "cpu")
    for name, (columns, snapshot) in records(tmp_path / "gpu").items():
        other, other_snapshot = theirs[name]
        for column, values in columns.items():
            np.testing.assert_allclose(values, other[column], rtol=0, atol=ROUNDING)
        assert snapshot.keys() == other_snapshot.keys()
    on_card = [manifest.read(work.folder).machine for work in works_of(tmp_path / "gpu")]
    assert [each["processor"] for each in on_card].count("CUDA simulator") == 2


def only_begun(tmp_path):
    """The folder of a sweep of two runs of which none was played, and the experiment."""
    only = {"algorithms": [{"name": "UOpt-RPGPD", "preset": "released"}]}
    experiment, folder = experiment_of(tmp_path, **only), tmp_path / "begun"
    sweep(experiment, folder, base=tmp_path, executor=lambda works, tell, asked, every: None)
    return experiment, folder


def play_two(works, monkeypatch):
    """Two episodes of these runs on the GPU, then an interrupt."""
    interrupt = Interrupt()

    class Interrupted(PlayingOnGpu):
        """Somebody presses Ctrl-C during the first launch."""

        def advance(self, episodes):
            super().advance(2)
            interrupt()

    with monkeypatch.context() as patched:
        patched.setattr(run_on_gpu, "PlayingOnGpu", Interrupted)
        gpu.gpu_executor("gpu", 1, print)(works, print, interrupt, 30.0)


@pytest.mark.slow
def test_a_sweep_goes_on_with_another_engine_from_its_checkpoints(tmp_path, monkeypatch):
    experiment, folder = only_begun(tmp_path)
    whole = sweep(experiment, tmp_path / "whole", base=tmp_path, workers=1)
    works = works_of(folder)
    play_two(works, monkeypatch)
    half = [manifest.read(work.folder) for work in works]
    assert [(each.status, each.episodes) for each in half] == [("interrupted", 2)] * 2
    run_in_folder(works[0])  # on the CPU; the other one goes on on the GPU
    ended = sweep(experiment, folder, base=tmp_path, engine="gpu")
    assert {each.status for each in ended} == {"done"}
    for mine, theirs in zip(ended, whole, strict=True):
        assert mine.gap == pytest.approx(theirs.gap, abs=ROUNDING)
    notes = manifest.read(works[0].folder).notes
    assert any("after CUDA simulator: equal to about 1e-9" in note for note in notes)
    theirs = records(tmp_path / "whole")
    for name, (columns, _) in records(folder).items():
        for column, values in columns.items():
            np.testing.assert_allclose(values, theirs[name][0][column], rtol=0, atol=ROUNDING)


@pytest.mark.slow
def test_runs_that_are_not_equally_far_are_one_sweep(tmp_path, monkeypatch):
    experiment, folder = only_begun(tmp_path)
    whole = sweep(experiment, tmp_path / "whole", base=tmp_path, workers=1)
    play_two(works_of(folder)[:1], monkeypatch)
    assert [each.episodes for each in map(status_of, works_of(folder))] == [2, 0]
    ended = sweep(experiment, folder, base=tmp_path, engine="gpu")
    assert {each.status for each in ended} == {"done"}
    assert [each.gap for each in ended] == pytest.approx([w.gap for w in whole], abs=ROUNDING)


def test_float32_is_a_run_of_its_own_and_only_the_gpus(tmp_path):
    only = {"algorithms": [{"name": "UOpt-RPGPD", "preset": "released"}], "precision": "float32"}
    experiment = experiment_of(tmp_path, **only)
    with pytest.raises(InputError, match="only the engine gpu has float32"):
        sweep(experiment, tmp_path / "out", base=tmp_path)
    assert not (tmp_path / "out").exists()
    found = sweep(experiment, tmp_path / "out", base=tmp_path, engine="gpu")
    assert {each.status for each in found} == {"done"}
    double = sweep(
        experiment_of(tmp_path, **only | {"precision": "float64"}),
        tmp_path / "out",
        base=tmp_path,
        engine="gpu",
    )
    assert not {each.folder for each in found} & {each.folder for each in double}
    assert found[0].gap == pytest.approx(double[0].gap, abs=1e-4)
    assert found[0].gap != double[0].gap


def test_what_the_gpu_has_not_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="the engine gpu has no OptCMDP"):
        sweep(experiment_of(tmp_path), tmp_path / "out", base=tmp_path, engine="gpu")
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the simulator's NumPy
def test_a_run_that_is_not_finite_fails_alone(tmp_path):
    wild = {"name": "UOpt-RPGPD", "preset": "printed", "bonus_scale": [1e-3, 1e308]}
    experiment = experiment_of(tmp_path, algorithms=[wild], seeds=1)
    told = []
    found = sweep(experiment, tmp_path / "out", base=tmp_path, engine="gpu", on_event=told.append)
    assert sorted(each.status for each in found) == ["done", "failed"]
    assert "not finite" in next(each.error for each in found if each.status == "failed")
    assert not any(not each.ended and each.runs != 2 for each in told)


def always_worth(monkeypatch):
    monkeypatch.setattr(choose, "RUNS_A_CORE", 0)
    monkeypatch.setattr(choose, "WORTH_SECONDS", 0.0)


@pytest.mark.slow
def test_lists_of_successors_and_what_no_block_holds_are_left_to_the_cpu(tmp_path, monkeypatch):
    always_worth(monkeypatch)
    table = random_problem(3, 2, 2, 1)
    successor = np.broadcast_to(np.arange(3), (3, 2, 3))
    lists = CMDP(Sparse(successor, table.transition), table.reward, table.threshold)
    large = random_problem(900, 2, 1, 1)
    only = {"algorithms": [{"name": "UOpt-RPGPD"}]}
    for problem, why in ((lists, "no lists of successors"), (large, "900 states")):
        said = []
        (run,) = run_many(problem, [Job(RELEASED, 0)], 3, engine="auto", on_message=said.append)
        assert said == ["engine cpu: for the GPU this is too little work, or none that it has"]
        assert run.summary.episodes == 3
        experiment = experiment_of(tmp_path, **only)
        problem.save(tmp_path / "problem.npz")
        with pytest.raises(InputError, match=why):
            sweep(experiment, tmp_path / "out", base=tmp_path, engine="gpu")
        assert not (tmp_path / "out").exists()


def test_more_episodes_than_are_counted_are_refused_at_once():
    with pytest.raises(InputError, match="counts to 2,147,483,647 episodes"):
        run(random_problem(3, 2, 2, 1), RELEASED, 3_000_000_000, engine="gpu")


def test_a_stop_keeps_what_the_gpu_has_done(monkeypatch):
    always_worth(monkeypatch)
    stop = threading.Event()

    class Stopped(PlayingOnGpu):
        def advance(self, episodes):
            super().advance(2)
            stop.set()

    monkeypatch.setattr(run_on_gpu, "PlayingOnGpu", Stopped)
    work = jobs([RELEASED, algorithm("OptCMDP")], 1)
    runs = run_many(random_problem(3, 2, 2, 1), work, 5, engine="auto", stop=stop)
    assert [(each.algorithm.name, each.summary.episodes) for each in runs] == [("UOpt-RPGPD", 2)]


def test_one_that_cannot_be_written_fails_alone(tmp_path, monkeypatch):
    experiment, folder = only_begun(tmp_path)
    first = works_of(folder)[0].folder

    close = Recorded.close

    def close_others(store, reached, seconds):
        if store.folder == first:
            raise MemoryError("no room")
        close(store, reached, seconds)

    monkeypatch.setattr(Recorded, "close", close_others)
    found = sweep(experiment, folder, base=tmp_path, engine="gpu")
    assert [each.status for each in found] == ["failed", "done"]
    assert "no room" in found[0].error


def test_an_interrupt_before_the_first_launch_leaves_runs_to_be_gone_on_with(tmp_path):
    experiment, folder = only_begun(tmp_path)
    told, interrupt, works = [], Interrupt(), works_of(folder)

    def ask(event):
        interrupt()
        told.append(event)

    works[0].folder.mkdir()
    with held(works[0].folder):  # the first is busy, which is told before the other is taken
        gpu.gpu_executor("gpu", 1, print)(works, ask, interrupt, 30.0)
    assert [each.status for each in told] == ["busy"]
    assert {each.status for each in map(status_of, works)} == {"missing"}
    ended = sweep(experiment, folder, base=tmp_path, engine="gpu")
    assert {each.status for each in ended} == {"done"}


def test_auto_decides_for_every_run_by_itself(monkeypatch):
    always_worth(monkeypatch)
    problem = random_problem(3, 2, 2, 1)
    solution = solve_feasible(problem)
    wanted = [
        choose.Wanted(problem, row, task_for(row, problem, solution), 5, precision)
        for row, precision in ((RELEASED, "float32"), (algorithm("OptCMDP"), "float64"))
    ]
    assert choose.choose("auto", wanted, 1).on_gpu == [True, False]


def test_a_damaged_table_of_a_finished_run_is_written_again(tmp_path):
    experiment, folder = only_begun(tmp_path)
    sweep(experiment, folder, base=tmp_path, engine="gpu")
    table = works_of(folder)[0].folder / CURVES
    whole = table.read_bytes()
    table.write_bytes(whole[:-9])
    ended = sweep(experiment, folder, base=tmp_path, engine="gpu")
    assert {each.status for each in ended} == {"done"}
    assert table.read_bytes() == whole
