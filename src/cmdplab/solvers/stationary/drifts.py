"""Compiled sweeps over average rewards: relative values, and their distance from the best.

The drift of an action is a sum of differences, sum_y p(y) (v(y) - v(x)). Hence neither the size of
v nor a rare exit loses digits, and P(x, x) is not read. For any v, no policy has a gain above the
largest excess r + drift of a pair. The gain of the greedy policy is at least its own smallest
excess. Sweeps are damped, so that periodic chains converge.
"""
# Numba infers the types of the compiled functions; the docstrings name the shapes.

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.numerics.compiling import compiled
from cmdplab.types import Array, Indices

STEP, LATER = 1.0, 0.75  # of a sweep, first and from EARLY sweeps on: a chain may be periodic
EARLY = 64
SPAN = 1e-13  # of the weighted ranges: excesses that agree to it are closed
SHARP = 5e-14  # of the range: gains of a policy that agree to it are known
LOOSE = 0.1  # of the span that is left: how well a policy is followed before the next
TIE = 1e-15
ROUGH = 1e-11  # of the range: excesses that agree to it, and no better however often, are known
INNER = 64  # sweeps of one policy before all actions are looked at again
SETTLED = 1e-14  # visits that change by less in a sweep
LOOK = 4  # sweeps after which the change of visits is looked at
WAIT = 0.1  # of the sweeps so far: as many that gain less than a tenth are followed by a leap
MOST_LEAPS, ALIKE = 8, 1e-3  # leaps that change nothing: regions are classes of their own


class Listed(NamedTuple):
    """A kernel by lists of successors. Empty places have probability zero."""

    successor: Indices  # [X, A, S]
    probability: Array  # [X, A, S]
    full: bool  # the successors of every pair are all states, in order: a table


@compiled
def drift(kernel, x, a, value):
    """Return sum_y P(y | x, a) (value[y] - value[x])."""
    total, here = 0.0, value[x]
    if kernel.full:
        for y in range(len(value)):
            total += kernel.probability[x, a, y] * (value[y] - here)
        return total
    for s in range(kernel.successor.shape[2]):
        total += kernel.probability[x, a, s] * (value[kernel.successor[x, a, s]] - here)
    return total


@compiled
def improve(kernel, reward, value, shift, step, tie, actions, following):
    """Return the least and the largest excess of the states, and how many take a better action.

    following : [X], the values after a sweep, less `shift`. An action that is as good as the best
    but for `tie` is kept.
    """
    low, high, changed = np.inf, -np.inf, 0
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
            changed += actions[x] != best
            actions[x] = best
        low, high = min(low, top), max(high, top)
        following[x] = value[x] + step * (top - shift)
    return low, high, changed


@compiled
def settle(kernel, worth, size, noise, most, value, spare, chain, reward, actions):
    """Improve until the excesses of all states agree, or `most` sweeps are done.

    worth : [X, A], of weights whose sizes sum to `size`. noise : (what rounding does to excesses,
    per unit of the largest worth, the largest worth). chain, reward : space for the rows of a
    policy. Between two sweeps over all actions, the policy is followed until its own excesses
    nearly agree. If regions with close best gains compete, excesses stay equal while values drift
    apart. Then one sweep is applied as many times as doubles the range of the values.
    """
    low = high = 0.0
    best, since, last, same, turn = np.inf, 0, np.inf, 0, 0
    while True:
        step = STEP if turn < EARLY else LATER
        given = kernel, worth, value, 0.5 * (low + high), step, TIE * size
        low, high, changed = improve(*given, actions, spare)
        turn += 1
        extent = reach_of(value)
        enough = max(SPAN * size, noise[0] * (noise[1] + extent))
        if high - low <= enough or turn >= most:
            return low, high, enough
        if high - low < 0.9 * best:
            best, since = high - low, turn
        elif turn - since > EARLY + WAIT * turn:
            same = same + 1 if abs(last - best) < ALIKE * best else 0
            if best <= ROUGH * size or same > MOST_LEAPS:
                return low, high, enough
            many = reach_of(spare) / (high - low)
            for x in range(len(value)):
                spare[x] += many * (spare[x] - value[x])
            last, best, since = best, np.inf, turn
        base = spare[0]  # only differences count, which a level would round
        for x in range(len(value)):
            value[x] = spare[x] - base
        pick(kernel, worth, actions, chain, reward)
        limit = LOOSE * (high - low) if changed else 0.5 * enough
        turn = evaluate(chain, reward, value, spare, limit, 0.0, turn, turn + INNER)[2]


