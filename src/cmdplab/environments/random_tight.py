"""A random CMDP whose constraint is tight: X = 50, A = 4, H = 194, one cost constraint.

Origin: the generator of the random CMDPs of COptiDICE (Lee et al., 2022), read in its code and
rebuilt here with our own stream of random numbers.

State: 0..49; an episode starts in 0, and 49 absorbs for nothing. Every pair of a state and an
action reaches 4 of the other states 0..48, with weights from Dirichlet(1, 1, 1, 1). The goal is the
state that is hardest to reach from 0: whose best expected discounted arrival E gamma^T is least.
It pays once, and every action leads from it to 49. The cost of a pair is drawn from Beta(0.2, 0.2);
one action of every state is free. The discount is 0.95. Costs are drawn again until the constraint
binds.

Sense: rewards to maximise, costs within a budget: (1 - gamma) E sum gamma^h c_h <= 0.1, that is
E sum gamma^h c_h <= 2. The source pays 1 / (1 - gamma) at the goal and multiplies by 1 - gamma;
here the goal pays 1, which is the same. Everything is weighted by 0.95^h and cut after 194 steps,
so that less than 1e-3 is lost. r^1 = gamma^h (1 - c), b = sum_{h < 194} gamma^h - 2.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.horizons import discounted, steps_for, tail_bound
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Scale, checked_sizes, drawn
from cmdplab.environments.random_cmdp import binds, first_accepted, stream
from cmdplab.errors import InputError
from cmdplab.types import Array

STATES, ACTIONS = 50, 4
BRANCHES = 4
DISCOUNT = 0.95
BUDGET = 0.1  # of the normalised cost
SHAPE = 0.2  # of the Beta distribution of costs
HORIZON = steps_for(DISCOUNT, 1e-3)


def random_tight(name: str, seed: int = 0, states: int = STATES, actions: int = ACTIONS) -> CMDP:
    """Draw the instance of a seed. It stays the same in every version of NumPy."""
    checked_sizes(actions=actions)
    if states < BRANCHES + 2:
        raise InputError(f"states is {states}, but {BRANCHES} successors need {BRANCHES + 2}")
    random = stream(seed)
    kernel = _kernel(random, states, actions)
    goal = _hardest(kernel)
    kernel[goal] = 0.0
    kernel[goal, :, -1] = 1.0
    threshold = (1.0 - DISCOUNT**HORIZON - BUDGET) / (1.0 - DISCOUNT)

    def draw() -> CMDP:
        cost = random.beta(SHAPE, SHAPE, (states, actions))
        cost[np.arange(states), random.randint(actions, size=states)] = 0.0
        cost[[goal, -1]] = 0.0
        reward = np.stack([np.zeros_like(cost), 1.0 - cost])
        reward[0, goal] = 1.0
        title = f"{name} (seed {seed})"
        return discounted(kernel, reward, [threshold], DISCOUNT, 0, HORIZON, title)

    return first_accepted(draw, binds)


def _kernel(random: np.random.RandomState, states: int, actions: int) -> Array:
    """Draw [X, A, X]: four successors of every pair. The last state absorbs."""
    kernel = np.zeros((states, actions, states))
    for state in range(states - 1):
        others = np.delete(np.arange(states - 1), state)
        for action in range(actions):
            reached = random.permutation(others)[:BRANCHES]
            kernel[state, action, reached] = random.dirichlet(np.ones(BRANCHES))
    kernel[-1, :, -1] = 1.0
    return kernel


def _hardest(kernel: Array) -> int:
    """Return the state g != 0 with the least max_pi E gamma^T from state 0.

    T is the first time at g.
    """
    candidates = np.arange(1, len(kernel) - 1)
    arrival = np.zeros((len(kernel), len(candidates)))  # [x, g]
    for _ in range(steps_for(DISCOUNT, 1e-9)):
        arrival = DISCOUNT * np.max(kernel @ arrival, axis=1)
        arrival[candidates, np.arange(len(candidates))] = 1.0
    return int(candidates[np.argmin(arrival[0])])


SUMMARY = "a goal hard to reach, costs redrawn until they bind"
UNITS = (
    Scale("discounted goal"),
    Scale("discounted cost", -1.0, (1.0 - DISCOUNT**HORIZON) / (1.0 - DISCOUNT)),
)
TAIL = tail_bound(DISCOUNT, HORIZON)

ENTRIES = drawn("random-tight", random_tight, SUMMARY, "after Lee et al. (2022), code", UNITS, TAIL)
