"""Triple-Q's grid with obstacles: X = 324, A = 4, H = 25, one utility constraint.

Origin: the grid world released with Triple-Q (Wei, Liu & Ying, 2022). The map is that of its seed
1234, drawn here from the same stream: rows 1 to 18 and columns 1 to 18 inside a ring of walls; in
rows 2 to 17 a cell is an obstacle when the next uniform number is <= 0.4 (105 of them); the goal
lies in row 1, at column 1 + int(17 u) = 16. An episode starts in the corner (18, 18).

State: the cell. Actions: up, down, left, right, always carried out; a move into the wall stays.
A step pays for the cell it leads to: 100 at the goal, else D minus the distance to the goal, where
D is the distance from the corner (18, 1). The utility of a step is 1 off the obstacles and 0 on
them. Nothing ends the episode.

Sense: rewards and utilities, both to be kept high. Here r^0 = pay / 100; the utility is not scaled.

The released threshold is 20 of 25 steps, with 20.5 inside the algorithm. It does not bind: the best
rewards, 963.98, come with 21 such steps. `triple-q-grid-binding` asks for 23: optimum 874.90,
multiplier 88.23 per step. With 24 it is 786.67, with 24.5 703.21; 25 is possible without any slack.
Our certified solver finds the same.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Scale, fixed
from cmdplab.environments.grids import deterministic, landings
from cmdplab.types import Array

SIDE = 18
HORIZON = 25
MAP_SEED = 1234
DENSITY = 0.4
GOAL_PAY = 100.0
RELEASED, BINDING = 20.0, 23.0  # steps off the obstacles


def triple_q_grid(steps: float = RELEASED, name: str = "triple-q-grid") -> CMDP:
    """Make the released map, with at least `steps` expected steps off the obstacles."""
    obstacle, goal = _map()
    row, column = np.indices((SIDE, SIDE))
    distance = np.hypot(row, column - goal)
    pay = distance[SIDE - 1, 0] - distance
    pay[0, goal] = GOAL_PAY
    landing = landings(SIDE, SIDE)
    reward = np.stack([pay / GOAL_PAY, 1.0 - obstacle]).reshape(2, -1)[:, landing]
    start = SIDE * SIDE - 1
    return CMDP(deterministic(landing), reward, np.array([steps]), start, HORIZON, name)


def _map() -> tuple[Array, int]:
    """Return ([18, 18] with 1 on obstacles, the column of the goal counted from 0)."""
    random = np.random.RandomState(MAP_SEED)
    obstacle = np.zeros((SIDE, SIDE))
    obstacle[1:-1] = random.random_sample((SIDE - 2, SIDE)) <= DENSITY
    return obstacle, int((SIDE - 1) * random.random_sample())


_UNITS = (Scale("pay", GOAL_PAY), Scale("steps off the obstacles"))
_SOURCE = "Wei, Liu & Ying (2022), code"

ENTRIES = {
    "triple-q-grid": fixed(
        triple_q_grid,
        "18 x 18 cells with obstacles; it does not bind",
        _SOURCE,
        units=_UNITS,
        certified=Certified(9.63979997, (0.0,), 5.0, 9.63979997),
    ),
    "triple-q-grid-binding": fixed(
        partial(triple_q_grid, BINDING, "triple-q-grid-binding"),
        "the same with 23 of 25 steps off obstacles",
        f"{_SOURCE}; threshold ours",
        units=_UNITS,
        certified=Certified(8.74898845, (0.88229747,), 2.0, 9.63979997),
    ),
}
