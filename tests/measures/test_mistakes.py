"""Mistakes for every epsilon at once: exact, streaming, and the same whatever the chunks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cmdplab.algorithms.learner import Chunk
from cmdplab.measures.measures import Measures
from cmdplab.measures.mistakes import Mistakes, epsilons


def counted(values, cuts=()):
    grid = epsilons(10)
    mistakes = Mistakes(grid, values.shape[1])
    episodes = np.arange(1.0, len(values) + 1)
    ends = [0, *sorted(cuts), len(values)]
    for first, end in itertools.pairwise(ends):
        mistakes.add(values[first:end], episodes[first:end])
    return grid, mistakes


def test_the_grid_spans_five_decades_below_the_horizon():
    grid = epsilons(10)
    assert len(grid) >= 200
    assert (grid[0], grid[-1]) == pytest.approx((1e-4, 10.0))
    assert np.all(np.diff(np.log(grid)) > 0.0)


@given(
    seed=st.integers(0, 10**6),
    length=st.integers(1, 300),
    cuts=st.lists(st.integers(0, 300), max_size=4),
)
def test_counts_are_those_of_the_definition(seed, length, cuts):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(length, 2)) * 10.0 ** rng.uniform(-6, 1.2, (length, 2))
    # Values that lie exactly on the grid are no mistakes for that epsilon: > and not >=.
    grid = epsilons(10)
    values[rng.random(values.shape) < 0.2] = grid[rng.integers(len(grid))]
    _, mistakes = counted(values, [min(cut, length) for cut in cuts])
    above = values[:, :, None] > grid
    np.testing.assert_array_equal(mistakes.counts(), above.sum(axis=0))
    episodes = np.arange(1, length + 1)[:, None, None]
    np.testing.assert_array_equal(mistakes.last(), (above * episodes).max(axis=0))


def test_a_power_law_has_the_mistakes_of_a_power_law():
    # gap^k = k^(-1/2): it exceeds eps for k < eps^-2, and the last mistake is the number of them.
    k = np.arange(1.0, 100_001.0)
    grid, mistakes = counted((k**-0.5)[:, None])
    shown = (grid > 1e-2) & (grid < 0.5)
    exact = np.ceil(grid[shown] ** -2.0) - 1
    np.testing.assert_allclose(mistakes.counts()[0, shown], exact, atol=1)
    np.testing.assert_array_equal(mistakes.counts()[0, shown], mistakes.last()[0, shown])


def chunk(returns):
    return Chunk(returns, np.zeros((len(returns), returns.shape[1] - 1)))


def test_either_counts_an_episode_once():
    # Optimum 1, threshold 1: gaps .5, 0, .5 and violations 0, .5, .5.
    measures = Measures(1.0, np.ones(1), 2)
    measures.add(chunk(np.array([[0.5, 1.0], [1.0, 0.5], [0.5, 0.5]])))
    found = measures.mistakes()
    at = int(np.searchsorted(found["epsilon"], 0.1))
    counts = [found[f"{name}_mistakes"][at] for name in ("gap", "violation", "either")]
    assert counts == [2, 2, 3]
    assert found["gap_last_mistake"][at] == 3
    beyond = int(np.searchsorted(found["epsilon"], 0.6))
    assert found["either_mistakes"][beyond] == 0
    assert found["either_last_mistake"][beyond] == 0


@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(1, 199), max_size=5))
def test_strong_regret_is_the_integral_of_mistakes(seed, cuts):
    # integral of N_eps d eps = sum_k [gap^k]_+; the grid brackets it.
    rng = np.random.default_rng(seed)
    returns = rng.random((200, 2)) * 2.0
    measures = Measures(1.0, np.array([0.7]), 2)
    for piece in np.split(returns, sorted(cuts)):
        if len(piece):
            measures.add(chunk(piece))
    found, s = measures.mistakes(), measures.summary()
    for name, regret in (("gap", s.strong_regret), ("violation", s.strong_violation_regret)):
        counts, widths = found[f"{name}_mistakes"], np.diff(found["epsilon"])
        low = np.sum(counts[1:] * widths)
        high = np.sum(counts[:-1] * widths) + 200 * found["epsilon"][0]
        assert low <= regret + 1e-9
        assert regret <= high + 1e-9


def test_without_constraints_there_is_one_series():
    measures = Measures(1.0, np.zeros(0), 2)
    measures.add(chunk(np.array([[0.5], [1.0]])))
    assert set(measures.mistakes()) == {"epsilon", "gap_mistakes", "gap_last_mistake"}
