"""Randomness is data: a number depends on seed, episode, step and draw alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cmdplab.algorithms.running.episodes import draw_action
from cmdplab.algorithms.running.layout import world
from cmdplab.algorithms.running.storage import draw_state
from cmdplab.engines.host import roll_out
from cmdplab.environments import make
from cmdplab.numerics.noise import blocks_per_episode, philox_key, uniforms


@given(
    seed=st.integers(0, 2**40),
    horizon=st.integers(1, 12),
    first=st.integers(1, 10**12),
    cut=st.integers(0, 20),
)
def test_seeking_equals_replaying(seed, horizon, first, cut):
    whole = uniforms(seed, first, 20, horizon)
    left, right = (
        uniforms(seed, first, cut, horizon),
        uniforms(seed, first + cut, 20 - cut, horizon),
    )
    np.testing.assert_array_equal(whole, np.concatenate([left, right]))
    assert np.all((whole >= 0.0) & (whole < 1.0))


def philox(counter: int, key: tuple[int, int]) -> list[int]:
    """Philox4x64 with ten rounds, from its definition (Salmon et al., 2011)."""
    word = (1 << 64) - 1
    c = [(counter >> (64 * i)) & word for i in range(4)]
    k0, k1 = key
    for _ in range(10):
        left, right = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = [(right >> 64) ^ c[1] ^ k0, right & word, (left >> 64) ^ c[3] ^ k1, left & word]
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & word, (k1 + 0xBB67AE8584CAA73B) & word
    return c


def test_the_stream_is_philox_by_its_definition():
    H, first = 3, 5  # six numbers an episode: two blocks of four, of which two numbers are unused
    key = tuple(int(each) for each in philox_key(7))
    for k, numbers in enumerate(uniforms(7, first, 3, H)):
        block = (first - 1 + k) * blocks_per_episode(H) + 1  # NumPy counts before it draws
        raw = philox(block, key) + philox(block + 1, key)
        expected = [(each >> 11) * 2.0**-53 for each in raw[: 2 * H]]
        np.testing.assert_array_equal(numbers.ravel(), expected)


def test_the_key_of_a_seed_is_pinned():
    # If this changes, every recorded run means something else.
    assert [hex(each) for each in philox_key(7)] == ["0x3819da2ed7b54d03", "0xfaed8d3810e1c57c"]


def test_seeds_and_episodes_do_not_share_numbers():
    drawn = np.concatenate([uniforms(seed, 1, 500, 3).ravel() for seed in range(4)])
    assert len(np.unique(drawn)) == len(drawn)


@given(seed=st.integers(0, 10**6), u=st.floats(0, 1, exclude_max=True))
def test_inverse_cdf_never_chooses_what_is_impossible(seed, u):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(6, 0.05))
    p[rng.random(6) < 0.4] = 0.0
    p = p / p.sum() if p.sum() else np.eye(6)[0]
    assert p[draw_action(np.repeat(p, 8), 3, u, 8)] > 0.0
    assert p[draw_action(np.repeat(p, 8), 3, 1.0 - 2**-53, 8)] > 0.0


def test_states_are_drawn_alike_on_both_engines():
    problem = make("random-printed", 3)
    cumulative = world(problem).cumulative
    policy = np.full((10, 30, 3), 1 / 3)
    for noise in uniforms(0, 1, 200, 10):
        episode = roll_out(problem, policy, noise)
        for h, (x, a) in enumerate(zip(episode.states, episode.actions, strict=False)):
            y = draw_state(cumulative[h, x, a], noise[h, 1])
            assert y == episode.states[h + 1]
            assert problem.transition[h, x, a, y] > 0.0


@pytest.mark.parametrize("u", [0.0, 0.5, 1.0 - 2**-53])
def test_the_last_possible_state_catches_rounding(u):
    cumulative = np.array([0.0, 0.3, 2.0, 2.0])
    assert draw_state(cumulative, u) in (1, 2)
