"""Orders of the bounds of Theorem 4.1 and Corollary 4.2, with their exponents and k*.

A `Setting` holds the sizes X, A, H and N and the Slater gap b_gap of a problem (`constants`).
alpha_eta and alpha_tau are `Exponents`. K counts episodes, and bounds hold from episode k* on. A
mistake is an episode whose gap, or whose violation, exceeds epsilon (eps). An order is the formula
inside the O~, without hidden constants and polylogarithms. Magnitudes are logarithms, because they
exceed the range of floats.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.algorithms.schedules import Power, Setting
from cmdplab.algorithms.uopt_rpgpd import UOPT_RPGPD
from cmdplab.errors import InputError
from cmdplab.theory.constants import checked, entropy_horizon


class Exponents(NamedTuple):
    """Exponents of the step size eta_k = (k + 3)^-step and of tau_k = (k + 3)^-temperature."""

    step: float  # alpha_eta
    temperature: float  # alpha_tau


EXPERIMENT = Exponents(0.53, 0.4)  # Section 5
COROLLARY = Exponents(11 / 14, 1 / 7)  # Corollary 4.2


def outside_theorem(exponents: Exponents) -> str:
    """Return a sentence on why Theorem 4.1 excludes the exponents, or "" if it allows them."""
    return UOPT_RPGPD.with_exponents(*exponents).outside_theorem()


def exponents_of(row: PrimalDual) -> Exponents:
    """Return alpha_eta and alpha_tau of an algorithm; refuse an algorithm outside Theorem 4.1."""
    why = row.outside_theorem()
    if why:
        raise InputError(f"{row.name}: {why}")
    assert isinstance(row.policy_step, Power)
    assert isinstance(row.temperature, Power)
    return Exponents(row.policy_step.exponent, row.temperature.exponent)


class MistakeExponents(NamedTuple):
    """Powers of 1 / epsilon in the terms (i) and (ii) of the number of mistakes (Eq. 6)."""

    optimisation: float  # 2 / (alpha_eta - 0.5), term (i)
    bias: float  # 1 / alpha_tau, term (ii)

    @property
    def larger(self) -> float:
        """Return the power that dominates as epsilon falls."""
        return max(self)


def mistake_exponents(exponents: Exponents) -> MistakeExponents:
    """Return the powers of 1 / epsilon in the number of mistakes (Eq. 6 of Theorem 4.1)."""
    alpha_eta, alpha_tau = _inside(exponents)
    return MistakeExponents(2.0 / (alpha_eta - 0.5), 1.0 / alpha_tau)


class RegretExponents(NamedTuple):
    """Powers of K in the terms (i) and (ii) of the regret of K episodes."""

    optimisation: float  # 1 - (alpha_eta - 0.5) / 2, term (i)
    bias: float  # 1 - alpha_tau, term (ii)


def regret_exponents(exponents: Exponents) -> RegretExponents:
    """Return the powers of K in the regret: a term eps^-a of Eq. 6 becomes K^(1 - 1/a)."""
    return RegretExponents(*(1.0 - 1.0 / power for power in mistake_exponents(exponents)))


def regret_exponent(exponents: Exponents) -> float:
    """Return 1 - min((alpha_eta - 0.5) / 2, alpha_tau), the power of K in the strong regret."""
    return max(regret_exponents(exponents))


def log_burn_in(exponents: Exponents) -> float:
    """Return ln k*, k* = ((24 / c) ln(12 / c))^(1 / c), c = 1 - alpha_eta - alpha_tau (H.9)."""
    c = 1.0 - sum(_inside(exponents))
    return math.log(24.0 / c * math.log(12.0 / c)) / c


def log10_burn_in(exponents: Exponents) -> float:
    """Return log10 k*: about 46 for the experiment's exponents and 45 for the corollary's."""
    return log_burn_in(exponents) / math.log(10.0)


class LogTerms(NamedTuple):
    """Natural logarithms of the terms (i), (ii) and (iii) of a bound."""

    optimisation: float  # (i)
    bias: float  # (ii)
    burn_in: float  # (iii)

    @property
    def total(self) -> float:
        """Return the natural logarithm of the sum of the three terms."""
        return float(np.logaddexp.reduce(self))


def log_mistakes_order(setting: Setting, exponents: Exponents, epsilon: float) -> LogTerms:
    """Return the order of the number of mistakes at epsilon, as logarithms (Theorem 4.1, Eq. 6).

    (i)   ( (1 + N) X A^(1/2) H^7 / (b_gap eps)^2 )^(1 / (alpha_eta - 0.5))
    (ii)  ( H / (min(b_gap, 1) eps) )^(1 / alpha_tau)
    (iii) k*
    The print has b_gap in (ii), the proof has min(b_gap, 1): a large Slater gap does not lower the
    bias of the objective. A Slater gap above H counts as H, as in the proof, and so does the
    infinite one of N = 0.
    """
    alpha_eta, alpha_tau = _inside(exponents)
    eps = _log_positive("epsilon", epsilon)
    gap = _log_gap(setting)
    first = _log_size(setting) - 2.0 * (gap + eps)
    second = math.log(setting.H) - min(gap, 0.0) - eps
    burn_in = log_burn_in(exponents)
    return LogTerms(first / (alpha_eta - 0.5), second / alpha_tau, burn_in)


def log_regret_order(setting: Setting, exponents: Exponents, episodes: float) -> LogTerms:
    """Return the order of the strong regret of `episodes` = K episodes, as logarithms.

    (i)   ( (1 + N) X A^(1/2) H^7 )^(1/2) / b_gap  K^(1 - (alpha_eta - 0.5) / 2)
    (ii)  H / min(b_gap, 1)  K^(1 - alpha_tau)
    (iii) H k*, since each of these episodes may lose H
    A term Z eps^-a of Eq. 6 becomes Z^(1/a) K^(1 - 1/a) (Theorem 2.3 (3)). With the exponents of
    Corollary 4.2, (i) is A^(1/4) H^(7/2) K^(6/7). The corollary rounds it up to A^(2/7) H^4.
    """
    alpha_eta, alpha_tau = _inside(exponents)
    log_K = _log_positive("the number of episodes", episodes)
    gap = _log_gap(setting)
    first = 0.5 * _log_size(setting) - gap + (1.0 - (alpha_eta - 0.5) / 2.0) * log_K
    second = math.log(setting.H) - min(gap, 0.0) + (1.0 - alpha_tau) * log_K
    return LogTerms(first, second, math.log(setting.H) + log_burn_in(exponents))


def log_potential_order(setting: Setting, exponents: Exponents, epsilon: float) -> float:
    """Return ln of the order of the number of episodes with a potential Phi^{k+1} > epsilon.

    The order ( (1 + N) X A^(1/2) H^4 / (b_gap^2 eps) )^(1 / (alpha_eta - 0.5)) + k* is the end of
    the proof of Lemma H.9. The lemma prints the power 1 / (0.5 - alpha_tau), which the proof does
    not give.
    """
    alpha_eta, _ = _inside(exponents)
    size = _log_size(setting) - 3.0 * math.log(setting.H) - 2.0 * _log_gap(setting)
    first = (size - _log_positive("epsilon", epsilon)) / (alpha_eta - 0.5)
    return float(np.logaddexp(first, log_burn_in(exponents)))


def log_optimism_order(setting: Setting, epsilon: float) -> float:
    """Return ln(X^2 A H^4 / eps^2 + X A H^3 / eps), with X, A and H of `setting` (Lemma H.6).

    It is the order of the number of episodes with an optimistic value V~ > V + epsilon. Lemma H.4,
    from which the second term comes, has X^2 there.
    """
    X, A, H = (math.log(size) for size in (setting.X, setting.A, setting.H))
    eps = _log_positive("epsilon", epsilon)
    first = 2.0 * X + A + 4.0 * H - 2.0 * eps
    return float(np.logaddexp(first, X + A + 3.0 * H - eps))


def log_polylog_episodes(
    log_scale: float, alpha: float, beta: float, epsilon: float, log_range: float = 0.0
) -> float:
    """Return ln k*, where Z_1 k^-alpha (ln(Z_2 k))^beta <= epsilon for every k >= k* (Lemma F.11).

    k* = (e / (e - 1) ln(1 / a) / a)^(beta / alpha) / Z_2, with
    a = (alpha / beta) (epsilon / Z_1)^(1 / beta) Z_2^(-alpha / beta).
    log_scale, log_range : ln Z_1 and ln Z_2. This k* is not that of Lemma H.9.

    For a >= 1 / e, k* is 1 / Z_2. The k* that the proof prints is too early (docs/errata.md). Its
    order, (Z_1 / epsilon)^(1 / alpha) up to logarithms, is correct.
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
    """Return ln k for the first episode k at which the bias of the saddle point is at most epsilon.

    k = (H_ent / (eps min(b_gap, 1)))^(1 / alpha_tau) (proof of Theorem 4.1). From there on, tau_k
    H_ent <= eps and tau_k H_ent / b_gap <= eps bound the bias.
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
    return math.log1p(s.N) + math.log(s.X) + 0.5 * math.log(s.A) + 7.0 * math.log(s.H)
