"""Discounted problems, weighted by gamma^h and cut where little is lost."""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.horizons import discounted, steps_for
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import checked_sizes
from cmdplab.environments.grids import deterministic, landings
from cmdplab.environments.random_cmdp import binds, first_accepted, stream
from cmdplab.errors import InputError
from cmdplab.types import Array

BRANCHES = 4
DISCOUNT = 0.95
SHAPE = 0.2  # of the Beta distribution of costs
STEPS = steps_for(DISCOUNT, 1e-3)


def random_tight(
    name: str = "random-tight", seed: int = 0, states: int = 50, actions: int = 4
) -> CMDP:
    """Make a random CMDP whose constraint is tight: X = 50, A = 4, H = 194, one cost constraint.

    Origin: the generator of the random CMDPs of COptiDICE (Lee et al., 2022), read in its code and
    rebuilt here with our own stream of random numbers.

    State: 0..49; an episode starts in 0, and 49 absorbs for nothing. Every pair of a state and an
    action reaches 4 of the other states 0..48, with weights from Dirichlet(1, 1, 1, 1). The goal is
    the state that is hardest to reach from 0: whose best expected discounted arrival E gamma^T is
    least. It pays once, and every action leads from it to 49. The cost of a pair is drawn from
    Beta(0.2, 0.2); one action of every state is free. The discount is 0.95. Costs are drawn again
    until the constraint binds.

    Sense: rewards to maximise, costs within a budget: (1 - gamma) E sum gamma^h c_h <= 0.1, that is
    E sum gamma^h c_h <= 2. The source pays 1 / (1 - gamma) at the goal and multiplies by 1 - gamma;
    here the goal pays 1, which is the same. Everything is weighted by 0.95^h and cut after 194
    steps, so that less than 1e-3 is lost. r^1 = gamma^h (1 - c), b = sum_{h < 194} gamma^h - 2.
    """
    checked_sizes(actions=actions)
    if states < BRANCHES + 2:
        raise InputError(f"states is {states}, but {BRANCHES} successors need {BRANCHES + 2}")
    random = stream(seed)
    kernel = _kernel(random, states, actions)
    goal = _hardest(kernel)
    kernel[goal] = 0.0
    kernel[goal, :, -1] = 1.0
    threshold = (1.0 - DISCOUNT**STEPS - 0.1) / (1.0 - DISCOUNT)

    def draw() -> CMDP:
        cost = random.beta(SHAPE, SHAPE, (states, actions))
        cost[np.arange(states), random.randint(actions, size=states)] = 0.0
        cost[[goal, -1]] = 0.0
        reward = np.stack([np.zeros_like(cost), 1.0 - cost])
        reward[0, goal] = 1.0
        title = f"{name} (seed {seed})"
        return discounted(kernel, reward, [threshold], DISCOUNT, 0, STEPS, title)

    return first_accepted(draw, binds)


def _kernel(random: np.random.RandomState, states: int, actions: int) -> Array:
    """Draw the kernel [X, A, X]: four successors of every pair. The last state absorbs."""
    kernel = np.zeros((states, actions, states))
    for state in range(states - 1):
        others = np.delete(np.arange(states - 1), state)
        for action in range(actions):
            reached = random.permutation(others)[:BRANCHES]
            kernel[state, action, reached] = random.dirichlet(np.ones(BRANCHES))
    kernel[-1, :, -1] = 1.0
    return kernel


def _hardest(kernel: Array) -> int:
    """Return the state g != 0 that is hardest to reach from state 0: its max_pi E gamma^T is least.

    T is the time of the first visit to g.
    """
    candidates = np.arange(1, len(kernel) - 1)
    arrival = np.zeros((len(kernel), len(candidates)))  # [x, g]
    for _ in range(steps_for(DISCOUNT, 1e-9)):
        arrival = DISCOUNT * np.max(kernel @ arrival, axis=1)
        arrival[candidates, np.arange(len(candidates))] = 1.0
    return int(candidates[np.argmin(arrival[0])])


