"""`cmdplab plot`: one figure from records, at column width."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plot_command(
    folder: Annotated[Path, typer.Argument(help="What `reproduce` or `compare` wrote.")],
    kind: Annotated[
        str,
        typer.Argument(
            help="gap, violation (or with -symlog), regret, mistakes, multiplier, phase."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="A .png, .pdf or .svg; default: KIND.pdf in the folder.")
    ] = None,
) -> None:
    """Draw one figure for a paper: medians over seeds, bands that hold every episode."""
    from cmdplab.plots import plot

    print(plot(folder, kind, out if out is not None else folder / f"{kind}.pdf"))
