"""The settings of algorithms, each declared once: type, default, range, words, who has it.

All that takes or shows settings follows from `SETTINGS`: `row.with_settings`, the keys of an
experiment file, the options of `cmdplab run`, the settings in a record and the hash that names its
folder, labels, columns, and the table in docs/experiments.md. Tests look for each in docs/json.md.
A new setting is a field of `Settings`, and a field of that name on the rows of its families.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from numbers import Real
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
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
KERNEL = "the kernel"  # it plans on it, and learns nothing
MARGIN = "a margin"  # no need that is listed: a row has one or has not


class Range(NamedTuple):
    """The numbers from lowest to highest, both included."""

    lowest: float
    highest: float
    outside: str  # how a number is described that is not among them

    def check(self, what: str, value: float) -> None:
        """Refuse a number outside, and what is no number; NaN is outside."""
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InputError(f"{what} is {value!r}, not a number")
        if not self.lowest <= value <= self.highest:
            shown = f"{value:g}" if isinstance(value, float) else value
            raise InputError(f"{what} is {shown}, {self.outside}")


_LEAST = math.ulp(0.0)  # the smallest float above 0
POSITIVE = Range(_LEAST, sys.float_info.max, "not a finite number > 0")
UNIT = Range(_LEAST, 1.0, "outside (0, 1]")


class Declared(NamedTuple):
    """The declaration of a setting; its name and its type stand beside it."""

    default: Any  # of a row that does not say otherwise
    help: str  # a sentence for a person who chooses a value
    none: str  # what it means that a row has no value for it
    range: Range | None = None
    choices: tuple[str, ...] = ()
    families: tuple[str, ...] = ()  # whose rows read it; empty: all
    needs: str = ""  # only rows that need this read it
    # A row that does not read it refuses it; or ignores it; or keeps it in its records all the
    # same, as the names of its folders depend on that.
    unread: Literal["refused", "ignored", "kept"] = "refused"
    written_empty: bool = False  # in records: as null where it has no value, not left out
    unwritten_default: bool = False  # in records: left out where it is the default
    kind: type = float  # float, int or str: filled in from the annotation


class Settings(TypedDict, total=False):
    """The arguments of `row.with_settings`; None changes nothing."""

    bonus_scale: Annotated[
        float | None,
        Declared(
            default=1e-3,
            range=POSITIVE,
            help="Factor on every optimistic width; 1 is the theory. Mostly 1e-3.",
            none="the row's own",
            written_empty=True,
        ),
    ]
    margin_scale: Annotated[
        float | None,
        Declared(
            default=1e-3,
            range=POSITIVE,
            help="Factor on every pessimistic margin; 1 is the theory. Mostly 1e-3.",
            none="it has no margin",
            needs=MARGIN,
            unread="ignored",
        ),
    ]
    delta: Annotated[
        float | None,
        Declared(
            default=0.1,
            range=UNIT,
            help="Probability with which the guarantee may fail.",
            none="the row's own",
            families=("PrimalDual", "Planner", "SoftmaxSearch", "Optimist"),
            unread="kept",
            written_empty=True,
        ),
    ]
    tuned_for: Annotated[
        int | None,
        Declared(
            default=100_000,
            range=Range(1, MOST_EPISODES, f"outside 1 to {MOST_EPISODES:,}"),
            help="The number of episodes K that an algorithm is tuned for.",
            none="the row's own",
            needs=EPISODES,
            unread="kept",
            written_empty=True,
        ),
    ]
    slack_factor: Annotated[
        float | None,
        Declared(
            default=1.0,
            range=POSITIVE,
            help="The learner is told this multiple of the Slater gap.",
            none="it is told no Slater gap",
            needs=SLATER_GAP,
        ),
    ]
    tightening: Annotated[
        float | None,
        Declared(
            default=0.5,
            range=UNIT,
            help="Safe policy: optimal for thresholds raised by this share of the slack.",
            none="it begins without a safe policy",
            needs=SAFE_POLICY,
        ),
    ]
    epsilon: Annotated[
        float | None,
        Declared(
            default=0.1,
            range=Range(1e-9, 1e9, "outside 1e-9 to 1e9"),
            help="Accuracy that Online-CRL aims at.",
            none="it aims at no accuracy",
            families=("Planner",),
            needs=ACCURACY,
        ),
    ]
    replan: Annotated[
        str | None,
        Declared(
            default="every-episode",
            choices=("every-episode", "doubling"),
            help="When planners plan anew: every-episode or doubling.",
            none="it plans by a rule of its own, or not at all",
            families=("PlansAnew",),
        ),
    ]
    dynamics: Annotated[
        str | None,
        Declared(
            default="per-step",
            choices=("per-step", "stationary"),
            help="What is counted: per-step, each step by itself; stationary, all together.",
            none="per-step, or the preset's own",
            families=("PrimalDual", "Planner"),
            unwritten_default=True,
        ),
    ]
    kernel: Annotated[
        str | None,
        Declared(
            default=None,
            choices=("known",),
            help="known: the learner is told the kernel; it counts nothing and has no bonus.",
            none="it learns the kernel by counting",
            families=("PrimalDual",),
        ),
    ]
    fixed_step: Annotated[
        float | None,
        Declared(
            default=0.1,
            range=POSITIVE,
            help="Step of a method that plans on the kernel.",
            none="its step is a formula of its own",
            needs=KERNEL,
        ),
    ]
    fixed_temperature: Annotated[
        float | None,
        Declared(
            default=0.01,
            range=Range(0.0, sys.float_info.max, "not a finite number >= 0"),
            help="Temperature of RPG-PD; 0 is NPG-PD.",
            none="it has no temperature, or one of its own",
            families=("PrimalDual",),
            needs=KERNEL,
        ),
    ]
    alpha_eta: Annotated[
        float | None,
        Declared(
            default=0.53,
            range=UNIT,
            help="Exponent of the step size, in (0, 1].",
            none="its step is no power of k",
            families=("PrimalDual",),
            written_empty=True,
        ),
    ]
    alpha_tau: Annotated[
        float | None,
        Declared(
            default=0.4,
            range=UNIT,
            help="Exponent of the temperature, in (0, 1].",
            none="its temperature is no power of k",
            families=("PrimalDual",),
            written_empty=True,
        ),
    ]


def _declared(hint: Any) -> Declared:
    union, declared = get_args(hint)
    (kind,) = (each for each in get_args(union) if each is not NoneType)
    return declared._replace(kind=kind)  # type: ignore[no-any-return]


SETTINGS: dict[str, Declared] = {
    name: _declared(hint) for name, hint in get_type_hints(Settings, include_extras=True).items()
}


def check_choice(name: str, value: Any) -> None:
    """Refuse an unknown value of a setting of words; the row checks ranges."""
    choices = SETTINGS[name].choices
    if choices and not (isinstance(value, str) and value in choices):
        raise InputError(f"unknown {name} {value!r}: choose one of {', '.join(choices)}")


def without_none(settings: Settings) -> Settings:
    """Return settings without those that are None."""
    chosen = {name: value for name, value in settings.items() if value is not None}
    return cast(Settings, chosen)


def settings_table() -> list[str]:
    """Return the settings as lines of the Markdown table in docs/experiments.md."""
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
    """Decorate a model: add a field (type, default) for each setting after its own fields."""

    def decorate(model: type[Model]) -> type[Model]:
        from pydantic import create_model

        fields: Any = {name: field(declared) for name, declared in SETTINGS.items()}
        about: Any = {"__doc__": model.__doc__, "__module__": model.__module__}
        return create_model(model.__name__, __base__=model, **about, **fields)

    return decorate
