"""The basis of the planner's linear program: its columns, prices and pivots. Compiled.

The program (simplex.py) is kept in units of its own, in which returns are of order one: `scale[0]`
multiplies the objective, `scale[1]` every utility and threshold, and `scale[2]` is the grid that
utilities are rounded to, if there is one. Tolerances are in these units.
"""
# Numba infers the types of these functions; layout.py names the shapes.

import math

from cmdplab.numerics.compiling import compiled_apart, compiled_exactly, steering, steering_in_order

POLICY, SHORTFALL = 0, -1  # kinds of columns; n = 1..N is the surplus of constraint n
ILL = 1e-6  # pivots below are found again in twice the precision
PIVOT = 1e-9  # a smaller one is rounding
GRID = 2.0**-36  # columns are rounded to it where nearly dependent ones led nowhere
GRID_PIVOT = 1e-14  # on the grid dependent columns are so exactly, and others pivot on more
AS_IT_IS, TRANSPOSED = 0.0, 1.0  # floats: Numba compiles once for each literal bool
TIE = 1e-12  # ratios closer than this are equal: the largest of their pivots is taken


@compiled_apart
def solve_square(matrix, transposed, right, out, work):
    """Solve matrix out = right, or its transpose, by elimination, if needed in twice the precision.

    Return the smallest pivot, which measures how nearly the columns depend on each other. Below
    `ILL` a double would leave too few digits to distinguish a zero share from a nonzero share.
    """
    eliminate(matrix, transposed, right, out, work[0])
    smallest = float("inf")
    for c in range(len(right)):
        smallest = min(smallest, abs(work[0, c, c]))
    if smallest < ILL:
        eliminate_twice(matrix, transposed, right, out, work[0], work[1])
    return smallest


@compiled_exactly
def write_system(matrix, transposed, right, work):
    """Write the matrix, or its transpose, and the right side beside it."""
    size = len(right)
    for r in range(size):
        for c in range(size):
            work[r, c] = matrix[c, r] if transposed == TRANSPOSED else matrix[r, c]
        work[r, size] = right[r]


@compiled_exactly
def largest_pivot(work, c):
    """Return the row >= c with the largest entry of column c, and the first row at a tie."""
    pivot = c
    for r in range(c + 1, len(work)):
        if abs(work[r, c]) > abs(work[pivot, c]):
            pivot = r
    return pivot


@compiled_apart
def eliminate(matrix, transposed, right, out, work):
    """Eliminate with partial pivoting. The pivots stay on the diagonal of the work space."""
    size = len(right)
    write_system(matrix, transposed, right, work)
    for c in range(size):
        pivot = largest_pivot(work, c)
        for k in range(c, size + 1):
            work[c, k], work[pivot, k] = work[pivot, k], work[c, k]
        for r in range(c + 1, size):
            factor = work[r, c] / work[c, c]
            for k in range(c, size + 1):
                work[r, k] -= factor * work[c, k]
    for r in range(size - 1, -1, -1):
        total = work[r, size]
        for c in range(r + 1, size):
            total -= work[r, c] * out[c]
        out[r] = total / work[r, r]


@compiled_exactly
def less_product(a, a_low, b, b_low, c):
    """Return (a + a_low) - (b + b_low) c as a sum of two doubles (by Dekker and Knuth)."""
    split = 134217729.0 * b
    b_high = split - (split - b)
    split = 134217729.0 * c
    c_high = split - (split - c)
    product = b * c
    b_rest, c_rest = b - b_high, c - c_high
    error = ((b_high * c_high - product) + b_high * c_rest + b_rest * c_high) + b_rest * c_rest
    total = a - product
    part = total - a
    rest = (a - (total - part)) - (product + part)
    rest += a_low - (error + b_low * c)
    high = total + rest
    return high, rest - (high - total)


@compiled_exactly
def ratio(a, a_low, b, b_low):
    """Return (a + a_low) / (b + b_low) as a sum of two doubles."""
    first = a / b
    rest, rest_low = less_product(a, a_low, b, b_low, first)
    second = rest / b
    rest, rest_low = less_product(rest, rest_low, b, b_low, second)
    second += rest / b
    high = first + second
    return high, second - (high - first)


