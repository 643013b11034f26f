"""Facts from the paper that a run must satisfy."""

from __future__ import annotations

import math
import runpy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from conftest import ROOT, examples, problems, random_policy, random_problem
from hypothesis import assume, given, strategies as st
from oracles import improve, session
from oracles.primal_dual import PlainPrimalDual

from cmdplab.algorithms import ALGORITHMS, algorithm
from cmdplab.algorithms.confidence import appendix_c_bonus, uniform_pac
from cmdplab.algorithms.equations import confidence_radius
from cmdplab.algorithms.families.primal_dual import (
    Bonus,
    PrimalDual,
    PrimalDualState,
    uncapped,
    unit,
)
from cmdplab.algorithms.schedules import Constant
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.host import HostSession
from cmdplab.experiments.run import run
from cmdplab.solvers import solve


def no_bonus(s):
    return Bonus(log=0.0)


def kernel_inside(learner: PlainPrimalDual, state: PrimalDualState, kernel: np.ndarray) -> bool:
    """|Pbar(y) - P(y)| <= 2 sqrt(Pbar(y)) phi + 5 phi^2 for every entry: the set of H.1."""
    bonus = uniform_pac(learner.row.setting(learner.task))
    visits = state.counts.sum(axis=-1)
    phi = np.vectorize(lambda n: confidence_radius(n, bonus.iterated, bonus.log, np.inf))(visits)[
        ..., None
    ]
    estimate = state.counts / np.maximum(visits, 1.0)[..., None]
    return bool(np.all(np.abs(estimate - kernel) <= 2 * np.sqrt(estimate) * phi + 5 * phi**2))


@examples(20)
@given(problem=problems(), seed=st.integers(0, 1000), log_visits=st.floats(1.0, 6.0))
def test_optimistic_values_are_optimistic_inside_the_confidence_set(problem, seed, log_visits):
    # Counts as if every pair had been visited up to 10^log_visits times.
    rng = np.random.default_rng(seed)
    shape = problem.transition.shape[:3]
    visits = rng.integers(0, int(10**log_visits), shape)
    kernel = problem.transition / problem.transition.sum(axis=-1, keepdims=True)
    counts = np.stack([rng.multinomial(visits[i], kernel[i]) for i in np.ndindex(shape)]).reshape(
        problem.transition.shape
    )
    policy = random_policy(problem, seed)
    policy = 0.9 * policy + 0.1 / problem.actions
    row = replace(algorithm("UOpt-RPGPD", "printed"), bonus_scale=1.0)
    learner = PlainPrimalDual(row, Task.of(problem, 1.0))
    state = PrimalDualState(
        counts.astype(float), np.log(policy), policy, np.zeros(problem.constraints), 1
    )
    assume(kernel_inside(learner, state, problem.transition))
    tau = 0.3
    optimistic = learner.evaluate(state, tau).value[:, 0, problem.start]
    truth = exact.returns(problem, policy)
    entropy = -np.sum(exact.occupancy(problem, policy) * np.log(policy))
    truth[0] += tau * entropy
    assert np.all(optimistic >= truth - 1e-10)


def on_the_boundary(p: float, row: PrimalDual, task: Task, visits: int) -> float:
    """The smallest Pbar whose confidence interval still holds p, for a row (Pbar, 1 - Pbar)."""
    bonus = uniform_pac(row.setting(task))
    phi = confidence_radius(visits, bonus.iterated, bonus.log, np.inf)

    def inside(q: float) -> bool:
        return p - q <= min(2 * np.sqrt(each) * phi + 5 * phi**2 for each in (q, 1.0 - q))

    low, high = 0.0, p
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if inside(middle) else (middle, high)
    return high


