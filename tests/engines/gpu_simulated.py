"""The kernels of the GPU engine in Numba's simulator: test_gpu.py runs this in its own process."""

from __future__ import annotations

import numpy as np
import pytest
import simulated_gpu  # noqa: F401  (completes the simulator)
from gpu_cases import (
    batch,
    check_equals_cpu,
    check_judged,
    check_same_bits,
    family_rows,
    mild_rows,
    told,
)
from oracles import session

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.families.triple_q import TripleQ
from cmdplab.algorithms.triple_q import TRIPLE_Q_NO_RESET
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.gpu.batch import GpuBatch
from cmdplab.engines.gpu.layout import form_of
from cmdplab.engines.gpu.triple_q import triple_q_form
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.solvers import solve_feasible

RELEASED = algorithm("UOpt-RPGPD", "released")
PRINTED = algorithm("UOpt-RPGPD", "printed")
FEW = [RELEASED, PRINTED]
ROUNDING = 1e-13
SHORT = 12  # episodes that Triple-Q is tuned for: its frames are then of four
TRIPLE_Q = TRIPLE_Q_NO_RESET.with_settings(tuned_for=SHORT, margin_scale=1e-6)
QUICK = [TRIPLE_Q, algorithm("Triple-Q", "released")]  # the simulator plays these soonest


