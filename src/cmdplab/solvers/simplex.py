"""The best mixture of policies under constraints: the simplex method, priced by sweeps. Compiled.

Over all vertices j of the box (a deterministic policy with an extreme kernel), with returns v_j of
the objective and u_j^n of the utilities:

    max  w sum_j s_j v_j - M y
    s.t. sum_j s_j (u_j^n - b^n) + y - t^n = 0  (n = 1..N),   sum_j s_j = 1,   s, t >= 0

y is the shortfall. In the search for a plan, y is nonnegative and costs M per unit. In the search
for the largest margin -y, y is free, w = 0 and M = 1. A basis has N + 1 columns. Its multipliers
price one sweep, which finds the entering policy among all there are or proves optimality. For N = 1
the basis is a policy below the threshold and one above it. Their two lines cross at the multiplier.

The result is judged by the policy to be played, not by the course of the search. A mixture that
falls short is never called feasible.
"""
# Numba infers the types of these functions; layout.py names the shapes.

import numpy as np

from cmdplab.numerics.compiling import compiled_apart, steering, steering_in_order
from cmdplab.solvers.basis import (
    GRID,
    POLICY,
    begin,
    cheapest_surplus,
    choose_scale,
    enter,
    excess,
    has_shortfall,
    mixed_returns,
    price,
    smallest_slack,
    total_share,
)
from cmdplab.solvers.layout import UNREACHED
from cmdplab.solvers.value_iteration import add_occupancy, sweep

MOST_PIVOTS = 2_000  # about 4 are needed from good multipliers, 12 from none
MOST_STALLS = 60  # pivots in a row that gain nothing: the search goes in circles
ROUNDING = 1e-13  # relative: an improvement below it is none
FALLS_SHORT = 1e-10  # relative to the largest utility: less is rounding
CLOSED = 1e-10  # relative to the largest value: a certificate that needs no second search


@steering
def sweep_at(model, start, objective, multiplier, columns, basis, work):
    """Sweep for w V[r^0] + sum_n multiplier[n] V[r^n], in the program's units. Return the slot."""
    basis.weights[0] = objective * basis.scale[0]
    for n in range(len(multiplier)):
        basis.weights[n + 1] = max(multiplier[n], 0.0) * basis.scale[1]
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


@steering
def worth(basis, columns, slot, objective, threshold):
    """Return w v + sum_n multiplier[n] (u^n - b^n) of a column, and the size of its terms."""
    total = objective * basis.scale[0] * columns.returns[slot, 0]
    size = abs(total)
    for n in range(len(threshold)):
        weight, utility = max(basis.multiplier[n], 0.0), columns.returns[slot, n + 1]
        total += weight * excess(utility, threshold[n], basis.scale)
        size += weight * basis.scale[1] * (abs(utility) + abs(threshold[n]))
    return total, size


@steering
def maximise(model, start, objective, penalty, enough, columns, basis, work):
    """Pivot until no policy improves the mixture. Return (held, bound, sweeps).

    Without an objective the shortfall is free, and the search stops when its margin is `enough`.
    """
    held, bound, best, stalls, sweeps = 0.0, float("inf"), -float("inf"), 0, 0
    for _ in range(MOST_PIVOTS):
        held = price(basis, columns, model.threshold, objective, penalty)
        if objective == 0.0 and held >= enough:
            break
        stalls = 0 if held > best + ROUNDING * (1.0 + abs(best)) else stalls + 1
        best = max(best, held)
        kind = cheapest_surplus(basis)
        slot = basis.place[len(basis.place) - 1]
        if kind == POLICY:
            sweep_at(model, start, objective, basis.multiplier, columns, basis, work)
            sweeps += 1
            found, size = worth(basis, columns, slot, objective, model.threshold)
            bound = min(bound, found)  # every sweep at multipliers >= 0 bounds the program
            if found - held <= ROUNDING * (1.0 + size):
                break
        if stalls > MOST_STALLS:
            break
        if not enter(basis, kind, columns.returns[slot], model.threshold, objective):
            break
    return price(basis, columns, model.threshold, objective, penalty), bound, sweeps


@steering
def largest_margin(model, start, enough, columns, basis, work):
    """Maximise min_n (V[r^n] - b^n) over policies and kernels. Return (margin, bound, sweeps).

    The search ends when the margin reaches `enough`.
    """
    prepare(model, basis)
    margin, bound, sweeps = -float("inf"), float("inf"), 0
    target = enough * basis.scale[1]
    for _ in range(2):
        for n in range(len(model.threshold)):
            basis.multiplier[n] = 1.0 / len(model.threshold)
        sweep_at(model, start, 0.0, basis.multiplier, columns, basis, work)
        begin(basis, columns, model.threshold, 0.0)
        _, bound, more = maximise(model, start, 0.0, 1.0, target, columns, basis, work)
        margin = smallest_slack(basis, columns, model.threshold, work.returns)
        sweeps += more + 1
        if margin >= enough or bound - basis.scale[1] * margin <= CLOSED:
            break
        basis.scale[2] = GRID
    return margin, bound / basis.scale[1], sweeps


