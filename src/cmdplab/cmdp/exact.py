"""Exact quantities of a policy under a known kernel: occupancies, returns, values.

A policy is an array [H, X, A] with pi_h(a | x). P is the kernel, r^n a reward, x_h and a_h are
state and action of step h. The code is plain NumPy, and the tests of the compiled engine use it.
`evaluate` checks its arguments, the functions here do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Kernel
from cmdplab.types import Array, Mask


def occupancy(problem: CMDP, policy: Array) -> Array:
    """Return the occupancy w_h(x, a) = P(x_h = x, a_h = a | pi), [H, X, A] (Appendix E, Eq. 12)."""
    return visits(problem.kernel, problem.start, policy)


def visits(kernel: Kernel, start: int, policy: Array) -> Array:
    """Return the occupancy [H, X, A] of a policy [H, X, A] on a kernel, from a start state."""
    pairs = np.empty(policy.shape)
    here = np.zeros(policy.shape[1])
    here[start] = 1.0
    for h in range(len(policy)):
        pairs[h] = here[:, None] * policy[h]
        here = kernel.forward(h, pairs[h])
    return pairs


def returns(problem: CMDP, policy: Array) -> Array:
    """Return the returns V^pi_1[P, r^n](x_1) of a policy [H, X, A] for every reward, [1 + N]."""
    return earned(problem, occupancy(problem, policy))


def earned(problem: CMDP, pairs: Array) -> Array:
    """Return the returns of an occupancy `pairs` w [H, X, A]: sum_{h,x,a} w_h r^n_h, [1 + N]."""
    return np.asarray(np.einsum("nhxa,hxa->n", problem.reward, pairs))


def gap(optimum: Any, value: Any) -> Any:
    """Return V* - V^pi[r^0] from the optimum V* and a value, numbers or arrays (Section 2.2)."""
    return optimum - value


def violation(threshold: Any, utility: Any) -> Any:
    """Return b^n - V^pi[r^n], positive if a threshold is missed, for numbers or arrays."""
    return threshold - utility


def action_values(problem: CMDP, policy: Array, reward: Array) -> Array:
    """Return the action values Q^pi_h[P, r](x, a), [H, X, A], of a policy for r [H, X, A]."""
    q = np.empty_like(reward)
    value = np.zeros(problem.states)
    for h in reversed(range(problem.horizon)):
        q[h] = reward[h] + problem.kernel.ahead(h, value)
        value = np.sum(policy[h] * q[h], axis=-1)
    return q


def greedy(problem: CMDP, reward: Array) -> tuple[float, Array]:
    """Return max_pi V^pi_1[P, r](x_1) for r [H, X, A], and a deterministic optimal policy."""
    policy = np.zeros_like(reward)
    value = np.zeros(problem.states)
    for h in reversed(range(problem.horizon)):
        q = np.where(problem.opened[h], reward[h] + problem.kernel.ahead(h, value), -np.inf)
        best = np.argmax(q, axis=-1)
        policy[h, np.arange(problem.states), best] = 1.0
        value = q.max(axis=-1)
    return float(value[problem.start]), policy


def even(opened: Mask) -> Array:
    """Return the policy [..., A] that takes all open actions with equal probability."""
    return np.asarray(opened / opened.sum(axis=-1, keepdims=True))


def policy_of(pairs: Array, fallback: Array) -> Array:
    """Return the policy of the occupancy `pairs` [H, X, A], `fallback` in states without visits."""
    mass = pairs.sum(axis=-1, keepdims=True)
    return np.where(mass > 0.0, pairs / np.where(mass > 0.0, mass, 1.0), fallback)
