"""A known kernel: compiled sweeps against plain dynamic programs, mixtures against HiGHS."""

from __future__ import annotations

import near_degenerate
import numpy as np
import pytest
from conftest import random_policy, random_problem
from occupancy_lp import occupancy_optimum

from cmdplab import solve
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CLOSED, CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError, OpenCertificateError
from cmdplab.solvers import known as known_module
from cmdplab.solvers.induction import (
    BLOCK,
    TAIL,
    Lists,
    Table,
    rows_of,
    sweep,
    write_excess,
    write_lasting_excess,
)
from cmdplab.solvers.known import Known
from cmdplab.solvers.thresholds.frontier import frontier


@pytest.fixture
def pooled(monkeypatch):
    """Search over a pool at any size: small problems would be left to the learners' planner."""
    monkeypatch.setattr(known_module, "SPARSE_FROM", 0)


def few_successors(states: int = 60, constraints: int = 0, seed: int = 0, horizon: int = 6) -> CMDP:
    """A table in which every row has three successors."""
    rng = np.random.default_rng(seed)
    X, A, H = states, 3, horizon
    kernel = np.zeros((X, A, X))
    for x in range(X):
        for a in range(A):
            kernel[x, a, rng.choice(X, 3, replace=False)] = rng.dirichlet(np.ones(3))
    threshold = np.full(constraints, 0.52 * H)
    return CMDP(kernel, rng.random((1 + constraints, X, A)), threshold, 2, horizon=H)


def cases() -> list[CMDP]:
    changing = random_problem(6, 3, 5, 2)
    masked = random_problem(7, 4, 4, 2, closed=0.4)
    once = random_problem(5, 2, 3, 1, stationary=True)
    listed = few_successors(constraints=1)
    each_step = np.repeat(Sparse.of(listed.table[0]).probability[None], 6, axis=0)
    lists = Sparse(Sparse.of(listed.table[0]).successor, each_step)
    by_step = CMDP(lists, listed.reward, listed.threshold, listed.start)
    return [changing, masked, once, listed, by_step, few_successors(horizon=25)]


@pytest.mark.parametrize("problem", cases(), ids=str)
def test_a_compiled_sweep_is_the_plain_dynamic_program(problem):
    known = Known(problem, problem.threshold)
    weights = np.random.default_rng(1).random(1 + problem.constraints)
    weighted = np.tensordot(weights, problem.reward, axes=1)
    value, actions = known.swept(weights)
    best, _ = exact.greedy(problem, weighted)
    assert value[0, problem.start] == pytest.approx(best, abs=1e-12)
    policy = known.chosen(actions)
    returns = exact.returns(problem, policy)
    assert weights @ returns == pytest.approx(best, abs=1e-12)
    np.testing.assert_allclose(known.followed(actions).returns, returns, atol=1e-12)
    assert problem.opened[policy > 0.0].all()


def lasting(kind: str, rng: np.random.Generator) -> tuple[Lists, np.ndarray]:
    """Lists [X * A, S] and what pairs are worth [X * A], the same at every step."""
    X, A, S = 40, 4, 1 if kind == "moves" else 3
    successor = rng.integers(0, X, (X * A, S)).astype(np.uint32)
    if kind == "periodic":  # between two halves, which earn differently
        successor = successor // 2 + np.where(np.arange(X * A) < X * A // 2, X // 2, 0)[:, None]
        successor = successor.astype(np.uint32)
    worth = rng.normal(size=X * A)
    if kind == "ties":
        worth = np.round(worth)
    if kind == "closed":
        closed = rng.random(X * A) < 0.5
        worth = np.where(closed & (np.arange(X * A) % A > 0), CLOSED, worth)
    return Lists(successor, rng.dirichlet(np.ones(S), X * A)[None]), worth[None]


LASTING = ["mixing", "moves", "periodic", "ties", "closed"]


