"""Environments: what they promise, and that a seed means the same CMDP for years."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from conftest import largest_utility

from cmdplab.environments import ENVIRONMENTS, find, make
from cmdplab.errors import InputError
from cmdplab.exact import greedy
from cmdplab.solvers import solve

PINNED = {
    "published": "e4f8a8cf25c82b79",
    "random-printed": "78a18c29873f8f21",
    "random-released": "159e60405d0f6714",
    "random-independent": "070a7548a05273cc",
    "media-streaming": "b7e14d8382d2bceb",
    "three-state": "16e60171f39d4ff7",
    "inventory": "252f1dc25c7b1749",
    "job-scheduling": "0c7f3c15085ebcdc",
}

# name -> optimum, multiplier, value without the constraint
CERTIFIED = {
    "published": (5.18840, 1.0, 9.18217),
    "media-streaming": (10 - 6.74670, 0.49519, 10 - 5.39314),
    "three-state": (2.0, 2 / 3, 4.0),
    "inventory": (6.66532, 0.92121, 7.0),
    "job-scheduling": (156 / 17, 4 / 17, 10.0),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_can_be_solved(name):
    s = solve(make(name, 1 if ENVIRONMENTS[name].random else 0))
    assert s.feasible
    assert s.gap <= 1e-9


@pytest.mark.parametrize("name", ["random-printed", "random-released", "random-independent"])
def test_random_environments_follow_the_paper(name):
    problem = make(name, 4)
    assert (problem.states, problem.actions, problem.horizon) == (30, 3, 10)
    assert problem.threshold[0] == pytest.approx(largest_utility(problem) / 2)
    again, other = make(name, 4), make(name, 5)
    np.testing.assert_array_equal(problem.transition, again.transition)
    assert not np.array_equal(problem.transition, other.transition)
    objective, utility = problem.reward
    assert np.mean(objective == 0.0) == pytest.approx(0.5, abs=0.06)
    if name == "random-released":
        assert set(np.unique(objective)) == {0.0, 1.0}
    if name != "random-independent":
        np.testing.assert_allclose(objective + utility, 1.0)
    else:
        assert abs(np.corrcoef(objective.ravel(), utility.ravel())[0, 1]) < 0.1


def test_every_single_instance_has_its_certified_values():
    assert set(CERTIFIED) == {name for name, each in ENVIRONMENTS.items() if not each.random}


@pytest.mark.parametrize("name", CERTIFIED)
def test_certified_values(name):
    problem = make(name)
    solution = solve(problem)
    value, multiplier, unconstrained = CERTIFIED[name]
    assert solution.value == pytest.approx(value, abs=6e-6)
    assert solution.multiplier == pytest.approx([multiplier], abs=6e-6)
    assert greedy(problem, problem.reward[0])[0] == pytest.approx(unconstrained, abs=6e-6)


def test_media_streaming_moves_as_released():
    fast, slow = make("media-streaming").transition[0, 5, :, 4:7]
    np.testing.assert_allclose(fast, [0.08, 0.74, 0.18])
    np.testing.assert_allclose(slow, [0.72, 0.26, 0.02])


def test_media_streaming_randomises_where_the_release_does():
    policy = solve(make("media-streaming")).policy
    assert policy[3, 0] == pytest.approx([0.115, 0.885], abs=6e-4)


def test_the_safe_baselines_of_dope_have_their_values():
    for name, value in (("media-streaming", 10 - 8.98349), ("inventory", 1.55571)):
        problem = make(name)
        budget = (problem.horizon - problem.threshold) / 5
        tight = replace(problem, threshold=problem.horizon - budget)
        assert solve(tight).value == pytest.approx(value, abs=6e-6)


def test_inventory_randomises_where_the_release_does():
    policy = solve(make("inventory")).policy
    assert policy[6, 1] == pytest.approx([0.367, 0, 0.633, 0, 0, 0], abs=6e-4)


def test_an_order_that_would_overfill_is_the_largest_allowed_one():
    problem = make("inventory")
    for stock in range(6):
        largest = 5 - stock
        for order in range(largest, 6):
            for array in (problem.transition, problem.reward[0], problem.reward[1]):
                np.testing.assert_array_equal(array[:, stock, order], array[:, stock, largest])


def test_working_with_few_jobs_left():
    problem = make("job-scheduling")
    np.testing.assert_allclose(problem.transition[0, 1, 1, :2], [0.9, 0.1])
    np.testing.assert_allclose(problem.reward[1, 0, :3, 1], [0.0, 0.45, 0.85])
    np.testing.assert_allclose(problem.reward[0, :, 0, 1], [0.8] * 2 + [0.1] * 4 + [0.8] * 4)


def fingerprint(name: str) -> str:
    problem = make(name, 0)
    rounded = [np.round(array, 9) + 0.0 for array in (problem.transition, problem.reward)]
    return hashlib.sha256(b"".join(each.tobytes() for each in rounded)).hexdigest()[:16]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_instances_are_pinned(name):
    assert fingerprint(name) == PINNED[name]


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(InputError, match="did you mean 'published'"):
        make("publshed")
    with pytest.raises(InputError, match="instance seed is -1"):
        make("random-printed", -1)


def test_a_file_or_a_name(tmp_path):
    make("published").save(tmp_path / "p.npz")
    assert find(str(tmp_path / "p.npz")).name == "published"
    with pytest.raises(InputError, match="does not exist"):
        find("nowhere.npz")
