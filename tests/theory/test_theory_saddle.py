"""Lagrange functions, the regularised saddle point and the value difference identity."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import examples, problems, random_policy, random_problem
from hypothesis import assume, given, strategies as st
from oracles.primal_dual import Evaluation, PlainPrimalDual

from cmdplab.algorithms.task import Task, told_gap
from cmdplab.algorithms.uopt_rpgpd import UOPT_RPGPD
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.solvers import solve
from cmdplab.theory.constants import multiplier_bound, setting_of, violation_bound
from cmdplab.theory.lagrangian import (
    best_multiplier,
    duality_gap,
    lagrangian,
    largest_lagrangian,
    optimism_errors,
    optimistic_lagrangian,
    saddle_gap,
    value_difference,
    weighted_optimism_error,
)
from cmdplab.theory.saddle import dual_curvature, saddle_point, stationarity
from cmdplab.theory.soft import entropy, regularised_returns, regularised_values, soft_greedy

temperatures = st.sampled_from([1.0, 0.1, 0.01])
seeds = st.integers(0, 10**6)


def bandit(threshold: float) -> CMDP:
    """One state, one step: the first arm earns reward, the second utility."""
    reward = np.array([[[[1.0, 0.0]]], [[[0.0, 1.0]]]])
    return CMDP(np.ones((1, 1, 2, 1)), reward, [threshold])


def halfway(problem: CMDP) -> CMDP:
    """Thresholds between what the best unconstrained and a safe policy attain: they bind."""
    if problem.constraints == 0:
        return problem
    free = exact.returns(problem, exact.greedy(problem, problem.reward[0])[1])[1:]
    safe = exact.returns(problem, exact.greedy(problem, problem.reward[1:].sum(axis=0))[1])[1:]
    return CMDP(problem.transition, problem.reward, (free + safe) / 2, problem.start)


def random_multiplier(problem: CMDP, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).exponential(2.0, problem.constraints)


# Values.


def test_regularised_values_by_hand():
    policy = np.array([[[0.25, 0.75]]])
    problem = bandit(0.5)
    values = regularised_values(problem, policy, problem.reward[0], 2.0)
    uncertainty = 0.25 * math.log(4) + 0.75 * math.log(4 / 3)
    np.testing.assert_allclose(values.q, [[[1.0, 0.0]]])
    np.testing.assert_allclose(values.value, [[0.25 + 2 * uncertainty], [0.0]])
    np.testing.assert_allclose(entropy(np.array([[1.0, 0.0], [0.5, 0.5]])), [0.0, math.log(2)])
    np.testing.assert_allclose(
        regularised_returns(problem, policy, 2.0), [0.25 + 2 * uncertainty, 0.75]
    )


@given(problem=problems(), seed=seeds, tau=st.floats(0.0, 2.0))
def test_forward_and_backward_values_agree(problem, seed, tau):
    policy = random_policy(problem, seed)
    backward = regularised_values(problem, policy, problem.reward[0], tau)
    forward = regularised_returns(problem, policy, tau)
    assert backward.value[0, problem.start] == pytest.approx(forward[0], abs=1e-12)
    q = exact.action_values(problem, policy, problem.reward[0])
    np.testing.assert_allclose(
        regularised_values(problem, policy, problem.reward[0], 0.0).q, q, atol=1e-12
    )


@given(problem=problems(), seed=seeds, tau=st.sampled_from([0.0, 0.01, 0.3, 2.0]))
def test_the_soft_greedy_policy_attains_its_value_and_beats_others(problem, seed, tau):
    best = soft_greedy(problem, problem.reward[0], tau)
    assert regularised_returns(problem, best.policy, tau)[0] == pytest.approx(best.value, abs=1e-11)
    for policy in (random_policy(problem, seed), exact.greedy(problem, problem.reward[0])[1]):
        assert regularised_returns(problem, policy, tau)[0] <= best.value + 1e-11


# The value difference identity.


@given(problem=problems(), seed=seeds)
def test_the_value_difference_identity(problem, seed):
    policy, other = random_policy(problem, seed), random_policy(problem, seed + 1)
    rng = np.random.default_rng(seed)
    q, reward = rng.normal(size=policy.shape), rng.normal(size=policy.shape)
    left, policies, model = value_difference(problem, policy, other, q, reward)
    assert left == pytest.approx(policies + model, abs=1e-10)


def test_the_value_difference_by_hand_and_with_the_printed_sign():
    # q = (3, 1), pi = (1, 0), pi' = (0, 1), g = (0, 2): V~ - V' = 3 - 2 = 1.
    problem = bandit(0.5)
    arms = np.eye(2)[:, None, None]
    q, reward = np.array([[[3.0, 1.0]]]), np.array([[[0.0, 2.0]]])
    found = value_difference(problem, arms[0], arms[1], q, reward)
    assert found == (1.0, 2.0, -1.0)
    assert found.left != -found.policies + found.model  # pi' - pi, as printed


# Lagrange functions.


def test_lagrange_functions_by_hand():
    problem, policy, lam = bandit(0.75), np.array([[[0.5, 0.5]]]), np.array([2.0])
    assert lagrangian(problem, policy, lam) == pytest.approx(0.5 - 2 * 0.25)
    regularised = 0.5 + 0.1 * math.log(2) - 2 * 0.25 + 0.05 * 4
    assert lagrangian(problem, policy, lam, 0.1) == pytest.approx(regularised)
    evaluation = Evaluation(np.zeros((2, 1, 1, 2)), np.array([[[3.0], [0.0]], [[1.0], [0.0]]]))
    assert optimistic_lagrangian(problem, evaluation, lam, 0.1) == pytest.approx(3 + 0.5 + 0.2)
    np.testing.assert_allclose(best_multiplier(problem, policy, 0.1), [2.5])
    np.testing.assert_allclose(best_multiplier(problem, policy, 0.1, cap=2.0), [2.0])
    np.testing.assert_allclose(best_multiplier(problem, policy, 0.0, cap=2.0), [2.0])
    # The dual function at tau = 0: the better arm, 1 or lambda, less lambda b.
    assert largest_lagrangian(problem, lam, 0.0) == pytest.approx(2.0 - 1.5)
    # Parts of the gap: 0.5 - 0; and 0 less the least over [0, 4], 0.5 - 4 / 4.
    gap = duality_gap(problem, policy, lam, 0.0, cap=4.0)
    assert gap == pytest.approx((0.5, 0.5))
    assert gap.total == pytest.approx(1.0)
    assert duality_gap(problem, policy, lam, 0.0).multiplier == math.inf
    with pytest.raises(InputError, match="outside"):
        duality_gap(problem, policy, -lam, 0.1)


def test_the_optimistic_lagrangian_is_eq_11_where_no_cap_is_reached():
    # Eq. 11 is L with r^n + beta and no truncation: here of a bandit whose bonus is 0.1.
    problem, policy, lam = bandit(0.75), np.array([[[0.5, 0.5]]]), np.array([2.0])
    raised = replace(problem, reward=0.5 * problem.reward + 0.1)
    free = np.array([[[0.35], [0.0]], [[0.35], [0.0]]])  # 0.5 x 0.5 + 0.1, both rewards
    evaluation = Evaluation(np.zeros((2, 1, 1, 2)), free)
    eq_11 = lagrangian(raised, policy, lam)
    assert optimistic_lagrangian(problem, evaluation, lam) == pytest.approx(eq_11)
    capped = Evaluation(np.zeros((2, 1, 1, 2)), np.minimum(free, 0.3))
    assert optimistic_lagrangian(problem, capped, lam) < eq_11  # as a learner's values are


@given(problem=problems(), seed=seeds, tau=st.sampled_from([0.0, 0.01, 0.3]))
def test_weak_duality(problem, seed, tau):
    policy, lam = random_policy(problem, seed), random_multiplier(problem, seed)
    gap = duality_gap(problem, policy, lam, tau)
    assert gap.policy >= -1e-10
    assert gap.multiplier >= -1e-10
    # The dual function lies above the value of every feasible policy.
    optimum = solve(problem)
    assume(optimum.feasible)
    assert largest_lagrangian(problem, lam, tau) >= optimum.value - 1e-9


# The saddle point.


def test_the_saddle_point_of_a_bandit_by_hand():
    # tau = 1/4, b = 3/4: with lambda = 1 both arms earn 1, so pi = (1/2, 1/2), and
    # tau lambda = 1/4 = b - 1/2. The second arm's indicator has the variance 1/4.
    saddle = saddle_point(bandit(0.75), 0.25)
    np.testing.assert_allclose(saddle.multiplier, [1.0], atol=1e-11)
    np.testing.assert_allclose(saddle.policy, [[[0.5, 0.5]]], atol=1e-11)
    assert saddle.value == pytest.approx(0.5 + 0.25 * math.log(2) - 0.25 + 0.125, abs=1e-12)
    assert saddle.residual <= 1e-12
    np.testing.assert_allclose(dual_curvature(bandit(0.75), saddle.policy, 0.25), [[1.25]])
    # A threshold that the free optimum meets: no multiplier. One that no policy meets: still one.
    assert saddle_point(bandit(0.01), 0.5).multiplier == [0.0]
    free = np.exp(1 / 0.5) / (1 + np.exp(1 / 0.5))
    np.testing.assert_allclose(saddle_point(bandit(0.01), 0.5).policy[0, 0, 0], free)
    assert saddle_point(bandit(1.0), 0.01).residual <= 1e-9


@examples(40)
@given(problem=problems(), tau=temperatures, binding=st.booleans())
def test_the_saddle_point_is_stationary(problem, tau, binding):
    problem = halfway(problem) if binding else problem
    saddle = saddle_point(problem, tau)
    assert saddle.residual <= 1e-9
    # Violation = tau x multiplier, from the policy alone.
    violation = np.maximum(problem.threshold - exact.returns(problem, saddle.policy)[1:], 0.0)
    np.testing.assert_allclose(violation, tau * saddle.multiplier, atol=1e-9)
    # Strong duality: neither player gains by moving alone.
    gap = duality_gap(problem, saddle.policy, saddle.multiplier, tau)
    assert abs(gap.policy) <= 1e-9
    assert abs(gap.multiplier) <= 1e-9
    assert lagrangian(problem, saddle.policy, saddle.multiplier, tau) == pytest.approx(
        saddle.value, abs=1e-10
    )


@given(problem=problems(), tau=temperatures, seed=seeds)
def test_the_saddle_point_beats_other_policies_and_multipliers(problem, tau, seed):
    problem = halfway(problem)
    saddle = saddle_point(problem, tau)
    for other in range(3):
        policy = random_policy(problem, seed + other)
        lam = random_multiplier(problem, seed + other)
        assert lagrangian(problem, policy, saddle.multiplier, tau) <= saddle.value + 1e-9
        assert lagrangian(problem, saddle.policy, lam, tau) >= saddle.value - 1e-9


@given(problem=problems(st.integers(1, 3)), tau=st.sampled_from([3.0, 1.0, 0.1, 0.01]))
def test_regularised_multipliers_and_violations_are_bounded(problem, tau):
    slack = told_gap(solve(problem).slater_gap)
    assume(slack > 1e-3)
    setting = setting_of(problem, slack)
    saddle = saddle_point(problem, tau)
    assert saddle.multiplier.sum() <= multiplier_bound(setting, tau) + 1e-9
    values = exact.returns(problem, saddle.policy)[1:]
    assert np.all(problem.threshold - values <= violation_bound(setting, tau) + 1e-9)
    # So the clip of Eq. 5 cuts nothing off.
    clipped = saddle_point(problem, tau, cap=multiplier_bound(setting, tau))
    np.testing.assert_allclose(clipped.multiplier, saddle.multiplier, atol=1e-9)


def test_a_cap_that_binds_moves_the_saddle_point_to_it():
    saddle = saddle_point(bandit(0.75), 0.25, cap=0.5)
    np.testing.assert_allclose(saddle.multiplier, [0.5])
    assert saddle.residual <= 1e-12
    gap = duality_gap(bandit(0.75), saddle.policy, saddle.multiplier, 0.25, cap=0.5)
    assert gap.total == pytest.approx(0.0, abs=1e-12)


def test_the_curvature_is_the_derivative_of_the_gradient():
    problem = halfway(random_problem(4, 3, 3, 3, seed=5))
    lam, tau, step = np.array([0.7, 0.2, 1.1]), 0.2, 1e-5

    def best(multiplier):
        reward = np.tensordot([1.0, *multiplier], problem.reward, axes=1)
        return soft_greedy(problem, reward, tau).policy

    curvature = dual_curvature(problem, best(lam), tau)
    for n, unit in enumerate(np.eye(3)):
        ahead, behind = (
            exact.returns(problem, best(lam + sign * step * unit))[1:] for sign in (1, -1)
        )
        numeric = (ahead - behind) / (2 * step) + tau * unit
        np.testing.assert_allclose(curvature[n], numeric, rtol=1e-5, atol=1e-7)


def test_as_the_temperature_falls_the_saddle_point_approaches_the_optimum():
    problem = halfway(random_problem(4, 3, 3, 1, seed=2))
    optimum, lam, distance = solve(problem), None, []
    for tau in (0.1, 0.01, 0.001):
        saddle = saddle_point(problem, tau, start=lam)
        lam = saddle.multiplier
        values = exact.returns(problem, saddle.policy)
        distance.append(max(abs(optimum.value - values[0]), problem.threshold[0] - values[1]))
        assert saddle.residual <= 1e-9
    assert distance[0] > distance[1] > distance[2]
    assert distance[2] < 0.01


def test_stationarity_sees_both_players():
    problem = bandit(0.75)
    log_policy = np.log([[[0.5, 0.5]]])
    assert stationarity(problem, log_policy, np.array([1.0]), 0.25) == pytest.approx(0.0)
    assert stationarity(problem, log_policy, np.array([0.9]), 0.25) == pytest.approx(0.05)
    other = np.log([[[0.6, 0.4]]])
    assert stationarity(problem, other, np.array([1.4]), 0.25) > 0.1


def test_saddle_points_that_do_not_exist_are_refused():
    for tau in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="temperature"):
            saddle_point(bandit(0.5), tau)
    with pytest.raises(InputError, match="cap"):
        saddle_point(bandit(0.5), 1.0, cap=0.0)
    with pytest.raises(InputError, match="start"):
        saddle_point(bandit(0.5), 1.0, start=np.zeros(2))


# The optimistic side.


def learner_state(problem, policy, visits):
    learner = PlainPrimalDual(UOPT_RPGPD, Task.of(problem, 1.0))
    state = learner.init()._replace(
        counts=problem.transition * visits, policy=policy, log_policy=np.log(policy), episode=1
    )
    return learner, state


@examples(10)
@given(seed=seeds, tau=st.floats(0.0, 1.0))
def test_the_optimism_error_and_its_weighted_sum(seed, tau):
    problem = random_problem(3, 2, 3, 2, seed)
    policy = 0.9 * random_policy(problem, seed) + 0.05
    # With as many visits as this the bonus is nothing, and the optimistic values are the true ones.
    learner, state = learner_state(problem, policy, 1e30)
    evaluation = learner.evaluate(state, tau)
    np.testing.assert_allclose(optimism_errors(problem, policy, evaluation, tau), 0.0, atol=1e-9)
    # With fewer they are larger.
    learner, state = learner_state(problem, policy, 1e4)
    evaluation = learner.evaluate(state, tau)
    errors = optimism_errors(problem, policy, evaluation, tau)
    assert np.all(errors > 0.0)
    assert weighted_optimism_error(errors, np.array([2.0, 0.5])) == pytest.approx(
        errors[0] + 2 * errors[1] + errors[2] / 2
    )


@examples(10)
@given(seed=seeds, tau=temperatures)
def test_the_saddle_gap_is_split_by_the_optimistic_value(seed, tau):
    problem = halfway(random_problem(3, 2, 3, 2, seed))
    saddle = saddle_point(problem, tau)
    policy, lam = 0.9 * random_policy(problem, seed) + 0.05, random_multiplier(problem, seed)
    plain = saddle_gap(problem, saddle, policy, lam)
    assert plain.total >= -1e-9
    assert plain.total <= duality_gap(problem, policy, lam, tau).total + 1e-9
    learner, state = learner_state(problem, policy, 1e3)
    optimistic = saddle_gap(problem, saddle, policy, lam, learner.evaluate(state, tau))
    assert optimistic.total == pytest.approx(plain.total, abs=1e-8)
    assert optimistic.club <= plain.club + 1e-9  # optimism moves the gap from one to the other