@pytest.mark.parametrize("kind", LASTING)
@pytest.mark.parametrize("horizon", [1, 2, 9, 10, 30, 200])
def test_leading_actions_are_those_of_a_sweep_over_all(kind, horizon):
    rows, worth = lasting(kind, np.random.default_rng(horizon))
    found = []
    for given in (worth, np.repeat(worth, horizon, axis=0)):  # the second looks at every action
        value, actions = np.empty((horizon + 1, 40)), np.empty((horizon, 40), np.uint8)
        sweep(rows, given, value, actions, np.empty(40))
        found.append((value, actions))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("kind", LASTING)
@pytest.mark.parametrize("horizon", [10, 11, 30, 200])
@pytest.mark.parametrize("size", [0.0, 1e-6, 1e-3, 1.0])
def test_steps_that_follow_from_the_last_ones_have_no_excess(kind, horizon, size):
    rng = np.random.default_rng(horizon)
    rows, worth = lasting(kind, rng)
    value, actions = np.empty((horizon + 1, 40)), np.empty((horizon, 40), np.uint8)
    sweep(rows, worth, value, actions, np.empty(40))
    value += size * rng.normal(size=value.shape)
    quick, whole, by_state = np.zeros(horizon), np.zeros(horizon), np.ascontiguousarray(value.T)
    parts = [np.ascontiguousarray(each) for each in np.split(by_state[:, 1:], [-TAIL], axis=1)]
    scratch = np.empty(horizon), np.empty(TAIL), np.empty(40)
    write_lasting_excess(rows, worth[0], value, *parts, *scratch, quick)  # type: ignore[call-arg]
    write_excess(rows, worth, by_state, np.empty((BLOCK, horizon)), whole)
    np.testing.assert_allclose(quick, whole, rtol=1e-9, atol=1e-12 * horizon)
    assert size == 0.0 or (whole > 0.1 * size).all()


@pytest.mark.parametrize("problem", cases(), ids=str)
def test_a_policy_is_played_as_the_plain_code_plays_it(problem):
    policy = random_policy(problem, 3)
    known = Known(problem, problem.threshold)
    np.testing.assert_allclose(
        known.occupancy(policy), exact.occupancy(problem, policy), atol=1e-14
    )


@pytest.mark.parametrize("problem", cases(), ids=str)
def test_any_values_prove_a_bound(problem):
    known = Known(problem, problem.threshold)
    weights = np.random.default_rng(2).random(1 + problem.constraints)
    best, _ = exact.greedy(problem, np.tensordot(weights, problem.reward, axes=1))
    value, _ = known.swept(weights)
    assert known.proved(weights, value) == pytest.approx(best, abs=1e-11)
    rng = np.random.default_rng(0)
    for size in (1e-6, 0.1, 10.0):
        wrong = value + size * rng.normal(size=value.shape)
        wrong[-1] = 0.0  # after the last step nothing is earned
        assert known.proved(weights, wrong) >= best - 1e-12


def test_rows_with_few_successors_become_lists_whatever_the_storage():
    listed = rows_of(few_successors())
    assert isinstance(listed, Lists)
    assert listed.successor.shape[1] == 3
    table = few_successors().table[0]
    np.testing.assert_allclose(listed.probability.sum(axis=-1), 1.0)
    assert isinstance(rows_of(random_problem(50, 2, 2, 0, concentration=5.0)), Table)
    by_lists = CMDP(Sparse.of(table), few_successors().reward, [], 2)
    assert solve(few_successors()).value == solve(by_lists).value


@pytest.mark.parametrize("constraints", [1, 2, 3])
def test_mixtures_of_a_pool_are_optimal(pooled, constraints):
    for seed in range(12):
        problem = random_problem(5, 3, 4, constraints, seed)
        found = solve(problem)
        assert found.value == pytest.approx(occupancy_optimum(problem).value, abs=1e-8)
        assert abs(found.duality_gap) <= 1e-10
        assert np.all(exact.returns(problem, found.policy)[1:] >= problem.threshold - 1e-10)


@pytest.mark.parametrize("family", near_degenerate.FAMILIES)
def test_nearly_degenerate_problems_have_no_wrong_answer_from_a_pool(pooled, family):
    tally = near_degenerate.Tally()
    for seed in range(15):
        tally.add(seed, near_degenerate.FAMILIES[family](np.random.default_rng(seed)))
    assert tally.seeds == []
    assert tally.refused <= 3


