"""Numbers that a person gives: one check for every count, seed and horizon."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from cmdplab.errors import InputError

LONGEST = 100_000_000  # steps that an episode may have


def is_whole(given: object) -> TypeGuard[int | np.integer]:
    """Whether something is a whole number, Python's or NumPy's; truth values are none."""
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


def whole_number(what: str, given: object, least: int = 0) -> int:
    """A whole number >= least as an `int`, or one sentence that names it."""
    if not is_whole(given) or int(given) < least:
        raise InputError(f"{what} is {given!r}, not a whole number >= {least}")
    return int(given)


def whole_horizon(horizon: object) -> int:
    """H, or one sentence where it is missing or no positive whole number."""
    if not is_whole(horizon) or not 1 <= int(horizon) <= LONGEST:
        raise InputError(f"the horizon is {horizon!r}: say how many steps an episode has")
    return int(horizon)


def real_number(what: str, given: object) -> float:
    """A real number as a `float`, or one sentence that names it; text is none."""
    if not (is_whole(given) or isinstance(given, float | np.floating)):
        raise InputError(f"{what} is {given!r}, not a number")
    return float(given)
