"""Entropy-regularised values of a policy, and of the best policy, under a known kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.types import Array


class Values(NamedTuple):
    """Regularised action values and values of a policy for one reward."""

    q: Array  # [H, X, A]
    value: Array  # [H + 1, X]; zero after the last step


class SoftPolicy(NamedTuple):
    """Policy that maximises a regularised value, with that value at the start."""

    value: float
    policy: Array  # [H, X, A]
    log_policy: Array  # [H, X, A]; finite where the policy itself rounds to zero


def entropy(policy: Array) -> Array:
    """Return -sum_a pi(a) ln pi(a), [...], for a policy pi [..., A], with 0 ln 0 = 0."""
    logs = np.log(np.where(policy > 0.0, policy, 1.0))
    return np.asarray(-np.sum(policy * logs, axis=-1))


def regularised_values(problem: CMDP, policy: Array, reward: Array, temperature: float) -> Values:
    """Return V^pi_h[P, r, tau] and Q^pi_h[P, r, tau] of a policy pi and a reward r, both [H, X, A].

    Q_h = r_h + P_h V_{h+1},  V_h = pi_h (Q_h - tau ln pi_h),  V_{H+1} = 0   (Section 2).

    P is the kernel of `problem`, and tau is `temperature`. The print's definition of V has r_h and
    pi_h inside the sum over i in place of r_i and pi_i.
    """
    q = np.empty_like(reward)
    value = np.zeros((problem.horizon + 1, problem.states))
    bonus = temperature * entropy(policy)
    for h in reversed(range(problem.horizon)):
        q[h] = reward[h] + problem.kernel.ahead(h, value[h + 1])
        value[h] = np.sum(policy[h] * q[h], axis=-1) + bonus[h]
    return Values(q, value)


def regularised_returns(problem: CMDP, policy: Array, temperature: float) -> Array:
    """Return the values [1 + N] of a policy [H, X, A] at the start; only the first has the entropy.

    They are V^pi_1[P, r^0, tau](x_1) for the objective, and V^pi_1[P, r^n](x_1) for each utility.
    """
    pairs = exact.occupancy(problem, policy)
    values = exact.earned(problem, pairs)
    values[0] += temperature * np.sum(pairs.sum(axis=-1) * entropy(policy))
    return np.asarray(values)


def soft_greedy(problem: CMDP, reward: Array, temperature: float) -> SoftPolicy:
    """Return the policy with the largest V^pi_1[P, r, tau](x_1) for a reward [H, X, A].

    V_h(x) = tau ln sum_a exp(Q_h(x, a) / tau),  pi_h(a | x) = exp((Q_h(x, a) - V_h(x)) / tau).

    If tau = 0, the policy is greedy, and the logarithm of its other actions is minus infinity.
    """
    if temperature == 0.0:
        best, policy = exact.greedy(problem, reward)
        return SoftPolicy(best, policy, np.where(policy > 0.0, 0.0, -np.inf))
    log_policy = np.empty_like(reward)
    value = np.zeros(problem.states)
    for h in reversed(range(problem.horizon)):
        logits = (reward[h] + problem.kernel.ahead(h, value)) / temperature
        logits = np.where(problem.opened[h], logits, -np.inf)
        top = logits.max(axis=-1, keepdims=True)
        mass = np.log(np.sum(np.exp(logits - top), axis=-1, keepdims=True))
        log_policy[h] = logits - top - mass
        value = temperature * (top + mass)[:, 0]
    return SoftPolicy(float(value[problem.start]), np.exp(log_policy), log_policy)
