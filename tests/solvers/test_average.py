"""Optima of average rewards where exits are rare, units differ and thresholds are the best."""

from __future__ import annotations

from decimal import localcontext
from fractions import Fraction

import numpy as np
import pytest
from exact_optima import judged, made

from cmdplab import Average, StationaryCMDP, evaluate, solve
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import OpenCertificateError
from cmdplab.numerics.elimination import Passage
from cmdplab.solvers.stationary.average import Classes, Scaled, Sweeps
from cmdplab.solvers.stationary.howard import DIGITS, decimals

EXITS = [1e-8, 1e-9, 1.5e-11, 1e-11, 1e-12, 1e-13, 1e-14]


def trap(leave: float, reward: list[list[list[float]]], limits: list[float]) -> StationaryCMDP:
    """State 0 stays, or leaves at times for state 1, which is never left."""
    kernel = [[[1.0, 0.0], [1.0 - leave, leave]], [[0.0, 1.0], [0.0, 1.0]]]
    return StationaryCMDP(np.array(kernel), np.array(reward), np.array(limits), Average())


def problem(seed: int, X: int = 5, A: int = 3, N: int = 1) -> StationaryCMDP:
    """A random problem with exits down to 1e-14, periodic rows and closed groups."""
    rng = np.random.default_rng(seed)
    kernel = np.zeros((X, A, X))
    for x in range(X):
        for a in range(A):
            some = rng.choice(X, 3, replace=False)
            kernel[x, a, some[0]] = 1.0
            if rng.random() < 0.7:
                rare = 10.0 ** -rng.uniform(0.5, 14.0, 2)
                kernel[x, a, some] = [1.0 - rare.sum(), *rare]
    return StationaryCMDP(kernel, rng.random((1 + N, X, A)), np.zeros(N), Average())


@pytest.mark.parametrize("leave", EXITS)
def test_a_rare_exit_to_more_reward_is_taken(leave):
    solution = solve(trap(leave, [[[0.27, 0.1], [1.0, 1.0]]], []))
    assert solution.value == pytest.approx(1.0, abs=1e-12)
    assert 1.0 <= solution.dual <= 1.0 + 1e-12


@pytest.mark.parametrize("leave", EXITS)
def test_a_rare_exit_that_a_threshold_needs_is_taken(leave):
    reward = [[[0.27, 0.1], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]]
    solution = solve(trap(leave, reward, [1.0]))
    assert solution.feasible
    assert solution.value == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(OpenCertificateError, match=r"optimum, 0\.135, .* classes \{0\} and \{1\}"):
        solve(trap(leave, reward, [0.5]))  # some leave and some stay: no stationary policy does


