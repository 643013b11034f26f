"""Sorting inside compiled loops, which allocate nothing."""
# Numba infers the types of these functions.

from cmdplab.numerics.compiling import compiled


@compiled
def sort_states(values, order):
    """Order states by value, highest first, ties by number: unique, whatever order it is given.

    An insertion sort: the order of an earlier sweep is nearly right, and sorting it is linear.
    Where it is not, among many states, a heap is made of them after all: the order is the same.
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
    """Whether y stands behind z in the order."""
    return values[y] < values[z] or (values[y] == values[z] and y > z)


@compiled
def sift(values, order, top, end):
    """Let the state at `top` of a heap sink to its place: those that come later are above."""
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
    """The order of `sort_states` in n ln n steps, in place."""
    for top in range(len(order) // 2 - 1, -1, -1):
        sift(values, order, top, len(order))
    for end in range(len(order) - 1, 0, -1):
        last = order[end]
        order[end] = order[0]
        order[0] = last
        sift(values, order, 0, end)
