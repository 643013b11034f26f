"""Lines named at their ends, and which of many lines are worth a colour.

A legend of twenty lines cannot be read in grey, nor at column width. Here every line has its name
beside its end, a few have a colour, a dash and a marker, and the rest is thin and grey.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmdplab.figures.palette import looks
from cmdplab.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEST = 3  # lines that are shown in colour because they end lowest
FEW = 6  # so many lines are all shown in colour
MUTED = "#9A9A9A"
MARKERS = "os^Dv<>Ph*"
ALWAYS = "UOpt-RPGPD"


class Named(NamedTuple):
    """A line, its name, and how it is drawn."""

    text: str
    x: Array
    y: Array  # NaN where there is nothing to draw
    style: dict[str, Any]
    bold: bool


def highlighted(ends: Mapping[str, float], also: Collection[str] = ()) -> list[str]:
    """The labels to show in colour: all of a few; else the lowest ends, UOpt-RPGPD and `also`."""
    if len(ends) <= FEW:
        return list(ends)
    best = sorted(ends, key=lambda name: ends[name])[:BEST]
    chosen = {*best, *also, *(name for name in ends if name.split(":")[0] == ALWAYS)}
    return [name for name in ends if name in chosen]


def line_styles(labels: Sequence[str], shown: Collection[str]) -> dict[str, dict[str, Any]]:
    """Matplotlib's keywords: markers and colours for those `shown`, thin and grey for the rest."""
    own = looks(list(labels))
    styles: dict[str, dict[str, Any]] = {}
    for n, name in enumerate(labels):
        if name not in shown:
            styles[name] = {"color": MUTED, "ls": "-", "lw": 0.6, "zorder": 1.5}
            continue
        place = len([each for each in labels[:n] if each in shown])
        marker = {"marker": MARKERS[place % len(MARKERS)], "ms": 4.5, "mfc": "white", "mew": 1.1}
        where = {"markevery": (0.03 * (place % 5), 0.15), "zorder": 3.0}
        styles[name] = {"color": own[name].colour, "ls": own[name].dash, "lw": 1.6} | marker | where
    return styles


def draw_named(axes: Axes, lines: Sequence[Named], inches: float, size: float = 8.0) -> None:
    """Draw the lines, then their names in a column to the right, each joined to its end.

    The limits of the axes must be set: names stay within them and never lie over each other.
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
    """The height of a value as a share of the axes, between 0 and 1."""
    point = axes.transData.transform((axes.get_xlim()[1], y))
    return float(np.clip(axes.transAxes.inverted().transform(point)[1], 0.0, 1.0))


def spread(heights: Array, apart: float) -> Array:
    """Increasing heights in [0, 1], moved as little as needed to lie `apart` and inside."""
    places = np.array(heights, dtype=float)
    for n in range(1, len(places)):
        places[n] = max(places[n], places[n - 1] + apart)
    ceiling = 1.0
    for n in range(len(places) - 1, -1, -1):
        places[n] = min(places[n], ceiling)
        ceiling = places[n] - apart
    return places
