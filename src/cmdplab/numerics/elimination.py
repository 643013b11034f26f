"""Chains solved state by state without a subtraction, after Grassmann, Taksar and Heyman (1985).

The elimination of a state adds its probabilities to the states before it. The probability of
leaving a state is the sum of the others, never 1 - P(x, x). Hence exits of 1e-14 keep all their
digits. Numbers are doubles or decimals: the code uses only +, * and /.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]  # of doubles, or of decimals


class Passage:
    """The system (I - P) x = b over states that are all left for ever.

    inner : the probabilities [n, n] among the states. Their diagonal is not read. out : the
    probabilities [n] of leaving the states.
    """

    def __init__(self, inner: Numbers, out: Numbers) -> None:
        self.table, out = inner.copy(), out.copy()
        self.left = out.copy()  # of each state: the probability of going to one before it, or out
        for k in range(len(out) - 1, -1, -1):
            row = self.table[k, :k]
            self.left[k] = row.sum() + out[k]
            into = np.flatnonzero(self.table[:k, k])
            share = self.table[into, k] / self.left[k]
            self.table[into, k] = share
            self.table[into, :k] += share[:, None] * row
            out[into] += share * out[k]

    def solve(self, right: Numbers) -> Numbers:
        """Return x of (I - P) x = right, for right sides [n] or [n, K]."""
        found = right.copy()
        for k in range(len(found) - 1, 0, -1):
            found[:k] += np.multiply.outer(self.table[:k, k], found[k])
        for k in range(len(found)):
            found[k] = (found[k] + self.table[k, :k] @ found[:k]) / self.left[k]
        return found

    def visits(self, start: Numbers) -> Numbers:
        """Return x of x (I - P) = start: the expected visits of each state, for start [n]."""
        found = start.copy()
        for k in range(len(found) - 1, -1, -1):
            found[k] = found[k] / self.left[k]
            found[:k] += found[k] * self.table[k, :k]
        for k in range(1, len(found)):
            found[k] += found[:k] @ self.table[:k, k]
        return found
