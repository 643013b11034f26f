"""Swimming against the stream: X = 6, A = 2, H = 20, one cost constraint, in two forms.

State: the place, 0..5; an episode starts at 0. Action 0 swims left, action 1 right. Where it pays
most is hard to reach, and the pay near the start tempts.

- `river-swim`: the constrained RiverSwim released with RNPG (2025). Inside, a stroke succeeds with
  probability 0.3, goes the other way with 0.1 and stays otherwise; at an end, the stroke towards
  the bank stays with 0.9, the other one moves with 0.3. Left at place 0 pays 0.1, right at place 5
  pays 1. A step at place x costs x / 20. The release is discounted, with a random start and no
  consistent threshold: horizon, start and the budget 1.077, midway between the least cost and
  that of the best swimmer, are ours.
- `river-swim-osband`: the kernel and rewards of Osband's RiverSwim. Left always succeeds. Right
  moves on with probability 0.35, stays with 0.6 and falls back with 0.05 inside; from place 0 it
  moves with 0.6; at place 5 it stays with 0.6 and falls back otherwise. Left at place 0 pays
  0.005, right at place 5 pays 1. The cost, 1 for every stroke to the right, and the budget
  H / 2 are ours.

Sense: rewards to maximise, costs within a budget; here r^1 = 1 - cost and b = H - budget. Nothing
is scaled.

Optimum 2.44181 with multiplier 0.728, without the constraint 2.79898; Osband's 2.01743, without
the constraint 3.39726 at cost 19.12. With the budgets 4.744 at H = 50 and 10.988 at H = 100 the
first form has the optima 12.94461 and 32.10414; Osband's has 8.46485 at H = 50. Our certified
solver finds the same.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Scale, checked_sizes, fixed, stationary_costs
from cmdplab.environments.grids import neighbours
from cmdplab.types import Array

STATES = 6
LEFT, RIGHT = 0, 1
HORIZON = 20
BUDGET = 1.077  # of river-swim
OSBAND_BUDGET = HORIZON / 2
Stroke = tuple[list[float], list[float]]  # [X] each, the probabilities of going left and right


def river_swim(horizon: int = HORIZON, budget: float = BUDGET) -> CMDP:
    """Make the form with a cost for being far out."""
    left = [0.1] + [0.3] * 5, [0.1] * 5 + [0.0]
    right = [0.0] + [0.1] * 5, [0.3] * 5 + [0.1]
    far = np.arange(STATES)[:, None] / 20.0
    return _river(left, right, 0.1, np.repeat(far, 2, axis=1), horizon, budget, "river-swim")


def osband_river_swim(horizon: int = HORIZON, budget: float = OSBAND_BUDGET) -> CMDP:
    """Make the form with a cost for every stroke to the right."""
    left = [1.0] * 6, [0.0] * 6
    right = [0.0] + [0.05] * 4 + [0.4], [0.6] + [0.35] * 4 + [0.0]
    strokes = np.tile([0.0, 1.0], (STATES, 1))
    return _river(left, right, 0.005, strokes, horizon, budget, "river-swim-osband")


def _river(
    left: Stroke, right: Stroke, bank: float, cost: Array, horizon: int, budget: float, name: str
) -> CMDP:
    """Make a problem from two strokes, the reward at the near bank and a cost [X, A]."""
    checked_sizes(horizon=horizon)
    objective = np.zeros((STATES, 2))
    objective[0, LEFT], objective[-1, RIGHT] = bank, 1.0
    back, on = np.stack([left, right], axis=-1)  # [X, A] each
    kernel = neighbours(on, back, 1.0 - (back + on))
    return stationary_costs(kernel, objective, cost, budget, horizon, 0, name)


ENTRIES = {
    "river-swim": fixed(
        river_swim,
        "pay far upstream, where every step costs",
        "RNPG (2025), code; horizon, start and budget ours",
        units=(Scale("reward"), Scale("cost", -1.0, HORIZON)),
        certified=Certified(2.44181083, (0.72834481,), 0.74028348, 2.79898156),
    ),
    "river-swim-osband": fixed(
        osband_river_swim,
        "pay far upstream, where every stroke costs",
        "Osband's RiverSwim, code; cost and budget ours",
        units=(Scale("reward"), Scale("strokes to the right", -1.0, HORIZON)),
        certified=Certified(2.01742965, (0.18264809,), 10.0, 3.39726396),
    ),
}
