"""What does not hold as printed: each entry of docs/errata.md with its counterexample."""

from __future__ import annotations

import math
from dataclasses import replace

import numba
import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from oracles.primal_dual import PlainPrimalDual

from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.uopt_rpgpd import UOPT_RPGPD
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import session
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.formats import find
from cmdplab.solvers import solve
from cmdplab.theory import bounds, constants, conversions, events, lagrangian
from cmdplab.theory.potential import drift
from cmdplab.theory.saddle import saddle_point


def mirror_step(eta, kappa, loss, x, u):
    """Lemma F.8: left side, right side as printed, right side with the loss from its minimum."""
    g = loss + kappa * np.log(x)
    log_next = np.log(x) - eta * g
    log_next -= np.logaddexp.reduce(log_next)
    moved = u @ (log_next - np.log(x)) / eta  # (KL(u, x) - KL(u, x')) / eta
    entropy = 2 * eta * kappa**2 * (1 + math.log(len(x))) ** 2
    printed = moved + entropy + 2 * eta * x @ loss**2
    return (x - u) @ g, printed, moved + eta / 2 * x @ (g - g.min()) ** 2


def test_the_mirror_descent_inequality_fails_as_printed():
    x = np.array([math.exp(-5), 1 - math.exp(-5)])
    left, printed, shifted = mirror_step(1.0, 0.0, np.array([-5.0, 0.0]), x, np.array([1.0, 0.0]))
    assert left == pytest.approx(4.966, abs=1e-3)
    assert printed == pytest.approx(4.647, abs=1e-3)
    assert left <= shifted


def test_the_condition_of_lemma_f8_fails_in_the_first_hundred_episodes():
    """eta (Q~ - tau ln pi) <= 1 is what its proof needs; at the paper's size, bonus scale 1."""
    problem = find("random-printed", 0)
    solution = solve(problem)
    row = replace(UOPT_RPGPD, bonus_scale=1.0)
    task = task_for(row, problem, solution)
    sizes = constants.setting_of(problem, solution.slater_gap)
    bound = constants.entropy_horizon(sizes) * (1.0 + sizes.H / sizes.slack)
    assert row.schedule(task, 1, 1)[0, 0] * bound == pytest.approx(31.9, abs=0.1)
    run, learner, reached = session("cpu", problem, row, task, 0), PlainPrimalDual(row, task), []
    for episodes in (1, 102, 1):  # after 1, 103 and 104 of them
        run.play(episodes)
        state = run.state()
        eta, _, tau, _ = row.schedule(task, state.episode, 1)[0]
        q = learner.evaluate(state, tau).q
        total = q[0] + state.multiplier[0] * q[1] - tau * state.log_policy
        reached.append(float(eta * total.max()))
    assert reached == pytest.approx([8.125, 1.0025, 0.9969], abs=1e-3)


def test_the_gradient_inequality_has_the_wrong_sign():
    """Lemma F.9: lambda' = clip(lambda + eta l, 0, u) with lambda = l = eta = 1, lambda* = 0."""
    at, best, ell, eta = 1.0, 0.0, 1.0, 1.0
    after = min(max(at + eta * ell, 0.0), 10.0)
    right = ((at - best) ** 2 - (after - best) ** 2) / (2 * eta) + eta / 2 * ell**2
    assert (ell * (at - best), right) == (1.0, -1.0)  # printed: the first <= the second
    assert -ell * (at - best) <= right


def random_steps(largest):
    rng = np.random.default_rng(0)
    for _ in range(3000):
        actions = rng.integers(2, 5)
        x = rng.dirichlet(np.full(actions, 0.3)) + 1e-12
        loss = rng.normal(size=actions) * 10 ** rng.uniform(-1, 1.5)
        u = rng.dirichlet(np.full(actions, 0.3))
        eta, kappa = rng.uniform(0.01, 1.0), rng.uniform()
        x /= x.sum()
        if eta * np.abs(loss + kappa * np.log(x)).max() <= largest:
            yield mirror_step(eta, kappa, loss, x, u)


def test_it_holds_for_short_steps_and_with_the_loss_counted_from_its_minimum():
    short = list(random_steps(1.0))
    assert len(short) > 100
    assert all(left <= printed + 1e-9 for left, printed, _ in short)
    assert all(left <= shifted + 1e-9 for left, _, shifted in random_steps(math.inf))


def test_logarithms_of_a_policy_spread_no_further_than_its_values_over_the_temperature():
    rng = np.random.default_rng(1)
    log_policy = np.zeros(3)
    for k in range(1, 3000):
        eta, tau = (k + 3) ** -0.53, (k + 3) ** -0.4
        assert tau * np.ptp(log_policy) <= 7.0
        log_policy = (1 - eta * tau) * log_policy + eta * 7.0 * rng.integers(0, 2, 3)


