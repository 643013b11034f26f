"""Extended value iteration, compiled: the best policy and the best kernel of a box at once.

A kernel of the box has lower <= P(y) <= lower + room and rows that sum to one. For given values of
the next step, its best row starts at the lower ends. The remaining mass, `spare`, goes to the
states of the highest value first. All pairs (x, a) share the order of the states, so that one loop
over states fills all pairs side by side. This takes 13 us a sweep at X = 30, A = 3, H = 10, where
sorting and filling pair by pair took 100. With no room it is value iteration.

Arguments: h step, layer of the kernel, i pair (x, a), y next state, n reward, s place in a pair's
list, q action values, order of the states by value, work (arrays to write to). layout.py has the
models and their shapes.
"""
# Numba infers the types of the compiled functions.

from __future__ import annotations

from typing import Any

import numpy as np

from cmdplab.numerics.compiling import by_type, compiled, compiled_apart
from cmdplab.numerics.sorting import sort_states
from cmdplab.solvers.layout import ListedBox, ListedModel, Model, SeenBox, TableModel

FINE = 1e11  # see `coarsen`; a plan loses at most H / FINE by it


@compiled
def coarsen(values, order):
    """Round values to multiples of 1 / FINE: values that differ only by rounding become equal."""
    for t in range(len(order)):
        values[t] = np.floor(values[t] * FINE + 0.5)


@compiled
def pour(lower, room, left, row):
    """Write row[i] = P(y) of every pair i for one next state y; reduce the spare mass `left`."""
    for i in range(len(row)):
        poured = min(room[i], left[i])
        left[i] -= poured
        row[i] = lower[i] + poured


@compiled
def add_scaled(row, value, q):
    """Add row[i] value to q[i]."""
    for i in range(len(q)):
        q[i] += row[i] * value


@compiled
def pour_all(lower, room, spare, order, value, left, row, q):
    """Write q[n, i] = sum_y P(y) value[n, y] under the best kernel for this order of the states."""
    for i in range(len(left)):
        left[i] = spare[i]
    q[:] = 0.0
    for t in range(len(order)):
        y = order[t]
        pour(lower[y], room[y], left, row)
        for n in range(len(value)):
            add_scaled(row, value[n, y], q[n])


@compiled
def expect_box(model, h, order, value, work, q):
    """Do the work of `expect` for a box."""
    layer = min(h, len(model.spare) - 1)
    lower, room, spare = model.lower[layer], model.room[layer], model.spare[layer]
    coarsen(work.total, order)
    sort_states(work.total, order)
    pour_all(lower, room, spare, order, value, work.left, work.row, q)


@compiled
def expect_table(model, h, order, value, work, q):
    """Do the work of `expect` for a table, with sums in the order in which a box is filled."""
    kernel = model.kernel[h]
    coarsen(work.total, order)
    sort_states(work.total, order)
    q[:] = 0.0
    for t in range(len(order)):
        y = order[t]
        for n in range(len(value)):
            add_scaled(kernel[y], value[n, y], q[n])


@compiled
def expect_listed(model, h, order, value, work, q):
    """Do the work of `expect` for a listed kernel."""
    layer = min(h, len(model.probability) - 1)
    for n in range(len(value)):
        expect_one(model.successor, model.probability[layer], value[n], q[n])


@compiled
def expect_one(successor, probability, value, q):
    """Write q[i] = sum_s probability[s, i] value[successor[s, i]]."""
    q[:] = 0.0
    for s in range(len(successor)):
        for i in range(len(q)):
            q[i] += probability[s, i] * value[successor[s, i]]


@compiled
def move_in_box(model, h, i, order, mass, ahead):
    """Do the work of `move` for a box."""
    layer = min(h, len(model.spare) - 1)
    left = model.spare[layer, i]
    for t in range(len(order)):
        y = order[t]
        poured = min(model.room[layer, y, i], left)
        left -= poured
        ahead[y] += mass * (model.lower[layer, y, i] + poured)


