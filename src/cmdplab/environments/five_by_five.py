"""The 5 x 5 grid with two magic cells: X = 26, A = 4, H = 177, one or three utility constraints.

Origin: Example 3.5 of Sutton & Barto, with the utilities released with Jain, Vaswani et al. (2022).
All parameters are those of that release; it is discounted by 0.9, from a uniform start.

State: the cell, row by row. Actions: up, down, left, right. A move off the grid pays -1 and stays;
every action at cell 1 pays 10 and leads to 21, at cell 3 it pays 5 and leads to 13; else nothing
is paid. Utilities belong to cells, whatever the action: (1) cell 3 has 1, cell 1 has 0.1, at least
1.5; (2) cell 0 has 0.7, cell 4 has 0.2, at least 0.85; (3) cell 21 has 0.5, cell 13 has 1.5, at
least 2.7. `five-by-five` has the first, `five-by-five-3` all three.

Sense: rewards and utilities, both to be kept high. Here r^0 = (pay + 1) / 11 and the utilities are
divided by 1, 0.7 and 1.5, their largest; everything is weighted by 0.9^h and cut after 176 steps,
so that less than 1e-6 of the pay is lost. The uniform start is a step of its own, from state 25,
without reward. Pay = 11 objective - 10, up to the tail.

Optimum 16.52722, multiplier 1.732; without the constraint 17.32862. With three constraints
12.83621, multipliers 0.831, 5.203, 0.624. With the thresholds 1, 0.7, 0.5, 0.38 for the discounts
0.85, 0.8, 0.75, 0.7 the optima with one constraint are 10.30495, 7.30965, 5.59401, 4.44326. Our
certified solver finds the same.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from cmdplab.environments.entry import Certified, Environment, Scale, fixed
from cmdplab.environments.grids import deterministic, landings
from cmdplab.environments.horizons import discounted, steps_for, tail_bound
from cmdplab.problem import CMDP

SIDE = 5
DISCOUNT = 0.9
MAGIC = {1: (21, 10.0), 3: (13, 5.0)}  # cell -> (where it leads, what it pays)
RANGE = 11.0  # from -1 to 10
UTILITIES = ({3: 1.0, 1: 0.1}, {0: 0.7, 4: 0.2}, {21: 0.5, 13: 1.5})
THRESHOLDS = (1.5, 0.85, 2.7)
ACCURACY = 1e-6  # of the pay


def five_by_five(
    thresholds: tuple[float, ...] = THRESHOLDS[:1],
    discount: float = DISCOUNT,
    name: str = "five-by-five",
) -> CMDP:
    """The grid with the first one, two or three constraints."""
    states = SIDE * SIDE
    landing = landings(SIDE, SIDE)
    pay = np.where(landing == np.arange(states)[:, None], -1.0, 0.0)
    for cell, (there, amount) in MAGIC.items():
        landing[cell], pay[cell] = there, amount
    reward = np.zeros((1 + len(thresholds), states, 4))
    reward[0] = (pay + 1.0) / RANGE
    for n, cells in enumerate(UTILITIES[: len(thresholds)]):
        for cell, utility in cells.items():
            reward[1 + n, cell] = utility / _largest(n)
    return discounted(
        deterministic(landing),
        reward,
        [b / _largest(n) for n, b in enumerate(thresholds)],
        discount,
        np.full(states, 1.0 / states),
        steps_for(discount, ACCURACY, RANGE),
        name,
    )


def _largest(constraint: int) -> float:
    return max(UTILITIES[constraint].values())


def _entry(name: str, constraints: int, summary: str, certified: Certified) -> Environment:
    units = [Scale("discounted pay", RANGE, -1.0 / (1.0 - DISCOUNT))]
    units += [Scale(f"discounted utility {n + 1}", _largest(n)) for n in range(constraints)]
    return Environment(
        fixed(partial(five_by_five, THRESHOLDS[:constraints], name=name)),
        False,
        summary,
        "Jain, Vaswani et al. (2022), code",
        units=tuple(units),
        certified=certified,
        tail=tail_bound(DISCOUNT, steps_for(DISCOUNT, ACCURACY, RANGE), RANGE),
        unverified="the list of authors",
    )


ENTRIES = {
    "five-by-five": _entry(
        "five-by-five",
        1,
        "Sutton & Barto's grid, discounted by 0.9",
        Certified(2.41156529, (0.15748209,), 1.05727315, 2.48441966),
    ),
    "five-by-five-3": _entry(
        "five-by-five-3",
        3,
        "the same with three constraints that bind",
        Certified(2.0760188, (0.075578908, 0.33108747, 0.085136778), 0.558016137, 2.48441966),
    ),
}
