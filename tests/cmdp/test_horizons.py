"""Infinite horizons and random starts as episodes: what the conversion promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from cmdplab.cmdp.evaluation import evaluate
from cmdplab.cmdp.exact import greedy
from cmdplab.cmdp.horizons import (
    averaged,
    discounted,
    steps_for,
    tail_bound,
    truncate,
    with_random_start,
)
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.environments import make
from cmdplab.environments.chains import paradox_arrays
from cmdplab.environments.levels import THRESHOLDS, queue, queue_arrays
from cmdplab.errors import InputError
from cmdplab.solvers import solve


def arrays(seed: int, constraints: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A stationary kernel [X, A, X] and rewards [1 + N, X, A]."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(4, 0.3), (4, 3)), rng.random((1 + constraints, 4, 3))


@given(st.floats(0.05, 0.99), st.floats(1e-9, 10.0), st.floats(0.1, 20.0))
def test_the_fewest_steps_for_an_accuracy(discount, accuracy, largest):
    steps = steps_for(discount, accuracy, largest)
    assert tail_bound(discount, steps, largest) <= accuracy * (1 + 1e-9)
    assert steps == 1 or tail_bound(discount, steps - 1, largest) > accuracy * (1 - 1e-9)


def test_the_steps_of_one_percent():
    assert [steps_for(discount, 0.01) for discount in (0.8, 0.9, 0.95, 0.99)] == [28, 66, 149, 917]


def test_a_reward_of_one_sums_to_a_geometric_series():
    kernel, _ = arrays(0)
    ones = np.ones((1, 4, 3))
    for start in (2, np.full(4, 0.25)):
        problem = discounted(kernel, ones, [], 0.9, start, 12)
        assert solve(problem).value == pytest.approx((1 - 0.9**12) / 0.1)


@given(st.integers(0, 10**6), st.sampled_from([0.5, 0.8, 0.9]), st.integers(2, 30))
def test_what_a_cut_can_lose(seed, discount, horizon):
    kernel, reward = arrays(seed)
    long = discounted(kernel, reward, [0.0], discount, 0, 200)
    threshold = [
        0.5
        * greedy(discounted(kernel, reward, [0.0], discount, 0, horizon), long.reward[1, :horizon])[
            0
        ]
    ]
    cut = solve(discounted(kernel, reward, threshold, discount, 0, horizon))
    whole = solve(discounted(kernel, reward, threshold, discount, 0, 200))
    lost = (1 + cut.multiplier[0]) * tail_bound(discount, horizon)
    assert cut.value - 1e-9 <= whole.value <= cut.value + lost + 1e-9


@pytest.mark.parametrize(
    ("steps", "pay"), [(20, 1.39398), (40, 1.62180), (60, 1.64899), (80, 1.65227)]
)
def test_the_five_by_five_grid_comes_near_its_infinite_value_as_known(steps, pay):
    problem = make("five-by-five")
    cut = CMDP(
        problem.transition[0], problem.reward[:, : steps + 1], problem.threshold, problem.start
    )
    assert solve(cut).value == pytest.approx(pay, abs=6e-6)


@given(st.integers(0, 10**6), st.booleans())
def test_a_random_start_is_the_mean_over_starts(seed, stationary):
    kernel, reward = arrays(seed, 0)
    rewards = np.repeat(reward[:, None], 5, axis=1) * np.arange(5)[None, :, None, None] / 5
    kernels = kernel if stationary else np.stack([arrays(seed + h)[0] for h in range(5)])
    first = np.random.default_rng(seed).dirichlet(np.ones(4))
    problem = CMDP(*_with_no_constraint(*with_random_start(kernels, rewards, first)))
    each = [CMDP(kernels, rewards, np.zeros(0), x) for x in range(4)]
    mean = sum(p * greedy(one, one.reward[0])[0] for p, one in zip(first, each, strict=True))
    assert problem.horizon == 6
    assert greedy(problem, problem.reward[0])[0] == pytest.approx(mean)


def _with_no_constraint(kernel, reward, start):
    return kernel, reward, np.zeros(0), start


def test_the_discounted_paradox_has_its_value():
    kernel, reward = paradox_arrays()
    assert solve(discounted(kernel, reward, [5.0], 0.9, 0, 200)).value == pytest.approx(5, abs=1e-6)


def test_the_averaged_paradox_has_its_value():
    kernel, reward = paradox_arrays()
    assert solve(averaged(kernel, reward, [0.5], 40)).value == pytest.approx(20)


def stationary_optimum(kernel: np.ndarray, reward: np.ndarray, threshold: np.ndarray) -> float:
    """max sum q r^0 over q >= 0 with sum q = 1, flow out = flow in, sum q r^n >= b^n."""
    states, actions = reward.shape[1:]
    out = np.repeat(np.eye(states), actions, axis=1)
    flow = np.vstack([out - kernel.reshape(-1, states).T, np.ones(states * actions)])
    right = np.append(np.zeros(states), 1.0)
    utilities = -reward[1:].reshape(len(threshold), -1)
    found = linprog(-reward[0].ravel(), utilities, -threshold, flow, right)
    return -float(found.fun)


def test_the_queue_comes_near_its_average_like_one_over_the_horizon():
    average = 5 * stationary_optimum(*queue_arrays(), np.array(THRESHOLDS))
    assert average == pytest.approx(3.60028, abs=5e-6)
    over = [(5 * solve(queue(steps)).value / steps - average) * steps for steps in (100, 200, 400)]
    assert over == sorted(over)  # a bias that settles, never below the average
    assert over[0] > 0
    assert over[2] < 30


def test_bad_discounts_and_starts_are_named():
    kernel, reward = arrays(0)
    with pytest.raises(InputError, match="the discount is 1, not between 0 and 1"):
        tail_bound(1.0, 3)
    with pytest.raises(InputError, match="accuracy is 0"):
        steps_for(0.9, 0.0)
    with pytest.raises(InputError, match="4 numbers that sum to 1"):
        discounted(kernel, reward, [0.0], 0.9, np.full(4, 0.3), 5)


@pytest.mark.parametrize("start", [2, [0.5, 0.25, 0.25, 0.0]])
@pytest.mark.parametrize("closed", [False, True])
def test_nested_lists_and_lists_of_successors_are_the_same_problem(start, closed):
    kernel, reward = arrays(3)
    kernel[kernel < 0.1] = 0.0
    kernel /= kernel.sum(axis=-1, keepdims=True)
    mask = np.ones((4, 3), dtype=bool)
    mask[1, 2] = not closed
    given = ([0.5], 0.9, start, 7, "p", mask)
    table = discounted(kernel, reward, *given)
    nested = discounted(kernel.tolist(), reward.tolist(), *given)
    lists = discounted(Sparse.of(kernel), reward, *given)
    assert isinstance(lists.transition, Sparse)
    for other in (nested, lists):
        assert solve(other).value == pytest.approx(solve(table).value, abs=1e-9)
        np.testing.assert_array_equal(other.opened, table.opened)
    average = [
        solve(averaged(each, reward, [0.3], 7, mask=mask)).value
        for each in (kernel, kernel.tolist(), Sparse.of(kernel))
    ]
    assert average == pytest.approx([average[0]] * 3, abs=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_random_start_of_a_kernel_that_changes_is_the_mean_over_starts(sparse):
    kernels = np.stack([arrays(h)[0] for h in range(5)])
    rewards = np.random.default_rng(0).random((1, 5, 4, 3))
    first = np.array([0.5, 0.0, 0.2, 0.3])
    given = Sparse.of(kernels) if sparse else kernels
    problem = CMDP(*_with_no_constraint(*with_random_start(given, rewards, first)))
    each = [greedy(one := CMDP(kernels, rewards, [], x), one.reward[0])[0] for x in range(4)]
    assert greedy(problem, problem.reward[0])[0] == pytest.approx(first @ each)


@pytest.mark.parametrize("changing", [False, True])
@pytest.mark.parametrize("starts", [9, 70])
def test_lists_stay_lists_under_a_random_start(changing, starts):
    """A ring of 80 states, one successor each: the value is the mean over the starts."""
    X, H, rng = 80, 4, np.random.default_rng(1)
    successor = (np.arange(X)[:, None, None] + np.arange(1, 3)[None, :, None]) % X
    probability = np.ones((H, X, 2, 1) if changing else (X, 2, 1))
    reward = rng.random((1, H, X, 2))
    first = np.zeros(X)
    first[rng.permutation(X)[:starts]] = rng.dirichlet(np.ones(starts))
    plain = Sparse(successor, probability)
    kernel, paid, start = with_random_start(plain, reward, first)
    assert kernel.successor.shape[-1] <= 8
    problem = CMDP(kernel, paid, [], start)
    each = [greedy(one := CMDP(plain, reward, [], x, H), one.reward[0])[0] for x in range(X)]
    assert greedy(problem, problem.reward[0])[0] == pytest.approx(first @ each)


def test_matrices_of_scipy_are_a_kernel_that_is_never_written_out():
    kernel, reward = arrays(3)
    matrices = [csr_matrix(kernel[:, a]) for a in range(kernel.shape[1])]
    listed = CMDP(matrices, reward, np.zeros(len(reward) - 1), horizon=5)
    assert isinstance(listed.transition, Sparse)
    np.testing.assert_allclose(listed.table[0], kernel)
    table = CMDP(kernel, reward, np.zeros(len(reward) - 1), horizon=5)
    assert solve(listed).value == pytest.approx(solve(table).value)
    same = discounted(matrices, [csr_matrix(each) for each in reward], [0.0], 0.9, 0, 5)
    assert isinstance(same.transition, Sparse)


def test_a_closed_action_is_worth_nothing_however_much_it_pays():
    """One state: action 1 pays 1 and is closed from the second step on."""
    kernel, reward = np.ones((1, 2, 1)), np.array([[[0.0, 1.0]]])
    mask = np.zeros((3, 1, 2), dtype=bool)
    mask[..., 0] = mask[0, 0, 1] = True
    for start in (0, [1.0]):
        assert solve(discounted(kernel, reward, [], 0.5, start, 3, mask=mask)).value == 1.0
        assert solve(discounted(kernel, reward, [], 0.5, start, 3)).value == 1.75
    assert solve(averaged(kernel, reward, [], 3, mask=mask)).value == 1.0


def test_what_a_closed_pair_would_do_is_never_read():
    kernel, reward = arrays(1, 0)
    mask = np.ones((4, 3), dtype=bool)
    mask[2, 1] = False
    fine = [solve(discounted(kernel, reward, [], 0.9, s, 6, mask=mask)) for s in (0, np.eye(4)[0])]
    kernel[2, 1], reward[0, 2, 1] = 0.0, 7.0
    for start, known in zip((0, np.eye(4)[0]), fine, strict=True):
        assert solve(discounted(kernel, reward, [], 0.9, start, 6, mask=mask)).value == known.value


@pytest.mark.parametrize(
    ("make_it", "sentence"),
    [
        (lambda k, r: discounted(k, r, [0.0], 0.9, 0, 2.5), "the horizon is 2.5: say how many"),
        (lambda k, r: averaged(k, r, [0.0], 2.5), "the horizon is 2.5: say how many"),
        (lambda k, r: tail_bound(0.9, -5), "the horizon is -5, not a whole number >= 0"),
        (lambda k, r: tail_bound(0.9, 2.5), "the horizon is 2.5, not a whole number >= 0"),
        (lambda k, r: tail_bound("0.9", 5), "the discount is '0.9', not a number"),
        (lambda k, r: steps_for(0.9, "a"), "accuracy is 'a', not a number"),
        (lambda k, r: discounted("k", r, [0.0], 0.9, 0, 5), "transition is not an array of real"),
        (lambda k, r: averaged(k[0], r, [0.0], 5), r"\[X, A, X\], not \(3, 4\)"),
        (lambda k, r: discounted(k, r[0], [0.0], 0.9, 0, 5), r"\[1 \+ N, X, A\], not \(4, 3\)"),
        (lambda k, r: discounted(k, r, "b", 0.9, 0, 5), "threshold is not an array of real"),
        (lambda k, r: averaged(k, r, "b", 5), "threshold is not an array of real"),
        (lambda k, r: discounted(k, r, [0.0], 0.9, "0", 5), "start distribution is not an array"),
        (lambda k, r: with_random_start(k, r, np.eye(4)[0]), r"\[1 \+ N, H, X, A\], not"),
        (lambda k, r: with_random_start(k[:3], r[:, None], [1.0]), "but the reward has 4 states"),
    ],
)
def test_what_cannot_be_cut_is_one_sentence(make_it, sentence):
    with pytest.raises(InputError, match=sentence):
        make_it(*arrays(0))


@pytest.mark.parametrize("start", [0, [0.2, 0.3, 0.5]])
def test_a_problem_cut_short_says_how_far_any_policy_may_be_off(start):
    rng = np.random.default_rng(0)
    kernel, reward = rng.dirichlet(np.ones(3), (3, 2)), rng.normal(size=(3, 2))
    cost = rng.random((3, 2)) + 1.0
    endless = CMDP.discounted(kernel, reward, 0.9, costs=[cost], budgets=[14.0], start=start)
    policy = rng.dirichlet(np.ones(2), 3)
    truth = evaluate(endless, policy).returns
    for steps in (5, 30):
        cut = truncate(endless, steps)
        H, X = cut.problem.horizon, cut.problem.states
        rows = np.full((H, X, 2), 0.5)
        rows[:, :3] = policy
        found = evaluate(cut.problem, rows).returns
        there = [cut.problem.labels.signal(n).published(float(found[n])) for n in range(2)]
        off = np.abs(np.array(there) - [truth[0], -truth[1]])  # a cost is shown as a cost
        assert (off <= cut.error + 1e-12).all()
        assert (cut.error < 3.0 * 0.9**steps * 10).all()
    budget = cut.problem.labels.signal(1).published(float(cut.problem.threshold[0]))
    assert budget == pytest.approx(14.0)
    with pytest.raises(InputError, match="no bound on what is left out holds for every policy"):
        truncate(CMDP.average(kernel, reward), 5)
