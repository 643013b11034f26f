"""Measures against sums written out, and the grid against its promise."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from cmdplab.algorithms.learner import Chunk
from cmdplab.measures.measures import TAIL, Measures, on_grid


def synthetic(episodes: int, N: int, seed: int = 0) -> Chunk:
    rng = np.random.default_rng(seed)
    return Chunk(rng.normal(2.0, 1.0, (episodes, 1 + N)), rng.random((episodes, N)))


def measured(chunk: Chunk, cuts: list[int]) -> Measures:
    measures = Measures(2.1, np.full(chunk.multiplier.shape[1], 1.9), 3)
    for start, end in zip([0, *cuts], [*cuts, len(chunk.returns)], strict=True):
        if end > start:
            measures.add(Chunk(chunk.returns[start:end], chunk.multiplier[start:end]))
    return measures


def test_the_grid_is_every_episode_then_512_an_octave():
    k = np.arange(1, 2**16 + 1, dtype=float)
    grid = k[on_grid(k)]
    np.testing.assert_array_equal(grid[:1023], np.arange(1, 1024))
    for octave in range(10, 16):
        inside = grid[(grid >= 2**octave) & (grid < 2 ** (octave + 1))]
        assert len(inside) == 512


def test_sums_are_those_of_the_paper():
    chunk = synthetic(5000, 2)
    gap = 2.1 - chunk.returns[:, 0]
    violation = np.max(1.9 - chunk.returns[:, 1:], axis=1)
    s = measured(chunk, []).summary()
    np.testing.assert_allclose(s.weak_regret, gap.sum())
    np.testing.assert_allclose(s.strong_regret, np.maximum(gap, 0).sum())
    np.testing.assert_allclose(s.weak_violation_regret, violation.sum())
    np.testing.assert_allclose(s.strong_violation_regret, np.maximum(violation, 0).sum())
    np.testing.assert_allclose(s.tail_std, gap.std())
    assert (s.final_gap, s.final_violation) == (gap[-1], violation[-1])


@given(
    episodes=st.integers(1, 6000),
    N=st.integers(0, 3),
    cuts=st.lists(st.integers(0, 6000), max_size=6),
)
def test_chunks_do_not_change_a_bit(episodes, N, cuts):
    chunk = synthetic(episodes, N)
    whole = measured(chunk, [])
    pieces = measured(chunk, sorted(min(cut, episodes) for cut in cuts))
    assert whole.summary() == pieces.summary()
    for name, column in whole.curves().items():
        np.testing.assert_array_equal(column, pieces.curves()[name])


@given(spike=st.integers(1, 20_000), height=st.floats(5.0, 9.0))
def test_no_spike_can_be_thinned_away(spike, height):
    returns = np.zeros((20_000, 2))
    returns[spike - 1] = [-height, height]
    curves = measured(Chunk(returns, np.zeros((20_000, 1))), [7001]).curves()
    assert curves["gap_max"].max() == 2.1 + height
    assert curves["violation_min"].min() == 1.9 - height
    where = np.searchsorted(curves["episode"], spike)
    assert curves["gap_max"][where] == 2.1 + height


def test_the_curve_carries_the_multipliers_and_sums_of_its_episodes():
    chunk = synthetic(3000, 2)
    curves = measured(chunk, [1100]).curves()
    at = curves["episode"].astype(int) - 1
    for n in (0, 1):
        np.testing.assert_array_equal(curves[f"multiplier_{n + 1}"], chunk.multiplier[at, n])
        expected = 1.9 - chunk.returns[at, n + 1]
        np.testing.assert_array_equal(curves[f"violation_{n + 1}"], expected)
    total = np.cumsum(np.maximum(2.1 - chunk.returns[:, 0], 0.0))
    np.testing.assert_allclose(curves["strong_regret"], total[at], rtol=1e-12)
    assert TAIL == 10_000


def test_memory_is_that_of_a_thinned_curve_whatever_the_length():
    # All but the curve has one size from TAIL episodes on. The curve has 1023 rows up to 1023, then
    # 512 an octave: 10^8 episodes are ten octaves more than 10^5, half a megabyte.
    measures = Measures(1.0, np.ones(1), 2)
    done, rest, curve = 0, {}, {}
    for episodes in (1_000, 100_000, 1_000_000):
        while done < episodes:
            measures.add(synthetic(1_000, 1, done))
            done += 1_000
        sizes = {name: array.nbytes for name, array in measures.arrays().items()}
        curve[episodes] = sizes.pop("rows")
        rest[episodes] = sum(sizes.values())
    assert rest[100_000] == rest[1_000_000]
    assert rest[1_000] == rest[1_000_000] - 8 * (TAIL - 1_000)
    a_row = curve[1_000] / 1_000
    assert curve[100_000] / a_row == 1023 + 512 * 6 + 100_000 // 2**7 - 2**9 + 1
    assert curve[1_000_000] / a_row == 1023 + 512 * 9 + 1_000_000 // 2**10 - 2**9 + 1
    assert curve[1_000_000] + rest[1_000_000] < 1e6
    assert measures.curves()["episode"][-1] == 1_000_000


def test_without_constraints_there_is_no_violation():
    measures = measured(synthetic(100, 0), [])
    assert measures.summary().final_violation is None
    assert measures.summary().strong_violation_regret is None
    assert not any("violation" in name for name in measures.curves())