@pytest.mark.parametrize("leave", EXITS)
def test_rare_exits_both_ways(leave):
    kernel = np.array([[[1.0 - leave, leave]] * 2, [[leave, 1.0 - leave]] * 2])
    reward = np.array([[[0.1, 0.1], [1.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]])
    free = solve(StationaryCMDP(kernel, reward[:1], np.zeros(0), Average()))
    assert free.value == pytest.approx(0.55, abs=1e-14)
    assert free.dual >= 0.55
    limited = solve(StationaryCMDP(kernel, reward, np.array([0.25]), Average()))
    assert limited.value == pytest.approx(0.55, abs=1e-12)


@pytest.mark.parametrize("leave", EXITS)
def test_no_average_exceeds_the_largest_reward(leave):
    found = evaluate(trap(leave, [[[0.0, 0.0], [1.0, 1.0]]], []), [[0, 1], [1, 0]])
    assert found.value == 1.0
    assert found.occupancy.sum() == pytest.approx(1.0, abs=1e-15)


def test_a_threshold_at_the_largest_utility():
    kernel = np.array([[[0.5, 0.5], [0, 1]], [[0, 1], [0.6, 0.4]]])
    reward = np.array([[[0.5, 0.25], [0, 0.5]], [[0.25, 0], [0.75, 0]]])
    solution = solve(StationaryCMDP(kernel, reward, np.array([0.75]), Average()))
    assert (solution.feasible, solution.value, solution.slater_gap) == (True, 0.0, 0.0)


@pytest.mark.parametrize("seed", [*range(40), 49, 215, 356, 443, 591, 630, 808, 1919])
def test_small_ill_scaled_problems_have_the_optimum_of_fractions(seed):
    assert judged(made("average", seed)) == "right"


@pytest.mark.parametrize("seed", range(40))
def test_thresholds_around_the_largest_utility(seed):
    free = problem(seed)
    swapped = StationaryCMDP(free.transition, free.reward[1:], np.zeros(0), Average())
    most = solve(swapped).value

    def at(limit: float) -> StationaryCMDP:
        return StationaryCMDP(free.transition, free.reward, np.array([limit]), Average())

    for limit in (most, most - 1e-12, most + 1e-12, most - 1e-7):
        solution = solve(at(limit))
        assert solution.feasible
        assert evaluate(at(limit), solution.policy).violation.max() <= 1e-9
        assert solution.value <= solution.dual
        assert solution.duality_gap <= 1e-9
    assert not solve(at(most + 1e-7)).feasible


def test_the_value_of_the_only_policy_is_known_to_its_last_digits():
    kernel = np.array([[[0.48793769854028307, 0.5120623014597169]], [[1.0, 0.0]]])
    reward = np.array([[[9276131.66474228], [0.0]]])
    value = solve(StationaryCMDP(kernel, reward, np.zeros(0), Average())).value
    assert value == pytest.approx(9276131.66474228 / 1.5120623014597169, rel=4e-16)


@pytest.mark.parametrize("unit", [2.0**-60, 1e-9, 1e9])
def test_all_units_have_the_same_optimum(unit):
    free = problem(3)
    reward, limit = free.reward, np.array([0.4])
    ours = solve(StationaryCMDP(free.transition, reward, limit, Average()))
    theirs = solve(StationaryCMDP(free.transition, unit * reward, unit * limit, Average()))
    assert theirs.value == pytest.approx(unit * ours.value, rel=1e-12)
    assert theirs.slater_gap == pytest.approx(unit * ours.slater_gap, rel=1e-9)
    np.testing.assert_allclose(theirs.multiplier, ours.multiplier, rtol=1e-9)
    mixed = np.stack([1e9 * reward[0], unit * reward[1]])
    both = solve(StationaryCMDP(free.transition, mixed, unit * limit, Average()))
    assert both.value == pytest.approx(1e9 * ours.value, rel=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_bounds_hold_whatever_was_found(seed):
    scaled = Scaled(problem(seed))
    weights = np.random.default_rng(seed).random(2)
    exact, doubles, sweeps = Classes(scaled, True), Classes(scaled, False), Sweeps(scaled)
    best = exact.best([Fraction(w) for w in weights.tolist()]).returns
    best = sum(Fraction(w) * each for w, each in zip(weights.tolist(), best, strict=True))
    assert exact.bound(weights.tolist()) - best < Fraction(1, 10**40)
    rng = np.random.default_rng(seed)
    for _ in range(10):
        doubles.followed(rng.integers(0, 3, scaled.problem.states))
        assert doubles.bound(weights) >= best
        sweeps.value[:] = 10.0 ** rng.uniform(-3.0, 12.0) * rng.random(5)
        assert sweeps.bound(weights) >= best


def test_elimination_keeps_all_digits_of_rare_exits():
    rng = np.random.default_rng(0)
    inner = 10.0 ** -rng.uniform(0.0, 15.0, (6, 6)) / 6.0
    out, right = 10.0 ** -rng.uniform(10.0, 15.0, 6), rng.random((6, 2))
    with localcontext(prec=DIGITS):
        exact = Passage(decimals(inner), decimals(out))
        solved, visited = exact.solve(decimals(right)), exact.visits(decimals(right[:, 0]))
    passage = Passage(inner, out)
    np.testing.assert_allclose(passage.solve(right), solved.astype(float), rtol=1e-14)
    np.testing.assert_allclose(passage.visits(right[:, 0]), visited.astype(float), rtol=1e-14)


def ring(states: int) -> Sparse:
    """Three actions: stay, right, left; each other move has the probability 0.1."""
    at = np.arange(states)[:, None, None]
    successor = np.broadcast_to((at + np.array([0, 1, -1])) % states, (states, 3, 3))
    return Sparse(successor, np.broadcast_to(0.7 * np.eye(3) + 0.1, (states, 3, 3)))


@pytest.mark.parametrize("seed", [0, 1, 3, 9])  # 1, 3, 9: distant states nearly tie
@pytest.mark.parametrize("table", [True, False])
def test_a_ring_of_500_states_is_certified(table, seed):
    reward = np.random.default_rng(seed).random((1, 500, 3))
    kernel = ring(500).dense() if table else ring(500)
    solution = solve(StationaryCMDP(kernel, reward, np.zeros(0), Average()))
    assert solution.duality_gap <= 1e-11
    assert evaluate(
        StationaryCMDP(kernel, reward, np.zeros(0), Average()), solution.policy
    ).value == pytest.approx(solution.value, abs=1e-11)


@pytest.mark.parametrize("N", [1, 2])
def test_lists_of_2000_states_with_constraints_are_certified(N):
    rng = np.random.default_rng(N)
    first = rng.integers(0, 500, (2_000, 3, 4))
    kernel = Sparse(first + 500 * np.arange(4), np.full(first.shape, 0.25))
    given = StationaryCMDP(kernel, rng.random((1 + N, 2_000, 3)), np.full(N, 0.55), Average())
    solution = solve(given)
    assert solution.duality_gap <= 1e-11
    assert evaluate(given, solution.policy).violation.max() <= 1e-10
    assert (solution.multiplier > 0.1).all()
