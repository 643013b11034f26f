"""Layout of arrays for the compiled loops, and conversions to it and back.

The vectorised axis is the state: a pair (x, a) is at a * P + x. P is X rounded up to a multiple
of 8, and C is X + 1 + N rounded up likewise. Every array starts on a 64-byte boundary:
unaligned, each 64-byte load touches two cache lines and the products take 20 % longer. Rewards are
evaluated in pairs, so their number R is rounded up to an even one with a row of zeros.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import numpy as np

from cmdplab.algorithms.counts import NO_ENDS, no_rows
from cmdplab.algorithms.running import outside, seen
from cmdplab.algorithms.running.seen import TABLE, SeenCounts
from cmdplab.algorithms.running.storage import ListedCounts, ListedWorld, Successors, World
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse, lists
from cmdplab.numerics.arrays import aligned, from_pairs, padded, places, to_pairs
from cmdplab.types import Array, Indices, Mask

AnyCounts = Array | ListedCounts | SeenCounts

# Axes of the arrays in a state, as annotations, by which `laid_out` and `natural` convert them. A
# plain Array keeps its axes. A number becomes an array of one, into which the loops write.
COUNTS, PAIRS, ENDS = "counts", "pairs", "ends"
Counts = Annotated[Array, COUNTS]  # [L, X, A, X], visits to (h, x, a, y); other forms: counts.py
Pairs = Annotated[Array, PAIRS]  # [..., X, A]
Ends = Annotated[Array, ENDS]  # [L, X, A], visits whose successor is not known; empty if none

# Names that a state of `Safe(...)` has for arrays with another name in all loops.
IN_LOOPS = {"visited": "counts", "utility_sums": "reward_sums"}


class Storage(NamedTuple):
    """The form of the counts of a run: lists if the kernel has few successors.

    A saved state has tables if the problem was given as a table, so that both engines can continue
    it. If the kernel is unknown, lists grow with the transitions seen. With few states a table
    costs no more, and is used instead.
    """

    listed: Sparse | None  # the lists; None: tables
    successors: int | None  # S, if a state keeps lists too
    written: Sparse | None  # the lists, if a state has tables nevertheless
    seen: bool = False  # True if lists grow with the transitions seen

    @classmethod
    def of(cls, problem: CMDP | None, task: Task) -> Storage:
        """Return the storage for a problem. Successors that a learner was given are a table."""
        if problem is None:
            large = task.reward.shape[2] > TABLE and task.support is None
            return cls(None, None, None, large)
        if isinstance(problem.transition, Sparse):
            return cls(problem.transition, problem.transition.successor.shape[2], None)
        listed = lists(problem.kernel)
        return cls(listed, None, listed)

    def nothing(self, task: Task, layers: int) -> Array:
        """Return natural counts of no visits, or a known kernel instead."""
        _, _, X, A = task.reward.shape
        known = task.known_rows(self.successors)
        if known is not None:
            return known
        return no_rows() if self.seen else np.zeros((layers, X, A, self.successors or X))

    def stored(self, counts: Array, uniform: Array) -> AnyCounts:
        """Return natural counts in the form of a store; `uniform` [L, X, A] marks rows of ones."""
        if self.seen:
            return seen.stored(counts, uniform)
        return stored_counts(counts, uniform, self.listed)


class Scratch(NamedTuple):
    """Space for one episode, so that the loops allocate nothing."""

    value: Array  # [R, P]
    action_value: Array  # [R, A * P]
    total: Array  # [A * P], Q~^0 + sum_n lambda^n Q~^n
    top: Array  # [P], of a softmax
    mass: Array  # [P]
    here: Array  # [2, C], state occupancies of two policies
    occupancy: Array  # [2, A * P]
    row: Array  # [P], one row of Pbar
    policies: Array  # [2, H, A * P], those whose returns are computed together
    returns: Array  # [2, 1 + N]
    states: Indices  # [H + 1]
    actions: Indices  # [H]
    samples: Array  # [1 + N, H], of rewards; [0, H] if they are known


@cache
def axes(state: Any) -> dict[str, Any]:
    """Return the axes of each field of a kind of state but `episode`, or the type of a number."""
    hints = get_type_hints(state, include_extras=True)
    return {
        name: hint if hint in (int, float) else (*get_args(hint)[1:], None)[0]
        for name, hint in hints.items()
        if name != "episode"
    }


def learner_type(state: Any, inputs: Any) -> Any:
    """Return the type of a learner's arrays: those of a state for the loops, and its inputs."""
    fields = [IN_LOOPS.get(name, name) for name, axis in axes(state).items() if axis != ENDS]
    return namedtuple("Learner", [*fields, *inputs._fields], module=inputs.__module__)


