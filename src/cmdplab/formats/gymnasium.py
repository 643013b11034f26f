"""Environments of Gymnasium that carry their transition table, and back.

    env.unwrapped.P[s][a] = [(probability, next state, reward, terminated), ...]

Any object with such a `P` will do; gymnasium itself is never imported.

An episode of a CMDP has exactly H steps. What terminates goes, after being paid for, to one more
state, which is never left, pays nothing and costs nothing. Under `rescale` the rewards become
r' = (r - low) / (high - low), where [low, high] holds every reward *and zero*, and the last state
pays r' of zero at every step: so V = H low + (high - low) V' for every policy, whenever its
episodes end. Paying it nothing instead would reward or punish an early end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdplab.checks import whole_horizon
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.formats.assemble import (
    LARGEST,
    Affine,
    Transitions,
    assembled,
    check_unit,
    stationary_tables,
    stored,
    unit_map,
    within_budget,
)
from cmdplab.formats.entries import Row, Table, table_of
from cmdplab.types import Array, Mask

Cost = Callable[[int, int, int], float] | Array
"""c(state, action, next state), or a table [S, A] or [S, A, S]."""


class Imported(NamedTuple):
    """A problem, how its numbers relate to the environment's, and what should be said about it."""

    problem: CMDP
    reward: Affine  # r of the environment = offset + scale r of the problem
    costs: tuple[Affine, ...]  # the same of each cost
    notes: tuple[str, ...]


class _Rows(NamedTuple):
    """The table with its last state added: X = S, or S + 1 where anything terminates."""

    kernel: Array | Sparse  # [X, A, X], or lists
    reward: Array  # [X, A], expected
    costs: list[Array]  # [X, A], expected
    mask: Mask  # [X, A]


def from_gymnasium(
    env: Any,
    horizon: int | None = None,
    cost: Cost | Sequence[Cost] | None = None,
    *,
    budget: float | Sequence[float] | None = None,
    threshold: float | Sequence[float] | None = None,
    start: int | None = None,
    rescale: bool = False,
    name: str | None = None,
) -> Imported:
    """The CMDP of an environment with a transition table and costs.

    cost : what an episode may not spend too much of, V[c] <= budget; several for several
        constraints. It is paid on the way into a terminal state, and never after.
    budget : in the units of the cost. Or threshold, on the utility 1 - c: budget = H - threshold.
    start : the first state; default: the environment's, where it has only one.
    rescale : map rewards or costs that leave [0, 1] onto it; `Imported` says how.
    """
    table = table_of(env)
    H = whole_horizon(horizon)
    if cost is None:
        raise InputError("say what is constrained: give a cost and its budget")
    costs: list[Cost] = list(cost) if isinstance(cost, list | tuple) else [cost]  # type: ignore[list-item]
    budgets = _budgets(len(costs), budget, threshold, H)
    first = _start(env, start, len(table))
    cleared, notes = _over(table, first)
    rows = _rows(table, costs, cleared)
    maps = [_map(each, rescale, what) for each, what in _named(rows)]
    limits = [_limit(m, b, H) for m, b in zip(maps[1:], budgets, strict=True)]
    constraints = [
        within_budget(m.apply(table), limit, H)
        for m, table, limit in zip(maps[1:], rows.costs, limits, strict=True)
    ]
    problem = assembled(
        rows.kernel,
        maps[0].apply(rows.reward),
        constraints,
        horizon=H,
        start=first,
        name=name or type(getattr(env, "unwrapped", env)).__name__,
        mask=None if rows.mask.all() else rows.mask,
    )
    notes += [
        _words(m, what) for m, (_, what) in zip(maps, _named(rows), strict=True) if m != Affine()
    ]
    return Imported(problem, maps[0], tuple(maps[1:]), tuple(notes))


def to_gymnasium_table(problem: CMDP) -> dict[int, dict[int, Row]]:
    """P[x][a] = [(probability, next state, reward, terminated), ...] of a stationary problem.

    The reward is the objective. Nothing terminates: episodes end with the horizon. Closed pairs
    are left out.
    """
    rewards, opened = stationary_tables(problem, "a transition table")
    return {
        x: {
            a: [
                (float(p), int(y), float(rewards[0, x, a]), False)
                for y, p in zip(*problem.kernel.successors(0, x, a), strict=True)
            ]
            for a in np.flatnonzero(opened[x]).tolist()
        }
        for x in range(problem.states)
    }


def _budgets(
    count: int,
    budget: float | Sequence[float] | None,
    threshold: float | Sequence[float] | None,
    horizon: int,
) -> list[float]:
    if (budget is None) == (threshold is None):
        raise InputError("give either a budget for the cost or a threshold for 1 - cost")
    try:
        given = np.atleast_1d(np.asarray(budget if threshold is None else threshold, dtype=float))
    except (TypeError, ValueError):
        raise InputError("a budget or threshold must be a number") from None
    if given.shape != (count,):
        raise InputError(f"{count} costs need {count} budgets, not {given.size}")
    return [float(each) for each in (given if threshold is None else horizon - given)]


