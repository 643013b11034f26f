"""Sorting inside compiled loops, which allocate nothing."""
# Numba infers the types of these functions.

from cmdplab.numerics.compiling import compiled


@compiled
def sort_states(values, order):
    """Sort states by value, highest first, ties by number. The result is unique for any given
    order.

    This is an insertion sort: the order of an earlier sweep is nearly right, and sorting it is
    linear. If many moves are needed, a heap sort replaces the insertion sort and returns an equal
    order.
    """
    left = PATIENCE * len(order)
    for t in range(1, len(order)):
        y = order[t]
        v = values[y]
        s = t - 1
        while s >= 0 and (values[order[s]] < v or (values[order[s]] == v and order[s] > y)):
            order[s + 1] = order[s]
            s -= 1
        order[s + 1] = y
        left -= t - 1 - s
        if left < 0:
            sort_by_heap(values, order)
            return


PATIENCE = 100  # places that a state may move on average


@compiled
def comes_later(values, y, z):
    """Return True if y comes after z in the order."""
    return values[y] < values[z] or (values[y] == values[z] and y > z)


@compiled
def sift(values, order, top, end):
    """Sift the state at `top` of a heap down to its place, below states that come later."""
    y = order[top]
    child = 2 * top + 1
    while child < end:
        if child + 1 < end and comes_later(values, order[child + 1], order[child]):
            child += 1
        if not comes_later(values, order[child], y):
            break
        order[top] = order[child]
        top, child = child, 2 * child + 1
    order[top] = y


@compiled
def sort_by_heap(values, order):
    """Sort as `sort_states` in n ln n steps, in place."""
    for top in range(len(order) // 2 - 1, -1, -1):
        sift(values, order, top, len(order))
    for end in range(len(order) - 1, 0, -1):
        last = order[end]
        order[end] = order[0]
        order[0] = last
        sift(values, order, 0, end)