POLYLOG = [
    (1, 1, 1, 1, 0.1),
    (0.5, 1, 1, 1, 0.1),
    (2, 1, 10, 3, 0.01),
    (0.3, 2, 5, 2, 0.5),
    (1, 0.5, 1, 1, 0.01),
    (1, 1, 100, 10, 0.001),
]


@pytest.mark.parametrize(("alpha", "beta", "Z1", "Z2", "eps"), POLYLOG)
def test_the_explicit_episode_of_lemma_f11_is_too_early(alpha, beta, Z1, Z2, eps):
    def g(k):
        return Z1 * k**-alpha * math.log(Z2 * k) ** beta

    power = beta / alpha
    c = (eps / Z1) ** (1 / beta) * Z2 ** (-1 / power)
    small = c * math.e / power
    log = math.log(1 / (small * (1 - small**power)))
    printed = math.ceil(power * (power / math.e) ** power * (Z1 / eps) ** (1 / alpha) * log)
    assert g(printed) > eps
    log_k = bounds.log_polylog_episodes(math.log(Z1), alpha, beta, eps, math.log(Z2))
    found = math.ceil(math.exp(log_k))
    assert all(g(found * far) <= eps for far in (1, 1.01, 2, 10, 1000))


def test_a_slack_constraint_stays_slack_although_no_episode_is_a_mistake():
    # One state, one step: the action with both rewards is optimal, and exceeds b = 1/2 by 1/2.
    both = np.array([[[1.0, 0.0]]])
    problem = CMDP(np.ones((1, 1, 2, 1)), np.stack([both, both]), [0.5])
    value = exact.returns(problem, np.array([[[1.0, 0.0]]]))
    gap, violation = 1.0 - value[0], exact.violation(problem.threshold, value[1:])
    series = np.full(1000, max(gap, violation[0]))
    assert conversions.mistake_counts(series, np.array([1e-9])) == 0
    assert violation == [-0.5]  # in every episode: its limit is not 0


def test_the_saddle_point_drifts_with_the_temperature():
    problem = random_problem(3, 2, 2, 1)
    before, after = saddle_point(problem, 0.3), saddle_point(problem, 0.25)
    at = before.log_policy, before.multiplier  # Phi^k = 0, and the update with P known stays here
    assert drift(problem, before, after, *at) > 1e-4
    assert drift(problem, before, before, *at) == 0.0


def first_failure_of_the_recursion(C, step, tau, reward, most):
    """Return the first k with Phi^(k+1) > A_1^k Phi^1 + B_k C, for two arms and a known kernel.

    With one state, one step and r^0 = (reward, 0) the saddle point's log-odds are reward / tau, and
    the multiplier stays at 0 because r^1 = 1 exceeds b = 0.
    """
    odds, contraction, noise, first = 0.0, 1.0, 0.0, 0.0
    for k in range(most):
        at = reward * (k + 4.0) ** tau  # the log-odds of the saddle point of tau_(k+1)
        share = 1.0 / (1.0 + math.exp(-at))
        phi = share * (at - odds) + math.log1p(math.exp(odds)) - math.log1p(math.exp(at))
        if k == 0:
            first = phi
        elif phi > contraction * first + noise * C:
            return k
        eta = (k + 4.0) ** -step
        forgotten = 1.0 - eta * (k + 4.0) ** -tau
        odds = forgotten * odds + eta * reward
        contraction *= forgotten
        noise = forgotten * noise + eta * eta
    return 0


def test_the_recursion_of_appendix_h4_fails_without_the_drift():
    s = Setting(X=1, A=2, H=1, N=1, K=1, delta=0.1, slack=1.0)
    step, tau = 0.9, 0.09  # inside the region of Theorem 4.1
    C = constants.constants(s).combined(4.0**-tau)
    assert pytest.approx(31.03, abs=0.01) == C
    fast = numba.njit(first_failure_of_the_recursion)
    assert fast(C, step, tau, 0.7, 2_000_000) == 1_289_300


def test_two_multipliers_at_their_clips_exceed_the_bound_of_lemma_h7():
    s = Setting(X=1, A=2, H=3, N=2, K=1, delta=0.1, slack=0.5)
    clip = constants.multiplier_bound(s, 1.0)
    largest = constants.entropy_horizon(s) + s.N * clip * s.H
    assert 2 * largest**2 > constants.constants(s).first


def test_the_steps_of_a_long_horizon_add_up_to_more_than_lemma_h7_allows():
    # The uniform policy, one state; one action is worth nothing, the other the cap of each step.
    s = Setting(X=1, A=2, H=300, N=1, K=1, delta=0.1, slack=1.0)
    eta, tau, uniform, best = 1e-6, 1e-6, np.full(2, 0.5), np.array([0.0, 1.0])
    excess = 0.0
    for left in range(1, s.H + 1):
        value = left * (1 + constants.entropy_horizon(s) / s.slack)
        loss = np.array([0.0, -value])
        side, _, shifted = mirror_step(eta, tau, loss, uniform, best)
        g = loss + tau * np.log(uniform)
        moved = shifted - eta / 2 * uniform @ (g - g.min()) ** 2
        excess += side - moved
    found = constants.constants(s)
    assert excess > eta * (found.first + tau**2 * found.second)
    assert excess <= eta * (found.summed_over_steps(tau) - found.third)


