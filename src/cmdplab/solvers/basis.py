"""The basis of the planner's linear program: its columns, prices and pivots. Compiled.

The program (simplex.py) is kept in units of its own, in which returns are of order one: `scale[0]`
multiplies the objective, `scale[1]` every utility and threshold. Tolerances are in those units.
"""
# Numba infers the types of these functions; models.py names the shapes.

from cmdplab.compiling import compiled_apart, steering, steering_in_order

POLICY, SHORTFALL = 0, -1  # kinds of columns; n = 1..N is the surplus of constraint n
PIVOT = 1e-9  # a smaller one is rounding
TIE = 1e-12  # ratios closer than this are equal: the largest of their pivots is taken


@compiled_apart
def solve_square(matrix, transposed, right, out, work):
    """matrix out = right, or its transpose, by elimination with partial pivoting."""
    size = len(right)
    for r in range(size):
        for c in range(size):
            work[r, c] = matrix[c, r] if transposed else matrix[r, c]
        work[r, size] = right[r]
    for c in range(size):
        pivot = c
        for r in range(c + 1, size):
            if abs(work[r, c]) > abs(work[pivot, c]):
                pivot = r
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


@compiled_apart
def choose_scale(model, basis):
    """1 / (the largest return there can be), of the objective and of all utilities together."""
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
def write_column(kind, returns, threshold, scale, out):
    """The column of the program: (1, u - b), a surplus (0, -e_n) or the shortfall (0, 1)."""
    out[0] = 1.0 if kind == POLICY else 0.0
    for n in range(len(threshold)):
        if kind == POLICY:
            out[n + 1] = scale[1] * (returns[n + 1] - threshold[n])
        elif kind == SHORTFALL:
            out[n + 1] = 1.0
        else:
            out[n + 1] = -1.0 if kind == n + 1 else 0.0


@steering
def price(basis, columns, threshold, objective, penalty):
    """Shares and multipliers of the basis; returns what the mixture is worth."""
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
    solve_square(basis.matrix, False, basis.entering, basis.share, basis.work)
    solve_square(basis.matrix, True, basis.cost, basis.dual, basis.work)
    for n in range(len(threshold)):
        basis.multiplier[n] = -basis.dual[n + 1]
    return basis.dual[0]


@steering_in_order
def cheapest_surplus(basis):
    """The constraint with the most negative multiplier, which pays for a surplus; 0 if none."""
    found, lowest = 0, -1e-12 * (1.0 + abs(basis.dual[0]))
    for n in range(len(basis.multiplier)):
        if basis.multiplier[n] < lowest:
            found, lowest = n + 1, basis.multiplier[n]
    return found


@steering
def enter(basis, kind, returns, threshold, free):
    """Let a column into the basis; False if no column may leave."""
    write_column(kind, returns, threshold, basis.scale, basis.entering)
    solve_square(basis.matrix, False, basis.entering, basis.direction, basis.work)
    least = float("inf")
    for j in range(len(basis.kind)):
        if basis.direction[j] > PIVOT and not (free and basis.kind[j] == SHORTFALL):
            least = min(least, max(basis.share[j], 0.0) / basis.direction[j])
    leaving, largest = -1, 0.0
    for j in range(len(basis.kind)):
        if basis.direction[j] <= max(PIVOT, largest) or (free and basis.kind[j] == SHORTFALL):
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
def begin(basis, columns, threshold, always):
    """A basis of the column in the free place: its surpluses and, if it lacks one, a shortfall."""
    last = len(basis.place) - 1
    basis.place[0], basis.place[last] = basis.place[last], basis.place[0]
    returns = columns.returns[basis.place[0]]
    worst = 0
    for n in range(len(threshold)):
        basis.kind[n + 1] = n + 1
        if returns[n + 1] - threshold[n] < returns[worst + 1] - threshold[worst]:
            worst = n
    basis.kind[0] = POLICY
    if len(threshold) and (always or returns[worst + 1] < threshold[worst]):
        basis.kind[worst + 1] = SHORTFALL


@steering_in_order
def total_share(basis):
    """Of the policies, those that rounding made negative left out."""
    total = 0.0
    for j in range(len(basis.kind)):
        if basis.kind[j] == POLICY:
            total += max(basis.share[j], 0.0)
    return total


@steering
def mixed_returns(basis, columns, returns):
    """The returns of the mixture as it will be played."""
    total = total_share(basis)
    returns[:] = 0.0
    for j in range(len(basis.kind)):
        if basis.kind[j] == POLICY:
            share = max(basis.share[j], 0.0) / total
            for n in range(len(returns)):
                returns[n] += share * columns.returns[basis.place[j], n]


@steering
def smallest_slack(basis, columns, threshold, returns):
    """min_n (u^n - b^n) of the mixture as it will be played; infinite without constraints."""
    mixed_returns(basis, columns, returns)
    smallest = float("inf")
    for n in range(len(threshold)):
        smallest = min(smallest, returns[n + 1] - threshold[n])
    return smallest
