"""Thousands of runs: an index and columns that save time, and are never believed against a run."""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import shutil

import faults
import numpy as np
import pytest
from conftest import random_problem

from cmdplab.cli import sweep as commands
from cmdplab.cmdp.problem import CMDP
from cmdplab.experiments import durable, manifest, status as index
from cmdplab.experiments.durable import CURVES, FILES, LOCK, MISTAKES, held, is_held, run_in_folder
from cmdplab.experiments.executors import local, worker
from cmdplab.experiments.executors.worker import Interrupt
from cmdplab.experiments.experiment import problems, read_experiment
from cmdplab.experiments.folder import works_of
from cmdplab.experiments.records import columns
from cmdplab.experiments.records.groups import gather as gather_audit
from cmdplab.experiments.run import run
from cmdplab.experiments.status import status_of
from cmdplab.experiments.sweep import prepare, sweep
from cmdplab.experiments.work import Entries, Event
from cmdplab.files import file_digest
from cmdplab.files.write import written_whole
from cmdplab.report import gather as gather_report
from cmdplab.solvers import solve

pytestmark = pytest.mark.usefixtures("one_process")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    file = faults.write_experiment(folder, episodes=300, seeds=4, rows=2)
    sweep(read_experiment(file), folder / "out", base=folder, workers=1)
    return folder / "out"


@pytest.fixture
def swept(made, tmp_path):
    """A finished sweep of eight runs, whose files are older than a tick of the clock."""
    shutil.copytree(made, tmp_path / "out")
    (tmp_path / "out" / index.NAME).unlink(missing_ok=True)
    seen = [index._seen(work.folder) for work in works_of(tmp_path / "out")]
    assert faults.wait_until(lambda: all(map(index._is_old, seen)))
    return tmp_path / "out"


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def unlike(folder):
    """One run of every kind: failed, interrupted, dead, damaged twice, missing, another's, done."""
    works = works_of(folder)
    for work, status in zip(works[:3], ("failed", "interrupted", "running"), strict=True):
        record = manifest.read(work.folder)
        record.status, record.error, record.notes = status, f"{status} it is", ["a note"]
        manifest.write(work.folder, record)
    flip(works[3].folder / CURVES)
    (works[4].folder / FILES[-1]).unlink()
    (works[5].folder / manifest.NAME).unlink()
    shutil.copy(works[7].folder / manifest.NAME, works[6].folder / manifest.NAME)
    return works


def test_the_index_says_what_the_runs_say(swept):
    works = unlike(swept)
    plain = [status_of(work) for work in works]
    assert [each.status for each in plain] == [
        "failed", "interrupted", "interrupted", "damaged", "damaged", "missing", "damaged", "done",
    ]  # fmt: skip
    for _ in range(2):
        assert index.statuses(works) == plain
    with held(works[2].folder):
        (swept / index.NAME).unlink()
        assert index.statuses(works)[2].status == "running"
    assert index.statuses(works) == plain


def test_a_run_in_the_index_is_not_opened_again(swept, monkeypatch):
    works = works_of(swept)
    plain = index.statuses(works)
    monkeypatch.setattr(manifest, "read", lambda folder: pytest.fail(f"{folder} was opened"))
    monkeypatch.setattr(durable, "file_digest", lambda path: pytest.fail(f"{path} was opened"))
    assert index.statuses(works) == plain
    assert {each.status for each in plain} == {"done"}


@pytest.mark.slow
def test_a_sweep_notes_its_runs_while_it_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("cmdplab.experiments.sweep.NOTED_AT_ONCE", 1)
    monkeypatch.setattr(index, "_TICK", 0)
    file, out = faults.write_experiment(tmp_path, episodes=100, seeds=4, rows=1), tmp_path / "out"
    noted = []

    def tell(event):
        noted.append(len(index._read(out / index.NAME, 4)[0]))

    sweep(read_experiment(file), out, base=tmp_path, workers=1, on_event=tell)
    assert noted[-1] >= 3
    assert len(index._read(out / index.NAME, 4)[0]) == 4


