"""Stores of a kernel and of the counts of its transitions; the type chooses the loop.

Dense tables hold every successor of a pair, and lists hold the S that some kernel allows. Lists
take memory and time in proportion to S, and tables to X: lists are for grids, queues and chains.
Only the engine knows the listed states. The learner counts the transitions that it sees, and a
state that cannot follow has no visits in either store. If the kernel is unknown, lists grow with
the transitions seen: seen.py.
"""
# Numba infers the types of the compiled functions; the classes below name the shapes.

from __future__ import annotations

from typing import NamedTuple

from cmdplab.algorithms.running.loops import pair_product, spread
from cmdplab.algorithms.running.seen import (
    SeenCounts,
    repeated,
    seen_gather,
    seen_visit,
    sums_over_seen,
)
from cmdplab.numerics.compiling import by_type, compiled, compiled_exactly
from cmdplab.types import Array, Indices, Places


class World(NamedTuple):
    """The true kernel, which only the engine sees."""

    kernel: Array  # [H, A * P, C], P_h(y | x, a), then the rewards r^n_h(x, a), then zeros
    cumulative: Array  # [H, X, A, X], sums over y; the last is beyond every uniform


class ListedWorld(NamedTuple):
    """The true kernel as lists; L is 1 if the kernel is stationary, else H."""

    successor: Places  # [S, A * P]
    probability: Array  # [L, S, A * P]
    cumulative: Array  # [L, X, A, S], sums over s; the last is beyond every uniform
    reward: Array  # [1 + N, H, A * P]


class Successors(NamedTuple):
    """The kernel as lists in natural axes: the possible successors of each (h, x, a).

    A stationary kernel is stored once, L = 1; otherwise L = H.
    """

    range: Indices  # [L, X, A, 2], where those of (h, x, a) begin and end below
    state: Indices  # [S]
    probability: Array  # [S]
    cumulative: Array  # [S], from the first one on; the last is beyond every uniform
    reward: Array  # [1 + N, H, X, A]


class ListedCounts(NamedTuple):
    """Visits to the successors in a list; the dense counts are an array [L, X, A * P]."""

    successor: Places  # [S, A * P]
    visits: Array  # [L, S, A * P]
    anywhere: Array  # [L, A * P], one if an unvisited row counts every state once; or [L, 0]
    states: Array  # [X], zeros: only their number matters


@compiled
def draw_state(cumulative, u):
    """Return the first place with u < cumulative, by counting, which needs no branch to guess."""
    place = 0
    for each in range(len(cumulative)):
        place += cumulative[each] <= u
    return place


