"""A chain with a temptation: X = 2 (n + 1), A = 3, H = n + 1, one cost constraint.

Origin: the cost chain of gym-factored, used with AlwaysSafe (Simão et al., 2021), at n = 3 and
n = 11. The budget of n = 11 is ours.

State: (x, y) with x = 0..n and a bit y, counted 2 x + y; an episode starts at x = 0, and n (odd)
absorbs. Before x = n - 1, actions A (0) and B (1) go on to x + 1: from an even x the bit is drawn
again, 0 with probability 0.1; from an odd x it stays, and the action that matches (B for 0, A for
1) pays 1 / (2n), while A costs 1. RESET (2) leads back to x = 0 with the same bit and pays 1 / n.
At x = n - 1 every action, RESET too, leads to n with the same bit and pays 1. The release starts
with a fair bit, on which nothing depends: here it is 0.

Sense: rewards to maximise, costs within a budget: 0.1 for n = 3, 1 for n = 11. Here r^1 = 1 - cost
and b = n + 1 - budget. Nothing is scaled.

There is time for one RESET and the walk. With m = (n - 1) / 2 odd places on the way the optimum is
1 + 1/n + (0.1 m + budget) / (2n): 1.36667 and 1.15909; the multiplier is 1 / (2n). Without the
constraint it is 1 + 1/n + m / (2n).

Version 0 (cmdplab 0.1.0) let RESET lead from n - 1 back to 0, for 1 / n, and drew the bit there
again. Its optimum was the same, but a learner that tries RESET there sees another problem.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Environment, Scale, fixed, stationary_costs
from cmdplab.errors import InputError

CHEAP = 0.1  # the probability that the bit is 0
A, B, RESET = range(3)


def cost_chain(length: int, budget: float) -> CMDP:
    """Make the chain with places 0..length. The length must be odd."""
    if length < 1 or length % 2 == 0:
        raise InputError(f"the length of a cost chain is {length}, not an odd number >= 1")
    horizon = length + 1
    kernel = np.zeros((length + 1, 2, 3, length + 1, 2))  # (x, y), action, (x, y)
    objective, cost = np.zeros((2, length + 1, 2, 3))  # (x, y), action
    for place in range(0, length - 1, 2):
        kernel[place, :, :RESET, place + 1] = CHEAP, 1.0 - CHEAP
    for place in range(1, length, 2):
        for bit, matching in enumerate((B, A)):
            kernel[place, bit, :RESET, place + 1, bit] = 1.0
            objective[place, bit, matching] = 1.0 / (2 * length)
        cost[place, :, A] = 1.0
    for bit in range(2):
        kernel[: length - 1, bit, RESET, 0, bit] = 1.0
        kernel[length - 1 :, bit, :, length, bit] = 1.0
    objective[: length - 1, :, RESET] = 1.0 / length
    objective[length - 1] = 1.0
    states = 2 * (length + 1)
    return stationary_costs(
        kernel.reshape(states, 3, states),
        objective.reshape(states, 3),
        cost.reshape(states, 3),
        budget,
        horizon,
        0,
        f"cost-chain-{length}",
    )


def _entry(length: int, budget: float, source: str, certified: Certified) -> Environment:
    return fixed(
        partial(cost_chain, length, budget),
        f"a chain of {length} with a reset that tempts",
        source,
        version=1,  # 0 had a RESET at n - 1
        units=(Scale("reward"), Scale("cost", -1.0, length + 1)),
        certified=certified,
    )


_SOURCE = "Simão et al. (2021), code"

ENTRIES = {
    "cost-chain-3": _entry(3, 0.1, _SOURCE, Certified(1.36666667, (1 / 6,), 0.1, 1.5)),
    "cost-chain-11": _entry(
        11, 1.0, f"{_SOURCE}; budget ours", Certified(1.15909091, (1 / 22,), 1.0, 1.31818182)
    ),
}
