"""The potential along runs, and the failure events and nice episodes of the proofs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import examples, problems, random_policy, random_problem
from hypothesis import assume, given, strategies as st
from oracles import improve, session
from oracles.primal_dual import PlainPrimalDual
from test_theory_saddle import bandit, halfway, seeds, temperatures

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.confidence import uniform_pac
from cmdplab.algorithms.equations import confidence_radius
from cmdplab.algorithms.families.primal_dual import Bonus, PrimalDualState
from cmdplab.algorithms.schedules import Constant
from cmdplab.algorithms.task import Task, told_gap
from cmdplab.algorithms.uopt_rpgpd import UOPT_RPGPD
from cmdplab.cmdp import exact
from cmdplab.errors import InputError
from cmdplab.solvers import solve
from cmdplab.theory import events
from cmdplab.theory.bounds import COROLLARY, Exponents, log_burn_in
from cmdplab.theory.constants import constants, first_potential_bound, setting_of
from cmdplab.theory.lagrangian import optimism_errors, weighted_optimism_error
from cmdplab.theory.potential import (
    drift,
    gap_from_divergence,
    late_potential_bound,
    potential,
    potential_bound,
    recursion_bound,
)
from cmdplab.theory.saddle import saddle_point

# The potential.


def test_the_potential_by_hand():
    # The saddle point is pi = (1/2, 1/2), lambda = 1: see test_theory_saddle.
    problem = bandit(0.75)
    saddle = saddle_point(problem, 0.25)
    at = potential(problem, saddle, np.log([[[0.75, 0.25]]]), np.zeros(1))
    assert at.policy == pytest.approx(0.5 * math.log(4 / 3), abs=1e-10)
    assert at.multiplier == pytest.approx(0.5, abs=1e-10)
    assert at.total == at.policy + at.multiplier
    with np.errstate(divide="ignore"):
        assert potential(problem, saddle, np.log([[[1.0, 0.0]]]), np.ones(1)).policy == math.inf


@given(problem=problems(), tau=temperatures, seed=seeds)
def test_the_potential_is_zero_at_the_saddle_point_and_positive_elsewhere(problem, tau, seed):
    saddle = saddle_point(problem, tau)
    there = potential(problem, saddle, saddle.log_policy, saddle.multiplier)
    assert there.total == 0.0
    policy = 0.99 * random_policy(problem, seed) + 0.01 / problem.actions
    elsewhere = potential(problem, saddle, np.log(policy), saddle.multiplier + 1.0)
    assert elsewhere.policy >= 0.0
    assert elsewhere.multiplier == pytest.approx(problem.constraints / 2)


@given(problem=problems(), seed=seeds)
def test_the_first_potential_is_bounded(problem, seed):
    slack = told_gap(solve(problem).slater_gap)
    assume(slack > 1e-3)
    saddle = saddle_point(problem, 4**-0.4)
    uniform = np.full_like(saddle.policy, -math.log(problem.actions))
    first = potential(problem, saddle, uniform, np.zeros(problem.constraints)).total
    assert first <= first_potential_bound(setting_of(problem, slack)) + 1e-9


@given(
    problem=problems(),
    tau=st.sampled_from([2.0, 1.0, 0.1, 0.01]),
    seed=seeds,
    distance=st.floats(0.0, 3.0),
)
def test_a_small_divergence_means_a_small_gap_and_violation(problem, tau, seed, distance):
    problem = halfway(problem)
    optimum = solve(problem)
    assume(optimum.feasible)
    slack = told_gap(optimum.slater_gap)
    assume(slack > 1e-3)
    saddle = saddle_point(problem, tau)
    noise = np.random.default_rng(seed).normal(size=saddle.policy.shape)
    log_policy = saddle.log_policy + distance * noise
    log_policy -= np.log(np.sum(np.exp(log_policy), axis=-1, keepdims=True))
    sides = gap_from_divergence(problem, saddle, log_policy, optimum.value, slack)
    assert sides.gap <= sides.gap_bound + 1e-9
    assert np.all(sides.violation <= sides.violation_bound + 1e-9)


def test_divergence_to_gap_by_hand():
    # V* = 1/4 at b = 3/4; b_gap = 1/4; H = 1; the divergence is ln(4/3) / 2, tau = 1/4.
    problem = bandit(0.75)
    sides = gap_from_divergence(
        problem, saddle_point(problem, 0.25), np.log([[[0.75, 0.25]]]), 0.25, 0.25
    )
    spread = math.sqrt(math.log(4 / 3))
    H_ent = 1 + math.log(2)
    assert sides.gap == pytest.approx(-0.5)
    assert sides.gap_bound == pytest.approx(H_ent / 4 + spread)
    np.testing.assert_allclose(sides.violation, [0.5])
    assert sides.violation_bound == pytest.approx(H_ent + spread)


# Its bound along a run.


def test_the_three_terms_by_hand():
    bound = potential_bound(1.0, np.full(2, 0.5), np.ones(2), np.array([0.0, 3.0]), 1.0)
    np.testing.assert_allclose(bound.initial, [0.5, 0.25])
    np.testing.assert_allclose(bound.steps, [0.25, 0.375])
    np.testing.assert_allclose(bound.errors, [0.0, 1.5])
    np.testing.assert_allclose(bound.drift, 0.0)
    np.testing.assert_allclose(bound.total, [0.75, 2.125])


@given(seed=seeds, length=st.integers(1, 30))
def test_the_three_terms_unroll_the_recursion(seed, length):
    rng = np.random.default_rng(seed)
    steps, temperatures_, errors, drifts = rng.random((4, length))
    bound = potential_bound(2.0, steps, temperatures_, errors, 3.0, drifts).total
    now = 2.0
    for k in range(length):
        now = recursion_bound(now, steps[k], temperatures_[k], errors[k], 3.0) + drifts[k]
        assert bound[k] == pytest.approx(now)
    keep = 1.0 - steps * temperatures_
    direct = keep.prod() * 2.0
    for i in range(length):
        direct += keep[i + 1 :].prod() * (steps[i] ** 2 * 3.0 + steps[i] * errors[i] + drifts[i])
    assert bound[-1] == pytest.approx(direct)


def test_the_late_bound_holds_from_the_burn_in_on_only():
    log_k = log_burn_in(COROLLARY) + 1.0
    late = late_potential_bound(log_k, COROLLARY, 2.0, 3.0, 0.0)
    assert late.initial == pytest.approx(math.log(18.0) - 12 * log_k)
    assert late.steps == pytest.approx(math.log(27.0 * log_k) - 9 / 14 * log_k)
    assert late.errors == -math.inf
    assert late.total == pytest.approx(late.steps)
    with pytest.raises(InputError, match=r"k\*"):
        late_potential_bound(math.log(1e9), COROLLARY, 2.0, 3.0, 0.0)
    first = math.log(math.exp(log_burn_in(COROLLARY)))  # k* itself, whatever its rounding
    for log_k in (first, first * (1.0 - 4e-16)):
        assert late_potential_bound(log_k, COROLLARY, 2.0, 3.0, 0.0).total < 0.0


def test_the_late_bound_lies_above_the_three_terms():
    # With these exponents k* is about 3e4, so that the sums themselves can be formed.
    exponents = Exponents(0.505, 0.005)
    last = math.ceil(math.exp(log_burn_in(exponents))) + 5000
    k = np.arange(1, last + 1) + 3.0
    errors = 1.0 / np.sqrt(k)
    bound = potential_bound(2.0, k**-0.505, k**-0.005, errors, 3.0)
    for at in (last - 5000, last):
        late = late_potential_bound(math.log(at), exponents, 2.0, 3.0, errors[:at].sum())
        exact_terms = (bound.initial[at - 1], bound.steps[at - 1], bound.errors[at - 1])
        for term, limit in zip(exact_terms, late, strict=True):
            assert term <= math.exp(limit)


def exact_session(problem, tau, slack):
    """The algorithm with the true kernel, no bonus and a fixed step and temperature."""
    row = replace(
        algorithm("UOpt-RPGPD", "printed"),
        bonus=lambda setting: Bonus(log=0.0),
        policy_step=Constant(0.05),
        dual_step=Constant(0.05),
        temperature=Constant(tau),
    )
    task = Task.of(problem, slack)
    state = PrimalDualState.initial(row, task)._replace(counts=problem.transition * 1e6)
    return session("cpu", problem, row, task, 0, state)


@pytest.mark.parametrize("tau", [1.0, 0.1, 0.01])
def test_with_the_true_kernel_the_potential_falls_a_hundredfold(tau):
    problem = halfway(random_problem(4, 3, 3, 1, seed=2))
    slack = told_gap(solve(problem).slater_gap)
    saddle = saddle_point(problem, tau)
    session = exact_session(problem, tau, slack)
    constant = constants(setting_of(problem, slack)).combined(tau)

    def measured():
        state = session.state()
        return potential(problem, saddle, state.log_policy, state.multiplier).total

    phi = [measured()]
    steps = 20_000
    for k in range(steps):
        improve(session)
        if k < 20 or k == steps - 1:
            phi.append(measured())
        if k < 20:
            assert phi[-1] <= recursion_bound(phi[-2], 0.05, tau, 0.0, constant)
    assert phi[-1] <= phi[0] / 100
    bound = potential_bound(phi[0], np.full(20, 0.05), np.full(20, tau), np.zeros(20), constant)
    assert np.all(np.array(phi[1:21]) <= bound.total)


def test_along_a_run_the_potential_stays_below_its_bound():
    problem = halfway(random_problem(3, 2, 2, 1, seed=1))
    slack = told_gap(solve(problem).slater_gap)
    setting = setting_of(problem, slack)
    constant = constants(setting).combined(1.0)
    task = Task.of(problem, slack)
    learner = PlainPrimalDual(replace(UOPT_RPGPD, bonus_scale=1.0), task)
    state, rng, episodes = learner.init(), np.random.default_rng(0), 25
    schedule = UOPT_RPGPD.schedule(task, 1, episodes + 1)
    occupancies = np.zeros(state.policy.shape)
    saddle = saddle_point(problem, schedule[0, 2])
    phi = [potential(problem, saddle, state.log_policy, state.multiplier).total]
    errors, drifts = [], []
    for k in range(episodes):
        occupancies += exact.occupancy(problem, state.policy)
        counts = state.counts.copy()
        x = problem.start
        for h in range(problem.horizon):
            a = rng.choice(problem.actions, p=state.policy[h, x])
            y = rng.choice(problem.states, p=problem.transition[h, x, a])
            counts[h, x, a, y] += 1.0
            x = y
        state = state._replace(counts=counts, episode=k + 1)
        assert not events.failures(counts, problem.transition, occupancies, 0.1).any
        eta, _, tau, _ = schedule[k]
        optimism = optimism_errors(problem, state.policy, learner.evaluate(state, tau), tau)
        assert np.all(optimism >= 0.0)
        errors.append(weighted_optimism_error(optimism, saddle.multiplier))
        before = potential(problem, saddle, state.log_policy, state.multiplier).total
        state = learner.improve(state)
        after = potential(problem, saddle, state.log_policy, state.multiplier).total
        assert after <= recursion_bound(before, eta, tau, errors[-1], constant)
        following = saddle_point(problem, schedule[k + 1, 2], start=saddle.multiplier)
        drifts.append(drift(problem, saddle, following, state.log_policy, state.multiplier))
        saddle = following
        phi.append(after + drifts[-1])
    assert np.any(np.abs(drifts) > 1e-6)  # the saddle point moves, which the print ignores
    eta, tau = schedule[:episodes, 0], schedule[:episodes, 2]
    bound = potential_bound(phi[0], eta, tau, np.array(errors), constant, np.array(drifts))
    assert np.all(np.array(phi[1:]) <= bound.total)


# Failure events.


def coin(visits: float, heads: float) -> tuple[np.ndarray, np.ndarray]:
    """Counts and the fair kernel of one pair that leads to one of two states."""
    counts = np.zeros((1, 2, 1, 2))
    counts[0, 0, 0] = heads, visits - heads
    return counts, np.full((1, 2, 1, 2), 0.5)


def test_failure_events_by_hand():
    delta = 0.1
    none = np.zeros((1, 2, 1))
    # Nothing seen, or what was to be expected: nothing has failed.
    for counts, kernel in (coin(0, 0), coin(1000, 520)):
        assert events.failures(counts, kernel, none, delta) == (False, False, False)
    # A fair coin that shows heads 10,000 times.
    counts, kernel = coin(10_000, 10_000)
    assert events.failures(counts, kernel, none, delta) == (True, False, True)
    # phi^2 = 2 (ln ln 2n + ln(48 X^2 A H / delta)) / n with X = 2, A = 1, H = 1.
    phi2 = 2 * (math.log(math.log(20_000)) + math.log(48 * 4 / delta)) / 10_000
    margin = events.kernel_margin(counts, kernel, delta)[0, 0, 0]
    np.testing.assert_allclose(margin, [2 * phi2**0.5 + 5 * phi2 - 0.5, 5 * phi2 - 0.5])
    width = math.sqrt(4 / 1e4 * (2 * math.log(math.log(1e4)) + math.log(12 * 2 * 2 / delta)))
    assert events.l1_margin(counts, kernel, delta)[0, 0, 0] == pytest.approx(width - 1.0)
    # Expected 20 visits, seen 2: 2 - 10 + ln 80 < 0; expected 12: 2 - 6 + ln 80 > 0.
    for expected, failed in ((20.0, True), (12.0, False)):
        occupancies = none.copy()
        occupancies[0, 0, 0] = expected
        assert events.failures(*coin(2, 1), occupancies, delta).visits == failed
    assert events.failures(*coin(2, 1), none + 50.0, delta).any


def test_one_state_has_no_l1_event():
    counts, kernel = np.full((2, 1, 3, 1), 7.0), np.ones((2, 1, 3, 1))
    assert np.all(np.isinf(events.l1_margin(counts, kernel, 0.1)))
    assert not events.failures(counts, kernel, np.zeros((2, 1, 3)), 0.1).any


def test_a_thousand_states_do_not_overflow():
    counts, kernel = np.ones((1, 1000, 1, 1000)), np.full((1, 1000, 1, 1000), 1e-3)
    assert np.all(np.isfinite(events.l1_margin(counts, kernel, 0.1)))


def test_shares_of_delta():
    assert events.shares(4, 0.1) == pytest.approx((0.05, 0.00625, 0.00625))
    assert events.union_shares(0.1) == pytest.approx((0.05, 0.025, 0.025))
    assert sum(events.union_shares(0.1)) == pytest.approx(0.1)


@examples(20)
@given(seed=seeds, log_visits=st.floats(0.0, 7.0))
def test_the_confidence_set_is_that_of_the_algorithm(seed, log_visits):
    # The widths add up to the bonus of Eq. 3 wherever phi <= 1, with or without the cap.
    rng = np.random.default_rng(seed)
    counts = np.floor(10**log_visits * rng.dirichlet(np.ones(3), (2, 3, 2)))
    setting = setting_of(random_problem(3, 2, 2, 1), 1.0)
    bonus = uniform_pac(setting)
    margin = events.kernel_margin(counts, np.zeros_like(counts), 0.1)
    for h, x, a in np.ndindex(2, 3, 2):
        n = counts[h, x, a].sum()
        estimate = counts[h, x, a] / max(n, 1.0)
        phi = confidence_radius(n, bonus.iterated, bonus.log, 1.0)
        beta = bonus.root * phi * np.sqrt(estimate).sum() + bonus.tail * phi**2
        assert margin[h, x, a].sum() == pytest.approx(beta - estimate.sum())


def test_failures_are_rare_in_runs():
    problem = random_problem(3, 2, 2, 1)
    task = Task.of(problem, 1.0)
    row = replace(UOPT_RPGPD, bonus_scale=1.0)
    for seed in range(10):
        run = session("cpu", problem, row, task, seed)
        occupancies = np.zeros((2, 3, 2))
        for _ in range(40):
            occupancies += exact.occupancy(problem, run.state().policy)
            run.play(1)
            counts = run.state().counts
            assert not events.failures(counts, problem.transition, occupancies, 0.1).any


# Nice episodes.


def test_nice_episodes_by_hand():
    # A = 1, H = 2: H_ent = 2, X = 3: w_min = eps / 12.
    setting = setting_of(random_problem(3, 1, 2, 1), 1.0)
    assert events.smallest_weight(setting, 1.2) == pytest.approx(0.1)
    occupancy = np.zeros((2, 3, 1))
    occupancy[:, 0] = 0.05
    occupancy[:, 1] = 0.95
    likely = events.likely_pairs(occupancy, setting, 1.2)
    np.testing.assert_array_equal(likely[0, :, 0], [False, True, False])
    expected = np.full((2, 3, 1), 8.0)
    visits = np.full((2, 3, 1), 2.0)
    assert events.is_nice(occupancy, visits, expected, setting, 1.2)
    visits[0, 0] = 1.0  # too few, but the pair is unlikely
    assert events.is_nice(occupancy, visits, expected, setting, 1.2)
    assert not events.is_nice(occupancy, visits, expected, setting, 0.5)  # now it counts as likely
    visits[1, 1] = 1.0
    assert not events.is_nice(occupancy, visits, expected, setting, 1.2)
    # (6 * 9 * 1 * 8 / 1.2) ln(4 * 2 * 3 / 0.1), and 6 ceil(4 ln(240) / 0.1).
    assert events.rough_episodes_printed(setting, 1.2) == pytest.approx(360 * math.log(240))
    assert events.rough_episodes(setting, 1.2) == 6 * math.ceil(40 * math.log(240))
    for bad in (0.0, -1.0):
        with pytest.raises(InputError, match="epsilon"):
            events.rough_episodes_printed(setting, bad)
        with pytest.raises(InputError, match="epsilon"):
            events.smallest_weight(setting, bad)


@given(A=st.integers(1, 6), H=st.integers(1, 4), epsilon=st.floats(0.3, 2.0))
def test_as_few_visits_as_the_good_event_allows_give_as_many_rough_episodes(A, H, epsilon):
    # One pair is played with a weight just above w_min, and visited as seldom as the event allows.
    problem = random_problem(2, A, H, 1)
    setting = setting_of(problem, 1.0)
    weight = events.smallest_weight(setting, epsilon) * (1 + 1e-9)
    assume(weight < 0.5)
    log = math.log(4 * 2 * A * H / setting.delta)
    shape = (H, 2, A)
    total, rough = 0.0, 0
    for _ in range(20):  # in steps: a whole number of episodes at a time
        bulk = max(1, int(4 * log / weight / 19))
        visits, occupancies, occupancy = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        visits[0, 0, 0] = max(0.0, math.ceil(0.5 * total - log))
        occupancies[0, 0, 0], occupancy[0, 0, 0] = total, weight
        assert np.all(events.visits_margin(visits, occupancies, setting.delta) >= 0.0)
        if not events.is_nice(occupancy, visits, occupancies, setting, epsilon):
            rough += bulk
        total += bulk * weight
    each = events.rough_episodes(setting, epsilon) / (2 * A * H)
    assert rough <= each + bulk
