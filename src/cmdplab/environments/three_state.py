"""Three states in a ring: X = 3, A = 2, H = 6, one cost constraint, everything deterministic.

Origin: the `factored` example released with DOPE (Bura et al., 2022), a scaled version of an
example of AlwaysSafe and gym-factored, which name Zheng & Ratliff (2020) as their inspiration.
All parameters are those of the two releases.

Action 0 stays: reward 0, cost 0. Action 1 advances from x to x + 1 modulo 3: reward (x + 1) / 3,
cost 1. At most 3 expected advances in 6 steps.

- `three-state`, DOPE's: an episode starts in state 0; rewards as released, not scaled.
- `three-state-uniform`, AlwaysSafe's: pay x + 1, three times as much, and a uniform start. Here the
  objective is pay / 3, and the start is a step of its own, from state 3, without reward or utility:
  X = 4, H = 7.

Sense: rewards to maximise, costs within a budget; here r^1 = 1 - cost and b = 6 - 3 = 3 in both.

DOPE's: optimum 2, once round the ring: 1/3 + 2/3 + 1; multiplier 2/3, since a lap earns 2 and costs
3; without the constraint 4, twice round. AlwaysSafe's: optimum 20/3 = 6.66667 of pay, multiplier 2,
without the constraint 12. Our certified solver finds the same. A deterministic policy attains
DOPE's optimum, and so do many mixtures.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.horizons import with_random_start
from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Scale, fixed
from cmdplab.types import Array

HORIZON = 6
STATES = 3
STAY, ADVANCE = 0, 1
ADVANCES = 3.0  # the budget
LABELS = Labels(actions=("stay", "advance"))


def three_state() -> CMDP:
    """Make the instance released with DOPE."""
    kernel, reward = _ring()
    threshold = np.array([HORIZON - ADVANCES])
    return CMDP(kernel, reward, threshold, 0, name="three-state", labels=LABELS)


def three_state_uniform() -> CMDP:
    """Make the instance released with AlwaysSafe, which has a uniform start."""
    kernel, reward, start = with_random_start(*_ring(), np.full(STATES, 1.0 / STATES))
    threshold = np.array([HORIZON - ADVANCES])
    return CMDP(kernel, reward, threshold, start, name="three-state-uniform")


def _ring() -> tuple[Array, Array]:
    """Return (kernel [X, A, X], reward [2, H, X, A])."""
    states = np.arange(STATES)
    kernel = np.zeros((STATES, 2, STATES))
    kernel[states, STAY, states] = 1.0
    kernel[states, ADVANCE, (states + 1) % STATES] = 1.0
    reward = np.zeros((2, HORIZON, STATES, 2))
    reward[0, ..., ADVANCE] = (states + 1) / STATES
    reward[1, ..., STAY] = 1.0
    return kernel, reward


ENTRIES = {
    "three-state": fixed(
        three_state,
        "a ring of three states, with at most 3 advances",
        "Bura et al. (2022), code",
        units=(Scale("reward"), Scale("advances", -1.0, HORIZON)),
        certified=Certified(2.0, (2 / 3,), 3.0, 4.0),
    ),
    "three-state-uniform": fixed(
        three_state_uniform,
        "the ring from a uniform start",
        "Simão et al. (2021), code",
        units=(Scale("pay", STATES), Scale("advances", -1.0, HORIZON)),
        certified=Certified(20 / 9, (2 / 3,), 3.0, 4.0),
    ),
}
