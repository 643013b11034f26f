"""A coin around a learner: what makes every mixture safe, against brute force and HiGHS."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from conftest import examples, in_one_process, problems, random_policy, random_problem
from hypothesis import example, given, strategies as st
from oracles import session
from scipy.optimize import linprog

import cmdplab
from cmdplab import CMDP, Safe, algorithm, solve
from cmdplab.algorithms import ALGORITHMS, as_row, written_name
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.custom import custom
from cmdplab.algorithms.families import safe
from cmdplab.algorithms.families.planner import Planner
from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.algorithms.families.safe import SafeFields, coin_share, mixed_value, parted, union_log
from cmdplab.algorithms.families.triple_q import TripleQ
from cmdplab.cmdp import exact
from cmdplab.cmdp.transitions import Sparse
from cmdplab.engines.families import live_session
from cmdplab.environments.random_cmdp import SHAPES
from cmdplab.errors import InputError
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.solvers import Box, policy_bounds, solve_feasible
from cmdplab.testing.contract import ContractError, check_learner

INSIDE = ("UOpt-RPGPD", "OptCMDP", "Triple-Q")
# Around a planner the compiled loop takes longest to compile: its plain learner is tested always.
COMPILED = [pytest.param(name, marks=[pytest.mark.slow] * (name == "OptCMDP")) for name in INSIDE]


def told(row, problem, rewards="known"):
    return task_for(row, problem, solve_feasible(problem), rewards=rewards)


def contrary(X, A, H, seed):
    """A random problem whose utility is what the objective does not earn: the threshold binds."""
    problem = random_problem(X, A, H, 0, seed)
    reward = np.stack([problem.reward[0], 1.0 - problem.reward[0]])
    most = exact.greedy(problem, reward[1])[0]
    return CMDP(problem.table, reward, np.array([0.8 * most]), problem.start)


bounds = st.floats(0.0, 4.0)


@given(w=bounds, b=bounds, more=st.floats(1e-3, 2.0))
def test_at_its_coin_a_mixture_promises_the_threshold_and_no_more(w, b, more):
    b_0 = b + more
    lam = coin_share(0.0, w, b, b_0)
    if w >= b:
        assert lam == 0.0
        return
    assert lam * b_0 + (1.0 - lam) * w == pytest.approx(b, abs=1e-12)
    assert lam * (b_0 - b) == pytest.approx((1.0 - lam) * (b - w), abs=1e-12)
    assert 0.0 < lam <= coin_share(0.0, 0.0, b, b_0) + 1e-15 == b / b_0 + 1e-15


def test_of_several_bounds_the_one_that_asks_for_most_decides():
    w, b, b_0 = np.array([0.5, 1.0, 2.0]), np.array([1.0, 1.2, 1.5]), np.array([2.0, 1.3, 3.0])
    lam = 0.0
    for each in zip(w, b, b_0, strict=True):
        lam = coin_share(lam, *each)
    assert lam == pytest.approx(2.0 / 3.0)  # of 1/3, 2/3 and none
    assert np.all(mixed_value(lam, w, b_0) >= b - 1e-12)


def test_the_logarithm_by_hand():
    problem = random_problem(3, 2, 4, 1)
    row = Safe(algorithm("OptCMDP")).with_settings(tuned_for=1000, delta=0.1)
    # 8 N (X H)^2 A K / delta = 8 * 144 * 2 * 1000 / 0.1
    assert union_log(row.setting(told(row, problem))) == pytest.approx(np.log(2.304e7))


def lowest_by_program(box: Box, utility, policy, start):
    """min over kernels of the box of V^pi[r], by HiGHS in the flows z_h(x, a, y)."""
    H, X, A = policy.shape
    size = (H, X, A, X)
    z = np.arange(np.prod(size)).reshape(size)
    cost = np.repeat(utility.ravel(), X)
    rows, limits, equal, right = [], [], [], []
    for h, x, a in np.ndindex(H, X, A):
        # sum_y z = pi (mass that comes in), and each z within its ends times the row's sum
        line = np.zeros(z.size)
        line[z[h, x, a]] = 1.0
        if h:
            line[z[h - 1, :, :, x].ravel()] -= policy[h, x, a]
        equal.append(line)
        right.append(policy[h, x, a] * (x == start) if h == 0 else 0.0)
        for y in range(X):
            for sign, end in ((1.0, box.upper[h, x, a, y]), (-1.0, box.lower[h, x, a, y])):
                line = np.zeros(z.size)
                line[z[h, x, a]] = -sign * end
                line[z[h, x, a, y]] += sign
                rows.append(line)
                limits.append(0.0)
    strict = {f"{each}_feasibility_tolerance": 1e-10 for each in ("primal", "dual")}
    program = (cost, np.array(rows), limits, np.array(equal), right, (0.0, None))
    found = linprog(*program, options=strict)
    assert found.status == 0
    return found.fun


def plain(row, problem, rewards="known"):
    return oracles.plain(row, told(row, problem, rewards))


@examples(15)
@given(seed=st.integers(0, 10**6), often=st.sampled_from([0, 3, 60]))
@example(seed=9550, often=0)
def test_the_bound_is_the_worst_kernel_of_the_box(seed, often):
    problem = random_problem(3, 2, 3, 2, seed)
    row = Safe(algorithm("OptCMDP"), margin_scale=0.2)
    learner = plain(row, problem)
    rng = np.random.default_rng(seed)
    visited = rng.multinomial(often, problem.table).astype(float)
    own = SafeFields.first(learner.task, visited)
    policy = random_policy(problem, seed)
    found, box = learner.bounds(own, policy), learner.box(visited)
    for n, utility in enumerate(problem.reward[1:]):
        lowest = lowest_by_program(box, utility, policy, problem.start)
        assert found[n] == pytest.approx(lowest, abs=1e-8)
    np.testing.assert_allclose(
        found, policy_bounds(box, problem.reward, policy, problem.start)[1:], atol=1e-12
    )


@examples(15)
@given(seed=st.integers(0, 10**6), width=st.sampled_from([0.02, 0.2]))
def test_one_kernel_bounds_no_looser_than_a_kernel_for_each_pair(seed, width):
    # S-OPS takes from each (h, x, a) the occupancy of a kernel of its own, in costs 1 - r.
    problem = random_problem(3, 2, 3, 1, seed)
    box, policy = Box.around(problem.table, width), random_policy(problem, seed)
    pairs = np.eye(problem.reward[0].size).reshape(-1, *problem.reward[0].shape)
    most = policy_bounds(box, pairs, policy, problem.start, "optimistic")
    upper = problem.horizon - float(most @ (1.0 - problem.reward[1]).ravel())
    one = policy_bounds(box, problem.reward, policy, problem.start)[1]
    assert one >= upper - 1e-12
    assert one <= exact.returns(problem, policy)[1] + 1e-12


@given(seed=st.integers(0, 10**6), width=st.sampled_from([0.0, 0.05, 0.4]))
def test_where_the_box_holds_the_kernel_no_mixture_violates(seed, width):
    problem = random_problem(4, 3, 3, 2, seed)
    row = Safe(algorithm("UOpt-RPGPD"))
    task = told(row, problem)
    policy = random_policy(problem, seed)
    bound = policy_bounds(Box.around(problem.table, width), problem.reward, policy, task.start)
    lam = 0.0
    for n, b in enumerate(problem.threshold):
        lam = coin_share(lam, bound[n + 1], b, task.baseline.returns[n + 1])
    mixture = mixed_value(lam, exact.returns(problem, policy), task.baseline.returns)
    assert np.all(mixture[1:] >= problem.threshold - 1e-12)


@examples(20)
@given(problem=problems(constraints=st.integers(1, 2)), lam=st.floats(0.0, 1.0))
def test_the_policy_of_a_mixture_has_its_occupancy(problem, lam):
    row = Safe(algorithm("UOpt-RPGPD", "released"))
    learner = plain(row, problem)
    state = learner.init()._replace(on_baseline=lam, candidate=random_policy(problem, 5))
    policies = (state.candidate, learner.task.baseline.policy)
    own, safe = (exact.occupancy(problem, each) for each in policies)
    mixture = exact.occupancy(problem, learner.policy(state))
    np.testing.assert_allclose(mixture, (1.0 - lam) * own + lam * safe, atol=1e-12)


def test_mixing_actions_in_every_step_is_another_policy(two_state):
    stay, leave = np.zeros((2, 10, 2, 2))
    stay[..., 0], leave[..., 1] = 1.0, 1.0
    values = [exact.returns(two_state, each) for each in (stay, leave)]
    np.testing.assert_allclose(mixed_value(0.5, *values), [5.0, 4.5])
    a_step = exact.returns(two_state, 0.5 * stay + 0.5 * leave)
    assert a_step[1] == pytest.approx(9.0 - (1.0 - 0.5**9))


@pytest.mark.parametrize("seed", range(3))
def test_a_smaller_box_never_asks_for_a_larger_coin(seed):
    problem = random_problem(4, 2, 3, 1, seed)
    row = Safe(algorithm("OptCMDP"))
    learner, policy = plain(row, problem), random_policy(problem, seed)
    found = [
        learner.bounds(SafeFields.first(learner.task, n * problem.table), policy)[0]
        for n in (0.0, 50.0, 500.0, 1e4, 1e6, 1e12)
    ]
    assert np.all(np.diff(found) >= -1e-12)
    assert found[-1] == pytest.approx(exact.returns(problem, policy)[1], abs=1e-4)


def test_on_an_exact_model_a_feasible_candidate_is_played_without_a_coin():
    problem = random_problem(4, 3, 3, 1)
    row = Safe(algorithm("OptCMDP"), margin_scale=1e-9)
    learner = plain(row, problem)
    own, inside = parted(row, learner.init())
    own = own._replace(visited=1e12 * problem.table)
    tighter = CMDP(problem.table, problem.reward, problem.threshold + 1e-3)
    inside = inside._replace(policy=np.asarray(solve(tighter).policy))
    assert learner.prepare(own, inside).on_baseline == 0.0


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("shape", ["plain", "two constraints"])
def test_both_engines_play_the_same_coins(name, shape):
    sizes = {"plain": (4, 3, 3, 1), "two constraints": (5, 2, 3, 2)}[shape]
    problem = random_problem(*sizes)
    check_learner(f"Safe({name})", problem, episodes=40)
    oracles.agree(as_row(f"Safe({name})"), problem, 40, 1e-12)


COUNTING = (PrimalDual, Planner, TripleQ)  # families whose visits the wrapper is told
OTHERS = [
    row
    for row in ALGORITHMS.values()
    if isinstance(row, COUNTING) and not row.safe and "safe policy" not in row.needs
    if not row.knows_kernel
]


@pytest.mark.slow
@pytest.mark.parametrize("row", OTHERS, ids=lambda row: f"{row.name}-{row.preset}")
def test_every_row_that_counts_can_be_wrapped(row):
    for shape in SHAPES.values():
        problem = random_problem(*shape, stationary=row.pooled)
        if problem.constraints:
            check_learner(Safe(row), problem, episodes=20)
            oracles.agree(Safe(row), problem, 20)
    problem = random_problem(5, 4, 3, 2, closed=0.4, stationary=row.pooled)
    check_learner(Safe(row), problem)
    oracles.agree(Safe(row), problem, 60)


def test_the_contract_notices_a_mixture_that_is_no_policy(monkeypatch):
    good = safe.behaviour
    monkeypatch.setattr(safe, "behaviour", lambda task, state: 1.1 * good(task, state))
    with pytest.raises(ContractError, match=r"in episode 1: its policy sums to 1\.1"):
        check_learner("Safe(UOpt-RPGPD)", random_problem(4, 3, 3, 1), episodes=3)


@pytest.mark.parametrize("name", COMPILED)
def test_engines_agree_where_rewards_are_observed(name):
    problem = random_problem(3, 2, 3, 2)
    row = as_row(f"Safe({name})").with_settings(margin_scale=0.05)
    task = told(row, problem, "bernoulli")
    ours, oracle = (session(each, problem, row, task, 4) for each in ("cpu", "host"))
    for a, b in zip(ours.play(60), oracle.play(60), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)
    for a, b in zip(ours.state(), oracle.state(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)


@pytest.mark.parametrize(
    ("engine", "episodes"), [("host", 60), pytest.param("cpu", 200, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", INSIDE[:2])
def test_lists_of_successors_are_the_table(name, engine, episodes):
    dense = random_problem(6, 2, 3, 1, concentration=0.05)
    listed = CMDP(Sparse.of(dense.table), dense.reward, dense.threshold, dense.start)
    row = as_row(f"Safe({name})").with_settings(margin_scale=0.05)
    runs = [
        session(engine, each, row, told(row, each), 1).play(episodes) for each in (dense, listed)
    ]
    for a, b in zip(*runs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_stationary_dynamics_are_counted_together():
    problem = random_problem(4, 2, 3, 1, stationary=True)
    row = Safe(algorithm("UOpt-RPGPD")).with_settings(dynamics="stationary", margin_scale=0.1)
    check_learner(row, problem, episodes=30)
    state = session("cpu", problem, row, told(row, problem), 1)
    state.play(50)
    assert state.state().visited.shape[0] == 1
    assert row.pooled
    assert row.row.pooled
    assert "counts of all steps" in row.with_settings(margin_scale=1.0).promise_heuristic


@pytest.mark.parametrize("name", COMPILED)
def test_what_was_really_played_is_counted_once(name):
    problem = random_problem(4, 3, 3, 1)
    row = as_row(f"Safe({name})")
    run = session("cpu", problem, row, told(row, problem), 3)
    chunk = run.play(400)
    state = run.state()
    np.testing.assert_array_equal(state.visited.sum(axis=(1, 2, 3)), 400.0)
    assert state.given_to_baseline == pytest.approx(chunk.on_baseline.sum())
    spread = np.sqrt(np.sum(chunk.on_baseline * (1.0 - chunk.on_baseline)))
    assert abs(state.baseline_episodes - state.given_to_baseline) < 5.0 * spread
    _, inside = parted(row, state)
    played = state.baseline_episodes if name == "Triple-Q" else 0
    assert inside.episode == 400 - played  # Triple-Q learns from the actions that it took itself
    if name != "Triple-Q":
        np.testing.assert_array_equal(inside.counts, state.visited)
    assert np.all(
        chunk.on_baseline <= problem.threshold[0] / told(row, problem).baseline.returns[1]
    )


def test_a_run_gives_the_mixture_as_its_policy():
    problem = contrary(4, 3, 3, 1)
    run = cmdplab.run(problem, "Safe(UOpt-RPGPD)", 300, seed=2)
    assert 0.0 < run.state.on_baseline < 1.0
    policy = run.policy(problem).array
    following = session("cpu", problem, run.algorithm, told(run.algorithm, problem), 2, run.state)
    np.testing.assert_allclose(
        exact.returns(problem, policy), following.play(1).returns[0], atol=1e-12
    )


@pytest.mark.parametrize("name", COMPILED)
def test_at_scale_one_no_episode_violates(name):
    for seed in range(5):
        run = cmdplab.run(contrary(3, 2, 2, seed), f"Safe({name})", 3000, seed=seed)
        assert run.curves["violation_max"].max() <= 1e-12
        share = run.state.given_to_baseline / 3000
        assert 0.0 < share < 1.0
        if name != "Triple-Q":  # whose own policy aims below the threshold for a while
            assert run.state.on_baseline < share


def test_names_are_found_again_with_their_settings():
    row = as_row("safe(uopt-rpgpd:printed)")
    assert row == Safe(algorithm("UOpt-RPGPD", "printed")) == as_row("Safe(UOpt-RPGPD):printed")
    assert (row.name, row.preset) == ("Safe(UOpt-RPGPD)", "printed")
    assert as_row("Safe(UOpt-RPGPD)") == as_row("Safe(UOpt-RPGPD)", "released")
    assert as_row("Safe(UOpt-RPGPD-1/sqrt(k))") == Safe(as_row("UOpt-RPGPD-1/sqrt(k)"))
    other = row.with_settings(bonus_scale=0.5, margin_scale=0.25, delta=0.2, alpha_eta=0.6)
    assert other.row.bonus_scale == other.bonus_scale == 0.5
    assert other.row.delta == 0.2
    assert other.margin_scale == 0.25
    assert other.row.margin_scale == row.row.margin_scale
    assert other.with_settings(**other.settings()) == other
    assert written_name(row) == "Safe(UOpt-RPGPD):printed"
    run = RunSettings.of(random_problem(3, 2, 2, 1), other, 100, 7)
    assert run.row() == other
    with pytest.raises(InputError, match="a row in memory"):
        written_name(other)


@pytest.mark.parametrize("name", ["Safe(UOpt-RPGPD)", "Safe(OptCMDP)", "Safe(Triple-Q)"])
def test_a_wrapper_promises_safety_and_no_regret_that_nobody_has_proved(name):
    row = as_row(name).with_settings(bonus_scale=1.0)
    assert row.safe
    assert row.promise_heuristic == row.heuristic == ""
    assert ("regret unknown" in row.guarantee) == (name != "Safe(OptCMDP)")
    assert "heuristic" in row.with_settings(margin_scale=0.5).promise_heuristic
    small = row.with_settings(bonus_scale=0.5)
    assert small.promise_heuristic == ""
    assert ("regret is heuristic" in small.heuristic) == (name == "Safe(OptCMDP)")


class Nobody:
    def init(self):
        """Nothing."""

    def policy(self, state):
        """Nothing."""

    def observe(self, state, episode):
        """Nothing."""


def test_what_cannot_be_wrapped_is_refused_in_a_sentence():
    for row, why in (
        (algorithm("DOPE"), "DOPE begins with a safe policy already"),
        (as_row("Safe(OptCMDP)"), r"Safe\(OptCMDP\) begins with a safe policy already"),
        (custom(Nobody()), r"Safe\(Nobody\) has no pessimistic bound: it is from outside"),
        (algorithm("UOpt-RPGPD").with_settings(kernel="known"), "no pessimistic bound: it knows"),
        ("OptCMDP", "Safe takes a row, not 'OptCMDP'"),
    ):
        with pytest.raises(InputError, match=why):
            Safe(row)
    with pytest.raises(InputError, match="has no setting kernel"):
        as_row("Safe(UOpt-RPGPD)").with_settings(kernel="known")
    with pytest.raises(InputError, match="unknown algorithm 'UOpt'"):
        as_row("Safe(UOpt)")


def test_what_a_coin_needs_and_lacks_is_refused_in_a_sentence():
    row, problem = as_row("Safe(OptCMDP)"), random_problem(3, 2, 3, 1)
    with pytest.raises(InputError, match="needs a constraint, and this problem has none"):
        told(row, random_problem(3, 2, 3, 0))
    uniform = np.full((3, 3, 2), 0.5)
    most = exact.returns(problem, uniform)[1]
    harder = CMDP(problem.table, problem.reward, np.array([most]), problem.start)
    with pytest.raises(InputError, match="the baseline is not safe"):
        task_for(row, harder, solve_feasible(harder), uniform)
    with pytest.raises(InputError, match="plays problems that are known"):
        live_session(row, told(row, problem))


@pytest.mark.parametrize(
    ("name", "words"),
    [("Safe(DOPE)", "begins with a safe policy already"), ("Safe(Nope)", "unknown algorithm")],
)
def test_the_command_line_refuses_with_code_2(call, name, words):
    code, _, err = call("run", "three-state", "--algorithm", name, "--episodes", "10")
    assert code == 2
    assert words in err


def test_a_wrapper_runs_from_the_command_line_and_from_a_file(call, tmp_path):
    code, out, _ = call("run", "three-state", "--algorithm", "Safe(Triple-Q)", "--episodes", "50")
    assert code == 0
    assert "Safe(Triple-Q)" in out
    file = tmp_path / "sweep.toml"
    file.write_text(
        'name = "coins"\nepisodes = 40\nseeds = 1\n[[problems]]\nenvironment = "three-state"\n'
        '[[algorithms]]\nname = "Safe(UOpt-RPGPD)"\nmargin_scale = 0.5\n'
    )
    with in_one_process():
        code, out, err = call("sweep", str(file), "--out", str(tmp_path / "runs"))
    assert code == 0, err


def test_chunks_and_a_resume_change_no_bit():
    problem = cmdplab.make("three-state")
    row = as_row("Safe(UOpt-RPGPD)")
    whole = session("cpu", problem, row, told(row, problem), 11)
    at_once = whole.play(300)
    cut = session("cpu", problem, row, told(row, problem), 11)
    pieces = [cut.play(size) for size in (1, 2, 97)]
    resumed = session("cpu", problem, row, told(row, problem), 11, cut.state())
    pieces += [resumed.play(size) for size in (199, 1)]
    for field in ("returns", "multiplier", "on_baseline"):
        joined = np.concatenate([getattr(piece, field) for piece in pieces])
        np.testing.assert_array_equal(joined, getattr(at_once, field))
    for ours, theirs in zip(resumed.state(), whole.state(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
