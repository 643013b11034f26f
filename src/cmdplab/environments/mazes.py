"""Walks on maps: cells counted row by row, four moves, pits, boxes, obstacles and swamps."""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import checked_sizes, stationary_costs
from cmdplab.environments.grids import (
    MOVES,
    Cells,
    deterministic,
    landings,
    slippery,
    slippery_lists,
)
from cmdplab.errors import InputError
from cmdplab.types import Array

ROVER = (
    "S0000000",
    "00000000",
    "000P00P0",
    "00000000",
    "00000000",
    "0PP00000",
    "0P00P0P0",
    "000P000G",
)
STEPS = 30
SLIP = 0.1


def mars_rover(budget: float = 0.3) -> CMDP:
    """Make the Mars rover on an 8 x 8 map: X = 64, A = 4, H = 30, one cost constraint.

    Origin: the map `8x8rcpo` released with Brantley et al. (2020), the default of their grid world;
    the release has another map called `8x8`, whose optimum would be 1.54639. All parameters are
    those of that release, its reward included: it pays for a pit as for the goal.

    State: the cell. Actions: up, down, left, right; with probability 0.1 the move is drawn again
    uniformly, so that the chosen one is made with 0.925. A move off the map stays. The goal G and
    the pits P absorb. Entering G or P pays 1, and every later step there 1/30; entering P costs 1,
    and every later step there 1/30. At most 0.3 expected cost in 30 steps.

    Sense: rewards to maximise, costs within a budget; here r^1 = 1 - cost and b = 30 - 0.3. Rewards
    are expectations given state and action; nothing is scaled. Cost = 30 - utility.

    Optimum 1.53629, multiplier 0.193; without the constraint 1.81682 at the same cost, by a dive
    into the nearest pit. At a budget of 0.1 the optimum is 1.49741. Our certified solver finds the
    same.
    """
    cells = np.array([list(row) for row in ROVER]).ravel()
    pit, end = cells == "P", np.isin(cells, ["P", "G"])
    landing = landings(len(ROVER), len(ROVER[0]))
    landing[end] = np.flatnonzero(end)[:, None]
    kernel = slippery(deterministic(landing), SLIP)
    paying = np.where(end, 1.0 / STEPS, 1.0)[:, None]  # less once inside
    objective, cost = (paying * (kernel @ marked) for marked in (end, pit))
    return stationary_costs(
        kernel, objective, cost, budget, STEPS, int(np.flatnonzero(cells == "S")[0]), "mars-rover"
    )


BOX = ("WWWWWW", "W0SWWW", "W0X00W", "WW000W", "WWW0GW", "WWWWWW")
Cell = tuple[int, int]


def box(budget: float = 0.1) -> CMDP:
    """Make a box to be kept out of corners: X = 121, A = 4, H = 30, one cost constraint.

    Origin: the `6x6box` map released with Brantley et al. (2020), after the first level of Sokoban
    among the AI safety grid worlds. All parameters are those of that release.

    State: (agent, box), each on one of 11 free cells; 60 of the 121 pairs can be reached. Actions:
    up, down, left, right; with probability 0.1 the move is drawn again uniformly. A move into the
    box pushes it; a move into a wall, or with the box into a wall, changes nothing. The goal
    absorbs the agent. Entering it pays 1, and every later step there 1/30. A step costs 1/30 when
    it leaves the box with walls on two or more of its four sides. At most 0.1 expected cost in 30
    steps.

    Sense: rewards to maximise, costs within a budget; here r^1 = 1 - cost and b = 30 - 0.1. Rewards
    are expectations given state and action; nothing is scaled. Cost = 30 - utility.

    Optimum 1.74968, multiplier 0.078; without the constraint 1.81577 at cost 0.97323. At a budget
    of 0.3 the optimum is 1.76485. No policy costs less than 0.03326: the Slater gap is small,
    0.06674. Our certified solver finds the same.
    """
    free = [(r, c) for r, row in enumerate(BOX) for c, mark in enumerate(row) if mark != "W"]
    place = {cell: n for n, cell in enumerate(free)}
    kernel = slippery(deterministic(_landings(free, place)), SLIP)
    goal = np.repeat([_mark(cell) == "G" for cell in free], len(free))  # [X], by the agent
    walls = [sum(_mark(_beside(cell, move)) == "W" for move in MOVES) for cell in free]
    stuck = np.tile(np.greater_equal(walls, 2), len(free))  # [X], by the box
    objective = np.where(goal, 1.0 / STEPS, 1.0)[:, None] * (kernel @ goal)
    cost: Array = kernel @ stuck / STEPS
    agent, box = (next(cell for cell in free if _mark(cell) == mark) for mark in "SX")
    return stationary_costs(
        kernel, objective, cost, budget, STEPS, place[agent] * len(free) + place[box], "box"
    )


