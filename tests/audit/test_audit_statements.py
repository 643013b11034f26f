"""What an audit may say: over instances, from six samples on, and only of what is a power law."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from conftest import random_problem
from faults import experiment_values

from cmdplab import sweep
from cmdplab.algorithms import algorithm
from cmdplab.algorithms.learner import Chunk
from cmdplab.audit import Group, audit, events, mistakes_at, sample_complexity
from cmdplab.audit.exponents import TRANSIENT, exponent_of_mistakes, exponent_of_regret
from cmdplab.audit.files import row_of
from cmdplab.audit.findings import average_violation, extent, unanswered
from cmdplab.errors import InputError
from cmdplab.experiments.experiment import parse_experiment
from cmdplab.experiments.records.groups import units_of
from cmdplab.files import sealed
from cmdplab.measures.measures import Measures
from cmdplab.measures.mistakes import epsilons
from cmdplab.statistics import count_band, median_interval

pytestmark = pytest.mark.usefixtures("one_process")

K = 30_000
TEN_BY_FIVE = [f"instance {n}" for n in range(10) for _ in range(5)]


def measured(gap, violations) -> Measures:
    """Of a run with gaps [K] and violations [K, N]."""
    measures = Measures(1.0, np.ones(violations.shape[1]), 10)
    returns = np.hstack([1.0 - gap[:, None], 1.0 - violations])
    measures.add(Chunk(returns, np.zeros(violations.shape)))
    return measures


def group_of(gaps, instance) -> Group:
    """Runs with the given gaps [runs, K] on the given instances, feasible throughout."""
    runs = [measured(gap, np.zeros((len(gap), 1))) for gap in np.asarray(gaps)]
    row = algorithm("UOpt-RPGPD", "printed")
    curves, mistakes = [run.curves() for run in runs], [run.mistakes() for run in runs]
    seeds = list(range(len(runs)))
    return Group("UOpt", "synthetic", row, len(gaps[0]), seeds, list(instance), curves, mistakes)


def power_laws(scales, exponent=0.5, episodes=K):
    return np.asarray(scales)[:, None] * np.arange(1.0, episodes + 1.0) ** -exponent


# Over what


def test_one_number_for_each_instance():
    units = units_of(["b", "b", "a", "b"])
    assert (units.instance, units.over) == ([0, 0, 1, 0], "2 instances")
    np.testing.assert_array_equal(units.reduced(np.array([1.0, 5.0, 7.0, 2.0])), [2.0, 7.0])
    np.testing.assert_array_equal(units.worst(np.array([1.0, 5.0, 7.0, 2.0])), [5.0, 7.0])
    table = np.arange(8.0).reshape(4, 2)
    np.testing.assert_array_equal(units.reduced(table), [[2.0, 3.0], [4.0, 5.0]])
    alone = units_of(["a", "a", "a"])
    np.testing.assert_array_equal(alone.reduced(np.array([3.0, 1.0, 2.0])), [3.0, 1.0, 2.0])
    assert (alone.over, units_of(["a"]).over) == ("3 seeds of one instance", "one run")


def clustered(draws):
    """[400, 50]: ten instances by five seeds, sd 1 between instances and 0.3 within."""
    between = np.repeat(draws.normal(size=(400, 10)), 5, axis=1)
    return between + 0.3 * draws.normal(size=(400, 50))


def test_intervals_cover_where_runs_of_an_instance_are_alike():
    units = units_of(TEN_BY_FIVE)
    samples = clustered(np.random.default_rng(0))
    inside = {
        name: np.mean(
            [(i := median_interval(of(values))).low <= 0.0 <= i.high for values in samples]
        )
        for name, of in (("instances", units.reduced), ("runs", np.asarray))
    }
    assert 0.88 <= inside["instances"] <= 1.0
    assert inside["runs"] < 0.75  # what treating runs as independent would give


def test_bands_of_counts_cover_where_runs_of_an_instance_are_alike():
    units = units_of(TEN_BY_FIVE)
    means = np.linspace(6.0, 3.0, 20)
    truth = np.expm1(means)
    covered = []
    for n, shifts in enumerate(clustered(np.random.default_rng(1))):
        counts = np.expm1(np.maximum(means + 0.5 * shifts[:, None], 0.0))
        band = count_band(units.reduced(counts), resamples=199, seed=n)
        covered.append(np.all((band.low <= truth) & (truth <= band.high)))
    assert 0.88 <= np.mean(covered) <= 1.0


def test_a_finding_is_over_instances():
    scales = np.repeat(np.linspace(0.5, 2.0, 10), 5) * np.tile([0.9, 0.95, 1.0, 1.05, 1.1], 10)
    found = audit(group_of(power_laws(scales), TEN_BY_FIVE))
    assert (found.runs, found.instances, found.over) == (50, 10, "10 instances")
    assert (
        found.final_gap.seeds == found.mistake_exponent.seeds == found.regret_exponent.seeds == 10
    )
    assert found.mistakes["either"].seeds == 10
    assert found.final_gap.middle == pytest.approx(np.median(np.linspace(0.5, 2.0, 10)) * K**-0.5)
    assert extent([found]) == "50 runs of 30,000 episodes, statistics over 10 instances"
    assert row_of(found)["over"] == "10 instances"
    # PAC: the worst seed of each of ten instances; delta = 0.3 is the first that ten can carry.
    worst = mistakes_at(found, 0.1).mistakes.reshape(10, 5).max(axis=1)
    answer = sample_complexity(found, 0.1, 0.3)
    assert (answer.mistakes, answer.over) == (worst.max(), "10 instances")
    why = sample_complexity(found, 0.1, 0.1).why_not
    assert why == "delta = 0.1 needs 29 instances, and there are 10"


def test_five_samples_have_a_middle_and_no_interval():
    names = ["a", "b", "c", "d", "e"]
    few = audit(group_of(power_laws([1.0, 1.1, 1.2, 1.3, 1.4]), names))
    why = "5 instances are too few for an interval: at least 6"
    assert unanswered(few)["intervals and bands"] == why
    assert few.mistakes["either"] is None
    assert few.final_gap.middle == pytest.approx(1.2 * K**-0.5)
    assert np.isnan([few.final_gap.low, few.final_gap.high]).all()
    short = "5 instances are too few for an exponent: at least 6"
    assert unanswered(few)["exponent of the mistakes"] == short
    assert unanswered(few)["exponent of the regret"] == short
    assert np.isnan(few.mistake_exponent.slope)
    six = audit(group_of(power_laws(np.linspace(1.0, 1.4, 6)), [*names, "f"]))
    assert "intervals and bands" not in unanswered(six)
    assert six.mistakes["either"] is not None
    assert six.final_gap.low < six.final_gap.middle < six.final_gap.high


# At one epsilon


def test_a_round_epsilon_is_answered_at_the_grid_point_below():
    found = audit(group_of(power_laws([1.0]), ["a"]))
    for asked in (0.07, 0.1, 0.5):
        answer = mistakes_at(found, asked)
        assert answer.epsilon == found.epsilon[found.epsilon <= asked * (1.0 + 1e-6)].max()
        exactly = np.sum(power_laws([1.0]) > asked)
        assert exactly <= answer.mistakes[0] <= 1.2 * exactly + 1.0
        assert sample_complexity(found, asked, 0.1).epsilon == answer.epsilon
    for point in (found.epsilon[0], found.epsilon[77], found.epsilon[-1]):
        assert mistakes_at(found, float(f"{point:g}")).epsilon == point
    for outside in (9e-5, 10.1):
        with pytest.raises(InputError, match=r"was not counted: the grid goes from 0.0001 to 10"):
            mistakes_at(found, outside)


def test_mistakes_of_what_was_not_counted_are_refused():
    found = audit(group_of(power_laws([1.0]), ["a"]))
    with pytest.raises(InputError, match="'violaton' were not counted: choose from gap, viol"):
        mistakes_at(found, 0.1, "violaton")
    assert mistakes_at(found, 0.1, "violation").mistakes == [0.0]
    assert mistakes_at(found, 0.1).mistakes == mistakes_at(found, 0.1, "gap").mistakes


@pytest.mark.slow
def test_an_epsilon_is_checked_before_the_sweep_and_may_be_common_to_grids(
    call, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for horizon in (2, 3):
        problem = random_problem(2, 2, horizon, 1)
        replace(problem, name=f"H {horizon}").save(tmp_path / f"{horizon}.npz")
    (tmp_path / "e.toml").write_text(
        'name = "two"\nepisodes = 20\nseeds = 2\nproblems = [{file = "2.npz"}, {file = "3.npz"}]\n'
        'algorithms = [{name = "UOpt-RPGPD"}]\n'
    )
    for value in ("2.5", "1e-6", "nan"):
        code, _, err = call("audit", "e.toml", "--epsilon", value)
        assert (code, err.count("\n")) == (2, 1)
        assert "epsilon" in err
        assert not (tmp_path / "runs").exists()
    code, out, _ = call("audit", "e.toml", "--epsilon", "0.1", "--json", "--workers", "1")
    assert code == 0
    answers = json.loads(out)["pac"]["0.1"]
    points = [answer["epsilon"] for answer in answers.values()]
    assert points == [max(e for e in epsilons(h) if e <= 0.1) for h in (2, 3)]
    code, out, _ = call("audit", "runs/two", "--epsilon", "0.1", "--delta", "0.9")
    assert code == 0
    # 20 episodes of a bonus-driven beginning: mistakes may still be made, or are bounded.
    assert "epsilon 0.1, delta 0.9: " in out
    assert "66.7, 2.5~" in out
    assert "~ no guarantee applies as it was run" in out


# Exponents


def test_the_onset_of_mistakes_is_not_fitted():
    # Steep while there are few, eps^-1.5 behind: only the second is the exponent.
    epsilon = epsilons(10)
    counts = np.where(
        epsilon > 0.5, 100.0 * (epsilon / 0.5) ** -8.0, 100.0 * (epsilon / 0.5) ** -1.5
    )
    runs = np.linspace(1.0, 1.1, 6)[:, None] * counts
    fit = exponent_of_mistakes(epsilon, runs, 0.01, 10**6)
    assert fit.slope == pytest.approx(1.5, rel=1e-6)
    bent = np.where(epsilon > 0.05, runs, runs * (epsilon / 0.05) ** -2.7)
    last = exponent_of_mistakes(epsilon, bent, 0.02, 10**6)
    assert last.local
    assert last.slope == pytest.approx(4.2, rel=1e-6)
    assert "below 100" in exponent_of_mistakes(epsilon, runs, 1.0, 10**6).why_not


def test_nothing_is_fitted_to_runs_that_are_too_short():
    found = audit(group_of(power_laws(np.linspace(1.0, 2.0, 6), episodes=5000), "abcdef"))
    assert found.verdict == "undecided before 8,192 episodes"
    for fit in (found.mistake_exponent, found.regret_exponent):
        assert np.isnan(fit.slope)
        assert fit.why_not == "it needs 8,192 episodes"


def test_regret_that_grows_faster_than_episodes_is_a_transient():
    k = np.geomspace(1.0, 1e5, 500)
    scales = np.linspace(1.0, 2.0, 6)[:, None]
    assert exponent_of_regret(k, scales * k**1.2).why_not == TRANSIENT
    for exponent in (0.5, 1.0):
        assert exponent_of_regret(k, scales * k**exponent).slope == pytest.approx(
            exponent, abs=1e-4
        )


def test_what_was_lost_before_is_in_no_exponent_of_regret():
    # A bias of 0.1 behind a transient of 4000, with which ln R has the slope 0.96 at 10^6.
    k = np.unique(np.geomspace(1.0, 1e6, 4000).round())
    scales = np.linspace(1.0, 2.0, 6)[:, None]
    settled = exponent_of_regret(k, scales * (0.1 * k + 4000.0 * -np.expm1(-k / 3000.0)))
    assert settled.slope == pytest.approx(1.0, abs=0.005)
    slower = exponent_of_regret(k, scales * (0.1 * k + 20.0 * np.sqrt(k)))
    assert slower.local
    # Errors k^-0.4 + 2 k^-0.5 + 20 / k have the exponent 0.6, and no run of 10^6 shows it.
    mixture = exponent_of_regret(k, scales * (k**0.6 / 0.6 + 4.0 * k**0.5 + 20.0 * np.log(k)))
    assert mixture.local
    assert mixture.slope < 0.58


def test_mistakes_of_a_sum_of_powers_have_local_exponents():
    # Errors k^-0.4 + 2 k^-0.5 + 20 / k: (1 / epsilon)^2.5 in the limit, less before.
    k = np.arange(1.0, 1e6)
    errors = k**-0.4 + 2.0 * k**-0.5 + 20.0 / k
    epsilon = epsilons(10)
    counts = np.searchsorted(-errors, -epsilon).astype(float)
    fit = exponent_of_mistakes(epsilon, np.tile(counts, (6, 1)), 0.0099, 10**6)
    assert fit.local
    assert fit.slope < 2.4
    pure = np.searchsorted(-(k**-0.4), -epsilon).astype(float)
    fit = exponent_of_mistakes(epsilon, np.tile(pure, (6, 1)), 0.0099, 10**6)
    assert not fit.local
    assert fit.low - 0.02 <= 2.5 <= fit.high + 0.02


# The average iterate


def test_the_violation_of_the_average_iterate_is_a_maximum_of_averages():
    # Two constraints that are violated by turns: each is met on average, one never.
    k = np.arange(1.0, K + 1.0)
    wave = np.sin(2.0 * np.pi * k / 3000.0)
    violations = np.stack([wave - 0.1, -wave - 0.2], axis=1)
    curves = measured(np.zeros(K), violations).curves()
    exact = violations.mean(axis=0).max()
    assert exact == pytest.approx(-0.1)
    assert average_violation(curves) == pytest.approx(exact, abs=2e-3)
    assert curves["weak_violation_regret"][-1] / K > 0.4  # the average of the maximum
    one = measured(np.zeros(K), violations[:, :1]).curves()
    assert average_violation(one) == pytest.approx(-0.1, abs=1e-12)
    short = measured(np.zeros(900), violations[:900]).curves()
    assert average_violation(short) == pytest.approx(violations[:900].mean(axis=0).max(), abs=1e-12)


# Failure events


@pytest.mark.parametrize("episode", [999, -5, 0])
def test_an_impossible_first_episode_is_refused(tmp_path, episode):
    problem = events.problem_of("small")
    events.failure_events(problem, tmp_path, seeds=2, episodes=5)
    path = tmp_path / events.NAME
    content = json.loads(path.read_text())
    content["first"][1][2] = episode
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="does not match its digest"):
        events.failure_events(problem, tmp_path, seeds=3, episodes=5)
    content.pop("digest")
    path.write_text(sealed(json.dumps(content)))
    with pytest.raises(InputError, match=f"seed 1 has the event l1 in episode {episode} of 5"):
        events.failure_events(problem, tmp_path, seeds=3, episodes=5)


@pytest.mark.slow
def test_a_sweep_over_instances_says_so(call, tmp_path):
    for n in range(2):
        replace(random_problem(2, 2, 2, 1, n), name=f"p (seed {n})").save(tmp_path / f"{n}.npz")
    values = experiment_values(20, {"file": "0.npz"}, {"file": "1.npz"}, seeds=2)
    sweep(parse_experiment(values, "here"), tmp_path / "out", base=tmp_path, workers=1)
    code, out, _ = call("audit", tmp_path / "out")
    assert code == 0
    assert "p: 4 runs of 20 episodes, statistics over 2 instances" in out
    assert "2 instances are too few for an interval: at least 6" in out
    content = json.loads((tmp_path / "out" / "audit" / "audit.json").read_text())
    (found,) = content["findings"]
    assert found["over"] == "2 instances"
    assert found["units"]["instance"] == [0, 1, 0, 1]
    assert found["final_gap"]["low"] is None
