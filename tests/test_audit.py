"""The audit, on sequences whose answers are known and on small sweeps."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import random_problem

from cmdplab import sweep
from cmdplab.algorithms import algorithm
from cmdplab.audit import Group, audit, gather
from cmdplab.audit.findings import mistakes_at, sample_complexity
from cmdplab.engines.protocol import Chunk
from cmdplab.errors import InputError
from cmdplab.experiment import parse_experiment
from cmdplab.measures import Measures
from cmdplab.sweeping import works_of

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
    return Group(name, "synthetic", row, len(gaps[0]), seeds, 1, curves, mistakes)


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
    assert found.theorem["mistakes"] == pytest.approx(2 / 0.03)
    assert found.theorem["regret"] == pytest.approx(1 - 0.015)


def test_verdicts_are_those_of_the_sequences():
    k = np.arange(1.0, K + 1)
    sequences = {
        "converges": 1.0 / np.sqrt(k),
        "oscillates": np.sin(k / 500.0),
        "biased": 0.5 + 1.0 / k,
        "still moving": 20.0 * k**-0.35,
    }
    for word, gap in sequences.items():
        assert audit(group_of([gap, gap])).verdict == word
    mixed = audit(group_of([sequences["converges"], sequences["biased"]]))
    assert mixed.verdict == "converges in 1 of 2, biased in 1 of 2"
    short = audit(group_of([gap[:5000], gap[:5000]]))
    assert short.verdict == "too short to tell"


def test_an_oscillation_is_not_fitted_and_its_average_is_near_zero():
    k = np.arange(1.0, K + 1)
    found = audit(group_of([np.sin(k / 300.0 + n) for n in range(4)]))
    assert found.settled is None or found.settled > 0.9
    assert found.mistake_exponent.why_not
    assert abs(found.average_gap) < 0.02
    assert found.amplitude == pytest.approx(2.0, rel=0.01)
    assert found.period == pytest.approx(2 * np.pi * 300.0, rel=0.1)


def test_one_run_has_no_band_and_no_interval():
    found = audit(group_of(power_law(0.5, runs=1)))
    assert found.mistakes["either"] is None
    assert found.final_gap is None
    assert "seed" in found.mistake_exponent.why_not or "run" in found.mistake_exponent.why_not


def test_sample_complexity_needs_enough_runs_and_final_counts():
    found = audit(group_of(power_law(0.5, runs=30)))
    epsilon = found.epsilon[np.searchsorted(found.epsilon, 0.1)]
    count, why = sample_complexity(found, epsilon, 0.1)
    assert why == ""
    assert count == mistakes_at(found, epsilon)["mistakes"].max()
    assert sample_complexity(found, epsilon, 0.01) == (
        None,
        "delta = 0.01 needs 299 runs, and there are 30",
    )
    tiny = found.epsilon[0]
    assert "longer run" in sample_complexity(found, tiny, 0.1)[1]
    with pytest.raises(InputError, match="was not counted"):
        mistakes_at(found, 1e-9)


@pytest.fixture
def swept(tmp_path):
    random_problem(3, 2, 2, 1).save(tmp_path / "p.npz")
    values = {
        "name": "small",
        "episodes": 3000,
        "seeds": 3,
        "problems": [{"file": "p.npz"}],
        "algorithms": [{"name": "UOpt-RPGPD", "bonus_scale": [1e-3, 1e-2]}, {"name": "OptCMDP"}],
    }
    sweep(parse_experiment(values, "here"), tmp_path / "out", base=tmp_path)
    return tmp_path / "out"


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
    assert call("audit", swept)[0] == 0


def test_what_is_missing_is_said(call, swept, tmp_path):
    victim = works_of(swept)[0].folder
    (victim / "manifest.json").unlink()
    code, _, err = call("audit", swept)
    assert code == 2
    assert f"1 of 9 runs of {swept} are not done ({victim.name} is missing)" in err
    code, out, err = call("audit", swept, "--partial", "--json")
    assert code == 0
    assert "1 of 9 runs" in err
    assert json.loads(out)["notes"]
    code, _, err = call("audit", swept, "--partial", "--epsilon", "1e-9")
    assert (code, "was not counted" in err) == (2, True)
    code, _, err = call("audit", tmp_path / "nowhere")
    assert (code, "is no experiment" in err) == (2, True)
