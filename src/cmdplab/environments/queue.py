"""A queue with service and flow control: X = 6, A = 16, H = 100, two cost constraints. [unverified]

Origin: the average-reward example of Altman (1999, chapter 5) in the form of later papers. The
kernel was read in a release; every number below was not, and is [unverified].

State: customers in the buffer, 0..5; an episode starts at 0. Action: a service a out of 0.2, 0.4,
0.6, 0.8 and a flow f out of 0.5, 0.6, 0.7, 0.8, counted 4 i + j. Inside, the queue falls by one
with probability a (1 - f), rises by one with (1 - a) f and stays otherwise; at 0 it cannot fall,
and at 5 arrivals are blocked.

Sense: reward 5 - x per step to maximise; on average 10 a - 5 <= 0 and 10 (1 - f)^2 - 2 <= 0. Here
r^0 = (5 - x) / 5, r^1 = 1 - a and r^2 = 1 - (1 - f)^2, so that the thresholds per step are 0.5 and
0.8, times H = 100. With H = 100 the optimum per step is not yet the average one.

The optimal average is 3.60028 by the stationary program; here 5 V* / H comes near it from above,
because an episode starts with an empty buffer. All values here are our certified solver's.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.horizons import averaged
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Scale, fixed
from cmdplab.environments.grids import neighbours
from cmdplab.types import Array

BUFFER = 5
SERVICE = (0.2, 0.4, 0.6, 0.8)
FLOW = (0.5, 0.6, 0.7, 0.8)
THRESHOLDS = (0.5, 0.8)  # per step
HORIZON = 100


def queue(horizon: int = HORIZON) -> CMDP:
    """Make the average-reward problem over `horizon` steps."""
    kernel, reward = queue_arrays()
    return averaged(kernel, reward, THRESHOLDS, horizon, 0, "queue [unverified]")


def queue_arrays() -> tuple[Array, Array]:
    """Return (kernel [X, A, X], reward [3, X, A]) of one step."""
    service, flow = (each.ravel() for each in np.meshgrid(SERVICE, FLOW, indexing="ij"))
    arrival = np.tile(flow, (BUFFER + 1, 1))
    arrival[BUFFER] = 0.0  # blocked when the buffer is full
    up, down = (1.0 - service) * arrival, service * (1.0 - arrival)
    kernel = neighbours(up, down, 1.0 - up - down)
    reward = np.empty((3, *kernel.shape[:2]))
    reward[0] = 1.0 - np.arange(BUFFER + 1)[:, None] / BUFFER
    reward[1], reward[2] = 1.0 - service, 1.0 - (1.0 - flow) ** 2
    return kernel, reward


SUMMARY = "service and admission [unverified]"
SOURCE = "after Altman (1999), chapter 5 [unverified]"
UNVERIFIED = "service and flow levels, rewards, constraints and thresholds"
UNITS = (
    Scale("free places per step", BUFFER / HORIZON),
    Scale("10 a - 5 per step", -10.0 / HORIZON, 5.0),
    Scale("10 (1 - f)^2 - 2 per step", -10.0 / HORIZON, 8.0),
)
OPTIMUM = Certified(77.2410973, (1.29797, 1.3220033), 16.0, 93.6777137)

ENTRIES = {"queue": fixed(queue, SUMMARY, SOURCE, UNITS, OPTIMUM, unverified=UNVERIFIED)}
