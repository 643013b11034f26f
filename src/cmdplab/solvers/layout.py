"""The input of the planner: a box of kernels with rewards, laid out for the compiled sweeps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.cmdp.problem import CMDP, closed_pairs
from cmdplab.cmdp.transitions import Sparse, lists
from cmdplab.errors import InputError
from cmdplab.numerics.arrays import aligned, padded, places, to_pairs
from cmdplab.types import Array, Indices, Mask, Places

# A state of less mass is not reached. Dividing by it may be compiled to a product with 1 / mass,
# which is infinite below 1e-308.
UNREACHED = 1e-290


class Box(NamedTuple):
    """All kernels with lower <= P <= upper, entry by entry, and the actions that are open."""

    lower: Array  # [H, X, A, X]
    upper: Array  # [H, X, A, X]
    mask: Mask | None = None  # [H, X, A]; None: every action is open

    @classmethod
    def around(cls, estimate: Array, width: Array, mask: Mask | None = None) -> Box:
        """Return the box |P - estimate| <= width, within [0, 1]."""
        return cls(np.maximum(estimate - width, 0.0), np.minimum(estimate + width, 1.0), mask)

    @classmethod
    def of(cls, problem: CMDP) -> One:
        """Return the true kernel alone: as lists if rows have few successors, else as a table."""
        listed = lists(problem.kernel)
        return One(problem.table if listed is None else listed, problem.mask)


class One(NamedTuple):
    """One kernel, and the actions that are open: a box of width zero, at half its price."""

    kernel: Array | Sparse  # [H, X, A, X], or lists of successors
    mask: Mask | None = None  # [H, X, A]; None: every action is open


class TableModel(NamedTuple):
    """One kernel and rewards as the sweeps read them. A pair (x, a) sits at a * P + x."""

    kernel: Array  # [H, X, A * P], P(y) for y the second axis
    reward: Array  # [1 + N, H, A * P]
    threshold: Array  # [N]
    closed: Array  # [H, A * P], zero where an action is open, else too low ever to be the best


class ListedModel(NamedTuple):
    """One kernel and rewards as the sweeps read them. If the kernel is stationary, L is 1."""

    successor: Places  # [S, A * P]
    probability: Array  # [L, S, A * P]
    reward: Array  # [1 + N, H, A * P]
    threshold: Array  # [N]
    closed: Array  # [H, A * P], zero where an action is open, else too low ever to be the best


class ListedBox(NamedTuple):
    """A box whose rows differ from one pair of ends in few places, and rewards, for the sweeps.

    L is 1 if the steps share one box, else H.
    """

    successor: Places  # [S, A * P], the states with ends of their own; -1 where a place is empty
    lower: Array  # [L, S, A * P]
    room: Array  # [L, S, A * P], upper - lower
    floor: Array  # [L, A * P], the lower end of every other state
    width: Array  # [L, A * P], the room of every other state
    spare: Array  # [L, A * P], 1 - the sum of the lower ends
    reward: Array  # [1 + N, H, A * P]
    threshold: Array  # [N]
    closed: Array  # [H, A * P], zero where an action is open, else too low ever to be the best


class SeenBox(NamedTuple):
    """A `ListedBox` with lists that grow: each pair has places of its own in one pool.

    The store, which shares the first three arrays, knows the owners of the places.
    """

    begin: Indices  # [L, A * P], where the places of a pair begin
    used: Indices  # [L, A * P], how many it has
    state: Indices  # [E], the states with ends of their own
    lower: Array  # [E]
    room: Array  # [E], upper - lower
    floor: Array  # [L, A * P], the lower end of every other state
    width: Array  # [L, A * P], the room of every other state
    spare: Array  # [L, A * P], 1 - the sum of the lower ends
    reward: Array  # [1 + N, H, A * P]
    threshold: Array  # [N]
    closed: Array  # [H, A * P], zero where an action is open, else too low ever to be the best


class Model(NamedTuple):
    """A box and rewards as the sweeps read them. A pair (x, a) sits at a * P + x.

    L is 1 if the steps share one box, else H.
    """

    lower: Array  # [L, X, A * P], of P(y) for y the second axis
    room: Array  # [L, X, A * P], upper - lower
    spare: Array  # [L, A * P], 1 - sum_y lower
    reward: Array  # [1 + N, H, A * P]
    threshold: Array  # [N]
    closed: Array  # [H, A * P], zero where an action is open, else too low ever to be the best


Given = Box | One
LaidOut = Model | TableModel | ListedModel


class Columns(NamedTuple):
    """Policies that a plan mixes, with their kernels and returns; the last place is spare."""

    actions: Indices  # [N + 2, H, P]
    order: Indices  # [N + 2, H, X], states by value, in which the kernel was filled
    returns: Array  # [N + 2, 1 + N]


class Basis(NamedTuple):
    """The columns that are mixed: see simplex.py."""

    kind: Indices  # [N + 1]: 0 a policy, n a surplus of constraint n, -1 the shortfall
    place: Indices  # [N + 2], where the policies are in `Columns`; the last is free
    share: Array  # [N + 1]
    dual: Array  # [N + 1]
    multiplier: Array  # [N]
    weights: Array  # [1 + N]
    matrix: Array  # [N + 1, N + 1]
    cost: Array  # [N + 1]
    entering: Array  # [N + 1]
    direction: Array  # [N + 1]
    work: Array  # [2, N + 1, N + 2], the second for what a double cannot hold
    scale: Array  # [3], units of the objective and of the utilities, and a grid for the latter


class Work(NamedTuple):
    """Space for one sweep."""

    value: Array  # [1 + N, P]
    action_value: Array  # [1 + N, A * P]
    total: Array  # [A * P]
    left: Array  # [A * P]
    row: Array  # [A * P]
    top: Array  # [P]
    here: Array  # [P]
    ahead: Array  # [P]
    order: Indices  # [X]
    occupancy: Array  # [H, A * P]
    returns: Array  # [1 + N]
    first: Array  # [N], multipliers that a search starts from


class Planning(NamedTuple):
    """All arrays that planning writes to: made once, used in every episode."""

    columns: Columns
    basis: Basis
    work: Work


def planning(
    constraints: int, horizon: int, states: int, actions: int, ordered: bool = True
) -> Planning:
    """Allocate arrays to plan for these sizes. One kernel needs no order of the states."""
    N, H, X, P, pairs = constraints, horizon, states, padded(states), actions * padded(states)
    columns = Columns(
        actions=np.zeros((N + 2, H, P), np.int64),
        order=np.tile(np.arange(X if ordered else 0), (N + 2, H, 1)),
        returns=np.zeros((N + 2, 1 + N)),
    )
    basis = Basis(
        kind=np.zeros(N + 1, np.int64),
        place=np.arange(N + 2),
        share=np.zeros(N + 1),
        dual=np.zeros(N + 1),
        multiplier=np.zeros(N),
        weights=np.zeros(1 + N),
        matrix=np.zeros((N + 1, N + 1)),
        cost=np.zeros(N + 1),
        entering=np.zeros(N + 1),
        direction=np.zeros(N + 1),
        work=np.zeros((2, N + 1, N + 2)),
        scale=np.array([1.0, 1.0, 0.0]),
    )
    work = Work(
        value=aligned(1 + N, P),
        action_value=aligned(1 + N, pairs),
        total=aligned(pairs),
        left=aligned(pairs),
        row=aligned(pairs),
        top=aligned(P),
        here=aligned(P),
        ahead=aligned(P),
        order=np.arange(X),
        occupancy=aligned(H, pairs),
        returns=np.zeros(1 + N),
        first=np.zeros(N),
    )
    return Planning(columns, basis, work)


def model(box: Given, reward: Array, threshold: Array, start: int) -> LaidOut:
    """Check a box and rewards [1 + N, H, X, A]. Return them, laid out for the sweeps."""
    reward, threshold = (np.asarray(each, dtype=np.float64) for each in (reward, threshold))
    if reward.ndim != 4 or 0 in reward.shape:
        raise InputError(f"the rewards have the shape {reward.shape}, not [1 + N, H, X, A]")
    if threshold.shape != (len(reward) - 1,):
        raise InputError(f"{len(reward) - 1} utilities have thresholds of shape {threshold.shape}")
    if not 0 <= start < reward.shape[2]:
        raise InputError(f"the start is {start}, not a state 0..{reward.shape[2] - 1}")
    if not (np.isfinite(reward).all() and np.isfinite(threshold).all()):
        raise InputError("rewards and thresholds must be finite")
    told = (to_pairs(reward), threshold.copy(), to_pairs(closed_pairs(box.mask, reward.shape[1:])))
    if isinstance(box, One):
        given = box.kernel
        if isinstance(given, Sparse):
            if given.successor.shape[:2] != reward.shape[2:]:
                raise InputError(f"the kernel has lists of {given.successor.shape}")
            rows = given.probability if given.probability.ndim == 4 else given.probability[None]
            return ListedModel(places(given.successor), to_pairs(np.moveaxis(rows, 3, 1)), *told)
        if given.shape != (*reward.shape[1:], reward.shape[2]):
            raise InputError(f"the kernel has the shape {given.shape}")
        return TableModel(to_pairs(np.moveaxis(given, 3, 1)), *told)
    lower, upper = (np.asarray(each, dtype=np.float64) for each in (box.lower, box.upper))
    check_kernels(lower, upper, reward.shape[1:])
    return Model(
        to_pairs(np.moveaxis(lower, 3, 1)),
        to_pairs(np.moveaxis(np.maximum(upper - lower, 0.0), 3, 1)),
        to_pairs(np.maximum(1.0 - np.cumsum(lower, axis=-1)[..., -1], 0.0)),
        *told,
    )


def check_kernels(lower: Array, upper: Array, sizes: tuple[int, ...]) -> None:
    """Refuse ends of a box between which there is no kernel."""
    shape = (*sizes, sizes[1])
    if lower.shape != shape or upper.shape != shape:
        raise InputError(f"the box has shapes {lower.shape} and {upper.shape}, not {shape}")
    rounding = 1e-9
    wrong = ~((lower >= 0.0) & (lower <= upper + rounding))
    wrong |= (lower.sum(axis=-1) > 1.0 + rounding)[..., None]
    wrong |= (upper.sum(axis=-1) < 1.0 - rounding)[..., None]
    if wrong.any():
        h, x, a, _ = np.argwhere(wrong)[0]
        raise InputError(f"the box at [{h}, {x}, {a}] holds no kernel")
