"""Facts about rewards that are only observed, and about episodes that come from outside."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import dense_signatures, random_problem
from guarantees import small
from oracles import plain, session
from pairwise import crossed

from cmdplab.algorithms import ALGORITHMS, algorithm, equations as eq
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.families import planner, primal_dual, triple_q
from cmdplab.algorithms.families.planner import Planner
from cmdplab.algorithms.families.triple_q import TripleQ, width
from cmdplab.algorithms.row import (
    IN_PAPER,
    ONE_CONSTRAINT,
    OUR_EXTENSION,
    REFUSED,
    SAID_TO_EXTEND,
    STATIONARY,
    Row,
)
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import live_session
from cmdplab.environments import make
from cmdplab.errors import InputError
from cmdplab.experiments.experiment import parse_experiment, resolve
from cmdplab.experiments.play import Entry, Playing
from cmdplab.experiments.run import run
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.numerics.noise import reward_uniforms, uniforms
from cmdplab.solvers import solve, solve_feasible

NAMES = {"ids": lambda row: f"{row.name}-{row.preset}"}
ROWS = pytest.mark.parametrize("row", ALGORITHMS.values(), **NAMES)
OBSERVING = [row for row in ALGORITHMS.values() if row.unknown_rewards != REFUSED]
OBSERVERS = pytest.mark.parametrize("row", OBSERVING, **NAMES)
MODEL_BASED = [row for row in OBSERVING if not isinstance(row, TripleQ)]


def prepared(row, shape=(4, 3, 3, 1), feedback="known"):
    X, A, H, N = shape
    N = min(N, 1) if ONE_CONSTRAINT in row.needs else N
    problem = random_problem(X, A, H, N, stationary=STATIONARY in row.needs)
    return problem, task_for(row, problem, solve_feasible(problem), rewards=feedback)


def assert_same(ours, theirs, tolerance=0.0):
    for name, a, b in zip(ours._fields, ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance, err_msg=name)


def played(problem, live, noise):
    """One episode of what a live session would play, with the noise [H, 2] of an engine."""
    states, actions = [problem.start], []
    for h, (to_act, to_move) in enumerate(noise):
        actions.append(live.act(h, states[-1], to_act))
        sums = np.cumsum(problem.table[h, states[-1], actions[-1]])
        states.append(int(np.searchsorted(sums, to_move, side="right")))
    return states, actions


def samples(problem, states, actions, reward_noise):
    """Bernoulli rewards [1 + N, H] of an episode, from uniforms [H, 1 + N]."""
    mean = problem.reward[:, np.arange(problem.horizon), states[:-1], actions]
    return 1.0 * (mean > reward_noise.T)


# Episodes from outside


@ROWS
@pytest.mark.parametrize("shape", [(4, 3, 3, 1), (9, 2, 3, 3)], ids=["small", "three constraints"])
def test_a_session_that_observes_is_to_the_last_bit_one_that_plays(row, shape):
    problem, task = prepared(row, shape)
    player, live = session("cpu", problem, row, task, 3), live_session(row, task)
    for noise in uniforms(3, 1, 80, problem.horizon):
        live.observe(*played(problem, live, noise))
    player.play(80)
    assert_same(player.state(), live.state())


@OBSERVERS
def test_the_same_holds_where_rewards_are_observed(row):
    problem, task = prepared(row, feedback="bernoulli")
    player, live = session("cpu", problem, row, task, 3), live_session(row, task)
    reward_noise = reward_uniforms(3, 1, 80, problem.horizon, 2)
    for noise, drawn in zip(uniforms(3, 1, 80, problem.horizon), reward_noise, strict=True):
        states, actions = played(problem, live, noise)
        live.observe(states, actions, samples(problem, states, actions, drawn))
    player.play(80)
    assert_same(player.state(), live.state())


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OptCMDP", "Triple-Q"])
def test_actions_follow_the_policy_and_the_policy_is_a_copy(name):
    row = algorithm(name)
    problem, task = prepared(row)
    cpu = session("cpu", problem, row, task, 0)
    cpu.play(50)
    policy = cpu.policy()
    np.testing.assert_array_equal(policy, plain(row, task).policy(cpu.state()))
    edges = (np.arange(200) + 0.5) / 200
    for h, x in np.ndindex(problem.horizon, problem.states):
        taken = np.bincount([cpu.act(h, x, u) for u in edges], minlength=problem.actions)
        np.testing.assert_allclose(taken / 200, policy[h, x], atol=1 / 200)
    policy[:] = 0.0
    assert cpu.policy().sum() == pytest.approx(problem.horizon * problem.states)


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OptCMDP", "Triple-Q"])
def test_a_live_session_goes_on_from_its_state(name):
    row = algorithm(name)
    problem, task = prepared(row)
    whole = live_session(row, task)
    begun = live_session(row, task)
    for k, noise in enumerate(uniforms(0, 1, 20, problem.horizon)):
        begun = live_session(row, task, begun.state()) if k == 7 else begun
        for each in (whole, begun):
            each.observe(*played(problem, each, noise))
    assert_same(whole.state(), begun.state())


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OptCMDP", "Triple-Q"])
def test_without_a_problem_nothing_can_be_played(name):
    row = algorithm(name)
    _, task = prepared(row)
    with pytest.raises(InputError, match="without a problem cannot play"):
        live_session(row, task).play(1)


@pytest.mark.parametrize(
    ("states", "actions", "sentence"),
    [
        ([0, 1, 2], [0, 0, 0], "states must be 4 whole numbers"),
        ([0, 1, 2, 4], [0, 0, 0], r"states\[3\] is 4, outside 0 to 3"),
        ([0, 1, 2, 3], [0, -1, 0], r"actions\[1\] is -1, outside 0 to 2"),
        ([0, 1, 2, 3], [0.0, 1.0, 0.0], "actions must be 3 whole numbers"),
        ([1, 1, 2, 3], [0, 0, 0], r"states\[0\] is 1, but episodes start in state 0"),
        ([0, 1, 2, 3], [0, 0, 1], "action 1 is closed in state 2 at step 2"),
    ],
)
def test_an_episode_that_cannot_be_is_refused_and_changes_nothing(states, actions, sentence):
    mask = np.ones((3, 4, 3), bool)
    mask[2, 2, 1] = False
    task = Task(np.zeros((2, 3, 4, 3)), np.zeros(1), 0, 1.0, mask=mask)
    live = live_session(algorithm("UOpt-RPGPD"), task)
    with pytest.raises(InputError, match=sentence):
        live.observe(states, actions)
    assert live.state().episode == 0
    with pytest.raises(InputError, match="step 3 is outside 0 to 2"):
        live.act(3, 0, 0.5)
    with pytest.raises(InputError, match="state 4 is outside 0 to 3"):
        live.act(0, 4, 0.5)


@pytest.mark.parametrize(
    ("rewards", "sentence"),
    [
        (None, "give their samples"),
        (np.zeros((1, 3)), r"shape \(1, 3\), not \(2, 3\)"),
        (np.full((2, 3), 1.5), r"rewards\[0, 0\] is 1.5, outside 0 to 1"),
        (np.array([[0, 0, 0], [0, np.nan, 0]]), r"rewards\[1, 1\] is nan"),
    ],
)
def test_samples_that_cannot_be_are_refused(rewards, sentence):
    task = Task(np.zeros((2, 3, 4, 3)), np.zeros(1), 0, 1.0, feedback="bounded")
    for name in ("UOpt-RPGPD", "OptCMDP", "Triple-Q"):
        with pytest.raises(InputError, match=sentence):
            live_session(algorithm(name), task).observe([0, 1, 2, 3], [0, 0, 0], rewards)


# Rewards that are only observed


def test_samples_and_estimates_by_hand():
    assert eq.reward_sample(0.3, 0.29, 1.0) == 1.0
    assert eq.reward_sample(0.3, 0.3, 1.0) == 0.0
    assert eq.reward_sample(0.3, 0.9, 0.0) == 0.3
    assert eq.reward_estimate(3.0, 4.0, 0.1) == pytest.approx(0.85)
    assert eq.reward_estimate(3.0, 4.0, -0.1) == pytest.approx(0.65)
    assert eq.reward_estimate(3.0, 4.0, 0.3) == 1.0
    assert eq.reward_estimate(1.0, 4.0, -0.3) == 0.0
    assert (eq.reward_estimate(0.0, 0.0, 1e-9), eq.reward_estimate(0.0, 0.0, -1e-9)) == (1.0, 0.0)


def test_the_widths_are_hoeffding_s_or_the_radius_that_holds_for_all_n():
    problem = random_problem(4, 3, 3, 1)
    cmdp = replace(algorithm("OptCMDP"), bonus_scale=0.5)
    n = cmdp.numbers(Task.of(problem, 1.0))
    union = math.log(4 * 4**2 * 3 * 3 * cmdp.tuned_for / cmdp.delta)
    radius = eq.confidence_radius(10.0, 0.0, n.log, math.inf)
    assert n.objective_width * radius == pytest.approx(0.5 * math.sqrt(union / 20.0))
    assert n.utility_width == n.objective_width
    uopt = replace(algorithm("UOpt-RPGPD", "printed"), bonus_scale=0.5)
    assert uopt.numbers(Task.of(problem, 1.0)).reward_scale == 0.5
    naive = replace(algorithm("OptPrimalDual-CMDP", "printed"), bonus_scale=0.5)
    assert naive.numbers(Task.of(problem, 1.0)).reward_scale == pytest.approx(0.5 / math.sqrt(2.0))


EVERY_PAIR = crossed(  # of a row and a shape, a row and a feedback, a shape and a feedback
    OBSERVING,
    [(4, 3, 3, 1), (9, 2, 2, 3)],
    ["bernoulli", "bounded"],
    traits=lambda value: [(value.name, value.preset) if isinstance(value, Row) else value],
    ids=lambda value: f"{value.name}-{value.preset}" if isinstance(value, Row) else str(value),
)


@pytest.mark.parametrize(("row", "shape", "feedback"), EVERY_PAIR)
def test_engines_agree_where_rewards_are_observed(row, feedback, shape):
    problem, task = prepared(row, shape, feedback)
    cpu, host = (session(engine, problem, row, task, 5) for engine in ("cpu", "host"))
    assert_same(cpu.play(25), host.play(25), 1e-10)
    assert_same(cpu.state(), host.state(), 1e-10)


@pytest.mark.parametrize("row", [each for each in MODEL_BASED if each.preset == "printed"], **NAMES)
def test_engines_agree_on_observed_rewards_at_the_scale_of_the_theory(row):
    row = replace(row, bonus_scale=1.0, margin_scale=1.0)
    problem, task = prepared(row, feedback="bernoulli")
    cpu, host = (session(engine, problem, row, task, 5) for engine in ("cpu", "host"))
    assert_same(cpu.play(25), host.play(25), 1e-10)


@OBSERVERS
def test_neither_chunks_nor_a_resume_change_a_bit(row):
    problem, task = prepared(row, (9, 3, 4, 2), "bernoulli")
    whole, cut = (session("cpu", problem, row, task, 11) for _ in range(2))
    at_once = whole.play(200)
    pieces = [cut.play(size) for size in (1, 2, 97)]
    resumed = session("cpu", problem, row, task, 11, cut.state())
    pieces.append(resumed.play(100))
    for field in ("returns", "multiplier"):
        joined = np.concatenate([getattr(piece, field) for piece in pieces])
        np.testing.assert_array_equal(joined, getattr(at_once, field))
    assert_same(resumed.state(), whole.state())


@pytest.mark.parametrize("row", MODEL_BASED, **NAMES)
def test_a_learner_of_observed_rewards_never_reads_the_means(row):
    problem, task = prepared(row, feedback="bounded")
    blind = task._replace(reward=np.full_like(task.reward, 0.5))
    live = [live_session(row, each) for each in (task, blind)]
    rng = np.random.default_rng(0)
    for noise in uniforms(0, 1, 30, problem.horizon):
        states, actions = played(problem, live[0], noise)
        given = rng.random((2, problem.horizon))
        for each in live:
            each.observe(states, actions, given)
    assert_same(live[0].state(), live[1].state())


def test_triple_q_learns_the_sample_itself():
    row = algorithm("Triple-Q", "printed")
    task = Task(np.full((2, 1, 1, 1), 0.5), np.zeros(1), 0, 1.0, feedback="bounded")
    live = live_session(row, task)
    live.observe([0, 0], [0], np.array([[0.125], [0.75]]))
    n = row.numbers(task)
    bonus = width(n.objective_width, 1.0, n.width_shift)  # alpha_1 = 1: nothing else is left
    assert live.state().objective[0, 0, 0] == pytest.approx(0.125 + bonus)
    assert live.state().utility[0, 0, 0, 0] == pytest.approx(0.75 + bonus)


def test_samples_leave_the_roll_outs_alone_and_have_the_right_means():
    row = algorithm("UOpt-RPGPD", "printed")
    first = []
    for feedback in ("known", "bernoulli", "bounded"):
        problem, task = prepared(row, feedback=feedback)
        cpu = session("cpu", problem, row, task, 2)
        cpu.play(1)
        first.append(cpu.state())
    for each in first[1:]:
        np.testing.assert_array_equal(each.counts, first[0].counts)
    problem, task = prepared(row, feedback="bernoulli")
    cpu = session("cpu", problem, row, task, 2)
    cpu.play(20_000)
    state = cpu.state()
    assert np.all(state.reward_sums == np.rint(state.reward_sums))
    visits = state.counts.sum(axis=-1)
    often = visits > 500
    error = state.reward_sums[:, often] / visits[often] - problem.reward[:, often]
    assert np.abs(error * np.sqrt(visits[often])).max() < 2.5  # five standard deviations
    assert np.abs(error).max() > 1e-4


@pytest.mark.parametrize("row", MODEL_BASED, **NAMES)
def test_without_noise_the_estimates_are_the_means_and_a_width(row):
    row = replace(row, bonus_scale=1e-6, margin_scale=1e-6)
    problem, task = prepared(row, feedback="bounded")
    cpu = session("cpu", problem, row, task, 1)
    cpu.play(300)
    state, oracle = cpu.state(), plain(row, task)
    seen = np.broadcast_to(state.counts.sum(axis=-1) > 0.0, problem.reward.shape[1:])
    assert seen.sum() >= problem.horizon
    estimate = oracle.rewards(state)
    if row.name == "OPDOP":  # its estimates are lower, and an unseen pair is held at its cap
        visits = state.counts.sum(axis=-1)[seen]
        lower = problem.reward[:, seen] * visits / (visits + 1.0)
        np.testing.assert_allclose(estimate[:, seen], lower, atol=1e-12)
        return
    np.testing.assert_allclose(estimate[:, seen], problem.reward[:, seen], atol=2e-4)
    pessimistic = isinstance(row, Planner) and row.pessimistic
    assert np.all(estimate[0, ~seen] >= 1.0)
    assert np.all(estimate[1:, ~seen] == (0.0 if pessimistic else 1.0))


@pytest.mark.parametrize("engine", ["cpu", "host"])
def test_opdop_divides_sums_by_one_more_and_adds_two_bonuses_as_its_paper_does(engine):
    """At the last step: Q = min(sum / (n + 1) + 2 Gamma, 1), Gamma = scale beta / sqrt(n + 1)."""
    row = algorithm("OPDOP")
    problem, task = prepared(row, feedback="bernoulli")
    playing = session(engine, problem, row, task, 0)
    playing.play(40)
    before = playing.state()
    playing.play(1)
    after = playing.state()
    H, X, A = problem.reward.shape[1:]
    sums, n = after.reward_sums[:, -1], after.counts[-1].sum(axis=-1)
    beta = H * math.sqrt(X * math.log(X * A * H * row.tuned_for / row.delta))
    bound = sums / (n + 1) + 2 * row.bonus_scale * beta / np.sqrt(n + 1)
    q = np.where(n > 0, np.minimum(bound, 1.0), 1.0)
    step, theta = math.sqrt(math.log(A) / row.tuned_for) / H**2, 1 / row.tuned_for
    mixed = (1 - theta) * before.policy[-1] + theta / A
    logits = np.log(mixed) + step * (q[0] + before.multiplier[0] * q[1])
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(after.policy[-1], shares, rtol=0, atol=1e-12)
    assert np.ptp(after.policy[-1], axis=-1).max() > 1e-9


def outside(row, seed, scale):
    """Whether, at one of several times, a reward was beyond the end that should bound it."""
    row = replace(row, bonus_scale=scale, margin_scale=scale)
    problem, task = prepared(row, (3, 2, 2, 1), "bernoulli")
    cpu, oracle = session("cpu", problem, row, task, seed), plain(row, task)
    side = np.ones(len(problem.reward))
    if isinstance(row, Planner) and row.pessimistic:
        side[1:] = -1.0
    for _ in range(10):
        cpu.play(20)
        ends = oracle.rewards(cpu.state())
        if row.name == "OPDOP":  # one of its two bonuses is about the rewards
            ends = ends + 0.5 * oracle.model(cpu.state())[1]
        beyond = side[:, None, None, None] * (ends - problem.reward)
        if np.any(beyond < -1e-12):
            return True
    return False


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OptCMDP", "OPDOP", "DOPE", "OptPress-LP"])
@pytest.mark.slow
def test_at_scale_one_the_ends_bound_the_rewards_with_probability_one_minus_delta(name):
    row = algorithm(name, "printed")
    seeds = range(60)
    # delta = 0.1 of 60 is 6; more than 13 would have probability below 0.004 if it were as large.
    assert sum(outside(row, seed, 1.0) for seed in seeds) <= 13
    assert sum(outside(row, seed, 0.05) for seed in seeds) >= 30  # and the widths are not idle


def noisy_media_streaming() -> CMDP:
    """Media streaming with rewards 1/4 and 3/4 in place of 0 and 1, so that samples are noisy."""
    sharp = make("media-streaming")
    reward, threshold = 0.25 + 0.5 * sharp.reward, 0.25 * sharp.horizon + 0.5 * sharp.threshold
    return CMDP(sharp.transition, reward, threshold, sharp.start, horizon=sharp.horizon)


@pytest.mark.parametrize("problem", [make("media-streaming"), noisy_media_streaming()])
@pytest.mark.parametrize(("name", "worst"), [("UOpt-RPGPD", 0.1), ("OptCMDP", 0.15)])
@pytest.mark.slow
def test_learners_of_unknown_rewards_approach_the_optimum(problem, name, worst):
    row, solution = algorithm(name), solve(problem)
    ends = []
    for seed in range(3):
        end = run(problem, row, 30_000, seed, solution=solution, rewards="bernoulli").summary
        ends.append(max(abs(end.final_gap), end.final_violation))
    assert np.median(ends) < worst


@pytest.mark.parametrize("name", ["OptPress-LP", "DOPE"])
def test_safe_learners_of_unknown_rewards_leave_their_baseline_and_never_violate(name):
    problem = small()
    row = replace(algorithm(name, "printed"), bonus_scale=1.0, margin_scale=1.0)
    task = task_for(row, problem, solve(problem), rewards="bernoulli")
    cpu = session("cpu", problem, row, task, 0)
    assert np.all(cpu.play(100_000).returns[:, 1] >= problem.threshold[0] - 1e-9)
    assert cpu.state().baseline_episodes < 100_000


# What is kept, and how it is asked for


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OptCMDP", "Triple-Q"])
def test_a_snapshot_of_before_there_were_samples_goes_on(name):
    problem, row = random_problem(4, 3, 3, 1), algorithm(name)
    entry = Entry.of(problem, row, 0)
    whole = Playing(entry)
    whole.advance(40)
    old = {k: v for k, v in whole.reached().snapshot().items() if k != "state_reward_sums"}
    resumed = Playing(entry, snapshot=old)
    for each in (whole, resumed):
        each.advance(40)
    assert_same(whole.reached().state, resumed.reached().state)


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OptCMDP"])
def test_what_was_learnt_with_known_rewards_cannot_go_on_with_observed_ones(name):
    problem, row = random_problem(4, 3, 3, 1), algorithm(name)
    known, observed = (Entry.of(problem, row, 0, rewards=each) for each in ("known", "bernoulli"))
    kept = {}
    for entry in (known, observed):
        playing = Playing(entry)
        playing.advance(5)
        kept[entry.task.feedback] = playing.reached().snapshot()
    with pytest.raises(InputError, match="learnt with known rewards"):
        Playing(observed, snapshot=kept["known"])
    with pytest.raises(InputError, match="learnt with observed rewards"):
        Playing(known, snapshot=kept["bernoulli"])


def test_observed_rewards_compile_nothing_again():
    for name in ("UOpt-RPGPD", "OptCMDP", "Triple-Q"):
        row = algorithm(name)
        for feedback in ("known", "bernoulli", "bounded"):
            problem, task = prepared(row, feedback=feedback)
            session("cpu", problem, row, task, 0).play(2)
    for each in (primal_dual, planner, triple_q):
        assert len(dense_signatures(each.FAMILY.loops.play)) == 1


def test_an_unknown_kind_of_feedback_is_refused():
    with pytest.raises(InputError, match="choose one of known, bernoulli, bounded"):
        prepared(algorithm("OptCMDP"), feedback="gaussian")


def test_known_rewards_leave_no_trace_in_the_settings_of_a_run():
    given = {"problem": "p", "fingerprint": "0" * 32, "algorithm": "OptCMDP"}
    given |= {"preset": "printed", "episodes": 10, "seed": 0}
    known, observed = RunSettings(**given), RunSettings(**given, rewards="bernoulli")
    assert "rewards" not in known.model_dump()
    assert known.folder != observed.folder
    problem = random_problem(3, 2, 2, 1)
    whole = RunSettings.of(problem, algorithm("OptCMDP"), 10, 0, rewards="bernoulli")
    assert whole.rewards == "bernoulli"


def test_an_experiment_asks_for_observed_rewards_by_one_key():
    values = {"name": "e", "episodes": 5, "problems": [{"environment": "media-streaming"}]}
    values |= {"algorithms": [{"name": "OptCMDP"}, {"name": "Triple-Q"}]}
    found = {"0" * 32: make("media-streaming")}
    for rewards, kept in (("known", None), ("bernoulli", "bernoulli")):
        runs = resolve(parse_experiment(values | {"rewards": rewards}, "here"), found)
        assert [each.rewards for each in runs] == [kept, kept]
    with pytest.raises(InputError, match="here: rewards"):
        parse_experiment(values | {"rewards": "gaussian"}, "here")


def test_every_row_says_whether_its_paper_has_unknown_rewards():
    labels = {name: row.unknown_rewards for (name, _), row in ALGORITHMS.items()}
    assert labels["OPDOP"] == IN_PAPER
    assert set(labels.values()) == {IN_PAPER, SAID_TO_EXTEND, OUR_EXTENSION, REFUSED}
    assert labels["UOpt-RPGPD"] == SAID_TO_EXTEND
    assert labels["OptCMDP"] == labels["Triple-Q"] == labels["DOPE"] == IN_PAPER
    assert labels["FlexDOME"] == labels["Online-CRL"] == OUR_EXTENSION


def test_the_command_gives_the_same_run_in_memory_and_on_disk(call, tmp_path):
    asked = ("run", "media-streaming", "--episodes", "200", "--rewards", "bernoulli", "--json")
    code, out, _ = call(*asked)
    assert code == 0
    ours = run(make("media-streaming"), algorithm("UOpt-RPGPD"), 200, rewards="bernoulli")
    assert json.loads(out)["final_gap"] == ours.summary.final_gap
    told = run(make("media-streaming"), algorithm("UOpt-RPGPD"), 200)
    assert told.summary.final_gap != ours.summary.final_gap
    code, out, _ = call(*asked, "--out", tmp_path / "kept")
    assert code == 0
    assert str(ours.summary.final_gap) in out
