"""Howard's policy iteration for average rewards, with several recurrent classes and rare exits.

The support determines the classes. Chains are solved without a subtraction (elimination.py), in
doubles or in decimals with enough digits for rare exits.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse

from cmdplab.cmdp.exact_stationary import gains_and_biases_of
from cmdplab.errors import OpenCertificateError
from cmdplab.numerics.elimination import Numbers
from cmdplab.types import Indices, Mask

DIGITS = 150
MOST_POLICIES = 300
NOISE = 2_000  # roundings by which two numbers differ that are equal


class Moves(NamedTuple):
    """Pairs as the iteration reads them, of doubles or of decimals."""

    successor: Indices  # [X, A, S]
    probability: Numbers  # [X, A, S], zero where a state stays
    reward: Numbers  # [X, A, 1 + N], nonnegative
    start: Numbers  # [X]
    opened: Mask  # [X, A]
    loose: float  # by how much the sum of a row may differ from one


def decimals(numbers: Any) -> Numbers:
    """Convert numbers to decimals with all of their digits."""
    return np.asarray(np.vectorize(Decimal, otypes=[object])(numbers))


def decimal(number: Fraction) -> Decimal:
    """Return a fraction as a decimal of the digits in use."""
    return Decimal(number.numerator) / Decimal(number.denominator)


class Howard:
    """Policies for weights [1 + N] of the rewards, with gains and biases [X, 1 + N] of the last.

    The weights are numbers of the kind of the moves. Decimals need a context of DIGITS.
    """

    def __init__(self, moves: Moves, actions: Indices) -> None:
        self.moves, self.actions = moves, actions
        self.exact = moves.reward.dtype == object
        self.rounding: Any = Decimal(10) ** (1 - DIGITS) if self.exact else np.finfo(float).eps
        self.evaluate()

    def evaluate(self) -> None:
        """Compute the gains and biases of the policy."""
        moves, states = self.moves, np.arange(len(self.actions))
        successor = moves.successor[states, self.actions]
        probability = moves.probability[states, self.actions]
        x, s = np.nonzero(probability)
        y, entries, shape = successor[x, s], probability[x, s], (len(states), len(states))
        follow: Any = sparse.csr_array((entries, (x, y)), shape=shape) if not self.exact else None
        if self.exact:
            follow = np.full(shape, Decimal(0))
            follow[x, y] = entries
        right = moves.reward[states, self.actions]
        self.gains, self.biases = gains_and_biases_of(follow, right)

    def followed(self, actions: Indices) -> None:
        """Continue from a policy [X]."""
        self.actions = actions.astype(np.int64)
        self.evaluate()

    def improve(self, weights: Numbers) -> None:
        """Iterate policies from the last policy: more gain first, then more bias."""
        opened, states = self.moves.opened, np.arange(len(self.actions))
        for _ in range(MOST_POLICIES):
            scale, noise = 1 + abs(weights).sum(), NOISE * self.rounding
            gain, bias = self._snapped(weights), self.biases @ weights
            ahead, size = self._ahead(gain)
            # Gains are known to a few roundings, and so is what a move to another of them brings.
            other = gain[self.moves.successor] != gain[:, None, None]
            moving = (self.moves.probability * other).sum(axis=2)
            ahead[abs(ahead) <= noise * size + 16 * self.rounding * scale * moving] = 0 * scale
            better = opened & (ahead > 0)
            worth = ahead
            if not better.any():
                excess, size = self._excess(weights, gain, bias)
                tie = noise * (scale + size) + 4 * self.rounding * abs(bias).max()
                own = excess[states, self.actions][:, None]
                better, worth = opened & (ahead == 0) & (excess > own + tie), excess
            if not better.any():
                return
            worth = np.where(better, worth.astype(np.float64), -np.inf)
            self.actions = np.where(better.any(axis=1), worth.argmax(axis=1), self.actions)
            self.evaluate()
        raise OpenCertificateError("policy iteration does not end")

    def bound(self, weights: Numbers) -> Any:
        """Return an upper bound on the weighted gain of every policy, for any search.

        If g >= P g and g + h + e >= r + P h for all pairs, start g + e is a bound. If h lacks
        because an action gives up gain, a multiple of g is added to h. A row may fail by a rounding
        of its own terms. Then the row with its probabilities changed by a share t does not fail. If
        entries of a chain change by a share t, its gain changes by at most (1 - t)^-(X - 1). The
        reason is that gains are sums of products of so many entries (the trees of Freidlin and
        Wentzell).
        """
        opened, X, eps = self.moves.opened, len(self.actions), self.rounding
        gain, bias = self._snapped(weights), self.biases @ weights
        low = np.where(opened, self.moves.reward @ weights, np.inf).min()
        scale = abs(weights).sum() * 2
        ahead, size = self._ahead(gain)
        rising = opened & (ahead > 0)
        level = ~(size > 0)
        share = _ratio(ahead, (size + ahead) / 2, rising & ~level)
        excess, _ = self._excess(weights, gain, bias)
        losing = opened & (ahead < 0) & (-ahead > NOISE * eps * size)
        multiple = _ratio(excess, -ahead, losing & (excess > 0)).max()
        bias = bias + multiple * gain
        excess, size = self._excess(weights, gain, bias)
        width = self.moves.successor.shape[2]
        excess = excess + ((width + 4) * eps + self.moves.loose) * (scale + size) + share * size
        excess[~opened] = 0 * scale
        # A row without another successor's gain may take its lack as a share of its probabilities.
        rise = (size + excess) / 2
        part = _ratio(excess, rise, level & (excess > 0) & (rise > 0))
        fits = (part > 0) & (2 * X * scale * part < excess)
        part[~fits] = 0 * scale
        excess[fits] = 0 * scale
        most = max(part.max(), share.max())
        if 4 * X * most > 1:
            return scale  # no policy earns more than every reward at once
        above = self.moves.start @ gain + max(excess.max(), 0 * scale) - low
        above = above * (1 + 2 * X * most) + 8 * X * eps * scale
        return low + above

    def _snapped(self, weights: Numbers) -> Numbers:
        """Return weighted gains [X], made equal if they differ by rounding."""
        gain = self.gains @ weights
        order = np.argsort(gain)
        near = np.diff(gain[order]) <= NOISE * self.rounding * (1 + abs(weights).sum())
        for k in np.flatnonzero(near)[::-1]:
            gain[order[k]] = gain[order[k + 1]]
        return np.asarray(gain)

    def _ahead(self, value: Numbers) -> tuple[Numbers, Numbers]:
        """Return sum_y P(y) (value[y] - value[x]), [X, A], and the sum of its terms' sizes."""
        terms = value[self.moves.successor] - value[:, None, None]
        terms = self.moves.probability * terms
        return terms.sum(axis=2), abs(terms).sum(axis=2)

    def _excess(self, weights: Numbers, gain: Numbers, bias: Numbers) -> tuple[Numbers, Numbers]:
        """Return r + P h - h - g, [X, A], and the size of the terms of P h - h."""
        ahead, size = self._ahead(bias)
        return self.moves.reward @ weights + ahead - gain[:, None], size


def _ratio(above: Numbers, below: Numbers, where: Mask) -> Numbers:
    """Return above / below at `where`, and zero elsewhere."""
    found = above * 0
    found[where] = above[where] / below[where]
    return found


def in_decimals(work: Callable[[], Any]) -> Any:
    """Return the result of work with decimals."""
    with localcontext(prec=DIGITS):
        return work()
