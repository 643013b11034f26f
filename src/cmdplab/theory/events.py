"""Failure events of Appendix H.1 and nice episodes, from counts, the true kernel and delta.

F^P, F^N and F^L1 are events about the estimated kernel, the numbers of visits and the L1 distance
of the kernels. Each has an array of margins, whose signs decide. n counts visits of (h, x, a), Pbar
is the estimate of the kernel P, w^k is the occupancy of the policy of episode k, eps is `epsilon`,
an accuracy, and `setting` has X, A, H and delta (`theory.constants`). w_min(eps) is
`smallest_weight`. llnp(n) is `iterated_log`, "^" is min, and "v" is max. Counts and occupancies may
have leading axes, for many episodes at once; the kernel has none.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.confidence import uniform_pac
from cmdplab.algorithms.equations import bonus, confidence_radius, iterated_log
from cmdplab.algorithms.schedules import Setting
from cmdplab.errors import InputError
from cmdplab.theory.constants import entropy_horizon, log_power_of_two_less_two
from cmdplab.types import Array

KERNEL_SHARE = 1 / 2  # of delta: P(F^P) <= delta / 2
VISITS_SHARE = 1 / 4  # of delta / X: P(F^N) <= delta / (4X)
L1_SHARE = 1 / 4  # of delta / X: P(F^L1) <= delta / (4X)


class Shares(NamedTuple):
    """Largest probabilities that the paper allows to F^P, F^N and F^L1."""

    kernel: float
    visits: float
    l1: float


def shares(states: int, delta: float) -> Shares:
    """Return delta / 2, delta / (4X), delta / (4X), as Lemma H.1 prints them."""
    return Shares(KERNEL_SHARE * delta, VISITS_SHARE * delta / states, L1_SHARE * delta / states)


def union_shares(delta: float) -> Shares:
    """Return delta / 2, delta / 4, delta / 4: the shares that a union bound over (h, x, a) gives.

    F^N has ln(4XAH / delta) and F^L1 has ln(12XAH (2^X - 2) / delta). Each triple then fails with
    probability delta / (4XAH), and all XAH triples together with delta / 4. Lemma H.1 prints delta
    / (4X). Its last claim, P(F) <= delta for the union F, holds in either case.
    """
    return Shares(KERNEL_SHARE * delta, VISITS_SHARE * delta, L1_SHARE * delta)


class Failures(NamedTuple):
    """One flag for each event: True if it has happened."""

    kernel: bool  # F^P
    visits: bool  # F^N
    l1: bool  # F^L1

    @property
    def any(self) -> bool:
        """Return True if any of the events has happened; the complement is the good event."""
        return self.kernel or self.visits or self.l1


def failures(counts: Array, kernel: Array, occupancies: Array, delta: float) -> Failures:
    """Return the events that the counts [H, X, A, X] of an episode show (Appendix H.1).

    kernel [H, X, A, X] is the true one. occupancies [H, X, A] is the sum of w^{pi^j} over the
    counted episodes j. The events of the paper say "in some episode k": call this function after
    each episode.
    """
    return Failures(*happened(counts, kernel, occupancies, delta).tolist())


def happened(counts: Array, kernel: Array, occupancies: Array, delta: float) -> Array:
    """Return booleans [..., 3] in the order of `Failures`, for counts [..., H, X, A, X].

    kernel [H, X, A, X] is the true one, occupancies [..., H, X, A] is their sum over the episodes.
    """
    columns = (
        np.any(kernel_margin(counts, kernel, delta) <= 0.0, axis=(-4, -3, -2, -1)),
        np.any(visits_margin(counts.sum(axis=-1), occupancies, delta) < 0.0, axis=(-3, -2, -1)),
        np.any(l1_margin(counts, kernel, delta) <= 0.0, axis=(-3, -2, -1)),
    )
    return np.stack(columns, axis=-1)


def kernel_margin(counts: Array, kernel: Array, delta: float) -> Array:
    """Return beta(x, a, y) - |Pbar(y) - P(y)|, [..., H, X, A, X]; F^P: one margin is <= 0.

    beta(x, a, y) = 2 sqrt(Pbar(y)) phi + 5 phi^2,
    phi = 1 ^ sqrt( (2 / (n v 1)) (llnp(2n) + ln(48 X^2 A H / delta)) ).
    The cap on phi, which Section 3 does not have, changes no sign: with phi >= 1 the width is at
    least 5.
    """
    setting = _setting(counts.shape[-4:-1], delta)
    visits = counts.sum(axis=-1, keepdims=True)
    estimate = counts / np.maximum(visits, 1.0)
    b = uniform_pac(setting)  # its tail is that of all y together
    phi = _radius(visits, b.iterated, b.log, 1.0)
    width = _bonus(phi, np.sqrt(estimate), 0.0, b.root, b.dev, b.flat, b.tail / setting.X)
    return np.asarray(width - np.abs(estimate - kernel))


def visits_margin(visits: Array, occupancies: Array, delta: float) -> Array:
    """Return n - (1/2) sum_j w^{pi^j} + ln(4XAH / delta), [..., H, X, A]; F^N: one margin is < 0.

    visits and occupancies are n and the sum over the same episodes j, [..., H, X, A]. The print
    sums over j < k beside n^k, which counts episode k too. The event here contains that of the
    print.
    """
    return visits - 0.5 * occupancies + _setting(visits.shape[-3:], delta).visits_log


def l1_margin(counts: Array, kernel: Array, delta: float) -> Array:
    """Return a width less the L1 distance |Pbar - P|_1, [..., H, X, A]; F^L1: one margin is <= 0.

    width = sqrt( (4 / (n v 1)) (2 llnp(n) + ln(12 X A H (2^X - 2) / delta)) ), for counts [..., H,
    X, A, X]. For X = 1 there is no event: the margin is infinite.
    """
    *_, H, X, A, _ = counts.shape
    if X == 1:
        return np.full(counts.shape[:-1], np.inf)
    visits = counts.sum(axis=-1)
    seen = np.maximum(visits, 1.0)
    log = math.log(12.0 * X * A * H / delta) + log_power_of_two_less_two(X)
    width = np.sqrt(4.0 / seen * (2.0 * _iterated_log(visits) + log))
    distance = np.abs(counts / seen[..., None] - kernel).sum(axis=-1)
    return np.asarray(width - distance)


def _setting(shape: tuple[int, ...], delta: float) -> Setting:
    """Return the sizes for formulas that use neither the number of episodes nor a Slater gap."""
    H, X, A = shape
    return Setting(X, A, H, N=0, K=1, delta=delta, slack=math.inf)


# The algorithm's own formulas, for arrays; the last is arithmetic alone, and takes them as it is.
_iterated_log = np.vectorize(iterated_log, otypes=[float])
_radius = np.vectorize(confidence_radius, otypes=[float])
_bonus: Any = bonus


def smallest_weight(setting: Setting, epsilon: float) -> float:
    """Return w_min(eps) = eps / (H H_ent X A), the occupancy of a likely pair (Definition H.3)."""
    if not epsilon > 0.0:
        raise InputError(f"epsilon is {epsilon:g}, not a positive number")
    return epsilon / (setting.H * entropy_horizon(setting) * setting.X * setting.A)


def likely_pairs(occupancy: Array, setting: Setting, epsilon: float) -> Array:
    """Return booleans [H, X, A]: True for occupancies >= w_min(eps), the sets of Definition H.3."""
    return np.asarray(occupancy >= smallest_weight(setting, epsilon))


def is_nice(
    occupancy: Array, visits: Array, occupancies: Array, setting: Setting, epsilon: float
) -> bool:
    """Return True if each (h, x, a) with w^k > w_min(eps) has n^k >= (1/4) sum_{i<k} w^i.

    This is Definition H.3: likely pairs were visited about as often as expected. All arrays are [H,
    X, A]: occupancy is w^k, visits is n^k, occupancies is the sum of w^i over earlier episodes.
    """
    unlikely = occupancy <= smallest_weight(setting, epsilon)
    return bool(np.all(unlikely | (visits >= 0.25 * occupancies)))


def rough_episodes_printed(setting: Setting, epsilon: float) -> float:
    """Return (6 X^2 A H^3 / eps) ln(4 H X A / delta), the bound of Lemma H.4 as printed.

    On the good event at most this many episodes are not nice. The lemma comes from another paper,
    with another w_min. With the w_min of Definition H.3 its usual proof gives `rough_episodes`,
    which is larger for A >= 2.
    """
    if not epsilon > 0.0:
        raise InputError(f"epsilon is {epsilon:g}, not a positive number")
    X, A, H = setting.X, setting.A, setting.H
    return 6.0 * X**2 * A * H**3 / epsilon * setting.visits_log


def rough_episodes(setting: Setting, epsilon: float) -> float:
    """Return X A H ceil(4 L / w_min(eps)), L = ln(4 X A H / delta): a bound on episodes not nice.

    In such an episode some (h, x, a) has w^k > w_min and n < W / 4, where W = sum_{i<k} w^i. On the
    good event n >= W / 2 - L, so W < 4 L. Each such episode adds more than w_min to W. The bound is
    about 4 X^2 A^2 H^3 (1 + ln A) L / eps, (2/3) A (1 + ln A) times that of Lemma H.4.
    """
    X, A, H = setting.X, setting.A, setting.H
    return float(
        X * A * H * math.ceil(4.0 * setting.visits_log / smallest_weight(setting, epsilon))
    )
