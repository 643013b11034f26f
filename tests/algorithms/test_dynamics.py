"""Stationary dynamics: kernel, rewards and bonuses estimated over all steps, policies per step."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import random_problem
from extended_lp import extended_value
from oracles import session
from oracles.planner import PlainPlanner

from cmdplab.algorithms import ALGORITHMS, algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.row import STATIONARY
from cmdplab.engines.gpu.limits import check_row
from cmdplab.environments import make
from cmdplab.errors import InputError
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.numerics.noise import reward_uniforms, uniforms
from cmdplab.solvers import solve_feasible
from cmdplab.testing.contract import check_learner

POOLS = {key: row for key, row in ALGORITHMS.items() if row.reads("dynamics")}
EVERY = pytest.mark.parametrize("key", POOLS, ids="-".join)


def pooled(row):
    return row.with_settings(dynamics="stationary")


def told(row, problem, rewards="known"):
    return task_for(row, problem, solve_feasible(problem), rewards=rewards)


# An independent implementation, whole arrays at a time: nothing of it is shared with the engines.


def independent(problem, episodes, seed, printed, observed, slack):
    """UOpt-RPGPD (Kitamura et al. 2024) with counts n(x, a, y): policies and multipliers."""
    R, H, X, A = problem.reward.shape
    kernel = problem.table[0]
    log = 2.0 * np.log(48.0 * X**2 * A * H / 0.1)
    counts, sums = np.zeros((X, A, X)), np.zeros((R, X, A))
    pi, lam = np.full((H, X, A), 1.0 / A), np.zeros(R - 1)
    reward = problem.reward[:, 0].copy()
    found = []
    for k in range(1, episodes + 1):
        found.append((pi.copy(), lam.copy()))
        x = problem.start
        move = uniforms(seed, k, 1, H)[0]
        luck = reward_uniforms(seed, k, 1, H, R)[0]
        for h in range(H):
            a = int((move[h, 0] >= np.cumsum(pi[h, x])).sum())
            y = int((move[h, 1] >= np.cumsum(kernel[x, a])).sum())
            counts[x, a, y] += 1.0
            sums[:, x, a] += luck[h] < problem.reward[:, 0, x, a]
            x = y
        n = counts.sum(-1)
        seen = n > 0
        safe_n = np.maximum(n, 1.0)
        estimate = np.where(
            seen[..., None], counts / safe_n[..., None], 0.0 if printed else 1.0 / X
        )
        phi = np.sqrt((2.0 * np.log(np.log(np.maximum(2.0 * n, np.e))) + log) / safe_n)
        roots = np.sqrt(estimate).sum(-1)
        beta = 1e-3 * ((2.0 if printed else 1.0) * roots * phi + (X if printed else 1) * 5 * phi**2)
        if printed:
            beta[~seen] = np.inf
        if observed:
            reward = np.where(seen, np.clip(sums / safe_n + 1e-3 * phi, 0.0, 1.0), 1.0)
        past = k if printed else k - 1
        eta, tau = (past + 3.0) ** -0.53, (past + 3.0) ** -0.4
        q = np.zeros((R, H, X, A))
        first = np.zeros(R)
        entropy = -np.log(pi) * (1.0 if printed else pi)
        for i in range(R):
            soft = tau if i == 0 else 0.0
            value = np.zeros(X) if printed else (pi[-1] * soft * entropy[-1]).sum(-1)
            weight = H * (1.0 + soft * np.log(A)) if printed else 1.0
            for h in reversed(range(H)):
                cap = (1.0 + soft * np.log(A)) * (H - h)
                q[i, h] = np.minimum(reward[i] + weight * beta + estimate @ value, cap)
                value = (pi[h] * (q[i, h] + soft * entropy[h])).sum(-1)
            first[i] = value[problem.start]
        total = q[0] + np.tensordot(lam, q[1:], axes=1)
        logits = (1.0 - eta * tau) * np.log(pi) + eta * total
        pi = np.exp(logits - logits.max(-1, keepdims=True))
        pi /= pi.sum(-1, keepdims=True)
        if not printed:
            first = (pi[0, problem.start] * q[:, 0, problem.start]).sum(-1)
        cap = H / slack * (1.0 + tau * np.log(A)) if printed else np.inf
        lam = np.clip(lam + eta * (problem.threshold - first[1:] - tau * lam), 0.0, cap)
    return found


@pytest.mark.parametrize("rewards", ["known", "bernoulli"])
@pytest.mark.parametrize("preset", ["printed", "released"])
@pytest.mark.parametrize("name", ["media-streaming", "three-state", "random"])
def test_pooled_counts_are_those_of_an_independent_implementation(name, preset, rewards):
    problem = random_problem(6, 3, 5, 2, stationary=True) if name == "random" else make(name)
    if not np.allclose(problem.reward, problem.reward[:, :1]):
        pytest.fail("the independent implementation has stationary rewards")
    row = pooled(algorithm("UOpt-RPGPD", preset))
    task = told(row, problem, rewards)
    observed, episodes = rewards == "bernoulli", 60
    expected = independent(problem, episodes, 5, preset == "printed", observed, task.slater_gap)
    for engine in ("host", "cpu"):
        run = session(engine, problem, row, task, 5)
        for policy, multiplier in expected:
            state = run.state()
            np.testing.assert_allclose(state.policy, policy, rtol=0, atol=1e-12)
            np.testing.assert_allclose(state.multiplier, multiplier, rtol=0, atol=1e-12)
            run.play(1)


def test_the_box_of_a_pooled_plan_is_the_empirical_bernstein_box():
    problem = make("media-streaming")
    row = pooled(algorithm("OptCMDP", "printed"))
    task = told(row, problem)
    run = session("cpu", problem, row, task, 2)
    run.play(100)
    state = run.state()
    box, signal = PlainPlanner(row, task).model(state)
    n = state.counts[0].sum(-1, keepdims=True)
    p = np.where(n > 0, state.counts[0] / np.maximum(n, 1.0), 0.1)
    spread = np.log(4 * 10**2 * 2 * 10 * 100_000 / 0.1) / np.maximum(n, 1.0)
    beta = np.minimum(1.0, 1e-2 * (2 * np.sqrt(p * (1 - p) * spread) + 14 / 3 * spread))
    beta = np.where(n > 0, beta, 1.0)
    for h in range(problem.horizon):
        np.testing.assert_allclose(box.lower[h], np.clip(p - beta, 0, 1), rtol=0, atol=1e-12)
        np.testing.assert_allclose(box.upper[h], np.clip(p + beta, 0, 1), rtol=0, atol=1e-12)
    best = extended_value(box.lower, box.upper, signal, problem.threshold, problem.start)
    assert state.promised[0] == pytest.approx(best, abs=1e-7)


# Facts


@EVERY
def test_a_pooled_row_keeps_the_contract(key):
    problem = random_problem(5, 3, 4, 1, closed=0.2, stationary=True, concentration=0.05)
    check_learner(pooled(POOLS[key]), problem, episodes=20)


@EVERY
@pytest.mark.parametrize("rewards", ["known", "bernoulli"])
def test_with_one_step_pooling_changes_no_bit(key, rewards):
    problem = random_problem(5, 3, 1, 1, stationary=True)
    runs = [
        session("cpu", problem, row, told(row, problem, rewards), 0)
        for row in (POOLS[key], pooled(POOLS[key]))
    ]
    ours, theirs = (run.play(150) for run in runs)
    np.testing.assert_array_equal(ours.returns, theirs.returns)
    for a, b in zip(*(run.state() for run in runs), strict=True):
        np.testing.assert_array_equal(a, b)


def test_all_steps_are_counted_together_and_policies_differ_between_steps():
    problem = make("media-streaming")
    row = pooled(algorithm("UOpt-RPGPD"))
    run = session("cpu", problem, row, told(row, problem, "bernoulli"), 0)
    run.play(50)
    state = run.state()
    assert state.counts.shape == (1, 10, 2, 10)
    assert state.reward_sums.shape == (2, 1, 10, 2)
    assert state.counts.sum() == 50 * problem.horizon
    assert np.abs(state.policy[0] - state.policy[-1]).max() > 0.0


def test_a_state_of_the_other_kind_is_refused():
    problem = make("media-streaming")
    row = algorithm("UOpt-RPGPD")
    state = session("cpu", problem, row, told(row, problem), 0).state()
    with pytest.raises(InputError, match=r"counts of 10 steps, and UOpt-RPGPD \(released\) of 1"):
        session("cpu", problem, pooled(row), told(pooled(row), problem), 0, state)


def test_steps_that_differ_are_refused():
    row = pooled(algorithm("UOpt-RPGPD"))
    with pytest.raises(InputError, match="counts all steps together, and the transitions of"):
        told(row, random_problem(4, 3, 3, 1))


def test_who_estimates_values_has_no_dynamics():
    with pytest.raises(InputError, match="Triple-Q has no dynamics: it estimates the values of"):
        algorithm("Triple-Q").with_settings(dynamics="stationary")


def test_a_preset_that_pools_by_itself_is_not_asked():
    for name in ("OptCMDP", "DOPE"):
        released = algorithm(name, "released")
        assert released.pooled
        assert STATIONARY in released.needs
        assert not released.reads("dynamics")


def test_only_stationary_dynamics_leave_a_trace_in_a_record():
    problem = random_problem(3, 2, 2, 1, stationary=True)
    row = algorithm("UOpt-RPGPD")
    same = row.with_settings(dynamics="per-step")
    names = [RunSettings.of(problem, each, 100, 0).folder for each in (row, same, pooled(row))]
    assert names[0] == names[1] != names[2]
    written = RunSettings.of(problem, pooled(row), 100, 0)
    assert written.model_dump()["dynamics"] == "stationary"
    assert written.row() == pooled(row)
    assert "dynamics" not in RunSettings.of(problem, row, 100, 0).model_dump()


def test_the_card_counts_each_step_by_itself():
    problem = random_problem(3, 2, 2, 1, stationary=True)
    row = pooled(algorithm("UOpt-RPGPD"))
    with pytest.raises(InputError, match="the engine gpu counts each step by itself"):
        check_row(row, told(row, problem))


def test_what_is_proved_per_step_is_not_claimed_pooled():
    row = algorithm("OptCMDP", "printed").with_settings(bonus_scale=1.0)
    assert row.heuristic == ""
    assert "what is proved is about counts of each step" in pooled(row).heuristic