@pytest.mark.parametrize("name", [manifest.NAME, *FILES])
def test_a_changed_file_is_noticed_behind_the_index(swept, name):
    works = works_of(swept)
    index.statuses(works)
    flip(works[1].folder / name)  # of the same size, at once
    found = [each.status for each in index.statuses(works)]
    assert found[1] in ("damaged", "missing")
    assert found == [each.status for each in map(status_of, works)]
    again = sweep_again(swept)
    assert {each.status for each in again} == {"done"}


def test_a_worker_that_is_done_gets_its_next_run_at_once(swept, monkeypatch):
    class AtOnce:
        """A worker that has done its run as soon as it has it."""

        def __init__(self, every):
            self.work, self.pipe = None, self

        def give(self, work):
            self.work = work

        def listen(self):
            done, self.work = self.work, None
            return done and Event(done.folder.name, "done")

        def dismiss(self, at_once):
            assert self.work is None

        def join(self):
            pass

    ended = []
    monkeypatch.setattr(local, "Worker", AtOnce)
    monkeypatch.setattr(local, "wait", lambda *_, **__: pytest.fail("nobody is busy"))
    works = works_of(swept)
    local.run_locally(works, 3, ended.append, Interrupt(), 30.0)
    assert [each.folder for each in ended] == [work.folder.name for work in works]


def test_workers_have_one_thread_and_the_process_that_starts_them_keeps_its_own(monkeypatch):
    class Process:
        def __init__(self, **_):
            pass

        def start(self):
            started.append({name: os.environ.get(name) for name in worker._THREADS})

    started, context = [], worker.multiprocessing.get_context("spawn")
    monkeypatch.setattr(type(context), "Process", Process)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = dict(os.environ)
    worker.Worker(30.0)._start()
    assert started == [dict.fromkeys(worker._THREADS, "1")]
    assert dict(os.environ) == before


def sweep_again(out):
    from cmdplab.experiments.sweep import do_missing

    return do_missing(works_of(out), workers=1)


def test_a_run_that_may_still_change_unseen_is_not_indexed(swept, monkeypatch):
    monkeypatch.setattr(index, "_TICK", 3600 * 10**9)
    works = works_of(swept)
    assert {each.status for each in index.statuses(works)} == {"done"}
    assert not (swept / index.NAME).exists()


def test_whatever_the_index_holds_the_runs_are_right(swept):
    works = unlike(swept)
    plain = [status_of(work) for work in works]
    index.statuses(works)
    good = (swept / index.NAME).read_bytes()
    rng = np.random.default_rng(7)
    for _ in range(300):
        content = bytearray(good)
        for place in rng.integers(0, len(content), size=3):
            content[place] ^= 1 << int(rng.integers(8))
        (swept / index.NAME).write_bytes(content[: rng.integers(1, len(content) + 1)])
        assert index.statuses(works) == plain
    for content in (
        b"",
        b"\n\n",
        b"[]",
        b"\xff" * 1000,
        good + good,
        good.replace(b"done", b"gone"),
    ):
        (swept / index.NAME).write_bytes(content)
        assert index.statuses(works) == plain


def test_the_index_is_written_anew_when_most_of_it_is_old(swept):
    works = works_of(swept)
    index.statuses(works)
    (swept / index.NAME).write_bytes((swept / index.NAME).read_bytes() * 30)
    record = manifest.read(works[0].folder)
    record.notes = ["a note"]
    manifest.write(works[0].folder, record)
    assert faults.wait_until(lambda: index._is_old(index._seen(works[0].folder)))
    assert index.statuses(works)[0].notes == ["a note"]
    assert len((swept / index.NAME).read_bytes().splitlines()) == 8
    assert index.statuses(works) == [status_of(work) for work in works]


def test_a_run_of_its_own_gets_no_index(work_alone, monkeypatch):
    folder = work_alone
    assert [each.status for each in index.statuses(works_of(folder))] == ["done"]
    assert not list(folder.parent.parent.glob(index.NAME))


@pytest.fixture
def work_alone(made, tmp_path):
    """A run in DIR/runs/, as `cmdplab run --out runs/x` makes it, of no experiment."""
    source = works_of(made)[0]
    shutil.copytree(source.folder, tmp_path / "runs" / "mine")
    shutil.copy(source.problem_file, tmp_path / "runs" / "mine" / "problem.npz")
    return tmp_path / "runs" / "mine"