def _landings(free: list[Cell], place: dict[Cell, int]) -> Cells:
    """Return [X, A]: the pair (agent, box) that each move leads to; the box counts fastest."""
    reached = []
    for agent in free:
        for box in free:
            pairs = [(agent, box) if _mark(agent) == "G" else _moved(agent, box, m) for m in MOVES]
            reached.append([place[a] * len(free) + place[b] for a, b in pairs])
    return np.array(reached)


def _moved(agent: Cell, box: Cell, move: Cell) -> tuple[Cell, Cell]:
    ahead = _beside(agent, move)
    pushed = _beside(box, move) if ahead == box else box
    blocked = "W" in (_mark(ahead), _mark(pushed))
    return (agent, box) if blocked else (ahead, pushed)


def _beside(cell: Cell, move: Cell) -> Cell:
    return cell[0] + move[0], cell[1] + move[1]


def _mark(cell: Cell) -> str:
    return BOX[cell[0]][cell[1]]


def cliff(rows: int = 4, columns: int = 6, horizon: int = 15, budget: float = 2.0) -> CMDP:
    """Make a cliff walk that costs more the nearer the cliff: X = 24, A = 4, H = 15, one cost
    constraint. The grid may have another size, and the budget counts rows.

    Origin: the cliff walk with row costs of gym-factored, used with AlwaysSafe (Simão et al., 2021)
    at 4 x 6 cells. All parameters are those of the release.

    State: the cell, rows counted from the top. An episode starts bottom left, the goal is bottom
    right and absorbs; the cells between them are the cliff. Actions: up, down, left, right, always
    carried out; a move off the grid stays. A step pays -1; a step into the cliff pays -100 and
    leads back to the start. A step costs the row number of the cell it leads to, but nothing in the
    top row, the bottom row, the first and the last column. At most 2 expected cost.

    Sense: rewards to maximise, costs within a budget. Here r^0 = 1 + pay / 100 and r^1 = 1 - cost /
    2, b = 15 - 2 / 2 (2 is the largest cost of 4 rows). Pay = 100 (objective - 15), cost = 2 (15 -
    utility). One step is 0.01 of the objective.

    Optimum -10, multiplier 0.5; without the constraint -7 at cost 8, and -11 at cost 0. At 3 x 4
    cells and H = 20 the optima are -5, -6, -7 for the budgets 2, 1, 0; at 4 x 12 and H = 20 they
    are -13, -15, -17 for 20, 10, 0. Our certified solver finds the same wherever there is slack.
    """
    checked_sizes(rows=rows, columns=columns, horizon=horizon)
    if rows < 3 or columns < 2:
        raise InputError(f"a cliff walk of {rows} x {columns} cells has no row between the edges")
    states, start = rows * columns, (rows - 1) * columns
    goal = states - 1
    row, column = np.divmod(np.arange(states), columns)
    edge = np.isin(row, [0, rows - 1]) | np.isin(column, [0, columns - 1])
    landing = landings(rows, columns)
    pay = np.where((landing > start) & (landing < goal), -100.0, -1.0)
    cost = np.where(edge, 0.0, row)[landing]
    landing[(landing > start) & (landing < goal)] = start
    landing[goal], pay[goal], cost[goal] = goal, 0.0, 0.0
    kernel, cost = deterministic(landing), cost / (rows - 2)
    given = (budget / (rows - 2), horizon, start, "cliff")
    return stationary_costs(kernel, 1.0 + pay / 100.0, cost, *given)


SIDE = 18


