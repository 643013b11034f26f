"""One iteration of OPG-PD or OMWU-PD, compiled: one sweep evaluates a policy and replaces it."""
# Numba infers the types of these functions; session.py names the shapes.

import math

from cmdplab.algorithms.equations import multiplier_step, policy_logit
from cmdplab.algorithms.last_iterate import projected, simplex_shift
from cmdplab.numerics.compiling import compiled_exactly


@compiled_exactly
def sort_down(y, sorted_y):
    """sorted_y = y in descending order, by insertion: there are few actions."""
    for a in range(len(y)):
        place = a
        while place > 0 and sorted_y[place - 1] < y[a]:
            sorted_y[place] = sorted_y[place - 1]
            place -= 1
        sorted_y[place] = y[a]


@compiled_exactly
def project(y, sorted_y):
    """y becomes the nearest point of the simplex."""
    sort_down(y, sorted_y)
    summed, shift = 0.0, -math.inf
    for a in range(len(y)):
        summed += sorted_y[a]
        if sorted_y[a] <= simplex_shift(summed, a + 1.0):
            break
        shift = simplex_shift(summed, a + 1.0)
    for a in range(len(y)):
        y[a] = projected(y[a], shift)


@compiled_exactly
def normalise(y):
    """y becomes the logarithms of a distribution, its largest being 0 before."""
    mass = 0.0
    for a in range(len(y)):
        mass += math.exp(y[a])
    mass = math.log(mass)
    for a in range(len(y)):
        y[a] -= mass


@compiled_exactly
def move(y, numbers, total, sorted_y):
    """y [A], an anchor or its logarithms, takes a step along Q [A]."""
    top = -math.inf
    for a in range(len(y)):
        y[a] = policy_logit(y[a], numbers.eta, 0.0, total[a])
        top = max(top, y[a])
    for a in range(len(y)):
        y[a] -= top
    if numbers.multiplicative > 0.0:
        normalise(y)
    else:
        project(y, sorted_y)


@compiled_exactly
def evaluate(kernel, iterate, h, x, space):
    """Values of (h, x) under pi_t for every reward, and `total`, the Q of their weighted sum."""
    A = iterate.policy.shape[2]
    layer = min(h, len(kernel.range) - 1)
    for n in range(len(space.value)):
        space.following[n, x] = 0.0
    for a in range(A):
        space.total[a] = iterate.closed[h, x, a]
        for n in range(len(space.value)):
            q = iterate.reward[n, h, x, a]
            for s in range(kernel.range[layer, x, a, 0], kernel.range[layer, x, a, 1]):
                q += kernel.probability[s] * space.value[n, kernel.state[s]]
            space.following[n, x] += iterate.policy[h, x, a] * q
            space.total[a] += q if n == 0 else iterate.multiplier[n - 1] * q


@compiled_exactly
def improve(kernel, iterate, numbers, start, space):
    """One iteration; `space.value` is left with what pi_t earns from every state."""
    H, X, A = iterate.policy.shape
    space.value[:] = 0.0
    for h in range(H - 1, -1, -1):
        for x in range(X):
            evaluate(kernel, iterate, h, x, space)
            anchor, policy = iterate.anchor[h, x], iterate.policy[h, x]
            move(anchor, numbers, space.total, space.sorted)
            for a in range(A):
                policy[a] = anchor[a]
            move(policy, numbers, space.total, space.sorted)
            if numbers.multiplicative > 0.0:
                for a in range(A):
                    policy[a] = math.exp(policy[a])
        for n in range(len(space.value)):
            for x in range(X):
                space.value[n, x] = space.following[n, x]
    eta, cap = numbers.eta, numbers.cap
    for n in range(len(iterate.multiplier)):
        b, value = iterate.threshold[n], space.value[n + 1, start]
        lam = multiplier_step(iterate.anchor_multiplier[n], eta, 0.0, b, value, cap)
        iterate.anchor_multiplier[n] = lam
        iterate.multiplier[n] = multiplier_step(lam, eta, 0.0, b, value, cap)


@compiled_exactly
def play(kernel, iterate, numbers, start, space, chunk):
    """Iterations; what pi_t earns is known from its evaluation, and costs nothing more."""
    for k in range(len(chunk.returns)):
        improve(kernel, iterate, numbers, start, space)
        for n in range(len(space.value)):
            chunk.returns[k, n] = space.value[n, start]
        for n in range(len(iterate.multiplier)):
            chunk.multiplier[k, n] = iterate.multiplier[n]
