"""The random MDP of Dann, Lattimore & Brunskill (2017), with a utility: X = 51, A = 3, H = 11.

Origin: the generator released with UBEV: S states (5, 50 or 200; here 50), 3 actions, 10 steps.
P_h(. | x, a) ~ Dirichlet(0.1, ..., 0.1), independent over h, x, a; rewards are 0 with probability
0.85, else uniform on [0, 1]; the start distribution is drawn from Dirichlet(0.1, ..., 0.1). Three
differences from the paper's random CMDP: sparser rewards, a random start, other sizes.

The source has no constraint. Ours: a utility drawn like the reward, independently of it, and half
of its largest value as the threshold. The random start is a step of its own, from state 50, without
reward, so that H = 11. The stream of random numbers is ours.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.horizons import with_random_start
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import checked_sizes, drawn
from cmdplab.environments.random_cmdp import CONCENTRATION, at_share, stream, zero_or_uniform

ZEROS = 0.85  # the probability of a reward that is zero


def random_dann(
    name: str, seed: int = 0, states: int = 50, actions: int = 3, horizon: int = 10
) -> CMDP:
    """Draw the instance of a seed. It stays the same in every version of NumPy."""
    checked_sizes(states=states, actions=actions, horizon=horizon)
    random = stream(seed)
    shape = (horizon, states, actions)
    concentration = np.full(states, CONCENTRATION)
    kernel = random.dirichlet(concentration, shape)
    first = random.dirichlet(concentration)
    reward = np.stack([zero_or_uniform(random, shape, ZEROS) for _ in range(2)])
    return at_share(0.5, *with_random_start(kernel, reward, first), f"{name} (seed {seed})")


SUMMARY = "sparse rewards and utilities, random start"

ENTRIES = drawn("random-dann", random_dann, SUMMARY, "Dann et al. (2017), code; utility ours")
