"""Exact quantities of a policy under a known kernel: occupancies, returns, values.

Plain NumPy, one line of mathematics each; the compiled engine is tested against this file.
A policy is an array [H, X, A] with pi_h(a | x). Nothing is checked here: `evaluate` does that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Kernel
from cmdplab.types import Array, Mask


def occupancy(problem: CMDP, policy: Array) -> Array:
    """[H, X, A]: w_h(x, a) = P(x_h = x, a_h = a | pi, P)   (Appendix E, Eq. 12)."""
    return visits(problem.kernel, problem.start, policy)


def visits(kernel: Kernel, start: int, policy: Array) -> Array:
    """[H, X, A]: the occupancy of a policy on a kernel."""
    pairs = np.empty(policy.shape)
    here = np.zeros(policy.shape[1])
    here[start] = 1.0
    for h in range(len(policy)):
        pairs[h] = here[:, None] * policy[h]
        here = kernel.forward(h, pairs[h])
    return pairs


def returns(problem: CMDP, policy: Array) -> Array:
    """[1 + N]: V^pi_1[P, r^n](x_1) of every reward."""
    return earned(problem, occupancy(problem, policy))


def earned(problem: CMDP, pairs: Array) -> Array:
    """[1 + N]: sum_{h,x,a} w_h(x, a) r^n_h(x, a) of an occupancy w [H, X, A]."""
    return np.asarray(np.einsum("nhxa,hxa->n", problem.reward, pairs))


def gap(optimum: Any, value: Any) -> Any:
    """V* - V^pi[r^0], of numbers or arrays: how far a policy is from the optimum (Section 2.2)."""
    return optimum - value


def violation(threshold: Any, utility: Any) -> Any:
    """b^n - V^pi[r^n], of numbers or arrays: above zero where a threshold is missed."""
    return threshold - utility


def action_values(problem: CMDP, policy: Array, reward: Array) -> Array:
    """[H, X, A]: Q^pi_h[P, r](x, a) for a reward [H, X, A]."""
    q = np.empty_like(reward)
    value = np.zeros(problem.states)
    for h in reversed(range(problem.horizon)):
        q[h] = reward[h] + problem.kernel.ahead(h, value)
        value = np.sum(policy[h] * q[h], axis=-1)
    return q


def greedy(problem: CMDP, reward: Array) -> tuple[float, Array]:
    """max over policies of V^pi_1[P, r](x_1), and a deterministic policy [H, X, A] for it."""
    policy = np.zeros_like(reward)
    value = np.zeros(problem.states)
    for h in reversed(range(problem.horizon)):
        q = np.where(problem.opened[h], reward[h] + problem.kernel.ahead(h, value), -np.inf)
        best = np.argmax(q, axis=-1)
        policy[h, np.arange(problem.states), best] = 1.0
        value = q.max(axis=-1)
    return float(value[problem.start]), policy


def even(opened: Mask) -> Array:
    """[..., A]: the policy that takes every open action equally often."""
    return np.asarray(opened / opened.sum(axis=-1, keepdims=True))


def policy_of(pairs: Array, fallback: Array) -> Array:
    """The policy of an occupancy [H, X, A]; states it never visits take theirs from `fallback`."""
    mass = pairs.sum(axis=-1, keepdims=True)
    return np.where(mass > 0.0, pairs / np.where(mass > 0.0, mass, 1.0), fallback)
