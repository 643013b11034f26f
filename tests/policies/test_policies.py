"""Policies questioned: intervals that cover, prices that balance, differences that add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cmdplab
from cmdplab import Counter, InputError, Labels, Policy
from cmdplab.cmdp.labels import Scale
from cmdplab.cmdp.transitions import Sparse
from cmdplab.environments.random_cmdp import random_problem


def some_rows(problem, seed=0):
    shape = (problem.horizon, problem.states)
    return np.random.default_rng(seed).dirichlet(np.ones(problem.actions), shape)


def test_intervals_cover_the_exact_returns_about_as_often_as_they_say():
    problem = random_problem(4, 3, 5, 1)
    rows = some_rows(problem)
    exact = cmdplab.evaluate(problem, rows).returns
    runs = [cmdplab.simulate(problem, rows, 400, seed).earned for seed in range(200)]
    covered = [each.low <= truth <= each.high
               for found in runs for each, truth in zip(found, exact, strict=True)]  # fmt: skip
    assert 0.9 <= np.mean(covered) <= 0.99  # 0.95 with a standard error of about 0.013


def test_lists_and_tables_are_simulated_alike_and_a_counter_too():
    problem = random_problem(5, 3, 4, 1, stationary=True)
    listed = replace(problem, transition=Sparse.of(np.array(problem.transition[0])))
    rows = some_rows(problem)
    found = cmdplab.simulate(problem, rows, 500, 3)
    assert cmdplab.simulate(listed, rows, 500, 3).earned == found.earned
    blind = np.repeat(rows[:, None], 2, axis=1)
    counted = Policy(blind, counter=Counter(np.ones(rows.shape[1:], dtype=int), 2))
    assert cmdplab.simulate(problem, counted, 500, 3).earned == found.earned


def test_a_policy_with_a_counter_earns_in_simulation_what_is_exact():
    problem = random_problem(4, 3, 5, 1)
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(3), (5, 3, 4))
    policy = Policy(rows, counter=Counter(rng.integers(0, 2, (5, 4, 3)), 3))
    exact = cmdplab.evaluate(problem, policy).returns
    for each, truth in zip(cmdplab.simulate(problem, policy, 40_000).earned, exact, strict=True):
        assert abs(each.mean - truth) < 2 * (each.high - each.low)


def test_all_actions_that_an_optimum_plays_are_best_at_its_prices():
    for seed in range(5):
        problem = random_problem(5, 3, 4, 2, seed)
        solution = cmdplab.solve(problem)
        visited = np.argwhere(solution.occupancy.sum(axis=-1) > 1e-9)
        for h, x in visited:
            found = cmdplab.explain(problem, int(x), int(h), solution=solution)
            best = max(each["total"] for each in found.actions)
            played = [each["total"] for each in found.actions if each["probability"] > 1e-9]
            assert played == pytest.approx([best] * len(played), abs=1e-8)
            assert found.given_up >= 0.0


def test_what_is_given_up_is_paid_for_at_the_prices():
    problem = random_problem(5, 3, 4, 1, seed=3)
    solution = cmdplab.solve(problem)
    found = cmdplab.explain(problem, problem.start, 0, solution=solution)
    assert found.prices @ found.gained >= found.given_up - 1e-9
    assert found.visits == pytest.approx(1.0)


def test_an_explanation_reads_by_names_and_is_escaped_in_a_notebook():
    names = Labels(("<b>", "busy", "down"), ("wait", "serve"), signals=("gain", "uptime"))
    problem = replace(random_problem(3, 2, 3, 1), labels=names, horizon=0)
    found = cmdplab.explain(problem, "<b>", 1)
    assert "state <b> at step 1" in str(found)
    assert "uptime" in str(found)
    assert {each["action"] for each in found.actions} == {"wait", "serve"}
    assert "<b>" not in found._repr_html_()
    assert "&lt;b&gt;" in found._repr_html_()
    with pytest.raises(InputError, match="there is no state 'lost'"):
        cmdplab.explain(problem, "lost")


def test_a_problem_without_an_optimum_has_no_prices():
    problem = replace(random_problem(3, 2, 3, 1), threshold=np.array([3.0]), horizon=0)
    with pytest.raises(InputError, match="no prices to explain with: no policy meets"):
        cmdplab.explain(problem, 0)


def test_a_policy_does_not_differ_from_itself():
    problem = random_problem(4, 3, 3, 1)
    rows = some_rows(problem)
    found = cmdplab.compare_policies(problem, rows, rows)
    assert (found.distance, found.rows) == (0.0, ())


def test_deterministic_policies_that_part_everywhere_differ_in_every_step():
    problem = random_problem(4, 2, 3, 1)
    first = np.zeros((3, 4, 2))
    first[..., 0] = 1.0
    found = cmdplab.compare_policies(problem, first, 1.0 - first, rows=100)
    assert found.distance == pytest.approx(problem.horizon)
    assert sum(each["weight"] for each in found.rows) == pytest.approx(found.distance)
    assert np.array_equal(found.returns[0], cmdplab.evaluate(problem, first).returns)


def test_costs_are_explained_as_costs():
    problem = random_problem(5, 3, 4, 1, seed=3)
    names = Labels(signals=(Scale("gain"), Scale("loss", -2.0)))
    plain = cmdplab.explain(problem, problem.start, 0)
    priced = cmdplab.explain(replace(problem, labels=names, horizon=0), problem.start, 0)
    for ours, theirs in zip(plain.actions, priced.actions, strict=True):
        assert theirs["values"] == pytest.approx([ours["values"][0], -2 * ours["values"][1]])
        assert theirs["total"] == pytest.approx(ours["total"])
    assert priced.prices == pytest.approx(plain.prices / 2)
    assert priced.worth == pytest.approx(plain.worth)


@pytest.mark.parametrize("algorithm", ["UOpt-RPGPD", "OptCMDP", "Triple-Q"])
def test_a_run_gives_the_policy_after_its_last_episode(algorithm):
    problem = cmdplab.make("three-state")
    solution = cmdplab.solve(problem)
    run = cmdplab.run(problem, algorithm, 50, solution=solution)
    longer = cmdplab.run(problem, algorithm, 51, solution=solution)
    policy = run.policy(problem, solution)
    assert policy.labels.actions == ("stay", "advance")
    value = cmdplab.evaluate(problem, policy).value
    assert solution.value - value == pytest.approx(longer.summary.final_gap, abs=1e-12)


def test_a_policy_with_memory_differs_by_the_steps_that_it_plays_otherwise():
    """One state: the first two steps are fast, as the counter says, all others are careful."""
    problem = cmdplab.CMDP(np.ones((1, 2, 1)), np.zeros((1, 1, 2)), [], horizon=5)
    table = np.zeros((3, 1, 2))
    table[:2, :, 1] = table[2, :, 0] = 1.0
    twice = Policy(table, name="twice", counter=Counter(np.array([[0, 1]]), 3))
    careful = Policy(np.array([[1.0, 0.0]]))
    found = cmdplab.compare_policies(problem, careful, twice)
    assert found.distance == pytest.approx(2.0)
    assert [row["step"] for row in found.rows] == ["0", "1"]
    assert cmdplab.compare_policies(problem, twice, twice).distance == 0.0


WARD = Labels(("low", "mid", "high"), ("wait", "call"))


def ward(mask: object = None) -> cmdplab.CMDP:
    rng = np.random.default_rng(0)
    kernel, reward = rng.dirichlet(np.ones(3), (3, 2)), rng.random((2, 3, 2))
    return cmdplab.CMDP(kernel, reward, [0.0], 0, 4, "ward", mask, WARD)


def test_a_policy_is_matched_by_names_and_unknown_states_take_the_default():
    seen = Policy([[0.3, 0.7], [1.0, 0.0]], Labels(("high", "low"), ("call", "wait")))
    found = cmdplab.match_policy(seen, ward(), default="call")
    np.testing.assert_array_equal(found.array, [[0.0, 1.0], [0.0, 1.0], [0.7, 0.3]])
    assert found.probabilities("high") == {"wait": 0.7, "call": 0.3}
    whole = cmdplab.solve(ward()).policy
    np.testing.assert_array_equal(cmdplab.match_policy(whole, ward()).array, whole.array)


def test_of_several_defaults_the_first_open_one_is_taken():
    seen, mask = Policy([[1.0]], Labels(("low",), ("wait",))), np.ones((3, 2), dtype=bool)
    mask[1, 1] = False
    found = cmdplab.match_policy(seen, ward(mask), default=["call", "wait"])
    np.testing.assert_array_equal(found.array, [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def test_numbers_match_where_there_are_no_names():
    matched = cmdplab.match_policy(Policy([[0.2, 0.8], [0.6, 0.4]]), ward(), default="wait")
    np.testing.assert_array_equal(matched.array, [[0.2, 0.8], [0.6, 0.4], [1.0, 0.0]])


def test_the_state_and_the_step_of_a_random_start_are_left_out():
    data = [[("a", 0, 1.0, "b"), ("b", 1, 0.0, "a")], [("b", 0, 1.0, "b"), ("b", 0, 0.5, "a")]]
    found = cmdplab.from_trajectories(data, horizon=2)
    assert (found.problem.states, found.problem.horizon) == (3, 3)
    policy = cmdplab.solve(found.problem).policy
    names = Labels(("a", "b", "c", "d"))
    kernel, reward = np.full((4, 2, 4), 0.25), np.zeros((1, 4, 2))
    model = cmdplab.CMDP(kernel, reward, [], 0, 2, labels=names)
    matched = cmdplab.match_policy(policy, model, default=1)
    np.testing.assert_array_equal(matched.array[:, :2], policy.array[1:, :2])
    np.testing.assert_array_equal(matched.array[:, 2:], [[[0.0, 1.0]] * 2] * 2)


@pytest.mark.parametrize(
    ("policy", "default", "mask", "sentence"),
    [
        (np.eye(3), None, None, "the policy is ndarray, not a Policy with names"),
        (
            Policy([[1.0]], Labels(("low",))),
            None,
            None,
            "does not know 2 states of ward, the first",
        ),
        (Policy([[1.0]], Labels(("low",))), "run", None, "there is no action 'run'"),
        (Policy([[1.0]], Labels(("low",))), "call", (1, 1), "ward closes action call in state mid"),
        (
            Policy([[1.0]], Labels(("low",), ("run",))),
            0,
            None,
            "takes action run in state low: ward",
        ),
        (
            Policy([[0.0, 1.0]], Labels(("low",))),
            0,
            (0, 1),
            "takes action call at step 0, state low",
        ),
        (Policy([[[1.0]]] * 5, Labels(("low",))), 0, None, "5 steps"),
        (
            Policy([[[1.0]]], Labels(("low",)), counter=Counter([[0]], 1)),
            None,
            None,
            "has a counter",
        ),
    ],
)
def test_a_policy_that_does_not_match_is_one_sentence(policy, default, mask, sentence):
    opened = np.ones((3, 2), dtype=bool)
    if mask:
        opened[mask] = False
    with pytest.raises(InputError, match=sentence):
        cmdplab.match_policy(policy, ward(opened), default)


def test_equal_policies_differ_in_no_step_of_an_episode():
    same = cmdplab.compare_policies(ward(), np.full((4, 3, 2), 0.5), np.full((4, 3, 2), 0.5))
    assert "steps of an episode that differ 0" in repr(same)
