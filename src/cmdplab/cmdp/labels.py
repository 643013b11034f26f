"""Names of states, actions and steps, and units of rewards.

Arrays hold numbers only. Labels convert numbers to names for tables, policies, figures and
sentences, and names to numbers. "Ours" are values in the units of a problem's arrays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from cmdplab.checks import checked_name, finite_number, is_whole
from cmdplab.errors import InputError, shown
from cmdplab.files import parse_json

AXES = {"h": "step", "k": "counter", "x": "state", "a": "action"}


class Scale(NamedTuple):
    """Units of one reward: published = offset + factor * ours.

    If the source counts a cost, the factor is negative: cost = H - utility has factor -1.
    """

    of: str  # the name of the reward or cost in the source
    factor: float = 1.0
    offset: float = 0.0

    def published(self, ours: float) -> float:
        """Return a value V[r] of the problem's arrays in the units of the source."""
        return self.offset + self.factor * ours

    @property
    def cost(self) -> bool:
        """True if the source counts a cost, which must stay below its limit."""
        return self.factor < 0.0

    def difference(self, ours: Any) -> Any:
        """Return the difference of two values, such as a slack, in the units of the source."""
        return abs(self.factor) * ours

    def price(self, ours: Any, limit: Scale) -> Any:
        """Return a multiplier as a price: units of this objective per unit of `limit`."""
        return abs(self.factor / limit.factor) * ours

    def ours(self, published: Any) -> Any:
        """Return a value V[r] of the source in the arrays' units, the inverse of `published`."""
        return (published - self.offset) / self.factor


class Scales(tuple[Scale, ...]):
    """Units of a problem's rewards, [1 + N]. They convert numbers into the units of the source."""

    def returns(self, ours: Iterable[Any]) -> list[Any]:
        """Return values [1 + N] of the objective and the utilities in the units of the source."""
        return [scale.published(each) for scale, each in zip(self, ours, strict=True)]

    def thresholds(self, ours: Iterable[Any]) -> list[Any]:
        """Return thresholds, or values of utilities, [N], in the units of the source."""
        return [scale.published(each) for scale, each in zip(self[1:], ours, strict=True)]

    def slacks(self, ours: Iterable[Any]) -> list[Any]:
        """Return slacks, violations or errors of the utilities, [N], in the units of the source."""
        return [scale.difference(each) for scale, each in zip(self[1:], ours, strict=True)]

    def multipliers(self, ours: Iterable[Any]) -> list[Any]:
        """Return multipliers [N] as the price of one more unit of each utility or cost."""
        return [self[0].price(each, scale) for scale, each in zip(self[1:], ours, strict=True)]


