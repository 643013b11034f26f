"""`cmdplab convert`, and the options that give the reward models of a .drn file their roles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cmdplab.cli.options import InstanceSeed, Json, print_file
from cmdplab.errors import InputError

if TYPE_CHECKING:
    from cmdplab.formats import Roles

AnyProblem = Annotated[
    str,
    typer.Argument(help="A .npz or .drn file, or an environment: `cmdplab list environments`."),
]
_PANEL = "Reward models of a .drn file"


def _option(sentence: str) -> Any:
    return typer.Option(help=sentence, rich_help_panel=_PANEL)


Objective = Annotated[str | None, _option("The reward model to maximise.")]
Utility = Annotated[list[str] | None, _option("One with a threshold; may be repeated.")]
Threshold = Annotated[list[float] | None, _option("What the utility must reach; one for each.")]
Cost = Annotated[list[str] | None, _option("One with a budget; may be repeated.")]
Budget = Annotated[list[float] | None, _option("What the cost must not exceed; one for each.")]
Horizon = Annotated[int | None, _option("H, which the file does not know.")]


def roles_of(
    problem: str,
    objective: str | None,
    utility: list[str] | None,
    threshold: list[float] | None,
    cost: list[str] | None,
    budget: list[float] | None,
    horizon: int | None,
) -> Roles | None:
    """The roles that the options say; None where they say nothing."""
    utility, threshold, cost, budget = utility or [], threshold or [], cost or [], budget or []
    given = {"--objective": objective, "--horizon": horizon}
    lists = {"--utility": utility, "--threshold": threshold, "--cost": cost, "--budget": budget}
    names = [name for name, value in given.items() if value is not None]
    names += [name for name, values in lists.items() if values]
    if not names:
        return None
    if not problem.endswith(".drn"):
        belong = "belong" if len(names) > 1 else "belongs"
        raise InputError(
            f"{', '.join(names)} {belong} to .drn files: {problem} knows its objective, horizon "
            "and constraints itself"
        )
    if objective is None or horizon is None:
        raise InputError("a .drn file needs both --objective and --horizon")
    if len(utility) != len(threshold) or len(cost) != len(budget):
        raise InputError("give one --threshold for each --utility and one --budget for each --cost")
    for named, what in ((utility, "--utility"), (cost, "--cost")):
        if len(set(named)) < len(named):
            raise InputError(f"{what} names a reward model twice")
    from cmdplab.formats import Roles

    limits = dict(zip(utility, threshold, strict=True)), dict(zip(cost, budget, strict=True))
    return Roles(objective, horizon, *limits)


def convert_command(
    problem: AnyProblem,
    out: Annotated[Path, typer.Argument(help="Where to write: a .npz or a .drn file.")],
    objective: Objective = None,
    utility: Utility = None,
    threshold: Threshold = None,
    cost: Cost = None,
    budget: Budget = None,
    horizon: Horizon = None,
    instance_seed: InstanceSeed = 0,
    as_json: Json = False,
) -> None:
    """Write a problem in another format: .npz, or .drn for Storm (docs/own-problem.md)."""
    from cmdplab.formats import convert, find

    roles = roles_of(problem, objective, utility, threshold, cost, budget, horizon)
    convert(find(problem, instance_seed, roles), out)
    print_file("convert", out, as_json)