@compiled
def reach_of(value):
    """Return the largest value less the smallest."""
    least, largest = np.inf, -np.inf
    for x in range(len(value)):
        least, largest = min(least, value[x]), max(largest, value[x])
    return largest - least


@compiled
def evaluate(chain, reward, value, spare, limit, noise, turn, most):
    """Sweep a policy from sweep `turn` on, until its excesses agree. Return (low, high, turn).

    noise : the limit per unit of the range of the values, if it is larger. low and high are the
    excesses of `spare`, which bound the gain of the policy from every state.
    """
    low, high = 0.0, 0.0
    while turn < most:
        step = STEP if turn < EARLY else LATER
        low, high = follow(chain, reward, value, 0.5 * (low + high), step, spare)
        low, high = follow(chain, reward, spare, 0.5 * (low + high), step, value)
        turn += 2
        if high - low <= limit or (noise > 0.0 and high - low <= noise * reach_of(spare)):
            break
    return low, high, turn


@compiled
def bound_gains(chain, rewards, value, spare, limit, noise, most, low, high):
    """Write bounds [K] on the gains of a policy from every state, for rewards [K, X] >= 0.

    noise : what rounding does to an excess, per unit of the rewards and the range of the values.
    """
    for k in range(len(rewards)):
        top = 0.0
        for x in range(len(value)):
            value[x] = 0.0
            top = max(top, rewards[k, x])
        given = chain, rewards[k], value, spare, max(limit, 0.25 * noise * top), 0.25 * noise
        low[k], high[k], _ = evaluate(*given, 0, most)
        rounding = noise * (top + reach_of(spare))
        low[k] -= rounding
        high[k] += rounding


@compiled
def follow(chain, reward, value, shift, step, following):
    """Write the values after a sweep of a policy. Return the least and the largest excess."""
    low, high = np.inf, -np.inf
    for x in range(len(value)):
        excess = reward[x] + drift(chain, x, 0, value)
        low, high = min(low, excess), max(high, excess)
        following[x] = value[x] + step * (excess - shift)
    return low, high


@compiled
def pick(kernel, worth, actions, chain, reward):
    """Write the rows and rewards of a policy."""
    for x in range(len(actions)):
        a = actions[x]
        reward[x] = worth[x, a]
        for s in range(kernel.successor.shape[2]):
            chain.successor[x, 0, s] = kernel.successor[x, a, s]
            chain.probability[x, 0, s] = kernel.probability[x, a, s]


@compiled
def spend(chain, here, spare, most):
    """Sweep the visits [X] of a chain [X, 1] until they settle. Return False if they do not."""
    for turn in range(0, most, 2):
        step = STEP if turn < EARLY else LATER
        advance(chain, here, step, spare)
        advance(chain, spare, step, here)
        if turn % LOOK == 0:
            moved = 0.0
            for x in range(len(here)):
                moved += abs(here[x] - spare[x])
            if moved <= SETTLED:
                return True
    return False


@compiled
def advance(chain, now, step, after):
    """Write the visits after a step."""
    for x in range(len(now)):
        after[x] = now[x]
    for x in range(len(now)):
        gone, mass = 0.0, step * now[x]
        if chain.full:
            for y in range(len(now)):
                after[y] += mass * chain.probability[x, 0, y]
                gone += mass * chain.probability[x, 0, y]
        else:
            for s in range(chain.successor.shape[2]):
                part = mass * chain.probability[x, 0, s]
                after[chain.successor[x, 0, s]] += part
                gone += part
        after[x] -= gone


@compiled
def reach(kernel, found, waiting, count):
    """Mark and count the states that some policy reaches, from the first `count` of `waiting`."""
    left = count
    while left > 0 and count < len(found):
        left -= 1
        x = waiting[left]
        for a in range(kernel.successor.shape[1]):
            for s in range(kernel.successor.shape[2]):
                y = kernel.successor[x, a, s]
                if kernel.probability[x, a, s] > 0.0 and not found[y]:
                    found[y], waiting[left] = True, y
                    count += 1
                    left += 1
    return count
