"""Infinite-horizon problems, and those with a random start, as episodes from one start state.

- Discounted: V[r] = E sum_{h >= 0} gamma^h r(x_h, a_h) is cut after H steps; r_h = gamma^h r.
- Average: lim 1/H E sum_{h < H} r(x_h, a_h) becomes the sum itself, with thresholds H b.
- A random start: one step more at the beginning, in one state more, where nothing is earned.

Optimal policies of an episode depend on the step: an optimum that needs a stationary random policy
in the infinite problem may be attained here by a deterministic one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from cmdplab.checks import is_whole, real_number, whole_horizon, whole_number
from cmdplab.cmdp.checks import check_sizes, checked_mask, floats
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.types import Array, Mask


def tail_bound(discount: float, horizon: int, largest: float = 1.0) -> float:
    """largest gamma^H / (1 - gamma): what a reward of that size earns from step H on."""
    _checked_discount(discount)
    return largest * discount ** whole_number("the horizon", horizon) / (1.0 - discount)


def steps_for(discount: float, accuracy: float, largest: float = 1.0) -> int:
    """The smallest H >= 1 with tail_bound(discount, H, largest) <= accuracy."""
    _checked_discount(discount)
    if not (real_number("accuracy", accuracy) > 0.0 and real_number("largest", largest) > 0.0):
        raise InputError(f"accuracy is {accuracy:g} and the largest reward {largest:g}, not > 0")
    horizon = math.log(accuracy * (1.0 - discount) / largest) / math.log(discount)
    return max(1, math.ceil(horizon))


def discounted(
    kernel: npt.ArrayLike | Sparse,
    reward: npt.ArrayLike,
    threshold: npt.ArrayLike,
    discount: float,
    start: int | npt.ArrayLike,
    horizon: int,
    name: str = "discounted",
    mask: Mask | None = None,
) -> CMDP:
    """A discounted problem cut after `horizon` steps: r_h = gamma^h r, the same thresholds.

    kernel : [X, A, X] or lists. reward : [1 + N, X, A] in [0, 1]. threshold : [N], on discounted
    sums. mask : [X, A] or [H, X, A], as in `CMDP`.
    start : a state, or the distribution [X] of the first state (then H + 1 steps, X + 1 states).
    Every policy earns at most tail_bound(discount, horizon) less here than in the original, in
    every reward. Hence, with the optimal multipliers of the problem made here,
    V*_inf - (1 + sum of multipliers) tail <= V*_H <= V*_inf.
    """
    _checked_discount(discount)
    weights = discount ** np.arange(whole_horizon(horizon))
    rows, stationary = _rows(kernel), floats("reward", reward)
    if stationary.ndim != 3:
        raise InputError(f"reward must have the shape [1 + N, X, A], not {stationary.shape}")
    weighted = weights[None, :, None, None] * stationary[:, None]
    bounds = floats("threshold", threshold)
    if is_whole(start):
        return CMDP(rows, weighted, bounds, int(start), name=name, mask=mask)
    opened = _with_a_step_before(checked_mask(mask, weighted.shape[1:]))
    rows, weighted, first = with_random_start(rows, weighted, start)
    return CMDP(rows, weighted, bounds, first, name=name, mask=opened)


def averaged(
    kernel: npt.ArrayLike | Sparse,
    reward: npt.ArrayLike,
    threshold: npt.ArrayLike,
    horizon: int,
    start: int = 0,
    name: str = "averaged",
    mask: Mask | None = None,
) -> CMDP:
    """An average-reward problem over H steps from one state: the same rewards, thresholds H b.

    kernel : [X, A, X] or lists. reward : [1 + N, X, A] in [0, 1]. threshold : [N], per step.
    mask : [X, A] or [H, X, A], as in `CMDP`.
    V* / H tends to the optimal average; where all states communicate the difference is O(1 / H).
    """
    steps, rewards = whole_horizon(horizon), floats("reward", reward)
    bounds = steps * floats("threshold", threshold)
    return CMDP(_rows(kernel), rewards, bounds, start, steps, name, mask)


@overload
def with_random_start(
    kernel: Sparse, reward: npt.ArrayLike, distribution: npt.ArrayLike
) -> tuple[Sparse, Array, int]: ...


@overload
def with_random_start(
    kernel: npt.ArrayLike, reward: npt.ArrayLike, distribution: npt.ArrayLike
) -> tuple[Array, Array, int]: ...


def with_random_start(
    kernel: npt.ArrayLike | Sparse, reward: npt.ArrayLike, distribution: npt.ArrayLike
) -> tuple[Array | Sparse, Array, int]:
    """(kernel, reward, start) of the problem whose first state is random.

    kernel : [X, A, X] or [H, X, A, X], or lists. reward : [1 + N, H, X, A]. distribution : [X].
    The new start is state X. Every action leads from it into `distribution` and earns nothing;
    the rewards of step h move to step h + 1. No value changes, and so no threshold.
    """
    rows, paid = _rows(kernel), floats("reward", reward)
    first = floats("the start distribution", distribution)
    if paid.ndim != 4:
        raise InputError(f"reward must have the shape [1 + N, H, X, A], not {paid.shape}")
    check_sizes(rows, paid)
    rewards, horizon, states, actions = paid.shape
    if first.shape != (states,) or not math.isclose(float(first.sum()), 1.0, abs_tol=1e-8):
        raise InputError(f"the start distribution must be {states} numbers that sum to 1")
    later = np.zeros((rewards, horizon + 1, states + 1, actions))
    later[:, 1:, :states] = paid
    if not isinstance(rows, Sparse):
        return _with_a_state_more(rows, first, states + 1), later, states
    reached = np.flatnonzero(first)
    most = max(rows.successor.shape[-1], len(reached))
    successor = _with_a_state_more(rows.successor, reached, most)
    probability = _with_a_state_more(rows.probability, first[reached], most)
    return Sparse(successor.astype(np.int64), probability), later, states


def randomly_started(problem: CMDP, distribution: npt.ArrayLike) -> CMDP:
    """The problem with a random first state: `with_random_start`, closed pairs and names included.

    The new state is called "start" where states have names, and the new step "before".
    """
    labels = problem.labels
    kernel = problem.transition
    rows = kernel[0] if problem.stationary and not isinstance(kernel, Sparse) else kernel
    kernel, rewards, first = with_random_start(rows, problem.reward, distribution)
    mask = _with_a_step_before(problem.mask)
    states = (*labels.states, _unused("start", labels.states)) if labels.states else ()
    steps = (_unused("before", labels.steps), *labels.steps) if labels.steps else ()
    names = replace(labels, states=states, steps=steps)
    threshold, name = problem.threshold, problem.name
    return CMDP(kernel, rewards, threshold, first, name=name, mask=mask, labels=names)


def _unused(word: str, names: tuple[str, ...]) -> str:
    """The word, with as many primes as it takes to be none of the names."""
    while word in names:
        word += "'"
    return word


def _rows(kernel: npt.ArrayLike | Sparse) -> Array | Sparse:
    """A table of real numbers, [X, A, X] or [H, X, A, X], or the lists as they are."""
    if isinstance(kernel, Sparse):
        return kernel
    table = floats("transition", kernel)
    if table.ndim not in (3, 4):
        raise InputError(
            f"transition must have the shape [H, X, A, X] or [X, A, X], not {table.shape}"
        )
    return table


def _with_a_state_more(rows: npt.NDArray[Any], last: npt.NDArray[Any], width: int) -> Array:
    """Rows [X, A, K] or [H, X, A, K] and a last state with rows `last`, all of them `width` long.

    Rows of H steps become rows of H + 1, the first step twice: nobody is in those states then.
    """
    steps = () if rows.ndim == 3 else (len(rows) + 1,)
    states, actions, places = rows.shape[-3:]
    wider = np.zeros((*steps, states + 1, actions, width))
    wider[..., :states, :, :places] = rows if not steps else rows[[0, *range(len(rows))]]
    wider[..., states, :, : len(last)] = last
    return wider


def _with_a_step_before(mask: Mask | None) -> Mask | None:
    """[H, X, A] -> [H + 1, X + 1, A]: in the state before the first one all actions are open."""
    if mask is None:
        return None
    steps, states, actions = mask.shape
    wider = np.ones((steps + 1, states + 1, actions), dtype=np.bool_)
    wider[:, :states] = mask[[0, *range(steps)]]
    return wider


def _checked_discount(discount: float) -> None:
    if not 0.0 < real_number("the discount", discount) < 1.0:
        raise InputError(f"the discount is {discount:g}, not between 0 and 1")
