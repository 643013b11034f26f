"""Exact quantities of a policy, against enumeration and against each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conftest import problems, random_policy, random_problem
from hypothesis import given, strategies as st

import cmdplab
from cmdplab.cmdp import exact
from cmdplab.errors import InputError


@given(problem=problems(), seed=st.integers(0, 1000))
def test_occupancies_are_distributions_that_flow(problem, seed):
    policy = random_policy(problem, seed)
    pairs = exact.occupancy(problem, policy)
    np.testing.assert_allclose(pairs.sum(axis=(1, 2)), 1.0, atol=1e-12)
    arriving = np.einsum("hxa,hxay->hy", pairs, problem.transition)
    np.testing.assert_allclose(pairs[1:].sum(axis=2), arriving[:-1], atol=1e-12)
    np.testing.assert_allclose(exact.policy_of(pairs, policy) * pairs.sum(-1)[..., None], pairs)


@given(problem=problems(), seed=st.integers(0, 1000))
def test_forward_and_backward_agree(problem, seed):
    policy = random_policy(problem, seed)
    forward = exact.returns(problem, policy)
    for n, reward in enumerate(problem.reward):
        q = exact.action_values(problem, policy, reward)
        backward = np.sum(policy[0, problem.start] * q[0, problem.start])
        np.testing.assert_allclose(forward[n], backward, atol=1e-12)


def test_returns_by_enumerating_every_trajectory():
    problem = random_problem(3, 2, 3, 1)
    policy = random_policy(problem, 5)
    total = np.zeros(2)
    for actions in itertools.product(range(2), repeat=3):
        for successors in itertools.product(range(3), repeat=3):
            states = (problem.start, *successors)
            chance, earned = 1.0, np.zeros(2)
            for h, a in enumerate(actions):
                chance *= (
                    policy[h, states[h], a] * problem.transition[h, states[h], a, states[h + 1]]
                )
                earned += problem.reward[:, h, states[h], a]
            total += chance * earned
    np.testing.assert_allclose(exact.returns(problem, policy), total, atol=1e-13)


def test_greedy_beats_every_deterministic_policy():
    problem = random_problem(2, 2, 3, 0)
    best, policy = exact.greedy(problem, problem.reward[0])
    values = []
    for choice in itertools.product(range(2), repeat=6):
        deterministic = np.eye(2)[np.array(choice).reshape(3, 2)]
        values.append(exact.returns(problem, deterministic)[0])
    np.testing.assert_allclose(best, max(values), atol=1e-14)
    np.testing.assert_allclose(exact.returns(problem, policy)[0], best, atol=1e-14)


def test_an_evaluation_is_returns_violations_and_occupancy():
    problem = random_problem(4, 3, 3, 2)
    policy = random_policy(problem, 1)
    found = cmdplab.evaluate(problem, policy.tolist())
    np.testing.assert_array_equal(found.occupancy, exact.occupancy(problem, policy))
    np.testing.assert_allclose(found.returns, exact.returns(problem, policy), atol=1e-15)
    np.testing.assert_allclose(found.violation, problem.threshold - found.utility, atol=1e-15)
    assert found.value == found.returns[0]


def spoiled(entry, value):
    policy = np.full((3, 4, 3), 1 / 3)
    policy[entry] = value
    return policy


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (np.full((3, 4, 3), 2 / 3), r"the policy sums to 2 at \[0, 0\], not to 1"),
        (spoiled((2, 1), [-0.5, 1.0, 0.5]), r"has -0.5 at \[2, 1, 0\], not a probability"),
        (spoiled((1, 3, 2), np.nan), r"has nan at \[1, 3, 2\], not a probability"),
        (spoiled((1, 3, 2), np.inf), r"has inf at \[1, 3, 2\], not a probability"),
        (np.full((4, 3), 1 / 3), r"has the shape \(4, 3\), not \(3, 4, 3\)"),
        (np.full((3, 4, 3), "a"), "the policy is not an array of real numbers"),
        (np.full((3, 4, 3), 1 / 3, complex), "the policy is not an array of real numbers"),
        (None, "the policy is not an array of real numbers"),
        (spoiled((0, 0), [0.0, 1.0, 0.0]), r"takes action 1 at \[0, 0\], which is closed"),
    ],
)
def test_what_is_no_policy_is_not_evaluated(policy, sentence):
    mask = np.ones((3, 4, 3), bool)
    mask[0, 0, 1] = False
    free = random_problem(4, 3, 3, 1)
    problem = cmdplab.CMDP(free.transition, free.reward, free.threshold, mask=mask)
    with pytest.raises(InputError, match=sentence):
        cmdplab.evaluate(problem, policy)
