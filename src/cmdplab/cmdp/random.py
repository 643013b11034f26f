"""Random feasible problems in the shapes on which learners, solvers and engines are checked.

They are no part of the tests, because audits and the contract for learners use them too.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP

SHAPES = {  # states, actions, horizon, constraints
    "small": (4, 3, 3, 1),
    "one action": (3, 1, 2, 1),
    "one state": (1, 3, 2, 1),
    "one step": (5, 2, 1, 1),
    "no constraint": (5, 3, 3, 0),
    "three constraints": (9, 2, 3, 3),
    "two lines of states": (11, 4, 2, 2),
}


def random_problem(
    states: int,
    actions: int,
    horizon: int,
    constraints: int,
    seed: int = 0,
    concentration: float = 0.3,
    closed: float = 0.0,
    stationary: bool = False,
) -> CMDP:
    """Return a feasible random problem: one random policy exceeds every threshold.

    `closed` is the share of actions that the mask closes; one in each state stays open. With
    `stationary` all steps are as the first.
    """
    X, A, H, N = states, actions, horizon, constraints
    rng = np.random.default_rng([seed, X, A, H, N])
    kernel = rng.dirichlet(np.full(X, concentration), (H, X, A))
    reward = rng.random((1 + N, H, X, A))
    start = int(rng.integers(X))
    policy = rng.dirichlet(np.full(A, 0.3), (H, X))
    mask = rng.random((H, X, A)) >= closed
    mask |= policy == policy.max(axis=-1, keepdims=True)
    if stationary:
        kernel, reward, mask = kernel[0], np.repeat(reward[:, :1], H, axis=1), mask[0]
    free = CMDP(kernel, reward, np.zeros(N), start, mask=mask)
    policy = np.where(mask, policy, 0.0)
    policy /= policy.sum(axis=-1, keepdims=True)
    name = f"random {X} {A} {H} {N}" + (", masked" if closed else "")
    thresholds = 0.95 * exact.returns(free, policy)[1:]
    return CMDP(kernel, reward, thresholds, start, name=name, mask=mask)
