"""Prices, frontiers and conflicts against HiGHS, closed forms and all subsets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from occupancy_lp import program
from scipy.optimize import linprog

import cmdplab
from cmdplab import CMDP, Average, Discounted, InputError, StationaryCMDP
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.formats import from_state_first
from cmdplab.solvers import solve, solve_feasible

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
ROWS = [
    {"state": "ok", "action": "careful", "next": "ok", "probability": 0.9, "reward": 4,
     "energy": 1},
    {"state": "ok", "action": "careful", "next": "broken", "probability": 0.1, "reward": 4,
     "energy": 1},
    {"state": "ok", "action": "fast", "next": "ok", "probability": 0.5, "reward": 10, "energy": 3},
    {"state": "ok", "action": "fast", "next": "broken", "probability": 0.5, "reward": 10,
     "energy": 3},
    {"state": "broken", "action": "repair", "next": "ok", "probability": 1, "reward": -2,
     "energy": 0},
]  # fmt: skip


class Lp:
    """The occupancies of a problem, with or without an end, as HiGHS sees them."""

    def __init__(self, problem: CMDP | StationaryCMDP) -> None:
        self.problem, N = problem, problem.constraints
        self.rewards = problem.reward.reshape(N + 1, -1)
        if isinstance(problem, CMDP):
            _, self.flow, self.source = program(problem)
            return
        X, A = problem.states, problem.actions
        gamma = problem.criterion.discount if isinstance(problem.criterion, Discounted) else 1.0
        stay = np.zeros((X, X, A))
        stay[np.arange(X), np.arange(X)] = 1.0
        flow = (stay - gamma * np.moveaxis(np.asarray(problem.transition), -1, 0)).reshape(X, -1)
        self.flow, self.source = flow, np.asarray(problem.start)
        if gamma == 1.0:
            self.flow = np.vstack([flow, np.ones(X * A)])
            self.source = np.append(np.zeros(X), 1.0)

    def best(self, weights, limits) -> float | None:
        """The most of weights times returns with utilities of at least limits, None: infeasible."""
        at = np.isfinite(limits)
        given = (-self.rewards[1:][at], -np.asarray(limits)[at]) if at.any() else (None, None)
        cost = -np.asarray(weights) @ self.rewards
        found = linprog(cost, *given, self.flow, self.source, options=TIGHT)
        return -found.fun if found.status == 0 else None

    def value(self, n: int, limit: float) -> float | None:
        """The optimal value with another threshold of constraint n."""
        limits = np.array(self.problem.threshold)
        limits[n - 1] = limit
        return self.best(np.eye(len(self.rewards))[0], limits)

    def margin(self, which, scale) -> float:
        """The largest smallest slack of some thresholds, over scales: one more variable."""
        Q, which = self.flow.shape[1], list(which)
        rows = np.column_stack([-self.rewards[1:][which], np.asarray(scale)[which]])
        flow = np.column_stack([self.flow, np.zeros(len(self.flow))])
        found = linprog([*np.zeros(Q), -1.0], rows, -self.problem.threshold[which], flow,
                        self.source, [(0, None)] * Q + [(None, None)], options=TIGHT)  # fmt: skip
        return -found.fun


def some(seed: int, N: int, slack: float = 0.3) -> CMDP | StationaryCMDP:
    """With a horizon, discounted or average; thresholds near what some policy reaches."""
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        problem = random_problem(4, 3, 4, N, seed)
        policy = rng.dirichlet(np.ones(3), (4, 4))
        reached = cmdplab.evaluate(problem, policy).utility
        return problem.changed(threshold=np.clip(reached - slack + 0.5 * rng.random(N), 0.0, 4.0))
    X, A = 5, 3
    kernel, reward = rng.dirichlet(np.full(X, 0.5), (X, A)), 2.0 * rng.random((1 + N, X, A)) - 1.0
    criterion = Discounted(0.8) if seed % 3 == 1 else Average()
    steps = 5.0 if seed % 3 == 1 else 1.0
    easy = StationaryCMDP(kernel, reward, np.zeros(N), criterion)
    reached = cmdplab.evaluate(easy, rng.dirichlet(np.ones(A), X)).utility
    limits = reached + steps * (0.15 * rng.random(N) - 0.3 * slack)
    return StationaryCMDP(kernel, reward, limits, criterion)


def size_of(problem) -> float:
    steps = problem.horizon if isinstance(problem, CMDP) else 5.0
    return float(steps * np.abs(problem.reward).max())


@pytest.mark.parametrize("N", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_breakpoints_are_those_of_the_parametric_program(seed, N):
    problem = some(seed, N)
    lp, size = Lp(problem), size_of(problem)
    for n in range(1, N + 1):
        try:
            found = cmdplab.frontier(problem, n)
        except InputError:
            limits = np.array(problem.threshold)
            limits[n - 1] = -np.inf
            assert lp.best(np.eye(N + 1)[0], limits) is None
            continue
        assert found.exact
        assert found.certificate <= 1e-9 * size
        at = found.threshold
        np.testing.assert_allclose([lp.value(n, b) for b in at[:-1]], found.value[:-1], atol=1e-7)
        middles = [lp.value(n, b) for b in (at[1:] + at[:-1]) / 2]  # nothing bends in between
        np.testing.assert_allclose(
            middles, (found.value[1:] + found.value[:-1]) / 2, atol=1e-8 * size
        )
        assert np.all(np.diff(found.multiplier) > 0.0)  # every breakpoint is one
        assert lp.value(n, found.largest + 1e-6 * size) is None
        beyond = lp.value(n, found.free + 1e-4 * size)
        assert beyond is None or beyond < found.value[0] - 1e-12
        assert lp.value(n, found.free - 1.0) == pytest.approx(found.value[0], abs=1e-8 * size)


@pytest.mark.parametrize("seed", range(12))
def test_prices_and_their_ranges_are_those_of_the_parametric_program(seed):
    problem = some(seed, 1 + seed % 3)
    found, lp, size = cmdplab.sensitivity(problem), Lp(problem), size_of(problem)
    if not found.feasible:
        return
    d = 1e-5 * size
    value = lp.value(1, problem.threshold[0])
    assert found.optimum == pytest.approx(value, abs=1e-8 * size)
    for each in found.prices:
        n, b = each.constraint, each.limit
        less, more = lp.value(n, b - d), lp.value(n, b + d)
        assert each.price_looser == pytest.approx((less - value) / d, abs=2e-3)
        if more is None:
            assert each.price_tighter is None or each.tighter_until < b + d
        else:
            assert each.price_tighter == pytest.approx((value - more) / d, abs=2e-3)
        assert each.binds == (value < lp.value(n, -1e3) - 1e-9)
        assert each.costs == pytest.approx(lp.value(n, -1e3) - value, abs=1e-8 * size)
        if each.looser_until is not None:  # linear as far as it is said to be, and no further
            wide = b - each.looser_until
            there = lp.value(n, each.looser_until)
            assert there == pytest.approx(value + each.price_looser * wide, abs=1e-7 * size)
            beyond = lp.value(n, each.looser_until - wide - d)
            assert beyond < value + each.price_looser * (2 * wide + d) - 1e-9
    smallest = lp.margin(range(problem.constraints), np.ones(problem.constraints))
    assert found.slater_gap == pytest.approx(smallest, abs=1e-7 * size)
    binding = [each.constraint - 1 for each in found.prices if each.limits_room]
    assert lp.margin(binding, np.ones(problem.constraints)) == pytest.approx(smallest, abs=1e-8)


def minimal_conflicts(problem) -> list[set[int]]:
    """Every irreducible set, by trying all subsets."""
    lp, N = Lp(problem), problem.constraints
    found: list[set[int]] = []
    for k in range(1, N + 1):
        for each in combinations(range(N), k):
            if any(known <= set(each) for known in found):
                continue
            if lp.margin(each, np.ones(N)) < -1e-8:
                found.append(set(each))
    return found


@pytest.mark.parametrize("seed", range(24))
def test_a_conflict_is_one_of_the_irreducible_sets(seed):
    problem = some(seed, 2 + seed % 3, slack=-0.4)
    known, found = minimal_conflicts(problem), cmdplab.conflict(problem)
    assert (found is None) == (not known) == cmdplab.solve(problem).feasible
    if found is None:
        return
    assert {each.constraint - 1 for each in found.limits} in known
    lp, N = Lp(problem), problem.constraints
    for each in found.limits:
        others = [other.constraint - 1 for other in found.limits if other is not each]
        limits = np.full(N, -np.inf)
        limits[others] = problem.threshold[others]
        assert each.reachable == pytest.approx(lp.best(np.eye(N + 1)[each.constraint], limits))
    spread = [
        lp.best(e, np.full(N, -np.inf)) + lp.best(-e, np.full(N, -np.inf))
        for e in np.eye(N + 1)[1:]
    ]
    assert found.share == pytest.approx(-lp.margin(range(N), spread), abs=1e-8)
    assert (found.nearest <= problem.threshold + 1e-12).all()
    assert lp.best(np.eye(N + 1)[0], found.nearest - 1e-9) is not None


def test_pairs_that_conflict_though_each_can_be_met():
    # One step, three actions; each utility is 1 for its own action and 0 for the others.
    reward = np.concatenate([np.ones((1, 1, 1, 3)) / 2, np.eye(3)[:, None, None]])
    problem = CMDP(np.ones((1, 3, 1)), reward, [0.5, 0.7, 0.1], horizon=1)
    found = cmdplab.conflict(problem)
    assert [each.constraint for each in found.limits] == [1, 2]
    assert [each.reachable for each in found.limits] == pytest.approx([0.3, 0.5])
    assert found.short == pytest.approx(0.1)
    # All ranges are 1, and 1.3 is asked for where 1 can be had: each gives up 0.1.
    assert found.share == pytest.approx(0.1)
    assert found.nearest == pytest.approx([0.4, 0.6, 0.0])
    message = cmdplab.solve(problem).message
    assert "constraint 1 at least 0.5 and constraint 2 at least 0.7 conflict" in message
    assert cmdplab.sensitivity(problem).conflict.limits == found.limits


def test_puterman_with_a_budget_is_one_straight_line():
    rows = [
        {"state": "s1", "action": "a11", "next": "s1", "probability": 0.5, "reward": 5, "uses": 1},
        {"state": "s1", "action": "a11", "next": "s2", "probability": 0.5, "reward": 5, "uses": 1},
        {"state": "s1", "action": "a12", "next": "s2", "probability": 1.0, "reward": 10, "uses": 0},
        {"state": "s2", "action": "a21", "next": "s2", "probability": 1.0, "reward": -1, "uses": 0},
    ]
    problem = cmdplab.from_table(rows, discount=0.95, costs={"uses": 1.0})
    found = cmdplab.frontier(problem, "uses").in_units()
    np.testing.assert_allclose(found.threshold, [1 / 0.525, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.value, [-60 / 7, -9.0], atol=1e-12)
    assert found.multiplier[1] == pytest.approx(0.225)
    (price,) = cmdplab.sensitivity(problem).prices
    assert (price.price_looser, price.price_tighter) == pytest.approx((0.225, 0.225))
    assert (price.looser_until, price.tighter_until) == pytest.approx((1 / 0.525, 0.0), abs=1e-12)


def test_at_a_breakpoint_a_unit_tighter_costs_more_than_a_unit_looser_buys():
    # One step; (value, utility) of the actions: (1, 0), (0.8, 0.5), (0, 1). The bend is at 0.5.
    reward = np.array([[[[1.0, 0.8, 0.0]]], [[[0.0, 0.5, 1.0]]]])
    problem = CMDP(np.ones((1, 3, 1)), reward, [0.5], horizon=1)
    (price,) = cmdplab.sensitivity(problem).prices
    assert (price.price_looser, price.price_tighter) == pytest.approx((0.4, 1.6))
    assert (price.looser_until, price.tighter_until) == pytest.approx((0.0, 1.0))
    at_the_end = cmdplab.sensitivity(problem.changed(threshold=[1.0])).prices[0]
    assert at_the_end.price_looser == pytest.approx(1.6)
    assert at_the_end.price_tighter is None
    free = cmdplab.sensitivity(problem.changed(threshold=[0.0])).prices[0]
    assert (free.binds, free.price_looser, free.looser_until) == (False, 0.0, None)


def test_a_point_on_an_edge_is_no_breakpoint():
    # The third action lies on the line between the other two.
    reward = np.array([[[[1.0, 0.5, 0.0]]], [[[0.0, 0.5, 1.0]]]])
    found = cmdplab.frontier(CMDP(np.ones((1, 3, 1)), reward, [0.3], horizon=1))
    np.testing.assert_allclose(found.threshold, [0.0, 1.0])
    (price,) = cmdplab.sensitivity(CMDP(np.ones((1, 3, 1)), reward, [0.5], horizon=1)).prices
    assert (price.looser_until, price.tighter_until) == pytest.approx((0.0, 1.0))


@pytest.mark.parametrize("how", [{"horizon": 10}, {"discount": 0.9}, {"criterion": "average"}])
def test_a_price_is_in_the_units_of_the_table(how):
    budget = {"horizon": 15.0, "discount": 14.0, "criterion": 1.5}[next(iter(how))]

    def worth(limit: float) -> float:
        problem = cmdplab.from_table(ROWS, costs={"energy": limit}, **how)
        return problem.labels.signal(0).published(cmdplab.solve(problem).value)

    found = cmdplab.sensitivity(cmdplab.from_table(ROWS, costs={"energy": budget}, **how))
    (price,) = found.prices
    assert (price.name, price.cost) == ("energy", True)
    assert price.limit == pytest.approx(budget)
    assert found.optimum == pytest.approx(worth(budget))
    assert price.price_looser == pytest.approx((worth(budget + 1e-3) - worth(budget)) / 1e-3)
    assert f"one unit more buys {price.price_looser:.4g} of reward" in str(found)
    assert "<td>energy</td>" in found._repr_html_()


def test_a_budget_below_the_least_cost_is_said_in_its_units():
    problem = cmdplab.from_table(ROWS, costs={"energy": 0.5}, criterion="average")
    assert cmdplab.solve(problem).message == (
        "no policy meets the thresholds: energy at most 0.5 is out of reach: "
        "every policy has energy at least 0.909091"
    )


def test_what_has_no_answer_is_one_sentence():
    with pytest.raises(InputError, match="has no constraints, and so no prices"):
        cmdplab.sensitivity(random_problem(3, 2, 2, 0))
    problem = cmdplab.from_table(ROWS, costs={"energy": 15}, horizon=10)
    with pytest.raises(InputError, match=r"constraint fuel does not exist: .* has 1, named energy"):
        cmdplab.frontier(problem, "fuel")
    with pytest.raises(InputError, match="more than 3 breakpoints"):
        cmdplab.frontier(random_problem(5, 3, 5, 1), most=3)
    assert cmdplab.conflict(problem) is None


def machine(budget: float, **how) -> CMDP | StationaryCMDP:
    """One state: work for 1 at the cost 2, or rest."""
    given = {"costs": [[[0.0, 2.0]]], "budgets": [budget]}
    return from_state_first(np.ones((1, 2, 1)), [[0.0, 1.0]], **given, **how)


HOW = {"horizon": ({"horizon": 5}, 5.0), "discounted": ({"discount": 0.8}, 5.0)}
HOW["average"] = ({"criterion": "average"}, 1.0)


@pytest.mark.parametrize("how", HOW)
def test_a_budget_beyond_every_sum_never_binds(how):
    keywords, most = HOW[how]
    found = solve(machine(2.0 * most + 1.0, **keywords))
    assert found.value == pytest.approx(most)
    assert found.multiplier == pytest.approx([0.0])
    wanted = f"cost 1 at most {2 * most + 1:g} (there is never more than {2 * most:g})"
    assert found.message == f"{wanted} can never bind"
    assert solve(machine(2.0 * most, **keywords)).message == ""  # on the edge it is no news


@pytest.mark.parametrize("how", HOW)
def test_a_budget_below_every_sum_is_an_infeasible_problem(how):
    found = solve(machine(-1.0, **HOW[how][0]))
    assert not found.feasible
    assert "cost 1 at most -1 is out of reach: every policy has cost 1 at least 0" in found.message


def test_learners_take_no_threshold_outside_what_episodes_sum_to():
    with pytest.raises(InputError, match=r"cannot be run: cost 1 at most 11 .* can never bind"):
        solve_feasible(machine(11.0, horizon=5))
    with pytest.raises(InputError, match="cannot be run: no policy meets the thresholds"):
        solve_feasible(machine(-1.0, horizon=5))
