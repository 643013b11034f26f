"""Compiled sweeps over average rewards: relative values, and their distance from the best.

The drift of an action is a sum of differences, sum_y p(y) (v(y) - v(x)). Hence neither the size of
v nor a rare exit loses digits, and P(x, x) is not read. For any v, no policy has a gain above the
largest excess r + drift of a pair. The gain of the greedy policy is at least its own smallest
excess. Sweeps are damped, so that periodic chains converge. The values of four rewards lie side by
side, [X, 4]: a successor is looked up once for all of them.
"""
# Numba infers the types of the compiled functions; the docstrings name the shapes.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.numerics.compiling import by_type, compiled
from cmdplab.types import Array, Indices, Mask

STEP, LATER = 1.0, 0.75  # of a sweep, first and from EARLY sweeps on: a chain may be periodic
EARLY = 64
SPAN = 1e-13  # of the weighted ranges: excesses that agree to it are closed
SHARP = 5e-14  # of the range: gains of a policy that agree to it are known
LOOSE = 0.1  # of the span that is left: how well a policy is followed before the next
TIE = 1e-15
ROUGH = 1e-11  # of the range: excesses that agree to it, and no better however often, are known
MOST_POLICIES = 60
SETTLED = 1e-14  # visits that change by less in a sweep
WIDTH = 4  # rewards side by side
WAIT = 0.1  # of the sweeps so far: as many that gain less than a tenth are followed by a leap
MOST_LEAPS, ALIKE = 8, 1e-3  # leaps that change nothing: regions are classes of their own


class Listed(NamedTuple):
    """A kernel by lists of successors. Empty places have probability zero."""

    successor: Indices  # [X, A, S]
    probability: Array  # [X, A, S]


@compiled
def drift_listed(kernel, x, a, value):
    """Return `drift` by lists."""
    total, here = 0.0, value[x]
    for s in range(kernel.successor.shape[2]):
        total += kernel.probability[x, a, s] * (value[kernel.successor[x, a, s]] - here)
    return total


@compiled
def drift_table(kernel, x, a, value):
    """Return `drift` by a table."""
    total, here, row = 0.0, value[x], kernel[x, a]
    for y in range(len(row)):
        total += row[y] * (value[y] - here)
    return total


@by_type({Listed: drift_listed}, drift_table)
def drift(kernel: Any, x: Any, a: Any, value: Any) -> Any:
    """Return sum_y P(y | x, a) (value[y] - value[x])."""
    raise NotImplementedError


@compiled
def drifts_listed(chain, x, value):
    """Return `drifts` by lists."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for s in range(chain.successor.shape[2]):
        y, p = chain.successor[x, 0, s], chain.probability[x, 0, s]
        first += p * (value[y, 0] - value[x, 0])
        second += p * (value[y, 1] - value[x, 1])
        third += p * (value[y, 2] - value[x, 2])
        fourth += p * (value[y, 3] - value[x, 3])
    return first, second, third, fourth


@compiled
def drifts_table(chain, x, value):
    """Return `drifts` by a table."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for y in range(chain.shape[2]):
        p = chain[x, 0, y]
        first += p * (value[y, 0] - value[x, 0])
        second += p * (value[y, 1] - value[x, 1])
        third += p * (value[y, 2] - value[x, 2])
        fourth += p * (value[y, 3] - value[x, 3])
    return first, second, third, fourth


@by_type({Listed: drifts_listed}, drifts_table)
def drifts(chain: Any, x: Any, value: Any) -> Any:
    """Return `drift` of four values [X, 4] for the only action of a chain."""
    raise NotImplementedError


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
def close(kernel, reward, value, spare, most, actions):
    """Improve until the excesses of all states agree, or `most` sweeps are done.

    If regions with close best gains compete, excesses stay equal while values drift apart. Then one
    sweep is applied as many times as doubles the range of the values.
    """
    low = high = 0.0
    best, since, last, same = np.inf, 0, np.inf, 0
    for turn in range(most):
        step = STEP if turn < EARLY else LATER
        now, after = (spare, value) if turn % 2 else (value, spare)
        low, high, _ = improve(kernel, reward, now, 0.5 * (low + high), step, 0.0, actions, after)
        if high - low <= SPAN:
            if turn % 2:
                for x in range(len(value)):
                    value[x] = spare[x]
            break
        if high - low < 0.9 * best:
            best, since = high - low, turn
        elif turn - since > EARLY + WAIT * turn:
            same = same + 1 if abs(last - best) < ALIKE * best else 0
            if best <= ROUGH or same > MOST_LEAPS:
                break
            least, largest = np.inf, -np.inf
            for x in range(len(value)):
                least, largest = min(least, after[x]), max(largest, after[x])
            many = (largest - least) / (high - low)
            for x in range(len(value)):
                after[x] += many * (after[x] - now[x])
            last, best, since = best, np.inf, turn
    return low, high


