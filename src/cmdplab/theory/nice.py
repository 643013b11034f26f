"""Nice episodes: those whose likely pairs have been visited about as often as expected."""

from __future__ import annotations

import math

import numpy as np

from cmdplab.algorithms.schedules import Setting
from cmdplab.errors import InputError
from cmdplab.theory.constants import entropy_horizon
from cmdplab.types import Array


def smallest_weight(setting: Setting, epsilon: float) -> float:
    """Definition H.3: w_min(eps) = eps / (H H_ent X A)."""
    if not epsilon > 0.0:
        raise InputError(f"epsilon is {epsilon:g}, not a positive number")
    return epsilon / (setting.H * entropy_horizon(setting) * setting.X * setting.A)


def likely_pairs(occupancy: Array, setting: Setting, epsilon: float) -> Array:
    """[H, X, A], booleans: the pairs with w_h^k(x, a) >= w_min(eps)   (Definition H.3, U_h^k)."""
    return np.asarray(occupancy >= smallest_weight(setting, epsilon))


def is_nice(
    occupancy: Array, visits: Array, occupancies: Array, setting: Setting, epsilon: float
) -> bool:
    """Definition H.3: for every (h, x, a), w^k <= w_min(eps) or n^k >= (1/4) sum_{i<k} w^i.

    occupancy : w^k of this episode's policy. visits : n. occupancies : the sum of w^i over the
    episodes before. All [H, X, A].
    """
    unlikely = occupancy <= smallest_weight(setting, epsilon)
    return bool(np.all(unlikely | (visits >= 0.25 * occupancies)))


def rough_episodes_printed(setting: Setting, epsilon: float) -> float:
    """Lemma H.4: on the good event at most (6 X^2 A H^3 / eps) ln(4 H X A / delta) are not nice.

    As printed. The lemma comes from another paper, with another w_min; with the w_min of
    Definition H.3 its usual proof gives `rough_episodes`, which is larger for A >= 2.
    """
    if not epsilon > 0.0:
        raise InputError(f"epsilon is {epsilon:g}, not a positive number")
    X, A, H = setting.X, setting.A, setting.H
    return 6.0 * X**2 * A * H**3 / epsilon * setting.visits_log


def rough_episodes(setting: Setting, epsilon: float) -> float:
    """At most X A H ceil(4 L / w_min(eps)) episodes are not nice, L = ln(4 X A H / delta).

    In such an episode some (h, x, a) has w^k > w_min and n < W / 4, where W = sum_{i<k} w^i. On the
    good event n >= W / 2 - L, so W < 4 L; and each such episode adds more than w_min to W. This is
    about 4 X^2 A^2 H^3 (1 + ln A) L / eps: Lemma H.4 with (2/3) A (1 + ln A) times its bound.
    """
    X, A, H = setting.X, setting.A, setting.H
    return float(
        X * A * H * math.ceil(4.0 * setting.visits_log / smallest_weight(setting, epsilon))
    )