@pytest.fixture
def large(swept, monkeypatch):
    """A sweep that counts as large."""
    monkeypatch.setattr(columns, "FEWEST", 2)
    return swept


def same(one, other):
    """Whether two nested results are equal, arrays to the last bit."""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.mark.parametrize("gather", [gather_report, gather_audit])
def test_columns_give_what_the_folders_give_and_no_table_is_opened_again(
    swept, monkeypatch, gather
):
    plain = gather(swept)
    assert not (swept / columns.FOLDER).exists()  # too few to be worth it
    monkeypatch.setattr(columns, "FEWEST", 2)
    assert same(gather(swept), plain)
    assert len(list((swept / columns.FOLDER).glob("*/*.parquet"))) == 2
    monkeypatch.setattr(columns, "_as_written", lambda *_: pytest.fail("a table was opened"))
    assert same(gather(swept), plain)


def test_damaged_columns_are_not_believed(large):
    plain = gather_audit(large)
    for file in (large / columns.FOLDER).glob("*/*.parquet"):
        flip(file)
    assert same(gather_audit(large), plain)
    for file in (large / columns.FOLDER).glob("*/*.parquet"):
        file.write_bytes(b"")
    assert same(gather_audit(large), plain)
    files = list((large / columns.FOLDER).glob("*/*.parquet"))
    assert len(files) == 2  # whole again, and the damaged ones are gone
    assert all(file_digest(file) == file.stem for file in files)


def test_columns_of_a_run_that_was_made_anew_are_read_anew(large):
    """Another file with another hash, as a run has that was repaired on another machine."""
    plain, _ = gather_audit(large)
    work = works_of(large)[0]
    record = manifest.read(work.folder)
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(work.folder / CURVES)
    place = table.column_names.index("strong_regret")
    table = table.set_column(place, "strong_regret", pa.array(np.arange(300.0)))
    with written_whole(work.folder / CURVES) as temporary:
        pq.write_table(table, temporary)
    record.sha256[CURVES] = file_digest(work.folder / CURVES)
    manifest.write(work.folder, record)
    anew, _ = gather_audit(large)
    (mine,) = [n for n, group in enumerate(anew) if not same(group, plain[n])]
    assert anew[mine].curves[0]["strong_regret"][-1] == 299.0


def test_a_damaged_table_is_found_behind_columns(large):
    gather_report(large)
    work = works_of(large)[0]
    flip(work.folder / MISTAKES)
    (trouble,) = gather_report(large).troubles
    assert (trouble.run, trouble.status) == (work.folder.name, "damaged")


@pytest.mark.slow
def test_problems_of_different_shape_share_the_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "FEWEST", 2)
    text = 'name = "two"\nepisodes = 60\nseeds = 2\n'
    for n in range(2):
        random_problem(3, 2, 2, n).save(tmp_path / f"{n}.npz")
        text += f'[[problems]]\nfile = "{n}.npz"\n'
    (tmp_path / "two.toml").write_text(text + '[[algorithms]]\nname = "UOpt-RPGPD"\n')
    sweep(read_experiment(tmp_path / "two.toml"), tmp_path / "out", base=tmp_path, workers=1)
    first = gather_report(tmp_path / "out")
    assert len(list((tmp_path / "out" / columns.FOLDER).glob("*/*.parquet"))) == 4
    assert same(gather_report(tmp_path / "out"), first)


def test_a_finished_run_is_four_files(made):
    for work in works_of(made):
        assert {path.name for path in work.folder.iterdir()} == {manifest.NAME, *FILES}


def test_a_lock_that_was_removed_before_it_was_got_is_no_lock(tmp_path, monkeypatch):
    locks, lock = [], fcntl.flock

    def finished_by_another(handle, how):
        lock(handle, how)
        locks.append(handle)
        if len(locks) == 1:
            (tmp_path / LOCK).unlink()

    monkeypatch.setattr(fcntl, "flock", finished_by_another)
    with held(tmp_path):
        assert len(locks) == 2
        assert is_held(tmp_path)


