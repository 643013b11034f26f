"""Small ill-scaled problems against fractions: values, bounds, feasibility and Slater gaps."""

from __future__ import annotations

from collections import Counter

import exact_optima
import numpy as np
import pytest

from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Discounted, StationaryCMDP
from cmdplab.solvers import solve
from cmdplab.solvers.units import Units


@pytest.mark.parametrize("criterion", ["finite", "discounted"])
def test_fractions_find_nothing_wrong_with_small_ill_scaled_optima(criterion):
    tally = Counter(
        exact_optima.judged(exact_optima.made(criterion, seed)) for seed in range(20_000, 20_150)
    )
    assert set(tally) <= {"right", "refused without slack"}
    assert tally["right"] >= 146


def void(threshold: float, states: int = 2) -> StationaryCMDP:
    """A constraint whose utility is the same whatever one does: 5 in total."""
    kernel = np.tile(np.full(states, 1.0 / states), (states, 2, 1))
    reward = np.random.default_rng(states).random((states, 2))
    return StationaryCMDP(kernel, [reward, np.full((states, 2), 0.5)], [threshold], Discounted(0.9))


@pytest.mark.parametrize("states", [2, 60])
def test_a_void_constraint_at_its_own_level_is_met(states):
    free = solve(void(4.0, states))
    at = solve(void(5.0, states))
    assert at.feasible
    assert at.value == pytest.approx(free.value, rel=1e-12)
    assert not solve(void(5.0 + 1e-6, states)).feasible


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
def test_a_threshold_at_the_largest_attainable_utility_is_met(discount):
    rng = np.random.default_rng(7)
    for _ in range(15):
        kernel = rng.integers(1, 5, (2, 2, 1)) / 5.0
        kernel = np.concatenate([kernel, 1.0 - kernel], axis=2)
        reward = rng.integers(0, 5, (2, 2, 2)) / 4.0
        most = solve(StationaryCMDP(kernel, reward[1:], [], Discounted(discount))).value
        found = solve(StationaryCMDP(kernel, reward, [most], Discounted(discount)))
        assert found.feasible
        assert found.slater_gap <= 1e-9


def in_units(objective: float, cost: float, discount: float = 0.9) -> StationaryCMDP:
    """One state and two actions: at most 60 % of the cost of the first action."""
    steps = 1.0 / (1.0 - discount)
    reward = np.array([[[objective, 0.3 * objective]], [[-cost, -0.2 * cost]]])
    return StationaryCMDP([[[1.0], [1.0]]], reward, [-0.6 * cost * steps], Discounted(discount))


@pytest.mark.parametrize("objective", [1e-9, 1e-8, 1.0, 1e4, 1e9])
@pytest.mark.parametrize("cost", [1e-9, 1e-6, 1.0, 1e8])
def test_the_optimum_does_not_depend_on_units(objective, cost):
    ours, plain = solve(in_units(objective, cost)), solve(in_units(1.0, 1.0))
    assert ours.value / objective == pytest.approx(plain.value, rel=1e-12)
    assert ours.slater_gap / cost == pytest.approx(plain.slater_gap, rel=1e-12)
    assert ours.multiplier * cost / objective == pytest.approx(plain.multiplier, rel=1e-12)
    np.testing.assert_allclose(ours.policy, plain.policy, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_a_small_slack_is_a_slack_in_every_unit(unit):
    for discount in (0.9, 0.99999):
        problem = in_units(unit, unit, discount)
        limit = -unit * (0.2 / (1.0 - discount) + 2e-5)
        found = solve(problem.changed(threshold=[limit]))
        assert found.slater_gap / unit == pytest.approx(2e-5, rel=1e-5)


def test_the_slater_gap_of_constraints_in_different_units_is_that_of_the_given_units():
    # The safest policy mixes a large gain of the first and a tiny one of the second utility.
    reward = np.array([[[0.0, 0.0]], [[1e6, 0.0]], [[0.0, 1e-6]]])
    problem = StationaryCMDP([[[1.0], [1.0]]], reward, [0.0, 0.0], Discounted(0.5))
    assert solve(problem).slater_gap == pytest.approx(2e-6, rel=1e-9)


def test_units_are_powers_of_two_and_change_nothing_where_ranges_are_one():
    plain = CMDP(np.ones((1, 1, 2, 1)), np.array([[[[1.0, 0.0]]], [[[0.0, 0.9]]]]), [0.3], 0)
    assert Units.of(plain).scaled(plain) is plain
    units = Units.of(in_units(1e9, 3e-7))
    assert (np.frexp(units.factor)[0] == 0.5).all()
    scaled = units.scaled(in_units(1e9, 3e-7)).reward
    assert (np.abs(scaled).max(axis=(1, 2)) > 0.5).all()
    assert (np.abs(scaled).max(axis=(1, 2)) <= 1.0).all()


@pytest.mark.parametrize("price", [5.9e3, 1.8e8])
def test_a_bound_at_a_large_price_is_not_below_the_optimum(price):
    # 61 states are too many for whole numbers: the bound carries the rounding of its sums.
    for states in (2, 61):
        kernel = np.tile(np.random.default_rng(3).dirichlet(np.ones(states)), (states, 2, 1))
        step = 1.0 / price
        reward = np.array([[[1.0, 0.0]] * states, [[0.5, 0.5 + step]] * states])
        problem = StationaryCMDP(kernel, reward, [5.0 + 5.0 * step], Discounted(0.9))
        truth = exact_mixture(problem)
        found = solve(problem)
        assert found.dual >= truth
        assert found.value == pytest.approx(float(truth), rel=1e-8)


def exact_mixture(problem: StationaryCMDP):
    """The value of the share of the second action that just meets the threshold, in fractions.

    The two actions differ in their rewards alone.
    """
    from fractions import Fraction

    steps = 1 / (1 - Fraction(problem.criterion.discount))
    first, second = (Fraction(each) * steps for each in problem.reward[1, 0].tolist())
    share = (Fraction(float(problem.threshold[0])) - first) / (second - first)
    return (1 - share) * Fraction(float(problem.reward[0, 0, 0])) * steps
