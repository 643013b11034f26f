"""Kernels as lists of successors are the kernels that they list."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from conftest import problems
from hypothesis import given, strategies as st

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Dense, Sparse
from cmdplab.errors import InputError
from cmdplab.experiments.run_settings import fingerprint


@st.composite
def tables(draw):
    """Kernels [X, A, X] or [H, X, A, X] with zeros in them."""
    X, A, H = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    shape = draw(st.sampled_from([(X, A, X), (H, X, A, X)]))
    table = rng.random(shape) * (rng.random(shape) < 0.5)
    table[..., 0] += table.sum(axis=-1) == 0.0
    return table / table.sum(axis=-1, keepdims=True)


@given(tables(), st.integers(0, 100))
def test_lists_and_tables_answer_alike(table, seed):
    rng = np.random.default_rng(seed)
    sparse, X, A = Sparse.of(table), table.shape[-1], table.shape[-2]
    np.testing.assert_array_equal(sparse.dense(), table)
    dense = Dense(table if table.ndim == 4 else table[None])
    value, pairs = rng.random(X), rng.random((X, A))
    for h in range(len(dense.table)):
        np.testing.assert_allclose(sparse.ahead(h, value), dense.ahead(h, value), atol=1e-14)
        np.testing.assert_allclose(sparse.forward(h, pairs), dense.forward(h, pairs), atol=1e-14)
        for x, a in np.ndindex(X, A):
            for ours, theirs in zip(
                sparse.successors(h, x, a), dense.successors(h, x, a), strict=True
            ):
                np.testing.assert_array_equal(ours, theirs)


@given(tables(), st.integers(0, 100))
def test_the_order_of_a_list_does_not_matter(table, seed):
    sparse = Sparse.of(table)
    order = np.random.default_rng(seed).permutation(sparse.successor.shape[-1])
    again = Sparse(sparse.successor[..., order], sparse.probability[..., order])
    np.testing.assert_array_equal(again.successor, sparse.successor)
    np.testing.assert_array_equal(again.probability, sparse.probability)


@given(problems())
def test_a_problem_of_lists_is_the_problem_of_the_table(problem):
    listed = CMDP(
        Sparse.of(problem.table), problem.reward, problem.threshold, problem.start, problem.horizon
    )
    policy = np.full(problem.opened.shape, 1.0 / problem.actions)
    np.testing.assert_allclose(exact.returns(listed, policy), exact.returns(problem, policy))
    best, ours = exact.greedy(problem, problem.reward[0])[0], exact.greedy(listed, listed.reward[0])
    assert ours[0] == pytest.approx(best, abs=1e-12)


def test_lists_are_saved_and_read(tmp_path):
    rng = np.random.default_rng(0)
    kernel = Sparse(rng.integers(0, 50, (50, 2, 1)), np.ones((50, 2, 1)))
    problem = CMDP(kernel, rng.random((2, 50, 2)), [1.0], horizon=4)
    problem.save(tmp_path / "p.npz")
    again = CMDP.load(tmp_path / "p.npz")
    assert fingerprint(again) == fingerprint(problem)
    assert again.stationary
    assert (tmp_path / "p.npz").stat().st_size < 20_000


@pytest.mark.parametrize(
    ("successor", "probability", "sentence"),
    [
        ([[[0, 2]], [[0, 1]]], [[[0.5, 0.5]]] * 2, r"successor\[0, 0, 1\] is 2, but the states"),
        ([[[0, 1]], [[1, 1]]], [[[0.5, 0.5]]] * 2, r"successor\[1, 0\] lists the state 1 twice"),
        ([[[0, 1]], [[0, 1]]], [[[0.5, 0.4]]] * 2, r"transition\[0, 0\] sums to 0.9"),
        ([[[0, 1]], [[0, 1]]], [[[0.5, 0.5]]], "probability has the shape"),
        ([[[0.0, 1.0]]], [[[0.5, 0.5]]], "whole numbers"),
    ],
)
def test_lists_that_are_no_kernel_are_refused(successor, probability, sentence):
    with pytest.raises(InputError, match=sentence):
        Sparse(np.array(successor), np.array(probability))


def test_a_kernel_too_large_to_write_out_says_so():
    X = 20_000
    kernel = Sparse(np.arange(X)[:, None, None], np.ones((X, 1, 1)))
    problem = CMDP(kernel, np.zeros((1, X, 1)), [], horizon=2)
    with pytest.raises(InputError, match="a dense kernel of 20000 states"):
        _ = problem.table


@given(tables(), st.sampled_from(["csr", "csc", "coo"]))
def test_one_scipy_matrix_for_each_action_is_the_kernel(table, how):
    table = table[0] if table.ndim == 4 else table
    given = [scipy.sparse.csr_array(each).asformat(how) for each in table.transpose(1, 0, 2)]
    np.testing.assert_array_equal(Sparse.from_matrices(given).dense(), table)
    np.testing.assert_array_equal(Sparse.from_matrices(table.transpose(1, 0, 2)).dense(), table)


@given(tables(), st.integers(0, 100))
def test_entries_in_any_order_are_the_kernel_and_those_of_one_place_are_added(table, seed):
    table = table[0] if table.ndim == 4 else table
    x, a, y = np.nonzero(table)
    x, a, y = (np.concatenate([each, each]) for each in (x, a, y))
    order = np.random.default_rng(seed).permutation(len(x))
    x, a, y = x[order], a[order], y[order]
    found = Sparse.from_triplets(x, a, y, 0.5 * table[x, a, y], table.shape[:2])
    np.testing.assert_array_equal(found.dense(), table)


def test_rows_of_closed_actions_are_not_read():
    mask = np.array([[True, False], [True, True]])
    stay = scipy.sparse.csr_array(np.eye(2))
    other = scipy.sparse.csr_array(np.array([[0.0, 7.0], [1.0, 0.0]]))
    found = Sparse.from_matrices([stay, other], mask).dense()
    np.testing.assert_array_equal(found[:, 1], [[1.0, 0.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (([0, 1], [0, 0], [1, 2], [1.0, 1.0]), "entry 1: the next state is 2"),
        (([0, 1], [0, 0], [1, 0], [1.0, 0.5]), r"transition\[1, 0\] sums to 0.5"),
        (([0], [0], [1], [1.0]), r"transition\[1, 0\] sums to 0"),
        (([0, 1], [0, 0], [1, 0], [1.0, -1.0]), r"transition\[1, 0, 0\] is -1"),
        (([0.0, 1.0], [0, 0], [1, 0], [1.0, 1.0]), "states are not whole numbers"),
        (([0], [0, 0], [1, 0], [1.0, 1.0]), "differ in number"),
    ],
)
def test_entries_that_are_no_kernel_are_refused_with_their_place(entries, words):
    state, action, following, probability = entries
    with pytest.raises(InputError, match=words):
        Sparse.from_triplets(state, action, following, probability, (2, 1))


def test_matrices_of_other_shapes_are_refused():
    with pytest.raises(InputError, match="action 1 has the shape"):
        Sparse.from_matrices([np.eye(2), np.eye(3)])
    with pytest.raises(InputError, match="there is none"):
        Sparse.from_matrices([])
