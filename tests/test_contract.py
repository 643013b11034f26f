"""One contract for everything registered: what must hold of every algorithm on every shape."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from conftest import SHAPES, random_problem

from cmdplab import exact
from cmdplab.algorithms import ALGORITHMS
from cmdplab.algorithms.primal_dual import OPTIMISTIC_CAP, UNIFORM_ROW, ZERO_ROW
from cmdplab.algorithms.task import Task
from cmdplab.engines import kernels
from cmdplab.engines.cpu import CpuSession
from cmdplab.engines.host import HostSession
from cmdplab.engines.plain import PlainPrimalDual
from cmdplab.solvers import solve

ROWS = pytest.mark.parametrize(
    "row", ALGORITHMS.values(), ids=lambda row: f"{row.name}-{row.preset}"
)
SHAPE = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


def prepared(shape):
    problem = random_problem(*shape)
    return problem, Task.of(problem, solve(problem).slack)


def assert_same(ours, theirs, tolerance):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


@ROWS
@SHAPE
def test_both_engines_give_the_same_numbers(row, shape):
    problem, task = prepared(shape)
    cpu, host = (
        CpuSession(problem, row, task, 3),
        HostSession(problem, PlainPrimalDual(row, task), 3),
    )
    assert_same(cpu.play(60), host.play(60), 1e-11)
    assert_same(cpu.state(), host.state(), 1e-10)


@pytest.mark.parametrize("preset", ["released", "printed"])
def test_engines_agree_over_thousands_of_episodes(preset):
    problem, task = prepared((3, 2, 2, 1))
    row = ALGORITHMS["UOpt-RPGPD", preset]
    cpu, host = (
        CpuSession(problem, row, task, 0),
        HostSession(problem, PlainPrimalDual(row, task), 0),
    )
    assert_same(cpu.play(4000), host.play(4000), 1e-9)
    assert_same(cpu.state(), host.state(), 1e-9)


@pytest.mark.parametrize("unvisited", [ZERO_ROW, UNIFORM_ROW, OPTIMISTIC_CAP])
@pytest.mark.parametrize("cap", [1.0, np.inf])
def test_engines_agree_on_every_named_choice(unvisited, cap):
    problem, task = prepared((4, 3, 3, 1))
    row = replace(ALGORITHMS["UOpt-RPGPD", "printed"], unvisited=unvisited, radius_cap=cap)
    cpu, host = (
        CpuSession(problem, row, task, 1),
        HostSession(problem, PlainPrimalDual(row, task), 1),
    )
    assert_same(cpu.play(60), host.play(60), 1e-11)


@ROWS
@SHAPE
def test_a_run_keeps_its_promises(row, shape):
    problem, task = prepared(shape)
    session = CpuSession(problem, row, task, 5)
    chunk = session.play(500)
    state = session.state()
    assert np.all(np.isfinite(chunk.returns))
    assert np.all(state.policy >= 0.0)
    np.testing.assert_allclose(state.policy.sum(axis=-1), 1.0, atol=1e-12)
    np.testing.assert_allclose(np.exp(state.log_policy), state.policy, atol=1e-12)
    assert np.all(chunk.multiplier >= 0.0)
    np.testing.assert_array_equal(state.counts.sum(axis=(1, 2, 3)), 500.0)
    assert np.all(state.counts[problem.transition == 0.0] == 0.0)
    assert state.episode == 500
    uniform = np.full(state.policy.shape, 1.0 / problem.actions)
    np.testing.assert_allclose(chunk.returns[0], exact.returns(problem, uniform), atol=1e-12)
    after = session.play(1)
    np.testing.assert_allclose(after.returns[0], exact.returns(problem, state.policy), atol=1e-12)


@ROWS
def test_neither_chunks_nor_a_resume_change_a_bit(row):
    problem, task = prepared((9, 3, 4, 2))
    whole = CpuSession(problem, row, task, 11)
    at_once = whole.play(400)
    cut = CpuSession(problem, row, task, 11)
    pieces = [cut.play(size) for size in (1, 2, 97, 100)]
    resumed = CpuSession(problem, row, task, 11, cut.state())
    pieces += [resumed.play(size) for size in (199, 1)]
    for field in ("returns", "multiplier"):
        joined = np.concatenate([getattr(piece, field) for piece in pieces])
        np.testing.assert_array_equal(joined, getattr(at_once, field))
    for ours, theirs in zip(resumed.state(), whole.state(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_another_seed_is_another_run_and_another_problem_is_seen():
    problem, task = prepared((4, 3, 3, 1))
    row = ALGORITHMS["UOpt-RPGPD", "released"]
    first = CpuSession(problem, row, task, 0).play(50).returns
    assert not np.array_equal(first, CpuSession(problem, row, task, 1).play(50).returns)
    other = random_problem(4, 3, 3, 1, seed=9)
    seen = CpuSession(other, row, Task.of(other, 1.0), 0).play(1).returns[0]
    uniform = np.full((3, 4, 3), 1 / 3)
    np.testing.assert_allclose(seen, exact.returns(other, uniform), atol=1e-13)


def test_no_choice_of_algorithm_size_or_number_compiles_anything_again():
    for row, shape in zip(ALGORITHMS.values(), itertools.cycle(SHAPES.values())):
        problem, task = prepared(shape)
        CpuSession(problem, replace(row, delta=0.05, bonus_scale=0.3), task, 0).play(3)
    assert len(kernels.play.signatures) == 1
    assert len(kernels.improve.signatures) <= 1
