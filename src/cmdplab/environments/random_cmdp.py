"""The paper's random CMDP (Appendix D), in three forms.

P_h(. | x, a) ~ Dirichlet(0.1, ..., 0.1), independent over h, x, a; the start state is drawn once;
b = half of the largest attainable utility. The forms differ in the rewards:

- printed: r^0 is 0 with probability 1/2, else uniform on [0, 1]; r^1 = 1 - r^0   (the paper's text)
- released: r^0 is 0 or 1 with probability 1/2 each; r^1 = 1 - r^0   (the authors' notebook)
- independent: r^0 as printed, and r^1 drawn the same way but independently of r^0   (ours)

With r^1 = 1 - r^0 the values of every policy add up to H, so that gap and violation are one number
and the optimal multiplier is 1 whenever the constraint binds; the third form has no such shortcut.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cmdplab.environments.checks import checked_seed, checked_sizes
from cmdplab.exact import greedy
from cmdplab.problem import CMDP, Array

CONCENTRATION = 0.1
# NumPy promises that RandomState draws the same numbers for ever; its Generator does not.
Draw = Callable[[np.random.RandomState, tuple[int, ...]], tuple[Array, Array]]


def printed_rewards(random: np.random.RandomState, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """(r^0, r^1) as the paper prints them."""
    objective = _half_uniform(random, shape)
    return objective, 1.0 - objective


def released_rewards(random: np.random.RandomState, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """(r^0, r^1) as the notebook draws them."""
    objective = (random.random_sample(shape) < 0.5).astype(np.float64)
    return objective, 1.0 - objective


def independent_rewards(
    random: np.random.RandomState, shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """(r^0, r^1) that have nothing to do with each other."""
    return _half_uniform(random, shape), _half_uniform(random, shape)


def random_cmdp(
    rewards: Draw,
    name: str,
    seed: int = 0,
    states: int = 30,
    actions: int = 3,
    horizon: int = 10,
) -> CMDP:
    """The instance of a seed: the same CMDP for years."""
    checked_seed(seed)
    checked_sizes(states=states, actions=actions, horizon=horizon)
    random = np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)))
    shape = (horizon, states, actions)
    kernel = random.dirichlet(np.full(states, CONCENTRATION), shape)
    start = int(random.randint(states))
    reward = np.stack(rewards(random, shape))
    free = CMDP(kernel, reward, np.zeros(1), start)
    threshold = 0.5 * greedy(free, reward[1])[0]
    return CMDP(kernel, reward, np.array([threshold]), start, name=f"{name} (seed {seed})")


def _half_uniform(random: np.random.RandomState, shape: tuple[int, ...]) -> Array:
    zero = random.random_sample(shape) < 0.5
    return np.where(zero, 0.0, random.random_sample(shape))
