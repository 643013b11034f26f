"""Levels in a row that rise and fall by one: buffers, a queue, and swimming against the stream."""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.horizons import averaged
from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import checked_sizes, stationary_costs
from cmdplab.environments.grids import neighbours
from cmdplab.types import Array


def media_streaming() -> CMDP:
    """Make media streaming over a fast or a slow link: X = 10, A = 2, H = 10, one cost constraint.

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

    Optimum 3.25330 (as released: 10 - 3.25330 = 6.74670), multiplier 0.49519; without the
    constraint 4.60686 (5.39314). Our certified solver reproduces what the release prints. The
    optimal policy must randomise: at the fourth step and level 0 it takes the fast link with
    probability 0.115.
    """
    objective, cost = np.ones((10, 2)), np.zeros((10, 2))
    objective[0], cost[:, 0] = 0.0, 1.0
    arrival, playback = np.tile([0.9, 0.1], (10, 1)), 0.8
    up, down = arrival * (1.0 - playback), (1.0 - arrival) * playback
    kernel = neighbours(up, down, 1.0 - up - down)
    labels = Labels(tuple(f"buffer {n}" for n in range(10)), ("fast link", "slow link"))
    given = (5.0, 10, 0, "media-streaming", None, labels)
    return stationary_costs(kernel, objective, cost, *given)


THRESHOLDS = (0.5, 0.8)  # per step


def queue(horizon: int = 100) -> CMDP:
    """Make a queue with service and flow control: X = 6, A = 16, H = 100, two cost constraints.
    [unverified]

    Origin: the average-reward example of Altman (1999, chapter 5) in the form of later papers. The
    kernel was read in a release; every number below was not, and is [unverified].

    State: customers in the buffer, 0..5; an episode starts at 0. Action: a service a out of 0.2,
    0.4, 0.6, 0.8 and a flow f out of 0.5, 0.6, 0.7, 0.8, counted 4 i + j. Inside, the queue falls
    by one with probability a (1 - f), rises by one with (1 - a) f and stays otherwise; at 0 it
    cannot fall, and at 5 arrivals are blocked.

    Sense: reward 5 - x per step to maximise; on average 10 a - 5 <= 0 and 10 (1 - f)^2 - 2 <= 0.
    Here r^0 = (5 - x) / 5, r^1 = 1 - a and r^2 = 1 - (1 - f)^2, so that the thresholds per step are
    0.5 and 0.8, times H = 100. With H = 100 the optimum per step is not yet the average one.

    The optimal average is 3.60028 by the stationary program; here 5 V* / H comes near it from
    above, because an episode starts with an empty buffer. All values here are our certified
    solver's.
    """
    kernel, reward = queue_arrays()
    return averaged(kernel, reward, THRESHOLDS, horizon, 0, "queue [unverified]")


def queue_arrays() -> tuple[Array, Array]:
    """Return the kernel [X, A, X] and the rewards [3, X, A] of the queue at every step."""
    pairs = np.meshgrid([0.2, 0.4, 0.6, 0.8], [0.5, 0.6, 0.7, 0.8], indexing="ij")
    service, flow = (each.ravel() for each in pairs)
    arrival = np.tile(flow, (6, 1))
    arrival[5] = 0.0  # blocked when the buffer is full
    up, down = (1.0 - service) * arrival, service * (1.0 - arrival)
    kernel = neighbours(up, down, 1.0 - up - down)
    reward = np.empty((3, *kernel.shape[:2]))
    reward[0] = 1.0 - np.arange(6)[:, None] / 5
    reward[1], reward[2] = 1.0 - service, 1.0 - (1.0 - flow) ** 2
    return kernel, reward


PLACES = 6
LEFT, RIGHT = 0, 1
Stroke = tuple[list[float], list[float]]  # [X] each, the probabilities of going left and right


def river_swim(horizon: int = 20, budget: float = 1.077) -> CMDP:
    """Make the swim against the stream: X = 6, A = 2, H = 20, one cost constraint, in two forms.

    State: the place, 0..5; an episode starts at 0. Action 0 swims left, action 1 right. Where it
    pays most is hard to reach, and the pay near the start tempts.

    - `river-swim`: the constrained RiverSwim released with RNPG (2025). Inside, a stroke succeeds
      with probability 0.3, goes the other way with 0.1 and stays otherwise; at an end, the stroke
      towards the bank stays with 0.9, the other one moves with 0.3. Left at place 0 pays 0.1, right
      at place 5 pays 1. A step at place x costs x / 20. The release is discounted, with a random
      start and no consistent threshold: horizon, start and the budget 1.077, midway between the
      least cost and that of the best swimmer, are ours.
    - `river-swim-osband`: the kernel and rewards of Osband's RiverSwim. Left always succeeds. Right
      moves on with probability 0.35, stays with 0.6 and falls back with 0.05 inside; from place 0
      it moves with 0.6; at place 5 it stays with 0.6 and falls back otherwise. Left at place 0 pays
      0.005, right at place 5 pays 1. The cost, 1 for every stroke to the right, and the budget H /
      2 are ours.

    Sense: rewards to maximise, costs within a budget; here r^1 = 1 - cost and b = H - budget.
    Nothing is scaled.

    Optimum 2.44181 with multiplier 0.728, without the constraint 2.79898; Osband's 2.01743, without
    the constraint 3.39726 at cost 19.12. With the budgets 4.744 at H = 50 and 10.988 at H = 100 the
    first form has the optima 12.94461 and 32.10414; Osband's has 8.46485 at H = 50. Our certified
    solver finds the same.
    """
    left = [0.1] + [0.3] * 5, [0.1] * 5 + [0.0]
    right = [0.0] + [0.1] * 5, [0.3] * 5 + [0.1]
    far = np.arange(PLACES)[:, None] / 20.0
    return _river(left, right, 0.1, np.repeat(far, 2, axis=1), horizon, budget, "river-swim")


def osband_river_swim(horizon: int = 20, budget: float = 10.0) -> CMDP:
    """Make `river-swim-osband` of `river_swim`, with a cost for every stroke to the right."""
    left = [1.0] * 6, [0.0] * 6
    right = [0.0] + [0.05] * 4 + [0.4], [0.6] + [0.35] * 4 + [0.0]
    strokes = np.tile([0.0, 1.0], (PLACES, 1))
    return _river(left, right, 0.005, strokes, horizon, budget, "river-swim-osband")


def _river(
    left: Stroke, right: Stroke, bank: float, cost: Array, horizon: int, budget: float, name: str
) -> CMDP:
    """Make a problem from two strokes, the reward at the near bank and a cost [X, A]."""
    checked_sizes(horizon=horizon)
    objective = np.zeros((PLACES, 2))
    objective[0, LEFT], objective[-1, RIGHT] = bank, 1.0
    back, on = np.stack([left, right], axis=-1)  # [X, A] each
    kernel = neighbours(on, back, 1.0 - (back + on))
    return stationary_costs(kernel, objective, cost, budget, horizon, 0, name)
