"""Problems from Gymnasium environments with a transition table, and the reverse.

    env.unwrapped.P[s][a] = [(probability, next state, reward, terminated), ...]

Any object with such a `P` is accepted. Gymnasium is not imported. S is the number of its states.

An episode of a CMDP has exactly H steps. A transition that terminates pays its reward and leads to
an added state, which is never left and has reward 0 and cost 0. With `rescale` the rewards become
r' = (r - low) / (high - low), where [low, high] contains every reward and 0. The added state then
pays the r' of 0. Hence V = H low + (high - low) V' for every policy, whenever its episodes end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.checks import is_whole
from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Average, signal_names
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.formats.assemble import (
    ROUNDING,
    Affine,
    Episodes,
    How,
    Listed,
    Problem,
    Signal,
    judged,
    problem_of,
    stationary_tables,
    unit_map,
)
from cmdplab.formats.entries import Move, Numbers, moves_of
from cmdplab.formats.kernels import LARGEST, Transitions, stored
from cmdplab.types import Array, Mask

Cost = Callable[[int, int, int], float] | Array
"""c(state, action, next state), or a table [S, A] or [S, A, S]."""
Row = list[tuple[float, int, float, bool]]


class Imported(NamedTuple):
    """Problem of an environment, the maps of reward and costs to its numbers, and notes."""

    problem: Problem
    reward: Affine  # r of the environment = offset + scale r of the problem
    costs: tuple[Affine, ...]  # the map of each cost, as for the reward
    notes: tuple[str, ...]


def from_gymnasium(
    env: Any,
    horizon: int | None = None,
    cost: Cost | Sequence[Cost] | None = None,
    *,
    budget: float | Sequence[float] | None = None,
    threshold: float | Sequence[float] | None = None,
    discount: float | None = None,
    criterion: str | None = None,
    start: int | npt.ArrayLike | None = None,
    rescale: bool = False,
    name: str | None = None,
) -> Imported:
    """Return the problem of an environment with a transition table and costs.

    horizon : H, for a `CMDP`; or discount, or criterion="average", for a `StationaryCMDP`. cost :
    V[c] must not exceed its budget. A list gives several constraints, () none. The transition
    into a terminal state has a cost, later steps have none. budget : in the units of the cost; or
    threshold, for the utility 1 - c: budget = H - threshold. start : the first state, or a
    distribution [S]; default: that of the environment. rescale : map rewards or costs outside [0,
    1] onto it, as episodes need. `Imported` has the maps.
    """
    moves, numbers = moves_of(env)
    how = judged(horizon, discount, criterion)
    if cost is None:
        raise InputError("say what is constrained: give a cost and its budget")
    costs: list[Cost] = list(cost) if isinstance(cost, list | tuple) else [cost]  # type: ignore[list-item]
    budgets = _budgets(len(costs), budget, threshold, how)
    first = _start(env, start, numbers)
    cleared, notes = _over(moves, first)
    kernel, paid, mask = _rows(moves, costs, cleared, numbers)
    names, more = signal_names(0, len(costs)), len(mask) - numbers.states
    is_cost = [False, *(True for _ in costs)]
    signals = tuple(map(Signal, names, paid, [0.0, *budgets], is_cost))
    maps = [_map(each.table, rescale, how, each.of) for each in signals]
    labels = _labels(numbers, mask.shape)
    called = name or type(getattr(env, "unwrapped", env)).__name__
    model = Listed(kernel, mask, signals, labels, called)
    padded = first if isinstance(first, int) else np.append(first, np.zeros(more))
    notes += [
        f"the {what} is rescaled: r = {m.offset:g} + {m.scale:g} r', "
        f"and V = {m.offset:g} H + {m.scale:g} V'"
        for m, what in zip(maps, names, strict=True)
        if m != Affine()
    ]
    if isinstance(how, Average) and more:
        notes.append("what ends has ended for ever: its long-run average is nothing")
    return Imported(problem_of(model, how, padded), maps[0], tuple(maps[1:]), tuple(notes))


def to_gymnasium_table(problem: CMDP) -> dict[int, dict[int, Row]]:
    """Return P[x][a] = [(probability, next state, reward, terminated), ...] of a problem.

    All steps must be equal. The reward is the objective. `terminated` is False. Closed pairs are
    left out.
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
    how: How,
) -> list[float]:
    if count and (budget is None) == (threshold is None):
        raise InputError("give either a budget for the cost or a threshold for 1 - cost")
    if threshold is not None and not isinstance(how, Episodes):
        raise InputError("a threshold for 1 - cost needs a horizon: give a budget")
    plain = budget if threshold is None else threshold
    given = np.atleast_1d(floats("a budget or threshold", [] if plain is None else plain))
    if given.shape != (count,):
        raise InputError(f"{count} costs need {count} budgets, not {given.size}")
    if threshold is not None and isinstance(how, Episodes):
        given = how.total - given
    return [float(each) for each in given]


