"""Conversions from mistakes to regret: their identity, and the regret of a Uniform-PAC bound.

gap^k is the gap of episode k, K is the number of episodes, and a mistake at epsilon (eps) is an
episode with a gap above epsilon. The strong regret is the sum of the positive gaps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.errors import InputError
from cmdplab.theory.constants import at_least
from cmdplab.types import Array, Indices


def mistake_counts(gaps: Array, epsilons: Array) -> Indices:
    """Return the number of gaps [K] that exceed each epsilon [E], as whole numbers [E] (Eq. 1)."""
    ordered = np.sort(gaps)
    return np.asarray(len(ordered) - np.searchsorted(ordered, epsilons, side="right"))


def regret_from_mistakes(gaps: Array) -> float:
    """Return the strong regret of gaps [K] as the integral of the number of mistakes over epsilon.

    sum_k max(gap^k, 0) = int_0^inf #{ k : gap^k > eps } d eps holds exactly, because the count is
    constant between two neighbours of the sorted gaps. Lemma F.2 rests on it.
    """
    ordered = np.sort(np.maximum(gaps, 0.0))
    heights = np.diff(ordered, prepend=0.0)
    return float(np.sum(heights * np.arange(len(ordered), 0, -1)))


class RegretInterval(NamedTuple):
    """A lower and an upper bound on the strong regret."""

    lower: float
    upper: float


def regret_from_grid(
    epsilons: Array, counts: npt.ArrayLike, episodes: int, largest: float
) -> RegretInterval:
    """Return bounds on the strong regret from the numbers of mistakes on a grid of epsilon.

    epsilons : [E], rising, > 0. counts : [E], mistakes at each epsilon.
    episodes : K, the largest possible count. largest : an upper bound on every gap, for example H.

    The count falls with epsilon. Between two grid points it lies between its values there, so that
    the interval is as narrow as the grid allows.
    """
    grid = np.asarray(epsilons, dtype=np.float64)
    known = np.asarray(counts, dtype=np.float64)
    if grid.ndim != 1 or not len(grid) or grid.shape != known.shape:
        raise InputError("the grid and its counts must be two lists of one length, not empty")
    if grid[0] <= 0.0 or np.any(np.diff(grid) <= 0.0):
        raise InputError("the grid of epsilon must rise and begin above 0")
    if np.any(np.diff(known) > 0.0) or known[0] > episodes or known[-1] < 0.0:
        raise InputError("the counts must fall with epsilon, from at most the number of episodes")
    widths = np.diff(grid, prepend=0.0)
    above = np.concatenate([[float(episodes)], known[:-1]])
    beyond = known[-1] * max(largest - grid[-1], 0.0)
    return RegretInterval(float(widths @ known), float(widths @ above + beyond))


@dataclass(frozen=True)
class UniformPac:
    """A Uniform-PAC bound: with probability 1 - delta, at most ceil(F(eps)) mistakes for every eps.

    F(eps) = Z_1 eps^-alpha ( ln(Z_2 / eps) )^beta   (Definition 2.2 in the form of Lemma F.2).

    The fields hold ln Z_1 and ln Z_2, because bounds of this kind exceed the range of floats.
    """

    log_scale: float  # ln Z_1
    exponent: float  # alpha > 0
    delta: float
    log_range: float = 1.0  # ln Z_2
    log_power: float = 0.0  # beta >= 0

    def __post_init__(self) -> None:
        if not self.exponent > 0.0 or not self.log_power >= 0.0:
            raise InputError("a Uniform-PAC bound needs an exponent > 0 and a log power >= 0")
        if not 0.0 < self.delta <= 1.0:
            raise InputError(f"delta is {self.delta:g}, outside (0, 1]")

    def log_mistakes(self, epsilon: float) -> float:
        """Return ln F(eps), the natural logarithm of the bound on the number of mistakes."""
        if not epsilon > 0.0:
            raise InputError(f"epsilon is {epsilon:g}, not a positive number")
        return self._log_mistakes(math.log(epsilon))

    def _log_mistakes(self, log_epsilon: float) -> float:
        value = self.log_scale - self.exponent * log_epsilon
        if self.log_power == 0.0:
            return value
        if self.log_range <= log_epsilon:
            raise InputError("epsilon must lie below the range Z_2 of the logarithm")
        return value + self.log_power * math.log(self.log_range - log_epsilon)


def pac_log_episodes(bound: UniformPac, epsilon: float) -> float:
    """Return ln F(eps): at most ceil(F(eps)) episodes exceed eps, with probability 1 - delta."""
    return bound.log_mistakes(epsilon)


def log_settled_level(bound: UniformPac, episodes: float) -> float:
    """Return ln of the level that, with probability 1 - delta, at most K = `episodes` exceed.

    This is Theorem 2.3 (1) for an infinite run. The theorem does not say which episodes these are.

            z = (K / Z_1)^(1/alpha),    level = ln(Z_2 z)^(beta/alpha) / z

    If beta > 0, the formula needs K >= Z_1 (exp(1) / Z_2)^alpha, as in Lemma F.2. The level falls
    to 0 as K grows. Hence limsup gap <= 0 and limsup violation <= 0. The printed theorem claims lim
    = 0, which fails for the violation of a slack constraint (docs/errata.md).
    """
    if not episodes >= 1:
        raise InputError("a level needs at least one episode")
    alpha, beta = bound.exponent, bound.log_power
    log_z = (math.log(episodes) - bound.log_scale) / alpha
    if beta == 0.0:
        return -log_z
    why = "the range Z_2 must be at least e (Z_1 / K)^(1/alpha)"
    log_range = at_least(1.0 - log_z, bound.log_range, why)
    return beta / alpha * math.log(max(log_range + log_z, 1.0)) - log_z


def log_regret(bound: UniformPac, episodes: float, largest: float) -> float:
    """Return ln of a bound on the strong regret of K = `episodes` (Theorem 2.3 (3) by Lemma F.2).

    u = `largest` >= every gap,  z = (K / Z_1)^(1/alpha),  level = ln(Z_2 z)^(beta/alpha) / z,
    regret <= K level + Z_1 (ln(Z_2 / level))^beta int_level^u eps^-alpha d eps + u,  and <= K u.
    The bound is of order Z_1^(1/alpha) K^(1 - 1/alpha). The last u pays for the ceiling of the
    count, which the proof drops. The lemma needs alpha >= 1. Theorem 2.3 allows alpha > 0, but for
    alpha < 1 the integral converges, and no bound that falls with K can hold. If beta > 0, the
    lemma also needs Z_2 >= max(u, e Z_1^(1/alpha)).
    """
    alpha, beta = bound.exponent, bound.log_power
    if alpha < 1.0:
        raise InputError(f"the exponent is {alpha:g}: the conversion to regret needs at least 1")
    if not episodes >= 1 or not largest > 0.0:
        raise InputError("the conversion needs at least one episode and a largest gap above 0")
    log_K, log_u = math.log(episodes), math.log(largest)
    log_range = bound.log_range
    if beta > 0.0:
        why = "the range Z_2 must be at least the largest gap, e, and e Z_1^(1/alpha)"
        log_range = at_least(max(log_u, 1.0, 1.0 + bound.log_scale / alpha), log_range, why)
    log_e = log_settled_level(bound, episodes)
    trivial = log_K + log_u
    if log_e >= log_u:
        return trivial
    logs = beta * math.log(log_range - log_e) if beta > 0.0 else 0.0
    tail = bound.log_scale + logs + _log_integral(alpha, log_e, log_u)
    return min(trivial, float(np.logaddexp.reduce([log_K + log_e, tail, log_u])))


def _log_integral(alpha: float, log_low: float, log_high: float) -> float:
    width = log_high - log_low
    if alpha == 1.0:
        return math.log(width)
    # low^(1 - alpha) (1 - exp(-(alpha - 1) width)) / (alpha - 1)
    inside = -math.expm1(-(alpha - 1.0) * width)
    return (1.0 - alpha) * log_low + math.log(inside / (alpha - 1.0))
