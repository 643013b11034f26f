"""Two states that cannot both be had: X = 2, A = 2, H = 10, one utility constraint.

Origin: the "paradoxical" CMDP, with the parameters of the code of Ghosh, Zhou & Shroff (2024).
[unverified] Its name is traced to Moskovitz et al. (2023) and a post by Szepesvári (2020).

An episode starts in state 0. There action 0 stays and pays 1, action 1 moves to state 1 with
utility 1. In state 1 action 0 stays with utility 1, action 1 moves back for nothing. At least 5
expected utility in 10 steps. Everything is deterministic.

Sense: rewards and utilities, both to be kept high. Nothing is scaled.

Optimum 5, multiplier 1: reward and utility of a step sum to 1 until one moves back. Without the
constraint 10. Five steps in state 0 and five outside are optimal and deterministic, so the paradox
is gone: only a stationary policy must randomise. Discounted by 0.9 with b = 5 the optimum is 5
again, and the stationary policy stays in state 0 with probability 0.9091.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Scale, fixed
from cmdplab.types import Array

HORIZON = 10
THRESHOLD = 5.0


def paradox() -> CMDP:
    """Make the instance of the released code."""
    kernel, reward = paradox_arrays()
    return CMDP(kernel, reward, np.array([THRESHOLD]), 0, HORIZON, "paradox")


def paradox_arrays() -> tuple[Array, Array]:
    """Return (kernel [X, A, X], reward [2, X, A]) of one step, for other horizons."""
    kernel = np.zeros((2, 2, 2))
    kernel[0] = kernel[1, :, ::-1] = np.eye(2)
    reward = np.zeros((2, 2, 2))
    reward[0, 0, 0] = reward[1, 0, 1] = reward[1, 1, 0] = 1.0
    return kernel, reward


SUMMARY = "two states: one pays, the other has the utility"
SOURCE = "Ghosh, Zhou & Shroff (2024), code"
UNVERIFIED = "who named it"
UNITS = (Scale("reward"), Scale("utility"))
OPTIMUM = Certified(5.0, (1.0,), 5.0, 10.0)

ENTRIES = {"paradox": fixed(paradox, SUMMARY, SOURCE, UNITS, OPTIMUM, unverified=UNVERIFIED)}
