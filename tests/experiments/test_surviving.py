"""Runs survive: real processes are killed, stopped, starved and lied to; the results are equal."""

from __future__ import annotations

import json
import os
import signal
import time

import faults
import numpy as np
import pytest
from conftest import random_problem

from cmdplab import load_runs
from cmdplab.algorithms import ALGORITHMS
from cmdplab.errors import InputError
from cmdplab.experiments import checkpoint, manifest
from cmdplab.experiments.durable import FILES, held, is_held, run_in_folder
from cmdplab.experiments.executors.local import MOST_CRASHES, MOST_KILLS
from cmdplab.experiments.experiment import parse_experiment, read_experiment
from cmdplab.experiments.folder import works_of
from cmdplab.experiments.run import run
from cmdplab.experiments.status import status_of
from cmdplab.experiments.work import Work
from cmdplab.files.locks import BusyError


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """An experiment of every algorithm, and its results when nothing happens to it."""
    folder = tmp_path_factory.mktemp("torture")
    experiment = faults.write_experiment(folder, episodes=60_000, seeds=1)
    faults.finish(experiment, folder / "undisturbed")
    expected = faults.results(folder / "undisturbed")
    assert len(expected) == len(ALGORITHMS)
    return experiment, expected


def kept(before: faults.Result, now: faults.Result) -> bool:
    """No finished run is ever lost or changed."""
    return all(now.get(name) == result for name, result in before.items())


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_at_random_instants_nothing_is_lost_and_nothing_changes(undisturbed, tmp_path, how):
    experiment, expected = undisturbed
    rng = np.random.default_rng(int(how))
    done: faults.Result = {}
    for _ in range(4):
        process = faults.start(experiment, tmp_path / "out", workers=int(rng.integers(1, 4)))
        time.sleep(rng.uniform(0.5, 2.5))
        faults.kill(process, how)
        if (tmp_path / "out" / "experiment.json").exists():
            now = faults.results(tmp_path / "out")
            assert kept(done, now)
            done = now
    faults.finish(experiment, tmp_path / "out")
    assert faults.results(tmp_path / "out") == expected


@pytest.mark.slow
def test_a_killed_worker_costs_nothing(undisturbed, tmp_path):
    experiment, expected = undisturbed
    process = faults.start(experiment, tmp_path / "out")
    killed: set[int] = set()
    while len(killed) < 2 and (found := faults.await_workers(process, killed)):
        time.sleep(0.7)
        found[0].kill()
        killed.add(found[0].pid)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, printed
    assert faults.results(tmp_path / "out") == expected


@pytest.fixture
def endless(tmp_path):
    """A sweep of one run that takes far longer than a test, and the folder it goes to."""
    experiment = faults.write_experiment(tmp_path, episodes=10**9, seeds=1, rows=1)
    started = []

    def start(workers: int = 1):
        started.append(faults.start(experiment, tmp_path / "out", workers=workers))
        return started[-1], tmp_path / "out"

    yield start
    for process in started:
        faults.kill(process)


def only(out) -> manifest.Manifest:
    """What the manifest of the only run says."""
    (work,) = works_of(out)
    record = manifest.read(work.folder)
    assert record is not None
    return record


def is_under_way(out) -> bool:
    return bool(list(out.glob("runs/*/checkpoint.npz")))


@pytest.mark.slow
def test_a_group_that_is_terminated_while_its_workers_start_has_not_failed(endless):
    process, out = endless(workers=2)
    assert faults.await_workers(process, set())  # they have no handlers yet
    faults.kill(process, signal.SIGTERM)
    assert process.returncode == 130
    (work,) = works_of(out)
    status = status_of(work)
    assert (status.status, status.error) in {("interrupted", ""), ("missing", "")}


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_group_that_is_terminated_checkpoints_and_says_that_it_was_interrupted(endless, how):
    process, out = endless()
    assert faults.wait_until(lambda: is_under_way(out))
    before = only(out).episodes
    faults.kill(process, how)
    record = only(out)
    assert (record.status, record.error) == ("interrupted", "")
    assert record.episodes >= before
    snapshot = checkpoint.find(works_of(out)[0].folder).snapshot
    assert record.episodes == int(snapshot["state_episode"])


def test_a_run_whose_workers_are_killed_from_outside_is_interrupted_not_failed(endless):
    process, out = endless()
    killed: set[int] = set()
    while found := faults.await_workers(process, killed):
        found[0].kill()
        killed.add(found[0].pid)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 1, printed  # nobody interrupted the sweep
    assert len(killed) == MOST_KILLS
    record = only(out)
    assert record.status == "interrupted"
    assert f"was killed {MOST_KILLS} times by SIGKILL (out of memory?)" in record.error


