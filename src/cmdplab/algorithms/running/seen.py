"""Counts as lists of the successors that were seen: memory and time follow the visits.

They serve an unknown kernel, whose lists cannot be made beforehand. Each pair has places in one
pool, in the order in which its successors were first seen. A full list moves to the end of the
pool, with twice its places. `make_places` makes places before an episode is counted. Python
enlarges a pool that is too small, because compiled loops never allocate.
"""
# Numba infers the types of the compiled functions; the class below names the shapes.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.counts import as_rows
from cmdplab.numerics.arrays import from_pairs, padded, to_pairs
from cmdplab.numerics.compiling import compiled
from cmdplab.types import Array, Indices

TABLE = 32  # states of which a table costs no more than lists: 0.2 us a step

TAKEN, LONGEST = 0, 1  # places in `SeenCounts.size`


class SeenCounts(NamedTuple):
    """Visits to the successors of each pair that were seen; L is that of the row."""

    begin: Indices  # [L, A * P], where the places of a pair begin
    used: Indices  # [L, A * P], the number of its successors
    room: Indices  # [L, A * P], the number of its places
    size: Indices  # [2]: places that are given to pairs, and the length of the longest list
    state: Indices  # [E], the successor of a place
    visits: Array  # [E]
    anywhere: Array  # [L, A * P], one if an unvisited row counts every state once; or [L, 0]
    states: Array  # [X], zeros: only their number matters


@compiled
def place_of(counts, layer, i, y):
    """Return the place of a successor; -1 if it was never seen."""
    for place in range(counts.begin[layer, i], counts.begin[layer, i] + counts.used[layer, i]):
        if counts.state[place] == y:
            return place
    return -1


@compiled
def moved_to_the_end(counts, layer, i):
    """Give a full list twice its room. Return False if the pool is too small."""
    begin, used = counts.begin[layer, i], counts.used[layer, i]
    room, end = max(1, 2 * used), counts.size[TAKEN]
    if end + room > len(counts.state):
        return False
    for place in range(used):
        counts.state[end + place] = counts.state[begin + place]
        counts.visits[end + place] = counts.visits[begin + place]
    counts.begin[layer, i], counts.room[layer, i] = end, room
    counts.size[TAKEN] = end + room
    return True


@compiled
def make_places(counts, states, actions, P, first):
    """Make a place for each transition from step `first` on. Return the step without one, or H."""
    for h in range(first, len(actions)):
        layer, i = min(h, len(counts.used) - 1), actions[h] * P + states[h]
        if states[h + 1] < 0:  # the successor is unknown
            continue
        if place_of(counts, layer, i, states[h + 1]) >= 0:
            continue
        used = counts.used[layer, i]
        if used == counts.room[layer, i] and not moved_to_the_end(counts, layer, i):
            return h
        place = counts.begin[layer, i] + used
        counts.state[place], counts.visits[place] = states[h + 1], 0.0
        counts.used[layer, i] = used + 1
        counts.size[LONGEST] = max(counts.size[LONGEST], used + 1)
    return len(actions)


@compiled
def sums_over_seen(begin, used, state, visits, weights, first, second):
    """Write first[i] = sum over the successors of visits weights[0]; second[i] uses weights[1]."""
    for i in range(len(first)):
        left, right = 0.0, 0.0
        for place in range(begin[i], begin[i] + used[i]):
            y, n = state[place], visits[place]
            left += n * weights[0, y]
            right += n * weights[1, y]
        first[i] = left
        second[i] = right


@compiled
def repeated(counts, layer, i, inverse, row):
    """Return how often each entry of a row occurs. An unvisited row may count every state once."""
    if counts.anywhere.shape[1] > 0 and counts.anywhere[layer, i] > 0.0:
        row[0] = inverse
        return float(len(counts.states))
    return 1.0


@compiled
def seen_gather(counts, layer, i, inverse, row):
    """See `storage.gather`; the row is as long as the longest list or longer."""
    row[:] = 0.0
    begin = counts.begin[layer, i]
    for s in range(counts.used[layer, i]):
        row[s] = counts.visits[begin + s] * inverse
    return repeated(counts, layer, i, inverse, row)


@compiled
def seen_visit(counts, layer, y, i, seen, visit):
    """See `storage.add_visit`; the place exists already."""
    if not seen and counts.anywhere.shape[1] > 0:
        counts.anywhere[layer, i] = 0.0
    counts.visits[place_of(counts, layer, i, y)] += visit


def stored(counts: Array, uniform: Array) -> SeenCounts:
    """Return the lists of natural counts [L, X, A, X] or [M, 5]; `uniform` marks rows of ones."""
    layers, X, A = uniform.shape
    rows = as_rows(counts)
    layer, x, a, y = rows[:, :4].astype(np.int64).T
    pair = a * padded(X) + x
    shape = (layers, A * padded(X))
    used = np.zeros(shape, np.int64)
    np.add.at(used, (layer, pair), 1)
    begin = np.concatenate([[0], np.cumsum(used)[:-1]]).reshape(shape)
    order = np.argsort(layer * shape[1] + pair, kind="stable")
    state, visits = np.zeros((2, max(2 * len(rows), 1024)))
    state[: len(rows)], visits[: len(rows)] = y[order], rows[order, 4]
    size = np.array([len(rows), used.max(initial=0)])
    anywhere = to_pairs(uniform) if uniform.any() else np.zeros((layers, 0))
    places = (state.astype(np.int64), visits)
    return SeenCounts(begin, used, used.copy(), size, *places, anywhere, np.zeros(X))


def with_places(counts: SeenCounts, states: Indices, actions: Indices) -> SeenCounts:
    """Return the lists with a place for each transition of an episode, after growth if needed."""
    P, first = padded(len(counts.states)), 0
    while (first := make_places(counts, states, actions, P, first)) < len(actions):
        counts = enlarged(counts)
    return counts


def grown(learner: Any, states: Indices, actions: Indices) -> Any:
    """Return a learner with a place for each transition of an episode, if its lists grow."""
    if not isinstance(getattr(learner, "counts", None), SeenCounts):
        return learner
    return learner._replace(counts=with_places(learner.counts, states, actions))


def enlarged(counts: SeenCounts) -> SeenCounts:
    """Return the lists with a pool of twice the size."""
    more = [np.concatenate([each, np.zeros_like(each)]) for each in (counts.state, counts.visits)]
    return counts._replace(state=more[0], visits=more[1])


def natural(counts: SeenCounts, states: int, actions: int) -> Array:
    """Return rows [M, 5] as in algorithms/counts.py, pair by pair in the order of first visits."""
    begin, used = (
        np.asarray(from_pairs(each.astype(np.float64), states, actions), np.int64)
        for each in (counts.begin, counts.used)
    )
    at = np.nonzero(used)
    length = used[at]
    within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    place = np.repeat(begin[at], length) + within
    pairs = [np.repeat(each, length) for each in at]
    return np.stack([*pairs, counts.state[place], counts.visits[place]], axis=1).astype(np.float64)
