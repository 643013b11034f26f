"""Loops over lists of successors for one policy or all actions. Compiled.

Values of K rewards lie side by side, [X, K]: a successor is looked up once for all of them.
"""
# Numba infers the types of these functions; the docstrings name the shapes.

from cmdplab.numerics.compiling import compiled


@compiled
def improve(successor, probability, reward, discount, value, tie, actions):
    """Better actions [X] for a value [X], in place; returns (how many changed, max (T v - v)).

    reward : [X, A], -inf where an action is closed. An action is kept unless another is better by
    more than `tie`: rounding must not turn policies in circles.
    """
    changed, excess = 0, 0.0
    for x in range(successor.shape[0]):
        kept, best, most = actions[x], actions[x], -float("inf")
        own = most
        for a in range(successor.shape[1]):
            q = 0.0
            for s in range(successor.shape[2]):
                q += probability[x, a, s] * value[successor[x, a, s]]
            q = reward[x, a] + discount * q
            if a == kept:
                own = q
            if q > most:
                best, most = a, q
        excess = max(excess, most - value[x])
        if most > own + tie:
            actions[x] = best
            changed += 1
    return changed, excess


@compiled
def operate(successor, probability, discount, given, with_given, out, dots):
    """out = u - gamma P u for u = given [X, K]; dots[0] = w . out, dots[1] = out . out, by column.

    successor, probability : [X, S], of one policy. with_given : [X, K], the w.
    """
    K = given.shape[1]
    dots[:] = 0.0
    for x in range(successor.shape[0]):
        for k in range(K):
            total = 0.0
            for s in range(successor.shape[1]):
                total += probability[x, s] * given[successor[x, s], k]
            total = given[x, k] - discount * total
            out[x, k] = total
            dots[0, k] += with_given[x, k] * total
            dots[1, k] += total * total


@compiled
def half_step(left, along, alpha):
    """left -= alpha along, by column."""
    for x in range(left.shape[0]):
        for k in range(left.shape[1]):
            left[x, k] -= alpha[k] * along[x, k]


@compiled
def whole_step(value, left, first, direction, image, alpha, omega, dots):
    """value += alpha direction + omega left; left -= omega image.

    dots = (first . left, max |left|), by column.
    """
    dots[:] = 0.0
    for x in range(left.shape[0]):
        for k in range(left.shape[1]):
            value[x, k] += alpha[k] * direction[x, k] + omega[k] * left[x, k]
            left[x, k] -= omega[k] * image[x, k]
            dots[0, k] += first[x, k] * left[x, k]
            dots[1, k] = max(dots[1, k], abs(left[x, k]))


@compiled
def turn(direction, left, image, beta, omega):
    """direction = left + beta (direction - omega image), by column."""
    for x in range(left.shape[0]):
        for k in range(left.shape[1]):
            direction[x, k] = left[x, k] + beta[k] * (direction[x, k] - omega[k] * image[x, k])
