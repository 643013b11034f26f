"""Facts about the planning family and the other algorithms of Table 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import random_problem
from guarantees import small
from oracles import improve, session
from oracles.planner import PlainPlanner

from cmdplab.algorithms import ALGORITHMS, algorithm
from cmdplab.algorithms.baselines import safe_baseline, task_for
from cmdplab.algorithms.families.planner import Planner, PlannerState
from cmdplab.algorithms.families.primal_dual import PrimalDualState
from cmdplab.algorithms.opt_press import pessimism
from cmdplab.algorithms.schedules import Constant, Setting
from cmdplab.algorithms.task import Task, checked_baseline
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments import make
from cmdplab.errors import InputError
from cmdplab.solvers import policy_bounds, solve, solve_feasible

SEARCHED = [row for row in ALGORITHMS.values() if isinstance(row, Planner) and row.queue is None]
NAMES = {"ids": lambda row: f"{row.name}-{row.preset}"}
NOTHING = 1e-12  # a scale at which every width and margin is gone


def binding(constraints: int = 1, seed: int = 0, stationary: bool = False, **sizes: int) -> CMDP:
    """A problem whose first constraint costs something."""
    for trial in range(100):
        shape = (sizes.get("X", 4), sizes.get("A", 3), sizes.get("H", 3), constraints)
        problem = random_problem(*shape, seed=seed + trial, stationary=stationary)
        if solve(problem).multiplier[0] > 0.05:
            return problem
    raise AssertionError("no binding problem found")


def known(row: Planner, problem: CMDP, task: Task) -> PlannerState:
    """A state whose estimate is the true kernel."""
    layers = row.layers(task)
    counts = problem.transition[:layers] * 2.0**50
    return PlannerState.initial(row, task)._replace(counts=counts, planned=counts.sum(axis=-1))


@pytest.mark.parametrize("row", SEARCHED, **NAMES)
@pytest.mark.parametrize("constraints", [1, 2, 3])
@pytest.mark.parametrize("engine", ["cpu", "host"])
def test_with_the_true_kernel_and_no_widths_the_plan_is_optimal(row, constraints, engine):
    problem = binding(constraints, stationary=row.pooled)
    solution = solve(problem)
    sure = replace(row, bonus_scale=NOTHING, margin_scale=NOTHING, warm_up=lambda s: 0.0)
    sure = replace(sure, replan=algorithm("OptCMDP").replan)
    task = task_for(sure, problem, solution)
    run = session(engine, problem, sure, task, 0, known(row, problem, task))
    run.play(1)
    state = run.state()
    assert state.on_baseline == 0
    returns = exact.returns(problem, state.policy)
    assert returns[0] == pytest.approx(solution.value, abs=1e-8)
    assert np.all(returns[1:] >= problem.threshold - 1e-8)


def average_error(row, problem, episodes):
    """|mean gap| and mean violation of the iterates pi^1 .. pi^K on the true kernel."""
    solution = solve(problem)
    sure = replace(row, bonus_scale=NOTHING, tuned_for=episodes)
    task = Task.of(problem, solution.slater_gap)
    state = PrimalDualState.initial(row, task)._replace(counts=problem.transition * 2.0**50)
    run = session("cpu", problem, sure, task, 0, state)
    total = np.zeros(len(problem.reward))
    for _ in range(episodes):
        total += exact_of(run, problem)
        improve(run)
    mean = total / episodes
    return max(abs(solution.value - mean[0]), *(problem.threshold - mean[1:]), 1e-12)


def exact_of(run, problem):
    return exact.returns(problem, run.state().policy)


@pytest.mark.parametrize("name", ["OptPrimalDual-CMDP", "OPDOP"])
@pytest.mark.slow
def test_averaged_iterates_approach_the_optimum_like_the_root_of_k(name):
    problem = binding(X=3, A=2, H=2)
    row = algorithm(name, "printed")
    lengths = np.array([300, 1000, 3000, 10_000])
    errors = [average_error(row, problem, int(K)) for K in lengths]
    slope = np.polyfit(np.log(lengths), np.log(errors), 1)[0]
    assert -0.75 <= slope <= -0.3, (slope, errors)  # theory: -1/2


@pytest.mark.parametrize("tau", [0.1, 0.02])
def test_the_regularised_fixed_point_violates_by_tau_times_the_multiplier(tau):
    # max(b - V, 0) = tau lambda where no clip is active: the dual step stands still.
    problem = binding(X=3, A=2, H=2)
    row = replace(
        algorithm("Regularized-PD"),
        bonus_scale=NOTHING,
        policy_step=Constant(0.05),
        dual_step=Constant(0.05),
        temperature=Constant(tau),
    )
    task = Task.of(problem, solve(problem).slater_gap)
    state = PrimalDualState.initial(row, task)._replace(counts=problem.transition * 2.0**50)
    run = session("cpu", problem, row, task, 0, state)
    for _ in range(40_000):
        improve(run)
    end = run.state()
    cap = row.numbers(task).dual_cap
    assert 0.0 < end.multiplier[0] < cap
    violation = problem.threshold - exact.returns(problem, end.policy)[1:]
    np.testing.assert_allclose(np.maximum(violation, 0.0), tau * end.multiplier, atol=1e-6)


def test_every_plan_promises_at_least_the_optimum_while_the_kernel_is_in_the_box():
    problem = random_problem(2, 2, 2, 1)
    value = solve(problem).value
    row = replace(algorithm("OptCMDP"), bonus_scale=1.0)
    task = task_for(row, problem, solve(problem))
    learner = PlainPlanner(row, task)
    for seed in range(20):
        run = session("cpu", problem, row, task, seed)
        for _ in range(10):
            run.play(20)
            state = run.state()
            box, signal = learner.model(state)
            inside = np.all((box.lower <= problem.transition) & (problem.transition <= box.upper))
            assert inside  # 1 - delta = 0.9 of the runs may be outside; in truth hardly any is
            assert state.promised[0] >= value - 1e-9
            assert state.promised[1] >= problem.threshold[0] - 1e-9
            bounds = [
                policy_bounds(box, signal, state.policy, problem.start, d)
                for d in ("pessimistic", "optimistic")
            ]
            truth = exact.returns(problem, state.policy)
            assert np.all(bounds[0] <= truth + 1e-9)
            assert np.all(truth <= bounds[1] + 1e-9)


@pytest.mark.parametrize("name", ["OptPress-LP", "DOPE"])
@pytest.mark.slow
def test_safe_learners_at_scale_one_leave_their_baseline_and_never_violate(name):
    problem = small()
    solution = solve(problem)
    row = replace(algorithm(name, "printed"), bonus_scale=1.0, margin_scale=1.0)
    row = replace(row, tuned_for=200_000)
    for seed in range(2):
        task = task_for(row, problem, solution)
        run = session("cpu", problem, row, task, seed)
        chunk = run.play(200_000)
        assert np.all(chunk.returns[:, 1] >= problem.threshold[0] - 1e-9)
        assert run.state().baseline_episodes < 200_000


def test_the_baseline_is_optimal_for_a_tighter_threshold():
    problem = binding()
    solution = solve(problem)
    safe = safe_baseline(problem, solution, 0.5)
    tighter = CMDP(
        problem.transition,
        problem.reward,
        problem.threshold + 0.5 * solution.slater_gap,
        problem.start,
    )
    assert safe.returns[0] == pytest.approx(solve(tighter).value, abs=1e-9)
    assert np.all(safe.returns[1:] >= tighter.threshold - 1e-9)


@pytest.mark.parametrize("name", ["OptPress-LP", "DOPE"])
def test_a_learner_plays_its_baseline_until_it_is_sure(name):
    problem = random_problem(4, 3, 3, 1)
    row = replace(algorithm(name, "printed"), bonus_scale=1.0, margin_scale=1.0)
    solution = solve(problem)
    task = task_for(row, problem, solution)
    chunk = session("cpu", problem, row, task, 0).play(50)
    np.testing.assert_allclose(chunk.returns, np.tile(task.baseline.returns, (50, 1)), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "value", "cost", "episodes"),
    [
        ("media-streaming", 10 - 8.98349, 1.0, 12_501),
        ("three-state", 0.4, 0.6, 676),
        ("inventory", 1.55571, 0.7, 9_451),
    ],
)
def test_the_safe_phase_of_dope_is_that_of_its_published_code(name, value, cost, episodes):
    """What the scripts print, and how often they play it; the budgets are 5, 3 and 3.5."""
    problem, row = make(name), algorithm("DOPE", "released")
    task = task_for(row, problem, solve(problem))
    assert task.baseline.returns[0] == pytest.approx(value, abs=6e-6)
    assert problem.horizon - task.baseline.returns[1] == pytest.approx(cost, abs=1e-9)
    assert row.numbers(task).warm_up == episodes
    assert (row.bonus_scale, row.margin_scale, row.delta) == (1.0, 1.0, 0.01)


@pytest.mark.parametrize(
    ("name", "regrets", "tolerance"),
    [
        (
            "media-streaming",
            {
                12_500: 27959.806281,
                12_501: 27962.043065,
                12_502: 27965.058239,
                12_600: 28260.545290,
            },
            1e-4,  # the script's safe policy costs 1 + 1e-7
        ),
        ("three-state", {676: 1081.6, 677: 1083.599999, 1_000: 1729.593197}, 1.0),  # solved to 1%
    ],
)
def test_dope_as_released_has_the_regret_of_its_published_code(name, regrets, tolerance):
    """The cumulative regrets that the scripts print, to the first one after the safe phase."""
    problem, row = make(name), algorithm("DOPE", "released")
    solution = solve(problem)
    playing = session("cpu", problem, row, task_for(row, problem, solution), 0)
    played = playing.play(max(regrets)).returns
    regret = np.cumsum(np.abs(solution.value - played[:, 0]))
    for episodes, known in regrets.items():
        assert regret[episodes - 1] == pytest.approx(known, abs=tolerance)
    assert np.all(played[:, 1] >= problem.threshold[0] - 1e-9)


@pytest.mark.parametrize("engine", ["cpu", "host"])
def test_dope_as_released_leaves_its_safe_policy_after_676_episodes_not_675(engine):
    problem = make("three-state")
    row = replace(algorithm("DOPE", "released"), bonus_scale=1e-3, margin_scale=1e-3)
    task = task_for(row, problem, solve(problem))
    safe = np.isclose(session(engine, problem, row, task, 0).play(690).returns[:, 0], 0.4)
    assert safe[:676].all()  # K_0 = 9 * 2 * 216 / 2.4^2 = 675
    assert not safe[676:].all()


def test_the_queue_telescopes():
    # With eps_k = 0: Q^{K+1} >= sum_k (b - V~^k), equal if it never touched zero.
    problem = binding()
    row = replace(algorithm("OptPress-PD"), margin_scale=1e-300)
    task = task_for(row, problem, solve(problem))
    learner = PlainPlanner(row, task)
    state, owed = learner.init(), 0.0
    rng = np.random.default_rng(0)
    for _ in range(40):
        owed += float(problem.threshold[0] - state.promised[1])
        states = rng.integers(problem.states, size=problem.horizon + 1)
        states[0] = problem.start
        actions = rng.integers(problem.actions, size=problem.horizon)
        state = learner.observe(state, type_of_episode(states, actions))
        assert state.queue[0] >= owed - 1e-9
    assert np.all(state.queue >= 0.0)


def type_of_episode(states, actions):
    from cmdplab.algorithms.learner import Episode

    return Episode(states, actions)


def test_the_margin_of_optpress_pd_falls():
    s = Setting(X=4, A=3, H=5, N=1, K=1000, delta=0.1, slack=1.0)
    eps = pessimism(np.arange(1.0, 1000.0), s)
    assert np.all(np.diff(eps) < 0.0)
    # delta' = 0.1 / (16 * 16 * 3 * 5) and ln(1 / delta') = 10.5557: by hand at k = 1.
    assert eps[0] == pytest.approx(5 * 25 * np.sqrt(64 * 3) * 11.5557 / np.sqrt(10.5557), rel=1e-4)


def times_planned(run, episodes: int) -> int:
    """How often a run plans anew in so many episodes."""
    plans, before = 0, None
    for _ in range(episodes):
        run.play(1)
        planned = run.state().planned.sum()
        plans += planned != before
        before = planned
    return plans


def test_replanning_when_visits_double_plans_rarely():
    problem = binding()
    row = replace(algorithm("OptCMDP"), bonus_scale=1.0)
    task = task_for(row, problem, solve(problem))
    plans = {}
    for name in ("every-episode", "doubling"):
        run = session("cpu", problem, row.with_settings(replan=name), task, 0)
        plans[name] = times_planned(run, 400)
    assert plans["every-episode"] == 400
    pairs = problem.horizon * problem.states * problem.actions
    assert plans["doubling"] <= pairs * np.log2(400 * 2)


def test_online_crl_plans_at_most_as_often_as_its_phases_allow():
    problem = binding()
    row = algorithm("Online-CRL")
    task = task_for(row, problem, solve(problem))
    numbers = row.numbers(task)
    run = session("cpu", problem, row, task, 0)
    plans = times_planned(run, 2000)
    state = run.state()
    since = state.counts.sum(axis=-1) - state.planned
    due = since >= np.maximum(numbers.replan_first, state.planned)
    assert not np.any(due & (state.planned < numbers.replan_most))
    pairs = problem.horizon * problem.states * problem.actions
    assert 3 <= plans <= pairs * np.log2(2000.0)


def test_infeasible_plans_play_the_largest_margin():
    # By the estimate the threshold cannot be met: the policy of the largest utility is played.
    problem = random_problem(3, 2, 2, 1)
    row = replace(algorithm("OptCMDP"), bonus_scale=NOTHING)
    hard = CMDP(problem.transition, problem.reward, [1.999], problem.start)
    task = Task.of(hard, 1.0)
    state = PlainPlanner(row, task).plan(known(row, hard, task), 0.0)
    best = exact.greedy(hard, hard.reward[1])[0]
    assert exact.returns(hard, state.policy)[1] == pytest.approx(best, abs=1e-9)


def test_what_an_algorithm_lacks_is_said_in_one_sentence():
    problem = random_problem(4, 3, 3, 1)
    solution = solve(problem)
    dope = algorithm("DOPE", "printed")
    with pytest.raises(InputError, match="DOPE needs a safe policy"):
        session("cpu", problem, dope, Task.of(problem, solution.slater_gap), 0)
    with pytest.raises(InputError, match="OPDOP needs a Slater gap > 0, and 0 was given"):
        session("cpu", problem, algorithm("OPDOP"), Task.of(problem, 0.0), 0)
    worst = exact.greedy(problem, -problem.reward[1])[1]
    with pytest.raises(InputError, match="the baseline is not safe: its utility 1 is"):
        task_for(dope, problem, solution, worst)
    with pytest.raises(InputError, match=r"the baseline sums to 0.6 at \[0, 0\]"):
        checked_baseline(problem, np.full((3, 4, 3), 0.2))
    with pytest.raises(InputError, match="has the shape"):
        checked_baseline(problem, np.ones((1, 1, 1)))
    free = random_problem(4, 3, 3, 0)
    with pytest.raises(InputError, match="OptPress-LP needs a constraint"):
        task_for(algorithm("OptPress-LP"), free, solve_feasible(free))


def test_both_spellings_and_short_names_are_known():
    assert algorithm("OptPess-LP") is algorithm("OptPress-LP")
    assert algorithm("optpess-primaldual") is algorithm("OptPress-PD")
    assert algorithm("Regularized PD") is algorithm("Regularized-PD")
    with pytest.raises(InputError, match="did you mean 'OptCMDP'"):
        algorithm("OptCMPD")
    with pytest.raises(InputError, match="OPDOP has only the preset 'printed'"):
        algorithm("OPDOP", "released")


@pytest.mark.parametrize("field", ["bonus_scale", "margin_scale"])
@pytest.mark.parametrize("row", list(ALGORITHMS.values()), **NAMES)
def test_scales_are_positive_and_marked_below_one(row, field):
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match=field):
            replace(row, **{field: wrong})
    theory = replace(row, bonus_scale=1.0, margin_scale=1.0)
    proved = row.guarantee and not row.unverified and row.name != "Triple-Q"
    assert bool(theory.heuristic) == (not proved)
    assert row.plans or replace(theory, bonus_scale=0.5).heuristic
    if row.name == "DOPE":
        assert replace(theory, bonus_scale=10.0).heuristic  # the margin no longer covers the box
    if row.safe:
        assert "zero violation" in replace(theory, margin_scale=0.5).heuristic
