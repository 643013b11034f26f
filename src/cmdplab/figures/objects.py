"""Figures as Matplotlib objects: to show in a notebook, or to change before they are saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cmdplab.errors import InputError
from cmdplab.experiments.durable import CURVES
from cmdplab.experiments.play import Run
from cmdplab.experiments.records.labels import by_label
from cmdplab.figures.bands import MEDIAN
from cmdplab.figures.palette import BLUE, VERMILION
from cmdplab.figures.plots import draw, kind_of_figure
from cmdplab.figures.sources import Plotted, records_of
from cmdplab.figures.style import literal, save, unframe
from cmdplab.solvers.thresholds.frontier import Frontier

if TYPE_CHECKING:
    from cmdplab.figures.canvas import PaperFigure

MOST_DOTS = 40  # breakpoints of a frontier; more are not marked
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
    """Return runs in memory as a figure reads them."""
    runs = [source] if isinstance(source, Run) else source
    grouped = runs if isinstance(runs, Mapping) else by_label(runs)
    if not grouped or not all(grouped.values()):
        raise InputError("there is no run to draw")
    curves = {
        label: [run.curves if file == CURVES else run.mistakes for run in mine]
        for label, mine in grouped.items()
    }
    return Plotted(curves, "", "seed", [])


def draw_frontier(frontier: Frontier, name: str, path: Path) -> Path:
    """Draw the optimal value against a threshold into a file."""
    return save(frontier_figure(frontier, name), path)


def frontier_figure(frontier: Frontier, name: str) -> PaperFigure:
    """Return the figure of the optimal value against a threshold, with the problem's own marked."""
    from cmdplab.figures.canvas import PaperFigure

    figure = PaperFigure(figsize=(5.2, 3.6), layout="constrained")
    axes = figure.subplots()
    dots = "." if frontier.exact and len(frontier.threshold) <= MOST_DOTS else ""
    axes.plot(frontier.threshold, frontier.value, color=BLUE, lw=2.0, marker=dots, ms=7)
    order = np.argsort(frontier.threshold)  # a budget falls where a utility rises
    limits, values = frontier.threshold[order], frontier.value[order]
    at = float(np.interp(frontier.given, limits, values))
    if limits[0] <= frontier.given <= limits[-1]:
        axes.plot([frontier.given], [at], "o", color=VERMILION, ms=7)
        aside = 6 if values[0] > values[-1] else -12  # away from the line
        label = f"b = {frontier.given:.4g}, V* = {at:.4g}"
        axes.annotate(
            label, (frontier.given, at), textcoords="offset points", xytext=(8, aside), fontsize=9
        )
    axes.set_xlabel(literal(frontier.units[1].of))
    axes.set_ylabel(literal(frontier.units[0].of))
    axes.set_title(literal(name), fontsize=10, loc="left")
    unframe(axes)
    return figure
