"""Checks of single numbers and names that a person gives. `what` names the value in an error."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import TypeGuard

import numpy as np

from cmdplab.errors import InputError, shown
from cmdplab.settings import MOST_EPISODES as MOST_EPISODES

LONGEST_NAME = 1000  # letters
LONGEST = 100_000_000  # steps that an episode may have
_DIGITS = 30  # most digits of a number in text


def is_whole(given: object) -> TypeGuard[int | np.integer]:
    """Return True for an integer of Python or NumPy, and False for a boolean."""
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


def whole_number(what: str, given: object, least: int = 0) -> int:
    """Return a whole number >= least as an `int`. Refuse any other value."""
    if not is_whole(given) or int(given) < least:
        raise InputError(f"{what} is {shown(given)}, not a whole number >= {least}")
    if int(given) >= 2**63:
        raise InputError(f"{what} is {shown(given)}, too large a number")
    return int(given)


def written_number(text: str) -> int:
    """Return the whole number of a text such as 100_000, 100,000 or 1e5. Else raise ValueError."""
    plain = text.strip().replace("_", "").replace(",", "")
    try:
        given = Decimal(plain)
        if given.is_finite() and given.adjusted() <= _DIGITS and given == given.to_integral_value():
            return int(given)
    except InvalidOperation:
        pass
    raise ValueError(f"{text!r} is no whole number below 1e{_DIGITS}")


def whole_if_exact(given: object) -> object:
    """Return a float without fraction, such as 1e3, as an `int`. Return others unchanged."""
    exact = isinstance(given, float) and given.is_integer() and abs(given) < 2.0**53
    return int(given) if exact else given  # type: ignore[call-overload]


def checked_episodes(given: object) -> int:
    """Return a number of episodes from 1 to MOST_EPISODES. Refuse any other value."""
    if not is_whole(given) or int(given) < 1:
        raise InputError(f"episodes is {shown(given)}, not a positive number")
    if int(given) > MOST_EPISODES:
        raise InputError(
            f"episodes is {shown(given)}, above {MOST_EPISODES:,}, the most that a run has"
        )
    return int(given)


def check_single(precision: str) -> None:
    """Refuse precisions other than "float64" for engines other than gpu."""
    if precision != "float64":
        raise InputError(f"only the engine gpu has {precision}")


def whole_horizon(horizon: object) -> int:
    """Return a horizon from 1 to `LONGEST` steps. Refuse any other value."""
    if not is_whole(horizon) or not 1 <= int(horizon) <= LONGEST:
        raise InputError(f"the horizon is {shown(horizon)}: say how many steps an episode has")
    return int(horizon)


def checked_name(what: str, given: object) -> str:
    """Return a name. Refuse empty, unprintable or very long text."""
    if not isinstance(given, str) or not given.strip() or not given.isprintable():
        raise InputError(f"{what} is {shown(given)}, not a printable name")
    if len(given) > LONGEST_NAME:
        raise InputError(f"{what} {shown(given)} has more than {LONGEST_NAME:,} letters")
    return given


def real_number(what: str, given: object) -> float:
    """Return a real number as a `float`. Refuse any other value."""
    if not (is_whole(given) or isinstance(given, float | np.floating)):
        raise InputError(f"{what} is {shown(given)}, not a number")
    try:
        return float(given)
    except OverflowError:
        raise InputError(f"{what} is {shown(given)}, too large a number") from None


def finite_number(what: str, given: object) -> float:
    """Return a finite number as a `float`. Refuse any other value."""
    number = real_number(what, given)
    if not math.isfinite(number):
        raise InputError(f"{what} is {number:g}, not a finite number")
    return number
