"""Figures as Matplotlib objects: to show in a notebook, or to change before they are saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cmdplab.errors import InputError
from cmdplab.experiments.durable import CURVES
from cmdplab.experiments.play import Run
from cmdplab.experiments.records.labels import by_label
from cmdplab.figures.bands import MEDIAN
from cmdplab.figures.frontier import frontier_figure
from cmdplab.figures.plots import draw, kind_of_figure
from cmdplab.figures.sources import Plotted, records_of
from cmdplab.solvers.thresholds.frontier import Frontier

if TYPE_CHECKING:
    from cmdplab.figures.canvas import PaperFigure

Source = str | Path | Run | Sequence[Run] | Mapping[str, Sequence[Run]] | Frontier


def figure(
    source: Source, kind: str = "gap", environment: str | None = None, middle: str = MEDIAN.name
) -> PaperFigure:
    """Draw a run, runs, the runs of a comparison, a folder of records or a frontier.

    The kinds are those of `cmdplab plot`: gap, violation, gap-symlog, violation-symlog, regret,
    mistakes, multiplier and phase. A frontier has one kind only. The result is a Matplotlib
    figure: `figure(run).savefig("gap.pdf")`, `figure(run).axes[0].set_title("mine")`. A notebook
    shows it when it is the value of a cell.
    """
    if isinstance(source, Frontier):
        return frontier_figure(source, f"constraint {source.constraint}")
    drawing, file, sampling = kind_of_figure(kind)
    if isinstance(source, (str, Path)):
        return draw(records_of(Path(source), file, environment, sampling), drawing, middle)[0]
    if environment is not None:
        raise InputError("environment chooses from a folder of records, and these are runs")
    return draw(_in_memory(source, file), drawing, middle)[0]


def _in_memory(source: Run | Sequence[Run] | Mapping[str, Sequence[Run]], file: str) -> Plotted:
    """Runs as a figure reads them."""
    runs = [source] if isinstance(source, Run) else source
    grouped = runs if isinstance(runs, Mapping) else by_label(runs)
    if not grouped or not all(grouped.values()):
        raise InputError("there is no run to draw")
    curves = {
        label: [each.curves if file == CURVES else each.mistakes for each in mine]
        for label, mine in grouped.items()
    }
    return Plotted(curves, "", "seed", [])