def laid_out(
    state: Any, task: Task, storage: Storage, layers: int, uniform: Array | None = None
) -> dict[str, Any]:
    """Return the fields of a state for the loops; `uniform` [L, X, A] marks rows of ones."""
    nowhere = np.zeros((layers, *task.reward.shape[2:])) if uniform is None else uniform
    found: dict[str, Any] = {}
    kind: Any = type(state)
    for field, axis in axes(kind).items():
        value, name = getattr(state, field), IN_LOOPS.get(field, field)
        if field == "reward_sums":
            value = outside.checked_sums(task, value)
        if axis == COUNTS:
            found[name] = storage.stored(value, nowhere)
        elif axis == PAIRS:
            found[name] = to_pairs(value)
        elif axis != ENDS:
            found[name] = np.array([value]) if axis in (int, float) else np.array(value, order="C")
    return found


def natural(kind: Any, learner: Any, task: Task, storage: Storage, episode: int) -> Any:
    """Return a state of this kind from the arrays of the loops."""
    _, _, X, A = task.reward.shape
    moves: Any = getattr(learner, "moves", getattr(learner, "visits", None))
    found: dict[str, Any] = {}
    for name, axis in axes(kind).items():
        if axis == ENDS:
            found[name] = natural_ends(learner.visits, moves, X, A)
            continue
        value = getattr(learner, IN_LOOPS.get(name, name))
        if axis == COUNTS:
            found[name] = natural_counts(value, moves, X, A, storage.written)
        elif axis == PAIRS:
            found[name] = from_pairs(value, X, A)
        else:
            found[name] = axis(value[0]) if axis in (int, float) else value.copy()
    return kind(**found, episode=episode)


def in_pairs(problem: CMDP | None, task: Task) -> tuple[Storage, Any]:
    """Return the storage of counts, and the true kernel in pairs; None without a problem."""
    storage = Storage.of(problem, task)
    return storage, None if problem is None else world(problem, storage.listed)


def in_natural_axes(problem: CMDP | None, task: Task) -> tuple[Storage, Any]:
    """Return tables as storage, and the true kernel as lists of successors in natural axes."""
    return Storage(None, None, None), None if problem is None else successors(problem)


def successors(problem: CMDP) -> Successors:
    """Return the kernel of a problem as lists of its possible successors, in natural axes."""
    given = problem.kernel
    if isinstance(given, Sparse):
        kernel = given.probability if given.probability.ndim == 4 else given.probability[None]
        states = np.broadcast_to(given.successor, kernel.shape)
    else:
        kernel = given.table[:1] if given.table.strides[0] == 0 else given.table
        states = np.broadcast_to(np.arange(kernel.shape[-1]), kernel.shape)
    possible = kernel > 0.0
    end = np.cumsum(np.count_nonzero(possible, axis=-1)).reshape(kernel.shape[:3])
    begin = np.concatenate([[0], end.ravel()[:-1]]).reshape(end.shape)
    cumulative = np.cumsum(kernel, axis=-1)[possible]  # adding zeros changes no bit of a sum
    cumulative[end - 1] = 2.0
    lists_of = (states[possible], kernel[possible], cumulative)
    return Successors(np.stack([begin, end], axis=-1), *lists_of, np.array(problem.reward))


def world(problem: CMDP, listed: Sparse | None = None) -> World | ListedWorld:
    """Return the kernel of a problem, laid out for roll-outs and for exact returns."""
    return _dense_world(problem) if listed is None else _listed_world(problem, listed)


def _listed_world(problem: CMDP, listed: Sparse) -> ListedWorld:
    probability = listed.probability if listed.probability.ndim == 4 else listed.probability[None]
    cumulative = np.cumsum(probability, axis=-1)
    cumulative[np.arange(probability.shape[-1]) >= _last(probability)[..., None]] = 2.0
    return ListedWorld(
        successor=places(listed.successor),
        probability=to_pairs(np.moveaxis(probability, 3, 1)),
        cumulative=cumulative,
        reward=to_pairs(problem.reward),
    )


