"""A problem whose states store past costs: (x, m) instead of x, where m counts costs.

    (x, m) -> (y, m') with probability P_h(y | x, a),    m' = m after the cost of (h, x, a)

On this problem, budgets for every episode are closed actions. Budgets for most episodes are
ordinary constraints with a utility at the last step. Hence `solve` applies. Only pairs (x, m) that
can be reached are numbered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cmdplab.cmdp.memory import Counters
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.types import Array, Indices, Mask

MOST_ENTRIES = 40_000_000  # of the largest array: 320 MB of doubles
NEVER = 2**60  # the budget that nothing keeps

Closing = Callable[[int, Indices, Indices], Mask]  # (h, x [n], m [n]) -> closed [n, A]


class Augmented(NamedTuple):
    """The reachable pairs (x, m), numbered, with their actions."""

    x: Indices  # [n], the state of the problem
    m: Indices  # [n]
    start: int
    mask: Mask  # [H, n, A]; a pair that cannot be reached at a step has what x has there
    kernel: Sparse  # over n states
    last: Mask  # [n], true where an episode can be at its last step

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Return H, n, A."""
        H, n, A = self.mask.shape
        return H, n, A


class _Layers(NamedTuple):
    """The codes x * M + m that can be reached at each step, ascending, and the open actions."""

    code: list[Indices]
    opened: list[Mask]  # [n_h, A]


def augmented(problem: CMDP, memory: Counters, closed: Closing) -> Augmented | None:
    """Return the problem with memory and without the closed actions, or None if no policy is left.

    An action that may lead to a pair without any action is closed too.
    """
    lists, M = _lists(problem), memory.levels
    if problem.states * M >= 2**62:
        raise InputError(f"the budgets need {M:,} values of memory in {problem.states:,} states")
    walk = _Walk(problem, lists, memory)
    layers = _alive(walk, _reached(walk, closed))
    if layers is None:
        return None
    codes = np.unique(np.concatenate(layers.code))
    x, m = np.divmod(codes, M)
    where = [np.searchsorted(codes, each) for each in layers.code]
    mask = np.array(problem.opened[:, x])
    for h, opened in enumerate(layers.opened):
        mask[h, where[h]] = opened
    _check_size(len(problem.reward) * mask.size, len(codes))
    last = np.isin(codes, layers.code[-1])
    return Augmented(x, m, int(where[0][0]), mask, _kernel(walk, codes, where, layers), last)


class _Walk(NamedTuple):
    problem: CMDP
    lists: Sparse
    memory: Counters

    @property
    def stationary(self) -> bool:
        """Return True if the moves are equal at every step."""
        steady = (not (each.step != each.step[0]).any() for each in self.memory.parts)
        return self.lists.stationary and all(steady)

    def ahead(self, h: int, code: Indices) -> tuple[Indices, Array]:
        """Return the codes [n, A, S] that follow each pair, and their probabilities."""
        _check_size(code.size * self.lists.successor[0].size, len(code))
        M = self.memory.levels
        x, m = np.divmod(code, M)
        after = np.broadcast_to(self.memory.from_states(h, x, m), (len(x), self.problem.actions))
        return self.lists.successor[x] * M + after[..., None], self.lists.at(h)[x]


def _lists(problem: CMDP) -> Sparse:
    given = problem.transition
    if isinstance(given, Sparse):
        return given
    return Sparse.of(given[0] if problem.stationary or problem.horizon == 1 else given)


def _reached(walk: _Walk, closed: Closing) -> _Layers:
    """Move forward from the start, by every action that is not closed."""
    problem, M = walk.problem, walk.memory.levels
    code = np.array([problem.start * M + walk.memory.start])
    layers = _Layers([], [])
    for h in range(problem.horizon):
        x, m = np.divmod(code, M)
        opened = problem.opened[h][x] & ~closed(h, x, m)
        layers.code.append(code)
        layers.opened.append(opened)
        if h + 1 < problem.horizon:
            following, probability = walk.ahead(h, code)
            code = np.unique(following[opened[..., None] & (probability > 0.0)])
    return layers


