"""Choices and options that commands share, and the problem they are about."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Callable, Iterable
from functools import cache, wraps
from importlib.resources import files
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

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

Preset = Literal["released", "printed"]  # two readings of the paper: docs/deviations.md
Engine = Literal["auto", "cpu", "gpu"]
Precision = Literal["float64", "float32"]
PANEL = "What a .drn or .csv file does not say"
AS_JSON = Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=bool)


def whole(given: Any) -> int:
    """Read a whole number as people write it; Typer names the option in front of the complaint."""
    from cmdplab.checks import written_number

    try:
        return written_number(str(given))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


NEED_ROLES = (".drn", ".csv")  # files that know neither objective nor constraints


def asked_any(
    problem: str,
    objective: str | None = None,
    utility: list[str] | None = None,
    threshold: list[float] | None = None,
    cost: list[str] | None = None,
    budget: list[float] | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    average: bool = False,
    first: str | None = None,
    instance_seed: int = 0,
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


@cache
def sentences() -> dict[str, dict[str, Any]]:
    """Return the sentences of options.toml by command, and below `arguments` those of arguments."""
    return tomllib.loads((files("cmdplab.cli") / "options.toml").read_text(encoding="utf-8"))


def _declared(command: str, each: Parameter, default: Any = Parameter.empty) -> Parameter:
    """Return a parameter of a command as Typer reads it: with its sentence, name and parser."""
    name, how = each.name, dict[str, Any]()
    for section in (command, "roles", "shared"):
        of = sentences().get(section, {})
        argument, said = of.get("arguments", {}).get(name), of.get(name)
        if argument or said:
            break
    if section == "roles":
        how["rich_help_panel"] = PANEL
    if int in (each.annotation, *get_args(each.annotation)):
        how |= {"parser": whole, "metavar": "INTEGER"}
    if argument:
        info = typer.Argument(help=argument)
    else:
        sentence, *flags = said if isinstance(said, list) else [said or SETTINGS[name].help]
        flags = flags or [f"--{name.replace('_', '-')}"]
        info = typer.Option(*flags, help=sentence, **how)
    default = each.default if default is Parameter.empty else default
    annotation = Annotated[each.annotation, info]  # type: ignore[name-defined]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def command(
    *makes: Callable[..., Any], **defaults: Any
) -> Callable[[Callable[..., Answer]], Callable[..., None]]:
    """Return a decorator that turns a function returning an answer into a command for Typer.

    makes : functions whose results are the first parameters of the decorated function. Typer reads
    options from a signature. The new signature has the other parameters of the function, the
    options of `makes`, and --json.
    defaults : default values for parameters of `makes`.
    """
    made = {make: signature(make, eval_str=True).parameters for make in makes}

    def decorated(function: Callable[..., Answer]) -> Callable[..., None]:
        own = [*signature(function, eval_str=True).parameters.values()][len(makes) :]
        shared = [each for parameters in made.values() for each in parameters.values()]
        shared.sort(key=lambda each: each.name != "problem")  # an argument comes first
        problem = shared[:1] if shared and shared[0].name == "problem" else []
        every = [*problem, *own, *shared[len(problem) :], AS_JSON]

        @wraps(function)
        def called(as_json: bool = False, **said: Any) -> None:
            results = [make(**{n: said.pop(n) for n in names}) for make, names in made.items()]
            function(*results, **said).give(as_json)

        name = function.__name__.removesuffix("_command")
        called.__signature__ = Signature(  # type: ignore[attr-defined]
            [_declared(name, e, defaults.get(e.name, Parameter.empty)) for e in every]
        )
        return called

    return decorated


def chosen_settings(**said: Any) -> Settings:
    """Return the settings that the options of a command give: an option for each declared one."""
    return cast(Settings, said)


vars(chosen_settings)["__signature__"] = Signature(
    [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=declared.kind | None)
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
