"""The best mixture of policies under constraints: the simplex method, priced by sweeps. Compiled.

Over all vertices j of the box (a deterministic policy with an extreme kernel), with returns v_j of
the objective and u_j^n of the utilities:

    max  w sum_j s_j v_j - M y
    s.t. sum_j s_j (u_j^n - b^n) + y - t^n = 0  (n = 1..N),   sum_j s_j = 1,   s, t >= 0

y is the shortfall. It is nonnegative and dear (M) when a plan is sought; free, with w = 0 and
M = 1, when the largest margin -y is. A basis has N + 1 columns; its multipliers price one sweep,
which finds the entering policy among all there are or proves optimality. For N = 1 the basis is a
policy below the threshold and one above it, and the multiplier is where their two lines cross.
"""
# Numba infers the types of these functions; models.py names the shapes.

from cmdplab.compiling import compiled_apart, compiled_in_order
from cmdplab.solvers.sweeps import add_occupancy, sweep

MOST_PIVOTS = 10_000  # about 4 are needed from good multipliers, 12 from none
ROUNDING = 1e-13  # relative: an improvement below it is none
SHORTFALL = 1e-11  # per step of the horizon: a smaller one is rounding
_POLICY, _SHORTFALL = 0, -1


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


@compiled_in_order
def write_column(kind, returns, threshold, out):
    """The column of the program: (1, u - b), a surplus (0, -e_n) or the shortfall (0, 1)."""
    out[0] = 1.0 if kind == _POLICY else 0.0
    for n in range(len(threshold)):
        if kind == _POLICY:
            out[n + 1] = returns[n + 1] - threshold[n]
        elif kind == _SHORTFALL:
            out[n + 1] = 1.0
        else:
            out[n + 1] = -1.0 if kind == n + 1 else 0.0


@compiled_apart
def price(basis, columns, threshold, objective, penalty):
    """Shares and multipliers of the basis; returns what the mixture is worth."""
    for j in range(len(basis.kind)):
        kind, returns = basis.kind[j], columns.returns[basis.place[j]]
        write_column(kind, returns, threshold, basis.matrix[:, j])
        basis.cost[j] = 0.0
        if kind == _POLICY:
            basis.cost[j] = objective * returns[0]
        elif kind == _SHORTFALL:
            basis.cost[j] = -penalty
    basis.entering[:] = 0.0
    basis.entering[0] = 1.0
    solve_square(basis.matrix, False, basis.entering, basis.share, basis.work)
    solve_square(basis.matrix, True, basis.cost, basis.dual, basis.work)
    for n in range(len(threshold)):
        basis.multiplier[n] = -basis.dual[n + 1]
    return basis.dual[0]


@compiled_in_order
def cheapest_surplus(basis):
    """The constraint with the most negative multiplier, which pays for a surplus; 0 if none."""
    found, lowest = 0, -1e-12
    for n in range(len(basis.multiplier)):
        if basis.multiplier[n] < lowest * (1.0 + abs(basis.dual[0])):
            found, lowest = n + 1, basis.multiplier[n] / (1.0 + abs(basis.dual[0]))
    return found


@compiled_apart
def enter(basis, kind, returns, threshold, free):
    """Let a column into the basis; False if no column may leave."""
    write_column(kind, returns, threshold, basis.entering)
    solve_square(basis.matrix, False, basis.entering, basis.direction, basis.work)
    leaving, least = -1, 0.0
    for j in range(len(basis.kind)):
        if basis.direction[j] <= 1e-12 or (free and basis.kind[j] == _SHORTFALL):
            continue
        ratio = max(basis.share[j], 0.0) / basis.direction[j]
        if leaving < 0 or ratio < least:
            leaving, least = j, ratio
    if leaving < 0:
        return False
    basis.kind[leaving] = kind
    if kind == _POLICY:
        last = len(basis.place) - 1
        freed = basis.place[leaving]
        basis.place[leaving] = basis.place[last]
        basis.place[last] = freed
    return True


