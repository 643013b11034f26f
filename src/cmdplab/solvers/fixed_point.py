"""Sweeps in whole numbers: a known kernel, rewards and weights as multiples of 2^-BITS.

Large multipliers weigh utilities against each other that nearly cancel, and a double then has no
digits left for the objective. Python's integers have as many as are asked for. Slow, and rarely
needed: where the certificate stays open in doubles.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.solvers.rational import Vertex
from cmdplab.types import Array

BITS = 240
MOST_PRODUCTS = 2_000_000  # of a sweep: a second or two

Whole = Any  # arrays of Python's integers


def scaled(number: Any) -> int:
    """A number as a multiple of 2^-BITS, rounded down."""
    top, bottom = Fraction(number).as_integer_ratio()
    return (top << BITS) // bottom


as_whole = np.frompyfunc(scaled, 1, 1)


def affordable(problem: CMDP, reward: Array) -> bool:
    """Whether a sweep is a matter of seconds."""
    row = problem.transition
    successors = row.successor.shape[-1] if isinstance(row, Sparse) else problem.states
    return int(reward.size) * successors <= MOST_PRODUCTS


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
        self._rows = [whole if whole.ndim == 3 else whole[h] for h in range(problem.horizon)]

    def __call__(self, weight: Fraction, multiplier: list[Fraction]) -> Vertex:
        """One backward sweep; ties go to the first action."""
        p = self._problem
        weights = [scaled(each) for each in (weight, *multiplier)]
        value = np.zeros((len(weights), p.states), dtype=object)
        policy = np.zeros((p.horizon, p.states, p.actions))
        everywhere = np.arange(p.states)
        for h in reversed(range(p.horizon)):
            q = self._reward[:, h] + np.stack([self._ahead(h, each) for each in value])
            total = sum(w * each for w, each in zip(weights, q, strict=True))
            lowest = min(total.ravel()) - 1
            best = np.argmax(np.where(p.opened[h], total, lowest), axis=-1)
            policy[h, everywhere, best] = 1.0
            value = q[:, everywhere, best]
        returns = tuple(Fraction(int(each), 1 << BITS) for each in value[:, p.start])
        return Vertex(returns, policy)

    def _ahead(self, h: int, value: Whole) -> Whole:
        kernel = self._problem.transition
        at = value[kernel.successor] if isinstance(kernel, Sparse) else value
        return (self._rows[h] * at).sum(axis=-1) >> BITS
