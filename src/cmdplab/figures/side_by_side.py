"""The figure of a comparison: a small panel for each algorithm, and all their regrets together."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdplab.experiments.records.tables import Curves
from cmdplab.figures.palette import BLUE, VERMILION, looks
from cmdplab.figures.style import SIGNS, envelope, literal, marked, median_line, save, unframe
from cmdplab.messages import announce
from cmdplab.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 5
GAP, VIOLATION = BLUE, VERMILION  # of a panel that is about one algorithm


def comparison(curves: Curves, title: str, folder: Path, starred: Collection[str]) -> list[Path]:
    """Gap and violation of each algorithm, then strong regrets, over a logarithmic axis."""
    announce("drawing the figure: some seconds")
    from matplotlib.figure import Figure

    rows = -(-len(curves) // COLUMNS)
    figure = Figure(figsize=(11.0, 1.9 * rows + 4.6), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.9 * rows, 4.0))
    top, bottom = parts
    panels = top.subplots(rows, COLUMNS, sharex=True, sharey=True, squeeze=False).ravel()
    largest = max(_largest(each) for each in curves.values())
    for panel, (name, mine) in zip(panels, curves.items(), strict=False):
        _small_panel(panel, mine, largest)
        panel.set_title(marked(name, starred), fontsize=9, pad=3)
    for unused in panels[len(curves) :]:
        unused.set_visible(False)
    for lowest in panels[max(len(curves) - COLUMNS, 0) : len(curves)]:  # of each column
        lowest.tick_params(labelbottom=True)
    legend = top.legend(
        *panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=2, fontsize=9
    )
    legend.set_frame_on(False)
    _regrets(bottom, curves, starred)
    figure.suptitle(literal(title), fontsize=10, x=0.01, ha="left")
    return [save(figure, folder / f"compare.{kind}") for kind in ("png", "pdf")]


def _small_panel(axes: Axes, curves: list[dict[str, Array]], largest: float) -> None:
    """Linear within a hundredth of the largest value, logarithmic beyond: both signs, all sizes."""
    episodes = curves[0]["episode"]
    gap = f"optimality gap ({SIGNS['gap']})"
    both = (("gap", GAP, "-", gap), ("violation", VIOLATION, "--", "violation"))
    for column, colour, style, label in both:
        if column not in curves[0]:
            continue
        envelope(axes, curves, column, color=colour)
        median_line(axes, curves, column, color=colour, ls=style, lw=1.1, label=label)
    axes.axhline(0.0, color="black", lw=0.6, zorder=0.5)
    axes.set_xscale("log")
    axes.set_xlim(1, float(episodes[-1]))
    axes.set_yscale("symlog", linthresh=largest / 100, linscale=0.7)
    axes.set_ylim(-1.2 * largest, 1.2 * largest)
    ticks = [10.0 ** np.floor(np.log10(largest)), 10.0 ** np.floor(np.log10(largest) - 1)]
    axes.set_yticks([-ticks[0], -ticks[1], 0.0, ticks[1], ticks[0]])
    axes.tick_params(labelsize=8)
    axes.minorticks_off()
    unframe(axes)


def _largest(curves: list[dict[str, Array]]) -> float:
    columns = [c for c in ("gap", "violation") if c in curves[0]]
    ends = [np.abs(c[f"{column}_{end}"]).max() for c in curves for column in columns
            for end in ("min", "max")]  # fmt: skip
    return float(max(*ends, 1e-6))


def _regrets(figure: Any, curves: Curves, starred: Collection[str]) -> None:
    """Strong regret of the objective and of the violation, medians over seeds."""
    panels = [
        ("strong_regret", "strong regret"),
        ("strong_violation_regret", "strong violation regret"),
    ]
    first = next(iter(curves.values()))[0]
    panels = [panel for panel in panels if panel[0] in first]
    styles = looks(list(curves))
    for axes, (column, label) in zip(
        np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True
    ):
        for name, mine in curves.items():
            middle = np.median([c[column] for c in mine], axis=0)
            shown = np.where(middle > 0.0, middle, np.nan)  # a sum of nothing has no logarithm
            colour, dash, width = styles[name]
            look: dict[str, Any] = {"color": colour, "ls": dash, "lw": max(width, 1.0)}
            axes.plot(mine[0]["episode"], shown, label=marked(name, starred), **look)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(1, float(first["episode"][-1]))
        axes.set_ylim(bottom=1.0)
        axes.set_xlabel("episode")
        axes.set_ylabel(label)
        unframe(axes)
    legend = figure.legend(
        *axes.get_legend_handles_labels(), loc="outside right center", fontsize=8
    )
    legend.set_frame_on(False)