@compiled_apart
def eliminate_twice(matrix, transposed, right, out, work, low):
    """Solve as `eliminate` does, in sums of two doubles with some 32 digits."""
    size = len(right)
    write_system(matrix, transposed, right, work)
    low[:] = 0.0
    for c in range(size):
        pivot = largest_pivot(work, c)
        for k in range(c, size + 1):
            work[c, k], work[pivot, k] = work[pivot, k], work[c, k]
            low[c, k], low[pivot, k] = low[pivot, k], low[c, k]
        for r in range(size):  # Gauss and Jordan: nothing is left to substitute
            if r == c or work[r, c] == 0.0:
                continue
            factor, rest = ratio(work[r, c], low[r, c], work[c, c], low[c, c])
            for k in range(c + 1, size + 1):
                high, tail = work[c, k], low[c, k]
                a, a_low = less_product(work[r, k], low[r, k], high, tail, factor)
                work[r, k], low[r, k] = less_product(a, a_low, high, 0.0, rest)
    for r in range(size):
        out[r], _ = ratio(work[r, size], low[r, size], work[r, r], low[r, r])


@compiled_apart
def choose_scale(model, basis):
    """Write 1 / (the largest possible return), of the objective and of all utilities together."""
    basis.scale[:] = 0.0
    for n in range(len(model.reward)):
        largest = abs(model.threshold[n - 1]) if n > 0 else 0.0
        total = 0.0
        for h in range(model.reward.shape[1]):
            most = 0.0
            for i in range(model.reward.shape[2]):
                most = max(most, abs(model.reward[n, h, i]))
            total += most
        place = 0 if n == 0 else 1
        basis.scale[place] = max(basis.scale[place], total, largest)
    for place in range(2):
        basis.scale[place] = 1.0 / basis.scale[place] if basis.scale[place] > 0.0 else 1.0


@steering_in_order
def excess(utility, threshold, scale):
    """Return u - b in the program's units, on the grid if there is one."""
    found = scale[1] * (utility - threshold)
    return found if scale[2] == 0.0 else math.floor(found / scale[2] + 0.5) * scale[2]


@steering_in_order
def write_column(kind, returns, threshold, scale, out):
    """Write the column of the program: (1, u - b), a surplus (0, -e_n) or the shortfall (0, 1)."""
    out[0] = 1.0 if kind == POLICY else 0.0
    for n in range(len(threshold)):
        if kind == POLICY:
            out[n + 1] = excess(returns[n + 1], threshold[n], scale)
        elif kind == SHORTFALL:
            out[n + 1] = 1.0
        else:
            out[n + 1] = -1.0 if kind == n + 1 else 0.0


@steering
def price(basis, columns, threshold, objective, penalty):
    """Compute shares and multipliers of the basis. Return the value of the mixture."""
    for j in range(len(basis.kind)):
        kind, returns = basis.kind[j], columns.returns[basis.place[j]]
        write_column(kind, returns, threshold, basis.scale, basis.matrix[:, j])
        basis.cost[j] = 0.0
        if kind == POLICY:
            basis.cost[j] = objective * basis.scale[0] * returns[0]
        elif kind == SHORTFALL:
            basis.cost[j] = -penalty
    basis.entering[:] = 0.0
    basis.entering[0] = 1.0
    solve_square(basis.matrix, AS_IT_IS, basis.entering, basis.share, basis.work)
    solve_square(basis.matrix, TRANSPOSED, basis.cost, basis.dual, basis.work)
    for n in range(len(threshold)):
        basis.multiplier[n] = -basis.dual[n + 1]
    return basis.dual[0]


@steering_in_order
def cheapest_surplus(basis):
    """Return the constraint with the most negative multiplier, for a surplus, or 0 if none."""
    found, lowest = 0, -1e-12 * (1.0 + abs(basis.dual[0]))
    for n in range(len(basis.multiplier)):
        if basis.multiplier[n] < lowest:
            found, lowest = n + 1, basis.multiplier[n]
    return found


