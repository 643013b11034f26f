"""The values of one policy over lists of successors: sweeps while they gain, else BiCGSTAB.

A sweep v -> r + gamma P v moves every value by between `low` and `high`. A shift by the middle
leaves residuals of gamma (high - low) / 2, so that only the differences of values have to converge,
and in a chain that mixes they do so quickly, whatever gamma is (MacQueen's bounds). Where they do
not, a step of BiCGSTAB costs as much as seven sweeps and pays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cmdplab.solvers.stationary import sweeps
from cmdplab.types import Array, Places

RESTARTS = 20  # of one linear solve
PATIENCE = 40  # steps without a gain of a tenth
TINY = 1e-300
TURN = 8  # sweeps that must halve what is left, or others take over


class System(NamedTuple):
    """value - discount P value = right, P of one policy by lists, for K right sides."""

    where: Places  # [X, S], the successors
    share: Array  # [X, S], their probabilities
    discount: float
    right: Array  # [X, K]

    def residual(self, value: Array) -> Array:
        """[X, K]: what is left of the right sides."""
        left, dots = np.empty_like(self.right), np.zeros((2, self.right.shape[1]))
        sweeps.operate(*self[:3], value, self.right, left, dots)
        return self.right - left


def solved(system: System, value: Array, spare: Array, limit: Array) -> None:
    """The values [X, K], in place, to residuals of limit [K]; spare [X, K] is overwritten."""
    if _swept(system, value, spare, limit):
        return
    for _ in range(RESTARTS):
        if _closer(system, value, limit):
            return
    _contract(system, value, limit)


def _swept(system: System, value: Array, spare: Array, limit: Array) -> bool:
    """Sweep for as long as that halves the spread; whether it came as close as wanted."""
    discount, one = system.discount, system.right.shape[1] == 1
    back: Callable[..., None] = sweeps.back_one if one else sweeps.back_four
    low, high, before, now, after = np.empty_like(limit), np.empty_like(limit), np.inf, value, spare
    done = gains = False
    unit = 0.5 * discount / limit
    for turn in range(100 * TURN):
        back(*system, now, after, low, high)
        now, after = after, now
        left = ((high - low) * unit).max()
        done = left <= 1.0
        if done:
            break
        if turn % TURN == TURN - 1:
            gains = left <= 0.5 * before
            before = left
            if not gains:
                break
    np.add(now, 0.5 * discount / (1.0 - discount) * (low + high), out=value)
    return bool(done)


def _closer(system: System, value: Array, limit: Array) -> bool:
    """BiCGSTAB from where it is, until it is done (true) or goes in circles (false)."""
    left, rows = system.residual(value), system[:3]
    image, other, dots = np.empty_like(left), np.empty_like(left), np.zeros((2, len(limit)))
    first, direction = left.copy(), left.copy()
    rho, most = np.sum(first * left, axis=0), np.abs(left).max(axis=0)
    best, since = np.inf, 0
    while not (most <= limit).all():
        worst = float(np.max(most / limit))
        since = 0 if worst < 0.9 * best else since + 1
        best = min(best, worst)
        if since > PATIENCE or not worst < np.inf:
            return False
        done = (most <= limit) | (rho == 0.0)
        sweeps.operate(*rows, direction, first, image, dots)
        alpha = np.where(done, 0.0, rho / (dots[0] + TINY))
        sweeps.half_step(left, image, alpha)
        sweeps.operate(*rows, left, left, other, dots)
        omega = np.where(done, 0.0, dots[0] / (dots[1] + TINY))
        sweeps.whole_step(value, left, first, direction, other, alpha, omega, dots)
        beta = np.where(done, 0.0, dots[0] / (rho + TINY) * alpha / (omega + TINY))
        rho, most = dots[0].copy(), np.where(done, most, dots[1])
        sweeps.turn(direction, left, image, beta, omega)
    return bool((np.abs(system.residual(value)).max(axis=0) <= 2.0 * limit).all())


def _contract(system: System, value: Array, limit: Array) -> None:
    if not np.isfinite(value).all():
        value[:] = 0.0
    best, since = np.inf, 0
    while since < 10 * PATIENCE:  # rounding alone keeps it from ending
        left = system.residual(value)
        value += left
        worst = float(np.max(np.abs(left).max(axis=0) / limit))
        since = 0 if worst < best else since + 1
        best = min(best, worst)
        if worst <= 1.0:
            return
