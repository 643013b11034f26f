"""Schedules: episode numbers k = 1, 2, ... to step sizes and temperatures, as arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cmdplab.errors import InputError
from cmdplab.settings import UNIT
from cmdplab.types import Array


class Setting(NamedTuple):
    """Constants that a formula may read before the first episode, in the paper's symbols."""

    X: int  # states
    A: int  # actions
    H: int  # horizon
    N: int  # constraints
    K: int  # the number of episodes an algorithm is tuned for; UOpt-RPGPD never reads it
    delta: float  # failure probability
    slack: float  # Slater gap: max over policies of the smallest slack; infinite for N = 0
    baseline_slack: float = math.inf  # the smallest slack of the safe policy, if there is one
    epsilon: float = 0.1  # accuracy, if the algorithm needs one
    bonus_scale: float = 1.0

    @property
    def log_actions(self) -> float:
        """Return ln A."""
        return math.log(self.A)

    @property
    def union_log(self) -> float:
        """Return ln(4 X^2 A H K / delta): two sides, every (h, x, a, y) and K counts."""
        return math.log(4.0 * self.X**2 * self.A * self.H * self.K / self.delta)

    @property
    def uniform_log(self) -> float:
        """Return ln(48 X^2 A H / delta): every (h, x, a, y) and all counts at once   (Eq. 3)."""
        return math.log(48.0 * self.X**2 * self.A * self.H / self.delta)

    @property
    def visits_log(self) -> float:
        """Return ln(4 X A H / delta): every (h, x, a)   (event F^N of Appendix H.1)."""
        return math.log(4.0 * self.X * self.A * self.H / self.delta)


Schedule = Callable[[Array, Setting], Array]  # (k [E], setting) -> [E]


@dataclass(frozen=True)
class Power:
    """A schedule scale (k + shift)^-exponent, exponent in (0, 1]. The paper's box has shift = 3."""

    exponent: float
    shift: float = 3.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        UNIT.check("the exponent alpha", self.exponent)

    def __call__(self, k: Array, setting: Setting) -> Array:
        return self.scale * (k + self.shift) ** -self.exponent


@dataclass(frozen=True)
class Constant:
    """A schedule with one value for every episode."""

    value: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.value < math.inf:
            raise InputError(f"a schedule is {self.value:g}, not a finite number >= 0")

    def __call__(self, k: Array, setting: Setting) -> Array:
        return np.full(k.shape, self.value)
