"""Transitions one by one become a kernel: a full table where that is small, lists otherwise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.formats.assembling import LARGEST
from cmdplab.types import Array, Indices, Mask

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
