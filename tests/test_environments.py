"""Environments: what they promise, and that a seed means the same CMDP for years."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from conftest import largest_utility

from cmdplab.environments import ENVIRONMENTS, find, make
from cmdplab.errors import InputError
from cmdplab.solvers import solve

PINNED = {
    "published": "e4f8a8cf25c82b79",
    "random-printed": "78a18c29873f8f21",
    "random-released": "159e60405d0f6714",
    "random-independent": "070a7548a05273cc",
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
