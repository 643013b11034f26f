"""Which reward model of a file means what: a DRN file has names, a CMDP has an objective."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from cmdplab.checks import whole_horizon
from cmdplab.errors import InputError
from cmdplab.files import parse_json


@dataclass(frozen=True)
class Roles:
    """The purpose of each reward model of a file, and what the file does not say.

    objective : the reward model to maximise.
    horizon : H, the number of steps.
    utilities : name -> threshold; its expected sum over an episode must reach the threshold.
    costs : name -> budget; its expected sum must stay within the budget. u = 1 - c, b = H - budget.
    name : what the problem is called; empty: the name of the file.

    The constraints of the problem are the utilities, then the costs, each in the order given.
    """

    objective: str
    horizon: int
    utilities: Mapping[str, float] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        whole_horizon(self.horizon)
        if not isinstance(self.objective, str) or not isinstance(self.name, str):
            raise InputError("the objective and the name must be text")
        if not self.name.isprintable():
            raise InputError(f"the name {self.name!r} cannot be printed")
        limits = {"threshold": self.utilities, "budget": self.costs}
        for what, given in limits.items():
            if not isinstance(given, Mapping):
                raise InputError(f"give each {what} as a name and a number")
            for name, limit in given.items():
                if not isinstance(name, str) or not 0.0 <= _number(limit) <= self.horizon:
                    raise InputError(
                        f"the {what} of {name!r} is {limit!r}, outside [0, {self.horizon}]"
                    )

    def to_json(self) -> str:
        """One line of text, from which `from_json` makes equal roles."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Roles:
        """The roles of one line of JSON."""
        try:
            values = parse_json(text, "the roles")
        except InputError:
            raise InputError("the roles are not JSON") from None
        known = {"objective", "horizon", "utilities", "costs", "name"}
        if not isinstance(values, dict) or not {"objective", "horizon"} <= set(values) <= known:
            raise InputError(
                f"the roles must be an object with the keys {', '.join(sorted(known))}"
            )
        return cls(**values)


def _number(value: object) -> float:
    """A real number as a float, anything else as NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan
