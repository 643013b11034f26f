"""The kernels of the GPU engine in Numba's simulator: test_gpu.py runs this in its own process."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import simulated_gpu  # noqa: F401  (completes the simulator)
from gpu_cases import batch, check_equals_cpu, check_same_bits, family_rows, told

from cmdplab.algorithms import algorithm
from cmdplab.engines.cpu import CpuSession
from cmdplab.engines.gpu import GpuBatch, GpuSession, measure_many
from cmdplab.engines.gpu_layout import form_of
from cmdplab.engines.protocol import Chunk
from cmdplab.measures import Measures
from cmdplab.running import jobs, run_many
from cmdplab.running_on_gpu import run_many_on_gpu
from cmdplab.solvers import solve_feasible
from cmdplab.testing import random_problem

RELEASED = algorithm("UOpt-RPGPD", "released")
PRINTED = algorithm("UOpt-RPGPD", "printed")
FEW = [RELEASED, PRINTED]
ROUNDING = 1e-13


def test_every_row_and_preset_is_one_launch_and_equals_the_cpu():
    problem = random_problem(3, 2, 2, 1)
    check_equals_cpu(problem, family_rows(problem), 4, ROUNDING)


@pytest.mark.parametrize(
    "shape", [(2, 40, 1, 0), (7, 1, 1, 3), (1, 2, 2, 1), (38, 2, 1, 1)], ids=str
)
def test_any_shape_equals_the_cpu(shape):
    check_equals_cpu(random_problem(*shape), FEW[:1], 2, ROUNDING)


def test_closed_actions_are_never_taken():
    check_equals_cpu(random_problem(3, 4, 2, 2, closed=0.4), FEW, 3, ROUNDING)


@pytest.mark.parametrize(("lanes", "threads"), [(2, 32), (4, 64)])
def test_lanes_and_threads_only_spread_the_work(lanes, threads):
    problem = random_problem(20, 3, 1, 1)
    form = form_of(problem.reward.shape, lanes, threads)
    assert form.span > form.threads or form.lanes == 4
    check_equals_cpu(problem, FEW[:1], 2, ROUNDING, form)


def test_neither_batch_nor_chunks_nor_a_resume_change_a_bit():
    check_same_bits(random_problem(3, 2, 2, 1), FEW, 4)


def test_a_run_may_change_engines():
    problem = random_problem(3, 2, 2, 1)
    task = told(problem, FEW)[0]
    cpu = CpuSession(problem, RELEASED, task, 9)
    whole = cpu.play(6).returns
    first = CpuSession(problem, RELEASED, task, 9)
    first.play(2)
    second = GpuSession(problem, RELEASED, task, 9, first.state())
    middle = second.play(2).returns
    third = CpuSession(problem, RELEASED, task, 9, second.state())
    np.testing.assert_allclose(middle, whole[2:4], rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(third.play(2).returns, whole[4:], rtol=0, atol=ROUNDING)


def test_the_runs_of_a_batch_may_have_problems_of_their_own():
    problems = [random_problem(3, 2, 2, 1, seed) for seed in (1, 2)]
    tasks = [told(each, FEW[:1])[0] for each in problems]
    played = GpuBatch(problems, [RELEASED] * 2, tasks, [5, 5]).play(3).returns
    for b, (problem, task) in enumerate(zip(problems, tasks, strict=True)):
        expected = CpuSession(problem, RELEASED, task, 5).play(3).returns
        np.testing.assert_allclose(played[b], expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("constraints", [0, 2])
def test_what_is_judged_on_the_card_is_what_the_host_would_judge(constraints):
    problem = random_problem(3, 2, 2, constraints)
    optimum = solve_feasible(problem).value
    played = batch(problem, FEW).play(6)
    given = ([problem] * 2, FEW, told(problem, FEW), [5, 6], [optimum] * 2)
    for b, ours in enumerate(measure_many(*given, 6)):
        theirs = Measures(optimum, problem.threshold, problem.horizon)
        theirs.add(Chunk(played.returns[b], played.multiplier[b]))
        for name, array in theirs.arrays().items():
            np.testing.assert_array_equal(ours.arrays()[name], array, err_msg=name)
        assert ours.summary() == theirs.summary()


def test_measuring_goes_on_where_it_stopped():
    problem = random_problem(3, 2, 2, 1)
    optimum = [solve_feasible(problem).value]
    whole = batch(problem, FEW[:1]).measure(optimum, 5).measures()[0]
    cut = batch(problem, FEW[:1])
    pieces = cut.measure(optimum, 3)
    again = cut.measure(optimum, 2, pieces).measures()[0]
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array, err_msg=name)


def test_a_curve_without_points_leaves_sums_and_mistakes_as_they_are():
    problem = random_problem(3, 2, 2, 1)
    optimum = [solve_feasible(problem).value]
    full = batch(problem, FEW[:1]).measure(optimum, 5).measures()[0]
    bare = batch(problem, FEW[:1]).measure(optimum, 5, keep=np.zeros_like).measures()[0]
    assert bare.summary() == full.summary()
    assert len(bare.arrays()["rows"]) == 0
    for name, column in full.mistakes().items():
        np.testing.assert_array_equal(bare.mistakes()[name], column)


def test_many_runs_are_those_of_the_cpu():
    problem = random_problem(3, 2, 2, 1)
    work = jobs(FEW, 1)
    ours, theirs = run_many_on_gpu(problem, work, 5), run_many(problem, work, 5)
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.algorithm, mine.seed) == (other.algorithm, other.seed)
        assert mine.summary == pytest.approx(other.summary, abs=ROUNDING)
        for name, column in other.curves.items():
            np.testing.assert_allclose(mine.curves[name], column, rtol=0, atol=ROUNDING)
        assert mine.mistakes.keys() == other.mistakes.keys()
        np.testing.assert_array_equal(mine.state.counts, other.state.counts)


def test_a_stop_ends_a_batch_after_its_launch():
    stop = threading.Event()
    stop.set()
    with pytest.raises(InterruptedError):
        run_many_on_gpu(random_problem(3, 2, 2, 1), jobs(FEW, 1), 5, stop=stop)


def test_single_precision_stays_near():
    problem = random_problem(3, 2, 2, 1)
    worst = check_equals_cpu(problem, FEW, 4, 1e-5, precision="float32")
    assert worst > 1e-12  # it was single precision
