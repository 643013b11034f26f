"""Settings of algorithms, each declared once: type, default, range, description, and its rows.

All code that reads or shows settings uses `SETTINGS`: `row.with_settings`, the keys of an
experiment file, the options of `cmdplab run`, the settings in a record and the hash that names its
folder, labels, columns, and the table in docs/experiments.md. Tests require each in docs/json.md. A
new setting is a line of `Settings`, its declaration, and a field of that name on the rows of its
families.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from numbers import Integral, Real
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
)

from cmdplab.errors import InputError

if TYPE_CHECKING:
    from pydantic import BaseModel

    Model = TypeVar("Model", bound=BaseModel)

MOST_EPISODES = 10**12  # of a run: weeks at a microsecond each; counts stay exact in a double

# Needs of rows. Only the rows with such a need have the settings of that need.
EPISODES = "number of episodes"
SLATER_GAP = "Slater gap"
SAFE_POLICY = "safe policy"
ACCURACY = "accuracy"
KERNEL = "the kernel"  # the row plans on the kernel, and learns nothing
MARGIN = "a margin"  # not listed among needs


class Range(NamedTuple):
    """Closed range of numbers."""

    lowest: float
    highest: float
    outside: str  # description of a number outside the range

    def check(self, what: str, value: float) -> None:
        """Refuse a value that is NaN, not a number or outside. what : its name, for the error."""
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InputError(f"{what} is {value!r}, not a number")
        if not self.lowest <= value <= self.highest:
            shown = f"{value:g}" if isinstance(value, float) else value
            raise InputError(f"{what} is {shown}, {self.outside}")


_LEAST = math.ulp(0.0)  # the smallest float above 0
POSITIVE = Range(_LEAST, sys.float_info.max, "not a finite number > 0")
UNIT = Range(_LEAST, 1.0, "outside (0, 1]")


class Declared(NamedTuple):
    """Declaration of a setting: default, description, range, and the rows that read it."""

    default: Any  # value of rows without another one
    help: str  # a sentence for a person who chooses a value
    none: str  # meaning of a missing value
    range: Range | None = None
    choices: tuple[str, ...] = ()
    families: tuple[str, ...] = ()  # families whose rows read it; empty: all
    needs: str = ""  # only rows that need this read it
    # A row that does not read the setting refuses it, ignores it, or keeps it in its records,
    # because the names of its folders depend on it.
    unread: Literal["refused", "ignored", "kept"] = "refused"
    written_empty: bool = False  # True: records have null for a missing value
    unwritten_default: bool = False  # True: records leave out the default
    kind: type = float  # float, int or str: filled in from `Settings`


class Settings(TypedDict, total=False):
    """Arguments of `row.with_settings`. None changes nothing. `SETTINGS` declares each."""

    bonus_scale: float | None
    margin_scale: float | None
    delta: float | None
    tuned_for: int | None
    slack_factor: float | None
    tightening: float | None
    epsilon: float | None
    replan: str | None
    dynamics: str | None
    kernel: str | None
    fixed_step: float | None
    fixed_temperature: float | None
    alpha_eta: float | None
    alpha_tau: float | None


_DECLARED = {
    "bonus_scale": Declared(
        1e-3,
        "Factor on every optimistic width; 1 is the theory. Mostly 1e-3.",
        "the row's own",
        POSITIVE,
        written_empty=True,
    ),
    "margin_scale": Declared(
        1e-3,
        "Factor on every pessimistic margin; 1 is the theory. Mostly 1e-3.",
        "it has no margin",
        POSITIVE,
        needs=MARGIN,
        unread="ignored",
    ),
    "delta": Declared(
        0.1,
        "Probability with which the guarantee may fail.",
        "the row's own",
        UNIT,
        families=("PrimalDual", "Planner", "SoftmaxSearch", "Optimist"),
        unread="kept",
        written_empty=True,
    ),
    "tuned_for": Declared(
        100_000,
        "The number of episodes K that an algorithm is tuned for.",
        "the row's own",
        Range(1, MOST_EPISODES, f"outside 1 to {MOST_EPISODES:,}"),
        needs=EPISODES,
        unread="kept",
        written_empty=True,
    ),
    "slack_factor": Declared(
        1.0,
        "The learner is told this multiple of the Slater gap.",
        "it is told no Slater gap",
        POSITIVE,
        needs=SLATER_GAP,
    ),
    "tightening": Declared(
        0.5,
        "Safe policy: optimal for thresholds raised by this share of the slack.",
        "it begins without a safe policy",
        UNIT,
        needs=SAFE_POLICY,
    ),
    "epsilon": Declared(
        0.1,
        "Accuracy that Online-CRL aims at.",
        "it aims at no accuracy",
        Range(1e-9, 1e9, "outside 1e-9 to 1e9"),
        families=("Planner",),
        needs=ACCURACY,
    ),
    "replan": Declared(
        "every-episode",
        "When planners plan anew: every-episode or doubling.",
        "it plans by a rule of its own, or not at all",
        choices=("every-episode", "doubling"),
        families=("PlansAnew",),
    ),
    "dynamics": Declared(
        "per-step",
        "What is counted: per-step, each step by itself; stationary, all together.",
        "per-step, or the preset's own",
        choices=("per-step", "stationary"),
        families=("PrimalDual", "Planner"),
        unwritten_default=True,
    ),
    "kernel": Declared(
        None,
        "known: the learner is told the kernel; it counts nothing and has no bonus.",
        "it learns the kernel by counting",
        choices=("known",),
        families=("PrimalDual",),
    ),
    "fixed_step": Declared(
        0.1,
        "Step of a method that plans on the kernel.",
        "its step is a formula of its own",
        POSITIVE,
        needs=KERNEL,
    ),
    "fixed_temperature": Declared(
        0.01,
        "Temperature of RPG-PD; 0 is NPG-PD.",
        "it has no temperature, or one of its own",
        Range(0.0, sys.float_info.max, "not a finite number >= 0"),
        families=("PrimalDual",),
        needs=KERNEL,
    ),
    "alpha_eta": Declared(
        0.53,
        "Exponent of the step size, in (0, 1].",
        "its step is no power of k",
        UNIT,
        families=("PrimalDual",),
        written_empty=True,
    ),
    "alpha_tau": Declared(
        0.4,
        "Exponent of the temperature, in (0, 1].",
        "its temperature is no power of k",
        UNIT,
        families=("PrimalDual",),
        written_empty=True,
    ),
}
SETTINGS: dict[str, Declared] = {
    name: _DECLARED[name]._replace(kind=get_args(hint)[0])
    for name, hint in get_type_hints(Settings).items()
}


def check_choice(name: str, value: Any) -> None:
    """Refuse an unknown choice of a setting, or a number that is not whole. Rows check ranges."""
    choices = SETTINGS[name].choices
    if SETTINGS[name].kind is int and not isinstance(value, Integral):
        raise InputError(f"{name} is {value!r}, not a whole number")
    if choices and not (isinstance(value, str) and value in choices):
        raise InputError(f"unknown {name} {value!r}: choose one of {', '.join(choices)}")


def without_none(settings: Settings) -> Settings:
    """Return the settings whose value is not None."""
    chosen = {name: value for name, value in settings.items() if value is not None}
    return cast(Settings, chosen)


def settings_table() -> list[str]:
    """Return the lines of the Markdown table of settings in docs/experiments.md."""
    kinds: dict[type, str] = {int: "whole number", float: "number"}
    lines = [
        "| setting | value | default | what it does | null or missing |",
        "|---|---|---|---|---|",
    ]
    for name, each in SETTINGS.items():
        value = " or ".join(each.choices) or kinds[each.kind]
        default = "-" if each.default is None else each.default
        lines.append(f"| `{name}` | {value} | {default} | {each.help} | {each.none} |")
    return lines


def with_fields(
    field: Callable[[Declared], tuple[Any, Any]],
) -> Callable[[type[Model]], type[Model]]:
    """Return a decorator of models that adds a field (type, default) for each setting."""

    def decorate(model: type[Model]) -> type[Model]:
        from pydantic import create_model

        fields: Any = {name: field(declared) for name, declared in SETTINGS.items()}
        about: Any = {"__doc__": model.__doc__, "__module__": model.__module__}
        return create_model(model.__name__, __base__=model, **about, **fields)

    return decorate
