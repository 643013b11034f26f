"""The figure of a frontier: the optimal value against one threshold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cmdplab.figures.palette import BLUE, VERMILION
from cmdplab.figures.style import literal, save, unframe
from cmdplab.solvers.thresholds.frontier import Frontier

if TYPE_CHECKING:
    from cmdplab.figures.canvas import PaperFigure

MOST_DOTS = 40  # breakpoints that are marked


def draw_frontier(found: Frontier, name: str, path: Path) -> Path:
    """Draw value against threshold into a file."""
    return save(frontier_figure(found, name), path)


def frontier_figure(found: Frontier, name: str) -> PaperFigure:
    """Draw value against threshold, with the problem's own marked."""
    from cmdplab.figures.canvas import PaperFigure

    figure = PaperFigure(figsize=(5.2, 3.6), layout="constrained")
    axes = figure.subplots()
    dots = "." if found.exact and len(found.threshold) <= MOST_DOTS else ""
    axes.plot(found.threshold, found.value, color=BLUE, lw=2.0, marker=dots, ms=7)
    order = np.argsort(found.threshold)  # a budget falls where a utility rises
    limits, values = found.threshold[order], found.value[order]
    at = float(np.interp(found.given, limits, values))
    if limits[0] <= found.given <= limits[-1]:
        axes.plot([found.given], [at], "o", color=VERMILION, ms=7)
        aside = 6 if values[0] > values[-1] else -12  # away from the line
        label = f"b = {found.given:.4g}, V* = {at:.4g}"
        axes.annotate(
            label, (found.given, at), textcoords="offset points", xytext=(8, aside), fontsize=9
        )
    axes.set_xlabel(literal(found.units[1].of))
    axes.set_ylabel(literal(found.units[0].of))
    axes.set_title(literal(name), fontsize=10, loc="left")
    unframe(axes)
    return figure
