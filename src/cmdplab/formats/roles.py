"""The purpose of each column or reward model of a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from cmdplab.checks import checked_name, finite_number
from cmdplab.errors import InputError
from cmdplab.files import parse_json
from cmdplab.formats.assemble import How, judged


@dataclass(frozen=True)
class Roles:
    """The purpose of each reward model of a file, and facts that the file lacks.

    objective : the reward model to maximise.
    horizon : H, the number of steps; None for a problem without an end.
    utilities : name -> threshold; its expected sum over an episode must reach the threshold.
    costs : name -> budget; its expected sum must stay within the budget. u = 1 - c, b = H - budget.
    name : the name of the problem; empty: the name of the file.
    discount : gamma, for sums E sum_t gamma^t r, for ever or over H steps.
    criterion : "average", for averages over all time.
    start : the name of the first state, for files that name states; empty: the first of the file.

    The constraints of the problem are the utilities, then the costs, each in the order given.
    Thresholds and budgets are in the units of the file.
    """

    objective: str
    horizon: int | None = None
    utilities: Mapping[str, float] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)
    name: str = ""
    discount: float | None = None
    criterion: str | None = None
    start: str = ""

    def __post_init__(self) -> None:
        judged(self.horizon, self.discount, self.criterion)
        for what in ("objective", "name", "start"):
            checked_name(f"the {what}", getattr(self, what) or (what == "objective" or "-"))
        limits = {"threshold": self.utilities, "budget": self.costs}
        for what, given in limits.items():
            if not isinstance(given, Mapping):
                raise InputError(f"give each {what} as a name and a number")
            for name, limit in given.items():
                checked_name(f"the name of a {what}", name)
                finite_number(f"the {what} of {name!r}", limit)

    @property
    def judged(self) -> How:
        """Return the kind of sum."""
        return judged(self.horizon, self.discount, self.criterion)

    def to_json(self) -> str:
        """Return one line of text, from which `from_json` makes equal roles."""
        later = {"discount": None, "criterion": None, "start": ""}  # else left out
        told = {k: v for k, v in asdict(self).items() if k not in later or v != later[k]}
        return json.dumps(told)

    @classmethod
    def from_json(cls, text: str) -> Roles:
        """Return the roles of one line of JSON."""
        try:
            values = parse_json(text, "the roles")
        except InputError:
            raise InputError("the roles are not JSON") from None
        known = set(cls.__dataclass_fields__)
        if not isinstance(values, dict) or not {"objective"} <= set(values) <= known:
            raise InputError(
                f"the roles must be an object with the keys {', '.join(sorted(known))}"
            )
        return cls(**values)
