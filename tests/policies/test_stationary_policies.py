"""Policies of problems without an end, questioned: closed forms, exact values, many paths."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import cmdplab
from cmdplab import Average, Discounted, InputError, Labels, Policy, StationaryCMDP
from cmdplab.cmdp import exact_stationary as exact

COLUMNS = ("state", "action", "next", "probability", "reward", "energy")
ROWS = [
    dict(zip(COLUMNS, row, strict=True))
    for row in (
        ("ok", "careful", "ok", 0.9, 4, 1),
        ("ok", "careful", "down", 0.1, 4, 1),
        ("ok", "fast", "ok", 0.5, 10, 3),
        ("ok", "fast", "down", 0.5, 10, 3),
        ("down", "repair", "ok", 1.0, -2, 0),
    )
]
DISCOUNTED = cmdplab.from_table(ROWS, costs={"energy": 15.0}, discount=0.9, name="machine")
AVERAGE = cmdplab.from_table(ROWS, costs={"energy": 1.5}, criterion="average", name="machine")


def some(seed: int, criterion: Average | Discounted) -> tuple[StationaryCMDP, np.ndarray]:
    rng = np.random.default_rng(seed)
    kernel, reward = rng.dirichlet(np.full(6, 0.4), (6, 3)), rng.normal(size=(3, 6, 3))
    limits = np.full(2, -100.0)
    problem = StationaryCMDP(kernel, reward, limits, criterion, rng.dirichlet(np.ones(6)))
    return problem, rng.dirichlet(np.ones(3), 6)


@pytest.mark.parametrize("criterion", [Discounted(0.9), Average()])
def test_intervals_of_paths_hold_the_exact_returns(criterion):
    problem, policy = some(0, criterion)
    truth = cmdplab.evaluate(problem, policy).returns
    held = []
    for seed in range(40):
        found = cmdplab.simulate(problem, policy, 100, seed, steps=100)
        held += [each.low <= r <= each.high for each, r in zip(found.earned, truth, strict=True)]
    assert np.mean(held) >= 0.9
    assert found.steps == 100
    many = cmdplab.simulate(problem, policy, 4_000, steps=100).earned
    assert [each.mean for each in many] == pytest.approx(truth.tolist(), abs=0.25)


def test_what_a_path_leaves_out_is_bounded_as_it_says():
    problem, policy = some(1, Discounted(0.9))
    found = cmdplab.simulate(problem, policy, 10, steps=20)
    assert found.cut == pytest.approx(np.abs(problem.reward).max(axis=(1, 2)) * 0.9**20 / 0.1)
    # The exact expectation of a path of T steps lies within the bound of the long-run average.
    problem, policy = some(1, Average())
    follow, truth = exact.chain(problem, policy).toarray(), exact.returns(problem, policy)
    paid, here, T = np.einsum("xa,nxa->xn", policy, problem.reward), problem.start, 7
    total = np.zeros(3)
    for _ in range(T):
        total, here = total + here @ paid, here @ follow
    cut = np.array(cmdplab.simulate(problem, policy, 1, steps=T).cut)
    assert (np.abs(total / T - truth) <= cut + 1e-12).all()
    assert (cut < 10.0 / T).all()


def test_gains_and_biases_solve_their_equations_with_several_classes_too():
    kernel = np.zeros((4, 2, 4))
    kernel[0, :, 1:3] = 0.5  # into a state that is never left, or into a cycle of two
    kernel[1, :, 1] = kernel[2, :, 3] = kernel[3, :, 2] = 1.0
    reward = np.random.default_rng(0).normal(size=(2, 4, 2))
    problem = StationaryCMDP(kernel, reward, [-9.0], Average())
    policy = np.full((4, 2), 0.5)
    gain, bias = exact.gains_and_biases(problem, policy)
    follow, paid = exact.chain(problem, policy), np.einsum("xa,nxa->xn", policy, reward)
    np.testing.assert_allclose(follow @ gain, gain, atol=1e-12)
    np.testing.assert_allclose(gain + bias, paid + follow @ bias, atol=1e-12)
    assert problem.start @ gain == pytest.approx(exact.returns(problem, policy))


@pytest.mark.parametrize("problem", [DISCOUNTED, AVERAGE], ids=["discounted", "average"])
def test_all_actions_that_an_optimum_plays_are_best_at_its_prices(problem):
    solution = cmdplab.solve(problem)
    found = cmdplab.explain(problem, "ok", solution=solution)
    played = [each["total"] for each in found.actions if each["probability"] > 0.0]
    assert len(played) == 2
    assert played == pytest.approx([played[0]] * 2, abs=1e-8)
    assert found.worth.sum() == pytest.approx(found.given_up)
    assert found.prices == pytest.approx(cmdplab.sensitivity(problem).prices[0].price_looser)
    assert "of the time is spent" in str(found)
    assert "less of energy" in str(found)
    assert "<td>careful</td>" in found._repr_html_()


def test_values_beside_the_average_are_those_of_a_machine_by_hand():
    # Always careful: the average is (10 * 4 - 2) / 11; a fast step earns 6 more and breaks down
    # 0.4 times more often, and a breakdown costs h(ok) - h(down) = 2 + 38 / 11.
    careful = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    actions = cmdplab.explain(AVERAGE, "ok", policy=careful).actions
    (fast,) = [each["values"] for each in actions if each["action"] == "fast"]
    assert fast[0] == pytest.approx(6.0 - 0.4 * (2 + 38 / 11))
    assert fast[1] == pytest.approx(2.0 - 0.4 * 10 / 11)


def test_differences_are_shares_of_the_time():
    careful = Policy(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), AVERAGE.labels, "careful")
    fast = Policy(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), AVERAGE.labels, "fast")
    found = cmdplab.compare_policies(AVERAGE, careful, fast)
    (row,) = found.rows
    assert (row["state"], row["first"], row["second"]) == ("ok", "careful", "fast")
    assert found.distance == pytest.approx((10 / 11 + 2 / 3) / 2)  # time spent running
    assert "share of the time that differs" in repr(found)
    assert "energy 0.909091 -> 2" in repr(found)  # as a cost, not as the utility -c
    discounted = cmdplab.compare_policies(DISCOUNTED, careful, fast)
    visits = cmdplab.evaluate(DISCOUNTED, careful).occupancy.sum(axis=1) * 0.1
    assert discounted.rows[0]["visits_first"] == pytest.approx(visits[0])


def test_questions_that_make_no_sense_without_an_end_are_refused_in_a_sentence():
    with pytest.raises(InputError, match="it has no steps to ask about"):
        cmdplab.explain(AVERAGE, "ok", 3)
    kernel = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    trap = StationaryCMDP(kernel, np.array([[[1.0, 0.0], [2.0, 2.0]]]), [], Average())
    stay = np.array([[1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(InputError, match="action 1 in state 0 changes the average over all time"):
        cmdplab.explain(trap, 0, policy=stay)
    problem = cmdplab.from_table(ROWS, costs={"energy": 15}, horizon=10, name="machine")
    policy = cmdplab.solve(problem).policy
    with pytest.raises(InputError, match="has 10 steps, not 9"):
        cmdplab.simulate(problem, policy, 5, steps=9)


@pytest.mark.parametrize("ending", ["npz", "csv", "json"])
def test_a_policy_acts_alike_in_another_process(ending, tmp_path):
    policy = cmdplab.solve(AVERAGE).policy
    AVERAGE.save(tmp_path / "problem.npz")
    policy.save(tmp_path / f"policy.{ending}")
    code = (
        "import sys, cmdplab\n"
        "problem = cmdplab.StationaryCMDP.load(sys.argv[1])\n"
        "actor = cmdplab.Policy.load(sys.argv[2], problem).start(seed=3)\n"
        "print(*(actor('ok') for _ in range(30)), *problem.labels.states)\n"
    )
    files = (tmp_path / "problem.npz", tmp_path / f"policy.{ending}")
    done = subprocess.run([sys.executable, "-c", code, *files], capture_output=True, text=True)
    actor = policy.start(seed=3)
    assert done.stdout.split() == [*(actor("ok") for _ in range(30)), *AVERAGE.labels.states]


def test_names_that_are_not_unique_are_one_sentence():
    with pytest.raises(InputError, match="two of the states are named 'ok'"):
        Labels(states=("ok", "ok"))
    with pytest.raises(InputError, match="two of the signals are named 'reward'"):
        cmdplab.from_table(ROWS, utilities={"reward": 3.0}, criterion="average")
