"""Promises that hold on every kernel of a box: against brute force over kernels and policies."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, strategies as st

from cmdplab import CMDP, solve
from cmdplab.cmdp.exact import greedy, returns
from cmdplab.cmdp.stationary import Discounted, StationaryCMDP
from cmdplab.errors import InputError
from cmdplab.solvers import Box, policy_bounds, solve_robust
from cmdplab.solvers.robust import _slope


def problem_of(seed: int, X: int = 2, A: int = 2, H: int = 2, N: int = 1, part: float = 0.85):
    """A random problem whose thresholds are a part of what each utility can reach alone."""
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.ones(X), (H, X, A))
    reward = rng.random((1 + N, H, X, A))
    free = CMDP(kernel, reward, np.zeros(N))
    most = [part * greedy(free, each)[0] for each in reward[1:]]
    return CMDP(kernel, reward, np.array(most))


def kernels_of(box: Box):
    """All vertices of a box with two states: P(1 | x, a) at one of its ends, at every step."""
    low = np.maximum(box.lower[..., 1], 1 - box.upper[..., 0])
    high = np.minimum(box.upper[..., 1], 1 - box.lower[..., 0])
    for ends in itertools.product((0, 1), repeat=low.size):
        one = np.where(np.reshape(ends, low.shape), high, low)
        yield np.stack([1.0 - one, one], axis=-1)


@given(seed=st.integers(0, 10**4), width=st.sampled_from([0.0, 0.05, 0.3]))
def test_a_worst_case_is_the_smallest_over_all_vertices(seed, width):
    problem = problem_of(seed)
    box = Box.around(problem.table, width)
    policy = np.random.default_rng(seed).dirichlet(np.ones(2), (2, 2))
    worst = np.min(
        [
            returns(CMDP(each, problem.reward, problem.threshold), policy)
            for each in kernels_of(box)
        ],
        axis=0,
    )
    np.testing.assert_allclose(policy_bounds(box, problem.reward, policy), worst, atol=1e-12)


@given(seed=st.integers(0, 10**4), width=st.sampled_from([0.05, 0.2]))
def test_without_constraints_the_robust_optimum_is_that_of_all_deterministic_policies(seed, width):
    problem = problem_of(seed, N=0)
    box = Box.around(problem.table, width)
    found = solve_robust(problem, box)
    best = max(
        policy_bounds(box, problem.reward, np.eye(2)[np.reshape(each, (2, 2))])[0]
        for each in itertools.product((0, 1), repeat=4)
    )
    assert found.value == pytest.approx(best, abs=1e-12)
    assert found.upper == pytest.approx(best, abs=1e-12)


@given(seed=st.integers(0, 10**4), N=st.integers(0, 2))
def test_a_box_without_width_is_the_known_problem(seed, N):
    problem = problem_of(seed, X=3, H=3, N=N, part=0.7)
    known, found = solve(problem), solve_robust(problem, Box(problem.table, problem.table))
    assert found.feasible == known.feasible
    if known.feasible:
        assert found.value == pytest.approx(known.value, abs=1e-8)
        assert found.upper == pytest.approx(known.value, abs=1e-8)


@examples(10)
@given(seed=st.integers(0, 10**4), N=st.integers(1, 2), width=st.sampled_from([0.02, 0.1]))
def test_what_is_promised_holds_on_every_kernel_and_the_bounds_are_in_order(seed, N, width):
    problem = problem_of(seed, X=3, H=3, N=N)
    box = Box.around(problem.table, width)
    found, known = solve_robust(problem, box), solve(problem)
    if not found.feasible:
        return
    assert found.value <= found.upper + 1e-9
    assert found.upper <= known.value + 1e-8
    rng = np.random.default_rng(seed)
    policy = np.asarray(found.policy)
    for _ in range(20):  # kernels of the box, by clipping and then moving back what is left over
        other = rng.dirichlet(np.ones(3), problem.table.shape[:3])
        share = np.min(width / np.maximum(np.abs(other - problem.table), 1e-12), axis=-1)
        kernel = problem.table + np.minimum(share, 1.0)[..., None] * (other - problem.table)
        earned = returns(CMDP(kernel, problem.reward, problem.threshold), policy)
        assert earned[0] >= found.value - 1e-9
        assert (earned[1:] >= problem.threshold - 1e-8).all()


@pytest.mark.parametrize("seed", range(8))
def test_a_grid_of_all_policies_has_none_much_better_and_none_above_the_bound(seed):
    """Two states, two steps: three probabilities matter, each on a grid of 26."""
    problem = problem_of(seed, part=0.9)
    box = Box.around(problem.table, 0.08)
    found = solve_robust(problem, box)
    grid = np.linspace(0.0, 1.0, 26)
    policies = np.zeros((26, 26, 26, 2, 2, 2))
    for place, axis in (((0, 0), 0), ((1, 0), 1), ((1, 1), 2)):
        shape = [1, 1, 1]
        shape[axis] = 26
        policies[(..., *place, 0)] = grid.reshape(shape)
    policies[..., 0, 1, 0] = 1.0
    policies[..., 1] = 1.0 - policies[..., 0]
    worst = np.stack([_worst(problem, box, policies, each) for each in problem.reward])
    meets = worst[1] >= problem.threshold[0]
    assert found.feasible or not meets.any()
    if meets.any():
        best = worst[0][meets].max()
        assert best <= found.upper + 1e-9
        assert best <= found.value + 0.02 * found.value  # the ascent is local: no more is promised


def _worst(problem: CMDP, box: Box, policies: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """min over kernels of V[r] for an array of policies, two states: the smaller of two ends."""
    low = np.maximum(box.lower[..., 1], 1 - box.upper[..., 0])
    high = np.minimum(box.upper[..., 1], 1 - box.lower[..., 0])
    value = np.zeros((*policies.shape[:3], 2))
    for h in (1, 0):
        zero, one = value[..., None, None, 0], value[..., None, None, 1]
        q = reward[h] + np.minimum(
            low[h] * one + (1 - low[h]) * zero, high[h] * one + (1 - high[h]) * zero
        )
        value = (policies[..., h, :, :] * q).sum(axis=-1)
    return value[..., 0]


def test_slopes_are_those_of_finite_differences():
    problem = problem_of(3, X=3, H=3)
    box = Box.around(problem.table, 0.05)
    rng = np.random.default_rng(0)
    policy, toward = rng.dirichlet(np.ones(2), (2, 3, 3))
    slopes = np.stack([_slope(problem, box, policy, each) for each in problem.reward])
    near = 1e-6
    moved = policy + near * (toward - policy)
    change = policy_bounds(box, problem.reward, moved) - policy_bounds(box, problem.reward, policy)
    first = (slopes * (toward - policy)).sum(axis=(1, 2, 3))
    np.testing.assert_allclose(change / near, first, atol=1e-5)


def test_a_threshold_that_one_kernel_forbids_is_infeasible_and_proved_so():
    problem = problem_of(1, part=0.99)
    found = solve_robust(problem, Box.around(problem.table, 0.4))
    assert (found.feasible, found.upper, found.policy) == (False, -np.inf, None)
    assert "one kernel of the box allows none" in found.message
    assert found.gap == np.inf


def test_closed_actions_stay_closed_and_a_box_may_serve_every_step():
    rng = np.random.default_rng(5)
    mask = np.array([[True, False], [True, True]])
    kernel, reward = rng.dirichlet(np.ones(2), (2, 2)), rng.random((2, 2, 2))
    problem = CMDP(kernel, reward, [0.5], 0, 4, "closed", mask)
    width = 0.05
    one = solve_robust(problem, Box.around(problem.table[0], width))
    assert (np.asarray(one.policy)[:, 0, 1] == 0.0).all()
    assert one.value == pytest.approx(solve_robust(problem, Box.around(problem.table, width)).value)
    with pytest.raises(InputError, match="the box has the shape"):
        solve_robust(problem, Box(np.zeros((3, 3)), np.ones((3, 3))))


@pytest.mark.parametrize(
    ("box", "words"),
    [
        (None, "must be a Box"),
        ((np.zeros((2, 2, 2)), np.ones((2, 2, 2))), "must be a Box"),
        (Box("low", "high"), "the box is not an array of real numbers"),
        (Box(np.full((2, 2, 2), np.nan), np.ones((2, 2, 2))), "holds no kernel"),
        (Box(np.full((2, 2, 2), 0.6), np.ones((2, 2, 2))), "holds no kernel"),
        (Box(np.zeros((2, 2, 2)), np.full((2, 2, 2), 0.4)), "holds no kernel"),
    ],
)
@pytest.mark.parametrize("N", [0, 1])
def test_a_box_that_is_none_is_refused_in_a_sentence(box, words, N):
    with pytest.raises(InputError, match=words):
        solve_robust(problem_of(0, N=N), box)


def test_a_problem_without_a_horizon_is_refused():
    endless = StationaryCMDP(np.ones((1, 2, 1)), np.zeros((1, 1, 2)), [], Discounted(0.9), 0)
    with pytest.raises(InputError, match="has no horizon"):
        solve_robust(endless, Box(np.ones((1, 2, 1)), np.ones((1, 2, 1))))


def vertices(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """All vertices of {lower <= p <= upper, sum p = 1}: all entries but one at an end."""
    X, found = len(lower), []
    for free in range(X):
        others = [y for y in range(X) if y != free]
        for ends in itertools.product((0, 1), repeat=X - 1):
            p = np.zeros(X)
            p[others] = np.where(ends, upper[others], lower[others])
            p[free] = 1.0 - p.sum()
            if lower[free] - 1e-12 <= p[free] <= upper[free] + 1e-12:
                found.append(p)
    return np.array(found)


def worst_by_vertices(corners, reward: np.ndarray, policy: np.ndarray | None) -> float:
    """min over kernels of V[r] from state 0: of a policy, or of the one that is best for it."""
    value = np.zeros(reward.shape[1])
    for h in reversed(range(len(reward))):
        q = reward[h] + np.array([[(each @ value).min() for each in row] for row in corners[h]])
        value = q.max(axis=-1) if policy is None else (policy[h] * q).sum(axis=-1)
    return float(value[0])


@examples(25)
@given(seed=st.integers(0, 10**6), X=st.integers(1, 3), part=st.floats(0.6, 1.05))
def test_one_threshold_is_met_exactly_where_the_safest_policy_meets_it(seed, X, part):
    """Three states and boxes of every shape, by enumeration of the vertices of every row."""
    rng = np.random.default_rng(seed)
    A, H = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    estimate = rng.dirichlet(np.ones(X), (H, X, A))
    box = Box.around(estimate, rng.uniform(0.0, 0.4, estimate.shape) * rng.integers(0, 2))
    corners = [
        [[vertices(box.lower[h, x, a], box.upper[h, x, a]) for a in range(A)] for x in range(X)]
        for h in range(H)
    ]
    reward = rng.random((2, H, X, A))
    safest = worst_by_vertices(corners, reward[1], None)
    problem = CMDP(estimate, reward, [min(part * safest, H)])
    found = solve_robust(problem, box)
    assert found.feasible == (part <= 1.0)
    if found.feasible:
        policy = np.asarray(found.policy)
        worst = [worst_by_vertices(corners, each, policy) for each in reward]
        assert found.value == pytest.approx(worst[0], abs=1e-9)
        assert worst[1] >= problem.threshold[0] - 1e-8
        assert worst[0] <= found.upper + 1e-9
