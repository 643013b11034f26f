"""Entries of the transition table P of an environment. Every error names its place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdplab.checks import is_whole, real_number, whole_number
from cmdplab.cmdp.transitions import ROW_SUM_TOLERANCE
from cmdplab.errors import InputError
from cmdplab.formats.kernels import LARGEST


class Move(NamedTuple):
    """Entry of the table: a transition from a pair. States and actions are counted from 0."""

    state: int
    action: int
    probability: float
    following: int
    reward: float
    ended: bool


class Numbers(NamedTuple):
    """Number of states, and the environment's numbers of its first state and first action."""

    states: int
    first_state: int = 0
    first_action: int = 0


def moves_of(env: Any) -> tuple[list[Move], Numbers]:
    """Return the entries of P[state][action] of an environment, and its numbers."""
    given = getattr(getattr(env, "unwrapped", env), "P", None)
    if not isinstance(given, Mapping | Sequence) or len(given) == 0:
        what = type(getattr(env, "unwrapped", env)).__name__
        raise InputError(f"{what} has no transition table P: only finite, known models can be read")
    states = len(given)
    first = _first(env, "observation_space")
    if not isinstance(given, Mapping) or set(given) == set(range(states)):
        first = 0
    numbers = Numbers(states, first, _first(env, "action_space"))
    wanted = range(first, first + states)
    if isinstance(given, Mapping) and (set(given) != set(wanted) or not all(map(is_whole, given))):
        raise InputError(f"the states of P are not {first}..{first + states - 1}")
    listed = [
        _listed(given[s], s) for s in (wanted if isinstance(given, Mapping) else range(states))
    ]
    if any(0 in each for each in listed):
        numbers = numbers._replace(first_action=0)
    moves = list[Move]()
    for x, rows in enumerate(listed):
        for a, row in rows.items():
            where, pair = f"P[{x + numbers.first_state}][{a}]", (x, a - numbers.first_action)
            moves += _row(row, where, pair, numbers)
    return moves, numbers


def _first(env: Any, space: str) -> int:
    start = getattr(getattr(env, space, None), "start", 0)
    return int(start) if is_whole(start) else 0


def _listed(given: Any, s: int) -> dict[int, Any]:
    rows = given if isinstance(given, Mapping | Sequence) and not isinstance(given, str) else {}
    listed = dict(rows) if isinstance(rows, Mapping) else dict(enumerate(rows))
    if not listed or not all(map(is_whole, listed)) or not all(0 <= a < LARGEST for a in listed):
        raise InputError(f"P[{s}] has no actions 0, 1, ...")
    return {int(a): row for a, row in listed.items()}


def _row(given: Any, where: str, pair: tuple[int, int], numbers: Numbers) -> list[Move]:
    try:
        entries = [(p, y, r, end) for p, y, r, end in given]
    except (TypeError, ValueError):
        form = "(probability, next state, reward, terminated)"
        raise InputError(f"{where} is no list of {form}") from None
    if not entries:
        raise InputError(f"{where} leads nowhere")
    return [_entry(each, f"{where}[{i}]", pair, numbers) for i, each in enumerate(entries)]


def _entry(given: Any, where: str, pair: tuple[int, int], numbers: Numbers) -> Move:
    p, y, r, end = given
    states, first, _ = numbers
    if not 0.0 <= real_number(f"the probability of {where}", p) <= 1.0 + ROW_SUM_TOLERANCE:
        raise InputError(f"the probability of {where} is {p!r}, outside [0, 1]")
    if not first <= whole_number(f"the next state of {where}", y) < first + states:
        raise InputError(f"{where} leads to state {y}, outside the {states} states")
    if not math.isfinite(real_number(f"the reward of {where}", r)):
        raise InputError(f"the reward of {where} is {r!r}, not finite")
    if not (isinstance(end, bool | np.bool_) or (is_whole(end) and end in (0, 1))):
        raise InputError(f"{where} ends with {end!r}, not with whether it terminates")
    return Move(*pair, float(p), int(y) - first, float(r), bool(end))
