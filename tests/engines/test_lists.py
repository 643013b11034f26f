"""Lists of successors instead of tables: the same numbers, at a price that follows the lists."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles import session

from cmdplab.algorithms import ALGORITHMS, algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.families.softmax_search import SoftmaxSearch
from cmdplab.algorithms.row import ONE_CONSTRAINT, STATIONARY
from cmdplab.algorithms.running.layout import Storage
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Dense, Sparse, lists
from cmdplab.environments import make
from cmdplab.environments.grids import deterministic, landings, slippery, slippery_lists
from cmdplab.environments.mazes import slippery_grid
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.errors import InputError
from cmdplab.solvers import Box, plan, solve

# The search of a softmax over lists is compiled for nothing else in the quick suite.
ROWS = pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=[pytest.mark.slow] * isinstance(row, SoftmaxSearch))
        for row in ALGORITHMS.values()
    ],
    ids=lambda row: f"{row.name}-{row.preset}",
)


def few_successors(seed: int, stationary: bool, constraints: int = 1, states: int = 20) -> CMDP:
    """A problem whose rows have few successors, with some actions closed."""
    base = random_problem(states, 3, 4, constraints, seed, closed=0.2)
    rng = np.random.default_rng(seed)
    table = base.table[0] if stationary else base.table
    table = table * (rng.random(table.shape) < 0.2)
    table[..., 0] += table.sum(axis=-1) == 0.0
    table /= table.sum(axis=-1, keepdims=True)
    return CMDP(table, base.reward, 0.3 * base.threshold, base.start, mask=base.mask)


def as_lists(problem: CMDP) -> CMDP:
    table = problem.table[0] if problem.stationary else problem.table
    return replace(problem, transition=Sparse.of(table))


@ROWS
@pytest.mark.parametrize("stationary", [True, False])
def test_every_row_learns_the_same_from_lists(row, stationary):
    problem = few_successors(1, stationary, 1 if ONE_CONSTRAINT in row.needs else 2)
    if STATIONARY in row.needs and not stationary:
        for each in (problem, as_lists(problem)):
            with pytest.raises(InputError, match="the transitions of custom differ between steps"):
                task_for(row, each, solve(problem))
        return
    task = task_for(row, problem, solve(problem))
    dense = session("cpu", problem, row, task, 3)
    listed = session("cpu", as_lists(problem), row, task, 3)
    ours, theirs = listed.play(150), dense.play(150)
    np.testing.assert_allclose(ours.returns, theirs.returns, atol=1e-9)
    np.testing.assert_allclose(ours.multiplier, theirs.multiplier, atol=1e-9)


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OPDOP", "OptCMDP", "OptPress-PD"])
@pytest.mark.parametrize("rewards", ["known", "bernoulli"])
def test_what_steps_count_together_is_the_same_in_lists(name, rewards):
    problem = few_successors(1, True, 2)
    problem = replace(problem, reward=np.repeat(problem.reward[:, :1], problem.horizon, axis=1))
    row = algorithm(name).with_settings(dynamics="stationary")
    task = task_for(row, problem, solve(problem), rewards=rewards)
    dense, listed = (session("cpu", each, row, task, 3) for each in (problem, as_lists(problem)))
    np.testing.assert_allclose(listed.play(150).returns, dense.play(150).returns, atol=1e-9)


@ROWS
def test_neither_chunks_nor_a_resume_change_a_bit_of_lists(row):
    problem = as_lists(few_successors(2, True))
    task = task_for(row, problem, solve(problem))
    whole = session("cpu", problem, row, task, 5)
    at_once = whole.play(60)
    cut = session("cpu", problem, row, task, 5)
    pieces = [cut.play(1), cut.play(30)]
    resumed = session("cpu", problem, row, task, 5, cut.state())
    pieces.append(resumed.play(29))
    for field in ("returns", "multiplier"):
        joined = np.concatenate([getattr(piece, field) for piece in pieces])
        np.testing.assert_array_equal(joined, getattr(at_once, field))
    for ours, theirs in zip(resumed.state(), whole.state(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["OptCMDP", "DOPE"])
def test_rounding_does_not_choose_between_plans_that_are_equally_good(name, monkeypatch):
    """Mars rover is full of ties: many ways round a pit are equally long."""
    problem, row = make("mars-rover"), algorithm(name)
    task = task_for(row, problem, solve(problem))
    listed = session("cpu", problem, row, task, 0)
    monkeypatch.setattr("cmdplab.cmdp.transitions.SPARSE_FROM", 10**9)
    dense = session("cpu", problem, row, task, 0)
    ours, theirs = listed.play(40), dense.play(40)
    np.testing.assert_allclose(ours.returns, theirs.returns, atol=1e-9)
    np.testing.assert_allclose(listed.state().policy, dense.state().policy, atol=1e-9)


@given(st.integers(0, 10**6), st.booleans(), st.integers(0, 3))
def test_the_optimum_of_lists_is_that_of_the_table(seed, stationary, constraints):
    problem = few_successors(seed, stationary, constraints, states=7)
    ours, theirs = solve(as_lists(problem)), solve(problem)
    assert ours.feasible == theirs.feasible
    if ours.feasible:
        assert ours.value == pytest.approx(theirs.value, abs=1e-9)
        assert ours.duality_gap <= 1e-9
        assert ours.slater_gap == pytest.approx(theirs.slater_gap, abs=1e-9)


def test_a_plan_of_lists_has_its_occupancy():
    problem = as_lists(few_successors(4, True))
    found = plan(Box.of(problem), problem.reward, problem.threshold, problem.start)
    np.testing.assert_allclose(found.occupancy.sum(axis=(1, 2)), 1.0, atol=1e-12)
    values = np.einsum("nhxa,hxa->n", problem.reward, found.occupancy)
    np.testing.assert_allclose(values, found.returns, atol=1e-10)


def test_the_data_choose_the_storage():
    moves = deterministic(landings(8, 8))
    few = lists(Dense(np.broadcast_to(moves, (3, *moves.shape))))
    assert few is not None
    np.testing.assert_array_equal(few.dense(), moves)
    small, full = deterministic(landings(3, 3)), np.full((64, 2, 64), 1.0 / 64.0)
    assert lists(Dense(small[None])) is None
    assert lists(Dense(full[None])) is None


def test_states_are_interchangeable_where_the_problem_is_a_table():
    """A table of few successors is learned in lists, and its state is one of tables: both engines
    go on from it alike.
    """
    table = slippery(deterministic(landings(7, 7)), 0.2)
    rng = np.random.default_rng(0)
    problem = CMDP(table, rng.random((2, 3, 49, 4)), [0.5])
    row = algorithm("UOpt-RPGPD")
    task = task_for(row, problem, solve(problem))
    assert isinstance(Box.of(problem).kernel, Sparse)
    assert Storage.of(problem, task).listed is not None
    cpu = session("cpu", problem, row, task, 1)
    cpu.play(20)
    state = cpu.state()
    assert state.counts.shape == (3, 49, 4, 49)
    assert state.counts.sum() == 60.0
    ours, theirs = cpu.play(3), session("host", problem, row, task, 1, state).play(3)
    np.testing.assert_allclose(ours.returns, theirs.returns, atol=1e-10)


@given(st.integers(2, 6), st.integers(2, 6), st.floats(0.0, 1.0))
def test_slippery_lists_are_slippery_moves(rows, columns, slip):
    landing = landings(rows, columns)
    table = slippery(deterministic(landing), slip)
    np.testing.assert_allclose(slippery_lists(landing, slip).dense(), table, atol=1e-12)


def test_nothing_of_the_size_of_a_table_is_ever_made():
    """60 x 60 cells: one dense kernel would take 415 MB; all of a run takes a tenth of it."""
    tracemalloc.start()
    try:
        problem = slippery_grid(60, horizon=12)
        row = algorithm("UOpt-RPGPD")
        task = task_for(row, problem, solve(problem))
        for name in ("UOpt-RPGPD", "OptCMDP", "Triple-Q"):
            learner = session("cpu", problem, algorithm(name), task, 0)
            learner.play(2)
            learner.state()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 120e6
