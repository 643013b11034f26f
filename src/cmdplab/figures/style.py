"""One style for all figures. Nothing is smoothed, and thinned curves carry their envelope."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmdplab.algorithms import FIGURE_1
from cmdplab.errors import InputError
from cmdplab.figures.palette import looks
from cmdplab.files.write import written_whole
from cmdplab.types import Array

MARKERS = "os^Dv<>Ph*"
SIGNS = {
    "gap": "below 0: more reward than the optimum, paid for by a violation",
    "violation": "above 0: a constraint is violated; below 0: its slack",
}
COLUMN = (3.5, 2.6)  # inches: one column of a two-column paper
LEGEND_LINE = 0.12  # inches
DOTS_PER_INCH = 160  # in a notebook: a column is then 560 pixels wide
LONGEST_OF_TWO = 36  # letters of a name; longer names do not fit side by side


class PaperFigure(Figure):
    """A Matplotlib figure that a notebook shows when it is the value of a cell.

    It is not in pyplot's list of open figures.
    """

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, dpi=DOTS_PER_INCH, format="png")
        return picture.getvalue()


def literal(text: str) -> str:
    """Return a text from outside as Matplotlib shows it unchanged: `$` begins no formula.

    Characters that no font draws (controls, formats, surrogates) are dropped, except line breaks. A
    leading underscore, which would hide a line from its legend, gets a space before it.
    """
    unseen = ("C", "Zl", "Zp")
    seen = [c for c in text if c == "\n" or not unicodedata.category(c).startswith(unseen)]
    return ("" if seen[:1] != ["_"] else " ") + "".join(seen).replace("$", r"\$")


def unframe(axes: Axes) -> None:
    """Remove the frame above and to the right."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def marked(name: str, starred: Collection[str]) -> str:
    """Return the name of an algorithm as a title or a legend has it, starred with an asterisk."""
    return literal(name + ("*" if name in starred else ""))


def envelope(axes: Axes, curves: Sequence[dict[str, Array]], column: str, **look: Any) -> None:
    """Shade the range of every episode of every seed."""
    low = np.min([c[f"{column}_min"] for c in curves], axis=0)
    high = np.max([c[f"{column}_max"] for c in curves], axis=0)
    axes.fill_between(curves[0]["episode"], low, high, **({"alpha": 0.25, "lw": 0} | look))


def median_line(axes: Axes, curves: Sequence[dict[str, Array]], column: str, **look: Any) -> None:
    """Draw the median over seeds."""
    middle = np.median([c[column] for c in curves], axis=0)
    axes.plot(curves[0]["episode"], middle, **look)


def legend_below(figure: Figure, axes: Axes, title: str) -> None:
    """Draw the legend under the axes, where it covers no curve; the figure grows by its height.

    The title may come from outside. The labels must be literal already. Long labels get one column.
    """
    handles, labels = axes.get_legend_handles_labels()
    columns = 2 if max(map(len, labels), default=0) <= LONGEST_OF_TWO else 1
    lines = -(-len(labels) // columns) + len(title.splitlines())
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + LEGEND_LINE * lines)
    legend = figure.legend(
        handles,
        labels,
        title=literal(title),
        loc="outside lower center",
        ncols=columns,
        alignment="left",
        fontsize=6,
        title_fontsize=6,
        frameon=False,
        handlelength=3.5,
    )
    thicken(legend, 1.2)


def thicken(legend: Any, least: float) -> None:
    """Draw the lines of a legend at least so wide."""
    for line in legend.get_lines():
        line.set_linewidth(max(line.get_linewidth(), least))


def in_house_style(axes: Axes) -> None:
    """Remove the frame above and to the right, and set letters that fit a column."""
    unframe(axes)
    axes.tick_params(which="both", labelsize=7)
    axes.xaxis.label.set_fontsize(8)
    axes.yaxis.label.set_fontsize(8)


def styles_of(names: list[str]) -> dict[str, dict[str, Any]]:
    """Return Matplotlib's keywords for the line of each algorithm.

    Algorithms beyond the paper's five carry markers, apart along the line: in grey the dash of such
    an algorithm may be that of one of the five.
    """
    styles: dict[str, dict[str, Any]] = {}
    for n, (name, (colour, dash, width)) in enumerate(looks(names).items()):
        styles[name] = {"color": colour, "ls": dash, "lw": min(width, 1.6)}
        if name not in FIGURE_1:
            marker = {"marker": MARKERS[n % len(MARKERS)], "ms": 2.4, "mew": 0.6, "mfc": "white"}
            place = {"markevery": (0.04 * (n % 5), 0.2)}  # shares of the diagonal of the axes
            styles[name] |= {"lw": 1.2} | marker | place
    return styles


class Named(NamedTuple):
    """A line, its name, and its style."""

    text: str
    x: Array
    y: Array  # NaN where there is nothing to draw
    style: dict[str, Any]
    bold: bool


def draw_named(axes: Axes, lines: Sequence[Named], inches: float, size: float = 8.0) -> None:
    """Draw the lines, then their names in a column to the right, each joined to its end.

    The limits of the axes must be set. Names stay within them and never lie over each other.
    inches : the height of the axes, about.
    """
    lines = [line for line in lines if np.isfinite(line.y).any()]
    for line in lines:
        seen = np.isfinite(line.y)
        axes.plot(line.x[seen], line.y[seen], **line.style)
    ended = [(line, float(line.y[np.isfinite(line.y)][-1])) for line in lines]
    ended.sort(key=lambda pair: pair[1])
    heights = np.array([_share(axes, end) for _, end in ended])
    places = spread(heights, min(1.25 * size / (72.0 * inches), 1.0 / max(len(ended), 1)))
    for (line, _), end, place in zip(ended, heights, places, strict=True):
        colour = "black" if line.bold else "#606060"
        join = {"arrowstyle": "-", "lw": 0.5, "color": line.style["color"], "shrinkA": 1}
        axes.annotate(
            line.text,
            xy=(1.0, float(end)),
            xytext=(1.08, float(place)),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=size,
            fontweight="bold" if line.bold else "normal",
            color=colour,
            arrowprops=join | {"shrinkB": 0, "relpos": (0.0, 0.5)},
            annotation_clip=False,
        )


def _share(axes: Axes, y: float) -> float:
    point = axes.transData.transform((axes.get_xlim()[1], y))
    return float(np.clip(axes.transAxes.inverted().transform(point)[1], 0.0, 1.0))


def spread(heights: Array, apart: float) -> Array:
    """Return increasing heights in [0, 1], moved as little as needed to lie `apart` and inside."""
    places = np.array(heights, dtype=float)
    for n in range(1, len(places)):
        places[n] = max(places[n], places[n - 1] + apart)
    ceiling = 1.0
    for n in range(len(places) - 1, -1, -1):
        places[n] = min(places[n], ceiling)
        ceiling = places[n] - apart
    return places


def check_suffix(path: Path) -> None:
    """Refuse a file that is no figure."""
    if path.suffix not in (".png", ".pdf", ".svg"):
        raise InputError(f"{path} is no .png, .pdf or .svg")


def save(figure: Any, path: Path) -> Path:
    """Write a figure atomically and without a date: equal numbers give equal files."""
    with written_whole(path) as temporary:
        metadata = {"CreationDate": None} if path.suffix == ".pdf" else None
        figure.savefig(temporary, dpi=200, format=path.suffix[1:], metadata=metadata)
    return path
