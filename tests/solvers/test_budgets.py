"""Budgets of every kind, against every policy with memory there is, HiGHS and simulation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from conftest import random_problem
from histories import Tree

from cmdplab import evaluate
from cmdplab.cmdp.budgets import (
    AlmostSure,
    Anytime,
    Chance,
    CVaR,
    Expected,
    Forbidden,
    VisitCap,
    as_cost,
    without,
)
from cmdplab.cmdp.policy import Policy
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Discounted, StationaryCMDP
from cmdplab.errors import InputError
from cmdplab.solvers import solve
from cmdplab.solvers.budgeted import BudgetSolution, augmented, solve_budgets


def tiny(seed: int, X: int = 2, A: int = 2, H: int = 3, low: int = 0) -> tuple[CMDP, np.ndarray]:
    """A problem without constraints, some rows deterministic, and whole costs from low to 2."""
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.full(X, 0.7), (H, X, A))
    sure = rng.random((H, X, A)) < 0.4
    kernel[sure] = np.eye(X)[rng.integers(X, size=int(sure.sum()))]
    problem = CMDP(kernel, rng.random((1, H, X, A)), [], int(rng.integers(X)))
    return problem, rng.integers(low, 3, (H, X, A)).astype(float)


def same(problem: CMDP, found: BudgetSolution, value: float | None) -> bool:
    assert found.feasible == (value is not None), (found.message, value)
    if value is not None:
        assert found.value == pytest.approx(value, abs=1e-7)
        assert found.duality_gap <= 1e-9
        assert evaluate(problem, found.policy).value == pytest.approx(found.value, abs=1e-10)
    return found.feasible


def deterministic_best(problem: CMDP, cost: np.ndarray, budget: float, anytime: bool):
    """By recursion over histories: the best among all deterministic policies that remember all."""

    def best(h, x, spent):
        if h == problem.horizon:
            return 0.0 if spent <= budget else None
        values = []
        for a in range(problem.actions):
            now = spent + cost[h, x, a]
            if anytime and now > budget:
                continue
            total, fine = problem.reward[0, h, x, a], True
            for y in np.flatnonzero(problem.table[h, x, a]):
                ahead = best(h + 1, y, now)
                fine = fine and ahead is not None
                total += problem.table[h, x, a, y] * (ahead or 0.0)
                if h + 1 == problem.horizon:
                    total = problem.reward[0, h, x, a]
            if fine:
                values.append(total)
        return max(values, default=None)

    return best(0, problem.start, 0.0)


@pytest.mark.parametrize("low", [0, -2])
@pytest.mark.parametrize("kind", [AlmostSure, Anytime])
def test_budgets_kept_surely_match_every_policy_that_remembers_all(kind, low):
    answers = set()
    for seed in range(30):
        problem, cost = tiny(seed, X=3 if seed % 3 == 0 else 2, A=2 + seed % 2, low=low)
        budget = float(seed % 5 - (1 if low else 0))
        expected = deterministic_best(problem, cost, budget, kind.anytime)
        found = solve_budgets(problem, kind(cost, budget))
        answers.add(same(problem, found, expected))
        if found.feasible:
            assert found.kept[0].reached <= budget
    assert answers == {True, False}


@pytest.mark.parametrize("low", [0, -2])
@pytest.mark.parametrize("anytime", [False, True])
def test_chance_budgets_match_the_program_over_histories(anytime, low):
    answers = set()
    for seed in range(25):
        problem, cost = tiny(seed, low=low)
        budget, p = float(seed % 4 - (1 if low else 0)), (0.05, 0.2, 0.5)[seed % 3]
        tree = Tree(problem, [cost])
        row = tree.at_ends(lambda s, b=budget: (max(s[0]) if anytime else s[0][-1]) > b)
        expected = tree.best([(row, p)], np.zeros(len(row), bool))
        found = solve_budgets(problem, Chance(cost, budget, p, anytime))
        answers.add(same(problem, found, expected))
        if found.feasible:
            assert found.kept[0].reached <= p + 1e-9
        else:
            assert "the least possible is" in found.message
    assert answers == {True, False}


def test_several_budgets_at_once_match_the_program_over_histories():
    answers = set()
    for seed in range(25):
        problem, first = tiny(seed)
        second = tiny(seed + 100)[1]
        tree = Tree(problem, [first, second])
        zero = np.zeros(len(tree.reward), bool)
        bad = tree.at_ends(lambda s: s[0][-1] > 3)
        rows = [(bad, 0.0), (tree.at_ends(lambda s: s[1][-1] > 2), 0.3)]
        rows.append((tree.at_ends(lambda s: s[1][-1]), 2.5))
        expected = tree.best(rows, zero)
        budgets = AlmostSure(first, 3), Chance(second, 2, 0.3), Expected(second, 2.5)
        answers.add(same(problem, solve_budgets(problem, *budgets), expected))
        rows[1] = (rows[1][0], 0.0)
        expected = tree.best(rows, zero)
        same(
            problem, solve_budgets(problem, budgets[0], AlmostSure(second, 2), budgets[2]), expected
        )
    assert answers == {True, False}


def test_cvar_matches_the_program_over_histories_for_any_z():
    for seed in range(15):
        problem, cost = tiny(seed, low=-1 if seed % 2 else 0)
        level, bound = (0.0, 0.5, 0.9)[seed % 3], float(seed % 4) + 0.5 * (seed % 2)
        tree = Tree(problem, [cost])
        values = []
        for z in np.arange(-4.0, 7.0, 0.5):
            if z > bound:
                continue
            row = tree.at_ends(lambda s, z=z: max(s[0][-1] - z, 0.0))
            allowed = (1 - level) * (bound - z)
            values.append(tree.best([(row, allowed)], np.zeros(len(row), bool)))
        expected = max((v for v in values if v is not None), default=None)
        found = solve_budgets(problem, CVaR(cost, level, bound))
        if same(problem, found, expected):
            assert found.kept[0].reached <= bound + 1e-7


def test_forbidden_pairs_and_visit_caps_match_the_program_over_histories():
    answers = set()
    for seed in range(20):
        problem, cost = tiny(seed, X=3)
        tree = Tree(problem, [cost])
        zero = np.array([h == 2 and x == 1 for h, x, _ in tree.visited])
        visits = np.array([float(x == 2) for _, x, _ in tree.visited])
        same(
            problem, solve_budgets(problem, VisitCap(2, 0.8)), tree.best([(visits, 0.8)], zero * 0)
        )
        budgets = Forbidden(states=1, steps=2), VisitCap(2, 1.2), AlmostSure(cost, 4)
        bad = tree.at_ends(lambda s: s[0][-1] > 4)
        expected = tree.best([(visits, 1.2)], zero | (bad > 0))
        answers.add(same(problem, solve_budgets(problem, *budgets), expected))
    assert answers == {True, False}


def mixed(seed: int) -> tuple[CMDP, np.ndarray, np.random.Generator]:
    """A problem that may have closed actions, a constraint, ties and one kernel for all steps."""
    rng = np.random.default_rng(seed)
    X, A, H = (int(rng.integers(1, most)) for most in (4, 4, 4))
    problem, _ = tiny(seed, X, A, H)
    opened = rng.random((H, X, A)) > 0.2 * rng.integers(0, 2)
    opened[..., 0] |= ~opened.any(axis=-1)
    reward = rng.random((1 + int(rng.random() < 0.3), H, X, A))
    reward = np.rint(reward) if rng.random() < 0.3 else reward
    kernel = problem.table[0] if rng.random() < 0.4 else problem.table
    limits = rng.uniform(0.2, 0.6, len(reward) - 1) * H
    problem = CMDP(kernel, reward, limits, problem.start, H, "mixed", opened)
    unit = (1.0, 0.1, 1 / 3, 123457.0)[seed % 4]
    return problem, unit * rng.integers(-2 if rng.random() < 0.4 else 0, 4, (H, X, A)), rng


def drawn_budget(problem: CMDP, cost: np.ndarray, kind: int, rng: np.random.Generator, tree: Tree):
    """A budget, and what it is over histories: rows with limits, zeros, and choices of rows."""
    none = np.zeros(len(tree.reward), bool)
    low, high = (getattr(cost, end)(axis=(1, 2)).sum() for end in ("min", "max"))
    unit = np.abs(cost[cost != 0.0]).min(initial=np.inf) / 4 if cost.any() else 1.0
    levels = np.unique(np.round([sums[0][-1] / unit for _, sums in tree.ends])) * unit
    B = float(rng.choice(levels)) - (unit if rng.random() < 0.2 else 0.0)
    over = B + unit / 2  # sums are not exact in doubles, and no two are closer than a unit
    if kind in (0, 1):
        bad = tree.at_ends(lambda s: (max(s[0]) if kind else s[0][-1]) > over) > 0
        return (Anytime if kind else AlmostSure)(cost, B), [], bad, []
    if kind in (2, 3):
        p = float(rng.choice([0.05, 0.3, 1.0]))
        row = tree.at_ends(lambda s: (max(s[0]) if kind == 3 else s[0][-1]) > over)
        return Chance(cost, B, p, anytime=kind == 3), [(row, p)], none, []
    if kind == 4:
        B = float(low + (high - low) * rng.random())
        return Expected(cost, B), [(tree.at_ends(lambda s: s[0][-1]), B)], none, []
    if kind == 5:
        level = float(rng.choice([0.0, 0.5, 0.9]))
        choices = [
            (tree.at_ends(lambda s, z=z: max(s[0][-1] - z, 0.0)), (1 - level) * max(B - z, 0.0))
            for z in [*levels[levels < over], B]
        ]
        return CVaR(cost, level, B), [], none, choices
    x, h = int(rng.integers(problem.states)), int(rng.integers(problem.horizon))
    here = np.array([each[:2] == (h, x) for each in tree.visited])
    if kind == 6:
        return Forbidden(x, steps=h), [], here, []
    return VisitCap(x, 0.4, steps=h), [(here.astype(float), 0.4)], none, []


def combined(seed: int) -> bool:
    """Two budgets of any kinds on one cost against the program over histories."""
    problem, cost, rng = mixed(seed)
    tree = Tree(problem, [cost])
    kinds = seed % 8, int(rng.integers(8))
    asked = [drawn_budget(problem, cost, kind, rng, tree) for kind in kinds]
    rows = [row for each in asked for row in each[1]]
    for utility, limit in zip(problem.reward[1:], problem.threshold, strict=True):
        rows.append((-np.array([utility[each] for each in tree.visited]), -limit))
    zero = np.logical_or(*(each[2] for each in asked))
    values = [
        tree.best([*rows, *choice], zero)
        for choice in product(*(each[3] for each in asked if each[3]))
    ]
    expected = max((each for each in values if each is not None), default=None)
    return same(problem, solve_budgets(problem, *(each[0] for each in asked)), expected)


def test_any_two_budgets_match_the_program_over_histories():
    assert {combined(seed) for seed in range(40)} == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1400, 50))
def test_many_pairs_of_budgets_match_the_program_over_histories(first):
    assert {combined(seed) for seed in range(first, first + 50)} == {True, False}


def spending(H: int = 6) -> tuple[CMDP, np.ndarray]:
    """Four states in a ring that slips; the better of three actions cost more, in tenths."""
    X, A = 4, 3
    kernel = np.zeros((X, A, X))
    for x, a in product(range(X), range(A)):
        kernel[x, a, (x + a) % X] += 0.7
        kernel[x, a, (x + a + 1) % X] += 0.3
    reward = np.random.default_rng(3).random((1, X, A)) * [0.3, 0.7, 1.0]
    cost = np.array([0.0, 0.1, 0.3]) + 0.1 * (np.arange(X)[:, None] == 2)
    return CMDP(kernel, reward, [], horizon=H, name="ring"), cost


def test_a_chance_of_zero_is_almost_surely_and_of_one_is_no_budget():
    problem, cost = spending()
    sure = solve_budgets(problem, AlmostSure(cost, 0.9)).value
    assert solve_budgets(problem, Chance(cost, 0.9, 0.0)).value == pytest.approx(sure, abs=1e-12)
    nearly = solve_budgets(problem, Chance(cost, 0.9, 1e-7)).value
    assert nearly == pytest.approx(sure, abs=1e-4)  # by the program, not by closed actions
    free = solve(problem).value
    assert solve_budgets(problem, Chance(cost, 0.9, 1.0)).value == pytest.approx(free, abs=1e-10)
    assert solve_budgets(problem, AlmostSure(cost, 100)).value == pytest.approx(free, abs=1e-12)


def test_the_value_is_concave_in_the_probability_and_between_sure_and_expected():
    problem, cost = spending()
    p = np.linspace(0.0, 0.6, 7)
    values = np.array([solve_budgets(problem, Chance(cost, 0.9, each)).value for each in p])
    assert np.all(np.diff(values) >= -1e-9)
    assert np.all(np.diff(values, 2) <= 1e-9)
    assert values[0] <= solve_budgets(problem, Expected(cost, 0.9)).value + 1e-9
    slope = np.diff(values) / np.diff(p)
    price = solve_budgets(problem, Chance(cost, 0.9, 0.25)).kept[0].price
    assert slope[3] - 1e-9 <= price <= slope[1] + 1e-9


def test_cvar_goes_from_the_expectation_to_the_largest_cost():
    problem, cost = spending(5)
    mean = solve_budgets(problem, CVaR(cost, 0.0, 0.8)).value
    assert mean == pytest.approx(solve_budgets(problem, Expected(cost, 0.8)).value, abs=1e-8)
    sure = solve_budgets(problem, AlmostSure(cost, 0.8)).value
    assert solve_budgets(problem, CVaR(cost, 1 - 1e-7, 0.8)).value == pytest.approx(sure, abs=1e-4)
    between = [solve_budgets(problem, CVaR(cost, level, 0.8)).value for level in (0.3, 0.6, 0.9)]
    assert mean >= between[0] >= between[1] >= between[2] >= sure - 1e-9


def played(problem: CMDP, found: BudgetSolution, cost: np.ndarray, episodes: int, seed: int = 0):
    """[episodes, H], the costs of simulated episodes; the counter follows what was played."""
    rng, memory = np.random.default_rng(seed), found.policy.counter
    x = np.full(episodes, problem.start)
    m = np.full(episodes, memory.start)
    costs = []
    for h in range(problem.horizon):
        rows = np.cumsum(found.policy[h, m, x], axis=-1)
        a = (rng.random((episodes, 1)) >= rows[:, :-1]).sum(axis=-1)
        costs.append(cost[x, a])
        m = memory.next_levels(h)[m, x, a]
        ahead = np.cumsum(problem.table[h, x, a], axis=-1)
        x = (rng.random((episodes, 1)) >= ahead[:, :-1]).sum(axis=-1)
    return np.stack(costs, axis=1)


def test_simulated_episodes_never_exceed_a_sure_budget():
    problem, cost = spending(10)
    found = solve_budgets(problem, AlmostSure(cost, 1.3))
    totals = played(problem, found, cost, 100_000).sum(axis=1)
    assert totals.max() <= 1.3 + 1e-12
    assert found.kept[0].reached == pytest.approx(1.3)
    mended = np.where(np.arange(4)[:, None] == 0, -0.2, cost)
    found = solve_budgets(problem, Anytime(mended, 0.3))
    assert np.cumsum(played(problem, found, mended, 100_000), axis=1).max() <= 0.3 + 1e-12


@pytest.mark.parametrize("anytime", [False, True])
def test_simulated_episodes_exceed_a_chance_budget_as_often_as_computed(anytime):
    problem, cost = spending(10)
    cost = np.where(np.arange(4)[:, None] == 0, -0.2, cost)
    found = solve_budgets(problem, Chance(cost, 0.6, 0.1, anytime))
    sums = np.cumsum(played(problem, found, cost, 100_000), axis=1)
    often = ((sums.max(axis=1) if anytime else sums[:, -1]) > 0.6 + 1e-9).mean()
    assert found.kept[0].reached == pytest.approx(0.1, abs=1e-9)
    assert often == pytest.approx(0.1, abs=5 * np.sqrt(0.1 * 0.9 / 100_000))


def test_an_impossible_budget_names_the_least_that_can_be_kept():
    problem, cost = spending()
    dear = cost + 0.2
    assert not solve_budgets(problem, AlmostSure(dear, 1.0)).feasible
    message = solve_budgets(problem, AlmostSure(dear, 1.0)).message
    least = float(message.rsplit(" ", 1)[1])
    assert solve_budgets(problem, AlmostSure(dear, least)).feasible
    assert not solve_budgets(problem, AlmostSure(dear, least - 0.1)).feasible
    assert "least possible" in solve_budgets(problem, CVaR(dear, 0.5, 0.9)).message
    assert "avoids" in solve_budgets(problem, Forbidden(states=range(4), steps=[2])).message


def test_two_sure_budgets_may_be_kept_alone_and_not_together():
    kernel = np.ones((1, 2, 1))
    problem = CMDP(kernel, np.zeros((1, 1, 2)), [], horizon=2)
    costs = np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])
    one, other = (AlmostSure(each, 0) for each in costs)
    assert solve_budgets(problem, one).feasible
    assert "cannot be kept together" in solve_budgets(problem, one, other).message
    assert solve_budgets(problem, AlmostSure(costs[0], 1), AlmostSure(costs[1], 1)).feasible


def test_a_conflict_is_named_by_budgets_of_which_none_can_be_left_out():
    kernel = np.ones((1, 2, 1))
    reward = np.array([[[0.0, 0.0]], [[0.0, 1.0]]])
    problem = CMDP(kernel, reward, [1.5], horizon=2)
    second = np.array([[0.0, 1.0]])  # of the action that the constraint asks for
    idle = VisitCap(0, 5.0)
    found = solve_budgets(problem, idle, Chance(second, 0.0, 0.9), Expected(second, 1.0), idle)
    assert not found.feasible
    assert found.message == (
        "budget 3 (expected cost at most 1) and constraint 1 (constraint 1) "
        "cannot be kept together, though any fewer of them can"
    )
    found = solve_budgets(problem, CVaR(second, 0.0, 0.0), VisitCap(0, 1.0, actions=0))
    assert "budget 1" in found.message
    assert "constraint 1" in found.message


@pytest.mark.parametrize("horizon", [2, 3, 6, 7])
@pytest.mark.parametrize("dear", [0.1, 0.3, 0.7, 1 / 3])
def test_a_budget_that_is_just_possible_is_not_lost_to_rounding(horizon, dear):
    problem = CMDP(np.ones((1, 2, 1)), np.array([[[0.2, 1.0]]]), [], horizon=horizon)
    cost = np.array([[0.0, dear]])
    for budget in (
        Expected(cost, 0.0),
        Expected(cost + 0.1, 0.1 * horizon),
        Expected(cost - dear, -dear * horizon),
        CVaR(cost, 0.5, 0.0),
        Chance(cost, 0.0, 0.0),
    ):
        assert solve_budgets(problem, budget).value == pytest.approx(0.2 * horizon, abs=1e-9)


def test_names_may_be_arrays_and_steps_may_be_written_as_text():
    problem, _ = spending()
    assert str(Forbidden(states=np.array([0, 1]))) == "never state 0, 1"
    one, other = (
        solve_budgets(problem, Forbidden(actions=2, steps=each)).value for each in ("1", [1])
    )
    assert one == other


def test_costs_without_a_grid_are_refused_or_rounded_with_a_stated_error():
    problem, cost = spending()
    odd = cost * np.linspace(1.0, np.sqrt(2.0), 12).reshape(4, 3)
    with pytest.raises(InputError, match=r"at \[0, 0, 1\] is on no grid"):
        solve_budgets(problem, AlmostSure(odd, 0.9))
    safe = solve_budgets(problem, AlmostSure(odd, 0.9, grid=0.01))
    loose = solve_budgets(problem, AlmostSure(odd, 0.9, grid=0.01, rounding="down"))
    finer = solve_budgets(problem, AlmostSure(odd, 0.9, grid=0.001))
    assert safe.value <= finer.value + 1e-12 <= loose.value + 2e-12
    assert 0.0 < loose.kept[0].rounding <= 6 * 0.01
    assert played(problem, safe, odd, 20_000).sum(axis=1).max() <= 0.9
    assert played(problem, loose, odd, 20_000).sum(axis=1).max() <= 0.9 + loose.kept[0].rounding


@pytest.mark.parametrize("ending", ["npz", "json"])
def test_policies_with_several_counters_and_limits_survive_their_files(tmp_path, ending):
    problem, cost = spending(4)
    mended = np.where(np.arange(4)[:, None] == 0, -0.2, cost)
    for budgets in (
        [AlmostSure(cost, 0.9), Chance(mended, 0.3, 0.2, anytime=True)],
        [Chance(mended, 0.3, 0.2, anytime=True)],
        [AlmostSure(cost * 7919, 6334)],
    ):
        policy = solve_budgets(problem, *budgets).policy
        policy.save(tmp_path / f"policy.{ending}")
        again = Policy.load(tmp_path / f"policy.{ending}", problem)
        np.testing.assert_array_equal(again.array, policy.array)
        for h in range(problem.horizon):
            following = policy.counter.next_levels(h)
            np.testing.assert_array_equal(again.counter.next_levels(h), following)
            k, x, a = policy.counter.levels // 2, 1, 2
            assert again.counter.after(k, h, x, a) == following[k, x, a]


def test_memory_is_for_the_sums_that_occur_however_large_they_are():
    problem, cost = spending(5)
    few = np.rint(10 * cost)
    plain = solve_budgets(problem, AlmostSure(few, 8))
    for one in (10**6 + 3, 2**50 + 1):
        large = solve_budgets(problem, AlmostSure(few * one, 8 * one))
        assert large.value == pytest.approx(plain.value, abs=1e-12)
        odd = solve_budgets(problem, AlmostSure(few * one + (few > 0), 8 * one + 8))
        assert odd.value == pytest.approx(plain.value, abs=1e-12)
        assert odd.policy.counter.levels < 60
        assert evaluate(problem, odd.policy).value == pytest.approx(odd.value, abs=1e-10)


def test_a_problem_that_grows_too_large_is_refused_with_its_size(monkeypatch):
    monkeypatch.setattr(augmented, "MOST_ENTRIES", 10**6)  # the real limit is met after 30 s
    problem = random_problem(30, 3, 20, 0)
    cost = np.random.default_rng(0).integers(0, 10**6, (30, 3))
    with pytest.raises(InputError, match=r"pairs of a state and a sum of costs"):
        solve_budgets(problem, AlmostSure(cost, 2 * 10**7))


def test_the_constraint_of_a_problem_can_be_asked_of_every_episode():
    problem = random_problem(3, 2, 4, 1, seed=5)
    utility = np.rint(problem.reward[1] * 4) / 4
    problem = CMDP(problem.transition, np.stack([problem.reward[0], utility]), [1.0], problem.start)
    cost, budget = as_cost(problem, 1)
    assert budget == 3.0
    hard = solve_budgets(without(problem, [1]), AlmostSure(cost, budget))
    assert hard.value <= solve(problem).value + 1e-9
    both = solve_budgets(problem, AlmostSure(cost, budget))
    assert both.value == pytest.approx(hard.value, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Chance(np.zeros((4, 3)), 1, 1.5), "outside"),
        (lambda: CVaR(np.zeros((4, 3)), 1.0, 1), "outside"),
        (lambda: AlmostSure(np.zeros((4, 3)), np.nan), "not a finite number"),
        (lambda: AlmostSure(np.zeros((4, 3)), 1, grid=0.0), "not a step above zero"),
        (lambda: AlmostSure(np.zeros((4, 3)), 1, rounding="off"), "not one of up, down"),
        (lambda: AlmostSure(np.zeros((3, 4)), 1), "the cost has the shape"),
        (lambda: Forbidden(), "needs states, actions or both"),
        (lambda: Forbidden(states=9), "there is no state 9"),
        (lambda: VisitCap(1, -1.0), "below zero"),
        (lambda: Expected(np.full((4, 3), np.inf), 1), "not a finite number"),
        (lambda: "cheap", "is no budget"),
    ],
)
def test_bad_budgets_are_refused_in_a_sentence(make, words):
    with pytest.raises(InputError, match=words):
        solve_budgets(spending()[0], make())


def test_budgets_are_refused_without_a_horizon():
    endless = StationaryCMDP(np.ones((1, 2, 1)), np.zeros((1, 1, 2)), [], Discounted(0.9), 0)
    with pytest.raises(InputError, match="no CMDP with a horizon"):
        solve_budgets(endless, AlmostSure(np.zeros((1, 2)), 1))