@compiled
def move_in_table(model, h, i, order, mass, ahead):
    """Do the work of `move` for a table."""
    for y in range(model.kernel.shape[1]):
        ahead[y] += mass * model.kernel[h, y, i]


@compiled
def move_listed(model, h, i, order, mass, ahead):
    """Do the work of `move` for a listed kernel."""
    layer = min(h, len(model.probability) - 1)
    for s in range(len(model.successor)):
        ahead[model.successor[s, i]] += mass * model.probability[layer, s, i]


@compiled
def entries_listed(model, layer, i):
    """Return the length of pair i's list in a listed box."""
    return len(model.successor)


@compiled
def entries_seen(model, layer, i):
    """Return the number of successors in pair i's list of a `SeenBox`, whose lists grow."""
    return model.used[layer, i]


@compiled
def entry_listed(model, layer, i, s):
    """Return next state, lower end and room at place s of pair i's list in a listed box."""
    return model.successor[s, i], model.lower[layer, s, i], model.room[layer, s, i]


@compiled
def entry_seen(model, layer, i, s):
    """Return next state, lower end and room at place s of pair i's list, for lists that grow."""
    place = model.begin[layer, i] + s
    return model.state[place], model.lower[place], model.room[place]


@by_type({ListedBox: entries_listed, SeenBox: entries_seen})
def entries(model: Any, layer: Any, i: Any) -> Any:
    """Return the number of places in the list of pair i."""
    raise NotImplementedError


@by_type({ListedBox: entry_listed, SeenBox: entry_seen})
def entry(model: Any, layer: Any, i: Any, s: Any) -> Any:
    """Return next state (-1 if empty), lower end and room at place s of pair i's list."""
    raise NotImplementedError


@compiled
def room_of(model, layer, i, y):
    """Return the largest probability that next state y can get above its lower end in pair i."""
    for s in range(entries(model, layer, i)):
        state, _, room = entry(model, layer, i, s)
        if state == y:
            return room
    return model.width[layer, i]


@compiled
def expect_in_lists(model, h, order, value, work, q):
    """Do the work of `expect` pair by pair: filling ends after a few states if rows have few."""
    layer = min(h, len(model.spare) - 1)
    coarsen(work.total, order)
    sort_states(work.total, order)
    for n in range(len(value)):
        everywhere = 0.0
        for t in range(len(order)):
            everywhere += value[n, order[t]]
        for i in range(q.shape[1]):
            floor = model.floor[layer, i]
            total = floor * everywhere
            for s in range(entries(model, layer, i)):
                y, lower, _ = entry(model, layer, i, s)
                if y >= 0:
                    total += (lower - floor) * value[n, y]
            q[n, i] = total
    for i in range(q.shape[1]):
        left, t = model.spare[layer, i], 0
        while left > 0.0 and t < len(order):
            y = order[t]
            poured = min(room_of(model, layer, i, y), left)
            for n in range(len(value)):
                q[n, i] += poured * value[n, y]
            left -= poured
            t += 1


@compiled
def move_in_lists(model, h, i, order, mass, ahead):
    """Do the work of `move` for a box by lists."""
    layer = min(h, len(model.spare) - 1)
    floor = model.floor[layer, i]
    if floor > 0.0:
        for t in range(len(order)):
            ahead[order[t]] += mass * floor
    for s in range(entries(model, layer, i)):
        y, lower, _ = entry(model, layer, i, s)
        if y >= 0:
            ahead[y] += mass * (lower - floor)
    left, t = model.spare[layer, i], 0
    while left > 0.0 and t < len(order):
        y = order[t]
        poured = min(room_of(model, layer, i, y), left)
        ahead[y] += mass * poured
        left -= poured
        t += 1


@by_type(
    {
        Model: expect_box,
        TableModel: expect_table,
        ListedModel: expect_listed,
        ListedBox: expect_in_lists,
        SeenBox: expect_in_lists,
    }
)
def expect(model: Any, h: Any, order: Any, value: Any, work: Any, q: Any) -> None:
    """Write q[n, i] = sum_y P(y) value[n, y], where P is the best kernel for work.total[:X]."""
    raise NotImplementedError


