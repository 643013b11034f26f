"""Three states in a ring: X = 3, A = 2, H = 6, one cost constraint, everything deterministic.

Origin: the `factored` example released with DOPE (Bura et al., 2022), a scaled version of an
example of AlwaysSafe and gym-factored, which name Zheng & Ratliff (2020) as their inspiration.
All parameters are those of DOPE's release.

An episode starts in state 0. Action 0 stays: reward 0, cost 0. Action 1 advances from x to
x + 1 modulo 3: reward (x + 1) / 3, cost 1. At most 3 expected advances in 6 steps.

Sense: rewards to maximise, costs within a budget; here r^1 = 1 - cost and b = 6 - 3 = 3. Rewards
are as DOPE releases them, not scaled. AlwaysSafe pays x + 1, three times as much, and starts in a
uniform state, so that its optimum 6.66667 is not three times the optimum here.

Optimum 2, once round the ring: 1/3 + 2/3 + 1; multiplier 2/3, since a lap earns 2 and costs 3;
without the constraint 4, twice round. Our certified solver finds the same. A deterministic policy
attains the optimum, and so do many mixtures.
"""

from __future__ import annotations

import numpy as np

from cmdplab.problem import CMDP

HORIZON = 6
STATES = 3
STAY, ADVANCE = 0, 1
ADVANCES = 3.0  # the budget


def three_state() -> CMDP:
    """The instance released with DOPE."""
    states = np.arange(STATES)
    kernel = np.zeros((STATES, 2, STATES))
    kernel[states, STAY, states] = 1.0
    kernel[states, ADVANCE, (states + 1) % STATES] = 1.0
    objective = np.zeros((HORIZON, STATES, 2))
    objective[..., ADVANCE] = (states + 1) / STATES
    cost = np.zeros((1, HORIZON, STATES, 2))
    cost[..., ADVANCE] = 1.0
    return CMDP.from_costs(kernel, objective, cost, [ADVANCES], 0, "three-state")
