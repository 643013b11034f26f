"""UCBVI and UCRL2: optimism, their bonuses by hand, the L1 ball against HiGHS, and plain DP."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from conftest import random_policy, random_problem
from hypothesis import given, strategies as st
from oracles import session
from oracles.unconstrained import PlainOptimist
from scipy.optimize import linprog

import cmdplab
from cmdplab import algorithm, solve
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.families.unconstrained import (
    Optimist,
    add_moved,
    corner,
    ucbvi_log,
    value_bonus,
)
from cmdplab.cmdp import exact
from cmdplab.errors import InputError
from cmdplab.solvers import Box, solve_feasible
from cmdplab.testing.contract import check_learner

NAMES = ("UCBVI-CH", "UCBVI-BF", "UCRL2")


def optimist(name) -> Optimist:
    row = algorithm(name)
    assert isinstance(row, Optimist)
    return row


def moved(row, value, half):
    """The gain of one row in the compiled loop."""
    gain, order = np.zeros(1), np.argsort(-value, kind="stable")
    add_moved(row[:, None].copy(), np.ones(1), value, order, np.array([half]), np.zeros(1), gain)
    return gain[0]


def told(row, problem, rewards="known"):
    return task_for(row, problem, solve_feasible(problem), rewards=rewards)


def test_the_bonuses_by_hand():
    problem = random_problem(2, 2, 3, 0)
    row = optimist("UCBVI-CH").with_settings(tuned_for=100, delta=0.1, bonus_scale=1.0)
    log = ucbvi_log(row.setting(told(row, problem)))
    assert log == pytest.approx(math.log(5 * 2 * 3 * 2 * 300 / 0.1))
    flat = row.numbers(told(row, problem)).flat
    assert value_bonus(4.0, 0.7, 3.0, flat, 0.0, 0.0, 0.0) == pytest.approx(7 * 3 * log / 2)
    row = optimist("UCBVI-BF").with_settings(tuned_for=100, delta=0.1, bonus_scale=1.0)
    n = row.numbers(told(row, problem))
    found = value_bonus(4.0, 0.7, 9.0, n.flat, n.deviation, n.tail, n.edge)
    by_hand = math.sqrt(8 * log * 0.7 / 4) + 14 * 3 * log / 12 + math.sqrt(8 / 4 * 9.0)
    assert found == pytest.approx(by_hand)
    assert n.corner_most == pytest.approx(1e4 * 27 * 4 * 2 * log**2)
    assert corner(0.5, 0.0, n.corner_most, 9.0) == 4.5  # never seen: H^2
    assert corner(0.5, 1e9, 18.0, 9.0) == pytest.approx(9e-9)


def test_the_radius_of_ucrl2_by_hand():
    problem = random_problem(3, 2, 4, 0)
    row = optimist("UCRL2").with_settings(delta=0.1, bonus_scale=1.0)
    n = row.numbers(told(row, problem))
    assert n.ball == 42.0
    assert n.ball_log == pytest.approx(2 * 2 * 4 / 0.1)


@given(seed=st.integers(0, 10**6), radius=st.floats(1e-3, 2.0))
def test_the_best_row_of_an_l1_ball_is_that_of_a_program(seed, radius):
    rng = np.random.default_rng(seed)
    row, value = rng.dirichlet(np.full(4, 0.5)), rng.random(4)
    ours = row @ value + moved(row, value, 0.5 * radius)
    # max p.v, p = row + up - down, sum (up + down) <= radius, p a distribution
    eye = np.eye(4)
    found = linprog(
        -np.concatenate([value, -value]),
        np.vstack([np.ones(8), np.hstack([-eye, eye])]),
        [radius, *row],
        np.concatenate([np.ones(4), -np.ones(4)])[None],
        [0.0],
    )
    # HiGHS keeps its limits to 1e-7.
    assert ours == pytest.approx(row @ value - found.fun, abs=1e-6)


@given(seed=st.integers(0, 10**6), width=st.floats(0.0, 0.3))
def test_a_ball_holds_the_box_whose_widths_add_up_to_its_radius(seed, width):
    from cmdplab.solvers.robust import worst_rows

    rng = np.random.default_rng(seed)
    row, value = rng.dirichlet(np.ones(4)), rng.random(4)
    box = Box.around(row[None, None, None], np.array(width))
    in_box = float((worst_rows(box, 0, -value) @ value)[0, 0])
    in_ball = row @ value + moved(row, value, 2.0 * width)
    assert in_ball >= in_box - 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_values_are_optimistic_and_those_of_ucbvi_never_rise(name):
    problem = random_problem(3, 2, 3, 0, 5)
    row = algorithm(name).with_settings(bonus_scale=1.0)
    run = session("cpu", problem, row, told(row, problem), 1)
    best, before = solve(problem).value, np.full((3, 3, 2), np.inf)
    for _ in range(30):
        run.play(100)
        q = run.state().q
        assert q[0, problem.start].max() >= best - 1e-12
        if name != "UCRL2":
            assert np.all(q <= before)
        before = q


@pytest.mark.parametrize("name", NAMES)
def test_with_endless_counts_it_is_dynamic_programming(name):
    problem = random_problem(4, 3, 4, 0, 2)
    row = optimist(name).with_settings(bonus_scale=1e-3)
    learner = PlainOptimist(row, told(row, problem))
    state = learner.plan(learner.init()._replace(counts=1e18 * problem.table))
    value, _ = exact.greedy(problem, problem.reward[0])
    assert exact.returns(problem, state.policy)[0] == pytest.approx(value, abs=1e-6)
    assert state.q[0, problem.start].max() == pytest.approx(value, abs=1e-5)


def test_one_visit_leaves_hoeffding_at_the_cap():
    problem = random_problem(3, 2, 3, 0)
    row = optimist("UCBVI-CH").with_settings(bonus_scale=1.0)
    learner = PlainOptimist(row, told(row, problem))
    state = learner.plan(learner.init()._replace(counts=np.eye(3)[np.zeros((3, 3, 2), int)]))
    np.testing.assert_array_equal(state.q, learner.init().q)


def test_ucrl2_plans_when_a_pair_has_doubled():
    problem = random_problem(4, 2, 3, 0)
    row = algorithm("UCRL2")
    run = session("cpu", problem, row, told(row, problem), 1)
    run.play(500)
    state = run.state()
    visits = state.counts.sum(axis=-1)
    assert np.all(visits < np.maximum(2.0 * state.planned, 1.0) + (state.planned == 0.0))
    assert np.any(visits > state.planned)


@pytest.mark.parametrize("name", NAMES)
def test_the_optimum_is_found_without_constraints_beside_uopt_rpgpd(name):
    problem = random_problem(4, 3, 3, 0, 3)
    for each in (name, "UOpt-RPGPD"):
        run = cmdplab.run(problem, each, 5000, seed=1)
        assert run.summary.final_gap < 0.05
        assert run.summary.final_violation is None


@pytest.mark.parametrize("name", NAMES)
def test_engines_take_the_same_actions_for_the_same_values(name):
    problem = random_problem(4, 3, 3, 0, 7, 0.3)
    row = algorithm(name)
    runs = [session(each, problem, row, told(row, problem), 2) for each in ("cpu", "host")]
    ours, oracle = (each.play(200) for each in runs)
    np.testing.assert_allclose(ours.returns, oracle.returns, atol=1e-12)
    for field, a in runs[0].state()._asdict().items():
        tolerance = 4e-15 if field == "q" else 0.0
        np.testing.assert_allclose(a, getattr(runs[1].state(), field), rtol=0, atol=tolerance)


def test_constraints_are_not_looked_at():
    free = random_problem(4, 3, 3, 0, 3)
    both = random_problem(4, 3, 3, 1, 3)
    same = cmdplab.CMDP(free.table, np.stack([free.reward[0], both.reward[1]]), [0.1], free.start)
    runs = [cmdplab.run(each, "UCBVI-CH", 100).state.counts for each in (free, same)]
    np.testing.assert_array_equal(*runs)


def test_observed_rewards_are_refused():
    row, problem = algorithm("UCRL2"), random_problem(3, 2, 2, 0)
    with pytest.raises(InputError, match="UCRL2 has to know the rewards"):
        told(row, problem, "bernoulli")


@pytest.mark.parametrize("name", NAMES)
def test_the_contract_with_closed_actions(name):
    check_learner(name, random_problem(5, 4, 3, 0, closed=0.4), episodes=30)


def test_variances_of_values_add_up_to_that_of_the_return():
    # The identity behind Bernstein's bonus: E sum_h Var(V_{h+1}) = Var(sum_h r_h), r given x alone.
    problem = random_problem(2, 2, 3, 0, 4)
    reward = np.repeat(problem.reward[0][..., :1], 2, axis=-1)  # of the state, not of the action
    policy = random_policy(problem, 1)
    kernel = np.einsum("hxa,hxay->hxy", policy, problem.table)
    value, total = np.zeros(2), 0.0
    occupancy = exact.occupancy(problem, policy).sum(axis=-1)
    for h in reversed(range(3)):
        if h < 2:
            spread = kernel[h] @ value**2 - (kernel[h] @ value) ** 2
            total += occupancy[h] @ spread
        value = reward[h, :, 0] + (kernel[h] @ value if h < 2 else 0.0)
    mean, square = 0.0, 0.0
    for path in itertools.product(range(2), repeat=2):
        states = (problem.start, *path)
        p = kernel[0, states[0], states[1]] * kernel[1, states[1], states[2]]
        earned = sum(reward[h, x, 0] for h, x in enumerate(states))
        mean, square = mean + p * earned, square + p * earned**2
    assert total == pytest.approx(square - mean**2, abs=1e-12)
