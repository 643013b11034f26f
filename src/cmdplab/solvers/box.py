"""Planning over a box of kernels: the optimistic plan, and bounds on the returns of a policy.

    max over policies pi and kernels P in the box of V^pi[P, r^0](x_1),  V^pi[P, r^n](x_1) >= b^n

A box of width zero is the known model, so that this is also how a CMDP is solved: solution.py.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

import numpy as np

from cmdplab.cmdp.checks import checked_policy
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.numerics.arrays import from_pairs, to_pairs
from cmdplab.solvers import simplex, value_iteration
from cmdplab.solvers.basis import POLICY
from cmdplab.solvers.layout import Box, Given, LaidOut, Model, Planning, model, planning
from cmdplab.types import Array, Indices

DIRECTIONS = {"optimistic": 1.0, "pessimistic": -1.0}


class Plan(NamedTuple):
    """An optimal policy with its kernel, or the policy of the largest margin if none is feasible.

    `primal` is the value of the mixture, `dual` a bound on every feasible plan, `gap` their
    distance. `margin` is 0 for a feasible plan, else the largest reachable min_n (V[r^n] - b^n).
    """

    feasible: bool
    policy: Array  # [H, X, A]
    occupancy: Array  # [H, X, A], under `kernel`
    kernel: Array | Sparse  # [H, X, A, X], of the box; what was given where it was one
    returns: Array  # [1 + N], of `policy` under `kernel`
    multiplier: Array  # [N]
    primal: float
    dual: float
    margin: float
    sweeps: int  # how many extended value iterations it took

    @property
    def value(self) -> float:
        """Return the value of the plan."""
        return float(self.returns[0])

    @property
    def gap(self) -> float:
        """Return the certificate |dual - primal|, which is infinite if a plan is not feasible."""
        return abs(self.dual - self.primal)


def plan(
    box: Given,
    reward: Array,
    threshold: Array,
    start: int = 0,
    multiplier: Array | None = None,
) -> Plan:
    """Return the optimal plan of a box. The search begins with multipliers [N], if given.

    Rewards [1 + N, H, X, A] may be any finite numbers. If no plan is feasible, see `Plan`.
    """
    laid_out, space = _prepared(box, reward, threshold, start)
    N = len(laid_out.threshold)
    first = np.zeros(N) if multiplier is None else np.array(multiplier, np.float64)
    if first.shape != (N,) or not (np.isfinite(first) & (first >= 0.0)).all():
        raise InputError(f"multipliers must be {N} finite numbers >= 0")
    held, bound, margin, used = simplex.plan(laid_out, start, first, *space)
    return _written(box, laid_out, space, start, held, bound, margin, used)


def largest_margin(box: Given, reward: Array, threshold: Array, start: int = 0) -> Plan:
    """Return the plan with the largest smallest slack min_n (V[r^n] - b^n), for N >= 1."""
    laid_out, space = _prepared(box, reward, threshold, start)
    if not len(laid_out.threshold):
        raise InputError("without constraints there is no margin")
    margin, bound, used = simplex.largest_margin(laid_out, start, np.inf, *space)
    return _written(box, laid_out, space, start, margin, bound, min(margin, 0.0), used)


def _prepared(box: Given, reward: Array, threshold: Array, start: int) -> tuple[LaidOut, Planning]:
    laid_out = model(box, reward, threshold, start)
    ordered = isinstance(box, Box) or not isinstance(box.kernel, Sparse)
    H, X, A = np.shape(reward)[1:]
    return laid_out, planning(len(laid_out.threshold), H, X, A, ordered)


def _written(
    box: Given,
    laid_out: LaidOut,
    space: Planning,
    start: int,
    held: float,
    bound: float,
    margin: float,
    used: int,
) -> Plan:
    H, pairs = laid_out.closed.shape
    X, A = len(space.work.order), pairs // len(space.work.here)
    policy, returns = np.zeros((H, pairs)), np.zeros(len(laid_out.reward))
    simplex.write_policy(laid_out, start, *space, policy, returns)
    natural, multiplier = from_pairs(policy, X, A), np.maximum(space.basis.multiplier, 0.0)
    flows: tuple[Array, Array | Sparse]  # occupancy, and the kernel that it implies
    if isinstance(box, Box):
        flows = _flows(cast(Model, laid_out), space, start, A)
    else:
        flows = (from_pairs(space.work.occupancy, X, A), box.kernel)
    found = (natural, *flows, returns, multiplier)
    return Plan(margin >= 0.0, *found, float(held), float(bound), float(margin), used)


def _flows(laid_out: Model, space: Planning, start: int, actions: int) -> tuple[Array, Array]:
    """Return the occupancy [H, X, A] of the mixture and the kernel z / q that it implies.

    At pairs without mass, the kernel is one of the box: the kernel of the last sweep.
    """
    H, X, pairs = laid_out.lower.shape
    P = pairs // actions
    columns, basis = space.columns, space.basis
    flow = np.zeros((H, pairs, X))
    kernel = np.stack([_rows(laid_out, h, columns.order[basis.place[-1], h]) for h in range(H)])
    used = [j for j in range(len(basis.kind)) if basis.kind[j] == POLICY and basis.share[j] > 0.0]
    total = sum(basis.share[j] for j in used)
    for j in used:
        here = np.zeros(P)
        here[start] = basis.share[j] / total
        for h in range(H):
            order = columns.order[basis.place[j], h]
            chosen = columns.actions[basis.place[j], h, :X] * P + np.arange(X)
            moved = here[:X, None] * _rows(laid_out, h, order)[chosen]
            flow[h, chosen] += moved
            here[:X] = moved.sum(axis=0)
    visits = flow.sum(axis=-1)
    seen = visits > 0.0
    kernel[seen] = flow[seen] / visits[seen][:, None]
    unfolded = kernel.reshape(H, actions, P, X)[:, :, :X]
    return from_pairs(visits, X, actions), np.ascontiguousarray(unfolded.transpose(0, 2, 1, 3))


def _rows(laid_out: Model, h: int, order: Indices) -> Array:
    """Return the rows [A * P, X] of the kernel that fills states in this order."""
    rows = poured(laid_out.lower[h], laid_out.room[h], laid_out.spare[h], order)
    return np.ascontiguousarray(rows.T)


def poured(lower: Array, room: Array, spare: Array | float, order: Indices) -> Array:
    """Return rows [X, ...] of a box: the lower ends, with spare mass added in this order."""
    rows, left = lower.copy(), spare
    for y in order:
        more = np.minimum(room[y], left)
        rows[y] += more
        left = left - more
    return rows


def policy_bounds(
    box: Given,
    reward: Array,
    policy: Array,
    start: int = 0,
    direction: Literal["optimistic", "pessimistic"] = "pessimistic",
) -> Array:
    """Return the largest or smallest return of a policy over the box, for each reward, [1 + N]."""
    if direction not in DIRECTIONS:
        raise InputError(f"unknown direction {direction!r}: choose optimistic or pessimistic")
    laid_out, space = _prepared(box, reward, np.zeros(len(reward) - 1), start)
    shape = np.shape(reward)[1:]
    opened = np.broadcast_to(np.array(True), shape) if box.mask is None else box.mask
    policy = checked_policy("the policy", policy, opened)
    returns = np.zeros(len(reward))
    pairs = to_pairs(policy)
    sign, order = DIRECTIONS[direction], space.work.order
    value_iteration.evaluate(laid_out, pairs, sign, np.inf, start, order, returns, space.work)
    return returns
