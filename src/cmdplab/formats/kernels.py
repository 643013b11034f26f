"""Transitions one by one, as files and tables list them, become a kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.transitions import ROW_SUM_TOLERANCE, Sparse
from cmdplab.errors import InputError
from cmdplab.types import Array, Indices, Mask

LARGEST = 100_000_000  # numbers in any one array that a reader is willing to make
DENSE = 1_000_000  # entries up to which a kernel is stored as a full table
TEXT_TOLERANCE = 1e-5  # a row of text may be off by this much: some tools print six digits


class Transitions(NamedTuple):
    """P_step(target | state, action) = probability; a pair lists a target once.

    `step` is None where the kernel is the same at every step.
    """

    state: Indices  # [E]
    action: Indices  # [E]
    target: Indices  # [E]
    probability: Array  # [E]
    step: Indices | None = None  # [E]

    @property
    def pair(self) -> tuple[Indices, ...]:
        """Where each is in an array [X, A], or [H, X, A] where there are steps."""
        steps = () if self.step is None else (self.step,)
        return (*steps, self.state, self.action)

    def within(self, mask: Mask) -> Transitions:
        """The transitions of the pairs that are open."""
        keep = mask[self.pair]
        step = None if self.step is None else self.step[keep]
        pair = self.state[keep], self.action[keep]
        return Transitions(*pair, self.target[keep], self.probability[keep], step)


def stored(given: Transitions, mask: Mask, what: str) -> Array | Sparse:
    """[X, A, X] or [H, X, A, X], or lists; the pairs that the mask closes stay where they are.

    mask : [X, A], or [H, X, A] where the transitions have steps. `what` is named where even lists
    would be too large.
    """
    X, A = mask.shape[-2:]
    if mask.size * X > DENSE and given.step is None:
        told = (given.state, given.action, given.target, given.probability)
        return Sparse.from_triplets(*told, (X, A), mask)
    every = _with_stays(given, mask)
    if mask.size * X <= DENSE:
        table = np.zeros((*mask.shape, X))
        table[(*every.pair, every.target)] = every.probability
        return table
    listed, entry = np.unique((every.state * A + every.action) * X + every.target, False, True)
    pair = listed // X  # equal ones are neighbours; a place is how many of a pair come before
    place = (np.arange(len(pair)) - np.searchsorted(pair, pair))[entry]
    most = int(place.max()) + 1
    if mask.size * most > LARGEST:
        raise InputError(f"{what}: {X} states, {A} actions, {most} successors are too many")
    successor = np.zeros((X, A, most), dtype=np.int64)
    probability = np.zeros((*mask.shape, most))
    successor[every.state, every.action, place] = every.target
    probability[(*every.pair, place)] = every.probability
    return Sparse(successor, probability)


def _with_stays(given: Transitions, mask: Mask) -> Transitions:
    """These transitions, and one from each closed pair to its own state."""
    *step, state, action = np.nonzero(~mask)
    return Transitions(
        np.concatenate([given.state, state]),
        np.concatenate([given.action, action]),
        np.concatenate([given.target, state]),
        np.concatenate([given.probability, np.ones(len(state))]),
        None if given.step is None else np.concatenate([given.step, *step]),
    )


def normalised(given: Transitions, mask: Mask, labels: Labels, tolerance: float) -> Transitions:
    """These transitions, if those of every open pair sum to one but for `tolerance`.

    Sums that are off by more than rounding are made one. A refusal names the pair.
    """
    total = np.zeros(mask.shape)
    np.add.at(total, given.pair, given.probability)
    wrong = np.argwhere(mask & ~(np.abs(total - 1.0) <= tolerance))
    if len(wrong):
        place = tuple(int(each) for each in wrong[0])
        raise InputError(
            f"the probabilities of {pair_named(place, labels)} sum to {total[place]:.9g}, not 1"
        )
    total[np.abs(total - 1.0) <= ROW_SUM_TOLERANCE] = 1.0
    return given._replace(probability=given.probability / total[given.pair])


def pair_named(place: tuple[int, ...], labels: Labels) -> str:
    """A pair (x, a), or (h, x, a), as a person calls it."""
    *step, state, action = place
    where = f" at step {labels.step(step[0])}" if step else ""
    return f"action {labels.action(action)} in state {labels.state(state)}{where}"
