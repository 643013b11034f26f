"""Conversion of problems without an end, or with a random start, to episodes from one state.

- Discounted: V[r] = E sum_{h >= 0} gamma^h r(x_h, a_h) is cut after H steps; r_h = gamma^h r.
- Average: lim 1/H E sum_{h < H} r(x_h, a_h) becomes the sum of H steps, with thresholds H b.
- A random start: one more step at the beginning, in one more state without reward.

Optimal policies of an episode may depend on the step. A deterministic policy may be optimal here,
where the problem without an end needs a randomised stationary one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.checks import is_whole, real_number, whole_horizon, whole_number
from cmdplab.cmdp.bundle import check_problem
from cmdplab.cmdp.checks import check_axes, check_sizes, floats, kernel_rows
from cmdplab.cmdp.labels import Scale, unused
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Discounted, StationaryCMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.types import Array, Indices, Mask, frozen

BRANCHES = 8  # successors that a state of a random start may always have


def tail_bound(discount: float, horizon: int, largest: float = 1.0) -> float:
    """Return largest gamma^H / (1 - gamma), a bound on the discounted rewards from step H on.

    largest : the largest absolute reward of one step.
    """
    _checked_discount(discount)
    return largest * discount ** whole_number("the horizon", horizon) / (1.0 - discount)


def steps_for(discount: float, accuracy: float, largest: float = 1.0) -> int:
    """Return the smallest H >= 1 with tail_bound(discount, H, largest) <= accuracy."""
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
    """Return a discounted problem cut after `horizon` steps: r_h = gamma^h r, equal thresholds.

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
    first = int(start) if is_whole(start) else 0
    problem = CMDP(rows, weighted, bounds, first, name=name, mask=mask)
    return problem if is_whole(start) else randomly_started(problem, start)


@frozen
class Truncated(NamedTuple):
    """Problem of H steps that approximates one without an end, and a bound on the difference."""

    problem: CMDP
    error: Array  # [1 + N], the largest difference of any policy's returns, in units of the labels


def with_an_end(problem: CMDP | StationaryCMDP) -> CMDP:
    """Return a problem with a horizon unchanged. Refuse one without an end, and other objects."""
    check_problem(problem)
    if isinstance(problem, CMDP):
        return problem
    if isinstance(problem.criterion, Discounted):
        how = "truncate(problem, H).problem ends it after H steps"
    else:
        how = "averaged(...) makes one of H steps of it"
    raise InputError(
        f"{problem.name} has no end, it is {problem.criterion}: this needs episodes. "
        f"cmdplab.cmdp.horizons.{how}; for a .csv or .drn file say --horizon H, with --discount "
        "or instead of --average"
    )


def truncate(problem: StationaryCMDP, horizon: int) -> Truncated:
    """Return a discounted problem cut after H steps, with rewards mapped onto [0, 1] for learners.

    `labels.signal(n).published` of a return is the return of the original problem within `error`,
    at most gamma^H / (1 - gamma) times the largest reward. An average is refused, because no such
    bound holds for every policy.
    """
    if not isinstance(problem.criterion, Discounted):
        raise InputError(
            f"{problem.name} is {problem.criterion}: after a number of steps no bound on what is "
            "left out holds for every policy; `averaged` makes a problem without one"
        )
    gamma = problem.criterion.discount
    low = np.minimum(problem.reward.min(axis=(1, 2)), 0.0)
    span = np.maximum(problem.reward.max(axis=(1, 2)), 0.0) - low
    span[span == 0.0] = 1.0
    total = float(np.sum(gamma ** np.arange(whole_horizon(horizon))))
    threshold = np.maximum((problem.threshold - low[1:] * total) / span[1:], 0.0)
    scaled = (problem.reward - low[:, None, None]) / span[:, None, None]
    factors = np.array([each.factor for each in problem.units])
    signals = tuple(
        Scale(each.of, each.factor * float(size), each.offset + each.factor * float(least) * total)
        for each, size, least in zip(problem.units, span, low, strict=True)
    )
    start = np.asarray(problem.start)
    given = (gamma, int(np.argmax(start)), horizon, problem.name, problem.mask)
    made = discounted(problem.transition, scaled, threshold, *given)
    made = made.changed(labels=replace(problem.labels, signals=signals))
    if start.max() < 1.0:
        made = randomly_started(made, start)
    largest = np.abs(problem.reward).max(axis=(1, 2))
    return Truncated(made, np.abs(factors) * tail_bound(gamma, horizon) * largest)


def averaged(
    kernel: npt.ArrayLike | Sparse,
    reward: npt.ArrayLike,
    threshold: npt.ArrayLike,
    horizon: int,
    start: int = 0,
    name: str = "averaged",
    mask: Mask | None = None,
) -> CMDP:
    """Return an average-reward problem over H steps from one state, with thresholds H b.

    kernel : [X, A, X] or lists. reward : [1 + N, X, A] in [0, 1].
    threshold : b [N], per step. mask : [X, A] or [H, X, A], as in `CMDP`.

    V* / H tends to the optimal average; if all states communicate, the difference is O(1 / H).
    """
    steps, rewards = whole_horizon(horizon), floats("reward", reward)
    bounds = steps * floats("threshold", threshold)
    return CMDP(_rows(kernel), rewards, bounds, start, steps, name, mask)


