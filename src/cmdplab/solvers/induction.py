"""Policies of a known kernel: backward induction, forward passes, and bounds. Compiled.

Arrays stay as the problem has them, with the successors of a pair side by side. No array is copied,
and a stationary kernel is read once. A sweep finds the best policy for the weighted sum of rewards.
A forward pass, of one action a state, gives its return of each reward. Both take A + 1 products of
a row, where a sweep that carries every reward needs A (1 + N).
"""
# Numba infers the types of the compiled functions; `Table` and `Lists` name the shapes.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.cmdp.problem import CLOSED, CMDP
from cmdplab.cmdp.transitions import lists
from cmdplab.numerics.compiling import (
    by_type,
    compiled,
    compiled_apart,
    compiled_in_order,
    steering,
)
from cmdplab.solvers.layout import UNREACHED
from cmdplab.types import Ahead, Array

BLOCK = 64  # pairs whose lists stay in the first cache
TAIL = 4  # steps of which every pair is checked, where those before them may follow from them
ROUNDING = 2.0**-50  # of a sum, for each of its terms
LONG = 100  # steps from which values are taken relative to what they gain in one
TIE = 1e-14  # relative: of actions that differ by rounding alone, the first is taken


class Table(NamedTuple):
    """P(y | x, a) = row[l, x A + a, y]. If the kernel is stationary, L is 1."""

    row: Array  # [L, X * A, X]


class Lists(NamedTuple):
    """The successors of every pair, and their probabilities. If it is stationary, L is 1."""

    successor: Ahead  # [X * A, S]
    probability: Array  # [L, X * A, S]


Rows = Table | Lists


def rows_of(problem: CMDP) -> Rows:
    """Return the kernel for these loops: by lists where rows have few successors, else as it is."""
    listed, pairs = lists(problem.kernel), problem.states * problem.actions
    if listed is not None:
        S = listed.successor.shape[-1]
        return Lists(listed.by_pair, listed.probability.reshape(-1, pairs, S))
    table = problem.table[:1] if problem.stationary else problem.table
    return Table(table.reshape(-1, pairs, problem.states))


@compiled
def expect_table(rows, layer, i, value):
    """Compute `expect` for a table."""
    row, total = rows.row[layer, i], 0.0
    for y in range(len(row)):
        total += row[y] * value[y]
    return total


@compiled_in_order
def expect_listed(rows, layer, i, value):
    """Compute `expect` for lists."""
    successor, probability, total = rows.successor[i], rows.probability[layer, i], 0.0
    for s in range(len(successor)):
        total += probability[s] * value[successor[s]]
    return total


@compiled
def move_table(rows, layer, i, mass, ahead):
    """Move as `move`, by a table."""
    row = rows.row[layer, i]
    for y in range(len(row)):
        ahead[y] += mass * row[y]


@compiled
def move_listed(rows, layer, i, mass, ahead):
    """Move as `move`, by lists."""
    for s in range(rows.successor.shape[1]):
        ahead[rows.successor[i, s]] += mass * rows.probability[layer, i, s]


@by_type({Table: expect_table, Lists: expect_listed})
def expect(rows: Any, layer: Any, i: Any, value: Any) -> Any:
    """Return sum_y P(y | i) value[y] of a pair i."""
    raise NotImplementedError


@by_type({Table: move_table, Lists: move_listed})
def move(rows: Any, layer: Any, i: Any, mass: Any, ahead: Any) -> None:
    """Add mass P(y | i) of a pair i to ahead[y]."""
    raise NotImplementedError


@steering
def layers(rows):
    """Return L: 1 for one kernel at all steps, or H for one kernel per step."""
    return len(rows[-1])


@steering
def steady(rows, worth):
    """Return True if one kernel and one worth of pairs serve every step."""
    return layers(rows) == 1 and len(worth) == 1


