"""The audit, on sequences whose answers are known and on small sweeps."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import random_problem
from faults import experiment_values

from cmdplab import sweep
from cmdplab.algorithms import algorithm
from cmdplab.algorithms.learner import Chunk
from cmdplab.audit import Group, audit, gather, mistakes_at, sample_complexity
from cmdplab.errors import InputError
from cmdplab.experiments import manifest
from cmdplab.experiments.durable import held
from cmdplab.experiments.experiment import parse_experiment
from cmdplab.experiments.folder import works_of
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.measures.measures import Measures

pytestmark = pytest.mark.usefixtures("one_process")

K = 60_000


def group_of(gaps, name="UOpt-RPGPD", violations=None) -> Group:
    """Runs with the given gaps [runs, K]; the violation is zero unless given."""
    curves, mistakes = [], []
    for n, gap in enumerate(gaps):
        violation = np.zeros(len(gap)) if violations is None else violations[n]
        measures = Measures(1.0, np.ones(1), 10)
        returns = np.stack([1.0 - gap, 1.0 - violation], axis=1)
        measures.add(Chunk(returns, np.zeros((len(gap), 1))))
        curves.append(measures.curves())
        mistakes.append(measures.mistakes())
    seeds = list(range(len(gaps)))
    row = algorithm(name, "printed")
    return Group(name, "synthetic", row, len(gaps[0]), seeds, ["one"] * len(gaps), curves, mistakes)


def power_law(exponent, runs=6, noise=0.1):
    k = np.arange(1.0, K + 1)
    scale = np.exp(noise * np.random.default_rng(0).normal(size=runs))
    return scale[:, None] * k**-exponent


@pytest.mark.parametrize("exponent", [0.3, 0.5, 0.8])
def test_a_power_law_has_its_exponents(exponent):
    # gap^k = c k^-a: mistakes grow like eps^(-1/a), strong regret like K^(1-a).
    found = audit(group_of(power_law(exponent)))
    assert found.mistake_exponent.slope == pytest.approx(1.0 / exponent, rel=0.05)
    assert found.mistake_exponent.low <= 1.0 / exponent * 1.05
    assert found.regret_exponent.slope == pytest.approx(1.0 - exponent, abs=0.08)
    assert found.theorem["mistakes"] == pytest.approx((2 / 0.03, 1 / 0.4))
    assert found.theorem["regret"] == pytest.approx((1 - 0.015, 1 - 0.4))


def test_verdicts_are_those_of_the_sequences():
    k = np.arange(1.0, K + 1)
    sequences = {
        "converging at k^-0.5 [0.5, 0.5]": 1.0 / np.sqrt(k),
        "oscillating, not shrinking from 1": np.sin(k / 50.0),
        "settled at 0.5": 0.5 + 1.0 / k,
        "converging at k^-0.35 [0.35, 0.35]": 20.0 * k**-0.35,
    }
    for words, gap in sequences.items():
        assert audit(group_of([gap] * 6)).verdict.partition(";")[0] == words
    one, other = 1.0 / np.sqrt(k), 0.5 + 1.0 / k
    mixed = audit(group_of([one] * 5 + [other]))
    assert mixed.verdict == "mixed: converging in 5 of 6; settled in 1 of 6"
    few = audit(group_of([one] * 5))
    assert few.judgement.why == "5 seeds are too few for a verdict: at least 6"
    assert few.judgement.rate is None
    short = audit(group_of([one[:5000]] * 6))
    assert short.verdict == "undecided before 8,192 episodes"


def test_an_oscillation_is_not_fitted_and_its_average_is_near_zero():
    k = np.arange(1.0, K + 1)
    found = audit(group_of([np.sin(k / 300.0 + n) for n in range(4)]))
    assert found.quiet is None or found.quiet > 0.9
    assert found.mistake_exponent.why_not
    assert abs(found.average_gap) < 0.02
    assert found.amplitude == pytest.approx(2.0, rel=0.01)
    assert found.period == pytest.approx(2 * np.pi * 300.0, rel=0.1)


def test_one_run_has_no_band_and_no_interval():
    found = audit(group_of(power_law(0.5, runs=1)))
    assert found.mistakes["either"] is None
    assert found.final_gap.middle == pytest.approx(power_law(0.5, runs=1)[0, -1])
    assert np.isnan([found.final_gap.low, found.final_gap.high]).all()
    assert found.mistake_exponent.why_not == "one seed is too few for an exponent: at least 6"
    assert np.isnan(found.mistake_exponent.slope)
    assert found.over == "one run"


def test_sample_complexity_needs_enough_runs_and_final_counts():
    found = audit(group_of(power_law(0.5, runs=30)))
    epsilon = found.epsilon[np.searchsorted(found.epsilon, 0.1)]
    answer = sample_complexity(found, epsilon, 0.1)
    assert answer.why_not == ""
    assert answer.mistakes == mistakes_at(found, epsilon).mistakes.max()
    assert answer.over == "30 seeds of one instance"
    few = sample_complexity(found, epsilon, 0.01)
    assert few[:2] == (None, "delta = 0.01 needs 299 seeds, and there are 30")
    tiny = found.epsilon[0]
    assert "longer run" in sample_complexity(found, tiny, 0.1).why_not
    with pytest.raises(InputError, match="was not counted"):
        mistakes_at(found, 1e-9)


@pytest.fixture(scope="module")
def swept_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swept")
    random_problem(3, 2, 2, 1).save(folder / "p.npz")
    values = {
        "name": "small",
        "episodes": 3000,
        "seeds": 3,
        "problems": [{"file": "p.npz"}],
        "algorithms": [{"name": "UOpt-RPGPD", "bonus_scale": [1e-3, 1e-2]}, {"name": "OptCMDP"}],
    }
    sweep(parse_experiment(values, "here"), folder / "out", base=folder)
    return folder / "out"


@pytest.fixture
def swept(swept_once, tmp_path):
    return Path(shutil.copytree(swept_once, tmp_path / "out"))


def test_an_audit_of_a_sweep(call, swept):
    groups, notes = gather(swept)
    assert notes == []
    labels = ["UOpt-RPGPD (bonus_scale 0.001)", "UOpt-RPGPD (bonus_scale 0.01)", "OptCMDP"]
    assert [group.label for group in groups] == labels
    assert all(len(group.curves) == 3 for group in groups)
    code, out, _ = call("audit", swept, "--json")
    assert code == 0
    assert [row["algorithm"] for row in json.loads(out)["findings"]] == labels
    names = {path.name for path in (swept / "audit").iterdir()}
    assert names == {"audit.json", "audit.csv", "audit.png", "audit.pdf"}
    content = json.loads((swept / "audit" / "audit.json").read_text())
    counts = np.array(content["findings"][0]["counts"]["either"])
    np.testing.assert_array_equal(counts, [m["either_mistakes"] for m in groups[0].mistakes])


def refusal(call, *arguments) -> str:
    """The one sentence with which a command refuses."""
    code, out, err = call("audit", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("cmdplab: ")
    assert err.count("\n") == 1
    return err


def test_what_is_missing_is_said(call, swept, monkeypatch):
    monkeypatch.setattr("cmdplab.audit.files.draw", lambda findings, folder: [])  # drawn above
    victim = works_of(swept)[0].folder
    (victim / "manifest.json").unlink()
    words = f"1 of 9 runs of {swept} are not done (1 missing; {victim.name} is missing)"
    assert f"{words}: `cmdplab resume` them" in refusal(call, swept)
    code, out, err = call("audit", swept, "--partial", "--json")
    assert code == 0
    lost = "UOpt-RPGPD (bonus_scale 0.001) on random 3 2 2 1 has 2 of its 3 runs"
    assert json.loads(out)["notes"] == [words, lost]
    assert "1 of 9 runs" in err
    code, out, _ = call("audit", swept, "--partial")
    assert "2 to 3 runs of 3,000 episodes" in out


def test_a_failed_run_is_told_with_its_reason(call, swept):
    victim = works_of(swept)[-1].folder
    (works_of(swept)[0].folder / "manifest.json").unlink()
    record = manifest.read(victim)
    record.status, record.error = "failed", "Traceback ...\nZeroDivisionError: by zero\n"
    manifest.write(victim, record)
    said = refusal(call, swept)
    assert "2 of 9 runs" in said
    assert f"1 failed; {victim.name} is failed (ZeroDivisionError: by zero)" in said


def test_a_sweep_that_still_runs_is_waited_for(call, swept):
    victim = works_of(swept)[4].folder
    record = manifest.read(victim)
    record.status = "running"
    manifest.write(victim, record)
    with held(victim):
        said = refusal(call, swept)
    assert f"(1 running; {victim.name} is running): wait for those that run" in said
    # Its process is gone: nobody will finish it.
    assert f"(1 interrupted; {victim.name} is interrupted): `cmdplab res" in refusal(call, swept)


def test_an_unlimited_run_is_never_done(call, tmp_path):
    settings = {"problem": "published", "algorithm": "UOpt-RPGPD", "preset": "released"}
    forever = RunSettings(**settings, fingerprint="0" * 32, episodes=None, seed=0)
    manifest.write(tmp_path, manifest.Manifest(settings=forever, status="interrupted"))
    assert "an unlimited run is never done" in refusal(call, tmp_path)


def test_a_group_without_any_run_is_missed(call, swept):
    for work in works_of(swept):
        if work.settings.algorithm == "OptCMDP":
            (work.folder / "manifest.json").unlink()
    groups, notes = gather(swept, partial=True)
    assert [group.row.name for group in groups] == ["UOpt-RPGPD", "UOpt-RPGPD"]
    assert notes[-1] == "OptCMDP on random 3 2 2 1 has 0 of its 3 runs"
    for work in works_of(swept):
        (work.folder / "manifest.json").unlink(missing_ok=True)
    assert "holds no finished run" in refusal(call, swept, "--partial")


def test_problems_that_share_a_name_are_not_one_environment(call, tmp_path):
    # The same horizon and constraints: nothing in the records themselves would give them away.
    for n, states in enumerate((2, 4)):
        problem = random_problem(states, 2, 2, 1)
        replace(problem, name="mine").save(tmp_path / f"{n}.npz")
    values = {
        "name": "mixed",
        "episodes": 20,
        "problems": [{"file": "0.npz"}, {"file": "1.npz"}],
        "algorithms": [{"name": "UOpt-RPGPD"}],
    }
    sweep(parse_experiment(values, "here"), tmp_path / "out", base=tmp_path, workers=1)
    said = refusal(call, tmp_path / "out")
    assert "the runs on mine are of different problems" in said
    assert "(2, 2, 2, 1) and (4, 2, 2, 1): give them different names" in said


@pytest.mark.slow
def test_one_short_run_says_what_it_cannot_tell(call, tmp_path):
    random_problem(2, 2, 2, 1).save(tmp_path / "p.npz")
    values = experiment_values(5, {"file": "p.npz"})
    sweep(parse_experiment(values, "here"), tmp_path / "out", base=tmp_path, workers=1)
    code, out, _ = call("audit", tmp_path / "out")
    assert code == 0
    assert "1 run of 5 episodes" in out
    assert "no verdict: 4 quadruplings behind episode 32 need 8,192 episodes" in out
    assert "no intervals and bands: one seed is too few for an interval: at least 6" in out
    code, out, _ = call("audit", tmp_path / "out", "--json", "--epsilon", "2")
    found = json.loads(out)
    assert set(found["findings"][0]["unanswered"]) == {
        "verdict",
        "intervals and bands",
        "exponent of the mistakes",
        "exponent of the regret",
    }
    (answer,) = found["pac"]["2"].values()
    assert answer["why_not"] == "delta = 0.1 needs 29 seeds, and there are 1"
    assert (answer["mistakes"], answer["epsilon"]) == (None, 2.0)
    # What one run does show is shown.
    assert found["findings"][0]["final_gap"] is not None
    assert found["findings"][0]["over"] == "one run"
    content = json.loads((tmp_path / "out" / "audit" / "audit.json").read_text())
    assert content["findings"][0]["unanswered"] == found["findings"][0]["unanswered"]


def test_what_cannot_be_asked(call, swept_once, tmp_path):
    for value in ("0", "-1", "nan", "inf"):
        said = refusal(call, swept_once, "--epsilon", value)
        assert "epsilon is" in said
        assert "not a finite number > 0" in said
    assert "was not counted: the grid goes from" in refusal(call, swept_once, "--epsilon", "1e-9")
    for value in ("0", "1", "nan"):
        assert f"delta is {value}, not between 0 and 1" in refusal(
            call, swept_once, "--delta", value
        )
    assert "is no experiment" in refusal(call, tmp_path)
    assert "is no experiment" in refusal(call, tmp_path / "nowhere")
    assert "does not exist" in refusal(call, tmp_path / "nowhere.toml")
    (tmp_path / "file").write_text("no folder")
    assert "is neither a folder of records" in refusal(call, tmp_path / "file")
    assert not (swept_once / "audit").exists()
    assert "say which sweep" in refusal(call)
    assert "--seeds needs --failure-events" in refusal(call, swept_once, "--seeds", "0")