def test_all_files_of_a_run_are_on_the_disk_before_one_gets_its_name(made, tmp_path, monkeypatch):
    from pathlib import Path

    done, flushed = [], set()
    sync, replace = os.fsync, Path.replace

    def note_flush(handle):
        flushed.add(os.readlink(f"/proc/self/fd/{handle}"))
        sync(handle)

    def note_name(path, target):
        done.append((str(path), str(path) in flushed, len(flushed)))
        return replace(path, target)

    monkeypatch.setattr(durable, "FLUSHED_FROM", 0.0)
    monkeypatch.setattr(os, "fsync", note_flush)
    monkeypatch.setattr(Path, "replace", note_name)
    work = works_of(made)[0]
    run_in_folder(work._replace(folder=tmp_path / "run"))
    begun, *rest = done
    assert not begun[1]  # that it has begun is lost without loss
    assert len(rest) == 4
    assert all(was_flushed and after == 4 for _, was_flushed, after in rest)
    assert manifest.NAME in rest[-1][0]  # it never promises what is not there


@pytest.mark.parametrize("lost", [[manifest.NAME], [CURVES], [FILES[-1]], [manifest.NAME, *FILES]])
def test_a_power_cut_makes_a_short_run_be_played_again(made, tmp_path, monkeypatch, lost):
    flushed = []
    monkeypatch.setattr(durable, "FLUSHED_FROM", float("inf"))
    monkeypatch.setattr(os, "fsync", flushed.append)
    work = works_of(made)[0]._replace(folder=tmp_path / "run")
    run_in_folder(work)
    assert flushed == []  # so that a power cut may leave files empty
    before = {name: (work.folder / name).read_bytes() for name in FILES}
    for name in lost:
        (work.folder / name).write_bytes(b"")
    assert status_of(work).status in ("damaged", "missing")
    assert run_in_folder(work).status == "done"
    assert {name: (work.folder / name).read_bytes() for name in FILES} == before


def test_a_worker_solves_a_problem_once(made, tmp_path, monkeypatch):
    from cmdplab import solvers

    solved, known = [], Entries()
    plain = solvers.solve_feasible
    monkeypatch.setattr(solvers, "solve_feasible", lambda p: solved.append(p) or plain(p))
    for work in works_of(made)[:4]:
        record = run_in_folder(work._replace(folder=tmp_path / work.folder.name), entries=known)
        assert record.summary == manifest.read(work.folder).summary
    assert len(solved) == 1


def test_a_sweep_hands_over_problems_tasks_and_optima(tmp_path, monkeypatch):
    file = faults.write_experiment(tmp_path, episodes=50, seeds=2)
    experiment = read_experiment(file)
    works = prepare(experiment, problems(experiment, tmp_path), tmp_path / "out")
    sent = [pickle.loads(pickle.dumps(work)) for work in works]  # as to a worker
    solution = solve(sent[0].entry.problem)
    for name in ("solvers.solve_feasible", "experiments.play.solve_feasible"):
        monkeypatch.setattr(f"cmdplab.{name}", lambda *_: pytest.fail("it was solved again"))
    monkeypatch.setattr(CMDP, "load", lambda *_: pytest.fail("it was read again"))
    first, second, entries = sent[0], sent[len(sent) // 2], Entries()
    assert (first.settings.seed, second.settings.seed) == (0, 1)
    for work in (first, second._replace(entry=None)):
        record = run_in_folder(work, entries=entries)
        row, seed = record.checked_row(), work.settings.seed
        expected = run(first.entry.problem, row, 50, seed, solution=solution)
        assert record.summary == expected.summary._asdict()


def test_status_of_many_runs_shows_those_that_need_a_look(call, swept, monkeypatch):
    works = unlike(swept)
    monkeypatch.setattr(commands, "MOST_ROWS", 3)
    code, out, _ = call("status", swept)
    assert code == 0
    assert "5 of 8 runs are not listed" in out
    assert "failed it is" in out
    first = works[0].label.split()[0]
    listed = [line for line in out.splitlines() if line.startswith(first) and " on " not in line]
    wanted = [status_of(works[n]).status for n in (0, 3, 4)]
    assert sorted(wanted) == sorted(each for line in listed for each in wanted if each in line)
    code, out, _ = call("status", swept, "--json")
    assert len(json.loads(out)["runs"]) == 8


def test_status_imports_no_compiler():
    """Compilers take most of a second to import."""
    import subprocess
    import sys

    imports = "import sys, cmdplab.experiments.status, cmdplab.experiments.sweep"
    program = f"{imports}; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
