"""Actions that are not open everywhere: what a mask means, whichever way a problem is solved."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from occupancy_lp import program
from scipy.optimize import linprog

from cmdplab.algorithms.task import checked_baseline
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.errors import InputError
from cmdplab.solvers import solve
from cmdplab.theory.saddle import saddle_point

MASKED = (5, 4, 3, 1)


def occupancy_program(problem: CMDP) -> float:
    """max <w, r^0> over the occupancies of open pairs that meet the thresholds, by HiGHS."""
    objective, flow, entering = program(problem)
    found = linprog(
        -objective,
        A_ub=-problem.reward[1:].reshape(problem.constraints, -1),
        b_ub=-problem.threshold,
        A_eq=flow,
        b_eq=entering,
        bounds=[(0.0, None if each else 0.0) for each in problem.opened.ravel()],
    )
    assert found.status == 0
    return -found.fun


@given(st.integers(0, 10**6), st.integers(1, 3))
def test_the_optimum_is_that_of_the_linear_program_over_open_pairs(seed, constraints):
    problem = random_problem(4, 3, 3, constraints, seed, closed=0.4)
    solution = solve(problem)
    assert solution.value == pytest.approx(occupancy_program(problem), abs=1e-7)
    assert solution.duality_gap <= 1e-9
    assert np.all(solution.policy[~problem.opened] == 0.0)


def test_closing_an_action_everywhere_is_leaving_it_out():
    whole = random_problem(4, 3, 3, 1)
    mask = np.ones((4, 3), bool)
    mask[:, 1] = False
    closed = CMDP(whole.table, whole.reward, 0.5 * whole.threshold, whole.start, mask=mask)
    kept = [0, 2]
    without = CMDP(
        whole.table[:, :, kept], whole.reward[..., kept], 0.5 * whole.threshold, whole.start
    )
    assert solve(closed).value == pytest.approx(solve(without).value, abs=1e-10)
    temperature = 0.1
    ours, theirs = saddle_point(closed, temperature), saddle_point(without, temperature)
    np.testing.assert_allclose(ours.policy[..., kept], theirs.policy, atol=1e-8)
    assert np.all(ours.policy[..., 1] == 0.0)


def test_what_a_closed_pair_would_do_is_never_read():
    problem = random_problem(*MASKED, closed=0.4)
    kernel, reward = problem.table.copy(), problem.reward.copy()
    kernel[~problem.mask] = np.nan
    reward[:, ~problem.mask] = 7.0
    again = CMDP(kernel, reward, problem.threshold, problem.start, mask=problem.mask)
    assert solve(again).value == solve(problem).value


def test_a_mask_of_a_stationary_problem_may_depend_on_the_step():
    problem = random_problem(3, 2, 1, 0)
    mask = np.ones((4, 3, 2), bool)
    mask[2, :, 1] = False
    stationary = CMDP(problem.table[0], problem.reward, [], 0, horizon=0, mask=mask[:1])
    assert stationary.mask is None
    longer = CMDP(problem.table[0], problem.reward[:, 0], [], 0, horizon=4, mask=mask)
    assert longer.stationary
    np.testing.assert_array_equal(longer.opened, mask)
    _, policy = exact.greedy(longer, longer.reward[0])
    assert np.all(policy[2, :, 1] == 0.0)


def test_a_mask_is_saved_and_read(tmp_path):
    problem = random_problem(*MASKED, closed=0.4)
    problem.save(tmp_path / "p.npz")
    again = CMDP.load(tmp_path / "p.npz")
    np.testing.assert_array_equal(again.mask, problem.mask)
    np.testing.assert_array_equal(again.table, problem.table)


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        (np.zeros((5, 4), bool), r"mask\[0\] leaves no action"),
        (np.ones((5, 3), bool), "mask must hold booleans of the shape"),
        (np.ones((5, 4)), "mask must hold booleans"),
        (np.full((5, 4), 2), "mask must hold booleans"),
    ],
)
def test_masks_that_make_no_sense_are_refused(mask, sentence):
    problem = random_problem(*MASKED)
    with pytest.raises(InputError, match=sentence):
        CMDP(problem.table, problem.reward, problem.threshold, mask=mask)


def test_whole_numbers_0_and_1_are_a_mask_as_gymnasium_has_them():
    problem = random_problem(*MASKED, closed=0.4)
    mask = problem.mask.astype(np.int8)
    again = CMDP(problem.table, problem.reward, problem.threshold, mask=mask)
    np.testing.assert_array_equal(again.mask, problem.mask)


def test_a_baseline_that_takes_a_closed_action_is_refused():
    problem = random_problem(*MASKED, closed=0.4)
    with pytest.raises(InputError, match=r"takes action \d at \[\d, \d\], which is closed"):
        checked_baseline(problem, np.full(problem.opened.shape, 0.25))
