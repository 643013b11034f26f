"""The simplex method over the columns of a small program, for doubles and for fractions.

The program is that of mixtures.py. Compiled, it runs in doubles. As Python, it runs in fractions,
with tolerances of zero. A basis of N + 1 columns is inverted anew for each pivot.
"""
# Numba infers the types of the compiled functions; the docstrings name the shapes.

from cmdplab.numerics.compiling import compiled_in_order, steering_in_order

MOST_PIVOTS = 2_000


@compiled_in_order
def optimise(program, cost, free, patience, rounding, least, near, basis, inverse, prices, matrix):
    """Pivot over the columns of a program until none gains. Return False if a basis is singular.

    program : [J, N + 1], a column in each row. cost : [J]. free : a column that never leaves.
    basis : [N + 1], inverse : of its columns, prices : [N + 1]. The first row that leaves at a tie
    is that of the largest pivot. After `patience` pivots without a gain, both rules are Bland's.
    """
    best, stalls = cost[0], -1
    for _ in range(MOST_PIVOTS):
        if not invert(program, basis, matrix, inverse):
            return False
        for k in range(len(basis)):
            total = 0 * cost[0]
            for r in range(len(basis)):
                total += cost[basis[r]] * inverse[r, k]
            prices[k] = total
        gains = stalls < 0 or prices[0] > best + rounding * (1 + abs(best))
        stalls = 0 if gains else stalls + 1
        best = prices[0] if gains else best
        if patience > 0 and stalls > 2 * patience:
            return True
        bland = stalls >= patience
        entering = enters(program, cost, basis, prices, rounding, bland)
        leaving = -1
        if entering >= 0:
            leaving = leaves(program[entering], inverse, basis, free, least, near, bland)
        if leaving < 0:
            return True
        basis[leaving] = entering
    return True


@steering_in_order
def invert(program, basis, matrix, inverse):
    """Write the inverse of the matrix of a basis. Return False if it is singular."""
    size = len(basis)
    for r in range(size):
        for c in range(size):
            matrix[r, c] = program[basis[c], r]
            inverse[r, c] = 1 if r == c else 0
    for c in range(size):
        at = c
        for r in range(c + 1, size):
            if abs(matrix[r, c]) > abs(matrix[at, c]):
                at = r
        pivot = matrix[at, c]
        if pivot == 0:
            return False
        for k in range(size):
            matrix[at, k], matrix[c, k] = matrix[c, k], matrix[at, k] / pivot
            inverse[at, k], inverse[c, k] = inverse[c, k], inverse[at, k] / pivot
        for r in range(size):
            factor = matrix[r, c]
            if r != c and factor != 0:
                for k in range(size):
                    matrix[r, k] -= factor * matrix[c, k]
                    inverse[r, k] -= factor * inverse[c, k]
    return True


@steering_in_order
def enters(program, cost, basis, prices, rounding, bland):
    """Return the column of the largest gain, the first that gains by Bland's rule, or -1."""
    largest = abs(prices[0])
    for k in range(1, len(prices)):
        largest = max(largest, abs(prices[k]))
    entering, most = -1, rounding * (1 + largest)
    for j in range(len(cost)):
        gain = cost[j]
        for k in range(len(prices)):
            gain -= prices[k] * program[j, k]
        if gain > most:
            held = False
            for r in range(len(basis)):
                held = held or basis[r] == j
            if not held:
                entering, most = j, gain
                if bland:
                    break
    return entering


@steering_in_order
def leaves(column, inverse, basis, free, least, near, bland):
    """Return the row whose share reaches 0 first if a column enters, or -1."""
    leaving, ratio, pivot = -1, 0 * column[0], 0 * column[0]
    for look in range(2):  # first for the smallest ratio, then among its ties
        smallest, leaving = ratio, -1
        for r in range(len(basis)):
            step = 0 * column[0]
            for k in range(len(basis)):
                step += inverse[r, k] * column[k]
            if step <= least or basis[r] == free:
                continue
            reached = max(inverse[r, 0], 0 * column[0]) / step
            if look == 0:
                if leaving < 0 or reached < ratio:
                    leaving, ratio = r, reached
            elif reached <= smallest + near:
                later = basis[r] < basis[leaving] if bland else step > pivot
                if leaving < 0 or later:
                    leaving, pivot = r, step
    return leaving
