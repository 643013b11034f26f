"""Randomness as data: episode k, step h, draw i of a seed is always the same number.

Uniforms come from NumPy's counter-based Philox, so that a chunk of episodes is found by seeking,
not by replaying: neither the chunk size, nor the engine, nor the number of workers, nor an
interruption changes them. All algorithms on one seed share them (common random numbers).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmdplab.types import Array

_EPISODES, _REWARDS = 1, 2  # streams; instances are drawn from streams of their own
_LANES = 4  # Philox4x64 makes four numbers for each value of its counter


def philox_key(seed: int, stream: int = _EPISODES) -> npt.NDArray[np.uint64]:
    """[2], the key of a seed's episodes: the same in every NumPy version and order of calls."""
    child = np.random.SeedSequence(seed, spawn_key=(stream,))
    return child.generate_state(2, np.uint64).astype(np.uint64)


def blocks_per_episode(horizon: int) -> int:
    """Counter values that one episode owns: two uniforms a step, rounded up to whole blocks."""
    return _blocks(2 * horizon)


def uniforms(seed: int, first_episode: int, episodes: int, horizon: int) -> Array:
    """[episodes, H, 2] for the episodes first_episode, first_episode + 1, ... (counted from 1).

    Entry [., h, 0] chooses the action of step h, entry [., h, 1] the next state.
    """
    drawn = _drawn(philox_key(seed), first_episode, episodes, 2 * horizon)
    return drawn.reshape(episodes, horizon, 2)


def reward_uniforms(
    seed: int, first_episode: int, episodes: int, horizon: int, rewards: int
) -> Array:
    """[episodes, H, rewards], for samples of rewards: of a stream that no roll-out reads."""
    key = philox_key(seed, _REWARDS)
    drawn = _drawn(key, first_episode, episodes, horizon * rewards)
    return drawn.reshape(episodes, horizon, rewards)


def _blocks(numbers: int) -> int:
    return -(-numbers // _LANES)


def _drawn(key: npt.NDArray[np.uint64], first_episode: int, episodes: int, numbers: int) -> Array:
    blocks = _blocks(numbers)
    generator = np.random.Philox(key=key)
    generator.advance((first_episode - 1) * blocks)
    drawn = np.random.Generator(generator).random((episodes, blocks * _LANES))
    return np.ascontiguousarray(drawn[:, :numbers])  # one layout, one compiled kernel
