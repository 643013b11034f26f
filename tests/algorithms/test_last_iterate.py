"""Planning methods for a known kernel: RPG-PD, OPG-PD and OMWU-PD."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import random_problem
from hypothesis import given, settings, strategies as st

import cmdplab
from cmdplab.algorithms import algorithm, as_row
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.last_iterate import OMWU_PD, OPG_PD, RPG_PD, LastIterate
from cmdplab.algorithms.row import REFUSED
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Dense, Sparse
from cmdplab.engines.cpu.last_iterate.episode import project
from cmdplab.engines.cpu.last_iterate.session import LastIterateSession
from cmdplab.engines.families import live_session, session
from cmdplab.engines.plain.last_iterate import PlainLastIterate, nearest
from cmdplab.errors import InputError
from cmdplab.experiments.run import run
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.solvers import solve
from cmdplab.theory.saddle import saddle_point

OPTIMISTIC = pytest.mark.parametrize("row", [OPG_PD, OMWU_PD], ids=lambda row: row.name)
EVERY = pytest.mark.parametrize("row", [RPG_PD, OPG_PD, OMWU_PD], ids=lambda row: row.name)


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
    ("name", "given", "iterations", "gap", "slack"),
    [
        ("RPG-PD", {"fixed_temperature": 0.0}, 5000, 2.5e-2, -8.5e-2),  # NPG-PD: it cycles
        ("RPG-PD", {}, 5000, 1.9e-3, -6.2e-3),
        ("RPG-PD", {"fixed_temperature": 1e-3}, 20_000, 2.5e-2, -8.5e-2),  # still cycling
        ("OPG-PD", {}, 5000, 2.0e-4, -6.3e-4),
        ("OMWU-PD", {}, 5000, 2.1e-3, -6.7e-3),
    ],
)
def test_the_reference_run_on_streaming(name, given, iterations, gap, slack):
    problem = streaming()
    solution = solve(problem)
    assert solution.value == pytest.approx(1.900171875, abs=1e-9)
    assert solution.slater_gap == pytest.approx(1.6)
    row = algorithm(name).with_settings(**given)
    curves = run(problem, row, iterations, solution=solution).curves
    tail = curves["episode"] > iterations - 200
    worst = max(-curves["gap_min"][tail].min(), curves["gap_max"][tail].max())
    assert worst == pytest.approx(gap, rel=0.05)
    assert -curves["violation_max"][tail].max() == pytest.approx(slack, rel=0.05)


def test_opg_pd_ends_in_a_vertex_exactly_where_no_constraint_binds():
    problem = random_problem(4, 3, 3, 1, 2)
    problem = replace(problem, threshold=0.2 * problem.threshold)
    best, policy = exact.greedy(problem, problem.reward[0])
    assert exact.returns(problem, policy)[1] > problem.threshold[0] + 0.1
    last = run(problem, OPG_PD, 2000).state
    reached = exact.occupancy(problem, policy).sum(axis=-1) > 0.0
    np.testing.assert_array_equal(last.policy[reached], policy[reached])  # not nearly: exactly
    assert last.multiplier[0] == 0.0
    assert exact.returns(problem, last.policy)[0] == best
    omwu = run(problem, OMWU_PD, 2000).state
    assert 0.0 < omwu.policy[reached].min() < 1e-6  # weights only approach zero


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


def test_omwu_pd_is_one_step_along_twice_the_new_gradient_less_the_old_one():
    """While no clip binds: pi+ ~ pi exp(eta (2 Q_t - Q_{t-1})), the same for the multipliers."""
    problem = streaming()
    policy, multiplier = np.full((4, 6, 2), 0.5), np.zeros(1)
    old_q, old_missed, ever = 0.0, 0.0, False
    for state in played(OMWU_PD, problem, 300):
        q, missed = seen_gradient(problem, policy, multiplier)
        policy = softmax(np.log(policy) + 0.1 * (2.0 * q - old_q))
        multiplier = multiplier + 0.1 * (2.0 * missed - old_missed)
        old_q, old_missed = q, missed
        if (state.anchor_multiplier == 0.0).any() or (state.multiplier == 0.0).any():
            break
        ever = True
        np.testing.assert_allclose(state.policy, policy, atol=1e-9)
        np.testing.assert_allclose(state.multiplier, multiplier, atol=1e-9)
    assert ever


@OPTIMISTIC
def test_the_gradient_at_the_guess_moves_the_anchor_and_is_the_next_guess(row):
    """One evaluation, at (pi_t, lambda_t); at the anchor it would be extragradient."""
    problem = random_problem(4, 3, 3, 1, 8)
    cap = problem.horizon / solve(problem).slater_gap

    def moved(point, q):
        if row is OMWU_PD:
            return softmax(np.log(point) + 0.1 * q)
        flat = (point + 0.1 * q).reshape(-1, 3)
        return np.array([nearest_by_bisection(each) for each in flat]).reshape(point.shape)

    for at_anchor in (False, True):
        policy = anchor = np.full((3, 4, 3), 1 / 3)
        lam = anchored = np.zeros(1)
        same = True
        for state in played(row, problem, 40):
            q, missed = seen_gradient(problem, policy, lam)
            anchor, anchored = moved(anchor, q), np.clip(anchored + 0.1 * missed, 0.0, cap)
            if at_anchor:
                q, missed = seen_gradient(problem, anchor, anchored)
            policy, lam = moved(anchor, q), np.clip(anchored + 0.1 * missed, 0.0, cap)
            same = same and np.allclose(state.policy, policy, atol=1e-10)
            same = same and np.allclose(state.multiplier, lam, atol=1e-10)
        assert same == (not at_anchor)


@OPTIMISTIC
def test_an_iteration_evaluates_each_reward_once(row):
    class Counting(Dense):
        asked = 0

        def ahead(self, h, value):
            Counting.asked += 1
            return super().ahead(h, value)

    problem = random_problem(4, 3, 5, 2, 1)
    task = task_for(row, problem, solve(problem))._replace(kernel=Counting(problem.table))
    learner = PlainLastIterate(row, task)
    state = learner.init()
    for _ in range(7):
        state = learner.observe(state, None)
    assert Counting.asked == 7 * 5 * (1 + 2)


def test_the_nearest_point_of_the_simplex_by_hand():
    assert nearest([0.5, 0.5, 0.0]).tolist() == [0.5, 0.5, 0.0]
    assert nearest([2.0, 0.0]).tolist() == [1.0, 0.0]
    assert nearest([0.0, 0.0, 0.0, 0.0]).tolist() == [0.25] * 4
    np.testing.assert_allclose(nearest([0.0, -0.5, -2.0]), [0.75, 0.25, 0.0])
    assert nearest([0.0, -1e200]).tolist() == [1.0, 0.0]  # a closed action


def nearest_by_bisection(y):
    """[y - theta]_+ with the theta for which it sums to one."""
    low, high = min(y) - 1.0, max(y)
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(y - middle, 0.0).sum() > 1.0 else (low, middle)
    return np.maximum(y - high, 0.0)


@settings(max_examples=100)
@given(y=st.lists(st.floats(-3.0, 0.0), min_size=1, max_size=9))
def test_the_nearest_point_is_that_of_a_search(y):
    found, in_place = nearest(y), np.array(y)
    project(in_place, np.empty(len(y)))
    np.testing.assert_allclose(found, nearest_by_bisection(np.array(y)), atol=1e-12)
    np.testing.assert_allclose(in_place, found, atol=1e-15)


@EVERY
def test_nothing_is_drawn_and_nothing_is_counted(row):
    problem = random_problem(4, 3, 3, 1, 4)
    runs = [run(problem, row, 200, seed) for seed in (0, 1)]
    np.testing.assert_array_equal(*(each.curves["gap"] for each in runs))
    lists = replace(problem, transition=Sparse.of(problem.table))
    np.testing.assert_allclose(runs[0].curves["gap"], run(lists, row, 200).curves["gap"], atol=1e-9)


@OPTIMISTIC
def test_a_session_is_asked_for_actions_and_told_of_episodes_that_it_ignores(row):
    problem = random_problem(4, 3, 3, 1, 4)
    task = task_for(row, problem, solve(problem))
    one, other = (LastIterateSession(problem, row, task, 0) for _ in range(2))
    without = live_session(row, task)
    for _ in range(5):
        for each in (one, without):
            each.observe([0, 1, 2, 3], [0, 1, 2])
        other.play(1)
    for ours, theirs, bare in zip(one.state(), other.state(), without.state(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(ours, bare)
    sums = np.cumsum(one.policy()[1, 2])
    assert [one.act(1, 2, u) for u in (0.0, 0.5, 0.99)] == [
        int(np.searchsorted(sums, u, side="right")) for u in (0.0, 0.5, 0.99)
    ]
    assert one.act(1, 2, 1.0) == int(np.flatnonzero(one.policy()[1, 2])[-1])
    with pytest.raises(InputError, match="states must be 4 whole numbers"):
        one.observe([0, 1], [0])


# They say that they are no learners


@EVERY
def test_they_say_what_they_are_told_and_that_it_is_unverified(row):
    listed = {each["name"]: each for each in cmdplab.list_algorithms()}[row.name]
    assert listed["needs"] == {"printed": ["the kernel", "Slater gap"]}
    assert listed["summary"].startswith("known kernel, no learner")
    assert "was not read" in listed["unverified"]["printed"]
    assert row.heuristic
    assert not any(row.meant_for(constraints) for constraints in (0, 1, 2))
    assert row.unknown_rewards == REFUSED


@EVERY
def test_where_nobody_can_tell_the_kernel_they_are_refused(row):
    problem = random_problem(3, 2, 2, 1)
    with pytest.raises(InputError, match=f"{row.name} learns nothing: it plans on a kernel"):
        live_session(row, Task.of(problem, 1.0))
    with pytest.raises(InputError, match="counts nothing where the kernel is known"):
        run(problem, row, 10, rewards="bernoulli")
    with pytest.raises(InputError, match="it knows the kernel"):
        as_row(f"Safe({row.name})")


@EVERY
def test_their_step_is_a_setting_and_what_is_uncertain_is_none(row):
    changed = row.with_settings(fixed_step=0.02)
    assert changed != row
    assert changed.settings()["fixed_step"] == 0.02
    kept = RunSettings.of(random_problem(3, 2, 2, 1), changed, 10, 0)
    assert kept.row() == changed
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="fixed_step"):
            row.with_settings(fixed_step=wrong)
    with pytest.raises(InputError, match=f"{row.name} has no setting bonus_scale"):
        row.with_settings(bonus_scale=1.0)


def test_only_rpg_pd_has_a_temperature():
    with pytest.raises(InputError, match="OPG-PD has no setting fixed_temperature"):
        OPG_PD.with_settings(fixed_temperature=0.1)
    with pytest.raises(InputError, match="UOpt-RPGPD has no setting fixed_step"):
        algorithm("UOpt-RPGPD").with_settings(fixed_step=0.1)
    with pytest.raises(InputError, match="No-adjustment has no setting fixed_temperature"):
        algorithm("No-adjustment").with_settings(fixed_temperature=0.1)


def test_a_shorter_step_is_another_method_of_the_family():
    problem, row = streaming(), OPG_PD.with_settings(fixed_step=0.2)
    assert isinstance(row, LastIterate)
    fast, slow = (abs(run(problem, each, 3000).summary.final_gap) for each in (row, OPG_PD))
    assert fast < slow


def test_an_experiment_and_a_comparison_name_them():
    found = cmdplab.compare("media-streaming", ["RPG-PD", "OPG-PD"], episodes=300, seeds=1)
    assert set(found.runs) == {"RPG-PD", "OPG-PD"}
