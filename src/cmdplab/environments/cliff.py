"""A cliff walk that costs more the nearer the cliff: X = 24, A = 4, H = 15, one cost constraint.

Origin: the cliff walk with row costs of gym-factored, used with AlwaysSafe (Simão et al., 2021) at
4 x 6 cells. All parameters are those of the release.

State: the cell, rows counted from the top. An episode starts bottom left, the goal is bottom right
and absorbs; the cells between them are the cliff. Actions: up, down, left, right, always carried
out; a move off the grid stays. A step pays -1; a step into the cliff pays -100 and leads back to
the start. A step costs the row number of the cell it leads to, but nothing in the top row, the
bottom row, the first and the last column. At most 2 expected cost.

Sense: rewards to maximise, costs within a budget. Here r^0 = 1 + pay / 100 and r^1 = 1 - cost / 2,
b = 15 - 2 / 2 (2 is the largest cost of 4 rows). Pay = 100 (objective - 15), cost =
2 (15 - utility). One step is 0.01 of the objective.

Optimum -10, multiplier 0.5; without the constraint -7 at cost 8, and -11 at cost 0. At 3 x 4 cells
and H = 20 the optima are -5, -6, -7 for the budgets 2, 1, 0; at 4 x 12 and H = 20 they are -13,
-15, -17 for 20, 10, 0. Our certified solver finds the same wherever there is slack.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Scale, checked_sizes, fixed, stationary_costs
from cmdplab.environments.grids import deterministic, landings
from cmdplab.errors import InputError

STEP, FALL = 1.0, 100.0  # what they take
HORIZON = 15


def cliff(rows: int = 4, columns: int = 6, horizon: int = HORIZON, budget: float = 2.0) -> CMDP:
    """Make the walk on a grid of any size. The budget counts rows."""
    checked_sizes(rows=rows, columns=columns, horizon=horizon)
    if rows < 3 or columns < 2:
        raise InputError(f"a cliff walk of {rows} x {columns} cells has no row between the edges")
    states, start = rows * columns, (rows - 1) * columns
    goal = states - 1
    row, column = np.divmod(np.arange(states), columns)
    edge = np.isin(row, [0, rows - 1]) | np.isin(column, [0, columns - 1])
    landing = landings(rows, columns)
    pay = np.where((landing > start) & (landing < goal), -FALL, -STEP)
    cost = np.where(edge, 0.0, row)[landing]
    landing[(landing > start) & (landing < goal)] = start
    landing[goal], pay[goal], cost[goal] = goal, 0.0, 0.0
    return stationary_costs(
        deterministic(landing),
        1.0 + pay / FALL,
        cost / (rows - 2),
        budget / (rows - 2),
        horizon,
        start,
        "cliff",
    )


SUMMARY = "walk round a cliff; rows near it cost more"
SOURCE = "Simão et al. (2021), code"
UNITS = (Scale("pay", FALL, -FALL * HORIZON), Scale("rows", -2.0, 2.0 * HORIZON))
OPTIMUM = Certified(14.9, (0.01,), 1.0, 14.93)

ENTRIES = {"cliff": fixed(cliff, SUMMARY, SOURCE, UNITS, OPTIMUM)}
