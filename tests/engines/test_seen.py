"""Counts as growing lists of what was seen: the same numbers, at a price that follows visits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.counts import as_rows, as_table, visits_of
from cmdplab.algorithms.running import seen
from cmdplab.algorithms.task import Task
from cmdplab.engines.families import live_session, session
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.numerics.sorting import sort_by_heap, sort_states

X, A, H = 40, 3, 4
# A planner around lists that grow takes longest of all to compile.
ROWS = [
    pytest.param(name, marks=[pytest.mark.slow] * name.startswith("Opt"))
    for name in ("UOpt-RPGPD", "OPDOP", "OptCMDP", "OptCMDP-bonus", "OptPress-PD")
]
COUNTED = pytest.mark.parametrize("dynamics", ["stationary", "per-step"])


def prepared(name, dynamics, observed=True):
    """A row, a problem with few successors of more states than a table is kept for, its task."""
    row = algorithm(name).with_settings(dynamics=dynamics)
    problem = random_problem(X, A, H, 2, concentration=0.02, closed=0.2, stationary=True)
    return row, problem, Task.of(problem, 0.3, feedback="bounded" if observed else "known")


def episodes(problem, count, seed=0):
    """Random episodes through open actions, with rewards."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        states, actions = [problem.start], []
        for h in range(H):
            actions.append(int(rng.choice(np.flatnonzero(problem.opened[h, states[-1]]))))
            states.append(int(rng.choice(X, p=problem.table[h, states[-1], actions[-1]])))
        yield states, actions, rng.random((3, H))


@COUNTED
@pytest.mark.parametrize("name", ROWS)
def test_what_was_seen_teaches_what_a_table_teaches(name, dynamics):
    row, problem, task = prepared(name, dynamics)
    live = live_session(row, task)
    dense = live_session(row, task._replace(support=np.ones((X, A, X), bool)))
    for episode in episodes(problem, 60):
        live.observe(*episode)
        dense.observe(*episode)
    ours, theirs = live.state(), dense.state()
    layers = 1 if dynamics == "stationary" else H
    np.testing.assert_array_equal(as_table(ours.counts, layers, X, A), theirs.counts)
    np.testing.assert_allclose(ours.policy, theirs.policy, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.multiplier, theirs.multiplier, rtol=0, atol=1e-9)
    for x, u in enumerate(np.linspace(0.01, 0.99, X)):
        expected = np.flatnonzero(u < np.cumsum(ours.policy[1, x]))[0]
        assert live.act(1, x, u) == expected


@COUNTED
@pytest.mark.parametrize("name", ROWS)
def test_a_resume_changes_no_bit(name, dynamics):
    row, problem, task = prepared(name, dynamics)
    whole, cut = live_session(row, task), live_session(row, task)
    for k, episode in enumerate(episodes(problem, 40)):
        if k == 17:
            cut = live_session(row, task, cut.state())
        whole.observe(*episode)
        cut.observe(*episode)
    for name, a, b in zip(whole.state()._fields, whole.state(), cut.state(), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


def test_a_table_of_an_older_checkpoint_is_gone_on_with():
    row, problem, task = prepared("UOpt-RPGPD", "per-step")
    live = live_session(row, task)
    for episode in episodes(problem, 20):
        live.observe(*episode)
    state = live.state()
    older = live_session(row, task, state._replace(counts=as_table(state.counts, H, X, A)))
    for episode in episodes(problem, 5, seed=1):
        live.observe(*episode)
        older.observe(*episode)
    np.testing.assert_allclose(live.state().policy, older.state().policy, rtol=0, atol=1e-12)


def test_few_states_are_counted_in_a_table():
    problem = random_problem(5, 2, 3, 1, stationary=True)
    row = algorithm("UOpt-RPGPD").with_settings(dynamics="stationary")
    assert live_session(row, Task.of(problem, 0.3)).state().counts.shape == (1, 5, 2, 5)


def test_known_rewards_and_lists_of_a_session_are_as_before():
    row, problem, task = prepared("UOpt-RPGPD", "stationary", observed=False)
    run = session("cpu", problem, row, task, 0)
    run.play(3)
    assert run.state().counts.shape == (1, X, A, X)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 3)), min_size=1))
def test_the_store_counts_like_a_dictionary(steps):
    """Whatever is visited in whatever order, lists that move and pools that grow included."""
    counts = seen.stored(np.zeros((0, 5)), np.zeros((1, 4, 2)))
    counts = counts._replace(state=counts.state[:1].copy(), visits=counts.visits[:1].copy())
    expected: dict[tuple[int, int, int], float] = {}
    for x, a, y in steps:
        there = np.array([x, y]), np.array([a])
        counts = seen.with_places(counts, *there)
        seen.seen_visit(counts, 0, y, a * 8 + x, True, 1.0)
        expected[x, a, y] = expected.get((x, a, y), 0.0) + 1.0
    rows = seen.natural(counts, 4, 2)
    assert {tuple(map(int, row[1:4])): row[4] for row in rows} == expected
    table = as_table(rows, 1, 4, 2)
    np.testing.assert_array_equal(visits_of(rows, 1, 4, 2), table.sum(axis=-1))
    np.testing.assert_array_equal(as_table(as_rows(table), 1, 4, 2), table)
    assert counts.size[seen.LONGEST] == counts.used.max()


def test_memory_follows_visits():
    states, horizon = 30_000, 5
    task = Task(np.zeros((2, horizon, states, 2)), np.array([1.0]), 0, 1.0, feedback="bounded")
    row = algorithm("UOpt-RPGPD").with_settings(dynamics="stationary")
    live = live_session(row, task)  # a table would take 14 GB
    for k in range(30):
        path = [0, *range(1000 * k + 1, 1000 * k + 1 + horizon)]
        live.observe(path, [0] * horizon, np.zeros((2, horizon)))
    assert live.state().counts.shape == (30 * horizon, 5)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 10**6))
def test_a_heap_finds_the_order_that_insertion_finds(values, seed):
    given = np.array(values, float)
    order = np.random.default_rng(seed).permutation(len(values))
    by_heap = order.copy()
    sort_by_heap(given, by_heap)
    sort_states(given, order)
    expected = np.lexsort((np.arange(len(values)), -given))
    np.testing.assert_array_equal(by_heap, expected)
    np.testing.assert_array_equal(order, expected)


def test_many_states_out_of_order_are_sorted_by_a_heap():
    values = np.arange(5000.0)
    order = np.arange(5000)
    sort_states(values, order)
    np.testing.assert_array_equal(order, np.arange(5000)[::-1])
