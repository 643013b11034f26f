"""Numbers that a person gives: one check for every count, seed and horizon."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TypeGuard

import numpy as np

from cmdplab.errors import InputError
from cmdplab.settings import MOST_EPISODES as MOST_EPISODES

LONGEST_NAME = 1000  # letters
LONGEST = 100_000_000  # steps that an episode may have
_DIGITS = 30  # no number that a person means has more


def is_whole(given: object) -> TypeGuard[int | np.integer]:
    """Whether something is a whole number, Python's or NumPy's; truth values are none."""
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


def whole_number(what: str, given: object, least: int = 0) -> int:
    """A whole number >= least as an `int`, or one sentence that names it."""
    if not is_whole(given) or int(given) < least:
        raise InputError(f"{what} is {given!r}, not a whole number >= {least}")
    return int(given)


def written_number(text: str) -> int:
    """A whole number as people write it: 100000, 100_000, 100,000 or 1e5; ValueError otherwise."""
    plain = text.strip().replace("_", "").replace(",", "")
    try:
        given = Decimal(plain)
    except InvalidOperation:
        raise ValueError(f"{text!r} is no whole number") from None
    if not given.is_finite() or given.adjusted() > _DIGITS:
        raise ValueError(f"{text!r} is no whole number below 1e{_DIGITS}")
    if given != given.to_integral_value():
        raise ValueError(f"{text!r} is no whole number")
    return int(given)


def whole_if_exact(given: object) -> object:
    """A float that is a whole number as an `int`, as 1e3 in a TOML file is; others as they are."""
    exact = isinstance(given, float) and given.is_integer() and abs(given) < 2.0**53
    return int(given) if exact else given  # type: ignore[call-overload]


def checked_episodes(given: object) -> int:
    """How many episodes a run has, from 1 to MOST_EPISODES."""
    if not is_whole(given) or int(given) < 1:
        raise InputError(f"episodes is {given}, not a positive number")
    if int(given) > MOST_EPISODES:
        raise InputError(f"episodes is {given}, above {MOST_EPISODES:,}, the most that a run has")
    return int(given)


def check_single(precision: str) -> None:
    """The engines other than gpu compute in float64."""
    if precision != "float64":
        raise InputError(f"only the engine gpu has {precision}")


def whole_horizon(horizon: object) -> int:
    """H, or one sentence where it is missing or no positive whole number."""
    if not is_whole(horizon) or not 1 <= int(horizon) <= LONGEST:
        raise InputError(f"the horizon is {horizon!r}: say how many steps an episode has")
    return int(horizon)


def checked_name(what: str, given: object) -> str:
    """Return a name, if it is printable text: what a terminal, a page and a file show alike."""
    if not isinstance(given, str) or not given.strip() or not given.isprintable():
        raise InputError(f"{what} is {given!r}, not a printable name")
    if len(given) > LONGEST_NAME:
        raise InputError(f"{what} {given!r} has more than {LONGEST_NAME:,} letters")
    return given


def real_number(what: str, given: object) -> float:
    """A real number as a `float`, or one sentence that names it; text is none."""
    if not (is_whole(given) or isinstance(given, float | np.floating)):
        raise InputError(f"{what} is {given!r}, not a number")
    try:
        return float(given)
    except OverflowError:
        raise InputError(f"{what} is {given}, too large a number") from None
