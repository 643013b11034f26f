"""Six states and a bit that decides: X = 6, A = 2, H = 3, one cost constraint.

Origin: the `difficult` CMDP of gym-factored, used with AlwaysSafe (Simão et al., 2021). All
parameters are those of the release.

State: (x, y) with x = 0, 1, 2 and a bit y, counted 2 x + y. From x = 0 every action leads to x = 1
with y = 0 with probability 0.1, else y = 1; from x = 1 to x = 2 with the same bit; x = 2 absorbs.
At x = 1 action A (0) pays 1 if y = 1, action B (1) pays 1 if y = 0, and action A costs 1. At most
0.1 expected cost. The release starts with a fair bit, on which nothing depends: here it is 0.

Sense: rewards to maximise, costs within a budget; here r^1 = 1 - cost and b = 3 - 0.1. Nothing is
scaled.

Optimum 0.2, multiplier 1: the cheap bit pays 0.1, and 0.1 of the dear one can be afforded, by
action A with probability 1/9. Without the constraint 1, at cost 0.9.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Scale, fixed, stationary_costs

HORIZON = 3
CHEAP = 0.1  # the probability that the bit is 0
BUDGET = 0.1
A, B = 0, 1


def six_state() -> CMDP:
    """Make the released instance."""
    kernel = np.zeros((3, 2, 2, 3, 2))  # (x, y), action, (x, y)
    kernel[0, :, :, 1] = CHEAP, 1.0 - CHEAP
    for bit in range(2):
        kernel[1:, bit, :, 2, bit] = 1.0
    objective, cost = np.zeros((2, 3, 2, 2))  # (x, y), action
    objective[1, 0, B] = objective[1, 1, A] = 1.0
    cost[1, :, A] = 1.0
    return stationary_costs(
        kernel.reshape(6, 2, 6),
        objective.reshape(6, 2),
        cost.reshape(6, 2),
        BUDGET,
        HORIZON,
        0,
        "six-state",
    )


SUMMARY = "a bit says which action pays; one costs"
SOURCE = "Simão et al. (2021), code"
UNITS = (Scale("reward"), Scale("cost", -1.0, HORIZON))
OPTIMUM = Certified(0.2, (1.0,), 0.1, 1.0)

ENTRIES = {"six-state": fixed(six_state, SUMMARY, SOURCE, UNITS, OPTIMUM)}