class Signals(NamedTuple):
    """Rewards in blocks of four, filled up with zeros."""

    reward: Array  # [B, X, A, 4], nonnegative
    top: Array  # [B, 4], the largest of each
    opened: Mask  # [X, A]
    noise: float  # what rounding does to an excess where rewards and values have a range of one


class State(NamedTuple):
    """A policy with its values, and space to work in."""

    actions: Indices  # [X]
    values: Array  # [B, X, 4]
    low: Array  # [B, 4], of the last sweep: bounds on the gain of the policy from every state
    high: Array
    reward: Array  # [B, X, 4], of the policy
    spare: Array  # [X, 4]
    limit: Array  # [B, 4]
    worth: Array  # [X, A]
    value: Array  # [X]
    following: Array  # [X]

    @classmethod
    def of(cls, signals: Signals, actions: Indices) -> State:
        """Return the state of a policy whose values are not known."""
        B, X, A, width = signals.reward.shape
        values, reward = np.zeros((2, B, X, width))
        low, high, limit = np.zeros((3, B, width))
        value, following = np.empty((2, X))
        space = (reward, np.empty((X, width)), limit, np.empty((X, A)), value, following)
        return cls(actions, values, low, high, *space)


@compiled
def settle(kernel, signals, weights, chain, state, most):
    """Improve a policy for weights [B, 4] until no gain is left. Return False if that fails.

    chain : the output for the rows of the policy, a kernel of one action.
    """
    size, top = 0.0, 0.0
    for b in range(weights.shape[0]):
        for k in range(WIDTH):
            size += abs(weights[b, k])
            top += abs(weights[b, k]) * signals.top[b, k]
    size = size if size > 0.0 else 1.0
    weigh(signals, weights, state.worth)
    for _ in range(MOST_POLICIES):
        least, largest = combine(state.values, weights, state.value)
        noise = 0.25 * signals.noise * (top + largest - least) / size
        given = kernel, state.worth, state.value, 0.0, 1.0, TIE * size
        low, high, changed = improve(*given, state.actions, state.following)
        left = (high - low) / size
        closed = changed == 0 and left <= max(SPAN, noise)
        limit = max(LOOSE * min(left, 1.0), SHARP) if changed else SHARP
        pick(kernel, signals, chain, state)
        if not evaluate(chain, signals, state, limit, most):
            return False
        if closed:
            return True
    return False


@compiled
def pick(kernel, signals, chain, state):
    """Write the rows and rewards of the policy."""
    for x in range(len(state.actions)):
        copy_row(kernel, x, state.actions[x], chain)
        for b in range(len(state.reward)):
            for k in range(WIDTH):
                state.reward[b, x, k] = signals.reward[b, x, state.actions[x], k]


@compiled
def copy_listed(kernel, x, a, chain):
    """Copy as `copy_row`, by lists."""
    for s in range(kernel.successor.shape[2]):
        chain.successor[x, 0, s] = kernel.successor[x, a, s]
        chain.probability[x, 0, s] = kernel.probability[x, a, s]


@compiled
def copy_table(kernel, x, a, chain):
    """Copy as `copy_row`, by a table."""
    for y in range(kernel.shape[2]):
        chain[x, 0, y] = kernel[x, a, y]


@by_type({Listed: copy_listed}, copy_table)
def copy_row(kernel: Any, x: Any, a: Any, chain: Any) -> Any:
    """Write the row of a pair as the row of the only action."""
    raise NotImplementedError


@compiled
def weigh(signals, weights, worth):
    """Write the weighted rewards [X, A], with -inf at closed actions."""
    for x in range(worth.shape[0]):
        for a in range(worth.shape[1]):
            total = 0.0 if signals.opened[x, a] else -np.inf
            for b in range(weights.shape[0]):
                for k in range(WIDTH):
                    total += weights[b, k] * signals.reward[b, x, a, k]
            worth[x, a] = total


@compiled
def combine(values, weights, value):
    """Write the weighted values [X]. Return the least and the largest."""
    least, largest = np.inf, -np.inf
    for x in range(len(value)):
        total = 0.0
        for b in range(weights.shape[0]):
            for k in range(WIDTH):
                total += weights[b, k] * values[b, x, k]
        value[x] = total
        least, largest = min(least, total), max(largest, total)
    return least, largest