@steering
def find_direction(basis):
    """Compute the change of the shares as a column enters. Return the tolerance for a pivot.

    A small nonzero pivot is computed again in twice the precision, because it may separate two
    nearly parallel constraints.
    """
    matrix, entering, direction = basis.matrix, basis.entering, basis.direction
    fine = solve_square(matrix, AS_IT_IS, entering, direction, basis.work) < ILL
    pivot = PIVOT if basis.scale[2] == 0.0 else GRID_PIVOT
    doubtful = False
    for j in range(len(direction)):
        doubtful = doubtful or 1e-3 * pivot < abs(direction[j]) < ILL
    if doubtful and not fine:
        eliminate_twice(matrix, AS_IT_IS, entering, direction, basis.work[0], basis.work[1])
    return pivot


@steering
def enter(basis, kind, returns, threshold, objective):
    """Enter a column into the basis, or return False if none may leave. A free shortfall stays."""
    free = objective == 0.0
    write_column(kind, returns, threshold, basis.scale, basis.entering)
    pivot = find_direction(basis)
    least = float("inf")
    for j in range(len(basis.kind)):
        if basis.direction[j] > pivot and not (free and basis.kind[j] == SHORTFALL):
            least = min(least, max(basis.share[j], 0.0) / basis.direction[j])
    leaving, largest = -1, 0.0
    for j in range(len(basis.kind)):
        if basis.direction[j] <= max(pivot, largest) or (free and basis.kind[j] == SHORTFALL):
            continue
        if max(basis.share[j], 0.0) / basis.direction[j] <= least + TIE:
            leaving, largest = j, basis.direction[j]
    if leaving < 0:
        return False
    basis.kind[leaving] = kind
    if kind == POLICY:
        last = len(basis.place) - 1
        freed = basis.place[leaving]
        basis.place[leaving] = basis.place[last]
        basis.place[last] = freed
    return True


@steering
def begin(basis, columns, threshold, objective):
    """Begin with the column in the free place, surpluses and, if it lacks one, a shortfall.

    Without an objective there is always a shortfall, because it is free.
    """
    last = len(basis.place) - 1
    basis.place[0], basis.place[last] = basis.place[last], basis.place[0]
    returns = columns.returns[basis.place[0]]
    worst = 0
    for n in range(len(threshold)):
        basis.kind[n + 1] = n + 1
        if returns[n + 1] - threshold[n] < returns[worst + 1] - threshold[worst]:
            worst = n
    basis.kind[0] = POLICY
    if len(threshold) and (objective == 0.0 or returns[worst + 1] < threshold[worst]):
        basis.kind[worst + 1] = SHORTFALL


@steering_in_order
def has_shortfall(basis):
    """Return True if the mixture falls short, at the price of the penalty."""
    found = False
    for j in range(len(basis.kind)):
        found = found or basis.kind[j] == SHORTFALL
    return found


@steering_in_order
def total_share(basis):
    """Return the sum of the policies' shares, without shares that rounding made negative."""
    total = 0.0
    for j in range(len(basis.kind)):
        if basis.kind[j] == POLICY:
            total += max(basis.share[j], 0.0)
    return total


@steering
def mixed_returns(basis, columns, returns):
    """Write the returns of the mixture as it will be played."""
    total = total_share(basis)
    returns[:] = 0.0
    for j in range(len(basis.kind)):
        if basis.kind[j] == POLICY:
            share = max(basis.share[j], 0.0) / total
            for n in range(len(returns)):
                returns[n] += share * columns.returns[basis.place[j], n]


@steering
def smallest_slack(basis, columns, threshold, returns):
    """Return min_n (u^n - b^n) of the mixture as played, which is infinite without constraints."""
    mixed_returns(basis, columns, returns)
    smallest = float("inf")
    for n in range(len(threshold)):
        smallest = min(smallest, returns[n + 1] - threshold[n])
    return smallest