@given(H=st.integers(2, 30), p=st.floats(0.3, 0.9), log_visits=st.floats(3.0, 7.0))
def test_the_bonus_makes_up_for_the_worst_kernel_of_the_confidence_set(H, p, log_visits):
    # From state 0 chance leads to state 1, which pays for ever, or to state 2, which never does.
    # The two are known well; the estimate of the chance is as gloomy as the set allows.
    visits = int(10**log_visits)
    kernel = np.zeros((3, 1, 3))
    kernel[0, 0, 1:] = p, 1.0 - p
    kernel[1, 0, 1] = kernel[2, 0, 2] = 1.0
    reward = np.zeros((2, H, 3, 1))
    reward[:, :, 1] = 1.0
    problem = CMDP(kernel, reward, [0.0], 0)
    row = replace(algorithm("UOpt-RPGPD", "printed"), bonus_scale=1.0)
    task = Task.of(problem, 1.0)
    q = on_the_boundary(p, row, task, visits)
    counts = 1e15 * problem.transition
    counts[:, 0, 0] = visits * np.array([0.0, q, 1.0 - q])
    state = PrimalDualState.initial(row, task)._replace(counts=counts)
    truth = exact.returns(problem, state.policy)
    optimistic = PlainPrimalDual(row, task).evaluate(state, 0.0).value[:, 0, 0]
    assert np.all(optimistic >= truth - 1e-9)
    # Without the multiplier H it would not be enough: what is lost grows with the steps to go.
    timid = PlainPrimalDual(replace(row, bonus_multiplier=unit), task)
    if H >= 20 and log_visits >= 5.0:
        assert timid.evaluate(state, 0.0).value[1, 0, 0] < truth[1]


LEARNERS = [
    row for row in ALGORITHMS.values() if isinstance(row, PrimalDual) and not row.knows_kernel
]


@examples(25)
@given(
    problem=problems(),
    row=st.sampled_from(LEARNERS),
    seed=st.integers(0, 2**40),
    scale=st.sampled_from([1e-3, 0.1, 1.0]),
)
def test_engines_agree_and_policies_stay_on_the_simplex(problem, row, seed, scale):
    row = replace(row, bonus_scale=scale)
    task = Task.of(problem, solve(problem).slater_gap)
    cpu = session("cpu", problem, row, task, seed)
    host = HostSession(problem, PlainPrimalDual(row, task), seed)
    for ours, theirs in zip(cpu.play(25), host.play(25), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    policy = cpu.state().policy
    assert np.all(policy >= 0.0)
    np.testing.assert_allclose(policy.sum(axis=-1), 1.0, atol=1e-12)


def test_the_true_kernel_rarely_leaves_the_confidence_set():
    row = replace(algorithm("UOpt-RPGPD", "printed"), bonus_scale=1.0)
    problem = random_problem(3, 2, 2, 1)
    task = Task.of(problem, 1.0)
    learner = PlainPrimalDual(row, task)
    outside = 0
    for seed in range(40):
        run = session("cpu", problem, row, task, seed)
        for _ in range(5):
            run.play(200)
            outside += not kernel_inside(learner, run.state(), problem.transition)
    assert outside == 0  # the lemma allows delta / 2 = 5 % of the runs; in truth it is far rarer


def converged(problem, tau, steps):
    """The regularised saddle point: the true kernel as the model, no bonus, fixed temperature."""
    row = replace(
        algorithm("UOpt-RPGPD", "printed"),
        bonus=no_bonus,
        policy_step=Constant(0.05),
        dual_step=Constant(0.05),
        temperature=Constant(tau),
        dual_cap=uncapped,
    )
    task = Task.of(problem, solve(problem).slater_gap)
    state = PrimalDualState.initial(row, task)._replace(counts=problem.transition * 1e6)
    run = session("cpu", problem, row, task, 0, state)
    for _ in range(steps):
        improve(run)
    return run.state()


def binding_problem(constraints, seed=2):
    """Thresholds half-way between what the best unconstrained and the safest policy attain."""
    problem = random_problem(4, 3, 3, constraints, seed=seed)
    free = exact.returns(problem, exact.greedy(problem, problem.reward[0])[1])[1:]
    safe = exact.returns(problem, exact.greedy(problem, problem.reward[1:].sum(axis=0))[1])[1:]
    halfway = np.maximum((free + safe) / 2, 0.0)
    return CMDP(problem.transition, problem.reward, halfway, problem.start)


@pytest.mark.slow
@examples(6)
@given(constraints=st.integers(1, 3), seed=st.integers(0, 1000), tau=st.floats(0.1, 0.5))
def test_at_the_regularised_saddle_point_violation_is_tau_times_multiplier(constraints, seed, tau):
    problem = binding_problem(constraints, seed)
    optimum = solve(problem)
    # The greedy policy may be the safest one, too: then the thresholds leave no slack.
    assume(optimum.feasible and optimum.slater_gap > 0.0)
    state = converged(problem, tau, 30_000)
    values = exact.returns(problem, state.policy)
    violation = np.maximum(problem.threshold - values[1:], 0.0)
    np.testing.assert_allclose(violation, tau * state.multiplier, atol=1e-7)


@pytest.mark.parametrize(
    "temperatures", [(0.1, 0.03), pytest.param((0.1, 0.03, 0.01), marks=pytest.mark.slow)]
)
def test_with_the_true_kernel_and_less_temperature_the_value_approaches_the_optimum(temperatures):
    problem = binding_problem(1)
    optimum = solve(problem).value
    distance = []
    for tau in temperatures:
        values = exact.returns(
            problem, converged(problem, tau, 40_000 if tau < 0.03 else 20_000).policy
        )
        distance.append(max(abs(optimum - values[0]), problem.threshold[0] - values[1]))
    assert all(later < before for before, later in pairwise(distance))


def test_uopt_learns_a_small_problem_and_needs_no_number_of_episodes():
    problem = random_problem(4, 2, 3, 1, seed=3)
    solution = solve(problem)
    task = Task.of(problem, solution.slater_gap)
    for tuned_for in (1, 10**9):
        row = replace(algorithm("UOpt-RPGPD", "printed"), tuned_for=tuned_for)
        chunk = session("cpu", problem, row, task, 0).play(50_000)
        distance = np.abs(solution.value - chunk.returns[:, 0])
        assert distance[-1] < 0.02
        assert distance[-1000:].max() < 0.2 * distance[:100].max()


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "No-regularization", "No-adjustment"])
@pytest.mark.parametrize("preset", ["released", "printed"])
def test_nothing_overflows_in_ten_million_episodes(name, preset):
    problem = random_problem(2, 2, 1, 1, seed=1)
    task = Task.of(problem, solve(problem).slater_gap)
    row = algorithm(name, preset)
    # Arrive at episode 10^7 with a policy as extreme as such a run can have.
    state = PrimalDualState.initial(row, task)
    extreme = np.where(np.arange(2) == 0, 0.0, -1e5) * np.ones(state.log_policy.shape)
    state = state._replace(
        log_policy=extreme,
        policy=np.exp(extreme),
        counts=1e7 * problem.transition,
        episode=10_000_000,
    )
    run = session("cpu", problem, row, task, 0, state)
    chunk = run.play(20_000)
    after = run.state()
    for array in (*chunk, after.policy, after.log_policy, after.multiplier):
        assert np.all(np.isfinite(array))
    np.testing.assert_allclose(after.policy.sum(axis=-1), 1.0, atol=1e-12)