@compiled_apart
def sweep_at(model, start, objective, multiplier, columns, basis, work):
    """Sweep for objective V[r^0] + sum_n multiplier[n] V[r^n] into the free place."""
    basis.weights[0] = objective
    for n in range(len(multiplier)):
        basis.weights[n + 1] = max(multiplier[n], 0.0)
    slot = basis.place[len(basis.place) - 1]
    sweep(
        model,
        basis.weights,
        float("inf"),
        start,
        columns.actions[slot],
        columns.order[slot],
        columns.returns[slot],
        work,
    )
    return slot


@compiled_apart
def worth(basis, columns, slot, objective, threshold):
    """w v + sum_n multiplier[n] (u^n - b^n) of a column, and the size of its terms."""
    total = objective * columns.returns[slot, 0]
    size = abs(total)
    for n in range(len(threshold)):
        weight = max(basis.multiplier[n], 0.0)
        total += weight * (columns.returns[slot, n + 1] - threshold[n])
        size += weight * (abs(columns.returns[slot, n + 1]) + abs(threshold[n]))
    return total, size


@compiled_apart
def maximise(model, start, objective, penalty, free, enough, columns, basis, work):
    """Pivot until no policy improves the mixture; returns (held, bound, sweeps).

    A free shortfall may stop early: when the margin reaches `enough`.
    """
    held, bound, sweeps = 0.0, float("inf"), 0
    for _ in range(MOST_PIVOTS):
        held = price(basis, columns, model.threshold, objective, penalty)
        if free and held >= enough:
            break
        kind = cheapest_surplus(basis)
        slot = basis.place[len(basis.place) - 1]
        if kind == _POLICY:
            sweep_at(model, start, objective, basis.multiplier, columns, basis, work)
            sweeps += 1
            bound, size = worth(basis, columns, slot, objective, model.threshold)
            if bound - held <= ROUNDING * (1.0 + size):
                break
        if not enter(basis, kind, columns.returns[slot], model.threshold, free):
            break
    return held, bound, sweeps


@compiled_apart
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
    basis.kind[0] = _POLICY
    if len(threshold) and (always or returns[worst + 1] < threshold[worst]):
        basis.kind[worst + 1] = _SHORTFALL


@compiled_in_order
def shortfall(basis):
    """The shortfall of the mixture; zero where it is not in the basis."""
    for j in range(len(basis.kind)):
        if basis.kind[j] == _SHORTFALL:
            return basis.share[j]
    return 0.0


@compiled_apart
def largest_margin(model, start, enough, columns, basis, work):
    """max over policies and kernels of min_n (V[r^n] - b^n), or less if `enough` is reached."""
    for n in range(len(model.threshold)):
        basis.multiplier[n] = 1.0 / len(model.threshold)
    sweep_at(model, start, 0.0, basis.multiplier, columns, basis, work)
    begin(basis, columns, model.threshold, True)
    held, _, sweeps = maximise(model, start, 0.0, 1.0, True, enough, columns, basis, work)
    return held, sweeps + 1


@compiled_apart
def seed(model, start, multiplier, columns, basis, work):
    """Offer policies from multipliers a little beside the given ones, one for each constraint.

    Good multipliers make the first policy nearly right; its neighbour across each threshold is
    then a step away. Four sweeps a plan instead of nine, along a run.
    """
    N, sweeps = len(multiplier), 0
    returns = columns.returns[basis.place[0]]
    for n in range(N):
        short = returns[n + 1] < model.threshold[n]
        for m in range(N):
            basis.multiplier[m] = multiplier[m]
        basis.multiplier[n] *= 1.02 if short else 0.98
        if basis.multiplier[n] == 0.0:
            continue
        slot = sweep_at(model, start, 1.0, basis.multiplier, columns, basis, work)
        sweeps += 1
        held = price(basis, columns, model.threshold, 1.0, penalty_for(multiplier))
        gain, size = worth(basis, columns, slot, 1.0, model.threshold)
        if gain - held > ROUNDING * (1.0 + size):
            enter(basis, _POLICY, columns.returns[slot], model.threshold, False)
    return sweeps