def triple_q_grid(steps: float = 20.0, name: str = "triple-q-grid") -> CMDP:
    """Make Triple-Q's grid with obstacles: X = 324, A = 4, H = 25, one utility constraint.

    It asks for `steps` expected steps off the obstacles.

    Origin: the grid world released with Triple-Q (Wei, Liu & Ying, 2022). The map is that of its
    seed 1234, drawn here from the same stream: rows 1 to 18 and columns 1 to 18 inside a ring of
    walls; in rows 2 to 17 a cell is an obstacle when the next uniform number is <= 0.4 (105 of
    them); the goal lies in row 1, at column 1 + int(17 u) = 16. An episode starts in the corner
    (18, 18).

    State: the cell. Actions: up, down, left, right, always carried out; a move into the wall stays.
    A step pays for the cell it leads to: 100 at the goal, else D minus the distance to the goal,
    where D is the distance from the corner (18, 1). The utility of a step is 1 off the obstacles
    and 0 on them. Nothing ends the episode.

    Sense: rewards and utilities, both to be kept high. Here r^0 = pay / 100; the utility is not
    scaled.

    The released threshold is 20 of 25 steps, with 20.5 inside the algorithm. It does not bind: the
    best rewards, 963.98, come with 21 such steps. `triple-q-grid-binding` asks for 23: optimum
    874.90, multiplier 88.23 per step. With 24 it is 786.67, with 24.5 703.21; 25 is possible
    without any slack. Our certified solver finds the same.
    """
    obstacle, goal = _obstacles()
    row, column = np.indices((SIDE, SIDE))
    distance = np.hypot(row, column - goal)
    pay = distance[SIDE - 1, 0] - distance
    pay[0, goal] = 100.0
    landing = landings(SIDE, SIDE)
    reward = np.stack([pay / 100.0, 1.0 - obstacle]).reshape(2, -1)[:, landing]
    start = SIDE * SIDE - 1
    return CMDP(deterministic(landing), reward, np.array([steps]), start, 25, name)


def _obstacles() -> tuple[Array, int]:
    """Return an array [18, 18] with 1 on obstacles, and the column of the goal, counted from 0."""
    random = np.random.RandomState(1234)
    obstacle = np.zeros((SIDE, SIDE))
    obstacle[1:-1] = random.random_sample((SIDE - 2, SIDE)) <= 0.4
    return obstacle, int((SIDE - 1) * random.random_sample())


def slippery_grid(size: int = 100, horizon: int | None = None, budget: float = 2.0) -> CMDP:
    """Make a large grid with a swamp in the way: X = 10,000, A = 4, H = 100, one cost constraint.

    It has `size` x `size` cells, and by default `size` steps.

    Origin: ours. It is here for its size: the kernel is lists of at most four successors, and
    nothing of size X^2 is ever made.

    State: a cell of 100 x 100, counted row by row; an episode starts in the middle row, a fifth of
    the way from the left. Actions: up, down, left, right; with probability 0.1 the move is drawn
    again, uniformly; a move off the grid stays. Every step from a cell in the right two fifths
    earns 1. A step from a cell of the swamp costs 1; the swamp is 10 columns wide and 30 rows high,
    and lies between the start and the right. At most 2 expected steps in the swamp: through it is
    short, and round it is long.

    Sense: rewards to maximise, costs within a budget; r^1 = 1 - cost, b = 100 - 2. Nothing is
    scaled.
    """
    steps = size if horizon is None else horizon
    checked_sizes(size=size, horizon=steps)
    row, column = np.divmod(np.arange(size * size), size)
    right = column >= 3 * size // 5
    swamp = (column >= 7 * size // 20) & (column < 9 * size // 20)
    swamp &= np.abs(row - size // 2) < 3 * size // 20
    reward = np.repeat(np.stack([1.0 * right, 1.0 - swamp])[..., None], 4, axis=-1)
    return CMDP(
        slippery_lists(landings(size, size), SLIP),
        reward,
        np.array([steps - budget]),
        start=size // 2 * size + size // 5,
        horizon=steps,
        name="slippery-grid" if size == 100 else f"slippery-grid {size} x {size}",
    )
