"""Compiled sweeps over average rewards: relative values, and how far they are from the best.

What an action gains by moving is a sum of differences, sum_y p(y) (v(y) - v(x)), so that neither
the size of v nor a rare exit loses digits, and P(x, x) is not read. For any v, no policy has a gain
above the largest excess r + drift of a pair, and the greedy policy has none below the smallest of
its own. Sweeps are damped, so that periodic chains converge.
"""
# Numba infers the types of the compiled functions; the docstrings name the shapes.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.numerics.compiling import by_type, compiled
from cmdplab.types import Array, Indices

STEP, LATER = 0.9375, 0.75  # of a sweep, first and from EARLY sweeps on: a chain may be periodic
EARLY = 64


class Listed(NamedTuple):
    """A kernel by lists of successors; empty places have probability zero."""

    successor: Indices  # [X, A, S]
    probability: Array  # [X, A, S]


@compiled
def drift_listed(kernel, x, a, value):
    """See `drift`."""
    total, here = 0.0, value[x]
    for s in range(kernel.successor.shape[2]):
        total += kernel.probability[x, a, s] * (value[kernel.successor[x, a, s]] - here)
    return total


@compiled
def drift_table(kernel, x, a, value):
    """See `drift`."""
    total, here, row = 0.0, value[x], kernel[x, a]
    for y in range(len(row)):
        total += row[y] * (value[y] - here)
    return total


@by_type({Listed: drift_listed}, drift_table)
def drift(kernel: Any, x: Any, a: Any, value: Any) -> Any:
    """sum_y P(y | x, a) (value[y] - value[x])."""
    raise NotImplementedError


@compiled
def improve(kernel, reward, value, shift, step, tie, actions, following):
    """Return the smallest and the largest excess of the states, and take their best actions.

    following : [X], the values after a sweep, less `shift`. An action that is as good as the best
    but for `tie` is kept.
    """
    low, high = np.inf, -np.inf
    for x in range(len(value)):
        top, best, kept = -np.inf, 0, -np.inf
        for a in range(reward.shape[1]):
            excess = reward[x, a]
            if excess > -np.inf:
                excess += drift(kernel, x, a, value)
                if excess > top:
                    top, best = excess, a
                if a == actions[x]:
                    kept = excess
        if top > kept + tie:
            actions[x] = best
        low, high = min(low, top), max(high, top)
        following[x] = value[x] + step * (top - shift)
    return low, high


@compiled
def close(kernel, reward, value, spare, limit, most, actions):
    """Improve until the excesses of all states agree to `limit`, or `most` sweeps are done."""
    low = high = 0.0
    for turn in range(most):
        step = STEP if turn < EARLY else LATER
        now, after = (spare, value) if turn % 2 else (value, spare)
        low, high = improve(kernel, reward, now, 0.5 * (low + high), step, 0.0, actions, after)
        if high - low <= limit:
            if turn % 2:
                for x in range(len(value)):
                    value[x] = spare[x]
            break
    return low, high


@compiled
def follow(kernel, reward, actions, value, shift, step, following):
    """Return the smallest and the largest excess of one policy for one reward."""
    low, high = np.inf, -np.inf
    for x in range(len(value)):
        excess = reward[x, actions[x]] + drift(kernel, x, actions[x], value)
        low, high = min(low, excess), max(high, excess)
        following[x] = value[x] + step * (excess - shift)
    return low, high


@compiled
def evaluate(kernel, reward, actions, value, spare, limit, most, low, high):
    """Follow a policy until the excesses of each reward [K] agree to its limit; count the sweeps.

    value : [K, X], changed in place. spare : [X]. low, high : [K], of the last sweep, which bound
    the gain of the policy from every state.
    """
    done = 0
    for k in range(len(value)):
        for turn in range(most):
            step, shift = STEP if turn < EARLY else LATER, 0.5 * (low[k] + high[k])
            now, after = (spare, value[k]) if turn % 2 else (value[k], spare)
            low[k], high[k] = follow(kernel, reward[k], actions, now, shift, step, after)
            if high[k] - low[k] <= limit[k] and turn % 2:
                break
        done = max(done, turn + 1)
    return done


@compiled
def reach(kernel, found, waiting, count):
    """Mark the states that some policy reaches; `waiting` holds the first `count`; count them."""
    left = count
    while left > 0 and count < len(found):
        left -= 1
        count, left = spread(kernel, waiting[left], found, waiting, count, left)
    return count


@compiled
def spread_listed(kernel, x, found, waiting, count, left):
    """See `spread`."""
    for a in range(kernel.successor.shape[1]):
        for s in range(kernel.successor.shape[2]):
            y = kernel.successor[x, a, s]
            if kernel.probability[x, a, s] > 0.0 and not found[y]:
                found[y], waiting[left] = True, y
                count += 1
                left += 1
    return count, left


@compiled
def spread_table(kernel, x, found, waiting, count, left):
    """See `spread`."""
    for a in range(kernel.shape[1]):
        for y in range(kernel.shape[2]):
            if kernel[x, a, y] > 0.0 and not found[y]:
                found[y], waiting[left] = True, y
                count += 1
                left += 1
    return count, left


@by_type({Listed: spread_listed}, spread_table)
def spread(kernel: Any, x: Any, found: Any, waiting: Any, count: Any, left: Any) -> Any:
    """Mark the successors of a state, and put those that are new on the stack `waiting`."""
    raise NotImplementedError
