"""The 5 x 5 grid with two magic cells: X = 26, A = 4, H = 154, one or three utility constraints.

Origin: the grid and the utilities released with Jain, Vaswani et al. (2022), who took Example 3.5
of Sutton & Barto and changed what it pays. All parameters are those of that release; it is
discounted by 0.9, from a uniform start.

State: the cell, row by row. Actions: up, down, left, right. A move off the grid stays. Every action
at cell 1 pays 1 and leads to 21, at cell 3 it pays 0.5 and leads to 13; nothing else pays, a move
off the grid included. Utilities belong to cells, whatever the action: (1) cell 3 has 1, cell 1 has
0.1, at least 1.5; (2) cell 0 has 0.7, cell 4 has 0.2, at least 0.85; (3) cell 21 has 0.5, cell 13
has 1.5, at least 2.7. `five-by-five` has the first, `five-by-five-3` all three.

Sense: rewards and utilities, both to be kept high. Here r^0 is the pay and the utilities are
divided by 1, 0.7 and 1.5, their largest; everything is weighted by 0.9^h and cut after 153 steps,
so that less than 1e-6 of the pay is lost. The uniform start is a step of its own, from state 25,
without reward.

Optimum 1.652722, multiplier 0.17323; without the constraint 1.732862. With three constraints
1.397688, multipliers 0.11098, 0.35949, 0.04314. With the thresholds 1, 0.7, 0.5, 0.38 for the
discounts 0.85, 0.8, 0.75, 0.7 the optima with one constraint are 1.030495, 0.730965, 0.559401,
0.444326. These are a linear program's on the released arrays; our certified solver finds the same.

Version 0 (cmdplab 0.1.0) paid 10, 5 and -1 off the grid, as the book does and the release does not.
With one constraint its optimum was ten times the present one; with three it was 12.83621 instead
of 13.97688, as the second utility is earned by moves off the grid that stay in a corner. It is
dropped: these utilities and thresholds were never released with that pay.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from cmdplab.cmdp.horizons import discounted, steps_for, tail_bound
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Environment, Scale, fixed
from cmdplab.environments.grids import deterministic, landings

SIDE = 5
DISCOUNT = 0.9
MAGIC = {1: (21, 1.0), 3: (13, 0.5)}  # cell -> (where it leads, what it pays)
UTILITIES = ({3: 1.0, 1: 0.1}, {0: 0.7, 4: 0.2}, {21: 0.5, 13: 1.5})
THRESHOLDS = (1.5, 0.85, 2.7)
ACCURACY = 1e-6  # of the pay


def five_by_five(
    thresholds: tuple[float, ...] = THRESHOLDS[:1],
    discount: float = DISCOUNT,
    name: str = "five-by-five",
) -> CMDP:
    """Make the grid with one, two or three constraints, one for each threshold."""
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
        steps_for(discount, ACCURACY),
        name,
    )


def _largest(constraint: int) -> float:
    return max(UTILITIES[constraint].values())


def _entry(name: str, constraints: int, summary: str, certified: Certified) -> Environment:
    units = [Scale("discounted pay")]
    units += [Scale(f"discounted utility {n + 1}", _largest(n)) for n in range(constraints)]
    return fixed(
        partial(five_by_five, THRESHOLDS[:constraints], name=name),
        summary,
        "Jain, Vaswani et al. (2022), code",
        version=1,  # 0 paid what the book pays, not what the release does
        units=tuple(units),
        certified=certified,
        tail=tail_bound(DISCOUNT, steps_for(DISCOUNT, ACCURACY)),
        unverified="the list of authors",
    )


ENTRIES = {
    "five-by-five": _entry(
        "five-by-five",
        1,
        "a grid with two magic cells, discounted by 0.9",
        Certified(1.65272163, (0.173230303,), 1.05727285, 1.73286146),
    ),
    "five-by-five-3": _entry(
        "five-by-five-3",
        3,
        "the same with three constraints that bind",
        Certified(1.39768777, (0.110979355, 0.251644779, 0.0647086573), 0.558015922, 1.73286146),
    ),
}
