"""Certified optima, against closed forms, published values and HiGHS on the occupancy LP."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import largest_utility, problems, random_problem
from extended_lp import extended_margin, extended_value
from hypothesis import given, reject, strategies as st

from cmdplab import make
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.solvers import solve


def highs_value(problem: CMDP, slack: bool = False) -> float | None:
    """The optimum by HiGHS on the linear program, None when it is infeasible.

    With `slack`, the largest t such that every utility exceeds its threshold by t.
    """
    solve_it = extended_margin if slack else extended_value
    kernel = problem.transition
    try:
        return solve_it(kernel, kernel, problem.reward, problem.threshold, problem.start)
    except (
        RuntimeError,
        ValueError,
    ):  # HiGHS itself has no answer to some kernels with entries of 1e-20
        reject()


def check_certificate(problem: CMDP) -> None:
    s = solve(problem)
    assert s.feasible
    assert -1e-12 <= s.dual - s.primal <= 1e-9 * (1.0 + abs(s.value))  # weak duality, and closed
    values = exact.returns(problem, s.policy)
    assert values[0] == pytest.approx(s.value, abs=1e-12)
    assert np.all(values[1:] >= problem.threshold - 1e-9)
    assert np.all(s.multiplier >= 0.0)
    slack = values[1:] - problem.threshold
    np.testing.assert_allclose(s.multiplier * slack, 0.0, atol=1e-8)  # complementary slackness
    np.testing.assert_allclose(s.occupancy.sum(axis=(1, 2)), 1.0, atol=1e-12)
    np.testing.assert_allclose(s.policy.sum(axis=-1), 1.0, atol=1e-12)


@given(problem=problems())
def test_the_certificate_closes(problem):
    check_certificate(problem)


@given(problem=problems())
def test_highs_agrees(problem):
    assert solve(problem).value == pytest.approx(highs_value(problem), abs=1e-7)


@given(problem=problems(constraints=st.just(1)), shift=st.floats(0.001, 0.5))
def test_the_value_falls_as_the_threshold_rises(problem, shift):
    tighter = min(float(problem.threshold[0]) + shift, problem.horizon)
    harder = solve(CMDP(problem.transition, problem.reward, [tighter], problem.start))
    if harder.feasible:
        assert harder.value <= solve(problem).value + 1e-10


def test_the_paper_size_with_several_constraints():
    for N in (1, 2, 5):
        check_certificate(random_problem(30, 3, 10, N, concentration=0.1))


def test_the_published_instance():
    problem = make("published")
    s = solve(problem)
    assert s.value == pytest.approx(5.18840, abs=1e-5)  # the notebook prints 5.188404
    assert s.multiplier == pytest.approx([1.0])
    assert problem.horizon / s.slater_gap == pytest.approx(2.0783112, abs=1e-6)
    assert 2 * problem.threshold[0] == pytest.approx(largest_utility(problem), abs=2e-6)
    assert s.duality_gap <= 1e-12


def test_two_states_by_hand(two_state):
    # Staying k < 10 steps earns (k, 9 - k), staying for ever (10, 0). The optimum for utility 5
    # mixes leaving at once, (0, 9), and staying for ever: value 40/9 at multiplier 10/9.
    s = solve(two_state)
    assert s.value == pytest.approx(40 / 9, abs=1e-12)
    assert s.multiplier == pytest.approx([10 / 9])
    assert s.slater_gap == pytest.approx(4.0)


def test_three_state_benchmark():
    # Stay for nothing, or move x -> x + 1 mod 3 for (x + 1) / 3 at cost 1; budget 3 of H = 6: 2.0.
    kernel = np.zeros((3, 2, 3))
    for x in range(3):
        kernel[x, 0, x] = kernel[x, 1, (x + 1) % 3] = 1.0
    reward, cost = np.zeros((6, 3, 2)), np.zeros((1, 6, 3, 2))
    reward[:, :, 1] = (np.arange(3) + 1) / 3
    cost[..., 1] = 1.0
    s = solve(CMDP.from_costs(kernel, reward, cost, [3.0]))
    assert s.value == pytest.approx(2.0, abs=1e-12)
    assert s.multiplier == pytest.approx([2 / 3])


def test_media_streaming_benchmark():
    # Published optimum 6.74670 of the empty-buffer cost at a budget of 5; multiplier 0.49519.
    kernel = np.zeros((10, 2, 10))
    for a, arrival in enumerate((0.9, 0.1)):
        up, down = arrival * 0.2, (1 - arrival) * 0.8
        for x in range(10):
            kernel[x, a, min(x + 1, 9)] += up
            kernel[x, a, max(x - 1, 0)] += down
            kernel[x, a, x] += 1.0 - up - down
    reward, cost = np.ones((10, 10, 2)), np.zeros((1, 10, 10, 2))
    reward[:, 0] = 0.0
    cost[..., 0] = 1.0
    s = solve(CMDP.from_costs(kernel, reward, cost, [5.0]))
    assert 10 - s.value == pytest.approx(6.74670, abs=5e-6)
    assert s.multiplier == pytest.approx([0.49519], abs=5e-6)


@pytest.mark.parametrize("constraints", [1, 2, 3])
def test_an_infeasible_problem_is_an_answer(constraints):
    problem = random_problem(4, 2, 3, constraints)
    hard = CMDP(problem.transition, problem.reward, np.full(constraints, 2.999), problem.start)
    s = solve(hard)
    assert not s.feasible
    assert "no policy meets the thresholds" in s.message
    assert s.slater_gap < 0.0
    assert (s.value, s.policy, s.multiplier, s.duality_gap) == (None, None, None, None)
    assert highs_value(hard) is None


@given(problem=problems(constraints=st.integers(1, 3)))
def test_the_slater_gap_is_the_largest_smallest_slack(problem):
    assert solve(problem).slater_gap == pytest.approx(highs_value(problem, slack=True), abs=1e-7)


def test_no_constraint_is_one_dynamic_program():
    problem = random_problem(5, 3, 4, 0)
    s = solve(problem)
    assert s.value == pytest.approx(exact.greedy(problem, problem.reward[0])[0], abs=1e-13)
    assert s.slater_gap is None
    assert s.multiplier.shape == (0,)
