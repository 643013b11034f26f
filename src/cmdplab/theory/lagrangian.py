"""Lagrange functions (plain, regularised, optimistic), the duality gap, and optimistic errors.

V[r] is the value of a reward r at the start, and V[r, tau] is the value with the entropy weighted
by the temperature tau. b^n is the threshold of utility r^n, and lambda [N] are multipliers.
(pi*_tau, lambda*_tau) is the saddle point, and (pi^k, lambda^k) is the iterate of episode k.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.theory.saddle import SaddlePoint
from cmdplab.theory.soft import regularised_returns, soft_greedy
from cmdplab.types import Array


class Evaluation(NamedTuple):
    """Optimistic action values and values of a policy, as a learner computes them (Algorithm 2)."""

    q: Array  # [1 + N, H, X, A]
    value: Array  # [1 + N, H + 1, X]


def lagrangian(problem: CMDP, policy: Array, multiplier: Array, temperature: float = 0.0) -> float:
    """Return L_tau = V[r^0, tau] + sum_n lambda^n (V[r^n] - b^n) + (tau / 2) |lambda|^2 (Eq. 2).

    policy is pi [H, X, A], and multiplier is lambda [N]. The policy maximises and the multipliers
    minimise. With tau = 0 the function is L of Appendix C (Eq. 9).
    """
    returns = regularised_returns(problem, policy, temperature)
    return _combined(returns, problem.threshold, multiplier, temperature)


def optimistic_lagrangian(
    problem: CMDP, evaluation: Evaluation, multiplier: Array, temperature: float = 0.0
) -> float:
    """Return V~^0_1 + sum_n lambda^n (V~^n_1 - b^n) + (tau / 2) |lambda|^2 at the start state.

    V~ are the values of `evaluation`, which must have this temperature. A learner truncates them at
    their caps (Algorithm 2). With them the result lies between L_tau(pi*_tau, lambda^k) and
    L_tau(pi^k, lambda*_tau) in Appendix H.3. Eq. 11 of Appendix C is the case tau = 0 with values
    V[Pbar, r^n + beta] that are not truncated: both agree if no cap is reached.
    """
    returns = evaluation.value[:, 0, problem.start]
    return _combined(returns, problem.threshold, multiplier, temperature)


def largest_lagrangian(problem: CMDP, multiplier: Array, temperature: float) -> float:
    """Return max over policies of L_tau(pi, lambda), the dual function, at a multiplier [N]."""
    weights = np.array([1.0, *multiplier])
    reward = np.tensordot(weights, problem.reward, axes=1)
    best = soft_greedy(problem, reward, temperature).value
    return best - float(multiplier @ problem.threshold) + _ridge(multiplier, temperature)


def best_multiplier(
    problem: CMDP, policy: Array, temperature: float, cap: float = math.inf
) -> Array:
    """Return the multipliers [N] in [0, cap]^N that minimise L_tau for a policy [H, X, A].

    They are clip((b - V[r^n]) / tau, 0, cap) (proof of Lemma F.4). For tau = 0 a multiplier is 0
    where the constraint holds and `cap` elsewhere.
    """
    violation = exact.violation(problem.threshold, regularised_returns(problem, policy, 0.0)[1:])
    if temperature == 0.0:
        return np.where(violation > 0.0, cap, 0.0)
    return np.asarray(np.clip(violation / temperature, 0.0, cap))


class DualityGap(NamedTuple):
    """Gains that the policy and the multipliers can reach alone, both 0 at the saddle point."""

    policy: float  # max_pi' L_tau(pi', lambda) - L_tau(pi, lambda)
    multiplier: float  # L_tau(pi, lambda) - min_lambda' L_tau(pi, lambda')

    @property
    def total(self) -> float:
        """Return max_pi' L_tau(pi', lambda) - min_lambda' L_tau(pi, lambda')."""
        return self.policy + self.multiplier


def duality_gap(
    problem: CMDP, policy: Array, multiplier: Array, temperature: float, cap: float = math.inf
) -> DualityGap:
    """Return the duality gap of L_tau at (pi, lambda) in its two parts (Lemma 3.1, weak duality).

    The minimum is over [0, cap]^N. The gap is infinite if tau = 0, the policy violates a constraint
    and there is no cap. The gap of Appendix H.3 compares with the saddle point alone and is never
    larger: see `saddle_gap`.
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
        """Return L_tau(pi*_tau, lambda) - L_tau(pi, lambda*_tau) >= 0."""
        return self.club + self.heart


def saddle_gap(
    problem: CMDP,
    saddle: SaddlePoint,
    policy: Array,
    multiplier: Array,
    evaluation: Evaluation | None = None,
) -> SaddleGap:
    """Return L_tau(pi*_tau, lambda^k) - L_tau(pi^k, lambda*_tau) in two parts (Appendix H.3).

    policy [H, X, A] and multiplier [N] are pi^k and lambda^k; tau is that of the saddle point.
    evaluation : the optimistic values of `policy`; exact values replace them if it is None.
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


class ValueDifference(NamedTuple):
    """Both sides of the value difference identity: `left` = `policies` + `model`."""

    left: float
    policies: float  # the part of the difference between the two policies
    model: float  # the part of q that differs from the reward plus the expected next value


def value_difference(
    problem: CMDP, policy: Array, other: Array, q: Array, reward: Array
) -> ValueDifference:
    """Return both sides of the extended value difference for any q [H, X, A] (Lemma F.1).

    V~_1 - V^{pi'}_1[P, g] = sum_h sum_x w'_h(x) sum_a (pi - pi')_h(a | x) q_h(x, a)
                           + sum_h sum_{x,a} w'_h(x, a) ( q_h - g_h - P_h V~_{h+1} )(x, a)

    V~_h = pi_h q_h. `policy` is pi, `other` is pi' with the occupancy w', `reward` is g; all are
    [H, X, A]. The print has pi' - pi in the first sum, which does not balance, and P' in the
    second.
    """
    value = np.zeros((problem.horizon + 1, problem.states))
    value[:-1] = np.sum(policy * q, axis=-1)
    pairs = exact.occupancy(problem, other)
    states = pairs.sum(axis=-1)
    ahead = np.stack([problem.kernel.ahead(h, later) for h, later in enumerate(value[1:])])
    left = value[0, problem.start] - np.sum(pairs * reward)
    policies = np.sum(states[..., None] * (policy - other) * q)
    return ValueDifference(
        float(left), float(policies), float(np.sum(pairs * (q - reward - ahead)))
    )


def optimism_errors(
    problem: CMDP, policy: Array, evaluation: Evaluation, temperature: float
) -> Array:
    """Return the optimistic less the true values of a policy [H, X, A] for every reward: [1 + N].

    They are V~^n_1(x_1) - V^pi_1[P, r^n](x_1). Reward 0, the objective, has its entropy in both. On
    the good event all errors are >= 0 (Lemma H.2). They are at most epsilon on all but the number
    of episodes of Lemma H.6 (`log_optimism_order`). `evaluation` must have this temperature.
    """
    optimistic = evaluation.value[:, 0, problem.start]
    return np.asarray(optimistic - regularised_returns(problem, policy, temperature))


def weighted_optimism_error(errors: Array, saddle_multiplier: Array) -> float:
    """Return rho^k = error^0 + sum_n lambda*_tau^n error^n of `optimism_errors` (Lemma H.8)."""
    return float(errors[0] + saddle_multiplier @ errors[1:])
