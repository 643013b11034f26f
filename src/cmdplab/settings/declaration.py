"""What is said of a setting when it is declared: its default, its range, its words, who has it."""

from __future__ import annotations

import math
import sys
from typing import Any, Literal, NamedTuple

from cmdplab.errors import InputError

MOST_EPISODES = 10**12  # of a run: weeks at a microsecond each; counts stay exact in a double

# What a row may need to be told. A setting of such a thing is one only of the rows that need it.
EPISODES = "number of episodes"
SLATER_GAP = "Slater gap"
SAFE_POLICY = "safe policy"
ACCURACY = "accuracy"
MARGIN = "a margin"  # no need that is listed: a row has one or has not


class Range(NamedTuple):
    """The numbers from lowest to highest, both included."""

    lowest: float
    highest: float
    outside: str  # how a number is described that is not among them

    def check(self, what: str, value: float) -> None:
        """Refuse a number outside; NaN is outside."""
        if not self.lowest <= value <= self.highest:
            shown = f"{value:g}" if isinstance(value, float) else value
            raise InputError(f"{what} is {shown}, {self.outside}")


_LEAST = math.ulp(0.0)  # the smallest float above 0
POSITIVE = Range(_LEAST, sys.float_info.max, "not a finite number > 0")
UNIT = Range(_LEAST, 1.0, "outside (0, 1]")


class Declared(NamedTuple):
    """All that is known of a setting but its name and its type, which stand beside it."""

    default: Any  # of a row that does not say otherwise
    help: str  # a sentence for a person who chooses a value
    meaning: str  # in a few words, for tables and JSON
    none: str  # what it means that a row has no value for it
    range: Range | None = None
    choices: tuple[str, ...] = ()
    families: tuple[str, ...] = ()  # whose rows read it; empty: all
    needs: str = ""  # only rows that need this read it
    # A row that does not read it refuses it; or ignores it; or keeps it in its records all the
    # same, as version 0.1.0 did: the names of its folders depend on that.
    unread: Literal["refused", "ignored", "kept"] = "refused"
    written_empty: bool = False  # in records: as null where it has no value, not left out
    unit: str = ""
    kind: type = float  # float, int or str: filled in from the annotation
