"""Explicit constants of the paper's proofs, as functions of the sizes of a problem.

A `Setting` holds X states, A actions, H steps, N constraints, the failure probability delta and the
Slater gap b_gap (`slack`). tau (`temperature`) weighs the entropy. If a proof gives another
constant than the print, both are here, and the docstring says so.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from cmdplab.algorithms.equations import entropy_range
from cmdplab.algorithms.schedules import Setting
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError

ROUNDING = 1e-12  # of a logarithm, relative to its size where that is above 1


def setting_of(problem: CMDP, slack: float, delta: float = 0.1) -> Setting:
    """Return the sizes of a problem with delta and the Slater gap `slack`, as a checked setting."""
    sizes = (problem.states, problem.actions, problem.horizon, problem.constraints)
    return checked(Setting(*sizes, K=1, delta=delta, slack=slack))


def checked(setting: Setting) -> Setting:
    """Return the setting; refuse a Slater gap <= 0 and a delta outside (0, 1]."""
    if not setting.slack > 0.0:
        raise InputError(f"the Slater gap is {setting.slack:g}: the theory needs one above 0")
    if not 0.0 < setting.delta <= 1.0:
        raise InputError(f"delta is {setting.delta:g}, outside (0, 1]")
    return setting


def at_least(bound: float, logarithm: float, why: str) -> float:
    """Return the larger of a logarithm and its lower bound; refuse a logarithm below the bound.

    A logarithm that lies below only by rounding counts as the bound. `why` is the error's text.
    """
    if not logarithm >= bound - ROUNDING * max(1.0, abs(bound), abs(logarithm)):
        raise InputError(why)
    return max(bound, logarithm)


def entropy_horizon(setting: Setting) -> float:
    """Return H_ent = H (1 + ln A), which no regularised value exceeds if tau <= 1 (Appendix E)."""
    return setting.H * entropy_range(1.0, setting.log_actions)


def multiplier_bound(setting: Setting, temperature: float) -> float:
    """Return H (1 + tau ln A) / b_gap, a bound on the sum of the saddle point's multipliers.

    This is Lemma F.4. The lemma prints H_ent / b_gap and assumes tau <= 1, where the bound here is
    no larger. Its proof gives this bound for every tau > 0. Eq. 5 clips each multiplier at it. The
    bound is 0 for N = 0.
    """
    if setting.N == 0:
        return 0.0
    return setting.H * entropy_range(temperature, setting.log_actions) / checked(setting).slack


def violation_bound(setting: Setting, temperature: float) -> float:
    """Return tau H (1 + tau ln A) / b_gap, a bound on b^n - V[r^n] at the saddle point (Lemma F.4).

    V[r^n] is the value of utility n, b^n its threshold. The print has tau H_ent / b_gap, tau <= 1.
    """
    return temperature * multiplier_bound(setting, temperature)


class Constants(NamedTuple):
    """Constants C_1, C_2 and C_3 of Lemmas H.7 and H.8, and the horizon H."""

    first: float  # C_1 = 2 H_ent^2 (1 + H / b_gap)^2, of the squared action values
    second: float  # C_2 = 2 (1 + ln A)^2, of the squared logarithms of the policy
    third: float  # C_3 = (N / 2) (H + H_ent / b_gap)^2, of the squared dual gradients
    horizon: int

    def combined(self, temperature: float = 1.0) -> float:
        """Return C = C_1 + tau^2 C_2 + C_3 (Appendix H.4), where tau is the largest of a run.

        The later display of C (proof of Lemma H.9) drops the factors 2 of C_1 and C_2.
        """
        return self.first + temperature**2 * self.second + self.third

    def summed_over_steps(self, temperature: float = 1.0) -> float:
        """Return H (C_1 + tau^2 C_2) + C_3, which the proof of Lemma H.7 gives.

        The bound is summed with the weights w_h(x). It holds for each state and step, and the
        weights of all steps add up to H, not 1. The print drops this factor.
        """
        return self.horizon * (self.first + temperature**2 * self.second) + self.third


def constants(setting: Setting) -> Constants:
    """Return C_1, C_2 and C_3 as Lemmas H.7 and H.8 state them.

    Lemma H.8 prints C_3 / 2 in its bound, its proof has C_3. C_1 uses sum_n lambda^n <= H_ent /
    b_gap. The clip of Eq. 5 gives this bound for N = 1, and N times as much for N > 1.
    """
    s = checked(setting)
    H_ent = entropy_horizon(s)
    return Constants(
        first=2.0 * H_ent**2 * (1.0 + s.H / s.slack) ** 2,
        second=2.0 * entropy_range(1.0, s.log_actions) ** 2,
        third=0.5 * s.N * (s.H + H_ent / s.slack) ** 2,
        horizon=s.H,
    )


def first_potential_bound(setting: Setting) -> float:
    """Return 2 H ln A + N H_ent^2 / (2 b_gap^2) >= Phi^1 (proof of Lemma H.9, (i)).

    The bound is for the uniform policy and zero multipliers. Half the first term would suffice,
    because the divergence from the uniform policy is at most ln A.
    """
    s = checked(setting)
    pull = 0.0 if s.N == 0 else s.N * (entropy_horizon(s) / s.slack) ** 2 / 2.0
    return 2.0 * s.H * s.log_actions + pull


def log_power_of_two_less_two(states: int) -> float:
    """Return ln(2^X - 2) for X = `states`, without computing 2^X; minus infinity for X = 1."""
    if states < 1:
        raise InputError(f"there are {states} states, not at least one")
    if states == 1:
        return -math.inf
    return states * math.log(2.0) + math.log1p(-(2.0 ** (1 - states)))
