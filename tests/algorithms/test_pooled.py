"""Counts that the steps share, a known support, and any action where a plan never comes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import random_problem
from extended_lp import extended_value
from oracles.planner import PlainPlanner

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import possible_successors, task_for
from cmdplab.algorithms.families.planner import doubling
from cmdplab.algorithms.row import STATIONARY, SUPPORT
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import live_session, session
from cmdplab.environments import make
from cmdplab.errors import InputError
from cmdplab.solvers import solve_feasible
from cmdplab.testing.contract import check_learner

RELEASED = algorithm("OptCMDP", "released")
PRINTED = algorithm("OptCMDP", "printed")
POOLED = PRINTED.with_settings(dynamics="stationary")
TOLD = replace(PRINTED, needs=(*PRINTED.needs, SUPPORT))
UNIFORM = replace(PRINTED, uniform_elsewhere=1.0)
BONUS = replace(algorithm("OptCMDP-bonus"), dynamics="stationary", needs=RELEASED.needs)
QUEUED = replace(algorithm("OptDual-CMDP"), dynamics="stationary", needs=RELEASED.needs)
DOPE = algorithm("DOPE", "printed")
SAFE = replace(DOPE, dynamics="stationary", needs=(*DOPE.needs, STATIONARY, SUPPORT))


def told(row, problem, rewards="known"):
    return task_for(row, problem, solve_feasible(problem), rewards=rewards)


def played(row, problem, episodes=40):
    """A compiled session after some episodes, and its task."""
    task = told(row, problem)
    run = session("cpu", problem, row, task, 3)
    run.play(episodes)
    return run, task


@pytest.mark.parametrize(
    "row",
    [POOLED, TOLD, UNIFORM, BONUS, QUEUED, SAFE, replace(RELEASED, replan=doubling)],
    ids=["pooled", "support", "uniform", "bonus", "queue", "safe", "doubling"],
)
def test_each_field_alone_keeps_the_contract(row):
    problem = random_problem(5, 3, 4, 1, closed=0.2, stationary=True, concentration=0.05)
    check_learner(row, problem, episodes=40)


def test_steps_share_what_they_count():
    problem = make("media-streaming")
    run, task = played(RELEASED, problem)
    state = run.state()
    assert state.counts.shape == (1, 10, 2, 10)
    assert state.counts.sum() == 40 * problem.horizon
    per_step = session("cpu", problem, TOLD, told(TOLD, problem), 3)
    assert per_step.state().counts.shape == (10, 10, 2, 10)
    box, _ = PlainPlanner(RELEASED, task).model(state)
    for ends in (box.lower, box.upper):
        np.testing.assert_array_equal(ends, np.broadcast_to(ends[:1], ends.shape))


def test_where_all_visits_are_at_one_step_pooling_changes_no_bit():
    # With one step there is one layer, whether or not steps share it.
    problem = random_problem(5, 3, 1, 1, stationary=True)
    runs = [session("cpu", problem, row, told(row, problem), 0) for row in (POOLED, PRINTED)]
    ours, theirs = (run.play(200) for run in runs)
    np.testing.assert_array_equal(ours.returns, theirs.returns)


def test_a_told_support_holds_every_successor_and_nothing_else():
    problem = make("media-streaming")
    run, task = played(RELEASED, problem)
    box, _ = PlainPlanner(RELEASED, task).model(run.state())
    outside = np.broadcast_to(problem.table == 0.0, box.upper.shape)
    assert np.all(box.upper[outside] == 0.0)
    assert np.all(box.lower.sum(axis=-1) <= 1.0 + 1e-12)
    assert np.all(box.upper.sum(axis=-1) >= 1.0 - 1e-12)
    loose, _ = PlainPlanner(RELEASED, task._replace(support=None)).model(run.state())
    assert np.all(box.upper <= loose.upper)
    assert np.any(loose.upper[outside] > 0.0)


def test_what_is_promised_is_the_optimum_of_the_explicit_program():
    # HiGHS on the extended linear program, at counts of a run.
    problem = make("media-streaming")
    for episodes in (1, 30, 300):
        run, task = played(RELEASED, problem, episodes)
        state = run.state()
        box, signal = PlainPlanner(RELEASED, task).model(state)
        best = extended_value(box.lower, box.upper, signal, problem.threshold, problem.start)
        assert state.promised[0] == pytest.approx(best, abs=1e-7)
        assert state.promised[1] >= problem.threshold[0] - 1e-9


def test_where_a_plan_never_comes_every_open_action_is_as_likely():
    problem = make("media-streaming")
    run, _ = played(RELEASED, problem, 3)
    policy = run.state().policy
    np.testing.assert_array_equal(policy[0, 1:], 0.5)  # an episode starts at level 0
    greedy, _ = played(replace(RELEASED, uniform_elsewhere=0.0), problem, 3)
    assert set(np.unique(greedy.state().policy[0, 1:])) <= {0.0, 1.0}


def test_the_estimate_of_pooled_counts_finds_the_kernel_faster():
    problem = make("media-streaming")
    errors = []
    for row in (RELEASED, replace(RELEASED, dynamics="per-step")):
        run, _ = played(row, problem, 400)
        counts = run.state().counts
        seen = counts.sum(axis=-1, keepdims=True)
        estimate = counts / np.maximum(seen, 1.0)
        errors.append(np.abs(estimate - problem.table[0])[seen[..., 0] > 0].max(axis=-1).mean())
    assert errors[0] < 0.5 * errors[1]


def test_steps_that_differ_are_refused():
    problem = random_problem(4, 3, 3, 1)
    with pytest.raises(InputError, match="counts all steps together, and the transitions of"):
        told(RELEASED, problem)
    kernel = random_problem(4, 3, 3, 1, stationary=True).transition
    same = CMDP(np.array(kernel), problem.reward, problem.threshold, problem.start)
    assert not same.stationary  # stored step by step, but alike
    assert told(RELEASED, same).support is not None
    with pytest.raises(InputError, match="and the rewards of custom differ between steps"):
        told(RELEASED, same, "bernoulli")


def test_a_pair_may_differ_where_it_is_closed():
    base = random_problem(4, 3, 3, 1, stationary=True)
    mask = np.ones((3, 4, 3), bool)
    mask[1, 2, 0] = False
    kernel = np.array(base.transition)  # the closed row becomes "stay"
    problem = CMDP(kernel, base.reward, 0.5 * base.threshold, base.start, mask=mask)
    check_learner(RELEASED, problem, episodes=10)


def test_who_is_told_no_support_cannot_use_one():
    problem = make("media-streaming")
    task = Task.of(problem, 1.0)
    for start in (live_session, lambda row, task: session("cpu", problem, row, task, 0)):
        with pytest.raises(InputError, match=r"OptCMDP \(released\) needs to know which states"):
            start(RELEASED, task)
    told_of = Task.of(problem, 1.0, support=possible_successors(problem))
    live = live_session(RELEASED, told_of)
    with pytest.raises(InputError, match="cannot lead from state 0 to 5, as it does at step 0"):
        live.observe([0, 5, *[4] * 9], [0] * 10)


def test_the_state_of_other_counts_is_refused():
    problem = make("media-streaming")
    run, task = played(RELEASED, problem, 1)
    with pytest.raises(InputError, match=r"counts of 1 steps, and OptCMDP \(released\) of 10"):
        session("cpu", problem, replace(RELEASED, dynamics="per-step"), task, 0, run.state())


def test_the_default_preset_is_one_that_is_told_nothing_of_the_kernel():
    assert algorithm("OptCMDP") is PRINTED
    assert algorithm("DOPE").preset == "printed"
    assert algorithm("UOpt-RPGPD").preset == "released"


def test_what_is_done_where_a_plan_never_comes_decides_the_first_violations():
    # Four in five places are such places then. The published code: 130.1, with ties of its own.
    problem = make("media-streaming")
    short = []
    for row in (RELEASED, replace(RELEASED, uniform_elsewhere=0.0)):
        returns = session("cpu", problem, row, told(row, problem), 0).play(100).returns
        short.append(np.maximum(problem.threshold[0] - returns[:, 1], 0.0).sum())
    assert short[0] < 200.0 < 240.0 < short[1]