@steering_in_order
def prepare(model, basis):
    """Set the units of the program, and put every column at its own place."""
    choose_scale(model, basis)
    for j in range(len(basis.place)):
        basis.place[j] = j


@steering
def seed(model, start, first, penalty, columns, basis, work):
    """Offer policies from multipliers near the given ones, one for each constraint.

    Good multipliers make the first policy nearly right. Its neighbour across each threshold is then
    one step away. Along a run, a plan takes four sweeps instead of nine.
    """
    N, sweeps = len(first), 0
    returns = columns.returns[basis.place[0]]
    for n in range(N):
        if first[n] == 0.0:
            continue
        for m in range(N):
            basis.multiplier[m] = first[m]
        basis.multiplier[n] *= 1.02 if returns[n + 1] < model.threshold[n] else 0.98
        slot = sweep_at(model, start, 1.0, basis.multiplier, columns, basis, work)
        sweeps += 1
        held = price(basis, columns, model.threshold, 1.0, penalty)
        gain, size = worth(basis, columns, slot, 1.0, model.threshold)
        if gain - held > ROUNDING * (1.0 + size):
            enter(basis, np.int64(POLICY), columns.returns[slot], model.threshold, 1.0)
    return sweeps


@steering
def search(model, start, first, penalty, columns, basis, work):
    """Search once from multipliers in the program's units. Return (held, bound, sweeps)."""
    sweep_at(model, start, 1.0, first, columns, basis, work)
    begin(basis, columns, model.threshold, 1.0)
    more = seed(model, start, first, penalty, columns, basis, work)
    held, bound, sweeps = maximise(model, start, 1.0, penalty, 0.0, columns, basis, work)
    return held, bound, sweeps + more + 1


@steering
def plan(model, start, multiplier, columns, basis, work):
    """Return the optimal mixture, from multipliers to start with: (value, bound, margin, sweeps).

    The margin is 0 if the mixture meets every threshold. Below zero no mixture does, and the
    mixture is that of the largest margin. `basis.multiplier` is in the units of the rewards
    afterwards.
    """
    prepare(model, basis)
    units = basis.scale[0] / basis.scale[1]  # a multiplier of the program per one of the rewards
    tolerance = FALLS_SHORT / basis.scale[1]
    total = 0.0
    for n in range(len(multiplier)):
        work.first[n] = multiplier[n] * units
        total += work.first[n]
    sweeps, penalty = 0, 4.0 * (1.0 + total)
    for attempt in range(12):
        held, bound, more = search(model, start, work.first, penalty, columns, basis, work)
        sweeps += more
        slack = smallest_slack(basis, columns, model.threshold, work.returns)
        open_gap = bound - basis.scale[0] * work.returns[0]
        # A closed search that holds a shortfall needs a larger penalty, and nothing else does.
        closed = bound - held <= CLOSED * (1.0 + abs(held))
        only_penalty = closed and has_shortfall(basis)
        # Degenerate programs can end the search early: another start may close it.
        if slack >= -tolerance and (open_gap <= CLOSED or attempt >= 3):
            for n in range(len(multiplier)):
                basis.multiplier[n] = max(basis.multiplier[n], 0.0) / units
            return work.returns[0], bound / basis.scale[0], 0.0, sweeps
        if attempt == 0 and slack < -tolerance:
            margin, _, more = largest_margin(model, start, 0.0, columns, basis, work)
            sweeps += more
            if margin < -tolerance:
                break
        penalty *= 32.0
        basis.scale[2] = 0.0 if only_penalty or basis.scale[2] > 0.0 else GRID
        for n in range(len(multiplier)):  # good multipliers led nowhere: from nothing
            work.first[n] = 0.0
    margin, _, more = largest_margin(model, start, float("inf"), columns, basis, work)
    return work.returns[0], float("inf"), min(margin, -tolerance), sweeps + more


@compiled_apart
def write_policy(model, start, columns, basis, work, policy, returns):
    """Write the policy and returns of the mixture. Without mass, use the last sweep's actions."""
    H, P = len(policy), len(work.here)
    occupancy = work.occupancy
    occupancy[:] = 0.0
    mixed_returns(basis, columns, returns)
    total = total_share(basis)
    for j in range(len(basis.kind)):
        share = max(basis.share[j], 0.0) / total
        if basis.kind[j] != POLICY or share == 0.0:
            continue
        slot = basis.place[j]
        actions, order = columns.actions[slot], columns.order[slot]
        add_occupancy(model, start, actions, order, share, work.here, work.ahead, occupancy)
    greedy = columns.actions[basis.place[len(basis.place) - 1]]
    for h in range(H):
        for x in range(P):
            mass = 0.0
            for i in range(x, policy.shape[1], P):
                mass += occupancy[h, i]
            for i in range(x, policy.shape[1], P):
                policy[h, i] = occupancy[h, i] / mass if mass > UNREACHED else 0.0
            if mass <= UNREACHED:
                policy[h, greedy[h, x] * P + x] = 1.0
