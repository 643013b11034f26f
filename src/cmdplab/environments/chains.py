"""A few states, a few steps, and optima by hand."""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.horizons import with_random_start
from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import stationary_costs
from cmdplab.errors import InputError
from cmdplab.types import Array


def paradox() -> CMDP:
    """Make two states that cannot both be had: X = 2, A = 2, H = 10, one utility constraint.

    Origin: the "paradoxical" CMDP, with the parameters of the code of Ghosh, Zhou & Shroff (2024).
    [unverified] Its name is traced to Moskovitz et al. (2023) and a post by Szepesvári (2020).

    An episode starts in state 0. There action 0 stays and pays 1, action 1 moves to state 1 with
    utility 1. In state 1 action 0 stays with utility 1, action 1 moves back for nothing. At least 5
    expected utility in 10 steps. Everything is deterministic.

    Sense: rewards and utilities, both to be kept high. Nothing is scaled.

    Optimum 5, multiplier 1: reward and utility of a step sum to 1 until one moves back. Without the
    constraint 10. Five steps in state 0 and five outside are optimal and deterministic, so the
    paradox is gone: only a stationary policy must randomise. Discounted by 0.9 with b = 5 the
    optimum is 5 again, and the stationary policy stays in state 0 with probability 0.9091.
    """
    kernel, reward = paradox_arrays()
    return CMDP(kernel, reward, np.array([5.0]), 0, 10, "paradox")


def paradox_arrays() -> tuple[Array, Array]:
    """Return the kernel [X, A, X] and the rewards [2, X, A] of `paradox` at every step."""
    kernel = np.zeros((2, 2, 2))
    kernel[0] = kernel[1, :, ::-1] = np.eye(2)
    reward = np.zeros((2, 2, 2))
    reward[0, 0, 0] = reward[1, 0, 1] = reward[1, 1, 0] = 1.0
    return kernel, reward


STAY, ADVANCE = 0, 1


def three_state() -> CMDP:
    """Make three states in a ring: X = 3, A = 2, H = 6, one cost constraint, no chance.

    Origin: the `factored` example released with DOPE (Bura et al., 2022), a scaled version of an
    example of AlwaysSafe and gym-factored, which name Zheng & Ratliff (2020) as their inspiration.
    All parameters are those of the two releases.

    Action 0 stays: reward 0, cost 0. Action 1 advances from x to x + 1 modulo 3: reward (x + 1) /
    3, cost 1. At most 3 expected advances in 6 steps.

    - `three-state`, DOPE's: an episode starts in state 0; rewards as released, not scaled.
    - `three-state-uniform`, AlwaysSafe's: pay x + 1, three times as much, and a uniform start. Here
      the objective is pay / 3, and the start is a step of its own, from state 3, without reward or
      utility: X = 4, H = 7.

    Sense: rewards to maximise, costs within a budget; here r^1 = 1 - cost and b = 6 - 3 = 3 in
    both.

    DOPE's: optimum 2, once round the ring: 1/3 + 2/3 + 1; multiplier 2/3, since a lap earns 2 and
    costs 3; without the constraint 4, twice round. AlwaysSafe's: optimum 20/3 = 6.66667 of pay,
    multiplier 2, without the constraint 12. Our certified solver finds the same. A deterministic
    policy attains DOPE's optimum, and so do many mixtures.
    """
    kernel, reward = _ring()
    labels = Labels(actions=("stay", "advance"))
    return CMDP(kernel, reward, np.array([3.0]), 0, name="three-state", labels=labels)


def three_state_uniform() -> CMDP:
    """Make `three-state-uniform` of `three_state`, which has AlwaysSafe's uniform start."""
    kernel, reward, start = with_random_start(*_ring(), np.full(3, 1.0 / 3))
    return CMDP(kernel, reward, np.array([3.0]), start, name="three-state-uniform")