@dataclass(frozen=True)
class Labels:
    """Names of a problem's states, actions and steps, and the units of its rewards.

    An empty tuple means that there are no names, only numbers. Names are unique and printable.
    `signals` has one entry for the objective and one for each constraint.
    """

    states: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    signals: tuple[Scale, ...] = ()

    def __post_init__(self) -> None:
        for what in ("states", "actions", "steps"):
            object.__setattr__(self, what, _names(what, getattr(self, what)))
        given = _listed("signals", self.signals)
        signals = tuple(each if isinstance(each, Scale) else Scale(each) for each in given)
        _names("signals", [each.of for each in signals])
        for of, factor, offset in signals:
            for what, number in (("factor", factor), ("offset", offset)):
                finite_number(f"labels: the {what} of {of}", number)
            if factor == 0.0:
                raise InputError(f"labels: the factor of {of} is zero")
        object.__setattr__(self, "signals", signals)

    def state(self, x: int) -> str:
        """Return the name of state x, or its number if it has no name."""
        return self.states[x] if self.states else str(x)

    def action(self, a: int) -> str:
        """Return the name of action a, or its number if it has no name."""
        return self.actions[a] if self.actions else str(a)

    def step(self, h: int) -> str:
        """Return the name of step h, or its number if it has no name."""
        return self.steps[h] if self.steps else str(h)

    def signal(self, n: int) -> Scale:
        """Return the units of reward n: the objective for n = 0, else constraint n."""
        if self.signals:
            return self.signals[n]
        return Scale("objective" if n == 0 else f"constraint {n}")

    def find_state(self, given: int | str, states: int) -> int:
        """Return the number of a state from its name or number. states : X."""
        return _found("state", given, self.states, states)

    def find_action(self, given: int | str, actions: int) -> int:
        """Return the number of an action from its name or number. actions : A."""
        return _found("action", given, self.actions, actions)

    def find_step(self, given: int | str, steps: int) -> int:
        """Return the number of a step from its name or number. steps : H."""
        return _found("step", given, self.steps, steps)

    def place(self, axes: str, index: Sequence[int]) -> str:
        """Return the place of an array entry: in words if there are names, else as "[h, x, a]".

        axes : a letter for each number of the index: h a step, k a counter, x a state, a an action.
        """
        if not (self.states or self.actions or self.steps):
            return f"[{', '.join(map(str, index))}]"
        return self.in_words(axes, index)

    def in_words(self, axes: str, index: Sequence[int]) -> str:
        """Return the place of an array entry in words. For the arguments see `place`."""
        found = []
        for axis, n in zip(axes, index, strict=False):  # an index may end before the last axes
            names = self.along(axis)
            found.append(f"{AXES[axis]} {names[n] if names else n}")
        return ", ".join(found)

    def along(self, axis: str) -> tuple[str, ...]:
        """Return the names along the axis "h", "x" or "a", or () if there are none."""
        return {"h": self.steps, "x": self.states, "a": self.actions}.get(axis, ())

    def to_json(self) -> str:
        """Return the labels as one line of JSON, which `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Labels:
        """Return the labels of a line of `to_json`. Refuse other text."""
        values: Any = parse_json(text, "the labels")
        if not isinstance(values, dict) or not set(values) <= set(cls.__dataclass_fields__):
            raise InputError("the labels must be an object of states, actions, steps and signals")
        try:
            signals = [Scale(*each) for each in values.pop("signals", ())]
            return cls(**values, signals=tuple(signals))
        except TypeError:
            raise InputError("the labels must be lists of names") from None


def checked_labels(
    given: object, shape: tuple[int, ...], steps: int, rewards: int | None
) -> Labels:
    """Return the labels. Refuse a number of names that does not fit the problem.

    shape : (X, A). steps, rewards : H and 1 + N. None: any number of signals fits.
    """
    if not isinstance(given, Labels):
        raise InputError(f"the labels are {given!r}, not Labels(...)")
    states, actions = shape
    wanted = {"states": states, "actions": actions, "steps": steps, "signals": rewards}
    for what, size in wanted.items():
        named = len(getattr(given, what))
        if size is not None and named not in (0, size):
            raise InputError(f"labels: {named} {what} are named, but the problem has {size}")
    return given


def _listed(what: str, given: object) -> tuple[Any, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(f"labels: {what} must be a list of names, not {shown(given)}")
    return tuple(given)


def _names(what: str, given: object) -> tuple[str, ...]:
    names = _listed(what, given)
    seen: set[str] = set()
    for each in names:
        checked_name(f"labels: one of the {what}", each)
        if each in seen:
            raise InputError(f"labels: two of the {what} are named {each!r}")
        seen.add(each)
    return names


def _found(what: str, given: int | str, names: tuple[str, ...], size: int) -> int:
    if isinstance(given, str) and given in names:
        return names.index(given)
    if isinstance(given, str) and given.isdecimal():  # as files and command lines write numbers
        given = int(given)
    if is_whole(given) and 0 <= int(given) < size:
        return int(given)
    raise InputError(f"there is no {what} {given!r}: {choices(what, names, size)}")


def choices(what: str, names: tuple[str, ...], size: int) -> str:
    """Return a phrase with the numbers 0..size - 1 and the first names. what : "state", ..."""
    shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    return f"the {what}s are 0..{size - 1}" + (f", named {shown}" if names else "")


def unused(word: str, names: tuple[str, ...]) -> str:
    """Return the word with as many primes (') as make it differ from all names."""
    while word in names:
        word += "'"
    return word