def _last(probability: Array) -> Indices:
    """Return [..., X, A]: the last place of positive probability.

    From there on a cumulative sum is set beyond every uniform. Rounding can then never lead to a
    state of probability zero.
    """
    places = probability.shape[-1]
    return np.asarray(places - 1 - np.argmax(probability[..., ::-1] > 0.0, axis=-1))


def _dense_world(problem: CMDP) -> World:
    H, X, A = problem.horizon, problem.states, problem.actions
    N = problem.constraints
    kernel = aligned(H, A, padded(X), padded(X + 1 + N))
    table = problem.table
    kernel[:, :, :X, :X] = table.transpose(0, 2, 1, 3)
    kernel[:, :, :X, X : X + 1 + N] = problem.reward.transpose(1, 3, 2, 0)
    cumulative = np.cumsum(table, axis=-1)
    cumulative[np.arange(X) >= _last(table)[..., None]] = 2.0
    return World(kernel.reshape(H, -1, padded(X + 1 + N)), cumulative)


def scratch(task: Task, storage: Storage, plays: bool) -> Scratch:
    """Return working space for a task. Only a run on a kernel needs that of exact returns."""
    rewards, H, X, A = task.reward.shape
    P, R = padded(X), rewards + rewards % 2
    row = X if storage.listed is None else storage.listed.successor.shape[2]
    return Scratch(
        value=aligned(R, P),
        action_value=aligned(R, A * P),
        total=aligned(A * P),
        top=aligned(P),
        mass=aligned(P),
        here=aligned(2, padded(X + rewards)),
        occupancy=aligned(2, A * P),
        row=aligned(padded(1 if storage.seen else row)),
        policies=aligned(2, H if plays else 0, A * P),
        returns=aligned(2, rewards),
        states=np.zeros(H + 1, np.int64),
        actions=np.zeros(H, np.int64),
        samples=np.zeros((len(task.no_samples), H)),
    )


def with_row_for(counts: AnyCounts, scratch: Scratch) -> Scratch:
    """Return the scratch with a row for the longest list seen. Other stores know it beforehand."""
    if not isinstance(counts, SeenCounts) or len(scratch.row) >= counts.size[seen.LONGEST]:
        return scratch
    return scratch._replace(row=aligned(padded(2 * int(counts.size[seen.LONGEST]))))


def stored_counts(counts: Array, uniform: Array, listed: Sparse | None) -> Array | ListedCounts:
    """Return natural counts [L, X, A, X or S] as a store; `uniform` [L, X, A] marks unit rows."""
    if listed is None:
        return to_pairs(np.moveaxis(counts + uniform[..., None], 3, 1))
    if counts.shape[-1] != listed.successor.shape[-1]:  # a table: only listed states have visits
        counts = np.take_along_axis(counts, listed.successor[None], axis=-1)
        counts[:, ~used_places(listed)] = 0.0
    anywhere = to_pairs(uniform) if uniform.any() else np.zeros((len(counts), 0))
    visits = to_pairs(np.moveaxis(counts, 3, 1))
    return ListedCounts(places(listed.successor), visits, anywhere, np.zeros(len(listed.successor)))


def used_places(listed: Sparse) -> Mask:
    """Return [X, A, S]: True for places of the lists that are not empty."""
    positive = listed.probability > 0.0
    return np.asarray(positive if positive.ndim == 3 else positive.any(axis=0))


def natural_counts(
    store: AnyCounts, moves: Array, states: int, actions: int, listed: Sparse | None
) -> Array:
    """Return [L, X, A, X] or, for lists, [L, X, A, S]; `listed` given, lists become tables."""
    if isinstance(store, SeenCounts):
        return seen.natural(store, states, actions)
    if isinstance(store, ListedCounts):
        counts = np.moveaxis(from_pairs(store.visits, states, actions), 1, 3)
        if listed is None:
            return np.ascontiguousarray(counts)
        table = np.zeros((*counts.shape[:3], states))
        x, a = np.ogrid[:states, :actions]
        for s in range(counts.shape[3]):
            table[:, x, a, listed.successor[..., s]] += counts[..., s]
        return table
    visited = from_pairs(moves, states, actions)[..., None] > 0.0
    counts = np.moveaxis(from_pairs(store, states, actions), 1, 3)
    return np.where(visited, counts, 0.0)


def natural_ends(visits: Array, moves: Array, states: int, actions: int) -> Array:
    """Return [L, X, A], the visits without a known successor; empty if there are none."""
    ends = from_pairs(visits - moves, states, actions)
    return ends if ends.any() else NO_ENDS
