"""Mars rover on an 8 x 8 map: X = 64, A = 4, H = 30, one cost constraint.

Origin: the map `8x8rcpo` released with Brantley et al. (2020), the default of their grid world; the
release has another map called `8x8`, whose optimum would be 1.54639. All parameters are those of
that release, its reward included: it pays for a pit as for the goal.

State: the cell. Actions: up, down, left, right; with probability 0.1 the move is drawn again
uniformly, so that the chosen one is made with 0.925. A move off the map stays. The goal G and the
pits P absorb. Entering G or P pays 1, and every later step there 1/30; entering P costs 1, and
every later step there 1/30. At most 0.3 expected cost in 30 steps.

Sense: rewards to maximise, costs within a budget; here r^1 = 1 - cost and b = 30 - 0.3. Rewards
are expectations given state and action; nothing is scaled. Cost = 30 - utility.

Optimum 1.53629, multiplier 0.193; without the constraint 1.81682 at the same cost, by a dive into
the nearest pit. At a budget of 0.1 the optimum is 1.49741. Our certified solver finds the same.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Scale, fixed, stationary_costs
from cmdplab.environments.grids import deterministic, landings, slippery

MAP = (
    "S0000000",
    "00000000",
    "000P00P0",
    "00000000",
    "00000000",
    "0PP00000",
    "0P00P0P0",
    "000P000G",
)
HORIZON = 30
SLIP = 0.1
BUDGET = 0.3


def mars_rover(budget: float = BUDGET) -> CMDP:
    """Make the released map with a budget for the pits."""
    cells = np.array([list(row) for row in MAP]).ravel()
    pit, end = cells == "P", np.isin(cells, ["P", "G"])
    landing = landings(len(MAP), len(MAP[0]))
    landing[end] = np.flatnonzero(end)[:, None]
    kernel = slippery(deterministic(landing), SLIP)
    paying = np.where(end, 1.0 / HORIZON, 1.0)[:, None]  # less once inside
    objective, cost = (paying * (kernel @ marked) for marked in (end, pit))
    return stationary_costs(
        kernel, objective, cost, budget, HORIZON, int(np.flatnonzero(cells == "S")[0]), "mars-rover"
    )


SUMMARY = "8 x 8 cells with slips; pits pay and cost"
SOURCE = "Brantley et al. (2020), code, map 8x8rcpo"
UNITS = (Scale("goals and pits"), Scale("pits", -1.0, HORIZON))
OPTIMUM = Certified(1.53628844, (0.19298178,), 0.299995994, 1.81682218)

ENTRIES = {"mars-rover": fixed(mars_rover, SUMMARY, SOURCE, UNITS, OPTIMUM)}
