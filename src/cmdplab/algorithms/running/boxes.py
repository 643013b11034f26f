"""The box around an estimated row: in a table, or around lists; compiled."""
# Numba infers the types of the compiled functions; solvers/layout.py names the shapes.

from __future__ import annotations

import numpy as np

from cmdplab.algorithms.equations import interval_width, scaled_width
from cmdplab.algorithms.running.layout import AnyCounts, used_places
from cmdplab.algorithms.running.seen import SeenCounts
from cmdplab.algorithms.running.storage import ListedCounts
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.transitions import Sparse
from cmdplab.numerics.arrays import aligned, padded, places, to_pairs
from cmdplab.numerics.compiling import by_type, callable_when_compiled, compiled_exactly
from cmdplab.solvers.layout import ListedBox, Model, SeenBox

AnyBox = Model | ListedBox | SeenBox


def box_half(freedom: float, width: float, visits: float) -> float:
    """Return freedom beta(y); for a pair never seen freedom itself, which allows any kernel."""
    return freedom * (width if visits > 0.0 else 1.0)


def box_ends(p: float, half: float, most: float) -> tuple[float, float]:
    """Return most ^ (Pbar(y) - half v 0), most ^ (Pbar(y) + half); most = 0: y cannot follow."""
    return min(max(p - half, 0.0), most), min(p + half, most)


callable_when_compiled((box_half, box_ends), set())


def empty_box(task: Task, layers: int, listed: Sparse | None, counts: AnyCounts) -> AnyBox:
    """Return the box, to be filled in: in a table, around lists, or around successors seen."""
    rewards, H, X, A = task.reward.shape
    P = padded(X)
    told = (aligned(rewards, H, A * P), task.threshold.copy(), to_pairs(task.closed))
    floor, width, spare = aligned(3, layers, A * P)
    if isinstance(counts, SeenCounts):
        lower, room = np.zeros((2, len(counts.state)))
        shared = (counts.begin, counts.used, counts.state)
        return SeenBox(*shared, lower, room, floor, width, spare, *told)
    if listed is None:
        lower, room = aligned(2, layers, X, A * P)
        return Model(lower, room, spare, *told)
    S = listed.successor.shape[2]
    successor = places(np.where(used_places(listed), listed.successor, -1)).reshape(S, A, P)
    successor[..., X:] = -1
    lower, room = aligned(2, layers, S, A * P)
    return ListedBox(successor.reshape(S, A * P), lower, room, floor, width, spare, *told)


def enlarged_box(box: AnyBox, counts: AnyCounts) -> AnyBox:
    """Return the box of an enlarged pool. A list that moved is filled in at its next visit."""
    if not (isinstance(box, SeenBox) and isinstance(counts, SeenCounts)):
        return box
    more = np.zeros(len(counts.state) - len(box.state))
    lower, room = (np.concatenate([each, more]) for each in (box.lower, box.room))
    return box._replace(state=counts.state, lower=lower, room=room) if len(more) else box


@compiled_exactly
def ends(p, phi, visits, most, numbers):
    """Return one entry's width for bonus and box, its width for margins, its lower end and room.

    `room` is upper end minus lower end; `most` is 0 for a state that cannot follow, else 1.
    """
    width = interval_width(p, phi, numbers.flat, numbers.dev, numbers.tail)
    hopeful = scaled_width(width, numbers.bonus_scale, numbers.cap)
    fearful = scaled_width(width, numbers.margin_scale, numbers.cap)
    lower, upper = box_ends(p, box_half(numbers.freedom, hopeful, visits), most)
    return hopeful, fearful, lower, upper - lower


@compiled_exactly
def write_ends(model, h, s, i, p, phi, visits, most, numbers):
    """Write the lower end and the room of place s of a row. Return the widths and the lower end."""
    hopeful, fearful, lower, room = ends(p, phi, visits, most, numbers)
    model.lower[h, s, i], model.room[h, s, i] = lower, room
    return hopeful, fearful, lower


@compiled_exactly
def possible_states(most, i, states):
    """Return the number of states that can follow a pair. One row of `most` is for all states."""
    if len(most) == 1:
        return most[0, i] * states
    total = 0.0
    for y in range(len(most)):
        total += most[y, i]
    return total


@compiled_exactly
def listed_row(counts, most, model, numbers, h, i, visits, phi):
    """See `row_ends`. Unlisted states have no visits, and share one entry.

    The lists hold every state that can follow. Hence `most` has one row, for the unlisted states.
    """
    X, seen = len(counts.states), visits > 0.0
    others = X
    for s in range(len(model.successor)):
        others -= model.successor[s, i] >= 0
    allowed = most[0, i]
    possible = X - others + allowed * others
    p = 0.0 if seen else allowed / possible
    hopeful, fearful, lower, room = ends(p, phi, visits, allowed, numbers)
    model.floor[h, i], model.width[h, i] = lower, room
    bonus, margin, lowest = others * hopeful, others * fearful, others * lower
    for s in range(len(model.successor)):
        if model.successor[s, i] >= 0:
            p = counts.visits[h, s, i] / visits if seen else 1.0 / possible
            hopeful, fearful, lower = write_ends(model, h, s, i, p, phi, visits, 1.0, numbers)
            bonus, margin, lowest = bonus + hopeful, margin + fearful, lowest + lower
    return bonus, margin, lowest


@compiled_exactly
def seen_row(counts, most, model, numbers, h, i, visits, phi):
    """See `row_ends`. Lists grow here, and the task excludes no successor."""
    X, seen = len(counts.states), visits > 0.0
    begin, used = counts.begin[h, i], counts.used[h, i]
    p = 0.0 if seen else 1.0 / X
    hopeful, fearful, lower, room = ends(p, phi, visits, 1.0, numbers)
    model.floor[h, i], model.width[h, i] = lower, room
    others = X - used
    bonus, margin, lowest = others * hopeful, others * fearful, others * lower
    for place in range(begin, begin + used):
        p = counts.visits[place] / visits if seen else 1.0 / X
        hopeful, fearful, lower, room = ends(p, phi, visits, 1.0, numbers)
        model.lower[place], model.room[place] = lower, room
        bonus, margin, lowest = bonus + hopeful, margin + fearful, lowest + lower
    return bonus, margin, lowest


@by_type({ListedCounts: listed_row, SeenCounts: seen_row})
@compiled_exactly
def row_ends(counts, most, model, numbers, h, i, visits, phi):
    """Write the ends of one row of the box. Return the sums of both widths and of the lower ends.

    The sums include the widths of states that cannot follow, as in the published code.
    """
    X, last = counts.shape[1], len(most) - 1
    possible = 1.0 if visits > 0.0 else possible_states(most, i, X)
    bonus, margin, lowest = 0.0, 0.0, 0.0
    for y in range(X):
        allowed = most[min(y, last), i]
        p = counts[h, y, i] / visits if visits > 0.0 else allowed / possible
        hopeful, fearful, lower = write_ends(model, h, y, i, p, phi, visits, allowed, numbers)
        bonus, margin, lowest = bonus + hopeful, margin + fearful, lowest + lower
    return bonus, margin, lowest
