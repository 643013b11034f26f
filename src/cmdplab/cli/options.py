"""Choices and options that commands share, and the problem they are about."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from cmdplab.cli.output import Answer
from cmdplab.errors import InputError
from cmdplab.settings import SETTINGS, Settings

if TYPE_CHECKING:
    from cmdplab.cmdp.problem import CMDP
    from cmdplab.cmdp.stationary import StationaryCMDP
    from cmdplab.formats import Roles

    Finite = CMDP
    Problem = CMDP | StationaryCMDP
else:  # annotations are evaluated, and these modules take long to load
    Finite = Problem = Any

Preset = Literal["released", "printed"]
"""Two readings of the paper: docs/deviations.md."""
Engine = Literal["auto", "cpu", "gpu"]
"""Where runs are played."""
Precision = Literal["float64", "float32"]
"""Of the numbers on a GPU."""


def whole(given: Any) -> int:
    """Read a whole number as people write it; Typer names the option in front of the complaint."""
    from cmdplab.checks import written_number

    try:
        return written_number(str(given))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def count(sentence: str) -> Any:
    """Declare an option that takes a whole number: 100000, 100_000 or 1e5."""
    return typer.Option(help=sentence, parser=whole, metavar="INTEGER")


def option(sentence: str, *names: str) -> Any:
    """Declare an option with its help. Without `names`, the parameter gives its name."""
    return typer.Option(*names, help=sentence)


def argument(sentence: str) -> Any:
    """Declare an argument with its help."""
    return typer.Argument(help=sentence)


def setting(name: str) -> Any:
    """Declare the option of a setting."""
    declared = SETTINGS[name]
    return count(declared.help) if declared.kind is int else option(declared.help)


AS_JSON = Parameter(
    "as_json",
    Parameter.POSITIONAL_OR_KEYWORD,
    default=False,
    annotation=Annotated[bool, option("Print JSON instead of a table.", "--json")],
)
InstanceSeed = Annotated[int, count("Which instance of a random environment.")]
EpisodesOfEach = Annotated[int, count("Episodes of each run, such as 100000 or 1e5.")]
SeedsOfEach = Annotated[int, count("Runs of each algorithm: seeds 0, 1, ...")]
BonusScale = Annotated[float, option("Factor on every exploration bonus; 1 is the theory.")]
PresetOption = Annotated[
    Preset, option("The authors' notebook, or the formulas as the paper prints them.")
]
AlgorithmOption = Annotated[
    str,
    option(
        "See `cmdplab list algorithms`; or package.module:name, a learner of your own: "
        "importing it runs that module's code."
    ),
]
LearnersNamed = Annotated[
    list[str] | None,
    option(
        "package.module:name of a learner from outside that the folder names (repeat for "
        "more): records are never imported from, and importing it runs that module's code."
    ),
]
AnyPreset = Annotated[
    Preset | None, option("Default: `released` where there is one, else and for OptCMDP `printed`.")
]
OwnBonusScale = Annotated[float | None, setting("bonus_scale")]
OwnMarginScale = Annotated[float | None, setting("margin_scale")]
TunedFor = Annotated[int | None, setting("tuned_for")]
Workers = Annotated[int | None, count("Runs at once; default: one per core.")]
EngineOption = Annotated[
    Engine, option("The cores, a GPU, or `auto`: the GPU where it has the runs and is faster.")
]
PrecisionOption = Annotated[
    Precision, option("On a GPU float32 is 1.4 times as fast; gaps are good to 1e-2.")
]
_role = partial(typer.Option, rich_help_panel="What a .drn or .csv file does not say")
NEED_ROLES = (".drn", ".csv")  # files that know neither objective nor constraints


def asked_any(
    problem: Annotated[
        str, argument("A .npz, .drn or .csv file, or an environment: `cmdplab list environments`.")
    ],
    objective: Annotated[
        str | None, _role(help="The reward model or column to maximise; of a .csv file `reward`.")
    ] = None,
    utility: Annotated[
        list[str] | None, _role(help="One with a threshold; may be repeated.")
    ] = None,
    threshold: Annotated[
        list[float] | None, _role(help="What the utility must reach; one for each.")
    ] = None,
    cost: Annotated[list[str] | None, _role(help="One with a budget; may be repeated.")] = None,
    budget: Annotated[
        list[float] | None, _role(help="What the cost must not exceed; one for each.")
    ] = None,
    horizon: Annotated[int | None, _role(help="H, which the file does not know.")] = None,
    discount: Annotated[
        float | None, _role(help="Discount rewards by this at every step, for ever or for H steps.")
    ] = None,
    average: Annotated[bool, _role("--average", help="Judge by averages over all time.")] = False,
    first: Annotated[
        str | None, _role("--start", help="The first state of a .csv file; that of its first row.")
    ] = None,
    instance_seed: InstanceSeed = 0,
) -> Problem:
    """Find the problem that the options of a command say, with or without a horizon."""
    from cmdplab.formats import find_any

    limited: dict[str, list[Any]] = {"--utility": utility or [], "--threshold": threshold or []}
    limited |= {"--cost": cost or [], "--budget": budget or []}
    single = {"--objective": objective, "--horizon": horizon, "--discount": discount}
    single |= {"--average": average or None, "--start": first}
    return find_any(problem, instance_seed, _roles(problem, single, limited))


def asked_in_units(**said: Any) -> Problem:
    """Find a problem; an environment of ours gets the units of its source as labels."""
    from dataclasses import replace

    from cmdplab.cmdp.stationary import StationaryCMDP
    from cmdplab.environments import named

    found, known = asked_any(**said), named(said["problem"])
    if known is None or found.labels.signals or isinstance(found, StationaryCMDP):
        return found
    return found.changed(labels=replace(found.labels, signals=known.units))


def asked_with_horizon(**said: Any) -> Finite:
    """Find a problem; refuse one without a horizon."""
    from cmdplab.cmdp.horizons import with_an_end

    return with_an_end(asked_any(**said))


def asked_source(**said: Any) -> Finite | Path:
    """Return a folder of records, or find a problem with a horizon."""
    from cmdplab.environments import named

    folder = Path(said["problem"])
    options = {name: value for name, value in said.items() if name != "problem"}
    if folder.is_dir() and named(said["problem"]) is None and not any(options.values()):
        return folder
    return asked_with_horizon(**said)


for _made in (asked_in_units, asked_with_horizon, asked_source):
    vars(_made)["__signature__"] = signature(asked_any, eval_str=True)


def _roles(problem: str, single: dict[str, Any], limited: dict[str, list[Any]]) -> Roles | None:
    """Return the roles that the options say; None if they say nothing."""
    names = [name for name, value in single.items() if value is not None]
    names += [name for name, values in limited.items() if values]
    suffix = Path(problem).suffix
    if not names and suffix != ".csv":
        return None
    if suffix not in NEED_ROLES:
        belong = "belong" if len(names) > 1 else "belongs"
        raise InputError(
            f"{', '.join(names)} {belong} to .drn files: {problem} knows its objective, horizon "
            "and constraints itself"
        )
    objective, horizon, discount, average, first = single.values()
    if objective is None and suffix == ".csv":
        objective = "reward"
    if objective is None or (horizon is None and discount is None and not average):
        raise InputError(
            f"a {suffix} file needs both --objective and --horizon, --discount or --average"
            if suffix == ".drn"
            else "a .csv file needs --horizon, --discount or --average"
        )
    if first is not None and suffix == ".drn":
        raise InputError("--start is for .csv files: a .drn file has its initial state")
    utility, threshold, cost, budget = limited.values()
    if len(utility) != len(threshold) or len(cost) != len(budget):
        raise InputError("give one --threshold for each --utility and one --budget for each --cost")
    for what in ("--utility", "--cost"):
        if len(set(limited[what])) < len(limited[what]):
            raise InputError(f"{what} names a reward model twice")
    from cmdplab.formats import Roles

    limits = dict(zip(utility, threshold, strict=True)), dict(zip(cost, budget, strict=True))
    criterion = "average" if average else None
    return Roles(objective, horizon, *limits, "", discount, criterion, first or "")


def command(
    *makes: Callable[..., Any], **defaults: Any
) -> Callable[[Callable[..., Answer]], Callable[..., None]]:
    """Decorate a function that returns its answer, so that Typer can call it as a command.

    The first parameters of the function are the results of `makes`. Typer reads options from a
    signature. The new signature has the argument `problem` of `makes` first, then the other
    parameters of the function, the options of `makes`, and --json.
    `defaults` are default values for parameters of `makes`.
    """
    made = {make: signature(make, eval_str=True).parameters for make in makes}

    def decorated(function: Callable[..., Answer]) -> Callable[..., None]:
        own = [*signature(function, eval_str=True).parameters.values()][len(makes) :]
        shared = [each for parameters in made.values() for each in parameters.values()]
        shared = [each.replace(default=defaults.get(each.name, each.default)) for each in shared]
        shared.sort(key=lambda each: each.name != "problem")
        first = [each for each in shared if each.name == "problem"]

        @wraps(function)
        def whole(as_json: bool = False, **said: Any) -> None:
            results = [make(**{n: said.pop(n) for n in names}) for make, names in made.items()]
            function(*results, **said).give(as_json)

        parameters = [*first, *own, *shared[len(first) :], AS_JSON]
        whole.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return whole

    return decorated


def chosen_settings(**said: Any) -> Settings:
    """Return the settings that the options of a command say: an option for each declared one."""
    return cast(Settings, said)


chosen_settings.__signature__ = Signature(  # type: ignore[attr-defined]
    [
        Parameter(
            name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=Annotated[declared.kind | None, setting(name)],
        )
        for name, declared in SETTINGS.items()
    ]
)


def refuse(options: dict[str, Any], why: str) -> None:
    """Refuse the first option that is given; `why` is the rest of the sentence."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise InputError(f"{name} {why}")


def split(given: Iterable[str] | None) -> list[str]:
    """Return the names of an option that may be repeated, or separated by commas."""
    names = [name.strip() for each in given or [] for name in each.split(",")]
    return [name for name in names if name]


def find_here(names: Iterable[str]) -> None:
    """Look for modules in the current folder too, after all others, if a name is an import path."""
    from cmdplab.algorithms import is_outside

    if any(":" in name and is_outside(name) for name in names) and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # which worker processes take over
