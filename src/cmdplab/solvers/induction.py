"""Policies of a known kernel: backward induction, forward passes, and bounds. Compiled.

Arrays stay as the problem has them, with the successors of a pair side by side: nothing is laid out
anew, and a stationary kernel is read once. A sweep finds the best policy for the weighted rewards
together, and a forward pass, which follows one action a state, what it earns of each: A + 1
products of a row where A (1 + N) would be needed to carry every reward through the sweep.
"""
# Numba infers the types of the compiled functions; `Table` and `Lists` name the shapes.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.cmdp.problem import CLOSED, CMDP
from cmdplab.cmdp.transitions import SPARSE_FROM, SPARSE_SHARE, Sparse
from cmdplab.numerics.compiling import by_type, compiled, compiled_apart, compiled_in_order
from cmdplab.types import Array, Mask, Places

BLOCK = 64  # pairs whose lists stay in the first cache
ULPS = 16.0  # of a step's largest value: two ways to sum a row differ by so much
TIE = 1e-14  # relative: of actions that differ by rounding alone, the first is taken


class Table(NamedTuple):
    """P(y | x, a) = row[l, x A + a, y]; L is 1 where the kernel is stationary."""

    row: Array  # [L, X * A, X]


class Lists(NamedTuple):
    """The successors of every pair, and their probabilities; L is 1 where it is stationary."""

    successor: Places  # [X * A, S]
    probability: Array  # [L, X * A, S]


Rows = Table | Lists


def rows_of(problem: CMDP) -> Rows:
    """The kernel for these loops: by lists where rows have few successors, else as it is."""
    kernel, pairs = problem.transition, problem.states * problem.actions
    if isinstance(kernel, Sparse):
        S = kernel.successor.shape[-1]
        successor = kernel.successor.reshape(pairs, S).astype(np.int32)
        return Lists(successor, kernel.probability.reshape(-1, pairs, S))
    table = (kernel[:1] if problem.stationary else kernel).reshape(-1, pairs, problem.states)
    if problem.states < SPARSE_FROM or _few(table[:, 0]) * SPARSE_SHARE > problem.states:
        return Table(table)
    most = _few(table)
    return _listed(table, most) if most * SPARSE_SHARE <= problem.states else Table(table)


def _few(table: Array) -> int:
    """The largest number of successors of a row [L, ..., X], over all its steps."""
    return int((table > 0.0).any(axis=0).sum(axis=-1).max())


def _listed(table: Array, most: int) -> Lists:
    """The lists of a table [L, X * A, X]."""
    reached = np.asarray((table > 0.0).any(axis=0))
    pair, state = np.nonzero(reached)
    first = np.concatenate([[0], np.cumsum(reached.sum(axis=-1))])[pair]
    place = np.arange(len(pair)) - first
    successor = np.zeros((len(reached), most), np.int32)
    successor[pair, place] = state
    probability = np.zeros((len(table), len(reached), most))
    probability[:, pair, place] = table[:, pair, state]
    return Lists(successor, probability)


@compiled
def expect_table(rows, layer, i, value):
    """See `expect`."""
    row, total = rows.row[layer, i], 0.0
    for y in range(len(row)):
        total += row[y] * value[y]
    return total


@compiled_in_order
def expect_listed(rows, layer, i, value):
    """See `expect`."""
    successor, probability, total = rows.successor[i], rows.probability[layer, i], 0.0
    for s in range(len(successor)):
        total += probability[s] * value[successor[s]]
    return total


@compiled
def move_table(rows, layer, i, mass, ahead):
    """See `move`."""
    row = rows.row[layer, i]
    for y in range(len(row)):
        ahead[y] += mass * row[y]


@compiled
def move_listed(rows, layer, i, mass, ahead):
    """See `move`."""
    for s in range(rows.successor.shape[1]):
        ahead[rows.successor[i, s]] += mass * rows.probability[layer, i, s]


@compiled
def layers_table(rows):
    """See `layers`."""
    return len(rows.row)


@compiled
def layers_listed(rows):
    """See `layers`."""
    return len(rows.probability)


@by_type(lambda rows: {Table: expect_table, Lists: expect_listed}[rows.instance_class])
def expect(rows: Any, layer: Any, i: Any, value: Any) -> Any:
    """sum_y P(y | i) value[y] of a pair i."""
    raise NotImplementedError


@by_type(lambda rows: {Table: move_table, Lists: move_listed}[rows.instance_class])
def move(rows: Any, layer: Any, i: Any, mass: Any, ahead: Any) -> None:
    """ahead[y] += mass P(y | i) of a pair i."""
    raise NotImplementedError


@by_type(lambda rows: {Table: layers_table, Lists: layers_listed}[rows.instance_class])
def layers(rows: Any) -> Any:
    """L: one kernel for all steps, or one for each."""
    raise NotImplementedError


@compiled
def weigh(reward, weights, h, i):
    """sum_n weights[n] r^n_h(i) of a pair i."""
    total = 0.0
    for n in range(len(weights)):
        total += weights[n] * reward[n, h, i]
    return total


