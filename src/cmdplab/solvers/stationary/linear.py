"""The values of one policy over lists of successors: sweeps while they gain, else BiCGSTAB.

A sweep v -> r + gamma P v moves every value by between `low` and `high`. A shift by the middle
leaves residuals of gamma (high - low) / 2, so that only the differences of values have to converge,
and in a chain that mixes they do so quickly, whatever gamma is (MacQueen's bounds). Where they do
not, a step of BiCGSTAB costs as much as seven sweeps and pays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cmdplab.solvers.stationary import sweeps
from cmdplab.types import Array, Places

RESTARTS = 20  # of one linear solve
PATIENCE = 40  # steps without a gain of a tenth
TINY = 1e-300
TURN = 8  # sweeps that must halve what is left, or others take over


def solved(
    where: Places,
    share: Array,
    discount: float,
    right: Array,
    value: Array,
    spare: Array,
    limit: Array,
) -> None:
    """value - gamma P value = right for K right sides [X, K], in place, to residuals of limit [K].

    spare : [X, K], overwritten.
    """
    if _swept(where, share, discount, right, value, spare, limit):
        return
    for _ in range(RESTARTS):
        if _closer(where, share, discount, right, value, limit):
            return
    _contract(where, share, discount, right, value, limit)


def _swept(
    where: Places,
    share: Array,
    discount: float,
    right: Array,
    value: Array,
    spare: Array,
    limit: Array,
) -> bool:
    """Sweep for as long as that halves the spread; whether it came as close as wanted."""
    back: Callable[..., None] = sweeps.back_one if right.shape[1] == 1 else sweeps.back_four
    low, high, before, now, after = np.empty_like(limit), np.empty_like(limit), np.inf, value, spare
    done = gains = False
    unit = 0.5 * discount / limit
    for turn in range(100 * TURN):
        back(where, share, discount, right, now, after, low, high)
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


def _residual(where: Places, share: Array, discount: float, right: Array, value: Array) -> Array:
    left = np.empty_like(right)
    sweeps.operate(where, share, discount, value, right, left, np.zeros((2, right.shape[1])))
    return right - left


def _closer(
    where: Places, share: Array, discount: float, right: Array, value: Array, limit: Array
) -> bool:
    """BiCGSTAB from where it is, until it is done (true) or goes in circles (false)."""
    left = _residual(where, share, discount, right, value)
    image, other, dots = np.empty_like(right), np.empty_like(right), np.zeros((2, len(limit)))
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
        sweeps.operate(where, share, discount, direction, first, image, dots)
        alpha = np.where(done, 0.0, rho / (dots[0] + TINY))
        sweeps.half_step(left, image, alpha)
        sweeps.operate(where, share, discount, left, left, other, dots)
        omega = np.where(done, 0.0, dots[0] / (dots[1] + TINY))
        sweeps.whole_step(value, left, first, direction, other, alpha, omega, dots)
        beta = np.where(done, 0.0, dots[0] / (rho + TINY) * alpha / (omega + TINY))
        rho, most = dots[0].copy(), np.where(done, most, dots[1])
        sweeps.turn(direction, left, image, beta, omega)
    return bool(
        (np.abs(_residual(where, share, discount, right, value)).max(axis=0) <= 2.0 * limit).all()
    )


def _contract(
    where: Places, share: Array, discount: float, right: Array, value: Array, limit: Array
) -> None:
    if not np.isfinite(value).all():
        value[:] = 0.0
    best, since = np.inf, 0
    while since < 10 * PATIENCE:  # rounding alone keeps it from ending
        left = _residual(where, share, discount, right, value)
        value += left
        worst = float(np.max(np.abs(left).max(axis=0) / limit))
        since = 0 if worst < best else since + 1
        best = min(best, worst)
        if worst <= 1.0:
            return
