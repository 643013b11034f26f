"""Randomness as data: each episode k, step h and draw i of a seed fixes one number.

Uniforms come from NumPy's counter-based Philox, so that a chunk of episodes is found by seeking,
not by replaying. The chunk size, the engine, the number of workers and interruptions do not change
the uniforms. All algorithms on one seed share them (common random numbers).

A GPU computes the uniforms in its kernels, by `draw_block`. Philox4x64-10 (Salmon et al. 2011) sets
x = (counter, 0, 0, 0), and ten times, with a key that grows by a constant each time:

    x_0, x_1, x_2, x_3 <- hi(M1 x_2) ^ x_1 ^ k_0, lo(M1 x_2), hi(M0 x_0) ^ x_3 ^ k_1, lo(M0 x_0)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab.numerics.compiling import formula
from cmdplab.types import Array

_EPISODES, _REWARDS, _COINS = 1, 2, 3  # streams; instances are drawn from streams of their own
_LANES = 4  # Philox4x64 makes four numbers for each value of its counter

ROUNDS = 10
_GROWTH = np.array([0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B], np.uint64)
_FIRST, _SECOND = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_LOW, _HALF, _DROPPED = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(11)
_ULP = 2.0**-53  # a uniform is the upper 53 bits of a word


def philox_key(seed: int, stream: int = _EPISODES) -> npt.NDArray[np.uint64]:
    """Return the key [2] of a seed's episodes, equal in every NumPy version and order of calls."""
    child = np.random.SeedSequence(seed, spawn_key=(stream,))
    return child.generate_state(2, np.uint64).astype(np.uint64)


def blocks_per_episode(horizon: int) -> int:
    """Return the counter values of one episode: two uniforms a step, rounded up to whole blocks."""
    return _blocks(2 * horizon)


def uniforms(seed: int, first_episode: int, episodes: int, horizon: int) -> Array:
    """Return uniforms [episodes, H, 2] from episode `first_episode` on, counted from 1.

    Entry [., h, 0] chooses the action of step h, entry [., h, 1] the next state.
    """
    drawn = _drawn(philox_key(seed), first_episode, episodes, 2 * horizon)
    return drawn.reshape(episodes, horizon, 2)


def reward_uniforms(
    seed: int, first_episode: int, episodes: int, horizon: int, rewards: int
) -> Array:
    """Return uniforms [episodes, H, rewards] for samples of rewards, from a separate stream."""
    key = philox_key(seed, _REWARDS)
    drawn = _drawn(key, first_episode, episodes, horizon * rewards)
    return drawn.reshape(episodes, horizon, rewards)


def coin_uniforms(seed: int, first_episode: int, episodes: int) -> Array:
    """Return one uniform per episode, [episodes], from a separate stream."""
    return _drawn(philox_key(seed, _COINS), first_episode, episodes, 1)[:, 0]


def _blocks(numbers: int) -> int:
    return -(-numbers // _LANES)


def _drawn(key: npt.NDArray[np.uint64], first_episode: int, episodes: int, numbers: int) -> Array:
    blocks = _blocks(numbers)
    generator = np.random.Philox(key=key)
    generator.advance((first_episode - 1) * blocks)
    drawn = np.random.Generator(generator).random((episodes, blocks * _LANES))
    return np.ascontiguousarray(drawn[:, :numbers])  # one layout, one compiled kernel


def round_keys(seed: int) -> npt.NDArray[np.uint64]:
    """Return the two keys of each round, [2 * ROUNDS], for the episodes of a seed."""
    rounds = np.arange(ROUNDS, dtype=np.uint64)[:, None]
    return np.asarray((philox_key(seed) + rounds * _GROWTH).ravel(), np.uint64)


@formula
def _product(a: Any, b: Any) -> Any:
    """Return the upper and the lower word of a b, from products of half words, without overflow."""
    low = (a & _LOW) * (b & _LOW)
    left, right = (a & _LOW) * (b >> _HALF), (a >> _HALF) * (b & _LOW)
    cross = (low >> _HALF) + (left & _LOW) + (right & _LOW)
    high = (a >> _HALF) * (b >> _HALF) + (left >> _HALF) + (right >> _HALF) + (cross >> _HALF)
    return high, ((cross & _LOW) << _HALF) | (low & _LOW)


@formula
def draw_block(keys: Any, block: Any, out: Any, first: Any) -> None:
    """Write block 0, 1, ... of a stream to out[first : first + 4]. NumPy counts before it draws."""
    x0, x1 = np.uint64(block) + np.uint64(1), np.uint64(0)
    x2, x3 = np.uint64(0), np.uint64(0)
    for each in range(ROUNDS):
        high0, low0 = _product(_FIRST, x0)
        high1, low1 = _product(_SECOND, x2)
        x0, x1 = high1 ^ x1 ^ keys[2 * each], low1
        x2, x3 = high0 ^ x3 ^ keys[2 * each + 1], low0
    out[first] = np.float64(x0 >> _DROPPED) * _ULP
    out[first + 1] = np.float64(x1 >> _DROPPED) * _ULP
    out[first + 2] = np.float64(x2 >> _DROPPED) * _ULP
    out[first + 3] = np.float64(x3 >> _DROPPED) * _ULP
