"""The benches of truths: verdicts on synthetic runs whose answer can be proved."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from thousand_truths import FALLS, HORIZON, Case, gaussian, hidden, power, visible
from truths import ADVERSARIAL, FAMILIES, HELD_OUT, judged, score

from cmdplab.audit.findings import joint_verdict
from cmdplab.experiments.records.groups import units_of
from cmdplab.measures.verdict import Kind, verdict

FAMILIES_ENOUGH = 20


def scores(stops: list[int], families=FAMILIES) -> Counter[str]:
    return Counter(score(family, found) for family in families for found in judged(family, stops))


def scored(cases: list[Case]) -> Counter[str]:
    return Counter(case.score(verdict(case.curves(), HORIZON)) for case in cases)


@pytest.mark.parametrize("stop", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_wrong_verdicts_are_at_most_one_in_twenty(stop):
    assert len(FAMILIES) >= FAMILIES_ENOUGH
    found = scores([stop])
    assert found["wrong"] <= found.total() / 20
    assert found["right"] >= found.total() * 0.65


@pytest.mark.slow
@pytest.mark.parametrize("families", [HELD_OUT, ADVERSARIAL])
def test_families_that_no_rule_was_written_for_are_rarely_misjudged(families):
    # Growing swings are called "oscillating, not shrinking", which is true and too little.
    found = scores([100_000], families)
    assert found["wrong"] <= (1 if families is HELD_OUT else 0)


@pytest.mark.slow
def test_wrong_verdicts_are_at_most_one_in_twenty_after_a_million_episodes():
    found = scores([1_000_000])
    assert found["wrong"] <= found.total() / 20
    assert found["right"] >= found.total() * 0.8


@pytest.mark.parametrize("floor", [0.3, 0.5])
@pytest.mark.parametrize("episodes", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_errors_that_fall_to_a_floor_are_not_called_converging(floor, episodes):
    # 0.02 (s + (1 - s) (k / K)^-0.3), 3 % noise, eight runs: "converging" by the envelope alone
    shape, noise = power(0.3, floor, size=0.02), gaussian(0.03)
    names = [f"run {n}" for n in range(8)]
    runs = [Case("floor", n, shape, noise, episodes, frozenset(), floor, False) for n in names]
    found = [verdict(run.curves(), HORIZON) for run in runs]
    assert {each.kind for each in found} == {Kind.undecided}
    assert joint_verdict(found, units_of(names)).kind is Kind.undecided


def test_a_slow_power_law_under_heavy_noise_converges_with_a_bound_on_its_limit():
    names = [f"run {n}" for n in range(8)]
    cases = [Case("", n, power(0.5), gaussian(0.5), 100_000, FALLS, 0.0, False) for n in names]
    found = [verdict(case.curves(), HORIZON) for case in cases]
    joint = joint_verdict(found, units_of(names))
    assert joint.kind is Kind.shrinking
    assert joint.limit == max(each.limit for each in found if each.limit is not None)
    assert joint.words.endswith("is not excluded")


def test_of_a_sample_of_the_thousand_truths_none_is_misjudged():
    cases = [case for case in visible() if case.episodes <= 100_000][::12]
    assert len(cases) >= 40
    found = scored(cases)
    assert found["wrong"] == 0
    assert found["right"] >= 0.3 * found.total()


@pytest.mark.slow
def test_of_the_thousand_truths_at_most_one_in_a_hundred_is_misjudged():
    cases = visible()
    found = scored(cases)
    assert found.total() >= 1000
    assert found["wrong"] <= found.total() / 100
    falling = scored([case for case in cases if case.accepted == FALLS])
    assert falling["right"] >= 219  # of 368, as by a rule without a bound on the limit


@pytest.mark.slow
def test_of_a_thousand_hidden_truths_at_most_one_in_a_hundred_is_misjudged():
    found = scored(hidden())
    assert found.total() >= 1000
    assert found["wrong"] <= found.total() / 100


def test_the_bench_gives_a_case_the_same_noise_each_time():
    case = next(case for case in visible() if "noise 50%" in case.name)
    once, again = case.curves(), case.curves()
    np.testing.assert_array_equal(once["gap"], again["gap"])