@given(
    st.floats(0.501, 0.999),
    st.floats(0.001, 0.499),
    st.integers(1, 50),
    st.integers(1, 10**6),
    st.floats(1e-6, 1),
    st.floats(1e-6, 1),
)
def test_the_order_of_theorem_4_1_contains_the_corrected_constant(step, tau, n, h, slack, eps):
    # C = (1 + N)^2 H^5 / slack^2 makes Phi <= eps^2 / H^3 from (C H^3 / eps^2)^(1 / (step - tau)).
    assume(step + tau < 1)
    slack, eps = slack * h, eps * h
    corrected = 2 * math.log(1 + n) + 8 * math.log(h) - 2 * math.log(slack * eps)
    printed = math.log(1 + n) + 7 * math.log(h) - 2 * math.log(slack * eps)
    assert corrected / (step - tau) <= printed / (step - 0.5) + 1e-9 * abs(printed)


def test_more_episodes_are_not_nice_than_lemma_h4_allows():
    s = Setting(X=2, A=3, H=2, N=0, K=1, delta=0.1, slack=math.inf)
    eps = 1.0
    weight, log = 1.000001 * events.smallest_weight(s, eps), s.visits_log
    # A pair that is never seen (n = 0), as the good event n >= W / 2 - L allows while W <= 2 L.
    rough = 0
    while (rough + 1) * weight <= 2 * log:
        rough += 1
        before = np.full((1, 1, 1), rough * weight)
        assert not events.is_nice(np.full((1, 1, 1), weight), 0 * before, before, s, eps)
    # At each step one pair takes the rest of the weight; step 1 has the initial state alone.
    pairs = s.A - 1 + (s.H - 1) * (s.X * s.A - 1)
    assert events.rough_episodes_printed(s, eps) < pairs * rough <= events.rough_episodes(s, eps)


def test_a_regularised_policy_is_free_where_it_never_comes():
    # Lemma 3.1: two policies with the saddle point's occupancy, different in an unreachable state.
    problem = random_problem(3, 2, 2, 1)
    found = saddle_point(problem, 0.3)
    policy = np.exp(found.log_policy)
    other = policy.copy()
    other[0, 1 - problem.start] = other[0, 1 - problem.start, ::-1]
    assert np.abs(other - policy).max() > 1e-3
    for one in (policy, other):
        gap = lagrangian.duality_gap(problem, one, found.multiplier, 0.3)
        assert gap.total == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("alpha", [0.25, 0.5, 0.9])
def test_fewer_mistakes_than_one_in_epsilon_do_not_make_the_regret_vanish(alpha):
    # Theorem 2.3 (3): one mistake of 1 and no other. F = epsilon^-alpha allows it, but C^(1/alpha)
    # K^(1 - 1/alpha) falls to 0.
    gaps, levels = np.array([1.0] + [0.0] * 9_999), np.geomspace(1e-6, 0.999, 50)
    assert np.all(conversions.mistake_counts(gaps, levels) <= levels**-alpha)
    assert conversions.regret_from_mistakes(gaps) == 1.0 > 2 * len(gaps) ** (1 - 1 / alpha)


def test_a_rounded_count_of_mistakes_allows_regret_without_the_factor_z1():
    # Lemma F.2: ceil(Z_1 / epsilon) >= 1 allows one mistake of u = 1 whatever Z_1 > 0.
    gaps, levels = np.array([1.0, 0.0, 0.0]), np.geomspace(1e-3, 0.999, 50)
    for z1 in (1e-3, 1e-9):
        assert np.all(conversions.mistake_counts(gaps, levels) <= np.ceil(z1 / levels))
    assert conversions.regret_from_mistakes(gaps) == 1.0  # a bound Z_1 polylog(1 / Z_1) falls to 0


def test_the_violation_of_lemma_f5_is_larger_above_temperature_one():
    # A lock of 100 steps: one of two actions stays where r^1 = 1, the other ends it, with r^0 = 1
    # ever after. At tau = 8 the entropy of open states outweighs the multiplier.
    H, tau, threshold = 100, 8.0, 50.0
    kernel = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    reward = np.array([[[0.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]]])
    steps = np.repeat(reward[:, None], H, axis=1)
    problem = CMDP(np.repeat(kernel[None], H, axis=0), steps, [threshold])
    found = saddle_point(problem, tau)
    violation = threshold - exact.returns(problem, np.exp(found.log_policy))[1]
    printed = tau * H * (1.0 + math.log(2)) / (H - threshold)  # the divergence is 0
    assert violation == pytest.approx(43.370, abs=1e-3)
    assert printed == pytest.approx(27.090, abs=1e-3)
