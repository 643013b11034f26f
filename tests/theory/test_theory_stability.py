"""The linearised update at the saddle point, against the update itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import binding

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.theory.saddle import coupling, covariance, growth, largest_step, saddle_point
from cmdplab.theory.soft import regularised_values

QUICK = [(1, 0.03), (2, 0.1)]  # of constraints and temperatures


def update(problem, log_policy, multiplier, eta, tau):
    """Eqs. 4 and 5 with the true kernel: no bonus, no cap."""
    total = np.tensordot([1.0, *multiplier], problem.reward, axes=1)
    policy = np.exp(log_policy)
    q = regularised_values(problem, policy, total, tau).q
    logits = (1.0 - eta * tau) * log_policy + eta * q
    logits -= np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    value = exact.returns(problem, policy)[1:]
    return logits, np.maximum(multiplier + eta * (problem.threshold - value - tau * multiplier), 0)


def jacobian(problem, saddle, eta):
    """Of the update, by central differences, policies by their logarithms."""
    shape, tau = saddle.log_policy.shape, saddle.temperature

    def flat(point):
        logits = point[: math.prod(shape)].reshape(shape)
        logits = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
        policy, multiplier = update(problem, logits, point[math.prod(shape) :], eta, tau)
        return np.concatenate([policy.ravel(), multiplier])

    at, width = np.concatenate([saddle.log_policy.ravel(), saddle.multiplier]), 1e-6
    sides = [flat(at + width * e) - flat(at - width * e) for e in np.eye(len(at))]
    return np.array(sides).T / (2.0 * width)


@pytest.mark.parametrize(
    ("constraints", "tau"),
    [
        (n, tau) if (n, tau) in QUICK else pytest.param(n, tau, marks=pytest.mark.slow)
        for n in (1, 2, 3)
        for tau in (1.0, 0.1, 0.03)
    ],
)
def test_growth_is_the_spectral_radius_of_the_update(constraints, tau):
    problem = binding(constraints)
    saddle = saddle_point(problem, tau)
    for eta in (0.02, 0.2, 1.0):
        radius = np.max(np.abs(np.linalg.eigvals(jacobian(problem, saddle, eta))))
        assert growth(problem, saddle, eta) == pytest.approx(radius, abs=1e-5)


@pytest.mark.parametrize(
    ("constraints", "tau"),
    [
        (1, 0.3),
        (2, 0.05),
        *(
            pytest.param(n, tau, marks=pytest.mark.slow)
            for n, tau in [(1, 0.05), (2, 0.3), (3, 0.3), (3, 0.05)]
        ),
    ],
)
def test_updates_settle_below_the_largest_step_and_leave_above_it(constraints, tau):
    problem = binding(constraints, seed=500)
    saddle = saddle_point(problem, tau)
    for share in (0.95, 1.05):
        eta = share * largest_step(problem, saddle)
        rounds = round(6.0 / abs(math.log(growth(problem, saddle, eta))))
        policy, multiplier = saddle.log_policy, saddle.multiplier + 1e-7
        for _ in range(rounds):
            policy, multiplier = update(problem, policy, multiplier, eta, tau)
        away = np.linalg.norm(multiplier - saddle.multiplier)
        away += np.linalg.norm(np.exp(policy) - saddle.policy)
        assert (away < 1e-7) == (share < 1.0)


def test_the_boundary_in_closed_form():
    """One state, one step, arms that pay r = 1 - u: Cov(u, u) = p (1 - p), C no sum but that."""
    reward = np.array([[[[1.0, 0.0]]], [[[0.0, 1.0]]]])
    problem = CMDP(np.ones((1, 1, 2, 1)), reward, [0.5])
    saddle = saddle_point(problem, 0.1)
    p = saddle.policy[0, 0, 0]
    assert coupling(problem, saddle) == pytest.approx(p * (1.0 - p))
    assert largest_step(problem, saddle) == pytest.approx(0.2 / (p * (1.0 - p) + 0.01))
    assert growth(problem, saddle, largest_step(problem, saddle)) == pytest.approx(1.0)


def test_multipliers_at_zero_do_not_count():
    reward = np.array([[[[1.0, 0.0]]], [[[0.0, 1.0]]]])
    slack = CMDP(np.ones((1, 1, 2, 1)), reward, [0.0])
    saddle = saddle_point(slack, 0.1)
    assert covariance(slack, saddle).shape == (0, 0)
    assert largest_step(slack, saddle) == pytest.approx(20.0)  # 1 - eta tau = -1
    assert growth(slack, saddle, 1.0) == pytest.approx(0.9)


def test_a_step_that_is_none_is_refused():
    problem = CMDP(np.ones((1, 1, 2, 1)), np.zeros((2, 1, 1, 2)), [0.0])
    with pytest.raises(InputError, match="the step is nan"):
        growth(problem, saddle_point(problem, 0.1), math.nan)
