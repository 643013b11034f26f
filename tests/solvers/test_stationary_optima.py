"""Stationary problems against HiGHS, closed forms and published numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from cmdplab import CMDP, Average, Discounted, InputError, StationaryCMDP, evaluate, solve
from cmdplab.cmdp import exact_stationary as exact
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import OpenCertificateError
from cmdplab.formats import read_problem
from cmdplab.solvers.stationary.discounted import Pricing

Q = Discounted(0.9)


def program(problem: StationaryCMDP) -> float | None:
    """HiGHS on the occupancy program; of unichain problems where rewards are averaged."""
    X, A, N = problem.states, problem.actions, problem.constraints
    kernel = np.asarray(problem.transition)
    gamma = problem.criterion.discount if isinstance(problem.criterion, Discounted) else 1.0
    stay = np.zeros((X, X, A))
    stay[np.arange(X), np.arange(X)] = 1.0
    flow, source = (stay - gamma * np.moveaxis(kernel, -1, 0)).reshape(X, -1), problem.start
    if gamma == 1.0:
        flow, source = np.vstack([flow, np.ones(X * A)]), np.append(np.zeros(X), 1.0)
    limits = (-problem.reward[1:].reshape(N, -1), -problem.threshold) if N else (None, None)
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    for presolve in (True, False):  # which with tight tolerances finds conflicts that are none
        options = tight | {"presolve": presolve}
        found = linprog(-problem.reward[0].ravel(), *limits, flow, source, options=options)
        if found.status == 0:
            return -found.fun
    assert found.status == 2
    return None


def random_problem(seed: int) -> StationaryCMDP:
    """Small, often degenerate: whole rewards, deterministic rows, thresholds near the edge."""
    rng = np.random.default_rng(seed)
    X, A, N = int(rng.integers(1, 12)), int(rng.integers(1, 5)), int(rng.integers(0, 4))
    kernel = rng.dirichlet(np.full(X, 0.3), (X, A))
    if seed % 3 == 0:
        kernel = 0.7 * np.eye(X)[rng.integers(0, X, (X, A))] + 0.3 * kernel
    kernel[kernel < 1e-6] = 0.0  # HiGHS drops entries below 1e-9, and may then find nothing
    kernel /= kernel.sum(axis=-1, keepdims=True)
    reward = 4.0 * rng.random((1 + N, X, A)) - 2.0
    reward = np.round(reward) if seed % 4 == 0 else reward
    gamma = float(rng.choice([0.0, 0.5, 0.9, 0.99, 0.999]))
    criterion = Discounted(gamma) if seed % 2 else Average()
    start, policy = rng.dirichlet(np.ones(X)), rng.dirichlet(np.ones(A), X)
    easy = StationaryCMDP(kernel, reward, np.zeros(N), criterion, start)
    steps = 1.0 / (1.0 - gamma) if seed % 2 else 1.0
    limits = exact.returns(easy, policy)[1:] + 0.1 * steps * (rng.random(N) - 0.7)
    return StationaryCMDP(kernel, reward, limits, criterion, start)


def agrees(problem: StationaryCMDP) -> None:
    theirs, ours = program(problem), solve(problem)
    gamma = problem.criterion.discount if isinstance(problem.criterion, Discounted) else 0.0
    size = np.abs(problem.reward).max() / (1.0 - gamma)
    assert ours.feasible == (theirs is not None)
    if theirs is None:
        assert ours.slater_gap < 0.0
        return
    assert ours.value == pytest.approx(theirs, abs=1e-7 * size)
    assert ours.duality_gap <= 1e-9 * size
    checked = evaluate(problem, ours.policy)
    assert checked.value == pytest.approx(ours.value, abs=1e-10 * size)
    assert (checked.violation <= 1e-9 * size).all()
    assert ours.occupancy.sum() == pytest.approx(1.0 / (1.0 - gamma))


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_is_that_of_the_linear_program(seed):
    agrees(random_problem(seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_the_optimum_is_that_of_the_linear_program_on_600_problems(block):
    for seed in range(1_000 + 30 * block, 1_030 + 30 * block):
        agrees(random_problem(seed))


def test_lists_and_tables_have_the_same_optimum_and_at_most_n_extra_actions():
    rng = np.random.default_rng(0)
    X, A = 600, 3
    successor = np.argsort(rng.random((X, A, X)), axis=-1)[..., :4]
    listed = Sparse(successor, rng.dirichlet(np.ones(4), (X, A)))
    reward = rng.random((3, X, A))
    given = {"utilities": list(reward[1:]), "thresholds": [60.0, 60.0]}
    ours = solve(CMDP.discounted(listed, reward[0], 0.99, **given))
    dense = solve(CMDP.discounted(listed.dense(), reward[0], 0.99, **given))
    assert ours.value == pytest.approx(dense.value, rel=1e-9)
    assert ours.duality_gap <= 1e-8
    assert (ours.policy > 0.0).sum() <= X + 2


@pytest.mark.parametrize("listed", [False, True])
def test_bounds_hold_for_values_that_are_wrong(listed):
    rng = np.random.default_rng(4)
    problem = StationaryCMDP(rng.dirichlet(np.ones(6), (6, 3)), rng.random((1, 6, 3)), [], Q, 2)
    if listed:
        problem = replace(problem, transition=Sparse.of(np.asarray(problem.transition)))
    pricing, one = Pricing(problem, 1e-14), np.ones(1)
    best = pricing.best(one)
    policy = np.eye(3)[best.policy]
    worth = exact.returns(problem, policy)[0]
    for error in (0.0, 1e-9, 1e-3, 1.0):
        pricing.values, pricing.seen = pricing.values + error * rng.random((1, 6, 1)), None
        every, most, least = pricing.proved(one)
        assert least <= worth <= most <= every
        assert every - least <= 1e-12 + 40.0 * error


def test_a_closed_form_a_discounted_choice_between_now_and_later():
    # Stay for 1 a step, or move once for nothing to a state that pays 2 a step.
    kernel = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    reward = np.array([[1.0, 0.0], [2.0, 2.0]])
    assert solve(CMDP.discounted(kernel, reward, 0.9)).value == pytest.approx(18.0)
    assert solve(CMDP.discounted(kernel, reward, 0.4)).value == pytest.approx(1.0 / 0.6)
    assert solve(CMDP.average(kernel, reward)).value == pytest.approx(2.0)


def test_periodic_chains_have_averages():
    cycle = np.roll(np.eye(3), 1, axis=1)[:, None]
    solution = solve(CMDP.average(cycle, np.array([[3.0], [0.0], [0.0]])))
    assert solution.value == pytest.approx(1.0)
    assert solution.duality_gap < 1e-12


def test_gains_that_depend_on_the_start_are_those_of_the_start():
    kernel = np.zeros((3, 2, 3))
    kernel[0, :, 1:] = 0.5  # into one of two traps that pay 1 and 5
    kernel[1, :, 1] = kernel[2, :, 2] = 1.0
    reward = np.array([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]])
    assert solve(CMDP.average(kernel, reward)).value == pytest.approx(3.0)
    assert solve(CMDP.average(kernel, reward, start=1)).value == pytest.approx(1.0)


def test_time_that_no_stationary_policy_divides_is_refused_with_the_classes():
    # Stay or go; going earns nothing, and half of the time is wanted in each state.
    kernel = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    reward = np.array([[1.0, 0.0], [0.0, 0.0]])
    utility = np.array([[0.0, 0.0], [1.0, 0.0]])
    problem = CMDP.average(kernel, reward, utilities=[utility], thresholds=[0.5])
    with pytest.raises(OpenCertificateError, match=r"classes \{0\} and \{1\}"):
        solve(problem)


def test_a_published_average_reward_problem():
    # Yu, Bae and Lee (2026): a chain with one constraint; J* = 0.2572528, Slater gap 0.1378949.
    kernel, reward, utility = np.zeros((8, 2, 8)), np.zeros((8, 2)), np.zeros((8, 2))
    for x in range(6):
        for a, sign in enumerate((-1, 1)):
            kernel[x, a, x + 1], kernel[x, a, 7] = 0.95 - 0.01 * sign, 0.05 + 0.01 * sign
            utility[x, a] = float(sign == 1)
            reward[x, a] = 0.4 * (1.0 - utility[x, a]) if x < 3 else 0.4 * utility[x, a]
    kernel[6:, :, 0] = 1.0
    reward[7] = 1.0
    solution = solve(CMDP.average(kernel, reward, utilities=[utility], thresholds=[0.7]))
    assert solution.value == pytest.approx(0.2572528, abs=1e-7)
    assert solution.slater_gap == pytest.approx(0.1378949, abs=1e-7)
    assert solution.multiplier[0] == pytest.approx(0.3982, abs=1e-4)


@pytest.mark.parametrize("seed", range(12))
def test_another_solution_is_where_a_search_begins_and_not_where_it_ends(seed):
    problem = random_problem(seed)
    plain = solve(problem)
    nearby = StationaryCMDP(
        problem.transition,
        problem.reward,
        problem.threshold - 0.01,
        problem.criterion,
        problem.start,
    )
    warm = solve(problem, warm=solve(nearby))
    assert warm.feasible == plain.feasible
    if plain.feasible:
        gamma = problem.criterion.discount if isinstance(problem.criterion, Discounted) else 0.0
        size = np.abs(problem.reward).max() / (1.0 - gamma)
        assert warm.value == pytest.approx(plain.value, abs=2e-9 * size)
        assert warm.duality_gap <= 1e-9 * size


def test_a_solution_of_another_shape_is_no_place_to_begin_and_no_harm():
    small, large = random_problem(1), random_problem(3)
    assert small.states != large.states
    assert solve(small, warm=solve(large)).value == pytest.approx(solve(small).value)


def slow_chain(gamma: float) -> StationaryCMDP:
    """A walk on 6,000 states, slow to mix: up or down by one, the other way with 0.3."""
    X = 6_000
    at = np.arange(X)
    up, down = np.minimum(at + 1, X - 1), np.maximum(at - 1, 0)
    down, up = np.where(down == up, at, down), np.where(up == at, np.maximum(at, 1), up)
    successor = np.stack([np.stack([up, down], -1), np.stack([up, down], -1)], axis=1)
    successor[0], successor[-1] = [0, 1], [X - 2, X - 1]
    share = np.broadcast_to(np.array([[0.7, 0.3], [0.3, 0.7]]), successor.shape)
    reward = np.stack(
        [np.repeat((at / X)[:, None], 2, 1), np.repeat(1.0 - (at / X)[:, None], 2, 1)]
    )
    start = np.full(X, 1.0 / X)
    kernel = Sparse(successor, share)
    limit = (0.5 + 0.2 * gamma / (1.0 - gamma) / X) / (1.0 - gamma)  # half of what can be had
    return StationaryCMDP(kernel, reward, np.array([limit]), Discounted(gamma), start)


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.9, 0.99])
def test_chains_that_hardly_mix_are_certified_too(gamma):
    # The utility is 1 - reward: what it takes, the objective loses.
    problem = slow_chain(gamma)
    solution = solve(problem)
    assert solution.value == pytest.approx(1.0 / (1.0 - gamma) - problem.threshold[0], rel=1e-8)
    assert solution.duality_gap <= 1e-8 / (1.0 - gamma)


def test_an_optimum_that_doubles_cannot_tell_is_found_in_whole_numbers_or_refused():
    for states in (2, 50):
        kernel = np.full((states, 2, states), 1.0 / states)
        problem = CMDP.discounted(kernel, np.tile([1.0, 0.0], (states, 1)), 1.0 - 1e-12)
        if states == 2:
            exact_value = 1.0 / (1.0 - problem.criterion.discount)
            assert solve(problem).value == pytest.approx(exact_value, rel=1e-15)
        else:
            with pytest.raises(OpenCertificateError, match=r"known to .* of the objective's range"):
                solve(problem)


BAD = {
    "the discount is 1, outside": {"discount": 1.0},
    "the discount is -0.1, outside": {"discount": -0.1},
    "the discount is nan, outside": {"discount": float("nan")},
    "the discount is None, not a number": {"discount": None},
    r"transition\[1, 0\] sums to 0.9, not 1": {"transition": [[[0.5, 0.5]], [[0.5, 0.4]]]},
    r"transition\[0, 0, 0\] is -0.5": {"transition": [[[-0.5, 1.5]], [[0.5, 0.5]]]},
    r"reward\[0, 0\] is nan": {"reward": [[np.nan], [0.0]]},
    r"cost 1\[1, 0\] is inf": {"costs": [[[0.0], [np.inf]]], "budgets": [1.0]},
    r"budget\[0\] is nan": {"costs": [[[0.0], [1.0]]], "budgets": [np.nan]},
    "the budget is not an array of real": {"costs": [[[0.0], [1.0]]], "budgets": ["a"]},
    "give one budget for each cost: 1": {"costs": [[[0.0], [1.0]]], "budgets": [1.0, 2.0]},
    "the start is 2, but the states are 0..1": {"start": 2},
    "start distribution sums to 0.9, not 1": {"start": [0.5, 0.4]},
    r"mask\[0\] leaves no action": {"mask": np.array([[False], [True]])},
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_input_gets_a_sentence_that_names_the_place(sentence):
    good = {"transition": np.full((2, 1, 2), 0.5), "reward": [[1.0], [0.0]], "discount": 0.9}
    with pytest.raises(InputError, match=sentence):
        CMDP.discounted(**(good | BAD[sentence]))


def test_a_problem_survives_its_file(tmp_path):
    for seed in (1, 2):
        problem = random_problem(seed)
        problem.save(tmp_path / "problem.npz")
        again = read_problem(tmp_path / "problem.npz")
        assert isinstance(again, StationaryCMDP)
        assert again.criterion == problem.criterion
        np.testing.assert_array_equal(again.start, problem.start)
        assert solve(again).value == solve(problem).value
        with pytest.raises(InputError, match=r"has another format|has no array"):
            CMDP.load(tmp_path / "problem.npz")