def test_a_run_that_crashes_two_workers_has_failed(endless):
    process, out = endless()
    killed: set[int] = set()
    for _ in range(MOST_CRASHES):
        (worker,) = faults.await_workers(process, killed)
        assert faults.wait_until(lambda: any(map(is_held, out.glob("runs/*"))))  # it has begun
        worker.send_signal(signal.SIGSEGV)
        killed.add(worker.pid)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 1, printed
    record = only(out)
    assert record.status == "failed"
    assert record.error == f"its worker died {MOST_CRASHES} times by SIGSEGV"


@pytest.mark.slow
def test_a_run_whose_parent_is_killed_checkpoints_and_was_interrupted(endless):
    process, out = endless()
    assert faults.wait_until(lambda: is_under_way(out))
    (orphan,) = faults.workers(process)
    orphan.suspend()  # in the middle of a chunk, at whose end it will want to report
    process.kill()  # the parent alone
    process.wait(timeout=120)
    time.sleep(0.7)  # reports are half a second apart
    orphan.resume()
    assert faults.wait_until(lambda: not orphan.is_running())
    process.communicate(timeout=120)
    record = only(out)
    assert (record.status, record.error) == ("interrupted", "")


SLEEPS = """
import time
def sleeper(task):
    time.sleep(3600)
"""