def _ring() -> tuple[Array, Array]:
    """Return the kernel [3, A, 3] and the rewards [2, 6, 3, A] of the ring of three states."""
    states = np.arange(3)
    kernel = np.zeros((3, 2, 3))
    kernel[states, STAY, states] = 1.0
    kernel[states, ADVANCE, (states + 1) % 3] = 1.0
    reward = np.zeros((2, 6, 3, 2))
    reward[0, ..., ADVANCE] = (states + 1) / 3
    reward[1, ..., STAY] = 1.0
    return kernel, reward


CHEAP = 0.1  # the probability that the bit is 0
A, B, RESET = range(3)


def six_state() -> CMDP:
    """Make six states and a bit that decides: X = 6, A = 2, H = 3, one cost constraint.

    Origin: the `difficult` CMDP of gym-factored, used with AlwaysSafe (Simão et al., 2021). All
    parameters are those of the release.

    State: (x, y) with x = 0, 1, 2 and a bit y, counted 2 x + y. From x = 0 every action leads to x
    = 1 with y = 0 with probability 0.1, else y = 1; from x = 1 to x = 2 with the same bit; x = 2
    absorbs. At x = 1 action A (0) pays 1 if y = 1, action B (1) pays 1 if y = 0, and action A costs
    1. At most 0.1 expected cost. The release starts with a fair bit, on which nothing depends: here
    it is 0.

    Sense: rewards to maximise, costs within a budget; here r^1 = 1 - cost and b = 3 - 0.1. Nothing
    is scaled.

    Optimum 0.2, multiplier 1: the cheap bit pays 0.1, and 0.1 of the dear one can be afforded, by
    action A with probability 1/9. Without the constraint 1, at cost 0.9.
    """
    kernel = np.zeros((3, 2, 2, 3, 2))  # (x, y), action, (x, y)
    kernel[0, :, :, 1] = CHEAP, 1.0 - CHEAP
    for bit in range(2):
        kernel[1:, bit, :, 2, bit] = 1.0
    objective, cost = np.zeros((2, 3, 2, 2))  # (x, y), action
    objective[1, 0, B] = objective[1, 1, A] = 1.0
    cost[1, :, A] = 1.0
    pairs = objective.reshape(6, 2), cost.reshape(6, 2)
    return stationary_costs(kernel.reshape(6, 2, 6), *pairs, 0.1, 3, 0, "six-state")


def cost_chain(length: int, budget: float) -> CMDP:
    """Make a chain with a temptation: X = 2 (n + 1), A = 3, H = n + 1, one cost constraint. n =
    `length` is odd.

    Origin: the cost chain of gym-factored, used with AlwaysSafe (Simão et al., 2021), at n = 3 and
    n = 11. The budget of n = 11 is ours.

    State: (x, y) with x = 0..n and a bit y, counted 2 x + y; an episode starts at x = 0, and n
    (odd) absorbs. Before x = n - 1, actions A (0) and B (1) go on to x + 1: from an even x the bit
    is drawn again, 0 with probability 0.1; from an odd x it stays, and the action that matches (B
    for 0, A for 1) pays 1 / (2n), while A costs 1. RESET (2) leads back to x = 0 with the same bit
    and pays 1 / n. At x = n - 1 every action, RESET too, leads to n with the same bit and pays 1.
    The release starts with a fair bit, on which nothing depends: here it is 0.

    Sense: rewards to maximise, costs within a budget: 0.1 for n = 3, 1 for n = 11. Here r^1 = 1 -
    cost and b = n + 1 - budget. Nothing is scaled.

    There is time for one RESET and the walk. With m = (n - 1) / 2 odd places on the way the optimum
    is 1 + 1/n + (0.1 m + budget) / (2n): 1.36667 and 1.15909; the multiplier is 1 / (2n). Without
    the constraint it is 1 + 1/n + m / (2n).

    Version 0 (cmdplab 0.1.0) let RESET lead from n - 1 back to 0, for 1 / n, and drew the bit there
    again. Its optimum was the same, but a learner that tries RESET there sees another problem.
    """
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
    rows = kernel.reshape(2 * horizon, 3, 2 * horizon)
    pairs = objective.reshape(-1, 3), cost.reshape(-1, 3)
    return stationary_costs(rows, *pairs, budget, horizon, 0, f"cost-chain-{length}")
