"""The potential Phi^k: its definition, its bound along a run, and the gap that it implies.

Phi^k measures the distance of the iterate of episode k, a policy pi and multipliers lambda, from
the saddle point (pi*_tau, lambda*_tau). w* is the occupancy of pi*_tau. eta_k and tau_k are the
step size and temperature, rho^k is `weighted_optimism_error`, C is `Constants.combined`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.theory.bounds import Exponents, log_burn_in
from cmdplab.theory.constants import at_least, entropy_horizon, setting_of, violation_bound
from cmdplab.theory.saddle import SaddlePoint
from cmdplab.types import Array


class Potential(NamedTuple):
    """Phi in its two parts, both >= 0; both are 0 at the saddle point itself."""

    policy: float  # sum_{h,x} w*_h(x) KL(pi*_tau(x) || pi(x))
    multiplier: float  # |lambda*_tau - lambda|^2 / 2

    @property
    def total(self) -> float:
        """Return Phi, the sum of both parts."""
        return self.policy + self.multiplier


def potential(
    problem: CMDP, saddle: SaddlePoint, log_policy: Array, multiplier: Array
) -> Potential:
    """Return the potential Phi of an iterate, a policy and multipliers (Appendix H.4).

    Phi = sum_{h,x} w*_h(x) KL(pi*_tau || pi) + |lambda*_tau - lambda|^2 / 2

    log_policy [H, X, A] is ln pi, and multiplier [N] is lambda. Phi is infinite if pi excludes an
    action that the saddle point's policy takes in a state it visits.
    """
    pairs = exact.occupancy(problem, saddle.policy)
    taken = pairs > 0.0
    divergence = np.sum(pairs[taken] * (saddle.log_policy[taken] - log_policy[taken]))
    distance = saddle.multiplier - multiplier
    # A divergence is never negative; the sum of its terms can be, by rounding.
    return Potential(max(float(divergence), 0.0), 0.5 * float(distance @ distance))


def recursion_bound(
    now: float, step: float, temperature: float, error: float, constant: float
) -> float:
    """Return (1 - eta_k tau_k) Phi^k + eta_k^2 C + eta_k rho^k, the bound on Phi^{k+1}.

    This is the recursion of Appendix H.4. `now` is Phi^k, `error` is rho^k, and `constant` is C.
    The paper claims the bound on the good event (docs/errata.md). Both potentials are measured from
    the saddle point of tau_k. The print ignores that Phi^{k+1} belongs to the saddle point of
    tau_{k+1} (`drift`).
    """
    return (1.0 - step * temperature) * now + step**2 * constant + step * error


def drift(
    problem: CMDP, before: SaddlePoint, after: SaddlePoint, log_policy: Array, multiplier: Array
) -> float:
    """Return how much the potential of an iterate grows as the saddle point moves.

    It is Phi about the saddle point `after` (of tau_{k+1}) less Phi about `before` (of tau_k). The
    iterate is log_policy [H, X, A] and multiplier [N]. The recursion of Appendix H.4 leaves this
    term out. It is zero if the temperature is fixed.
    """
    now = potential(problem, after, log_policy, multiplier).total
    return now - potential(problem, before, log_policy, multiplier).total


class PotentialBound(NamedTuple):
    """Summands, each [K], of the bounds on the potentials Phi^2, ..., Phi^{K+1}."""

    initial: Array  # A_1^k Phi^1
    steps: Array  # B_k C
    errors: Array  # E_k
    drift: Array  # the increase by a falling temperature; zero in the print

    @property
    def total(self) -> Array:
        """Return the bounds [K] on Phi^2, ..., Phi^{K+1}."""
        return self.initial + self.steps + self.errors + self.drift


def potential_bound(
    first: float,
    steps: Array,
    temperatures: Array,
    errors: Array,
    constant: float,
    drifts: Array | None = None,
) -> PotentialBound:
    """Return the bound Phi^{k+1} <= A_1^k Phi^1 + B_k C + E_k for k = 1, ..., K (Appendix H.4).

    A_t^k = prod_{i=t}^k (1 - eta_i tau_i),  B_k = sum_i A_{i+1}^k eta_i^2,
    E_k = sum_i A_{i+1}^k eta_i rho^i.
    first, constant : Phi^1 and C.
    steps, temperatures, errors : eta_k, tau_k, rho^k, each [K].
    drifts : the results of `drift` after each step, [K].

    With `drifts` the bound also holds while the temperature falls. The print keeps the saddle point
    of tau_k and leaves this term out.
    """
    moved = np.zeros_like(steps) if drifts is None else drifts
    keep = 1.0 - steps * temperatures
    bound = np.empty((4, len(steps)))
    now = np.array([first, 0.0, 0.0, 0.0])
    for k, eta in enumerate(steps):
        now = keep[k] * now + np.array([0.0, eta**2 * constant, eta * errors[k], moved[k]])
        bound[:, k] = now
    return PotentialBound(*bound)


class LatePotentialBound(NamedTuple):
    """Natural logarithms of the three summands that bound Phi^{k+1} from k* on."""

    initial: float
    steps: float
    errors: float

    @property
    def total(self) -> float:
        """Return the natural logarithm of the sum of the three summands."""
        return float(np.logaddexp.reduce(self))


def late_potential_bound(
    log_episode: float, exponents: Exponents, first: float, constant: float, error_sum: float
) -> LatePotentialBound:
    """Return a bound on Phi^{k+1} for an episode k >= k*, as logarithms (proof of Lemma H.9).

    Phi^{k+1} <= 9 Phi^1 (k + 3)^-12 + 9 C ln(k + 3) (k + 3)^(alpha_tau - alpha_eta)
                   + 4 (k + 3)^-alpha_eta sum_{i <= k} rho^i.
    log_episode, first, constant, error_sum : ln k, Phi^1, C and the sum of rho^i.

    An episode before k* is refused. k* (`log_burn_in`) is about 10^46, so that no run gets there.
    """
    why = "the bound holds from k* on: this episode comes before it"
    log_episode = at_least(log_burn_in(exponents), log_episode, why)
    log_k = float(np.logaddexp(log_episode, math.log(3.0)))
    alpha_eta, alpha_tau = exponents
    return LatePotentialBound(
        math.log(9.0) + _log(first) - 12.0 * log_k,
        math.log(9.0) + _log(constant) + math.log(log_k) + (alpha_tau - alpha_eta) * log_k,
        math.log(4.0) + _log(error_sum) - alpha_eta * log_k,
    )


class GapFromDivergence(NamedTuple):
    """Both sides of Lemma F.5, which bounds gap and violation by a divergence of policies."""

    gap: float  # V* - V[r^0]
    gap_bound: float
    violation: Array  # [N], b^n - V[r^n]
    violation_bound: float


def gap_from_divergence(
    problem: CMDP, saddle: SaddlePoint, log_policy: Array, optimum: float, slack: float
) -> GapFromDivergence:
    """Return gap and violation of a policy pi beside their bounds by its divergence e (Lemma F.5).

    e = sum_{h,x} w*_h(x) KL(pi*_tau || pi), the policy part of Phi,
    V* - V[r^0]  <= tau H_ent         + H sqrt(2 H e),
    b^n - V[r^n] <= tau H_ent / b_gap + H sqrt(2 H e).
    log_policy [H, X, A] is ln pi, optimum is V*, and slack is b_gap. The lemma is stated for every
    tau > 0 but takes the violation from Lemma F.4, which needs tau <= 1. For a larger tau the bound
    here has tau H (1 + tau ln A) / b_gap.
    """
    setting = setting_of(problem, slack)
    none = np.zeros(problem.constraints)
    divergence = potential(problem, saddle, log_policy, none).policy
    spread = problem.horizon * math.sqrt(2.0 * problem.horizon * divergence)
    returns = exact.returns(problem, np.exp(log_policy))
    tau = saddle.temperature
    bias = violation_bound(setting, tau)
    if tau <= 1.0:
        bias = tau * entropy_horizon(setting) / slack
    return GapFromDivergence(
        gap=float(exact.gap(optimum, returns[0])),
        gap_bound=tau * entropy_horizon(setting) + spread,
        violation=exact.violation(problem.threshold, returns[1:]),
        violation_bound=bias + spread,
    )


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf
