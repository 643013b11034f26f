"""What the commands share: choices, options, and where they print."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


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


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ProblemArgument = Annotated[
    str, typer.Argument(help="A .npz file, or an environment: see `cmdplab list environments`.")
]
InstanceSeed = Annotated[int, typer.Option(help="Which instance of a random environment.")]
BonusScale = Annotated[
    float, typer.Option(help="Factor on every exploration bonus; 1 is the theory.")
]
PresetOption = Annotated[
    Preset, typer.Option(help="The authors' notebook, or the formulas as the paper prints them.")
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
TunedFor = Annotated[
    int | None, typer.Option(help="The number of episodes K that an algorithm is tuned for.")
]
Tightening = Annotated[
    float | None,
    typer.Option(help="Safe policy: optimal for thresholds raised by this share of the slack."),
]
Epsilon = Annotated[float | None, typer.Option(help="Accuracy that Online-CRL aims at.")]
Replanning = Annotated[
    str | None, typer.Option(help="When planners plan anew: every-episode or doubling.")
]
Workers = Annotated[int | None, typer.Option(help="Runs at once; default: one per core.")]


EngineOption = Annotated[
    Engine,
    typer.Option(help="The cores, a GPU, or `auto`: the GPU where it has the runs and is faster."),
]
PrecisionOption = Annotated[
    Precision,
    typer.Option(help="On a GPU float32 is 1.4 times as fast; gaps are good to 1e-2."),
]


def console() -> Console:
    """Standard output."""
    from rich.console import Console

    return Console(markup=False)  # names from files are text, whatever brackets they hold


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


def print_json(value: Any) -> None:
    """For scripts."""
    from cmdplab.presenting import to_json

    print(to_json(value))