def _start(env: Any, start: int | npt.ArrayLike | None, numbers: Numbers) -> int | Array:
    if is_whole(start):
        return int(start) - numbers.first_state  # the problem checks it
    if start is not None:
        return floats("the start distribution", start)
    weights = getattr(getattr(env, "unwrapped", env), "initial_state_distrib", None)
    possible = np.flatnonzero(weights) if weights is not None else np.arange(0)
    if not len(possible):
        states = f"{numbers.first_state}..{numbers.first_state + numbers.states - 1}"
        raise InputError(f"the environment has no first state: give the start, one of {states}")
    if len(possible) == 1:
        return int(possible[0])
    return floats("the environment's first states", weights)  # type: ignore[arg-type]


def _labels(numbers: Numbers, shape: tuple[int, ...]) -> Labels:
    if not numbers.first_state and not numbers.first_action:
        return Labels()
    states = [str(numbers.first_state + x) for x in range(numbers.states)]
    states += ["over"] * (shape[0] - numbers.states)
    return Labels(tuple(states), tuple(str(numbers.first_action + a) for a in range(shape[1])))


def _over(moves: list[Move], first: int | Array) -> tuple[set[int], list[str]]:
    """Return the states that are entered only by terminating, and a note if such a state pays."""
    ended = {e.following for e in moves if e.ended}
    goes_on = (e for e in moves if not e.ended and e.following != e.state and e.probability > 0.0)
    begun = {first} if isinstance(first, int) else set(np.flatnonzero(first).tolist())
    over = ended - {e.following for e in goes_on} - begun
    paying = sorted({e.state for e in moves if e.reward} & over)
    if not paying:
        return over, []
    return over, [
        f"the episode is over in state {paying[0]}, so what its own row would pay is left out"
        + (f" (and in {len(paying) - 1} others)" if paying[1:] else "")
    ]


def _rows(
    moves: list[Move], costs: list[Cost], cleared: set[int], numbers: Numbers
) -> tuple[Array | Sparse, Array, Mask]:
    """Return kernel, expected rewards and costs [1 + N, X, A], and mask [X, A].

    If any transition terminates, a last state is added: X = S + 1. cleared : states of `_over`.
    """
    ends = bool(cleared) or any(e.ended for e in moves)
    S, A = numbers.states, 1 + max(e.action for e in moves)
    X = S + ends
    if X * A > LARGEST:
        raise InputError(f"a table of {X} states and {A} actions is too large")
    pay = [_cost(each, S, A, numbers) for each in costs]
    mask, paid = np.zeros((X, A), dtype=np.bool_), np.zeros((1 + len(costs), X, A))
    leads: dict[tuple[int, int, int], float] = {}  # (state, action, next state) -> probability
    if ends:
        over = [*sorted(cleared), S]
        leads |= {(x, a, S): 1.0 for x in over for a in range(A)}
        mask[over] = True
    for s, a, p, y, r, end in moves:
        if s not in cleared:
            to = (s, a, S if end else y)
            leads[to] = leads.get(to, 0.0) + p
            paid[:, s, a] += p * np.array([r, *(each(s, a, y) for each in pay)])
            mask[s, a] = True
    state, action, target = np.array(list(leads), dtype=np.int64).T
    every = Transitions(state, action, target, np.array(list(leads.values())))
    return stored(every, mask), paid, mask


def _cost(given: Cost, S: int, A: int, numbers: Numbers) -> Callable[[int, int, int], float]:
    """Return c(state, action, next state) with arguments counted from 0. Results are checked."""
    table, x0, a0 = np.asarray(given), numbers.first_state, numbers.first_action
    plain = table.dtype.kind in "biuf" and table.shape in ((S, A), (S, A, S))
    if not (callable(given) or plain):
        raise InputError(f"a cost must be a function or a table of {(S, A)} or {(S, A, S)} numbers")

    def cost(s: int, a: int, y: int) -> float:
        if callable(given):
            value: Any = given(x0 + s, a0 + a, x0 + y)
        else:
            value = table[s, a] if table.ndim == 2 else table[s, a, y]
        try:
            if np.isfinite(number := float(value)):
                return number
        except (TypeError, ValueError, OverflowError):
            pass
        raise InputError(f"the cost in state {s} of action {a} is {value!r}, not a finite number")

    return cost


def _map(table: Array, rescale: bool, how: How, what: str) -> Affine:
    found = unit_map(table) if isinstance(how, Episodes) else Affine()
    if rescale or found == Affine():
        return found
    low, high = float(table.min()), float(table.max())
    if not (low >= -ROUNDING and high <= 1.0 + ROUNDING):
        raise InputError(f"the {what} lies in [{low:g}, {high:g}], not in [0, 1]: rescale it")
    return Affine()
