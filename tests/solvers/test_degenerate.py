"""Problems at the edge: nearly dependent constraints, no slack, long horizons.

Each is checked against HiGHS or against bounds in rational arithmetic, by code of the tests alone.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction

import long_horizons
import near_degenerate
import numpy as np
import pytest
from conftest import largest_utility, random_problem
from exact_bounds import bracket, exact_returns
from occupancy_lp import occupancy_optimum

from cmdplab import run
from cmdplab.algorithms import ALGORITHMS, algorithm, needing_slack
from cmdplab.algorithms.baselines import task_for
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import session
from cmdplab.environments.catalogue import describe
from cmdplab.errors import InputError, OpenCertificateError
from cmdplab.solvers import Box, plan, solve
from cmdplab.solvers.certified import attempt
from cmdplab.solvers.known import Known
from cmdplab.solvers.mixtures import Column, Pool
from cmdplab.solvers.thresholds.frontier import frontier
from cmdplab.solvers.whole import WholeEpisodes

OPT_CMDP = ("--algorithm", "OptCMDP", "--episodes", "5")


def nearly_parallel_pair(apart: float = 1e-9) -> CMDP:
    """One step: mixing the first two actions is optimal, and worth 0.5 but for `apart`."""
    utilities = [[0.0, 1.0, 0.6], [0.0, 1.0 - apart, 0.6 + apart]]
    reward = np.array([[[[1.0, 0.0, 0.3]]], *([[each]] for each in utilities)])
    return CMDP(np.ones((1, 1, 3, 1)), reward, [0.5, 0.5], 0)


def never_enter(horizon: int = 6) -> CMDP:
    """A zero budget: action 1 earns 1 instead of 0.2, but leads into the forbidden state."""
    kernel = np.zeros((2, 2, 2))
    kernel[0, 0, 0] = kernel[1, :, 1] = 1.0
    kernel[0, 1] = [0.7, 0.3]
    reward, cost = np.zeros((horizon, 2, 2)), np.zeros((1, horizon, 2, 2))
    reward[:, 0] = [0.2, 1.0]
    cost[:, :, 1] = 1.0
    return CMDP.from_costs(kernel, reward, cost, [0.0], name="never enter")


@pytest.mark.parametrize("apart", [10.0**-k for k in range(4, 15)])
def test_two_constraints_that_nearly_coincide_cost_what_one_does(apart):
    s = solve(nearly_parallel_pair(apart))
    assert s.value == pytest.approx(1.0 - 0.5 / (1.0 - apart), abs=1e-12)
    assert s.duality_gap <= 1e-12
    known = nearly_parallel_pair(apart)
    planned = plan(Box.of(known), known.reward, known.threshold)  # what learners use
    assert planned.value == pytest.approx(s.value, abs=1e-9)


def test_the_frontier_of_nearly_parallel_constraints_passes_through_the_optimum():
    found = describe(nearly_parallel_pair())
    along = found.ranges[0]
    assert np.interp(0.5, along.threshold, along.value) == pytest.approx(found.optimum, abs=1e-6)


@pytest.mark.parametrize("family", near_degenerate.FAMILIES)
def test_no_answer_to_a_nearly_degenerate_problem_is_wrong(family):
    tally = near_degenerate.Tally()
    for seed in range(40):
        tally.add(seed, near_degenerate.FAMILIES[family](np.random.default_rng(seed)))
    assert tally.problems == 40
    assert tally.seeds == []
    assert tally.refused <= 5


# Seeds of the families above whose optima were wrong or called infeasible by the planner itself.
WERE_WRONG = [("nearly parallel", s) for s in (10, 16, 219, 240)] + [("single precision", 218)]


@pytest.mark.parametrize(("family", "seed"), WERE_WRONG)
def test_the_planner_that_learners_use_finds_the_optimum_too(family, seed):
    problem = near_degenerate.FAMILIES[family](np.random.default_rng(seed))
    found = plan(Box.of(problem), problem.reward, problem.threshold, problem.start)
    by_highs = occupancy_optimum(problem)
    assert found.feasible
    assert by_highs.residual <= 1e-9
    assert found.value == pytest.approx(by_highs.value, abs=1e-9 * problem.horizon)


def test_an_optimum_that_one_rounding_changes_is_refused(call, tmp_path):
    # Utilities 1/2 and 1/2 + 2e-12, crosswise: a threshold in the middle fixes the mixture, and one
    # that is higher by a rounding is out of reach. Its price is 5e11.
    reward = np.array([[[[1.0, 0.0]]], [[[0.5, 0.5 + 2e-12]]], [[[0.5 + 2e-12, 0.5]]]])
    beyond = np.nextafter(0.5 + 1e-12, 1.0)
    problem = CMDP(np.ones((1, 1, 2, 1)), reward, [beyond, beyond], 0)
    with pytest.raises(
        OpenCertificateError, match=r"its optimum is known to .* of the objective's range only"
    ):
        solve(problem)
    problem.save(tmp_path / "edge.npz")
    for command in ("solve", "describe"):
        code, out, err = call(command, tmp_path / "edge.npz")
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert "cannot be solved" in err
    code, _, err = call("run", tmp_path / "edge.npz", *OPT_CMDP)
    assert (code, "cannot be solved" in err) == (2, True)


@pytest.mark.parametrize("constraints", [1, 2, 3])
def test_the_certificate_closes_at_long_horizons(constraints):
    for seed in range(3):
        problem = long_horizons.problem_of(400, constraints, seed)
        found = solve(problem)
        assert long_horizons.distance(problem, found) <= 1e-10
        assert np.all(exact.returns(problem, found.policy)[1:] >= problem.threshold - 4e-11)


def test_a_zero_budget_is_solved_by_hand():
    # The forbidden state counts from the step after the jump: only the last action is free.
    s = solve(never_enter())
    assert s.feasible
    assert s.value == pytest.approx(5 * 0.2 + 1.0, abs=1e-12)
    assert s.slater_gap == 0.0
    assert s.duality_gap <= 1e-12
    assert "no slack" in s.message
    np.testing.assert_allclose(s.policy[:5, 0], [[1.0, 0.0]] * 5, atol=1e-12)
    # One step earlier it earns 0.8 more, loses 0.3 of what the last step pays, and costs 0.3.
    assert s.multiplier == pytest.approx([(0.8 - 0.3 * 1.0) / 0.3])


@pytest.mark.parametrize("seed", range(12))
def test_without_slack_the_optimum_is_that_of_exact_arithmetic(seed):
    problem = random_problem(4, 2, 3, 1, seed)
    edge = CMDP(problem.transition, problem.reward, [largest_utility(problem)], problem.start)
    s = solve(edge)
    assert (s.feasible, s.slater_gap) == (True, 0.0)
    assert exact.returns(edge, s.policy)[1] == pytest.approx(edge.threshold[0], abs=1e-13)
    low, high = bracket(edge, s)
    assert low - 1e-9 <= s.value <= high + 1e-9
    assert high - low <= 1e-9


def test_what_is_out_of_reach_by_more_than_rounding_is_infeasible():
    problem = random_problem(4, 2, 3, 1)
    most = largest_utility(problem)
    for beyond in (1e-8, 1e-3):
        s = solve(CMDP(problem.transition, problem.reward, [most + beyond], problem.start))
        assert not s.feasible
        assert s.slater_gap == pytest.approx(-beyond, abs=1e-12)


def test_without_slack_algorithms_that_need_it_are_refused_and_the_others_run():
    problem, solution = never_enter(), solve(never_enter())
    refused = set()
    for row in ALGORITHMS.values():
        if not row.needs_slack:
            session("cpu", problem, row, task_for(row, problem, solution), 0)
            continue
        refused.add(row.name)
        with pytest.raises(InputError, match=re.escape(row.name) + " needs .* there is no slack"):
            task_for(row, problem, solution)
    assert {"DOPE", "OptPress-LP", "OPDOP"} <= refused
    assert run(problem, algorithm("OptCMDP"), 20).summary.episodes == 20


def test_commands_speak_of_a_zero_budget(call, tmp_path):
    never_enter().save(tmp_path / "p.npz")
    code, out, _ = call("solve", tmp_path / "p.npz", "--json")
    found = json.loads(out)
    assert (code, found["feasible"], found["slater_gap"]) == (0, True, 0.0)
    assert found["without_guarantee"] == needing_slack()
    for command in ("solve", "describe"):
        code, out, _ = call(command, tmp_path / "p.npz")
        assert code == 0
        assert "yes: no slack" in " ".join(out.split())
        assert "DOPE" in out
    code, _, err = call("run", tmp_path / "p.npz", "--algorithm", "DOPE", "--episodes", "5")
    assert code == 2
    assert "DOPE needs a safe policy" in err
    assert call("run", tmp_path / "p.npz", *OPT_CMDP)[0] == 0
    code, _, err = call("list", "algorithms", "--at", tmp_path / "p.npz")
    assert (code, "no slack" in err) == (2, True)


def test_the_frontier_ends_where_there_is_no_slack():
    found = frontier(never_enter(), 1, 5)
    assert found.largest == pytest.approx(6.0, abs=1e-12)
    assert found.value[-1] == pytest.approx(2.0, abs=1e-12)
    assert found.certificate <= 1e-9


def test_the_rational_program_by_hand():
    # Values 1, 0 and 0.3 at utilities 0, 1 and 0.6; utility 1/2 costs 1/2 by mixing the first two.
    offered = [(1, 0), (0, 1), (Fraction(3, 10), Fraction(6, 10))]
    vertices = [Column(tuple(map(Fraction, each)), None) for each in offered]

    def price(weights: list[Fraction]) -> Column:
        return max(vertices, key=lambda v: weights[0] * v.returns[0] + weights[1] * v.returns[1])

    def pool(limit: Fraction) -> Pool:
        return Pool(price, [limit], gain=Fraction(0))

    best = pool(Fraction(1, 2)).best()
    assert (best.value, best.shortfall) == (Fraction(1, 2), 0)
    assert best.multiplier.tolist() == [1]
    assert max(v.returns[0] + v.returns[1] - Fraction(1, 2) for v in vertices) == best.value
    assert pool(Fraction(1, 2)).widest().value == Fraction(1, 2)
    assert pool(Fraction(2)).best().shortfall == 1


def test_sweeps_in_whole_numbers_are_exact():
    problem = random_problem(3, 2, 3, 2)
    found = WholeEpisodes(problem, problem.reward)([Fraction(1), Fraction(1, 3), Fraction(10**9)])
    weights = np.array([1.0, 1 / 3, 1e9])
    bound, _ = exact.greedy(problem, np.tensordot(weights, problem.reward, axes=1))
    assert float(np.dot(weights, [float(r) for r in found.returns])) == pytest.approx(bound)
    for ours, theirs in zip(found.returns, exact_returns(problem, found.policy), strict=True):
        assert abs(ours - theirs) < Fraction(1, 1 << 200)


def test_attempts_say_when_nothing_is_feasible():
    problem = random_problem(3, 2, 3, 1)
    found = attempt(Known(problem, np.array([2.9999])))
    assert not found.feasible
    assert found.slack < 0.0