@compiled_apart
def sweep(rows, reward, mask, weights, value, actions):
    """The best policy for sum_n weights[n] r^n, one action a state, and its values [H + 1, X].

    reward : [1 + N, H, X * A]. mask : [H, X * A], or of length 0 where every action is open.
    A value is the largest there is; of actions that reach it but for rounding the first is taken.
    """
    H, X = actions.shape
    A = reward.shape[2] // X
    for x in range(X):
        value[H, x] = 0.0
    for h in range(H - 1, -1, -1):
        layer = min(h, layers(rows) - 1)
        for x in range(X):
            top, chosen, first = CLOSED, CLOSED, 0
            for a in range(A):
                i = x * A + a
                if len(mask) and not mask[h, i]:
                    continue
                total = expect(rows, layer, i, value[h + 1]) + weigh(reward, weights, h, i)
                better = total > chosen + TIE * (1.0 + abs(chosen))
                first = a if better else first
                chosen = total if better else chosen
                top = max(top, total)
            value[h, x], actions[h, x] = top, first


@compiled_apart
def follow(rows, reward, actions, start, here, ahead, returns):
    """What a policy of one action a state earns, [1 + N]."""
    H, X = actions.shape
    A = reward.shape[2] // X
    returns[:] = 0.0
    here[:] = 0.0
    here[start] = 1.0
    for h in range(H):
        ahead[:] = 0.0
        for x in range(X):
            if here[x] == 0.0:
                continue
            i = x * A + actions[h, x]
            for n in range(len(returns)):
                returns[n] += here[x] * reward[n, h, i]
            move(rows, min(h, layers(rows) - 1), i, here[x], ahead)
        for x in range(X):
            here[x] = ahead[x]


@compiled_apart
def write_occupancy(rows, policy, start, here, ahead, occupancy):
    """occupancy[h, i] = w_h(x, a) of any policy [H, X * A]: for the certificate alone."""
    H, X = len(policy), len(ahead)
    A = policy.shape[1] // X
    ahead[:] = 0.0
    ahead[start] = 1.0
    for h in range(H):
        layer = min(h, layers(rows) - 1)
        for x in range(X):
            here[x] = ahead[x]
            ahead[x] = 0.0
        for x in range(X):
            for i in range(x * A, x * A + A):
                occupancy[h, i] = here[x] * policy[h, i]
                if occupancy[h, i] > 0.0:
                    move(rows, layer, i, occupancy[h, i], ahead)


def bound_by(
    rows: Rows, reward: Array, mask: Mask, weights: Array, value: Array, start: int
) -> float:
    """A bound on every policy's worth that any values [H + 1, X] prove, however they were found.

    value[0, start] + sum_h max(0, max_i of sum_n weights[n] r^n_h(i) + P value[h + 1](i) -
    value[h, x]): values that nothing exceeds bound the optimum. What is less than a rounding of the
    sums counts as none, or long horizons would add up noise that every sum in doubles has.
    """
    H, X = len(value) - 1, value.shape[1]
    excess = np.zeros(H)
    if isinstance(rows, Table):
        q = value[1:] @ rows.row[0].T if len(rows.row) == 1 else _products(rows.row, value[1:])
        q += reward[0] * weights[0] if len(weights) == 1 else np.tensordot(weights, reward, 1)
        over = q.reshape(H, X, -1)
        over -= value[:-1, :, None]
        if len(mask):
            q[~mask] = -np.inf
        excess = np.maximum(q.max(axis=1), 0.0)
    else:
        write_excess(
            rows, reward, mask, weights, np.ascontiguousarray(value.T), np.empty((BLOCK, H)), excess
        )
    noise = ULPS * np.spacing(np.abs(value[:-1]).max(axis=1))
    return float(value[0, start] + excess[excess > noise].sum())


def _products(row: Array, ahead: Array) -> Array:
    """[H, X * A]: what each step expects of the values [H, X] of the next."""
    return np.asarray(np.matmul(row, ahead[:, :, None])[:, :, 0])


@compiled_apart
def write_excess(rows, reward, mask, weights, value, tile, excess):
    """excess[h] = max(0, max_i of what `bound_by` sums), for values [X, H + 1] and a tile [B, H].

    All steps of a pair together, a block of pairs at a time: lists are read once, and the steps of
    a state lie side by side.
    """
    L, pairs, S = rows.probability.shape
    X, H = len(value), len(excess)
    A = pairs // X
    for begin in range(0, pairs, len(tile)):
        end = min(begin + len(tile), pairs)
        for h in range(H):
            for i in range(begin, end):
                opened = len(mask) == 0 or mask[h, i]
                tile[i - begin, h] = weigh(reward, weights, h, i) if opened else CLOSED
        for i in range(begin, end):
            over = tile[i - begin]
            for s in range(S):
                ahead = value[rows.successor[i, s]]
                if L == 1:  # 5.4 ms a check of 10,000 states without this branch
                    share = rows.probability[0, i, s]
                    for h in range(H):
                        over[h] += share * ahead[h + 1]
                else:
                    for h in range(H):
                        over[h] += rows.probability[h, i, s] * ahead[h + 1]
            here = value[i // A]
            for h in range(H):
                excess[h] = max(excess[h], over[h] - here[h])


@compiled_apart
def write_policy(occupancy, fallback, policy):
    """policy[h, i] = w_h(x, a) / w_h(x); where the mixture never comes, the fallback's action."""
    H, X = fallback.shape
    A = policy.shape[1] // X
    for h in range(H):
        for x in range(X):
            mass = 0.0
            for i in range(x * A, x * A + A):
                mass += occupancy[h, i]
            for i in range(x * A, x * A + A):
                policy[h, i] = occupancy[h, i] / mass if mass > 0.0 else 0.0
            if mass == 0.0:
                policy[h, x * A + fallback[h, x]] = 1.0