@pytest.mark.slow
def test_a_real_run_of_ten_million_episodes_stays_finite():
    problem = random_problem(2, 2, 1, 1, seed=1)
    task = Task.of(problem, solve(problem).slater_gap)
    run = session("cpu", problem, algorithm("No-regularization", "printed"), task, 0)
    for _ in range(10):
        chunk = run.play(1_000_000)
        assert np.all(np.isfinite(chunk.returns))
    assert np.all(np.isfinite(run.state().log_policy))


def test_little_regret_is_not_few_mistakes_and_a_bonus_with_ln_k_never_stops():
    """Appendices A and C, by the learners of examples/infinitely_many_mistakes.py."""
    shown = runpy.run_path(str(ROOT / "examples" / "infinitely_many_mistakes.py"))
    squares, naive, uniform = (
        run(shown["two_actions"](), each, 3000) for each in shown["LEARNERS"]
    )
    mistakes = [each.curves["strong_regret"] / 0.5 for each in (squares, naive, uniform)]
    at = [np.searchsorted(squares.curves["episode"], k) for k in (30, 300, 3000)]
    assert [int(mistakes[0][k]) for k in at] == [5, 17, 54]  # the squares up to there
    assert list(np.diff([mistakes[1][k] for k in at]) > 0) == [True, True]
    # Once phi(n) < 1/2, the bad action is never taken again: its index does not depend on k.
    phi = {n: math.sqrt((shown["iterated"](n) + math.log(10.0)) / n) for n in range(1, 99)}
    most = min(n for n in phi if phi[n] < 0.5)
    assert mistakes[2][-1] <= most
    # Of the naive bonus no such number exists: visits grow like ln K, and pass every bound.
    needed = [shown["needed"](appendix_c_bonus, 10**e) for e in (3, 30, 300)]
    assert needed[2] / needed[1] == pytest.approx(10.0, rel=0.1)
    assert len({shown["needed"](uniform_pac, 10**e) for e in (3, 30, 300)}) == 1
