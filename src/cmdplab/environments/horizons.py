"""Infinite-horizon problems, and those with a random start, as episodes from one start state.

- Discounted: V[r] = E sum_{h >= 0} gamma^h r(x_h, a_h) is cut after H steps; r_h = gamma^h r.
- Average: lim 1/H E sum_{h < H} r(x_h, a_h) becomes the sum itself, with thresholds H b.
- A random start: one step more at the beginning, in one state more, where nothing is earned.

Optimal policies of an episode depend on the step: an optimum that needs a stationary random policy
in the infinite problem may be attained here by a deterministic one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from cmdplab.errors import InputError
from cmdplab.problem import CMDP, Array


def tail_bound(discount: float, horizon: int, largest: float = 1.0) -> float:
    """largest gamma^H / (1 - gamma): what a reward of that size earns from step H on."""
    _checked_discount(discount)
    return largest * discount**horizon / (1.0 - discount)


def steps_for(discount: float, accuracy: float, largest: float = 1.0) -> int:
    """The smallest H >= 1 with tail_bound(discount, H, largest) <= accuracy."""
    _checked_discount(discount)
    if not (accuracy > 0.0 and largest > 0.0):
        raise InputError(f"accuracy is {accuracy:g} and the largest reward {largest:g}, not > 0")
    horizon = math.log(accuracy * (1.0 - discount) / largest) / math.log(discount)
    return max(1, math.ceil(horizon))


def discounted(
    kernel: Array,
    reward: Array,
    threshold: npt.ArrayLike,
    discount: float,
    start: int | Array,
    horizon: int,
    name: str = "discounted",
) -> CMDP:
    """A discounted problem cut after `horizon` steps: r_h = gamma^h r, the same thresholds.

    kernel : [X, A, X]. reward : [1 + N, X, A] in [0, 1]. threshold : [N], on discounted sums.
    start : a state, or the distribution [X] of the first state (then H + 1 steps, X + 1 states).
    Every policy earns at most tail_bound(discount, horizon) less here than in the original, in
    every reward. Hence, with the optimal multipliers of the problem made here,
    V*_inf - (1 + sum of multipliers) tail <= V*_H <= V*_inf.
    """
    _checked_discount(discount)
    weights = discount ** np.arange(horizon)
    weighted = weights[None, :, None, None] * np.asarray(reward)[:, None]
    if isinstance(start, int | np.integer):
        return CMDP(kernel, weighted, np.asarray(threshold), int(start), name=name)
    kernel, weighted, first = with_random_start(kernel, weighted, start)
    return CMDP(kernel, weighted, np.asarray(threshold), first, name=name)


def averaged(
    kernel: Array,
    reward: Array,
    threshold: npt.ArrayLike,
    horizon: int,
    start: int = 0,
    name: str = "averaged",
) -> CMDP:
    """An average-reward problem over H steps from one state: the same rewards, thresholds H b.

    kernel : [X, A, X]. reward : [1 + N, X, A] in [0, 1]. threshold : [N], per step.
    V* / H tends to the optimal average; where all states communicate the difference is O(1 / H).
    """
    return CMDP(kernel, reward, horizon * np.asarray(threshold), start, horizon, name)


def with_random_start(
    kernel: Array, reward: Array, distribution: npt.ArrayLike
) -> tuple[Array, Array, int]:
    """(kernel, reward, start) of the problem whose first state is random.

    kernel : [X, A, X] or [H, X, A, X]. reward : [1 + N, H, X, A]. distribution : [X].
    The new start is state X. Every action leads from it into `distribution` and earns nothing;
    the rewards of step h move to step h + 1. No value changes, and so no threshold.
    """
    first = np.asarray(distribution, dtype=np.float64)
    rewards, horizon, states, actions = reward.shape
    if first.shape != (states,) or not math.isclose(float(first.sum()), 1.0, abs_tol=1e-8):
        raise InputError(f"the start distribution must be {states} numbers that sum to 1")
    steps = () if kernel.ndim == 3 else (horizon + 1,)
    wider = np.zeros((*steps, states + 1, actions, states + 1))
    if steps:
        wider[1:, :states, :, :states] = kernel
        wider[0, :states, :, :states] = kernel[0]
    else:
        wider[:states, :, :states] = kernel
    wider[..., states, :, :states] = first
    later = np.zeros((rewards, horizon + 1, states + 1, actions))
    later[:, 1:, :states] = reward
    return wider, later, states


def _checked_discount(discount: float) -> None:
    if not 0.0 < discount < 1.0:
        raise InputError(f"the discount is {discount:g}, not between 0 and 1")
