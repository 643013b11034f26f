"""The innermost compiled loops: arrays in, arrays out, formulas from equations.py.

Arrays are separate arguments here and never members of a tuple. Only then can LLVM exclude that
they overlap, drop its checks and vectorise (evaluating one reward: 1.1 us instead of 2.0).
Pairs (x, a) are at i = a * P + x with P states, padding included: see layout.py.
"""
# Numba infers the types of these functions; layout.py names the shapes.

import numpy as np

from cmdplab.algorithms import equations
from cmdplab.algorithms.equations import (
    action_value,
    deviation,
    mixed_policy,
    policy_logit,
    policy_term,
)
from cmdplab.numerics.compiling import FAST, callable_when_compiled, compiled
from cmdplab.numerics.vector_math import exp_vector, log_vector

callable_when_compiled(equations.formulas().values(), FAST)


@compiled
def copy(source, target):
    """Write target = source, both one-dimensional; a slice assignment would ask for a temporary."""
    for i in range(len(source)):
        target[i] = source[i]


@compiled
def pair_product(matrix, weights, first, second):
    """Write first[i] = sum_j weights[0, j] matrix[j, i]; second[i] uses weights[1].

    This is the hottest loop. Two products share each load of the matrix. One after the other they
    are limited by the L2 cache (4.4 us for the counts at the paper's size), together by arithmetic
    (2.5 us). Storing counts as 32-bit integers was tried: the conversions cost more (3.2 us).
    """
    first[:] = 0.0
    second[:] = 0.0
    rows = len(matrix)
    j = 0
    while j + 6 <= rows:
        u0, u1, u2 = weights[0, j], weights[0, j + 1], weights[0, j + 2]
        u3, u4, u5 = weights[0, j + 3], weights[0, j + 4], weights[0, j + 5]
        v0, v1, v2 = weights[1, j], weights[1, j + 1], weights[1, j + 2]
        v3, v4, v5 = weights[1, j + 3], weights[1, j + 4], weights[1, j + 5]
        for i in range(len(first)):
            m0, m1, m2 = matrix[j, i], matrix[j + 1, i], matrix[j + 2, i]
            m3, m4, m5 = matrix[j + 3, i], matrix[j + 4, i], matrix[j + 5, i]
            first[i] += (u0 * m0 + u1 * m1 + u2 * m2) + (u3 * m3 + u4 * m4 + u5 * m5)
            second[i] += (v0 * m0 + v1 * m1 + v2 * m2) + (v3 * m3 + v4 * m4 + v5 * m5)
        j += 6
    while j < rows:
        for i in range(len(first)):
            first[i] += weights[0, j] * matrix[j, i]
            second[i] += weights[1, j] * matrix[j, i]
        j += 1


@compiled
def spread(mass, policy, P, out):
    """Write out[i] = mass[x] policy[i]: the occupancy of pairs from that of states."""
    for a in range(len(policy) // P):
        for x in range(P):
            out[a * P + x] = mass[x] * policy[a * P + x]


@compiled
def sum_of_roots(row):
    """Return sum_y sqrt(Pbar(y))."""
    total = 0.0
    for y in range(len(row)):
        total += np.sqrt(row[y])
    return total


@compiled
def sum_of_deviations(row):
    """Return sum_y sqrt(Pbar(y) (1 - Pbar(y)))."""
    total = 0.0
    for y in range(len(row)):
        total += deviation(row[y])
    return total


@compiled
def soft_values(policy, log_policy, q, tau, weighting, value):
    """Write value[x] = sum_a policy_term."""
    P = len(value)
    value[:] = 0.0
    for a in range(len(policy) // P):
        for x in range(P):
            i = a * P + x
            value[x] += policy_term(policy[i], log_policy[i], q[i], tau, weighting)


@compiled
def evaluate_pair(
    first, second, bonus, inverse, policy, log_policy, weighting, q0, q1, total, value0, value1
):
    """Turn q = sum_y counts V~ into Q~, add lam Q~ to total and find V~, for two rewards in a pass.

    `first` and `second` are (reward [i], bonus weight, cap, lam, tau).
    """
    reward0, weight0, cap0, lam0, tau0 = first
    reward1, weight1, cap1, lam1, tau1 = second
    P = len(value0)
    value0[:] = 0.0
    value1[:] = 0.0
    for a in range(len(policy) // P):
        for x in range(P):
            i = a * P + x
            p, log_p, scale = policy[i], log_policy[i], inverse[i]
            left = action_value(reward0[i], weight0, bonus[i], q0[i] * scale, cap0)
            right = action_value(reward1[i], weight1, bonus[i], q1[i] * scale, cap1)
            q0[i] = left
            q1[i] = right
            total[i] += lam0 * left + lam1 * right
            value0[x] += policy_term(p, log_p, left, tau0, weighting)
            value1[x] += policy_term(p, log_p, right, tau1, weighting)


@compiled
def mix(policy, theta, mass, log_policy):
    """Write log_policy[i] = ln mixed_policy: the policy step starts from pi mixed with uniform."""
    share = 1.0 / (len(policy) // len(mass))
    for i in range(len(policy)):
        log_policy[i] = log_vector(mixed_policy(policy[i], theta, share))


@compiled
def softmax_step(log_policy, policy, eta, tau, total, top, mass):
    """Write pi_h <- softmax over a of policy_logit, in log space: nothing overflows."""
    P = len(top)
    A = len(policy) // P
    top[:] = -np.inf
    mass[:] = 0.0
    for a in range(A):
        for x in range(P):
            i = a * P + x
            log_policy[i] = policy_logit(log_policy[i], eta, tau, total[i])
            top[x] = max(top[x], log_policy[i])
    for a in range(A):
        for x in range(P):
            i = a * P + x
            policy[i] = exp_vector(log_policy[i] - top[x])
            mass[x] += policy[i]
    for x in range(P):
        top[x] += log_vector(mass[x])
        mass[x] = 1.0 / mass[x]
    for a in range(A):
        for x in range(P):
            log_policy[a * P + x] -= top[x]
            policy[a * P + x] *= mass[x]
