"""RPG-PD: planning with a known kernel, by one step and one temperature."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import random_problem
from oracles import session

import cmdplab
from cmdplab.algorithms import algorithm, as_row
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.row import REFUSED
from cmdplab.algorithms.rpg_pd import RPG_PD
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.engines.families import live_session
from cmdplab.errors import InputError
from cmdplab.experiments.run import run
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.solvers import solve
from cmdplab.theory.saddle import saddle_point


def streaming(arrival: float = 0.7, departure: float = 0.25) -> CMDP:
    """A buffer of 0..5: fast earns where it is not empty, slow is the utility; H = 4, b = 2.4."""
    kernel = np.zeros((6, 2, 6))
    for x, a in np.ndindex(6, 2):
        rate = (arrival, 1.0 - arrival)[a]
        up, down = (1.0 - departure) * rate, departure * (1.0 - rate)
        for y, p in ((min(x + 1, 5), up), (max(x - 1, 0), down), (x, 1.0 - up - down)):
            kernel[x, a, y] += p
    reward = np.zeros((2, 6, 2))
    reward[0, 1:], reward[1, :, 1] = 1.0, 1.0
    return CMDP(kernel, reward, np.array([2.4]), 0, horizon=4, name="streaming, 0.7 and 0.25")


def seen_gradient(problem: CMDP, policy, multiplier):
    """Q of the weighted sum of rewards, and b - V of each utility, by `exact`."""
    weighted = problem.reward[0] + np.tensordot(multiplier, problem.reward[1:], 1)
    missed = problem.threshold - exact.returns(problem, policy)[1:]
    return exact.action_values(problem, policy, weighted), missed


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def played(row, problem: CMDP, iterations: int):
    """The policies and multipliers after each iteration, of the compiled engine."""
    one = session("cpu", problem, row, task_for(row, problem, solve(problem)), 0)
    states = []
    for _ in range(iterations):
        one.play(1)
        states.append(one.state())
    return states


# The reference run of the specification, made without this package: media streaming with
# mu = 0.7 and rho = 0.25, b = 2.4, eta = 0.1; the worst of the last 200 iterations.


@pytest.mark.parametrize(
    ("given", "iterations", "gap", "slack"),
    [
        ({"fixed_temperature": 0.0}, 5000, 2.5e-2, -8.5e-2),  # NPG-PD: it cycles
        ({}, 5000, 1.9e-3, -6.2e-3),
        ({"fixed_temperature": 1e-3}, 20_000, 2.5e-2, -8.5e-2),  # still cycling
    ],
)
def test_the_reference_run_on_streaming(given, iterations, gap, slack):
    problem = streaming()
    solution = solve(problem)
    assert solution.value == pytest.approx(1.900171875, abs=1e-9)
    assert solution.slater_gap == pytest.approx(1.6)
    row = RPG_PD.with_settings(**given)
    curves = run(problem, row, iterations, solution=solution).curves
    tail = curves["episode"] > iterations - 200
    worst = max(-curves["gap_min"][tail].min(), curves["gap_max"][tail].max())
    assert worst == pytest.approx(gap, rel=0.05)
    assert -curves["violation_max"][tail].max() == pytest.approx(slack, rel=0.05)


@pytest.mark.parametrize("tau", [0.05, 0.1])
def test_rpg_pd_comes_to_rest_where_the_slack_is_minus_tau_times_the_multiplier(tau):
    problem = streaming()
    found = run(problem, RPG_PD.with_settings(fixed_temperature=tau), 20_000)
    last = found.state.multiplier[0]
    assert last == pytest.approx(saddle_point(problem, tau).multiplier[0], abs=1e-9)
    assert last > 0.1
    assert found.summary.final_violation == pytest.approx(tau * last, abs=1e-9)


def test_rpg_pd_without_a_temperature_is_npg_pd():
    problem = random_problem(4, 3, 3, 2, 5)
    cap = problem.horizon / solve(problem).slater_gap
    policy, multiplier = np.full((3, 4, 3), 1 / 3), np.zeros(2)
    for state in played(RPG_PD.with_settings(fixed_temperature=0.0), problem, 60):
        q, missed = seen_gradient(problem, policy, multiplier)
        policy = softmax(np.log(policy) + 0.1 * q)
        multiplier = np.clip(multiplier + 0.1 * missed, 0.0, cap)
        np.testing.assert_allclose(state.policy, policy, atol=1e-10)
        np.testing.assert_allclose(state.multiplier, multiplier, atol=1e-10)


def test_nothing_is_drawn_and_nothing_is_counted():
    problem = random_problem(4, 3, 3, 1, 4)
    runs = [run(problem, RPG_PD, 200, seed) for seed in (0, 1)]
    np.testing.assert_array_equal(*(each.curves["gap"] for each in runs))
    lists = replace(problem, transition=Sparse.of(problem.table))
    np.testing.assert_allclose(
        runs[0].curves["gap"], run(lists, RPG_PD, 200).curves["gap"], atol=1e-9
    )


def test_a_session_is_told_of_episodes_and_ignores_them():
    problem = random_problem(4, 3, 3, 1, 4)
    task = task_for(RPG_PD, problem, solve(problem))
    one, other = (session("cpu", problem, RPG_PD, task, 0) for _ in range(2))
    for _ in range(5):
        one.observe([0, 1, 2, 3], [0, 1, 2])
        other.play(1)
    for ours, theirs in zip(one.state(), other.state(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


# It says that it is no learner


def test_it_says_what_it_is_told_and_that_it_is_unverified():
    listed = {each["name"]: each for each in cmdplab.list_algorithms()}["RPG-PD"]
    assert listed["needs"] == {"printed": ["the kernel", "Slater gap"]}
    assert listed["summary"].startswith("known kernel, no learner")
    assert "was not read" in listed["unverified"]["printed"]
    assert RPG_PD.heuristic
    assert not any(RPG_PD.meant_for(constraints) for constraints in (0, 1, 2))
    assert RPG_PD.unknown_rewards == REFUSED


def test_where_nobody_can_tell_the_kernel_it_is_refused():
    problem = random_problem(3, 2, 2, 1)
    with pytest.raises(InputError, match="RPG-PD learns nothing: it plans on a kernel"):
        live_session(RPG_PD, Task.of(problem, 1.0))
    with pytest.raises(InputError, match="counts nothing where the kernel is known"):
        run(problem, RPG_PD, 10, rewards="bernoulli")
    with pytest.raises(InputError, match="it knows the kernel"):
        as_row("Safe(RPG-PD)")


def test_its_step_is_a_setting_and_what_is_uncertain_is_none():
    changed = RPG_PD.with_settings(fixed_step=0.02)
    assert changed != RPG_PD
    assert changed.settings()["fixed_step"] == 0.02
    kept = RunSettings.of(random_problem(3, 2, 2, 1), changed, 10, 0)
    assert kept.row() == changed
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="fixed_step"):
            RPG_PD.with_settings(fixed_step=wrong)
    with pytest.raises(InputError, match="RPG-PD has no setting bonus_scale"):
        RPG_PD.with_settings(bonus_scale=1.0)


def test_a_learner_has_no_fixed_step_and_no_fixed_temperature():
    with pytest.raises(InputError, match="UOpt-RPGPD has no setting fixed_step"):
        algorithm("UOpt-RPGPD").with_settings(fixed_step=0.1)
    with pytest.raises(InputError, match="No-adjustment has no setting fixed_temperature"):
        algorithm("No-adjustment").with_settings(fixed_temperature=0.1)


def test_a_comparison_names_it():
    found = cmdplab.compare("media-streaming", ["RPG-PD", "OptCMDP"], episodes=300, seeds=1)
    assert set(found.runs) == {"RPG-PD", "OptCMDP"}