@pytest.mark.slow
def test_every_row_and_preset_is_one_launch_and_equals_the_cpu():
    problem = random_problem(3, 2, 2, 1)
    check_equals_cpu(problem, family_rows(problem), 3, ROUNDING)


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param((2, 40, 1, 0), marks=pytest.mark.slow),
        (7, 1, 1, 3),
        (1, 2, 2, 1),
        pytest.param((38, 2, 1, 1), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_any_shape_equals_the_cpu(shape):
    check_equals_cpu(random_problem(*shape), FEW[:1], 2, ROUNDING)


def test_closed_actions_are_never_taken():
    check_equals_cpu(random_problem(3, 4, 2, 2, closed=0.4), FEW, 3, ROUNDING)


@pytest.mark.parametrize(
    ("lanes", "threads"), [(2, 32), pytest.param(4, 64, marks=pytest.mark.slow)]
)
def test_lanes_and_threads_only_spread_the_work(lanes, threads):
    problem = random_problem(20, 3, 1, 1)
    form = form_of(problem.reward.shape, lanes, threads)
    assert form.span > form.threads or form.lanes == 4
    check_equals_cpu(problem, FEW[:1], 2, ROUNDING, form)


def test_neither_batch_nor_chunks_nor_a_resume_change_a_bit():
    check_same_bits(random_problem(3, 2, 2, 1), FEW, 4)


@pytest.mark.parametrize(("row", "tolerance"), [(RELEASED, ROUNDING), (TRIPLE_Q, 0.0)])
def test_a_run_may_change_engines(row, tolerance):
    problem = random_problem(3, 2, 2, 1)
    task = told(problem, [row])[0]
    whole = session("cpu", problem, row, task, 9).play(6).returns
    first = session("cpu", problem, row, task, 9)
    first.play(2)
    second = session("gpu", problem, row, task, 9, first.state())
    middle = second.play(2).returns
    third = session("cpu", problem, row, task, 9, second.state())
    np.testing.assert_allclose(middle, whole[2:4], rtol=0, atol=tolerance)
    np.testing.assert_allclose(third.play(2).returns, whole[4:], rtol=0, atol=tolerance)


def test_the_runs_of_a_batch_may_have_problems_of_their_own():
    problems = [random_problem(3, 2, 2, 1, seed) for seed in (1, 2)]
    tasks = [told(each, FEW[:1])[0] for each in problems]
    played = GpuBatch(problems, [RELEASED] * 2, tasks, [5, 5]).play(3).returns
    for b, (problem, task) in enumerate(zip(problems, tasks, strict=True)):
        expected = session("cpu", problem, RELEASED, task, 5).play(3).returns
        np.testing.assert_allclose(played[b], expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("constraints", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_what_is_judged_on_the_card_is_what_the_host_would_judge(constraints):
    check_judged(random_problem(3, 2, 2, constraints), QUICK, 6)


def test_measuring_goes_on_where_it_stopped():
    problem = random_problem(3, 2, 2, 1)
    optimum = [solve_feasible(problem).value]
    whole = batch(problem, QUICK[:1]).measure(optimum, 5).measures()[0]
    cut = batch(problem, QUICK[:1])
    pieces = cut.measure(optimum, 3)
    again = cut.measure(optimum, 2, pieces).measures()[0]
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array, err_msg=name)


def test_a_curve_without_points_leaves_sums_and_mistakes_as_they_are():
    problem = random_problem(3, 2, 2, 1)
    optimum = [solve_feasible(problem).value]
    full = batch(problem, QUICK[:1]).measure(optimum, 5).measures()[0]
    bare = batch(problem, QUICK[:1]).measure(optimum, 5, keep=np.zeros_like).measures()[0]
    assert bare.summary() == full.summary()
    assert len(bare.arrays()["rows"]) == 0
    for name, column in full.mistakes().items():
        np.testing.assert_array_equal(bare.mistakes()[name], column)


def test_single_precision_stays_near():
    problem = random_problem(3, 2, 2, 1)
    worst = check_equals_cpu(problem, FEW, 4, 1e-5, precision="float32")
    assert worst > 1e-12  # it was single precision


@pytest.mark.slow
def test_every_row_of_triple_q_is_one_launch_and_equals_the_cpu_to_the_last_bit():
    problem = random_problem(3, 2, 2, 1)
    printed = [row.with_settings(tuned_for=SHORT) for row in family_rows(problem, TripleQ)]
    rows = printed + mild_rows(problem, SHORT)
    check_equals_cpu(problem, rows, SHORT + 1, 0.0)


@pytest.mark.parametrize(
    "shape", [(2, 9, 1, 0), (7, 1, 2, 3), (1, 2, 2, 1), (9, 3, 5, 2), (4, 3, 3, 1)], ids=str
)
def test_threads_only_spread_the_work_of_triple_q(shape):
    problem = random_problem(*shape)
    form = triple_q_form(problem.reward.shape, threads=4)
    assert form.states + form.rewards > form.threads or form.states < 3
    check_equals_cpu(problem, mild_rows(problem, SHORT), SHORT, 0.0, form)


def test_the_queues_of_triple_q_move_within_these_tests():
    problem = random_problem(9, 3, 5, 2)
    rows = mild_rows(problem, SHORT)
    for row, task in zip(rows, told(problem, rows), strict=True):
        multiplier = session("cpu", problem, row, task, 5).play(SHORT).multiplier
        assert (np.diff(multiplier, axis=0) != 0.0).any(axis=0).all(), row.preset


def test_triple_q_never_takes_a_closed_action():
    problem = random_problem(3, 4, 2, 2, closed=0.4)
    rows = mild_rows(problem, SHORT)
    check_equals_cpu(problem, rows, SHORT, 0.0, triple_q_form(problem.reward.shape, 3))
    runs = batch(problem, rows)
    runs.play(SHORT)
    for b in range(len(rows)):
        assert runs.state(b).visits[~problem.opened].sum() == 0.0


@pytest.mark.slow
def test_neither_batch_nor_chunks_nor_a_resume_change_a_bit_of_triple_q():
    problem = random_problem(3, 2, 2, 1)
    for row in mild_rows(problem, SHORT):
        check_same_bits(problem, [TRIPLE_Q, row], 6)


def test_stationary_kernels_and_others_play_triple_q_side_by_side():
    each = random_problem(4, 2, 3, 1)
    constant = CMDP(each.transition[0], each.reward, each.threshold, each.start)
    assert constant.stationary
    problems = [constant, each]
    tasks = [told(problem, [TRIPLE_Q])[0] for problem in problems]
    together = GpuBatch(problems, [TRIPLE_Q] * 2, tasks, [5, 5]).play(5).returns
    alone = GpuBatch(problems[:1], [TRIPLE_Q], tasks[:1], [5]).play(5).returns
    np.testing.assert_array_equal(alone[0], together[0])
    for b, (problem, task) in enumerate(zip(problems, tasks, strict=True)):
        expected = session("cpu", problem, TRIPLE_Q, task, 5).play(5).returns
        np.testing.assert_array_equal(together[b], expected)
