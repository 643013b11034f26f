"""Sweeps in whole numbers: a known kernel, rewards and weights as multiples of 2^-BITS.

Large multipliers weigh utilities against each other that nearly cancel, and a double then has no
digits left for the objective. Python's integers have as many as are asked for. Slow, and rarely
needed: where the certificate stays open in doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.solvers.rational import Mixture, Vertex
from cmdplab.types import Array

BITS = 240
MOST_PRODUCTS = 2_000_000  # of a sweep: a second or two

Whole = Any  # arrays of Python's integers


def scaled(number: Any) -> int:
    """A number as a multiple of 2^-BITS, rounded down."""
    top, bottom = Fraction(number).as_integer_ratio()
    return (top << BITS) // bottom


as_whole = np.frompyfunc(scaled, 1, 1)


def products(problem: CMDP, reward: Array) -> int:
    """The products of a sweep."""
    row = problem.transition
    return int(reward.size) * (
        row.successor.shape[-1] if isinstance(row, Sparse) else problem.states
    )


def affordable(problem: CMDP, reward: Array) -> bool:
    """Whether a sweep is a matter of seconds."""
    return products(problem, reward) <= MOST_PRODUCTS


class WholePricing:
    """The best policy for given weights on the rewards [1 + N, H, X, A], and its returns."""

    def __init__(self, problem: CMDP, reward: Array) -> None:
        self._problem, self._reward = problem, as_whole(reward)
        kernel = problem.transition
        self._listed = isinstance(kernel, Sparse)
        table = kernel.probability if isinstance(kernel, Sparse) else kernel
        stationary = problem.stationary
        if not isinstance(kernel, Sparse) and stationary:
            table = table[0]
        whole = as_whole(table)
        self._lacking = int(abs((1 << BITS) - whole.sum(axis=-1)).max())
        self.unsure = Fraction(0)
        self._rows = [whole if whole.ndim == 3 else whole[h] for h in range(problem.horizon)]

    def __call__(self, weight: Fraction, multiplier: Sequence[Fraction]) -> Vertex:
        """One backward sweep; ties go to the first action."""
        p = self._problem
        weights = [scaled(each) for each in (weight, *multiplier)]
        value = np.zeros((len(weights), p.states), dtype=object)
        policy = np.zeros((p.horizon, p.states, p.actions))
        everywhere, most = np.arange(p.states), 0
        for h in reversed(range(p.horizon)):
            q = self._reward[:, h] + np.stack([self._ahead(h, each) for each in value])
            total = sum(w * each for w, each in zip(weights, q, strict=True))
            lowest = min(total.ravel()) - 1
            best = np.argmax(np.where(p.opened[h], total, lowest), axis=-1)
            policy[h, everywhere, best] = 1.0
            value = q[:, everywhere, best]
            most += int(abs(total[everywhere, best]).max())
        self.unsure = Fraction(self._lacking * most, 1 << 3 * BITS)
        returns = tuple(Fraction(int(each), 1 << BITS) for each in value[:, p.start])
        return Vertex(returns, policy)

    def returns(self, policy: Array) -> tuple[Fraction, ...]:
        """What a policy [H, X, A] earns, its rows made to sum to one."""
        shares = as_whole(policy)
        value = np.zeros((len(self._reward), self._problem.states), dtype=object)
        for h in reversed(range(self._problem.horizon)):
            q = self._reward[:, h] + np.stack([self._ahead(h, each) for each in value])
            value = (shares[h] * q).sum(axis=-1) // shares[h].sum(axis=-1)
        return tuple(Fraction(int(each), 1 << BITS) for each in value[:, self._problem.start])

    def played(self, mixture: Mixture) -> tuple[Array, Array]:
        """The policy [H, X, A] of a mixture and its visits; elsewhere that of its first vertex."""
        pairs = sum(
            float(share) * exact.occupancy(self._problem, vertex.policy)
            for vertex, share in zip(mixture.vertices, mixture.shares, strict=True)
        )
        return exact.policy_of(np.asarray(pairs), mixture.vertices[0].policy), np.asarray(pairs)

    def _ahead(self, h: int, value: Whole) -> Whole:
        kernel = self._problem.transition
        at = value[kernel.successor] if isinstance(kernel, Sparse) else value
        return (self._rows[h] * at).sum(axis=-1) >> BITS
