"""Theorem 4.1 and Corollary 4.2: exponents, k*, and the orders of the bounds.

Every magnitude is a natural logarithm, since the numbers themselves leave the range of floats.
An order is the formula inside the O~: no hidden constant, no polylogarithm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.primal_dual import PrimalDual
from cmdplab.algorithms.schedules import Power, Setting
from cmdplab.algorithms.uopt_rpgpd import UOPT_RPGPD
from cmdplab.errors import InputError
from cmdplab.theory.constants import checked, entropy_horizon


class Exponents(NamedTuple):
    """eta_k = (k + 3)^-step and tau_k = (k + 3)^-temperature."""

    step: float  # alpha_eta
    temperature: float  # alpha_tau


EXPERIMENT = Exponents(0.53, 0.4)  # Section 5
COROLLARY = Exponents(11 / 14, 1 / 7)  # Corollary 4.2


def outside_theorem(exponents: Exponents) -> str:
    """Empty inside the region of Theorem 4.1; else what is outside, as one sentence.

    0 < alpha_tau < 0.5 < alpha_eta < 1 and alpha_eta + alpha_tau < 1.
    """
    return UOPT_RPGPD.with_exponents(*exponents).outside_theorem()


def exponents_of(row: PrimalDual) -> Exponents:
    """The exponents that an algorithm runs with; one outside Theorem 4.1 is refused."""
    why = row.outside_theorem()
    if why:
        raise InputError(f"{row.name}: {why}")
    assert isinstance(row.policy_step, Power)
    assert isinstance(row.temperature, Power)
    return Exponents(row.policy_step.exponent, row.temperature.exponent)


class MistakeExponents(NamedTuple):
    """Powers of 1 / epsilon in the two terms of Eq. 6 that depend on it."""

    optimisation: float  # 2 / (alpha_eta - 0.5), term (i)
    bias: float  # 1 / alpha_tau, term (ii)

    @property
    def larger(self) -> float:
        """The power that counts as epsilon falls."""
        return max(self)


def mistake_exponents(exponents: Exponents) -> MistakeExponents:
    """Theorem 4.1, Eq. 6: mistakes grow like eps^(-2 / (alpha_eta - 0.5)) + eps^(-1 / alpha_tau)"""
    alpha_eta, alpha_tau = _inside(exponents)
    return MistakeExponents(2.0 / (alpha_eta - 0.5), 1.0 / alpha_tau)


class RegretExponents(NamedTuple):
    """Powers of K in the two terms of the regret that grow with it."""

    optimisation: float  # 1 - (alpha_eta - 0.5) / 2, term (i)
    bias: float  # 1 - alpha_tau, term (ii)


def regret_exponents(exponents: Exponents) -> RegretExponents:
    """Theorem 2.3 (3) on each term of Eq. 6: eps^-a becomes K^(1 - 1/a)."""
    return RegretExponents(*(1.0 - 1.0 / power for power in mistake_exponents(exponents)))


def regret_exponent(exponents: Exponents) -> float:
    """Theorems 4.1 and 2.3: regret of order K^(1 - min((alpha_eta - 0.5) / 2, alpha_tau))."""
    return max(regret_exponents(exponents))


def log_burn_in(exponents: Exponents) -> float:
    """ln k*, k* = ( (24 / c) ln(12 / c) )^(1 / c), c = 1 - alpha_eta - alpha_tau   (Lemma H.9)."""
    c = 1.0 - sum(_inside(exponents))
    return math.log(24.0 / c * math.log(12.0 / c)) / c


def log10_burn_in(exponents: Exponents) -> float:
    """log10 k*: about 46 for the experiment's exponents and 45 for the corollary's."""
    return log_burn_in(exponents) / math.log(10.0)


class LogTerms(NamedTuple):
    """Natural logarithms of three summands."""

    optimisation: float  # (i)
    bias: float  # (ii)
    burn_in: float  # (iii)

    @property
    def total(self) -> float:
        """The logarithm of the sum."""
        return float(np.logaddexp.reduce(self))


def log_mistakes_order(setting: Setting, exponents: Exponents, epsilon: float) -> LogTerms:
    """Theorem 4.1, Eq. 6: the order of the number of episodes worse than epsilon.

    (i)   ( (1 + N) X A^(1/2) H^7 / (b_gap eps)^2 )^(1 / (alpha_eta - 0.5))
    (ii)  ( H / (min(b_gap, 1) eps) )^(1 / alpha_tau)
    (iii) k*

    (ii) is printed with b_gap for min(b_gap, 1), which the proof has: a large Slater gap does not
    lower the bias of the objective. A gap beyond H counts as H, as the proof assumes; so for N = 0.
    """
    alpha_eta, alpha_tau = _inside(exponents)
    eps = _log_positive("epsilon", epsilon)
    gap = _log_gap(setting)
    first = _log_size(setting) - 2.0 * (gap + eps)
    second = math.log(setting.H) - min(gap, 0.0) - eps
    burn_in = log_burn_in(exponents)
    return LogTerms(first / (alpha_eta - 0.5), second / alpha_tau, burn_in)


def log_regret_order(setting: Setting, exponents: Exponents, episodes: float) -> LogTerms:
    """Theorem 2.3 (3) applied to each term of Eq. 6: Z eps^-a becomes Z^(1/a) K^(1 - 1/a).

    (i)   ( (1 + N) X A^(1/2) H^7 )^(1/2) / b_gap  K^(1 - (alpha_eta - 0.5) / 2)
    (ii)  H / min(b_gap, 1)  K^(1 - alpha_tau)
    (iii) H k*, in which every episode may be as bad as can be

    With Corollary 4.2's exponents, (i) is A^(1/4) H^(7/2) K^(6/7); the corollary rounds it up to
    A^(2/7) H^4.
    """
    alpha_eta, alpha_tau = _inside(exponents)
    log_K = _log_positive("the number of episodes", episodes)
    gap = _log_gap(setting)
    first = 0.5 * _log_size(setting) - gap + (1.0 - (alpha_eta - 0.5) / 2.0) * log_K
    second = math.log(setting.H) - min(gap, 0.0) + (1.0 - alpha_tau) * log_K
    return LogTerms(first, second, math.log(setting.H) + log_burn_in(exponents))


def log_potential_order(setting: Setting, exponents: Exponents, epsilon: float) -> float:
    """Lemma H.9: Phi^{k+1} <= epsilon on all but this order of episodes, as a logarithm.

    ( (1 + N) X A^(1/2) H^4 / (b_gap^2 eps) )^(1 / (alpha_eta - 0.5)) + k*: the end of the proof.
    The lemma itself prints the power 1 / (0.5 - alpha_tau), which the proof does not give.
    """
    alpha_eta, _ = _inside(exponents)
    size = _log_size(setting) - 3.0 * math.log(setting.H) - 2.0 * _log_gap(setting)
    first = (size - _log_positive("epsilon", epsilon)) / (alpha_eta - 0.5)
    return float(np.logaddexp(first, log_burn_in(exponents)))


def log_optimism_order(setting: Setting, epsilon: float) -> float:
    """Lemma H.6: V~ - V <= epsilon on all but X^2 A H^4 / eps^2 + X A H^3 / eps episodes.

    The logarithm of that order. Lemma H.4, which the second term comes from, has X^2 there.
    """
    X, A, H = (math.log(size) for size in (setting.X, setting.A, setting.H))
    eps = _log_positive("epsilon", epsilon)
    first = 2.0 * X + A + 4.0 * H - 2.0 * eps
    return float(np.logaddexp(first, X + A + 3.0 * H - eps))


def log_polylog_episodes(
    log_scale: float, alpha: float, beta: float, epsilon: float, log_range: float = 0.0
) -> float:
    """Lemma F.11: ln k* with Z_1 k^-alpha (ln(Z_2 k))^beta <= epsilon for every k >= k*.

    k* = (e / (e - 1) ln(1 / a) / a)^(beta / alpha) / Z_2, with
    a = (alpha / beta) (epsilon / Z_1)^(1 / beta) Z_2^(-alpha / beta);
    1 / Z_2 for a >= 1 / e, where it holds from k = 1 / Z_2 on. The fields are ln Z_1 and ln Z_2.
    The k* that the proof prints is too early (docs/errata.md); the order that the lemma states,
    (Z_1 / epsilon)^(1 / alpha) up to logarithms, is that of this one.
    """
    if not alpha > 0.0 or not beta > 0.0:
        raise InputError(f"the powers are {alpha:g} and {beta:g}, not both above 0")
    power = beta / alpha
    log_a = (_log_positive("epsilon", epsilon) - log_scale) / beta - log_range / power
    log_a -= math.log(power)
    if log_a >= -1.0:
        return -log_range
    return power * (1.0 - math.log(math.e - 1.0) + math.log(-log_a) - log_a) - log_range


def log_bias_episodes(setting: Setting, exponents: Exponents, epsilon: float) -> float:
    """ln k with k = ( H_ent / (eps min(b_gap, 1)) )^(1 / alpha_tau)   (proof of Theorem 4.1).

    From there on tau_k H_ent <= eps and tau_k H_ent / b_gap <= eps: the saddle point's own bias.
    """
    eps = _log_positive("epsilon", epsilon)
    gap = min(_log_gap(setting), 0.0)
    return (math.log(entropy_horizon(setting)) - eps - gap) / _inside(exponents).temperature


def _inside(exponents: Exponents) -> Exponents:
    why = outside_theorem(exponents)
    if why:
        raise InputError(why)
    return exponents


def _log_positive(what: str, value: float) -> float:
    if not value > 0.0:
        raise InputError(f"{what} is {value:g}, not a positive number")
    return math.log(value)


def _log_gap(setting: Setting) -> float:
    return math.log(min(checked(setting).slack, setting.H))


def _log_size(s: Setting) -> float:
    """ln( (1 + N) X A^(1/2) H^7 )."""
    return math.log1p(s.N) + math.log(s.X) + 0.5 * math.log(s.A) + 7.0 * math.log(s.H)