@compiled
def evaluate(chain, signals, state, limit, most):
    """Follow the policy until the excesses of each reward agree. Return False if they do not."""
    for b in range(len(state.values)):
        for k in range(WIDTH):
            least, largest = np.inf, -np.inf
            for x in range(len(state.actions)):
                least = min(least, state.values[b, x, k])
                largest = max(largest, state.values[b, x, k])
            noise = 0.25 * signals.noise * (signals.top[b, k] + largest - least)
            state.limit[b, k] = max(limit, noise)
        done = False
        for turn in range(most):
            step = STEP if turn < EARLY else LATER
            now, after = state.values[b], state.spare
            if turn % 2:
                now, after = after, now
            bounds = state.limit[b], state.low[b], state.high[b]
            done = follow(chain, state.reward[b], now, step, after, *bounds)
            if done and turn % 2:
                break
        if not done:
            return False
    return True


@compiled
def follow(chain, reward, value, step, following, limit, low, high):
    """Sweep a policy for four rewards. Return True if the excesses agree to limits [4].

    low, high : [4], of the last sweep, and then of this one.
    """
    least0, least1, least2, least3 = np.inf, np.inf, np.inf, np.inf
    most0, most1, most2, most3 = -np.inf, -np.inf, -np.inf, -np.inf
    shift0, shift1 = 0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1])
    shift2, shift3 = 0.5 * (low[2] + high[2]), 0.5 * (low[3] + high[3])
    for x in range(len(value)):
        first, second, third, fourth = drifts(chain, x, value)
        first, second = first + reward[x, 0], second + reward[x, 1]
        third, fourth = third + reward[x, 2], fourth + reward[x, 3]
        least0, most0 = min(least0, first), max(most0, first)
        least1, most1 = min(least1, second), max(most1, second)
        least2, most2 = min(least2, third), max(most2, third)
        least3, most3 = min(least3, fourth), max(most3, fourth)
        following[x, 0] = value[x, 0] + step * (first - shift0)
        following[x, 1] = value[x, 1] + step * (second - shift1)
        following[x, 2] = value[x, 2] + step * (third - shift2)
        following[x, 3] = value[x, 3] + step * (fourth - shift3)
    low[0], low[1], low[2], low[3] = least0, least1, least2, least3
    high[0], high[1], high[2], high[3] = most0, most1, most2, most3
    close = True
    for k in range(WIDTH):
        close &= high[k] - low[k] <= limit[k]
    return close


@compiled
def spend(chain, here, spare, most):
    """Sweep the visits [X] of a chain [X, 1] until they settle. Return False if they do not."""
    for turn in range(most):
        step = STEP if turn < EARLY else LATER
        now, after = (spare, here) if turn % 2 else (here, spare)
        for x in range(len(now)):
            after[x] = now[x]
        for x in range(len(now)):
            move(chain, x, step * now[x], after)
        moved = 0.0
        for x in range(len(now)):
            moved += abs(after[x] - now[x])
        if moved <= SETTLED and turn % 2:
            return True
    return False


@compiled
def move_listed(chain, x, mass, after):
    """Move as `move`, by lists."""
    for s in range(chain.successor.shape[2]):
        part = mass * chain.probability[x, 0, s]
        after[chain.successor[x, 0, s]] += part
        after[x] -= part


@compiled
def move_table(chain, x, mass, after):
    """Move as `move`, by a table."""
    for y in range(chain.shape[2]):
        part = mass * chain[x, 0, y]
        after[y] += part
        after[x] -= part


@by_type({Listed: move_listed}, move_table)
def move(chain: Any, x: Any, mass: Any, after: Any) -> Any:
    """Move mass from a state to its successors."""
    raise NotImplementedError


@compiled
def reach(kernel, found, waiting, count):
    """Mark and count the states that some policy reaches, from the first `count` of `waiting`."""
    left = count
    while left > 0 and count < len(found):
        left -= 1
        count, left = spread(kernel, waiting[left], found, waiting, count, left)
    return count


@compiled
def spread_listed(kernel, x, found, waiting, count, left):
    """Spread as `spread`, by lists."""
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
    """Spread as `spread`, by a table."""
    for a in range(kernel.shape[1]):
        for y in range(kernel.shape[2]):
            if kernel[x, a, y] > 0.0 and not found[y]:
                found[y], waiting[left] = True, y
                count += 1
                left += 1
    return count, left


@by_type({Listed: spread_listed}, spread_table)
def spread(kernel: Any, x: Any, found: Any, waiting: Any, count: Any, left: Any) -> Any:
    """Mark the successors of a state, and put the new ones on the stack `waiting`."""
    raise NotImplementedError