def _start(env: Any, start: int | None, states: int) -> int:
    if start is not None:
        return start  # the problem checks it
    weights = getattr(getattr(env, "unwrapped", env), "initial_state_distrib", None)
    possible = np.flatnonzero(weights) if weights is not None else np.arange(0)
    if len(possible) != 1:
        how = f"{len(possible)} possible first states" if len(possible) else "no first state"
        raise InputError(f"the environment has {how}: give the start, one of 0..{states - 1}")
    return int(possible[0])


def _over(table: Table, first: int) -> tuple[set[int], list[str]]:
    """The states that are entered only by terminating, and a note where their own rows pay."""
    ended = {y for row in table for entries in row.values() for _, y, _, end in entries if end}
    entered = {
        y
        for s, row in enumerate(table)
        for entries in row.values()
        for p, y, _, end in entries
        if not end and y != s and p > 0.0
    }
    over = ended - entered - {first}
    paying = sorted(s for s in over if any(r for e in table[s].values() for _, _, r, _ in e))
    if not paying:
        return over, []
    return over, [
        f"the episode is over in state {paying[0]}, so what its own row would pay is left out"
        + (f" (and in {len(paying) - 1} others)" if paying[1:] else "")
    ]


def _rows(table: Table, costs: list[Cost], cleared: set[int]) -> _Rows:
    ends = bool(cleared) or any(end for row in table for e in row.values() for *_, end in e)
    S, A = len(table), 1 + max(a for row in table for a in row)
    X = S + ends
    if X * A > LARGEST:
        raise InputError(f"a table of {X} states and {A} actions is too large")
    pay = [_cost(each, S, A) for each in costs]
    mask, paid = np.zeros((X, A), dtype=np.bool_), np.zeros((1 + len(costs), X, A))
    leads: dict[tuple[int, int, int], float] = {}  # (state, action, next state) -> probability
    if ends:
        over = [*sorted(cleared), S]
        leads |= {(x, a, S): 1.0 for x in over for a in range(A)}
        mask[over] = True
    for s, row in enumerate(table):
        for a, entries in row.items() if s not in cleared else ():
            mask[s, a] = True
            for p, y, r, end in entries:
                to = (s, a, S if end else y)
                leads[to] = leads.get(to, 0.0) + p
                paid[:, s, a] += p * np.array([r, *(each(s, a, y) for each in pay)])
    state, action, target = np.array(list(leads), dtype=np.int64).T
    every = Transitions(state, action, target, np.array(list(leads.values())))
    return _Rows(stored(every, mask, "P"), paid[0], list(paid[1:]), mask)


def _cost(given: Cost, S: int, A: int) -> Callable[[int, int, int], float]:
    """c(state, action, next state), whichever way it was given."""
    if callable(given):
        return lambda s, a, y: _finite(given(s, a, y), s, a)
    table = np.asarray(given)
    if table.dtype.kind not in "biuf" or table.shape not in ((S, A), (S, A, S)):
        raise InputError(f"a cost must be a function or a table of {(S, A)} or {(S, A, S)} numbers")
    if table.ndim == 2:
        return lambda s, a, y: _finite(table[s, a], s, a)
    return lambda s, a, y: _finite(table[s, a, y], s, a)


def _finite(value: Any, s: int, a: int) -> float:
    try:
        if np.isfinite(number := float(value)):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"the cost in state {s} of action {a} is {value!r}, not a finite number")


def _named(rows: _Rows) -> list[tuple[Array, str]]:
    names = ["reward", *(f"cost {n + 1}" for n in range(len(rows.costs)))]
    return list(zip([rows.reward, *rows.costs], names, strict=True))


def _map(table: Array, rescale: bool, what: str) -> Affine:
    found = unit_map(table)
    if found != Affine() and not rescale:
        check_unit(table, what)
    return found if rescale else Affine()


def _limit(found: Affine, budget: float, horizon: int) -> float:
    """The budget of the rescaled cost."""
    low, high = found.value(0.0, horizon), found.value(horizon, horizon)
    if not low <= budget <= high:
        raise InputError(f"a budget is {budget:g}, outside [{low:g}, {high:g}]")
    return min(max(found.shrink(budget, horizon), 0.0), float(horizon))


def _words(found: Affine, what: str) -> str:
    offset, scale = f"{found.offset:g}", f"{found.scale:g}"
    return f"the {what} is rescaled: r = {offset} + {scale} r', and V = {offset} H + {scale} V'"
