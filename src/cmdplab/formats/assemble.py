"""The end of every reader: transitions become a kernel, and stationary tables a CMDP."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.types import Array, Indices, Mask

LARGEST = 100_000_000  # numbers in any one array that a reader is willing to make
ROUNDING = 1e-12  # expectations of numbers in [0, 1] may leave it by this much


class Affine(NamedTuple):
    """r = offset + scale r', at every one of H steps, so that V = H offset + scale V'."""

    scale: float = 1.0
    offset: float = 0.0

    def apply(self, table: Array) -> Array:
        """r', in [0, 1], of rewards r."""
        return (table - self.offset) / self.scale

    def shrink(self, value: float, horizon: int) -> float:
        """V' of a sum V over all H steps."""
        return (value - horizon * self.offset) / self.scale

    def value(self, value: float, horizon: int) -> float:
        """V of the rescaled V'."""
        return horizon * self.offset + self.scale * value


def unit_map(table: Array) -> Affine:
    """The map that takes the range of `table`, zero included, onto [0, 1]; none where it fits."""
    low, high = min(float(table.min()), 0.0), max(float(table.max()), 0.0)
    if low >= 0.0 and high <= 1.0 + ROUNDING:
        return Affine()
    return Affine(high - low, low)


class Constraint(NamedTuple):
    """V[utility] >= threshold."""

    utility: Array  # [X, A]
    threshold: float


def within_budget(cost: Array, budget: float, horizon: int, what: str = "cost") -> Constraint:
    """V[c] <= budget as a constraint on u = 1 - c: V[u] >= H - budget."""
    check_unit(cost, what)
    if not 0.0 <= budget <= horizon:
        raise InputError(f"the budget of the {what} is {budget:g}, outside [0, {horizon}]")
    return Constraint(1.0 - np.clip(cost, 0.0, 1.0), horizon - budget)


def check_unit(table: Array, what: str) -> None:
    """Refuse numbers outside [0, 1], naming their range."""
    low, high = float(table.min()), float(table.max())
    if not (low >= -ROUNDING and high <= 1.0 + ROUNDING):
        raise InputError(f"the {what} lies in [{low:g}, {high:g}], not in [0, 1]: rescale it")


def assembled(
    kernel: Array | Sparse,
    objective: Array,
    constraints: list[Constraint],
    *,
    horizon: int,
    start: int,
    name: str,
    mask: Mask | None = None,
) -> CMDP:
    """A stationary problem from tables: kernel [X, A, X] or lists, rewards and mask [X, A]."""
    wanted = (1 + len(constraints)) * horizon * objective.size
    if wanted > LARGEST:
        raise InputError(f"{name}: the rewards of all steps would be {wanted} numbers")
    tables = np.stack([objective, *(each.utility for each in constraints)])
    if mask is not None:
        tables[:, ~mask] = 0.0
    check_unit(tables[0], "reward")
    tables = np.where(np.abs(tables - 0.5) <= 0.5 + ROUNDING, np.clip(tables, 0.0, 1.0), tables)
    thresholds = np.array([each.threshold for each in constraints], dtype=np.float64)
    return CMDP(kernel, tables, thresholds, start, horizon, name, mask)


def stationary_tables(problem: CMDP, what: str) -> tuple[Array, Mask]:
    """The rewards [1 + N, X, A] and the mask [X, A] of a problem that is the same at every step.

    `what` is the format that has no steps.
    """
    rewards, opened = problem.reward[:, 0], problem.opened[0]
    fixed = problem.stationary or problem.horizon == 1 or _same_rows(problem)
    if not fixed:
        raise InputError(
            f"the kernel of {problem.name} changes with the step: {what} cannot say so"
        )
    if not (problem.reward == rewards[:, None]).all():
        raise InputError(
            f"the rewards of {problem.name} change with the step: {what} cannot say so"
        )
    if not (problem.opened == opened).all():
        raise InputError(f"the mask of {problem.name} changes with the step: {what} cannot say so")
    return rewards, opened


def _same_rows(problem: CMDP) -> bool:
    kernel = problem.transition
    rows = kernel.probability if isinstance(kernel, Sparse) else kernel
    return bool((rows == rows[0]).all())


DENSE = 1_000_000  # entries up to which a kernel is stored as a full table


class Transitions(NamedTuple):
    """P(target | state, action) = probability; a pair lists a target once."""

    state: Indices  # [E]
    action: Indices  # [E]
    target: Indices  # [E]
    probability: Array  # [E]


def stored(given: Transitions, mask: Mask, what: str) -> Array | Sparse:
    """[X, A, X], or lists; the pairs that the mask [X, A] closes stay where they are.

    `what` is named where even lists would be too large.
    """
    X, A = mask.shape
    if X * A * X <= DENSE:
        table = np.zeros((X, A, X))
        table[~mask] = np.eye(X)[np.nonzero(~mask)[0]]
        table[given.state, given.action, given.target] = given.probability
        return table
    place = _places(given.state * A + given.action)
    most = int(place.max()) + 1
    if X * A * most > LARGEST:
        raise InputError(f"{what}: {X} states, {A} actions, {most} successors are too many")
    successor = np.zeros((X, A, most), dtype=np.int64)
    probability = np.zeros((X, A, most))
    successor[..., 0] = np.arange(X)[:, None]
    probability[..., 0] = ~mask
    at = (given.state, given.action, place)
    successor[at], probability[at] = given.target, given.probability
    return Sparse(successor, probability)


def _places(pair: Indices) -> Indices:
    """[E]: how many entries of the same pair come before each."""
    order = np.argsort(pair, kind="stable")
    ranked = pair[order]
    place = np.empty_like(pair)
    place[order] = np.arange(len(pair)) - np.searchsorted(ranked, ranked)
    return place