def with_random_start(
    kernel: npt.ArrayLike | Sparse, reward: npt.ArrayLike, distribution: npt.ArrayLike
) -> tuple[Any, Array, int]:
    """Return (kernel, reward, start) of the problem whose first state is random.

    kernel : [X, A, X] or [H, X, A, X], or lists.
    reward : [1 + N, H, X, A].
    distribution : [X], of the first state.

    The new start is state X. Each action leads from it to a state drawn from `distribution`, with
    reward 0. The rewards of step h move to step h + 1. No value changes, and so no threshold.

    Lists stay lists. If there are more first states than `BRANCHES` and than successors in any row,
    a tree of states X + 1, X + 2, ... draws the first state in several steps. The rewards then move
    by the height of the tree.
    """
    rows, paid = _rows(kernel), floats("reward", reward)
    first = floats("the start distribution", distribution)
    if paid.ndim != 4:
        raise InputError(f"reward must have the shape [1 + N, H, X, A], not {paid.shape}")
    check_sizes(rows, paid)
    rewards, horizon, states, actions = paid.shape
    if first.shape != (states,) or not math.isclose(float(first.sum()), 1.0, abs_tol=1e-8):
        raise InputError(f"the start distribution must be {states} numbers that sum to 1")
    most = states + 1
    if isinstance(rows, Sparse):
        most = max(rows.successor.shape[-1], BRANCHES)
    tree = _tree(first, most)
    later = np.zeros((rewards, horizon + tree.height, states + len(tree.states), actions))
    later[:, tree.height :, :states] = paid
    if not isinstance(rows, Sparse):
        return _with_states_more(rows, first[None], states + 1, 1), later, states
    successor = _with_states_more(rows.successor, tree.states, most, 0)
    probability = _with_states_more(rows.probability, tree.weights, most, tree.height)
    return Sparse(successor.astype(np.int64), probability), later, states


class _Tree(NamedTuple):
    """States X, X + 1, ... that draw the first state. The first row is that of the start."""

    states: Array  # [T, S], the successors of each state, as whole numbers
    weights: Array  # [T, S], their probabilities
    height: int  # steps from the start to the drawn state


def _tree(first: Array, most: int) -> _Tree:
    """Return the tree that draws from a distribution [X], with at most `most` successors each."""
    nodes, weights, height = np.flatnonzero(first), first[first > 0.0], 1
    groups: list[tuple[Indices, Array]] = []  # of each level, the lowest first
    while len(nodes) > most:
        parts = np.array_split(np.arange(len(nodes)), math.ceil(len(nodes) / most))
        groups += [(nodes[part], weights[part]) for part in parts]
        nodes = len(first) + 1 + np.arange(len(groups) - len(parts), len(groups))
        weights, height = np.array([weights[part].sum() for part in parts]), height + 1
    rows = [(nodes, weights), *groups]
    states, shares = np.zeros((2, len(rows), most))
    for n, (to, weight) in enumerate(rows):
        states[n, : len(to)], shares[n, : len(to)] = to, weight / weight.sum()
    return _Tree(states, shares, height)


def randomly_started(problem: CMDP, distribution: npt.ArrayLike) -> CMDP:
    """Return the problem with a random first state of the distribution [X], its mask and its names.

    If states and steps have names, the new ones are called "start" and "before".
    """
    labels = problem.labels
    kernel = problem.transition
    rows = kernel[0] if problem.stationary and not isinstance(kernel, Sparse) else kernel
    kernel, rewards, first = with_random_start(rows, problem.reward, distribution)
    more, height = rewards.shape[2] - problem.states, rewards.shape[1] - problem.horizon
    mask = problem.mask
    if mask is not None:  # all actions are open in the new states
        opened = np.ones((len(mask) + height, problem.states + more, problem.actions), np.bool_)
        opened[:, : problem.states] = mask[_later(len(mask), height)]
        mask = opened
    states, steps = labels.states, labels.steps
    for _ in range(more if states else 0):
        states = (*states, unused("start", states))
    for _ in range(height if steps else 0):
        steps = (unused("before", steps), *steps)
    names = replace(labels, states=states, steps=steps)
    threshold, name = problem.threshold, problem.name
    return CMDP(kernel, rewards, threshold, first, name=name, mask=mask, labels=names)


def _rows(kernel: npt.ArrayLike | Sparse) -> Array | Sparse:
    rows = kernel_rows(kernel)
    check_axes(rows)
    return rows


def _with_states_more(
    rows: npt.NDArray[Any], more: npt.NDArray[Any], width: int, height: int
) -> Array:
    """Return rows [X, A, K] or [H, X, A, K] with T more states added. Rows have `width` places.

    more : [T, K'], the rows of the new states. height : number of new steps before the old ones.
    Rows before the first old step are never used.
    """
    steps = () if rows.ndim == 3 else (len(rows) + height,)
    states, actions, places = rows.shape[-3:]
    wider = np.zeros((*steps, states + len(more), actions, width))
    wider[..., :states, :, :places] = rows if not steps else rows[_later(len(rows), height)]
    wider[..., states:, :, : more.shape[1]] = more[:, None]
    return wider


def _later(steps: int, height: int) -> list[int]:
    return [0] * height + list(range(steps))


def _checked_discount(discount: float) -> None:
    if not 0.0 < real_number("the discount", discount) < 1.0:
        raise InputError(f"the discount is {discount:g}, not between 0 and 1")