@compiled_in_order
def penalty_for(multiplier):
    """M: more than the multipliers are likely to add up to."""
    total = 1.0
    for n in range(len(multiplier)):
        total += multiplier[n]
    return 4.0 * total


@compiled_in_order
def settled(multiplier, basis):
    """Whether the first policy, swept for without multipliers, lacks nothing: then it is optimal.

    Its actions stand in the free place too, where `write_policy` looks for the last sweep.
    """
    for n in range(len(multiplier)):
        if multiplier[n] != 0.0 or basis.kind[n + 1] == _SHORTFALL:
            return False
    basis.place[len(basis.place) - 1] = basis.place[0]
    return True


@compiled_apart
def plan(model, start, multiplier, columns, basis, work):
    """The optimal mixture, from multipliers to start with; returns (held, bound, margin, sweeps).

    A margin below zero says that nothing is feasible; the basis is then that of the largest margin.
    """
    for j in range(len(basis.place)):
        basis.place[j] = j
    penalty = penalty_for(multiplier)
    tolerance = SHORTFALL * len(model.lower)
    sweep_at(model, start, 1.0, multiplier, columns, basis, work)
    begin(basis, columns, model.threshold, False)
    args = (columns, basis, work)
    if settled(multiplier, basis):
        held = price(basis, columns, model.threshold, 1.0, penalty)
        return held, held, 0.0, 1
    sweeps = 1 + seed(model, start, multiplier, *args)
    held, bound, more = maximise(model, start, 1.0, penalty, False, 0.0, *args)
    sweeps += more
    if shortfall(basis) <= tolerance:
        return held, bound, 0.0, sweeps
    margin, more = largest_margin(model, start, 0.0, *args)
    sweeps += more
    if margin < -tolerance:
        margin, more = largest_margin(model, start, float("inf"), *args)
        return held, bound, margin, sweeps + more
    for _ in range(20):
        penalty *= 32.0
        sweep_at(model, start, 1.0, multiplier, columns, basis, work)
        begin(basis, columns, model.threshold, False)
        held, bound, more = maximise(model, start, 1.0, penalty, False, 0.0, *args)
        sweeps += 1 + more
        if shortfall(basis) <= tolerance:
            break
    return held, bound, 0.0, sweeps


@compiled_apart
def write_policy(model, start, columns, basis, work, policy, returns):
    """The policy of the mixture, and its returns; where it never comes, the last sweep's choice."""
    H, P = len(policy), len(work.here)
    occupancy = work.occupancy
    occupancy[:] = 0.0
    returns[:] = 0.0
    total = 0.0
    for j in range(len(basis.kind)):
        if basis.kind[j] == _POLICY:
            total += max(basis.share[j], 0.0)
    for j in range(len(basis.kind)):
        share = max(basis.share[j], 0.0) / total
        if basis.kind[j] != _POLICY or share == 0.0:
            continue
        slot = basis.place[j]
        actions, order = columns.actions[slot], columns.order[slot]
        add_occupancy(model, start, actions, order, share, work.here, work.ahead, occupancy)
        for n in range(len(returns)):
            returns[n] += share * columns.returns[slot, n]
    greedy = columns.actions[basis.place[len(basis.place) - 1]]
    for h in range(H):
        for x in range(P):
            mass = 0.0
            for i in range(x, policy.shape[1], P):
                mass += occupancy[h, i]
            for i in range(x, policy.shape[1], P):
                policy[h, i] = occupancy[h, i] / mass if mass > 0.0 else 0.0
            if mass == 0.0:
                policy[h, greedy[h, x] * P + x] = 1.0
