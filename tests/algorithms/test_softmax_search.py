"""Facts about the softmax-search family: OPSE, and Ghosh, Zhou and Shroff."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from conftest import largest_utility, random_problem
from oracles import session
from oracles.softmax_search import PlainSoftmaxSearch

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.families.planner import REPLANS
from cmdplab.algorithms.families.softmax_search import GROWTH, Constants, next_multiplier
from cmdplab.algorithms.ghosh import GHOSH, GHOSH_RELEASED
from cmdplab.algorithms.opse import OPSE, OPSE_RELEASED, tabular
from cmdplab.algorithms.running.session import CpuSession
from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import live_session
from cmdplab.engines.host import HostSession
from cmdplab.environments import make
from cmdplab.errors import InputError
from cmdplab.experiments.run import run
from cmdplab.numerics.noise import uniforms
from cmdplab.solvers import solve, solve_feasible

ROWS = (OPSE, OPSE_RELEASED, GHOSH, GHOSH_RELEASED)
EACH = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.preset}")
LARGE = 1e14  # visits that make an estimate exact


def without_widths(temperature=0.05, largest=200.0):
    """Constants that leave an exact model as it is."""
    return lambda s, bonus, margin: Constants(0.0, 0.0, 0.0, 0.0, temperature, largest)


def told(row, problem, **choices):
    return task_for(row, problem, solve_feasible(problem), **choices)


def exactly(row, problem, **changes):
    """A plain learner, and counts with which its estimate is the kernel."""
    row = replace(row, constants=without_widths(), **changes)
    return PlainSoftmaxSearch(row, told(row, problem)), LARGE * problem.table


def value(problem, reward, policy):
    """[H + 1, X], V^pi of any reward [H, X, A], by the definition."""
    V = np.zeros((problem.horizon + 1, problem.states))
    for h in reversed(range(problem.horizon)):
        V[h] = np.sum(policy[h] * (reward[h] + problem.table[h] @ V[h + 1]), axis=-1)
    return V


def with_threshold(problem, b):
    return CMDP(problem.transition, problem.reward, [b], problem.start)


def demanding(X, A, H, seed):
    """A random problem whose constraint binds."""
    problem = random_problem(X, A, H, 1, seed=seed)
    return with_threshold(problem, 0.9 * largest_utility(problem))


def counted(problem, episodes, seed=0):
    """Counts of episodes of the uniform policy."""
    uniform = np.full(problem.reward.shape[1:], 1.0 / problem.actions)
    counts, rng = np.zeros(problem.table.shape), np.random.default_rng(seed)
    for _ in range(episodes):
        x = problem.start
        for h in range(problem.horizon):
            a = rng.choice(problem.actions, p=uniform[h, x])
            y = rng.choice(problem.states, p=problem.table[h, x, a])
            counts[h, x, a, y] += 1
            x = y
    return counts


# Constants


def test_the_constants_of_the_tabular_case_at_the_size_of_streaming():
    s = Setting(6, 2, 4, 1, 10_000, 0.1, 1.6, 1.6)
    c = tabular(s, 1.0, 1.0)
    found = (c.utility_width, c.compensation, c.compensation_width, c.largest)
    assert found == pytest.approx((16.5, 165, 2724, 1.33e4), rel=5e-3)
    assert c.temperature == pytest.approx(3.0e-5, rel=2e-2)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-6])
def test_the_temperature_and_the_largest_multiplier_keep_both_lemmas_with_equality(scale):
    s = Setting(3, 5, 2, 1, 1000, 0.1, 1.5, 1.5)
    c = tabular(s, 1.0, scale)
    H_k = s.H * (1.0 + c.temperature * math.log(s.A))
    assert c.compensation == pytest.approx(4 * c.utility_width * s.H / 1.5)
    assert c.temperature == pytest.approx(1.5**2 / (32 * H_k**2 * (c.compensation + 1)))
    assert c.largest == pytest.approx(8 * H_k**2 * (c.compensation + 1) / 1.5)


def test_weissman_holds_for_the_widths_at_scale_one():
    # |(Phat - P) V| <= f(M) beta for every V in [0, M], at all pairs, in 200 draws of the counts.
    problem = random_problem(5, 3, 3, 1)
    s = OPSE.setting(told(OPSE, problem))
    f = tabular(s, 1.0, 1.0).utility_width  # f(H)
    worst = 0.0
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 7, 50, 1000) * 33:
        counts = rng.multinomial(n, problem.table)
        off = counts / (n + 1.0) - problem.table
        extreme = np.maximum(off.clip(0).sum(-1), (-off).clip(0).sum(-1)) * problem.horizon
        worst = max(worst, float(np.max(extreme * math.sqrt(n + 1.0))))
    assert 0.1 * f < worst <= f


def test_counts_are_ridge_regression_with_one_hot_features():
    problem = random_problem(4, 3, 3, 1)
    counts, learner = counted(problem, 60), PlainSoftmaxSearch(OPSE, told(OPSE, problem))
    h, X, A = 1, 4, 3
    phi = np.eye(X * A)
    gram = np.eye(X * A) + np.diag(counts[h].sum(-1).ravel())
    inverse = np.linalg.inv(gram)
    beta = np.sqrt(np.einsum("id,de,ie->i", phi, inverse, phi)).reshape(X, A)
    estimate = (phi @ inverse @ counts[h].reshape(X * A, X)).reshape(X, A, X)
    found = learner.evaluate(counts, 1.0)
    n = learner.numbers
    ahead = estimate @ found.utility[h + 1]
    level = problem.horizon - 1 - h
    Q = problem.reward[1, h] + np.clip(n.utility_width * beta + ahead, 0.0, level)
    np.testing.assert_allclose(np.sum(found.policy[h] * Q, -1), found.utility[h], atol=1e-12)


# An exact model


@pytest.mark.parametrize("weighting", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_on_an_exact_model_utility_grows_with_the_multiplier(seed, weighting):
    problem = random_problem(4, 3, 3, 1, seed=seed)
    learner, counts = exactly(OPSE, problem, weighting=weighting)
    found = [learner.evaluate(counts, lam) for lam in (0.0, 0.1, 0.3, 0.7, 1.0, 2.0, 5.0, 50.0)]
    utility = [learner.utility_of(each) for each in found]
    for each, u in zip(found, utility, strict=True):
        assert u == pytest.approx(exact.returns(problem, each.policy)[1], abs=1e-9)
    assert np.all(np.diff(utility) >= -1e-9)
    assert utility[-1] > utility[0] + 0.01


@pytest.mark.parametrize("seed", range(6))
def test_on_an_exact_model_the_search_is_optimal_but_for_the_entropy(seed):
    problem = demanding(4, 3, 3, seed)
    solution = solve(problem)
    assert solution.multiplier[0] > 1e-3
    learner, counts = exactly(OPSE, problem, bisections=60)
    state = learner.search(learner.init()._replace(counts=counts))
    reward, utility = exact.returns(problem, state.policy)
    kappa = 1.0 / learner.numbers.sharpness
    entropy = kappa * problem.horizon * math.log(problem.actions)
    assert solution.value - entropy <= reward <= solution.value + 1e-9
    assert 0.0 <= utility - problem.threshold[0] + 1e-9 <= 1e-6


def test_on_an_exact_model_ghosh_is_opse_without_entropy():
    problem = random_problem(4, 3, 3, 1)
    ours, counts = exactly(OPSE, problem, entropy=0.0, loose=1.0)
    theirs, _ = exactly(GHOSH, problem)
    for lam in (0.0, 0.4, 3.0):
        a, b = ours.evaluate(counts, lam), theirs.evaluate(counts, lam)
        np.testing.assert_allclose(a.policy, b.policy, atol=1e-9)
        np.testing.assert_allclose(a.utility, b.utility, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_bisection_finds_what_the_scan_of_the_paper_would(seed):
    problem = demanding(3, 2, 3, seed)
    row = replace(GHOSH, constants=without_widths(0.1, 4.0))
    learner, counts, eta = PlainSoftmaxSearch(row, told(row, problem)), LARGE * problem.table, 0.01
    scan = 0.0
    while learner.utility_of(learner.evaluate(counts, scan)) < problem.threshold[0] and scan < 4.0:
        scan += eta
    state = learner.search(learner.init()._replace(counts=counts))
    assert scan > 0.0
    assert scan - eta <= state.multiplier[0] <= scan


# Estimated models


@pytest.mark.parametrize("episodes", [0, 5, 300, 3000])
def test_at_scale_one_opse_sandwiches_the_true_values(episodes):
    problem = random_problem(3, 2, 3, 1)
    learner = PlainSoftmaxSearch(OPSE, told(OPSE, problem))
    n, counts = learner.numbers, counted(problem, episodes)
    beta = 1.0 / np.sqrt(counts.sum(-1) + 1.0)
    r, u = problem.reward
    safe = learner.task.baseline.policy
    for lam, policy in ((0.0, None), (2.0, None), (n.largest, None), (0.0, safe)):
        found = learner.evaluate(counts, lam, policy)
        pi = found.policy
        log_pi = np.log(pi, where=pi > 0.0, out=np.zeros_like(pi))
        soft = -n.entropy * log_pi
        lower = value(problem, u + 2.0 * n.utility_width * beta, pi)
        upper = value(problem, r + soft + 2.0 * n.reward_width * beta, pi)
        assert np.all(lower - 1e-9 <= found.utility)
        assert np.all(found.utility <= value(problem, u, pi) + 1e-9)
        assert np.all(value(problem, r + soft, pi) <= found.reward + 1e-9)
        assert np.all(found.reward <= upper + 1e-9)


@pytest.mark.parametrize("episodes", [0, 5, 300])
def test_at_scale_one_ghosh_is_optimistic_about_both(episodes):
    problem = random_problem(3, 2, 3, 1)
    learner = PlainSoftmaxSearch(GHOSH, told(GHOSH, problem))
    counts = counted(problem, episodes)
    for lam in (0.0, 1.0, learner.numbers.largest):
        found = learner.evaluate(counts, lam)
        for optimistic, reward in zip((found.reward, found.utility), problem.reward, strict=True):
            assert np.all(optimistic >= value(problem, reward, found.policy) - 1e-9)


@EACH
def test_values_stay_between_zero_and_what_can_be_earned(row):
    problem = random_problem(5, 3, 4, 1)
    learner, counts = PlainSoftmaxSearch(row, told(row, problem)), counted(problem, 30)
    left = np.arange(problem.horizon, -1, -1)[:, None]
    found = learner.evaluate(counts, 1.0)
    assert np.all((found.utility >= 0.0) & (found.utility <= left + row.loose * (left > 0)))
    most = learner.numbers.reward_unit * left + learner.numbers.terminal_value
    assert np.all((found.reward >= 0.0) & (found.reward <= most + row.loose * 1.2))


# The search


class Counting(PlainSoftmaxSearch):
    """Notes the multipliers of its passes."""

    @cached_property
    def passes(self):
        return []

    def evaluate(self, counts, lam, policy=None):
        self.passes.append(lam)
        return super().evaluate(counts, lam, policy)


@EACH
def test_an_episode_takes_at_most_25_passes(row):
    problem = make("opse-streaming")
    # Narrow widths, so that a search has something to find between its two ends.
    row = row.with_settings(bonus_scale=1e-4 * row.bonus_scale)
    row = row.with_settings(margin_scale=1e-4) if row.has_margin else row
    learner = Counting(row, told(row, problem))
    state, most = learner.init(), 0
    host = HostSession(problem, learner, 0, state)
    for _ in range(40):
        learner.passes.clear()
        host.play(1)
        most = max(most, len(learner.passes))
    assert most <= (25 if row.tested else 21)
    assert most >= 20


def test_without_a_demand_opse_never_searches_and_never_plays_safe():
    problem = with_threshold(make("opse-streaming"), 0.0)
    played = session("cpu", problem, OPSE, told(OPSE, problem), 0)
    assert np.all(played.play(300).multiplier == 0.0)
    assert played.state().baseline_episodes == 0
    learner = Counting(OPSE, told(OPSE, problem))
    HostSession(problem, learner, 0).play(3)
    assert set(learner.passes) == {learner.numbers.largest, 0.0}


@pytest.mark.parametrize("row", [GHOSH, GHOSH_RELEASED], ids=lambda row: row.preset)
def test_without_a_demand_ghosh_has_no_multiplier(row):
    problem = with_threshold(make("opse-streaming"), 0.0)
    found = session("cpu", problem, row, told(row, problem), 0).play(200).multiplier[1:]
    assert np.all(found == (0.0 if row.tested else 300.0 / 2**20))


def test_a_demand_that_nobody_can_meet_leaves_the_safe_policy():
    problem = make("opse-streaming")
    task = told(OPSE_RELEASED, problem)._replace(threshold=np.array([4.5]))
    for row in (OPSE_RELEASED, replace(OPSE_RELEASED, tested=True)):
        played = CpuSession(problem, row, task, 0)
        assert played.play(200).returns[:, 1] == pytest.approx(np.full(200, 4.0))
        assert played.state().baseline_episodes == 200


def test_only_a_policy_that_passed_the_test_is_played():
    problem = make("opse-tabular", 2)
    for row in (OPSE, OPSE_RELEASED):
        row = replace(row, bonus_scale=0.02, margin_scale=0.02)
        learner = PlainSoftmaxSearch(row, told(row, problem))
        host = HostSession(problem, learner, 1)
        searched = 0
        for _ in range(30):
            host.play(1)
            state: Any = host.state()
            if not state.on_baseline:
                again = learner.evaluate(state.counts, float(state.multiplier[0]))
                np.testing.assert_array_equal(again.policy, state.policy)
                assert learner.utility_of(again) >= problem.threshold[0]
                searched += 1
        assert searched > 10


def test_a_search_near_the_last_multiplier_is_as_fine_as_fifty_bisections():
    # C_lam is 5e4 and kappa 4e-6: plain bisection with 23 halvings cannot mix two actions.
    problem = make("opse-streaming")
    gap = {}
    for name, changes in (
        ("near", {}),
        ("plain", {"near": 0.0}),
        ("fine", {"near": 0.0, "bisections": 50}),
    ):
        row = replace(OPSE, **changes)
        returns = session("cpu", problem, row, told(row, problem), 0).play(20_000).returns
        gap[name] = 1.900171875 - returns[-4000:, 0].mean()
        assert returns[:, 1].min() >= problem.threshold[0]
    assert gap["near"] == pytest.approx(gap["fine"], abs=0.05)
    assert gap["plain"] > gap["fine"] + 0.1


@pytest.mark.parametrize("last", [1e-5, 0.3, 1.0, 7.77, 3999.0])
def test_a_search_from_anywhere_encloses_the_smallest_multiplier(last):
    # U(lam) >= b from lam = 1 on, whatever the start: a step, as softmax makes it.
    low, high, lam, reach = 0.0, 4000.0, last, last * 2.0**-10
    for _ in range(23):
        passed = lam >= 1.0
        low, high = (low, lam) if passed else (lam, high)
        lam, reach = next_multiplier(low, high, reach, passed), reach * GROWTH
        assert low < lam < high
    assert low < 1.0 <= high
    assert high - low <= 4000.0 * 2.0**-12


def test_a_bandit_of_one_step_is_left_at_once():
    # H = 1: no transition counts, so nothing is unknown and the safe policy is never needed.
    reward = np.array([[[[1.0, 0.0]]], [[[0.0, 1.0]]]])
    problem = CMDP(np.ones((1, 1, 2, 1)), reward, [0.5], 0)
    played = session("cpu", problem, OPSE, told(OPSE, problem), 0)
    returns = played.play(50).returns
    assert played.state().baseline_episodes == 0
    assert np.all(returns[:, 1] >= 0.5)


# Runs


def two_by_two():
    """X = A = H = 2: staying pays, leaving is useful."""
    kernel = np.zeros((2, 2, 2))
    kernel[:, 0], kernel[:, 1] = [0.8, 0.2], [0.3, 0.7]
    reward = np.zeros((2, 2, 2, 2))
    reward[0, :, 0], reward[1, :, 1] = 1.0, 1.0
    return CMDP(kernel, reward, [0.4], 0)


@pytest.mark.parametrize("seed", range(10))
def test_at_scale_one_no_episode_violates_and_the_safe_policy_is_left(seed):
    problem = two_by_two()
    assert solve(problem).multiplier[0] > 0.1
    row = OPSE.with_settings(tuned_for=20_000)
    played = session("cpu", problem, row, told(row, problem), seed)
    returns = played.play(20_000).returns
    assert returns[:, 1].min() >= problem.threshold[0]
    assert 0 < played.state().baseline_episodes < 20_000


def test_a_policy_that_is_kept_until_visits_double_is_as_safe():
    problem = two_by_two()
    row = OPSE.with_settings(tuned_for=20_000, replan="doubling")
    played = session("cpu", problem, row, told(row, problem), 0)
    returns = played.play(20_000).returns
    assert returns[:, 1].min() >= problem.threshold[0]
    pairs = problem.horizon * problem.states * problem.actions
    changes = np.count_nonzero(np.any(np.diff(returns, axis=0) != 0.0, axis=1))
    assert 1 <= changes <= pairs * np.log2(2 * 20_000)
    state = played.state()
    assert np.all(state.counts.sum(axis=-1) < np.maximum(2.0 * state.planned, 1.0))


def test_on_streaming_the_release_is_safe_and_ghosh_is_not():
    problem, solution = make("opse-streaming"), solve(make("opse-streaming"))
    curves = {}
    for row in (OPSE_RELEASED, GHOSH_RELEASED):
        played = session("cpu", problem, row, told(row, problem), 0)
        returns = played.play(10_000).returns
        short = np.maximum(problem.threshold[0] - returns[:, 1], 0.0)
        curves[row.name] = np.cumsum(short), np.cumsum(solution.value - returns[:, 0])
        if row is OPSE_RELEASED:
            after = played.state().baseline_episodes
    assert curves["OPSE"][0][-1] == 0.0
    assert np.all(np.diff(curves["Ghosh-Zhou-Shroff"][0][[999, 2999, 9999]]) > 10.0)
    assert curves["OPSE"][1][-1] > curves["Ghosh-Zhou-Shroff"][1][-1]
    assert 10 < after < 100


def test_the_release_plays_safe_ever_more_rarely():
    problem = make("opse-streaming")
    played = session("cpu", problem, OPSE_RELEASED, told(OPSE_RELEASED, problem), 1)
    counts = []
    for episodes in (100, 900, 9000):
        played.play(episodes)
        counts.append(played.state().baseline_episodes)
    assert 10 < counts[0] <= counts[1] <= counts[2] < counts[0] + 60


@pytest.mark.parametrize("replan", REPLANS)
@EACH
def test_engines_agree_to_the_last_bit(row, replan):
    problem = make("opse-tabular", 2)
    for scale in (1.0, 0.01):
        scaled = row.with_settings(bonus_scale=scale, margin_scale=scale, replan=replan)
        cpu, host = (
            session(each, problem, scaled, told(row, problem), 3) for each in ("cpu", "host")
        )
        ours, theirs = cpu.play(40), host.play(40)
        np.testing.assert_allclose(ours.returns, theirs.returns, atol=1e-13)
        np.testing.assert_array_equal(ours.multiplier, theirs.multiplier)
        for a, b in zip(cpu.state(), host.state(), strict=True):
            np.testing.assert_array_equal(a, b)


@EACH
def test_learning_live_is_learning_in_the_engine(row):
    problem = make("opse-tabular", 2)
    task = told(row, problem)
    played, live = session("cpu", problem, row, task, 5), live_session(row, task)
    for noise in uniforms(5, 1, 30, problem.horizon):
        np.testing.assert_array_equal(live.policy(), played.state().policy)
        states, actions = [problem.start], []
        for h, (to_act, to_move) in enumerate(noise):
            actions.append(live.act(h, states[-1], to_act))
            sums = np.cumsum(problem.table[h, states[-1], actions[-1]])
            states.append(int(np.searchsorted(sums, to_move, side="right")))
        live.observe(states, actions)
        played.play(1)
    for a, b in zip(live.state(), played.state(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_lists_of_what_was_seen_teach_what_a_table_teaches():
    problem = random_problem(40, 3, 3, 1, concentration=0.02, closed=0.2)
    task = told(GHOSH_RELEASED, problem)
    live = live_session(GHOSH_RELEASED, task)  # so many states are kept as lists that grow
    known = task._replace(support=np.ones((40, 3, 40), bool))
    table = live_session(GHOSH_RELEASED, known)
    rng = np.random.default_rng(0)
    for _ in range(40):
        states, actions = [problem.start], []
        for h in range(problem.horizon):
            actions.append(int(rng.choice(np.flatnonzero(problem.opened[h, states[-1]]))))
            states.append(int(rng.choice(40, p=problem.table[h, states[-1], actions[-1]])))
        live.observe(states, actions)
        table.observe(states, actions)
    assert live.state().counts.ndim == 2
    np.testing.assert_allclose(live.policy(), table.policy(), atol=1e-9)
    assert not np.array_equal(live.policy(), task.baseline.policy)
    assert live.state().multiplier == pytest.approx(table.state().multiplier, abs=1e-9)


# Refusals


@EACH
def test_a_second_constraint_is_refused_with_the_reason(row):
    with pytest.raises(
        InputError, match=r"one multiplier for one constraint.* has 2: how to search"
    ):
        told(row, random_problem(3, 2, 3, 2))


@EACH
def test_a_problem_without_constraint_is_refused(row):
    with pytest.raises(InputError, match="needs a constraint"):
        told(row, random_problem(3, 2, 3, 0))


@EACH
def test_rewards_that_are_only_observed_are_refused(row):
    with pytest.raises(InputError, match="has to know the rewards, as in its paper"):
        told(row, random_problem(3, 2, 3, 1), rewards="bernoulli")


def test_a_safe_policy_that_is_not_safe_is_refused():
    problem = make("opse-streaming")
    fast = np.zeros((4, 6, 2))
    fast[..., 0] = 1.0
    with pytest.raises(InputError, match="the baseline is not safe: its utility 1 is 0"):
        task_for(OPSE, problem, solve(problem), fast)


def test_no_slack_is_refused():
    problem = with_threshold(make("opse-streaming"), 4.0)
    with pytest.raises(InputError, match="safe policy, and there is no slack"):
        run(problem, OPSE, 10)
    task = told(OPSE, make("opse-streaming"))._replace(threshold=np.array([4.0]))
    with pytest.raises(InputError, match="baseline that exceeds every threshold"):
        session("cpu", problem, OPSE, task, 0)


def test_names_that_papers_use_are_found():
    assert algorithm("OPSE-LCMDP").name == "OPSE"
    assert algorithm("ghosh", "printed") is GHOSH
    assert algorithm("opse").preset == "released"


def test_a_state_of_another_problem_is_not_taken():
    task = told(OPSE, make("opse-streaming"))
    assert isinstance(task, Task)
    state = PlainSoftmaxSearch(OPSE, task).init()
    with pytest.raises(InputError, match="counts of 2 steps"):
        session(
            "cpu", make("opse-streaming"), OPSE, task, 0, state._replace(counts=state.counts[:2])
        )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("five-by-five-3",), "searches one multiplier for one constraint"),
        (("opse-streaming", "--rewards", "bernoulli"), "has to know the rewards"),
    ],
    ids=str,
)
def test_commands_refuse_in_one_sentence(call, arguments, sentence):
    code, _, err = call("run", *arguments, "--algorithm", "OPSE", "--episodes", "5")
    assert code == 2
    assert sentence in " ".join(err.split())
    assert len(err.strip().splitlines()) <= 3