@compiled_apart
def sweep(rows, worth, value, actions, lead):
    """Compute the best policy for the worth of pairs, one action a state, and its values [H + 1,
    X].

    worth : [H, X * A], or [1, X * A] for every step, `CLOSED` at closed pairs. lead [X] : scratch.
    A value is the largest there is. Among actions that reach it but for rounding, the first is
    taken.

    If nothing depends on the step, Q_h - Q_{h+1} = P (V_{h+1} - V_{h+2}) lies between the least and
    the largest change of a value. An action that leads by more than their distance still leads one
    step before. The other actions are then skipped (MacQueen's test).
    """
    H, X = actions.shape
    A, lasting, span = worth.shape[1] // X, steady(rows, worth), 0.0
    for x in range(X):
        value[H, x] = 0.0
        lead[x] = 0.0
    for h in range(H - 1, -1, -1):
        layer, now = min(h, layers(rows) - 1), worth[min(h, len(worth) - 1)]
        low, high, size = np.inf, -np.inf, 0.0
        for x in range(X):
            lead[x] -= span
            if lasting and lead[x] > 0.0:
                first = actions[h + 1, x]
                top = expect(rows, layer, x * A + first, value[h + 1]) + now[x * A + first]
            else:
                top, second, chosen, first = CLOSED, CLOSED, CLOSED, 0
                for a in range(A):
                    total = expect(rows, layer, x * A + a, value[h + 1]) + now[x * A + a]
                    better = total > chosen + TIE * (1.0 + abs(chosen))
                    first = a if better else first
                    chosen = total if better else chosen
                    second = max(second, min(top, total))
                    top = max(top, total)
                lead[x] = top - second
            value[h, x], actions[h, x] = top, first
            change = top - value[h + 1, x]
            low, high, size = min(low, change), max(high, change), max(size, abs(top))
        span = high - low + ROUNDING * X * size


@compiled_apart
def follow(rows, reward, actions, start, here, ahead, returns):
    """Write the returns [1 + N] of a policy of one action a state."""
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
                returns[n] += here[x] * reward[n, min(h, reward.shape[1] - 1), i]
            move(rows, min(h, layers(rows) - 1), i, here[x], ahead)
        for x in range(X):
            here[x] = ahead[x]


@compiled_apart
def write_occupancy(rows, policy, start, here, ahead, occupancy):
    """Write occupancy[h, i] = w_h(x, a) of any policy [H, X * A], for the certificate alone."""
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


def bound_by(rows: Rows, worth: Array, value: Array, start: int, step: float) -> float:
    """Return a bound on every policy's worth that any values [H + 1, X] prove, however found.

        value[0, start] + sum_h max(0, max_i of worth[h, i] + P value[h + 1](i) - value[h, x])

    Values that nothing exceeds bound the optimum. The largest rounding error of the sums is added.
    step : the largest worth of a pair, with each of its terms taken absolutely.

    At long horizons, the average gain of values per step is first subtracted from the worth. Sums
    of the remainder lose few digits.
    """
    H, X = len(value) - 1, value.shape[1]
    gain, rounding = 0.0, (rows[-1].shape[-1] + 16) * 2.0**-53
    total, extra = float(value[0, start]), 0.0
    if H >= LONG:
        gain = 0.5 * float(value[0].max() + value[0].min()) / H
        value = value - gain * np.arange(H, -1.0, -1.0)[:, None]
        worth = worth - gain
        total = float(value[0, start]) + gain * H
        loose = float(np.abs(rows[-1].sum(axis=-1) - 1.0).max()) + 2.0**-48
        extra = abs(gain) * H * (0.5 * (H + 1) * loose + 2.0**-50)
    over, lasting, k = np.zeros(H), steady(rows, worth) and H > TAIL + 1, H - TAIL
    if isinstance(rows, Table) and lasting:
        write_table_excess(rows, worth[0], value, np.empty(X), over)
    elif isinstance(rows, Table):
        row, ahead = rows.row, value[1:]  # [L, X * A, X] and [H, X]
        q = ahead @ row[0].T if len(row) == 1 else np.matmul(row, ahead[:, :, None])[:, :, 0]
        q = (q + worth).reshape(H, X, -1) - value[:-1, :, None]
        over = np.maximum(q.reshape(H, -1).max(axis=1), 0.0)
    elif lasting:
        parts = np.ascontiguousarray(value[1 : k + 1].T), np.ascontiguousarray(value[-TAIL:].T)
        scratch = (np.empty(H), np.empty(TAIL), np.empty(X))
        write_lasting_excess(rows, worth[0], value, *parts, *scratch, over)
    else:
        by_state, tile = np.ascontiguousarray(value.T), np.empty((BLOCK, H))
        write_excess(rows, worth, by_state, tile, over)
    size = np.abs(value).max(axis=1)
    sums = H * (step + abs(gain)) + float(2.0 * size.sum() - size[0] - size[-1])
    return float(total + over.sum() + rounding * sums + extra + 2.0**-51 * abs(total))


