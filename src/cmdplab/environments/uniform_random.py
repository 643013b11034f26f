"""A dense random CMDP: X = 21, A = 10, H = 71, one utility constraint.

Origin: the random CMDP of Ding et al. (2020) as customised in the code of ARNPG: 20 states, 10
actions, discount 0.8, uniform start, NumPy's seed 10. The rows of P are 20 uniform numbers,
normalised, then r and u are uniform on [0, 1], drawn in that order; the stream is NumPy's old one,
so that the instance is the released one. [unverified] Ding et al. (2023) are said to use the same.

Sense: rewards and utilities, both to be kept high. Nothing is scaled; everything is weighted by
0.8^h and cut after 70 steps, so that less than 1e-6 is lost. The uniform start is a step of its
own, from state 20, without reward.

`uniform-random-3` has the released threshold 3, which is mild: optimum 4.46244, multiplier 0.2427;
`uniform-random-4` has 4: optimum 4.00538, multiplier 0.972. Without the constraint 4.51692 at
utility 2.41758; the largest utility is 4.52503. Our certified solver finds the same.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from cmdplab.cmdp.horizons import discounted, steps_for, tail_bound
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Environment, Scale, fixed

STATES, ACTIONS = 20, 10
DISCOUNT = 0.8
INSTANCE = 10  # the released seed
HORIZON = steps_for(DISCOUNT, 1e-6)


def uniform_random(threshold: float) -> CMDP:
    """Make the released instance with a threshold on the discounted utility."""
    random = np.random.RandomState(INSTANCE)
    kernel = random.random_sample((STATES, ACTIONS, STATES))
    kernel /= kernel.sum(axis=-1, keepdims=True)
    reward = random.random_sample((2, STATES, ACTIONS))
    uniform = np.full(STATES, 1.0 / STATES)
    name = f"uniform-random-{threshold:g}"
    return discounted(kernel, reward, [threshold], DISCOUNT, uniform, HORIZON, name)


def _entry(threshold: float, summary: str, source: str, certified: Certified) -> Environment:
    return fixed(
        partial(uniform_random, threshold),
        summary,
        source,
        units=(Scale("discounted reward"), Scale("discounted utility")),
        certified=certified,
        tail=tail_bound(DISCOUNT, HORIZON),
    )


_SOURCE = "Ding et al. (2020), as in the code of ARNPG"

ENTRIES = {
    "uniform-random-3": _entry(
        3.0,
        "dense, discounted by 0.8, mild constraint",
        _SOURCE,
        Certified(4.46244278, (0.24266971,), 1.52502668, 4.51692282),
    ),
    "uniform-random-4": _entry(
        4.0,
        "the same with a higher threshold",
        f"{_SOURCE}; threshold ours",
        Certified(4.00537433, (0.97229024,), 0.525026681, 4.51692282),
    ),
}
