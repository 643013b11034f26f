"""The price of a promise."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import problems, random_problem
from hypothesis import given, strategies as st

from cmdplab import make, solve
from cmdplab.errors import InputError
from cmdplab.solvers.thresholds.frontier import frontier


@given(problem=problems(constraints=st.integers(1, 2)))
def test_the_frontier_is_concave_and_falls_with_the_multiplier_as_slope(problem):
    found = frontier(problem, 1, 9)
    assert np.all(np.diff(found.value) <= 1e-8)
    assert np.all(np.diff(found.value, 2) <= 1e-7)
    steps = np.diff(found.threshold)
    if steps[0] > 1e-3:  # concave: the slope of a chord lies between those at its ends
        slopes = -np.diff(found.value) / steps
        assert np.all(slopes <= found.multiplier[1:] + 1e-5)
        assert np.all(slopes[:-1] >= found.multiplier[:-2] - 1e-5)


def test_the_given_threshold_lies_on_it():
    problem = make("media-streaming")
    found = frontier(problem, points=201)
    at = np.interp(5.0, found.threshold, found.value)
    assert at == pytest.approx(solve(problem).value, abs=1e-3)
    assert found.largest == pytest.approx(10.0)
    assert found.certificate <= 1e-9
    assert found.value[0] == pytest.approx(10 - 5.39314, abs=1e-5)  # published: unconstrained


def test_two_states_by_hand(two_state):
    # Mixtures of (10, 0) and (0, 9): value 10 - (10/9) b.
    found = frontier(two_state, points=10)
    np.testing.assert_allclose(found.value, 10.0 - 10.0 / 9.0 * found.threshold, atol=1e-8)


def test_bad_questions(call, tmp_path):
    problem = random_problem(3, 2, 2, 1)
    with pytest.raises(InputError, match="constraint 2 does not exist"):
        frontier(problem, 2)
    with pytest.raises(InputError, match="points is 1"):
        frontier(problem, 1, 1)
    code, out, _ = call("frontier", "media-streaming", "--points", "5", "--json")
    assert (code, len(json.loads(out)["value"])) == (0, 5)
    code, out, _ = call("frontier", "media-streaming", "--figure", tmp_path / "f.svg")
    assert (code, (tmp_path / "f.svg").exists()) == (0, True)
    assert "free from 8.55699, impossible below 0" in out  # a budget, in the units of the source
    assert call("frontier", "media-streaming", "--figure", tmp_path / "f.txt")[0] == 2