@pytest.mark.slow
def test_a_worker_that_hears_nothing_holds_no_sweep_up(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    (tmp_path / "sleeping.py").write_text(SLEEPS)
    experiment = faults.write_experiment(tmp_path, episodes=10, seeds=1, rows=0)
    with experiment.open("a") as stream:
        stream.write('[[algorithms]]\nname = "sleeping:sleeper"\n')
    process = faults.start(experiment, tmp_path / "out", workers=1)
    assert faults.wait_until(lambda: any(map(is_held, (tmp_path / "out").glob("runs/*"))))
    process.send_signal(signal.SIGINT)  # the parent alone
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 130, printed
    (work,) = works_of(tmp_path / "out")
    assert status_of(work).status in ("interrupted", "missing")


@pytest.mark.slow
def test_a_stopped_worker_is_woken_to_checkpoint(endless):
    process, out = endless()
    assert faults.wait_until(lambda: is_under_way(out))
    (worker,) = faults.workers(process)
    worker.suspend()
    faults.kill(process, signal.SIGTERM)
    assert process.returncode == 130
    assert (only(out).status, only(out).error) == ("interrupted", "")


@pytest.mark.slow
def test_damaged_files_are_noticed_set_aside_and_survived(undisturbed, tmp_path):
    experiment, expected = undisturbed
    rng = np.random.default_rng(3)
    for _ in range(3):
        process = faults.start(experiment, tmp_path / "out")
        faults.wait_until_under_way(tmp_path / "out")
        time.sleep(rng.uniform(0.5, 2.0))
        faults.kill(process)
        for work in works_of(tmp_path / "out"):
            for name in ("checkpoint.npz", "manifest.json", "curves.parquet", "mistakes.parquet"):
                if (work.folder / name).exists() and rng.random() < 0.5:
                    faults.damage(work.folder / name, rng)
    faults.finish(experiment, tmp_path / "out")
    assert faults.results(tmp_path / "out") == expected
    aside = list((tmp_path / "out" / "runs").glob("*/*.damaged*"))
    assert aside


@pytest.mark.slow
def test_a_full_disk_fails_in_words_and_can_be_resumed(undisturbed, tmp_path):
    experiment, expected = undisturbed
    process = faults.start(experiment, tmp_path / "out", largest_file=40_000)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "cannot write" in printed
    assert "Traceback" not in printed
    assert not list((tmp_path / "out").rglob("*.tmp"))
    faults.finish(experiment, tmp_path / "out")
    assert faults.results(tmp_path / "out") == expected


@pytest.mark.slow
def test_two_sweeps_on_one_folder(undisturbed, tmp_path):
    experiment, expected = undisturbed
    both = [faults.start(experiment, tmp_path / "out") for _ in range(2)]
    printed = [process.communicate(timeout=120)[0] for process in both]
    assert all(process.returncode in (0, 1) for process in both), printed
    faults.finish(experiment, tmp_path / "out")
    assert faults.results(tmp_path / "out") == expected


@pytest.mark.slow
def test_eight_tasks_of_an_array_share_one_folder(undisturbed, tmp_path, monkeypatch):
    experiment, expected = undisturbed
    tasks = []
    for number in range(8):
        (tmp_path / str(number)).mkdir()
        monkeypatch.chdir(tmp_path / str(number))
        tasks.append(faults.start(experiment, tmp_path / "out", workers=1))
    printed = [task.communicate(timeout=300)[0] for task in tasks]
    assert all(task.returncode in (0, 1) for task in tasks), printed
    assert "Traceback" not in "".join(printed)
    played = [sum("done" in line for line in text.splitlines()) for text in printed]
    assert sum(count > 0 for count in played) > 1, printed  # several tasks played
    assert faults.results(tmp_path / "out") == expected  # no command is needed behind the array
    assert not [each for number in range(8) for each in (tmp_path / str(number)).iterdir()]


@pytest.fixture
def work(tmp_path):
    problem = random_problem(4, 2, 3, 1, stationary=True)
    problem.save(tmp_path / "problem.npz")
    settings = faults.settings_of(problem, preset="released", episodes=5000, seed=3)
    return problem, tmp_path / "run", settings, tmp_path / "problem.npz"


class StopAfter:
    """Ask to stop at the n-th look."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def one_of_each_family():
    """Every algorithm; all but the first of each family are slow."""
    met = set()
    for pair, row in ALGORITHMS.items():
        marks = [pytest.mark.slow] if type(row) in met else []
        met.add(type(row))
        yield pytest.param(pair, id="-".join(pair), marks=marks)


@pytest.mark.parametrize("algorithm", list(one_of_each_family()))
def test_any_sequence_of_interruptions_gives_the_run_itself(work, algorithm):
    problem, folder, settings, file = work
    settings = settings.model_copy(update={"algorithm": algorithm[0], "preset": algorithm[1]})
    for looks in (0, 1, 3, 2):
        record = run_in_folder(Work(folder, settings, file), stop=StopAfter(looks), every=0.0)
        assert record.status == "interrupted"
    record = run_in_folder(Work(folder, settings, file))
    assert (record.status, record.episodes) == ("done", 5000)
    whole = run(problem, settings.row(), 5000, seed=3)
    assert record.summary == whole.summary._asdict()
    table = load_runs(folder)
    for column, values in whole.curves.items():
        np.testing.assert_array_equal(table[column].to_numpy(), values)
    snapshot = checkpoint.find(folder).snapshot
    for field, value in whole.state._asdict().items():
        np.testing.assert_array_equal(snapshot[f"state_{field}"], value)


def test_a_finished_run_is_not_run_again(work):
    _, folder, settings, file = work
    first = run_in_folder(Work(folder, settings, file))
    stamp = (folder / "curves.parquet").stat().st_mtime_ns
    again = run_in_folder(Work(folder, settings, file))
    assert again.attempts == first.attempts == 1
    assert (folder / "curves.parquet").stat().st_mtime_ns == stamp


@pytest.mark.parametrize("name", ["curves.parquet", "mistakes.parquet", "checkpoint.npz"])
def test_a_damaged_file_of_a_finished_run_is_made_again(work, name):
    _, folder, settings, file = work
    run_in_folder(Work(folder, settings, file), every=0.0)
    before = {each: (folder / each).read_bytes() for each in FILES}
    content = bytearray(before[name])
    content[len(content) // 2] ^= 4
    (folder / name).write_bytes(bytes(content))
    assert run_in_folder(Work(folder, settings, file)).status == "done"
    for each, bytes_ in before.items():
        assert (folder / each).read_bytes() == bytes_


def test_an_unlimited_run_goes_on_each_time(work):
    _, folder, settings, file = work
    settings = settings.model_copy(update={"episodes": None})
    first = run_in_folder(Work(folder, settings, file), stop=StopAfter(2))
    second = run_in_folder(Work(folder, settings, file), stop=StopAfter(2))
    assert first.status == second.status == "interrupted"
    assert second.episodes > first.episodes


def test_a_manifest_of_another_run_or_a_flipped_bit_is_not_believed(work):
    _, folder, settings, file = work
    done = run_in_folder(Work(folder, settings, file))
    curves = (folder / "curves.parquet").read_bytes()
    text = (folder / "manifest.json").read_text()
    for old, new in (('"seed": 3', '"seed": 4'), ('"episodes": 5000', '"episodes": 5001')):
        assert old in text
        (folder / "manifest.json").write_text(text.replace(old, new))
        again = run_in_folder(Work(folder, settings, file))
        assert again.status == "done"
        assert again.settings == done.settings
        assert any("manifest was damaged" in note for note in again.notes)
        assert (folder / "curves.parquet").read_bytes() == curves


def test_damaged_curves_are_never_loaded(work):
    _, folder, settings, file = work
    run_in_folder(Work(folder, settings, file))
    content = bytearray((folder / "curves.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "curves.parquet").write_bytes(bytes(content))
    (folder / "problem.npz").write_bytes(file.read_bytes())
    with pytest.raises(InputError, match="is damaged"):
        load_runs(folder)


def test_what_a_killed_writer_left_is_removed(work):
    _, folder, settings, file = work
    folder.mkdir()
    (folder / ".checkpoint.new.npz.123.tmp").write_bytes(b"half")
    run_in_folder(Work(folder, settings, file))
    assert not list(folder.glob(".*.tmp"))


def test_a_crash_is_recorded_with_its_traceback(work, monkeypatch):
    from cmdplab.experiments.play import Playing

    _, folder, settings, file = work

    def crash(self, episodes):
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(Playing, "advance", crash)
    record = run_in_folder(Work(folder, settings, file))
    assert record.status == "failed"
    assert "ZeroDivisionError: on purpose" in record.error
    assert "Traceback" in manifest.read(folder).error


def test_a_run_in_use_is_left_alone(work):
    _, folder, settings, file = work
    folder.mkdir()
    with held(folder), pytest.raises(BusyError):
        run_in_folder(Work(folder, settings, file))
    assert run_in_folder(Work(folder, settings, file)).status == "done"


def test_another_problem_or_another_runs_checkpoint_is_not_used(work, tmp_path):
    _, folder, settings, file = work
    other = settings.model_copy(update={"seed": 4})
    run_in_folder(Work(tmp_path / "other", other, file), stop=StopAfter(2), every=0.0)
    folder.mkdir()
    (folder / "checkpoint.npz").write_bytes((tmp_path / "other" / "checkpoint.npz").read_bytes())
    record = run_in_folder(Work(folder, settings, file))
    assert "belongs to another run" in record.notes[0]
    assert record.status == "done"
    random_problem(4, 2, 3, 1, seed=8).save(file)
    wrong = run_in_folder(Work(tmp_path / "third", settings, file))
    assert wrong.status == "failed"
    assert "is not the problem" in wrong.error


def test_a_record_of_a_newer_version_is_refused(work):
    _, folder, settings, file = work
    run_in_folder(Work(folder, settings, file))
    values = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**values, "schema_version": 99}))
    with pytest.raises(InputError, match="newer cmdplab"):
        run_in_folder(Work(folder, settings, file))


def test_another_processor_is_mentioned(work, call):
    _, folder, settings, file = work
    run_in_folder(Work(folder, settings, file), stop=StopAfter(2), every=0.0)
    record = manifest.read(folder)
    record.machine["processor"] = "abacus"
    manifest.write(folder, record)
    again = run_in_folder(Work(folder, settings, file))
    assert any("after abacus" in note for note in again.notes)
    code, out, _ = call("status", folder)
    assert code == 0
    assert "after abacus" in out


GOOD = faults.experiment_values(100, {"environment": "published"})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"episods": 5}, "episods: unknown key"),
        ({"episodes": 0}, "episodes"),
        ({"episodes": "for ever"}, "episodes"),
        ({"seeds": -1}, "seeds"),
        ({"seeds": [0, -1]}, "seeds"),
        ({"name": "../escape"}, "name"),
        ({"name": "a/b"}, "name"),
        ({"problems": []}, "problems"),
        ({"algorithms": [{"name": "UOpt-RPGPD", "bonus": 1}]}, "algorithms.0.bonus: unknown key"),
        ({"algorithms": [{"name": "UOpt-RPGPD", "preset": "both"}]}, "algorithms.0.preset"),
    ],
)
def test_a_wrong_key_is_named(change, sentence):
    with pytest.raises(InputError, match=f"f.toml: {sentence}"):
        parse_experiment({**GOOD, **change}, "f.toml")


def test_changes_on_the_command_line(tmp_path):
    file = faults.write_experiment(tmp_path, episodes=10, seeds=1, rows=2)
    changed = read_experiment(file, ["episodes=77", "algorithms.1.bonus_scale=[1e-3, 1e-4]"])
    assert changed.episodes == 77
    assert changed.algorithms[1].bonus_scale == [1e-3, 1e-4]
    for bad in ("episodes", "algorithms.9.delta=1", "nothing.here=1"):
        with pytest.raises(InputError, match="--set"):
            read_experiment(file, [bad])


def test_status_tells_what_is_missing(tmp_path):
    from cmdplab.experiments.sweep import sweep

    file = faults.write_experiment(tmp_path, episodes=2000, seeds=1, rows=2)
    experiment = read_experiment(file)
    found = sweep(experiment, tmp_path / "out", base=tmp_path, workers=1)
    assert [each.status for each in found] == ["done", "done"]
    longer = experiment.model_copy(update={"episodes": 3000})
    sweep(longer, tmp_path / "out", base=tmp_path, workers=1)
    assert len(works_of(tmp_path / "out")) == 4  # a changed setting is another run
    work = works_of(tmp_path / "out")[0]
    (work.folder / "manifest.json").unlink()
    assert status_of(work).status == "missing"
    other = experiment.model_copy(update={"name": "other"})
    with pytest.raises(
        InputError, match="holds the experiment 'torture', not the experiment 'other'"
    ):
        sweep(other, tmp_path / "out", base=tmp_path)