def _alive(walk: _Walk, layers: _Layers) -> _Layers | None:
    """Close actions that may lead to pairs without actions, and drop pairs no longer reached."""
    mended = False
    for h in reversed(range(len(layers.code) - 1)):
        dead = layers.code[h + 1][~layers.opened[h + 1].any(axis=-1)]
        if len(dead):
            following, probability = walk.ahead(h, layers.code[h])
            fatal = np.isin(following, dead) & (probability > 0.0)
            layers.opened[h] &= ~fatal.any(axis=-1)
            mended = True
    if not layers.opened[0].any():
        return None
    if not mended:
        return layers

    def shut(h: int, x: Indices, m: Indices) -> Mask:
        place = np.searchsorted(layers.code[h], x * walk.memory.levels + m)
        return np.asarray(~layers.opened[h][place])

    return _reached(walk, shut)


def _kernel(walk: _Walk, codes: Indices, where: list[Indices], layers: _Layers) -> Sparse:
    """Return lists of successors of the numbered pairs. Unread lists lead to any state."""
    n, A = len(codes), walk.problem.actions
    last = walk.problem.horizon - 1
    if walk.stationary:
        used = np.zeros((n, A), dtype=bool)
        for h in range(last):
            used[where[h]] |= layers.opened[h]
        return _listed((n, A), [_edges(walk, codes, 0, np.arange(n), used)], False)
    steps = [_edges(walk, codes, h, where[h], layers.opened[h]) for h in range(last)]
    return _listed((n, A), [*steps, _edges(walk, codes, 0, where[0][:0], layers.opened[0][:0])])


class _Edges(NamedTuple):
    """The moves of one step: pair s * A + a goes to a state with a probability."""

    pair: Indices
    state: Indices
    probability: Array


def _edges(walk: _Walk, codes: Indices, h: int, place: Indices, used: Mask) -> _Edges:
    following, probability = walk.ahead(h, codes[place])
    s, a, slot = np.nonzero(used[..., None] & (probability > 0.0))
    state = np.searchsorted(codes, following[s, a, slot])
    return _Edges(place[s] * used.shape[1] + a, state, probability[s, a, slot])


def _listed(sizes: tuple[int, int], steps: list[_Edges], by_step: bool = True) -> Sparse:
    """Return lists with the moves of every step, as one kernel for all or one for each."""
    n, A = sizes
    keys, place = np.unique(
        np.concatenate([each.pair * n + each.state for each in steps]), return_inverse=True
    )
    pair, state = np.divmod(keys, n)
    count = np.bincount(pair, minlength=n * A)
    slot = np.arange(len(keys)) - (np.cumsum(count) - count)[pair]  # its place in its row
    S = max(int(count.max(initial=1)), 1)
    _check_size(len(steps) * n * A * S, n)
    successor = np.zeros((n * A, S), dtype=np.int64)
    successor[pair, slot] = state
    probability = np.zeros((len(steps), n * A, S))
    first = 0
    for row, edges in zip(probability, steps, strict=True):
        here = place[first : first + len(edges.pair)]
        row[edges.pair, slot[here]] = edges.probability
        row[~row.any(axis=-1), 0] = 1.0
        first += len(edges.pair)
    table = probability.reshape(len(steps), n, A, S)
    return Sparse(successor.reshape(n, A, S), table if by_step else table[0])


def _check_size(entries: int, states: int) -> None:
    if entries > MOST_ENTRIES:
        raise InputError(
            f"the budgets need {states:,} pairs of a state and a sum of costs, which makes arrays "
            f"of {entries:,} numbers, above {MOST_ENTRIES:,}: a coarser grid=... needs fewer"
        )


def needed(problem: CMDP, step: Indices, closed: Mask, anytime: bool) -> Indices:
    """Return the least budget [H, X, A] with which a pair can be followed surely to the end.

        need_h(x, a) = c_h(x, a) + max over successors y of need_{h+1}(y)
        need_h(x)    = min_a need_h(x, a)

    An anytime budget uses max(0, need_{h+1}(y)). If a closed pair cannot be avoided, the value is
    at least `NEVER`.
    """
    lists, H = _lists(problem), problem.horizon
    need = np.empty(step.shape, dtype=np.int64)
    later = np.zeros(problem.states, dtype=np.int64)
    for h in reversed(range(H)):
        if h < H - 1:
            reached = np.where(lists.at(h) > 0.0, later[lists.successor], -NEVER)
            worst = reached.max(axis=-1)
            worst = np.maximum(worst, 0) if anytime else worst
        else:
            worst = np.zeros(step.shape[1:], dtype=np.int64)
        barred = closed[h] | ~problem.opened[h] | (worst >= NEVER)
        need[h] = np.where(barred, 2 * NEVER, step[h] + worst)
        later = need[h].min(axis=-1)
    return need
