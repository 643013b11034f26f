"""Triple-Q: the compiled engine is the plain one, bit for bit, and both are the algorithm."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import SHAPES, problems, random_problem
from hypothesis import given, strategies as st
from oracles import session
from oracles.triple_q import PlainTripleQ

from cmdplab.algorithms.families import triple_q as compiled, triple_q as eq
from cmdplab.algorithms.learner import Episode
from cmdplab.algorithms.running.layout import successors
from cmdplab.algorithms.running.storage import natural_next
from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.task import Task
from cmdplab.algorithms.triple_q import TRIPLE_Q, TRIPLE_Q_NO_RESET, TRIPLE_Q_RELEASED
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.host import HostSession, _draw

SHORT = [replace(row, tuned_for=150) for row in (TRIPLE_Q, TRIPLE_Q_RELEASED, TRIPLE_Q_NO_RESET)]
MILD = replace(TRIPLE_Q, margin_scale=1e-9)  # a margin that leaves something to the objective
ROWS = pytest.mark.parametrize("row", [*SHORT, MILD], ids=lambda row: f"{row.name}-{row.preset}")
SHAPE = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


def prepared(shape):
    problem = random_problem(*shape)
    return problem, Task.of(problem, 1.0)


def both(problem, row, seed=3):
    task = Task.of(problem, 1.0)
    host = HostSession(problem, PlainTripleQ(row, task), seed)
    return session("cpu", problem, row, task, seed), host


def assert_same_state(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@ROWS
@SHAPE
def test_both_engines_give_the_same_numbers(row, shape):
    cpu, host = both(random_problem(*shape), row)
    ours, theirs = cpu.play(120), host.play(120)
    np.testing.assert_allclose(ours.returns, theirs.returns, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(ours.multiplier, theirs.multiplier)
    assert_same_state(cpu.state(), host.state())


@pytest.mark.parametrize("row", SHORT, ids=lambda row: f"{row.name}-{row.preset}")
@given(problem=problems())
def test_engines_agree_on_random_problems(row, problem):
    cpu, host = both(problem, row)
    np.testing.assert_allclose(cpu.play(40).returns, host.play(40).returns, rtol=0, atol=1e-11)
    assert_same_state(cpu.state(), host.state())


def test_engines_agree_on_a_stationary_kernel(two_state):
    cpu, host = both(two_state, replace(TRIPLE_Q_RELEASED, tuned_for=300))
    np.testing.assert_allclose(cpu.play(300).returns, host.play(300).returns, rtol=0, atol=1e-11)
    assert_same_state(cpu.state(), host.state())


@ROWS
def test_neither_chunks_nor_a_resume_change_a_bit(row):
    problem, task = prepared((9, 3, 4, 2))
    whole = session("cpu", problem, row, task, 11)
    at_once = whole.play(400)
    cut = session("cpu", problem, row, task, 11)
    pieces = [cut.play(size) for size in (1, 2, 97, 100)]
    resumed = session("cpu", problem, row, task, 11, cut.state())
    pieces += [resumed.play(size) for size in (199, 1)]
    for field in ("returns", "multiplier"):
        joined = np.concatenate([getattr(piece, field) for piece in pieces])
        np.testing.assert_array_equal(joined, getattr(at_once, field))
    assert_same_state(resumed.state(), whole.state())


@ROWS
def test_trajectories_from_outside(row):
    problem = random_problem(4, 3, 3, 1)
    random = np.random.default_rng(0)
    states, actions = random.integers(4, size=(60, 4)), random.integers(3, size=(60, 3))
    states[:, 0] = problem.start
    cpu, host = both(problem, row)
    ours, theirs = cpu.replay(states, actions), host.replay(states, actions)
    np.testing.assert_allclose(ours.returns, theirs.returns, rtol=0, atol=1e-11)
    assert_same_state(cpu.state(), host.state())


@ROWS
@SHAPE
def test_a_run_keeps_its_promises(row, shape):
    problem, task = prepared(shape)
    run = session("cpu", problem, row, task, 5)
    chunk = run.play(500)
    state = run.state()
    assert np.all(np.isfinite(chunk.returns))
    assert np.all(chunk.multiplier >= 0.0)
    assert np.all(state.queue >= 0.0)
    frame = int(row.numbers(task).frame)
    np.testing.assert_array_equal(state.visits.sum(axis=(1, 2)), 500 % frame)
    policy = PlainTripleQ(row, task).policy(state)
    np.testing.assert_allclose(policy.sum(axis=-1), 1.0, atol=1e-12)
    after = run.play(1)
    np.testing.assert_allclose(after.returns[0], exact.returns(problem, policy), atol=1e-12)


def test_no_row_or_size_compiles_anything_again(two_state):
    tasks = [prepared(shape) for shape in SHAPES.values()] + [(two_state, Task.of(two_state, 1.0))]
    for row, (problem, task) in zip(itertools.cycle(SHORT), tasks, strict=False):
        session("cpu", problem, row, task, 0).play(2)
    assert len(compiled.FAMILY.loops.play.dispatcher.signatures) == 1


@given(problem=problems(), u=st.floats(0.0, 1.0, exclude_max=True), data=st.data())
def test_successors_are_drawn_as_the_host_draws_them(problem, u, data):
    world = successors(problem)
    for h, x, a in np.ndindex(*problem.transition.shape[:3]):
        row = problem.transition[h, x, a]
        edge = data.draw(st.sampled_from(np.cumsum(row).tolist()))
        for each in (u, edge, math.nextafter(edge, 0.0), math.nextafter(1.0, 0.0)):
            assert natural_next(world, h, x, a, each) == _draw(row, each)


def test_the_first_update_erases_what_was_there():
    for chi in (0.5, 1.0, 9.6):
        assert eq.rate(1.0, chi) == 1.0
        assert eq.learned(1e9, eq.rate(1.0, chi), 0.25, 0.5, 0.125) == 0.875


@given(chi=st.floats(0.1, 100.0), t=st.integers(1, 200))
def test_the_weights_of_all_updates_sum_to_one(chi, t):
    weights = np.zeros(t + 1)
    weights[0] = 1.0  # of the first value
    for i in range(1, t + 1):
        weights *= 1.0 - eq.rate(float(i), chi)
        weights[i] = eq.rate(float(i), chi)
    assert weights[0] == 0.0
    assert weights.sum() == pytest.approx(1.0)


def test_formulas_by_hand():
    assert eq.rate(3.0, 1.0) == 0.5
    assert eq.width(2.0, 13.0, 3.0) == 1.0  # sqrt(4 / 16)
    assert eq.queue_step(1.0, 5.0, 0.5, 40.0, 10.0) == 2.5
    assert eq.queue_step(1.0, 5.0, 0.5, 90.0, 10.0) == 0.0
    assert eq.blend(0.1, 0.7, 0.0) == 0.1
    assert eq.blend(0.1, 0.7, 1.0) == 0.7


def test_random_play_decays_as_in_the_notebook():
    share, epsilon = PlainTripleQ(TRIPLE_Q_RELEASED, prepared((4, 3, 3, 1))[1]).share, 1.0
    for trial in range(100):
        assert share(trial + 1) == pytest.approx(1.0 - (1.0 - epsilon) * 0.97)
        if trial % 20 == 0:  # as the notebook has it, after trial 0, 20, 40, ...
            epsilon *= 0.95


def test_constants_as_printed():
    paper = Setting(X=30, A=3, H=10, N=1, K=100_000, delta=0.1, slack=2.0)
    iota = 128 * math.log(math.sqrt(1800) * 1e5)
    assert eq.iota(paper) == pytest.approx(iota)
    assert eq.frame_length(paper) == 1000
    assert eq.fifth_root(paper) == pytest.approx(10.0)
    assert eq.printed_margin(paper) == pytest.approx(6.6e8, rel=0.01)
    coefficient, _, shift = eq.printed_widths(paper)
    assert eq.width(coefficient, 5.0, shift) == pytest.approx(
        0.25 * math.sqrt(100 * iota * 11 / 15)
    )


@pytest.mark.parametrize("K", [1, 2, 32, 243, 80_000, 10**5, 10**10, 10**15])
def test_frames_are_exact(K):
    frame = eq.frame_length(Setting(3, 2, 3, 1, K, 0.1, 1.0))
    assert 1 <= frame**5 <= K**3 < (frame + 1) ** 5


def test_constants_as_released_times_a_hundred():
    task = Task(np.zeros((2, 25, 324, 4)), np.array([20.0]), 323, 5.0)
    n = replace(TRIPLE_Q_RELEASED, tuned_for=80_000).numbers(task)
    values = (n.objective_start, n.objective_limit, n.raised)
    np.testing.assert_allclose([100 * value for value in values], [800, 850, 3])
    assert (n.utility_start, n.utility_limit, n.margin) == (25.0, 25.0, 0.5)
    assert n.frame == 874.0
    assert n.eta == pytest.approx(100 * 1e-4 * 80_000**0.2 * math.sqrt(4 * 324 * 25**4))
    bonus = 0.2 * math.sqrt(math.log(80_000) / 7)
    assert 100 * eq.width(n.objective_width, 7.0, n.width_shift) == pytest.approx(bonus)
    assert eq.width(n.utility_width, 7.0, n.width_shift) == pytest.approx(0.01 * bonus)


def frame_ended(row, q, c):
    """What the end of a frame makes of one entry of the tables, at H = 4."""
    problem = CMDP(np.ones((1, 1, 1)), np.full((2, 1, 1), 0.5), [1.0], horizon=4)
    learner = PlainTripleQ(row, Task.of(problem, 1.0))
    state = learner.init()
    state.objective[0, 0, 0], state.utility[0, 0, 0, 0] = q, c
    state.visits[:], state.tally[:] = 3.0, 2.0 * learner.numbers.frame
    state = learner._next_frame(state)
    assert not state.visits.any() | state.tally.any()
    z = max(1.0 + learner.numbers.margin - 2.0, 0.0)  # b + margin less the mean of C_1
    assert state.queue[0] == pytest.approx(z)
    assert state.multiplier[0] == pytest.approx(z / learner.numbers.eta)
    return float(state.objective[0, 0, 0]), float(state.utility[0, 0, 0, 0])


def test_the_end_of_a_frame_in_every_variant():
    assert frame_ended(TRIPLE_Q, 1.0, 2.0) == (4.0, 4.0)
    gentle = replace(TRIPLE_Q_NO_RESET, bonus_scale=1e-6)
    raised = gentle.numbers(prepared((1, 1, 4, 1))[1]).raised
    assert 0.0 < raised < 0.1
    assert frame_ended(gentle, 1.0, 2.0) == (1.0 + raised, 2.0)
    assert frame_ended(gentle, 4.0 - raised / 2, 2.0) == (4.0, 4.0)
    assert frame_ended(gentle, 1.0, 4.0) == (4.0, 4.0)
    assert frame_ended(TRIPLE_Q_RELEASED, 1.0, 2.0) == pytest.approx((1.0048, 2.0))
    assert frame_ended(TRIPLE_Q_RELEASED, 1.359, 2.0) == pytest.approx((1.28, 2.0))
    assert frame_ended(TRIPLE_Q_RELEASED, 1.0, 4.1) == pytest.approx((1.28, 4.1))
    assert frame_ended(TRIPLE_Q_RELEASED, 1.0, 4.0) == pytest.approx((1.0048, 4.0))


def test_one_episode_by_hand():
    """Two steps, one state: targets are what the next step held before, and ties go first."""
    reward = np.array([[[0.25, 1.0]], [[0.5, 0.0]]])
    problem = CMDP(np.ones((1, 2, 1)), reward, [1.0], horizon=2)
    row = replace(TRIPLE_Q, bonus_scale=1e-12, margin_scale=1e-30)
    learner = PlainTripleQ(row, Task.of(problem, 1.0))
    state = learner.init()
    np.testing.assert_array_equal(learner.policy(state)[:, 0], [[1.0, 0.0]] * 2)
    state = learner.observe(state, Episode(np.zeros(3, int), np.array([0, 1])))
    np.testing.assert_allclose(state.objective[:, 0], [[0.25 + 2.0, 2.0], [2.0, 1.0]], atol=1e-9)
    np.testing.assert_allclose(state.utility[0, :, 0], [[0.5 + 2.0, 2.0], [2.0, 0.0]], atol=1e-9)
    assert state.tally[0] == 2.0  # C_1 before its update
    released = PlainTripleQ(replace(row, tally_after=1.0), learner.task)
    after = released.observe(released.init(), Episode(np.zeros(3, int), np.array([0, 1])))
    assert after.tally[0] == pytest.approx(2.5)


def test_the_queues_weigh_their_utilities():
    learner = PlainTripleQ(TRIPLE_Q, prepared((2, 3, 1, 2))[1])
    state = learner.init()
    state.objective[0, 0], state.utility[:, 0, 0] = [2.0, 1.0, 0.0], [[0, 1, 0], [0, 0, 1]]
    for multiplier, best in (([0.0, 0.0], 0), ([1.5, 0.0], 1), ([1.0, 3.0], 2), ([1.0, 0.0], 0)):
        chosen = learner.choice(state._replace(multiplier=np.array(multiplier)), 0, 0)
        assert chosen == [float(a == best) for a in range(3)]


def test_without_constraints_it_learns_a_small_problem():
    row = replace(TRIPLE_Q, tuned_for=10_000_000, bonus_scale=1e-3)  # one frame of 15,848 episodes
    for seed in range(3):
        problem = random_problem(3, 2, 3, 0, seed=seed)
        run = session("cpu", problem, row, Task.of(problem, np.inf), seed)
        played = run.play(15_000).returns[-1000:, 0].mean()
        assert played > 0.98 * exact.greedy(problem, problem.reward[0])[0]


def test_the_released_settings_keep_to_the_constraint(two_state):
    run = session("cpu", two_state, TRIPLE_Q_RELEASED, Task.of(two_state, 5.0), 0)
    objective, utility = run.play(100_000).returns[-20_000:].mean(axis=0)
    assert min(objective - 3.0, utility - 4.5) > 0.0


def test_what_is_claimed_of_the_rows():
    assert "margin scale" in TRIPLE_Q.heuristic
    assert "no run reaches" in replace(TRIPLE_Q, bonus_scale=1.0, margin_scale=1.0).heuristic
    assert TRIPLE_Q_RELEASED.heuristic.startswith("nothing is proved")
    assert not any(row.safe for row in SHORT)
    assert "tuned for" in TRIPLE_Q.tuning_warning(10**6)


def test_the_grid_world_of_the_benchmark():
    from triple_q import grid_world

    problem = grid_world()
    assert (problem.states, problem.actions, problem.horizon) == (324, 4, 25)
    # Staying put at a border shows the utility of a cell; the others are seen from a neighbour.
    entered = problem.transition[0].argmax(axis=-1)
    utility = dict(zip(entered.ravel(), problem.reward[1, 0].ravel(), strict=True))
    assert sum(value == 0.0 for value in utility.values()) == 105
    goal = int(entered.ravel()[problem.reward[0, 0].argmax()])
    assert divmod(goal, 18) == (0, 15)
    assert 100 * exact.greedy(problem, problem.reward[0])[0] == pytest.approx(963.98, abs=0.01)
