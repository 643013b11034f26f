"""The transition table of an environment, entry by entry: every complaint names its place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cmdplab.checks import is_whole, real_number, whole_number
from cmdplab.cmdp.transitions import ROW_SUM_TOLERANCE
from cmdplab.errors import InputError
from cmdplab.formats.assemble import LARGEST

Entry = tuple[float, int, float, bool]
"""(probability, next state, reward, terminated)"""
Row = list[Entry]
Table = list[dict[int, Row]]


def table_of(env: Any) -> Table:
    """P[state][action] of an environment, with whole numbers for states and actions."""
    given = getattr(getattr(env, "unwrapped", env), "P", None)
    if not isinstance(given, Mapping | Sequence) or len(given) == 0:
        what = type(getattr(env, "unwrapped", env)).__name__
        raise InputError(f"{what} has no transition table P: only finite, known models can be read")
    states = len(given)
    if isinstance(given, Mapping) and (set(given) != set(range(states)) or not _whole(given)):
        raise InputError(f"the states of P are not 0..{states - 1}")
    return [_actions(given[s], s, states) for s in range(states)]


def _actions(given: Any, s: int, states: int) -> dict[int, Row]:
    rows = given if isinstance(given, Mapping | Sequence) and not isinstance(given, str) else {}
    listed = dict(rows) if isinstance(rows, Mapping) else dict(enumerate(rows))
    if not listed or not _whole(listed) or not all(0 <= a < LARGEST for a in listed):
        raise InputError(f"P[{s}] has no actions 0, 1, ...")
    return {int(a): _row(row, f"P[{s}][{a}]", states) for a, row in listed.items()}


def _row(given: Any, where: str, states: int) -> Row:
    try:
        entries = [(p, y, r, end) for p, y, r, end in given]
    except (TypeError, ValueError):
        form = "(probability, next state, reward, terminated)"
        raise InputError(f"{where} is no list of {form}") from None
    if not entries:
        raise InputError(f"{where} leads nowhere")
    return [_entry(each, f"{where}[{i}]", states) for i, each in enumerate(entries)]


def _entry(given: tuple[Any, Any, Any, Any], where: str, states: int) -> Entry:
    p, y, r, end = given
    if not 0.0 <= real_number(f"the probability of {where}", p) <= 1.0 + ROW_SUM_TOLERANCE:
        raise InputError(f"the probability of {where} is {p!r}, outside [0, 1]")
    if whole_number(f"the next state of {where}", y) >= states:
        raise InputError(f"{where} leads to state {y}, outside the {states} states")
    if not math.isfinite(real_number(f"the reward of {where}", r)):
        raise InputError(f"the reward of {where} is {r!r}, not finite")
    if not (isinstance(end, bool | np.bool_) or (is_whole(end) and end in (0, 1))):
        raise InputError(f"{where} ends with {end!r}, not with whether it terminates")
    return float(p), int(y), float(r), bool(end)


def _whole(keys: Iterable[Any]) -> bool:
    return all(map(is_whole, keys))
