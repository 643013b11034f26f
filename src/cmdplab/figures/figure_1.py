"""The paper's Figure 1: optimality gap and constraint violation of five algorithms."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmdplab.experiments.records.tables import Curves
from cmdplab.figures.palette import LABELS, looks
from cmdplab.figures.style import (
    SIGNS,
    envelope,
    literal,
    marked,
    median_line,
    save,
    thicken,
    unframe,
)
from cmdplab.messages import announce
from cmdplab.types import Array

CALM = 0.1  # an algorithm with a smaller range in its last tenth is also shown enlarged


def figure_1(curves: Curves, title: str, folder: Path, starred: Collection[str]) -> list[Path]:
    """Draw optimality gap and violation of every algorithm, as PNG and PDF.

    The `starred` algorithms get an asterisk in the legend, which the title explains.
    """
    announce("drawing the figure: some seconds")
    drawn = [name for name in ("gap", "violation") if name in _first(curves)]
    calm = {c: {name: runs for name, runs in curves.items() if _tail_range(runs, c) <= CALM}
            for c in drawn}  # fmt: skip
    rows = 2 if any(calm.values()) else 1
    figure = Figure(figsize=(10.5, 2.9 + 1.7 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False, height_ratios=(3.4, 1.0)[:rows])
    for n, column in enumerate(drawn):
        _panel(axes[0, n], curves, column)
        axes[0, n].set_ylabel(LABELS[column])
        axes[0, n].set_title(SIGNS[column], fontsize=8)
        if calm[column]:
            _enlarged(axes[1, n], curves, calm[column], column)
    for panel in axes.flat:
        panel.set_visible(panel.has_data())
    axes = axes[0]
    drawn_lines = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
    names = [marked(name, starred) for name in curves]
    lines = [drawn_lines[literal(name)] for name in curves]
    legend = figure.legend(lines, names, loc="outside lower center", ncols=5)
    legend.set_frame_on(False)
    thicken(legend, 1.5)
    figure.suptitle(literal(title), fontsize=11)
    return [save(figure, folder / f"figure1.{kind}") for kind in ("png", "pdf")]


def _first(curves: Curves) -> dict[str, Array]:
    return next(iter(curves.values()))[0]


def _panel(axes: Axes, grouped: Curves, column: str, shown: Curves | None = None) -> None:
    """Draw medians over seeds, with bands that hold every episode. `shown` is a part of all."""
    styles = looks(list(grouped))
    names = grouped if shown is None else shown
    # The widest bands first, so that the calm curves lie on top of the oscillating ones.
    ranks = sorted(names, key=lambda name: -_tail_range(grouped[name], column))
    for order, name in enumerate(ranks):
        colour, style, width = styles[name]
        curves = grouped[name]
        envelope(axes, curves, column, color=colour, zorder=order)
        look: dict[str, Any] = {"color": colour, "ls": style, "lw": width, "zorder": 10 + order}
        median_line(axes, curves, column, label=literal(name), **look)
    axes.axhline(0.0, color="black", lw=0.6, zorder=0.5)
    axes.set_xlabel("episode")
    axes.set_xlim(0, float(_first(grouped)["episode"][-1]))
    limit = _limit(list(grouped.values()), column)
    axes.set_ylim(-limit, limit)
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    unframe(axes)


def _limit(groups: Sequence[Sequence[dict[str, Array]]], column: str) -> float:
    """Return 3 as in the paper, or less if the values after the first twentieth are small."""
    largest = 0.0
    for curves in groups:
        late = curves[0]["episode"] >= 0.05 * curves[0]["episode"][-1]
        for c in curves:
            largest = max(largest, -c[f"{column}_min"][late].min(), c[f"{column}_max"][late].max())
    return 3.0 if largest > 1.0 else max(2.0 * largest, 0.05)


def _tail_range(curves: Sequence[dict[str, Array]], column: str) -> float:
    """Return the range of the values in the last tenth, over all episodes and seeds."""
    tail = curves[0]["episode"] >= 0.9 * curves[0]["episode"][-1]
    high = max(c[f"{column}_max"][tail].max() for c in curves)
    return float(high - min(c[f"{column}_min"][tail].min() for c in curves))


def _enlarged(axes: Axes, grouped: Curves, calm: Curves, column: str) -> None:
    """Draw the last third of the calm algorithms enlarged, because they look alike above."""
    last = float(_first(grouped)["episode"][-1])
    _panel(axes, grouped, column, calm)
    axes.set_xlim(last * 2 / 3, last)
    lines = [(np.asarray(x.get_xdata()), np.asarray(x.get_ydata())) for x in axes.lines[:-1]]
    shown = np.concatenate([y[x >= last * 2 / 3] for x, y in lines])  # the last line is the axis
    low, high = min(0.0, float(shown.min())), max(0.0, float(shown.max()))
    margin = 0.2 * (high - low) + 1e-6
    axes.set_ylim(low - margin, high + margin)
    axes.tick_params(labelsize=8)
    axes.set_title("the last third of the calm ones, enlarged", fontsize=8, pad=3)
