"""A record is of the row that was played, and of no other: rebuilt, compared, refused."""

from __future__ import annotations

import json
import zipfile
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, in_one_process, random_problem

from cmdplab import Experiment, load_runs, run
from cmdplab.algorithms import ALGORITHMS, algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.identity import fields_of, rebuilt
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.schedules import Constant, Power
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import CmdplabError, InputError
from cmdplab.experiments.durable import run_in_folder
from cmdplab.experiments.experiment import problems, read_experiment, resolve
from cmdplab.experiments.folder import alone_in, read_folder, works_of, works_to_play
from cmdplab.experiments.play import Entry
from cmdplab.experiments.records.groups import gather
from cmdplab.experiments.records.load import recall
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.experiments.status import statuses
from cmdplab.experiments.sweep import do_missing, prepare
from cmdplab.settings import SETTINGS
from cmdplab.solvers import solve

EPISODES = 60
FAMILIES = {type(row).__name__: row for row in reversed(ALGORITHMS.values())}
SLOW = {"Optimist", "TripleQ", "Safe"}
FAMILIES["Safe"] = algorithm("Safe(OptCMDP)")


def other_values(row: Row, name: str):
    """Other values of a field: those of registered rows of the family, and numbers close by."""
    now = getattr(row, name)
    yield from (getattr(other, name) for other in ALGORITHMS.values() if type(other) is type(row))
    if row.reads(name):
        for choice in SETTINGS[name].choices:
            yield getattr(row.with_settings(**{name: choice}), name)
    if isinstance(now, Power):
        yield replace(now, exponent=0.8)
        yield replace(now, shift=7.0)
    if isinstance(now, Constant):
        yield Constant(0.25)
    if isinstance(now, int | float) and not isinstance(now, bool):
        yield from (now // 2, 1) if isinstance(now, int) else (now / 2, 0.5, 1.0)


def changed_rows(row: Row):
    """The row with every field on which numbers can depend changed in turn, if it may be."""
    for field in fields(row):
        if field.name in ("name", "preset", "needs", "make"):
            continue
        if field.name == "dynamics" and not row.reads("dynamics"):
            continue  # this family has counts of each step, whatever the field says
        for value in other_values(row, field.name):
            if value == getattr(row, field.name):
                continue
            try:
                other = replace(row, **{"name": f"Mine-{field.name}", field.name: value})
            except (InputError, TypeError):
                continue
            if fields_of(other) != fields_of(row):
                yield other
                break


def changed(**fields_given: Any) -> Row:
    """UOpt-RPGPD as released, with other fields."""
    return replace(algorithm("UOpt-RPGPD", "released"), **fields_given)


@pytest.fixture
def register(monkeypatch):
    """Register a row for one test, as docs/add-an-algorithm.md says."""
    return lambda row: monkeypatch.setitem(ALGORITHMS, (row.name, row.preset), row)


@pytest.fixture(scope="module")
def problem():
    return random_problem(3, 2, 3, 1, stationary=True)


@pytest.fixture
def file(problem, tmp_path):
    problem.save(tmp_path / "p.npz")
    return tmp_path / "p.npz"


def experiment_of(rows, file, **more) -> Experiment:
    named = [{"name": row.name, "preset": row.preset} for row in rows]
    given = {"name": "mine", "episodes": EPISODES, "problems": [{"file": str(file)}]}
    return Experiment(**given | {"algorithms": named} | more)


def stopped_halfway(works) -> None:
    for work in works:
        record = run_in_folder(work, stop=iter([False, True]).__next__, every=0.0)
        assert record.status == "interrupted", (work.label, record.error)


def prepared(experiment, out):
    return prepare(experiment, problems(experiment, ROOT), out)


SHAPES = {
    "pooled": {"stationary": True},
    "per step": {},
    "two constraints": {"N": 2, "stationary": True},
    "lists": {},
}


def problem_of_shape(shape: str) -> CMDP:
    given = {"N": 1} | SHAPES[shape]
    made = random_problem(3, 2, 3, given.pop("N"), **given)
    if shape != "lists":
        return made
    successor = np.broadcast_to(np.arange(3), (3, 2, 3))
    return replace(made, transition=Sparse(successor, made.table))


def cases():
    """Families on one shape; the other shapes, and families that take long, are slow."""
    for shape in SHAPES:
        for name in FAMILIES:
            quick = name not in SLOW and shape == "pooled"
            yield pytest.param(name, shape, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("family", "shape"), list(cases()))
def test_every_changed_field_is_kept_by_run_sweep_resume_and_audit(
    family, shape, register, tmp_path
):
    problem = problem_of_shape(shape)
    problem.save(tmp_path / "p.npz")
    rows = list(changed_rows(FAMILIES[family]))
    if family == "Safe":  # a wrapper has no registered row: the row inside is registered
        rows = [algorithm(f"Safe({row.name})", row.preset) for row in map_inside(register)]
    else:
        list(map(register, rows))
    rows = [row for row in rows if plays(row, problem)]
    assert len(rows) > 3 or shape != "pooled"
    if not rows:
        pytest.skip(f"{family} does not play this problem")
    stopped_halfway(prepared(experiment_of(rows, tmp_path / "p.npz"), tmp_path / "out"))
    with in_one_process():
        do_missing(works_to_play(tmp_path / "out", []))
    groups, _ = gather(tmp_path / "out")
    played = {group.label: group for group in groups}
    solution = solve(problem)
    for row, work in zip(rows, works_of(tmp_path / "out"), strict=True):
        expected = run(problem, row, EPISODES, solution=solution)
        alone = alone_in(  # as `cmdplab run --out` does
            tmp_path / work.folder.name,
            RunSettings.of(problem, row, EPISODES, 0),
            Entry.of(problem, row, 0, solution),
        )
        assert run_in_folder(alone).status == "done"
        kept, own = recall(work), recall(works_of(alone.folder)[0])
        assert kept.algorithm == own.algorithm == played[work.label].row == row
        for found in (kept.curves, own.curves, played[work.label].curves[0]):
            assert found.keys() == expected.curves.keys()
            for name, values in expected.curves.items():
                np.testing.assert_array_equal(found[name], values, err_msg=f"{row.name} {name}")


def plays(row: Row, problem: CMDP) -> bool:
    try:
        Entry.of(problem, row, 0)
        row.check(task_for(row, problem, solve(problem)))
    except CmdplabError:
        return False
    return True


def map_inside(register):
    rows = [replace(row, name=f"{row.name}-in") for row in changed_rows(algorithm("OptCMDP"))]
    list(map(register, rows))
    return rows


def test_a_run_with_out_plays_the_row_of_the_page(call, register, tmp_path):
    register(changed(name="Slow", dual_step=Power(0.8, shift=2.0)))
    register(changed(name="Fixed", dual_step=Constant(0.02)))
    for name in ("Slow", "Fixed"):
        given = ("run", "three-state", "--algorithm", name, "--episodes", "300", "--json")
        numbers = [
            json.loads(call(*given, *out)[1])["strong_regret"]
            for out in ((), ("--out", tmp_path / name))
        ]
        assert numbers[0] == numbers[1]


def test_settings_given_beside_a_changed_row_come_back(register):
    base = replace(algorithm("UOpt-RPGPD", "printed"), name="Pooled", dynamics="stationary")
    register(base)
    for settings in ({"dynamics": "per-step"}, {"alpha_eta": 0.7}, {"bonus_scale": 1.0}):
        row = base.with_settings(**settings)
        assert rebuilt("Pooled", "printed", row.settings()) == row


def test_a_row_that_changed_since_is_refused_before_anything_is_played(register, file, tmp_path):
    register(changed(name="Mine", dual_step=Constant(0.02)))
    experiment = experiment_of([ALGORITHMS["Mine", "released"]], file)
    stopped_halfway(prepared(experiment, tmp_path / "out"))
    (work,) = works_of(tmp_path / "out")
    before = (work.folder / "manifest.json").read_bytes()
    register(changed(name="Mine", dual_step=Constant(0.03)))
    odd = r"another dual_step \(Constant\(value=0.02\), not Constant\(value=0.03\)\)"
    with pytest.raises(InputError, match=odd):
        prepared(experiment, tmp_path / "out")
    with pytest.raises(InputError, match=odd):
        works_to_play(tmp_path / "out", [])
    with pytest.raises(InputError, match=odd):
        run_in_folder(work)
    assert (work.folder / "manifest.json").read_bytes() == before


def test_a_finished_run_of_another_row_is_not_shown_as_this_one(call, register, tmp_path):
    given = ("run", "three-state", "--algorithm", "Mine", "--episodes", "30", "--out", tmp_path)
    register(changed(name="Mine", dual_step=Constant(0.02)))
    assert call(*given)[0] == 0
    register(changed(name="Mine", dual_step=Constant(0.03)))
    code, _, err = call(*given)
    assert code == 2
    assert "another dual_step" in err


def test_a_row_that_no_record_can_name_is_refused(problem):
    row = changed(dual_step=Constant(0.02))
    with pytest.raises(InputError, match=r"UOpt-RPGPD \(released\) is registered with another"):
        RunSettings.of(problem, row, 10, 0)


def test_fields_are_the_same_text_for_equal_numbers():
    row = algorithm("UOpt-RPGPD", "printed")
    one, other = (replace(row, bonus_scale=value) for value in (1, np.float64(1.0)))
    assert fields_of(one) == fields_of(other)
    assert "0x" not in str([fields_of(each) for each in ALGORITHMS.values()])


# --- records that an earlier version wrote --------------------------------------------------------


@pytest.fixture
def earlier(tmp_path):
    """A sweep of every family and an interrupted run, as 0.2.0.dev0 wrote them, without rows."""
    with zipfile.ZipFile(ROOT / "tests" / "data" / "records-0.2.0.dev0.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path


def test_a_sweep_of_an_earlier_version_reads_and_is_not_played_again(earlier):
    out = earlier / "sweep"
    assert read_folder(out).rows is None
    assert {each.status for each in statuses(works_of(out))} == {"done"}
    assert load_runs(out).num_rows == 8 * 40
    for work in works_of(out):
        kept = recall(work)
        problem = CMDP.load(work.problem_file)
        again = run(problem, kept.algorithm, 40, seed=0)
        np.testing.assert_allclose(kept.curves["gap"], again.curves["gap"], atol=1e-8)
        assert kept.policy(problem).array.shape == (3, 3, 2)
    found = read_folder(out).experiment
    (earlier / "p.npz").write_bytes(work.problem_file.read_bytes())
    runs = resolve(found, problems(found, earlier))
    assert {each.folder for each in runs} == {path.name for path in (out / "runs").iterdir()}
    prepare(found, problems(found, earlier), out)
    assert {each.status for each in statuses(works_of(out))} == {"done"}
    assert read_folder(out).rows


def test_an_interrupted_run_of_an_earlier_version_goes_on(earlier):
    (work,) = works_of(earlier / "single")
    record = run_in_folder(work)
    row = algorithm("UOpt-RPGPD").with_settings(bonus_scale=1e-2)
    whole = run(CMDP.load(work.problem_file), row, 400, seed=5).summary
    assert (record.status, record.attempts, record.notes[:1]) == ("done", 2, record.notes[:1])
    assert record.row == fields_of(row)
    assert record.summary["strong_regret"] == pytest.approx(whole.strong_regret, abs=1e-8)


# --- problems -------------------------------------------------------------------------------------


def test_problems_with_equal_arrays_keep_their_names(problem, tmp_path):
    for name in ("one", "two", "three", "one"):
        replace(problem, name=name).save(tmp_path / f"{name}.npz")
    files = [{"file": f"{name}.npz"} for name in ("one", "two", "three")]
    experiment = experiment_of([algorithm("UOpt-RPGPD")], "", problems=files)
    out = tmp_path / "out"
    with in_one_process():
        do_missing(prepare(experiment, problems(experiment, tmp_path), out))
    found = statuses(works_of(out))
    assert [each.problem for each in found] == ["one", "two", "three"]
    assert {each.status for each in found} == {"done"}
    assert len({each.gap for each in found}) == 1
    twice = experiment_of([algorithm("UOpt-RPGPD")], "", problems=[files[0], files[0]])
    assert len(resolve(twice, problems(twice, tmp_path))) == 1


# --- sizes ----------------------------------------------------------------------------------------


def no_work(*given, **named):
    raise AssertionError("work was done for an experiment that is too large")


def test_combinations_are_counted_before_they_are_made(monkeypatch, file):
    monkeypatch.setattr(RunSettings, "of", no_work)
    settings = {"bonus_scale": [1.0] * 300, "delta": [0.1] * 300, "alpha_eta": [0.5] * 300}
    many = experiment_of([], file, algorithms=[{"name": "UOpt-RPGPD"} | settings])
    with pytest.raises(InputError, match="more than 1,000,000 runs"):
        resolve(many, {"0": file})


def test_instances_are_counted_before_they_are_built(monkeypatch, tmp_path):
    monkeypatch.setattr("cmdplab.experiments.experiment.make", no_work)
    (tmp_path / "e.toml").write_text(
        'name = "x"\nepisodes = 10\nseeds = 11\n[[problems]]\nenvironment = "random-printed"\n'
        f"instance_seeds = {list(range(100_000))}\n[[algorithms]]\nname = 'UOpt-RPGPD'\n"
    )
    with pytest.raises(InputError, match="more than 1,000,000 runs"):
        problems(read_experiment(tmp_path / "e.toml"), tmp_path)


# --- names of folders -----------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["run:1", "s3:bucket/x", "file:/x", "word::x"])
def test_a_folder_whose_name_looks_like_an_address_is_a_folder(call, out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cmdplab.experiments.records.columns.FEWEST", 1)
    code, _, err = call("run", "three-state", "--episodes", "20", "--out", out)
    assert code == 0, err
    for kind in ("csv", "parquet"):
        assert call("export", out, "--to", kind)[0] == 0
        assert (tmp_path / out / f"all-curves.{kind}").stat().st_size
    assert {path.name for path in tmp_path.iterdir()} == {out.partition("/")[0]}