@compiled
def push(successor, probability, reward, mass, policy, ahead, out):
    """Move the mass of one step on, state by state, and skip states without mass."""
    P = len(mass)
    for a in range(len(policy) // P):
        for x in range(P):
            if mass[x] == 0.0:
                continue
            i = a * P + x
            flow = mass[x] * policy[i]
            for n in range(len(out)):
                out[n] += flow * reward[n, i]
            for s in range(len(successor)):
                ahead[successor[s, i]] += flow * probability[s, i]


@compiled
def listed_returns(world, policies, start, scratch, out):
    """See `exact_returns`. One policy follows the other."""
    P = scratch.value.shape[1]
    out[:] = 0.0
    for s in range(2):
        scratch.top[:] = 0.0
        scratch.top[start] = 1.0
        for h in range(policies.shape[1]):
            layer = min(h, len(world.probability) - 1)
            scratch.mass[:] = 0.0
            push(
                world.successor,
                world.probability[layer],
                world.reward[:, h],
                scratch.top,
                policies[s, h],
                scratch.mass,
                out[s],
            )
            for x in range(P):
                scratch.top[x] = scratch.mass[x]


@by_type({ListedWorld: listed_returns})
@compiled
def exact_returns(world, policies, start, scratch, out):
    """Write out[s, n] = V^pi[P, r^n](start) of two policies, by a forward pass of occupancies."""
    here, occupancy = scratch.here, scratch.occupancy
    X, P = world.cumulative.shape[1], scratch.value.shape[1]
    out[:] = 0.0
    here[:] = 0.0
    here[:, start] = 1.0
    for h in range(len(world.kernel)):
        for s in range(2):
            spread(here[s], policies[s, h], P, occupancy[s])
        pair_product(world.kernel[h], occupancy, here[0], here[1])
        for s in range(2):
            for n in range(out.shape[1]):
                out[s, n] += here[s, X + n]
                here[s, X + n] = 0.0


@compiled
def listed_next(world, h, x, a, u):
    """See `draw_next`."""
    layer = min(h, len(world.cumulative) - 1)
    P = world.successor.shape[1] // world.cumulative.shape[2]
    return world.successor[draw_state(world.cumulative[layer, x, a], u), a * P + x]


@compiled_exactly
def natural_next(world, h, x, a, u):
    """See `draw_next`: by bisection."""
    layer = min(h, len(world.range) - 1)
    low, high = world.range[layer, x, a, 0], world.range[layer, x, a, 1] - 1
    while low < high:
        middle = (low + high) >> 1
        if u < world.cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return world.state[low]


@by_type({ListedWorld: listed_next, Successors: natural_next})
@compiled
def draw_next(world, h, x, a, u):
    """Return the next state for a uniform u: the first whose cumulative probability exceeds u."""
    return draw_state(world.cumulative[h, x, a], u)


@compiled
def listed_reward(world, n, h, x, a):
    """See `mean_reward`."""
    P = world.successor.shape[1] // world.cumulative.shape[2]
    return world.reward[n, h, a * P + x]


@compiled_exactly
def natural_reward(world, n, h, x, a):
    """See `mean_reward`."""
    return world.reward[n, h, x, a]


@by_type({ListedWorld: listed_reward, Successors: natural_reward})
@compiled
def mean_reward(world, n, h, x, a):
    """Return r^n_h(x, a)."""
    X, A = world.cumulative.shape[1:3]
    P = world.kernel.shape[1] // A
    return world.kernel[h, a * P + x, X + n]


@compiled
def gathered_pair(successor, visits, weights, first, second):
    """Write the sums of `expected_pair` over lists."""
    first[:] = 0.0
    second[:] = 0.0
    for s in range(len(successor)):
        for i in range(len(first)):
            y = successor[s, i]
            first[i] += visits[s, i] * weights[0, y]
            second[i] += visits[s, i] * weights[1, y]


@compiled
def add_everywhere(anywhere, states, weights, first, second):
    """Add the rows that count every state once. The padding of the weights holds no states."""
    left, right = 0.0, 0.0
    for y in range(states):
        left += weights[0, y]
        right += weights[1, y]
    for i in range(len(anywhere)):
        first[i] += anywhere[i] * left
        second[i] += anywhere[i] * right


@compiled
def listed_expected(counts, h, weights, first, second):
    """See `expected_pair`."""
    gathered_pair(counts.successor, counts.visits[h], weights, first, second)
    add_everywhere(counts.anywhere[h], len(counts.states), weights, first, second)


@compiled
def seen_expected(counts, h, weights, first, second):
    """See `expected_pair`."""
    places = (counts.begin[h], counts.used[h], counts.state, counts.visits)
    sums_over_seen(*places, weights, first, second)
    add_everywhere(counts.anywhere[h], len(counts.states), weights, first, second)


@by_type({ListedCounts: listed_expected, SeenCounts: seen_expected})
@compiled
def expected_pair(counts, h, weights, first, second):
    """Write first[i] = sum_y counts_h(y, i) weights[0, y]; second[i] uses weights[1]."""
    pair_product(counts[h], weights, first, second)


@compiled
def listed_gather(counts, h, i, inverse, row):
    """See `gather`."""
    for s in range(len(counts.successor)):
        row[s] = counts.visits[h, s, i] * inverse
    return repeated(counts, h, i, inverse, row)


@by_type({ListedCounts: listed_gather, SeenCounts: seen_gather})
@compiled
def gather(counts, h, i, inverse, row):
    """Write the different entries of Pbar_h(. | i), padded with zeros. Return their frequency."""
    for y in range(counts.shape[1]):
        row[y] = counts[h, y, i] * inverse
    return 1.0


@compiled
def listed_visit(counts, h, y, i, seen, visit):
    """See `add_visit`."""
    if not seen and counts.anywhere.shape[1] > 0:
        counts.anywhere[h, i] = 0.0
    s = 0
    while counts.successor[s, i] != y:
        s += 1
    counts.visits[h, s, i] += visit


@by_type({ListedCounts: listed_visit, SeenCounts: seen_visit})
@compiled
def add_visit(counts, h, y, i, seen, visit):
    """Count a visit to y. If the pair was never seen, clear its row for unvisited pairs first.

    `visit` is the number added: 1, or 0 if the counts are a known kernel.
    """
    if not seen:
        counts[h, :, i] = 0.0
    counts[h, y, i] += visit
