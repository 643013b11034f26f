"""The Lagrange functions, plain, regularised and optimistic, and the duality gap."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.plain.primal_dual import Evaluation
from cmdplab.errors import InputError
from cmdplab.theory.saddle import SaddlePoint
from cmdplab.theory.soft import regularised_returns, soft_greedy
from cmdplab.types import Array


def lagrangian(problem: CMDP, policy: Array, multiplier: Array, temperature: float = 0.0) -> float:
    """Eq. 2: L_tau = V[r^0, tau] + sum_n lambda^n (V[r^n] - b^n) + (tau / 2) |lambda|^2.

    policy [H, X, A], multiplier [N]. The policy maximises and the multipliers minimise. With
    tau = 0 it is L of Appendix C (Eq. 9).
    """
    returns = regularised_returns(problem, policy, temperature)
    return _combined(returns, problem.threshold, multiplier, temperature)


def optimistic_lagrangian(
    problem: CMDP, evaluation: Evaluation, multiplier: Array, temperature: float = 0.0
) -> float:
    """V~^0_1 + sum_n lambda^n (V~^n_1 - b^n) + (tau / 2) |lambda|^2 at the start state.

    V~ are the values of `evaluation`, which must have the same temperature. A learner's are
    truncated at their caps (Algorithm 2); with them this stands between L_tau(pi*_tau, lambda^k)
    and L_tau(pi^k, lambda*_tau) in Appendix H.3. Eq. 11 of Appendix C is the case tau = 0 with
    values that are not truncated, V[Pbar, r^n + beta]: the two agree where no cap is reached.
    """
    returns = evaluation.value[:, 0, problem.start]
    return _combined(returns, problem.threshold, multiplier, temperature)


def largest_lagrangian(problem: CMDP, multiplier: Array, temperature: float) -> float:
    """max over policies of L_tau(pi, lambda), the dual function: above L_tau of every policy."""
    weights = np.array([1.0, *multiplier])
    reward = np.tensordot(weights, problem.reward, axes=1)
    best = soft_greedy(problem, reward, temperature).value
    return best - float(multiplier @ problem.threshold) + _ridge(multiplier, temperature)


def best_multiplier(
    problem: CMDP, policy: Array, temperature: float, cap: float = math.inf
) -> Array:
    """[N]: lambda in [0, cap]^N that minimises L_tau(pi, .): clip((b - V[r^n]) / tau, 0, cap).

    Proof of Lemma F.4. For tau = 0 it is 0 where the constraint holds and `cap` elsewhere.
    """
    violation = exact.violation(problem.threshold, regularised_returns(problem, policy, 0.0)[1:])
    if temperature == 0.0:
        return np.where(violation > 0.0, cap, 0.0)
    return np.asarray(np.clip(violation / temperature, 0.0, cap))


class DualityGap(NamedTuple):
    """How much either player could gain alone; both parts are >= 0, and 0 at the saddle point."""

    policy: float  # max_pi' L_tau(pi', lambda) - L_tau(pi, lambda)
    multiplier: float  # L_tau(pi, lambda) - min_lambda' L_tau(pi, lambda')

    @property
    def total(self) -> float:
        """max_pi' L_tau(pi', lambda) - min_lambda' L_tau(pi, lambda')."""
        return self.policy + self.multiplier


def duality_gap(
    problem: CMDP, policy: Array, multiplier: Array, temperature: float, cap: float = math.inf
) -> DualityGap:
    """The duality gap of L_tau at (pi, lambda) in its two parts (Lemma 3.1, weak duality).

    The minimum is over [0, cap]^N. It is minus infinity, and the gap infinite, where tau = 0, the
    policy violates a constraint and there is no cap. The gap of Appendix H.3 compares with the
    saddle point alone and is never larger: see `saddle_gap`.
    """
    if np.any(multiplier < 0.0) or np.any(multiplier > cap):
        raise InputError(f"a multiplier lies outside [0, {cap:g}]")
    here = lagrangian(problem, policy, multiplier, temperature)
    above = largest_lagrangian(problem, multiplier, temperature)
    answer = best_multiplier(problem, policy, temperature, cap)
    unbounded = bool(np.isinf(answer).any())
    below = -math.inf if unbounded else lagrangian(problem, policy, answer, temperature)
    return DualityGap(above - here, here - below)


class SaddleGap(NamedTuple):
    """The duality gap of Appendix H.3, split by the optimistic value of the policy."""

    club: float  # L_tau(pi*_tau, lambda) less the optimistic Lagrangian at (pi, lambda)
    heart: float  # the optimistic Lagrangian at (pi, lambda) less L_tau(pi, lambda*_tau)

    @property
    def total(self) -> float:
        """L_tau(pi*_tau, lambda) - L_tau(pi, lambda*_tau) >= 0."""
        return self.club + self.heart


def saddle_gap(
    problem: CMDP,
    saddle: SaddlePoint,
    policy: Array,
    multiplier: Array,
    evaluation: Evaluation | None = None,
) -> SaddleGap:
    """Appendix H.3: 0 <= L_tau(pi*_tau, lambda^k) - L_tau(pi^k, lambda*_tau) = club + heart.

    policy [H, X, A] is pi^k, multiplier [N] is lambda^k, tau is the saddle point's.
    evaluation : the optimistic values of `policy`; without it the exact ones take their place.
    """
    temperature = saddle.temperature
    if evaluation is None:
        middle = lagrangian(problem, policy, multiplier, temperature)
    else:
        middle = optimistic_lagrangian(problem, evaluation, multiplier, temperature)
    above = lagrangian(problem, saddle.policy, multiplier, temperature)
    below = lagrangian(problem, policy, saddle.multiplier, temperature)
    return SaddleGap(above - middle, middle - below)


def _combined(returns: Array, threshold: Array, multiplier: Array, temperature: float) -> float:
    slack = returns[1:] - threshold
    return float(returns[0] + multiplier @ slack) + _ridge(multiplier, temperature)


def _ridge(multiplier: Array, temperature: float) -> float:
    return 0.5 * temperature * float(multiplier @ multiplier)