@by_type(
    {
        Model: move_in_box,
        TableModel: move_in_table,
        ListedModel: move_listed,
        ListedBox: move_in_lists,
        SeenBox: move_in_lists,
    }
)
def move(model: Any, h: Any, i: Any, order: Any, mass: Any, ahead: Any) -> None:
    """Add mass P(y) of pair i to ahead[y], where P is the kernel of a sweep with this order."""
    raise NotImplementedError


@compiled
def finish(reward, cap, q):
    """Write q[i] = min(q[i] + reward[i], cap)."""
    for i in range(len(q)):
        q[i] = min(q[i] + reward[i], cap)


TIE = 1e-12  # relative: rounding must not choose between actions that are equally good


@compiled
def choose(total, top, best):
    """Write the first best action best[x] and its value top[x], for total[a * P + x] of pairs."""
    P = len(top)
    for x in range(P):
        top[x] = total[x]
        best[x] = 0
    for a in range(1, len(total) // P):
        for x in range(P):
            better = total[a * P + x] > top[x] + TIE * (1.0 + abs(top[x]))
            best[x] = a if better else best[x]
            top[x] = total[a * P + x] if better else top[x]


@compiled_apart
def sweep(model, weights, truncation, start, actions, order, returns, work):
    """Compute the policy and kernel that maximise sum_n weights[n] V[r^n], and their returns.

    actions [H, P], order [H, X] and returns [1 + N] are written. Values of step h are truncated at
    truncation * (H - h). Infinity truncates nothing.
    """
    value, q, total = work.value, work.action_value, work.total
    H, P = len(model.closed), value.shape[1]
    value[:] = 0.0
    for h in range(H - 1, -1, -1):
        total[:P] = 0.0
        for n in range(len(value)):
            add_scaled(value[n], weights[n], total[:P])
        expect(model, h, order[h], value, work, q)
        for i in range(len(total)):
            total[i] = model.closed[h, i]
        for n in range(len(value)):
            finish(model.reward[n, h], truncation * (H - h), q[n])
            add_scaled(q[n], weights[n], total)
        choose(total, work.top, actions[h])
        for n in range(len(value)):
            for x in range(P):
                value[n, x] = q[n, actions[h, x] * P + x]
    for n in range(len(value)):
        returns[n] = value[n, start]


@compiled_apart
def evaluate(model, policy, direction, truncation, start, order, returns, work):
    """Write the returns of a policy under the best (direction 1) or worst (-1) kernel of the box.

    Each reward has a kernel of its own, so that every return is a bound on the true one.
    """
    value, q, total = work.value, work.action_value, work.total
    H, P = len(model.closed), value.shape[1]
    for n in range(len(value)):
        value[n] = 0.0
        for h in range(H - 1, -1, -1):
            for x in range(P):
                total[x] = direction * value[n, x]
            expect(model, h, order, value[n : n + 1], work, q[n : n + 1])
            finish(model.reward[n, h], truncation * (H - h), q[n])
            value[n] = 0.0
            for a in range(policy.shape[1] // P):
                for x in range(P):
                    value[n, x] += policy[h, a * P + x] * q[n, a * P + x]
        returns[n] = value[n, start]


@compiled_apart
def add_occupancy(model, start, actions, order, share, here, ahead, occupancy):
    """Add share * w_h(x, a) to occupancy[h, i], for the policy and kernel that a sweep found."""
    H, P = len(model.closed), len(here)
    here[:] = 0.0
    here[start] = share
    for h in range(H):
        ahead[:] = 0.0
        for x in range(P):
            if here[x] == 0.0:
                continue
            i = actions[h, x] * P + x
            occupancy[h, i] += here[x]
            move(model, h, i, order[h], here[x], ahead)
        for x in range(P):
            here[x] = ahead[x]