def uniform_random(threshold: float) -> CMDP:
    """Make a dense random CMDP: X = 21, A = 10, H = 71, one utility constraint.

    Origin: the random CMDP of Ding et al. (2020) as customised in the code of ARNPG: 20 states, 10
    actions, discount 0.8, uniform start, NumPy's seed 10. The rows of P are 20 uniform numbers,
    normalised, then r and u are uniform on [0, 1], drawn in that order; the stream is NumPy's old
    one, so that the instance is the released one. [unverified] Ding et al. (2023) are said to use
    the same.

    Sense: rewards and utilities, both to be kept high. Nothing is scaled; everything is weighted by
    0.8^h and cut after 70 steps, so that less than 1e-6 is lost. The uniform start is a step of its
    own, from state 20, without reward.

    `uniform-random-3` has the released threshold 3, which is mild: optimum 4.46244, multiplier
    0.2427; `uniform-random-4` has 4: optimum 4.00538, multiplier 0.972. Without the constraint
    4.51692 at utility 2.41758; the largest utility is 4.52503. Our certified solver finds the same.
    """
    random = np.random.RandomState(10)
    kernel = random.random_sample((20, 10, 20))
    kernel /= kernel.sum(axis=-1, keepdims=True)
    reward = random.random_sample((2, 20, 10))
    uniform = np.full(20, 1.0 / 20)
    name = f"uniform-random-{threshold:g}"
    return discounted(kernel, reward, [threshold], 0.8, uniform, steps_for(0.8, 1e-6), name)


SIDE = 5
MAGIC = {1: (21, 1.0), 3: (13, 0.5)}  # cell -> (where it leads, what it pays)
UTILITIES = ({3: 1.0, 1: 0.1}, {0: 0.7, 4: 0.2}, {21: 0.5, 13: 1.5})
THRESHOLDS = (1.5, 0.85, 2.7)


def five_by_five(
    thresholds: tuple[float, ...] = THRESHOLDS[:1],
    discount: float = 0.9,
    name: str = "five-by-five",
) -> CMDP:
    """Make the 5 x 5 grid with two magic cells: X = 26, A = 4, H = 154, one or three utility
    constraints.

    Origin: the grid and the utilities released with Jain, Vaswani et al. (2022), who took Example
    3.5 of Sutton & Barto and changed what it pays. All parameters are those of that release; it is
    discounted by 0.9, from a uniform start.

    State: the cell, row by row. Actions: up, down, left, right. A move off the grid stays. Every
    action at cell 1 pays 1 and leads to 21, at cell 3 it pays 0.5 and leads to 13; nothing else
    pays, a move off the grid included. Utilities belong to cells, whatever the action: (1) cell 3
    has 1, cell 1 has 0.1, at least 1.5; (2) cell 0 has 0.7, cell 4 has 0.2, at least 0.85; (3) cell
    21 has 0.5, cell 13 has 1.5, at least 2.7. `five-by-five` has the first, `five-by-five-3` all
    three.

    Sense: rewards and utilities, both to be kept high. Here r^0 is the pay and the utilities are
    divided by 1, 0.7 and 1.5, their largest; everything is weighted by 0.9^h and cut after 153
    steps, so that less than 1e-6 of the pay is lost. The uniform start is a step of its own, from
    state 25, without reward.

    Optimum 1.652722, multiplier 0.17323; without the constraint 1.732862. With three constraints
    1.397688, multipliers 0.11098, 0.35949, 0.04314. With the thresholds 1, 0.7, 0.5, 0.38 for the
    discounts 0.85, 0.8, 0.75, 0.7 the optima with one constraint are 1.030495, 0.730965, 0.559401,
    0.444326. These are a linear program's on the released arrays; our certified solver finds the
    same.

    Version 0 (cmdplab 0.1.0) paid 10, 5 and -1 off the grid, as the book does and the release does
    not. With one constraint its optimum was ten times the present one; with three it was 12.83621
    instead of 13.97688, as the second utility is earned by moves off the grid that stay in a
    corner. It is dropped: these utilities and thresholds were never released with that pay.
    """
    states = SIDE * SIDE
    landing = landings(SIDE, SIDE)
    reward = np.zeros((1 + len(thresholds), states, 4))
    for cell, (there, pay) in MAGIC.items():
        landing[cell], reward[0, cell] = there, pay
    for n, cells in enumerate(UTILITIES[: len(thresholds)]):
        for cell, utility in cells.items():
            reward[1 + n, cell] = utility / _largest(n)
    return discounted(
        deterministic(landing),
        reward,
        [b / _largest(n) for n, b in enumerate(thresholds)],
        discount,
        np.full(states, 1.0 / states),
        steps_for(discount, 1e-6),
        name,
    )


def _largest(constraint: int) -> float:
    return max(UTILITIES[constraint].values())