@compiled_apart
def write_table_excess(rows, worth, value, later, excess):
    """Write the excess as `write_lasting_excess` does, by a table. later [X] : scratch."""
    H, X = len(excess), value.shape[1]
    A, k = len(worth) // X, H - TAIL
    write_later(value, k, later)
    for x in range(X):
        for i in range(x * A, x * A + A):
            begin = k
            for h in range(H - 1, k - 1, -1):
                over = expect(rows, 0, i, value[h + 1]) + worth[i] - value[h, x]
                excess[h] = max(excess[h], over)
                begin = 0 if h == k and over + later[x] > 0.0 else k
            for h in range(begin, k):
                over = expect(rows, 0, i, value[h + 1]) + worth[i] - value[h, x]
                excess[h] = max(excess[h], over)


@compiled_apart
def write_excess(rows, worth, value, tile, excess):
    """Write excess[h] = max(0, max_i of the terms in `bound_by`), for values [X, H + 1], tile [B,
    H].

    All steps of a pair are done together, a block of pairs at a time. Lists are read once, and the
    steps of a state lie side by side.
    """
    L, pairs, S = rows.probability.shape
    X, H = len(value), len(excess)
    A = pairs // X
    for begin in range(0, pairs, len(tile)):
        end = min(begin + len(tile), pairs)
        for h in range(H):
            for i in range(begin, end):
                tile[i - begin, h] = worth[min(h, len(worth) - 1), i]
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
def write_lasting_excess(rows, worth, value, first, last, over, here, later, excess):
    """Write the excess if nothing depends on the step, for values [H + 1, X].

    first [X, H - TAIL], last [X, TAIL] : the values after the first and the last steps, by state.
    over [H], here [TAIL], later [X] : scratch. The last steps of a pair bound its excess at earlier
    steps, which are computed only if this bound does not settle them.
    """
    (pairs, S), (X, k) = rows.successor.shape, first.shape
    A = pairs // X
    write_later(value, k, later)
    for x in range(X):
        for h in range(TAIL):
            here[h] = value[k + h, x]
        for i in range(x * A, x * A + A):
            for h in range(TAIL):
                over[h] = worth[i] - here[h]
            for s in range(S):
                ahead, share = last[rows.successor[i, s]], rows.probability[0, i, s]
                for h in range(TAIL):
                    over[h] += share * ahead[h]
            for h in range(TAIL):
                excess[k + h] = max(excess[k + h], over[h])
            if over[0] + later[x] > 0.0:
                for h in range(k):
                    over[h] = worth[i] - value[h, x]
                for s in range(S):
                    ahead, share = first[rows.successor[i, s]], rows.probability[0, i, s]
                    for h in range(k):
                        over[h] += share * ahead[h]
                for h in range(k):
                    excess[h] = max(excess[h], over[h])


@compiled
def write_later(value, k, later):
    """Write later[x], the most by which an excess at x may grow from step k to any step before it.

    r + P V_{h+1} - V_h(x) exceeds r + P V_{k+1} - V_k(x) by at most max_y (V_{h+1} - V_{k+1})(y)
    - (V_h - V_k)(x).
    """
    for h in range(k):
        most = value[h + 1, 0] - value[k + 1, 0]
        for y in range(len(later)):
            most = max(most, value[h + 1, y] - value[k + 1, y])
        for x in range(len(later)):
            growth = most - value[h, x] + value[k, x]
            later[x] = growth if h == 0 else max(later[x], growth)


@compiled_apart
def write_policy(occupancy, fallback, policy):
    """Write policy[h, i] = w_h(x, a) / w_h(x), and the fallback's action at states without mass."""
    H, X = fallback.shape
    A = policy.shape[1] // X
    for h in range(H):
        for x in range(X):
            mass = 0.0
            for i in range(x * A, x * A + A):
                mass += occupancy[h, i]
            for i in range(x * A, x * A + A):
                policy[h, i] = occupancy[h, i] / mass if mass > UNREACHED else 0.0
            if mass <= UNREACHED:
                policy[h, x * A + fallback[h, x]] = 1.0
