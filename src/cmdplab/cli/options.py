"""What the commands share: choices, options, and where they print."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_OF_A_FILE = 120


class Preset(StrEnum):
    """Two readings of the paper: docs/deviations.md."""

    released = "released"
    printed = "printed"


class Instance(StrEnum):
    """Which CMDP `reproduce` runs on."""

    published = "published"
    random = "random"


class Listing(StrEnum):
    """What `list` lists."""

    algorithms = "algorithms"
    environments = "environments"


class Engine(StrEnum):
    """Where runs are played."""

    auto = "auto"
    cpu = "cpu"
    gpu = "gpu"


class Precision(StrEnum):
    """Of the numbers on a GPU."""

    float64 = "float64"
    float32 = "float32"


def whole(given: Any) -> int:
    """A whole number as people write it; Typer names the option in front of the complaint."""
    from cmdplab.checks import written_number

    try:
        return written_number(str(given))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def count(sentence: str) -> Any:
    """An option that takes a whole number: 100000, 100_000 or 1e5."""
    return typer.Option(help=sentence, parser=whole, metavar="INTEGER")


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ProblemArgument = Annotated[
    str, typer.Argument(help="A .npz file, or an environment: see `cmdplab list environments`.")
]
InstanceSeed = Annotated[int, count("Which instance of a random environment.")]
EpisodesOfEach = Annotated[int, count("Episodes of each run, such as 100000 or 1e5.")]
SeedsOfEach = Annotated[int, count("Runs of each algorithm: seeds 0, 1, ...")]
BonusScale = Annotated[
    float, typer.Option(help="Factor on every exploration bonus; 1 is the theory.")
]
PresetOption = Annotated[
    Preset, typer.Option(help="The authors' notebook, or the formulas as the paper prints them.")
]
AlgorithmOption = Annotated[
    str,
    typer.Option(
        help="See `cmdplab list algorithms`; or package.module:name, a learner of your own: "
        "importing it runs that module's code."
    ),
]
AnyPreset = Annotated[
    Preset | None,
    typer.Option(help="Default: `released` where there is one, else and for OptCMDP `printed`."),
]
OwnBonusScale = Annotated[
    float | None,
    typer.Option(help="Factor on every optimistic width; 1 is the theory. Mostly 1e-3."),
]
OwnMarginScale = Annotated[
    float | None,
    typer.Option(help="Factor on every pessimistic margin; 1 is the theory. Mostly 1e-3."),
]
TunedFor = Annotated[int | None, count("The number of episodes K that an algorithm is tuned for.")]
Tightening = Annotated[
    float | None,
    typer.Option(help="Safe policy: optimal for thresholds raised by this share of the slack."),
]
Epsilon = Annotated[float | None, typer.Option(help="Accuracy that Online-CRL aims at.")]
Replanning = Annotated[
    str | None, typer.Option(help="When planners plan anew: every-episode or doubling.")
]
Workers = Annotated[int | None, count("Runs at once; default: one per core.")]


EngineOption = Annotated[
    Engine,
    typer.Option(help="The cores, a GPU, or `auto`: the GPU where it has the runs and is faster."),
]
PrecisionOption = Annotated[
    Precision,
    typer.Option(help="On a GPU float32 is 1.4 times as fast; gaps are good to 1e-2."),
]


def find_here(names: Iterable[str]) -> None:
    """Where a person gives import paths, look for modules in this folder too, after all others."""
    from cmdplab.algorithms import is_outside

    if any(":" in name and is_outside(name) for name in names) and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # which worker processes take over


def console() -> Console:
    """Standard output: as wide as its terminal; a file or a pipe has room for every column."""
    from rich.console import Console

    made = Console(markup=False)  # names from files are text, whatever brackets they hold
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = WIDTH_OF_A_FILE
    return made


def errors() -> Console:
    """Standard error, where progress and warnings go."""
    from rich.console import Console

    return Console(stderr=True, markup=False)


def warn(sentence: str) -> None:
    """The same, as a warning; nothing to say is said in silence."""
    say(f"warning: {sentence}" if sentence else "")


def say(sentence: str) -> None:
    """One line on standard error."""
    if sentence:
        errors().print(sentence, highlight=False, soft_wrap=True)


def print_json(name: str, value: Any) -> None:
    """For scripts: an object of the schema of that name, which comes first (docs/json.md)."""
    from cmdplab.files.write import to_json
    from cmdplab.schemas import stamp

    fields = value._asdict() if hasattr(value, "_asdict") else value
    print(to_json({"schema": stamp(name), **fields}))


def print_file(name: str, path: Path, as_json: bool, notes: Sequence[str] = ()) -> None:
    """The file that a command wrote: its path alone, or an object."""
    if as_json:
        print_json(name, {"file": str(path), "notes": list(notes)})
    else:
        print(path)