def test_a_pool_and_the_learners_planner_agree(pooled, monkeypatch):
    problem = few_successors(constraints=2)
    by_pool = solve(problem)
    monkeypatch.setattr(known_module, "SPARSE_FROM", 10_000)
    by_planner = solve(problem)
    assert by_pool.value == pytest.approx(by_planner.value, abs=1e-11)
    assert by_pool.slater_gap == pytest.approx(by_planner.slater_gap, abs=1e-11)
    assert by_pool.multiplier == pytest.approx(by_planner.multiplier, abs=1e-8)


def sweeps(monkeypatch) -> list[int]:
    """A list that grows with every sweep."""
    count: list[int] = []
    plain = Known.swept

    def counted(self, weights):
        count.append(1)
        return plain(self, weights)

    monkeypatch.setattr(Known, "swept", counted)
    return count


def test_a_warm_start_finds_the_same_optimum_in_fewer_sweeps(monkeypatch):
    problem = few_successors(100, constraints=2)
    before, count = solve(problem), sweeps(monkeypatch)
    others = [
        problem.changed(threshold=problem.threshold + 0.01),
        problem.changed(reward=np.clip(problem.reward * 0.99, 0.0, 1.0)),
    ]
    for other in others:
        count.clear()
        cold, spent = solve(other), len(count)
        count.clear()
        warm = solve(other, warm=before)
        assert len(count) < spent
        assert warm.value == pytest.approx(cold.value, abs=1e-10)
        assert warm.duality_gap <= 1e-9


def test_a_warm_start_from_another_problem_is_harmless():
    problem = few_successors(70, constraints=1)
    for other in (random_problem(5, 3, 4, 1), random_problem(5, 3, 4, 0), few_successors(70, 2)):
        assert solve(problem, warm=solve(other)).value == pytest.approx(solve(problem).value)


def test_a_warm_start_takes_no_closed_action():
    problem = few_successors(70, constraints=1)
    before = solve(problem)
    mask = before.occupancy.sum(axis=0) < 1e-3
    mask[~mask.any(axis=-1)] = True
    masked = CMDP(problem.table[0], problem.reward, [2.0], 2, mask=mask)
    found = solve(masked, warm=before)
    assert found.value == pytest.approx(solve(masked).value, abs=1e-10)
    assert masked.opened[found.policy > 0.0].all()


def test_a_changed_problem_shares_the_kernel_and_is_checked():
    problem = random_problem(5, 3, 4, 2, closed=0.3)
    other = problem.changed(threshold=[0.1, 0.2])
    assert other.transition is problem.transition
    assert other.threshold.tolist() == [0.1, 0.2]
    again = CMDP(problem.transition, problem.reward, [0.1, 0.2], problem.start, mask=problem.mask)
    assert solve(other).value == solve(again).value
    with pytest.raises(InputError, match="threshold has the shape"):
        problem.changed(threshold=[0.1])
    with pytest.raises(InputError, match="the rewards have the shape"):
        problem.changed(reward=np.zeros((3, 4, 5, 2)))
    with pytest.raises(InputError, match="reward"):
        problem.changed(reward=problem.reward + 1.0)


def test_the_frontier_of_a_larger_problem_passes_through_its_optimum():
    problem = few_successors(60, constraints=1)
    found = frontier(problem, points=21)
    at = solve(problem.changed(threshold=[found.threshold[7]]))
    assert found.value[7] == pytest.approx(at.value, abs=1e-9)
    assert found.certificate <= 1e-9


def test_what_cannot_be_certified_is_refused_by_a_pool_too(pooled):
    reward = np.array([[[[1.0, 0.0]]], [[[0.5, 0.5 + 2e-12]]], [[[0.5 + 2e-12, 0.5]]]])
    beyond = np.nextafter(0.5 + 1e-12, 1.0)
    with pytest.raises(OpenCertificateError):
        solve(CMDP(np.ones((1, 1, 2, 1)), reward, [beyond, beyond], 0))
