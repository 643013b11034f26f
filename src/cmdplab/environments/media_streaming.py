"""Media streaming over a fast or a slow link: X = 10, A = 2, H = 10, one cost constraint.

Origin: the `MediaControl` example released with DOPE (Bura et al., 2022), after a model of
HasanzadeZonuzy et al. All parameters are those of that release.

State: packets in the buffer, 0..9; an episode starts at 0. Action 0 is the fast link (a packet
arrives with probability 0.9), action 1 the slow link (0.1). A packet is played with probability
0.8, independently: the level rises by one with probability arrival * 0.2, falls by one with
probability (1 - arrival) * 0.8, and stays otherwise or where it would leave 0..9.

Sense, as released: minimise the expected steps at level 0, with at most 5 expected steps on the
fast link (costs). Here: objective r^0 = 1 at levels above 0, utility r^1 = 1 on the slow link,
b = 10 - 5 = 5. Nothing is scaled: steps at level 0 = 10 - objective, steps on the fast link =
10 - utility.

Optimum 3.25330 (as released: 10 - 3.25330 = 6.74670), multiplier 0.49519; without the constraint
4.60686 (5.39314). Our certified solver reproduces what the release prints. The optimal policy
must randomise: at the fourth step and level 0 it takes the fast link with probability 0.115.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Scale, fixed, stationary_costs
from cmdplab.environments.grids import neighbours

HORIZON = 10
LEVELS = 10
ARRIVAL = (0.9, 0.1)  # on the fast link, on the slow link
PLAYBACK = 0.8
FAST = 0
FAST_STEPS = 5.0  # the budget
LABELS = Labels(tuple(f"buffer {n}" for n in range(LEVELS)), ("fast link", "slow link"))


def media_streaming() -> CMDP:
    """Make the instance released with DOPE."""
    objective, cost = np.ones((LEVELS, len(ARRIVAL))), np.zeros((LEVELS, len(ARRIVAL)))
    objective[0], cost[:, FAST] = 0.0, 1.0
    given = (FAST_STEPS, HORIZON, 0, "media-streaming", None, LABELS)
    arrival = np.tile(ARRIVAL, (LEVELS, 1))
    up, down = arrival * (1.0 - PLAYBACK), (1.0 - arrival) * PLAYBACK
    return stationary_costs(neighbours(up, down, 1.0 - up - down), objective, cost, *given)


SUMMARY = "a buffer to be kept filled over two links"
SOURCE = "Bura et al. (2022), code"
UNITS = (Scale("steps at level 0", -1.0, HORIZON), Scale("steps on the fast link", -1.0, HORIZON))
OPTIMUM = Certified(3.25329579, (0.49518978,), 5.0, 4.60686165)

ENTRIES = {"media-streaming": fixed(media_streaming, SUMMARY, SOURCE, UNITS, OPTIMUM)}
