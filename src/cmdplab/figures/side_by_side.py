"""Figure of a comparison: a small panel for each algorithm, and all their regrets together.

Every line of regret has its name beside its end, because a legend of twenty lines cannot be read in
grey, nor at column width. A few lines have a colour, a dash and a marker, and the others are thin
and grey. If one algorithm is compared with the others, the differences follow, seed by seed, with
their intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmdplab.experiments.records.tables import Curves
from cmdplab.figures.palette import BLUE, VERMILION, looks
from cmdplab.figures.style import SIGNS, envelope, literal, marked, median_line, save, unframe
from cmdplab.messages import announce
from cmdplab.statistics import Paired
from cmdplab.types import Array

COLUMNS = 5
REGRETS = 4.2  # inches: room for the names of twenty lines
GAP, VIOLATION = BLUE, VERMILION  # in the panel of one algorithm
BEST = 3  # lowest lines, which are shown in colour
FEW = 6  # if there are at most so many lines, all are shown in colour
MUTED = "#9A9A9A"
MARKERS = "os^Dv<>Ph*"
ALWAYS = "UOpt-RPGPD"


def comparison(
    curves: Curves,
    title: str,
    folder: Path,
    starred: Collection[str],
    paired: Sequence[Paired] = (),
) -> list[Path]:
    """Draw gap and violation of each algorithm, then strong regrets, over a logarithmic axis.

    `paired` are comparisons with one of them, whose differences are drawn below.
    """
    announce("drawing the figure: some seconds")
    rows = -(-len(curves) // COLUMNS)
    heights = [1.9 * rows, REGRETS] + [0.9 + 0.19 * len(curves)] * bool(paired)
    figure = Figure(figsize=(11.0, sum(heights) + 0.4), layout="constrained")
    parts: Any = figure.subfigures(len(heights), 1, height_ratios=heights)
    top, bottom = parts[:2]
    panels = top.subplots(rows, COLUMNS, sharex=True, sharey=True, squeeze=False).ravel()
    largest = max(_largest(runs) for runs in curves.values())
    for panel, (name, mine) in zip(panels, curves.items(), strict=False):
        _small_panel(panel, mine, largest)
        panel.set_title(marked(name, starred), fontsize=9, pad=3)
    for unused in panels[len(curves) :]:
        unused.set_visible(False)
    for lowest in panels[max(len(curves) - COLUMNS, 0) : len(curves)]:  # of each column
        lowest.tick_params(labelbottom=True)
    lines = panels[0].get_legend_handles_labels()
    top.legend(*lines, loc="outside upper right", ncols=2, fontsize=9, frameon=False)
    _regrets(bottom, curves, starred, {pair.second for pair in paired})
    if paired:
        _differences(parts[2], paired, starred)
    figure.suptitle(literal(title), fontsize=10, x=0.01, ha="left")
    return [save(figure, folder / f"compare.{kind}") for kind in ("png", "pdf")]


def _small_panel(axes: Axes, curves: list[dict[str, Array]], largest: float) -> None:
    """Draw one algorithm, linear within a hundredth of the largest value and logarithmic beyond."""
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


def _regrets(figure: Any, curves: Curves, starred: Collection[str], also: Collection[str]) -> None:
    """Draw strong regret of the objective and of the violation, medians over seeds.

    The lowest three of each panel, UOpt-RPGPD and `also` are in colour, with markers. Of at most
    six lines all are in colour.
    """
    first = next(iter(curves.values()))[0]
    columns = [c for c in ("strong_regret", "strong_violation_regret") if c in first]
    panels = np.atleast_1d(figure.subplots(1, len(columns)))
    for axes, column in zip(panels, columns, strict=True):
        middles = {name: np.median([c[column] for c in mine], axis=0)
                   for name, mine in curves.items()}  # fmt: skip
        shown = highlighted({name: float(line[-1]) for name, line in middles.items()}, also)
        styles = line_styles(list(curves), shown)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(1, float(first["episode"][-1]))
        axes.set_ylim(1.0, max(2.0, 1.5 * max(float(line.max()) for line in middles.values())))
        lines = []
        for name, middle in middles.items():
            seen = np.where(middle > 0.0, middle, np.nan)  # a sum of nothing has no logarithm
            text = marked(name, starred)
            x = curves[name][0]["episode"]
            lines.append(Named(text, x, seen, styles[name], name in shown))
        draw_named(axes, lines, 0.8 * REGRETS)
        axes.set_xlabel("episode")
        axes.set_ylabel(f"{column.replace('_', ' ')} (median)")
        if none := [line.text for line in lines if not np.isfinite(line.y).any()]:
            axes.set_title(f"zero throughout: {', '.join(none)}", fontsize=8, loc="left")
        unframe(axes)


def _differences(figure: Any, paired: Sequence[Paired], starred: Collection[str]) -> None:
    """Draw a row for each algorithm: its difference and interval, full if it is claimed."""
    measures = list(dict.fromkeys(pair.measure for pair in paired))
    panels = np.atleast_1d(figure.subplots(1, len(measures), sharey=True))
    for axes, measure in zip(panels, measures, strict=True):
        mine = [pair for pair in paired if pair.measure == measure]
        for row, pair in enumerate(mine):
            claimed = pair.outcome in ("smaller", "larger")
            look: dict[str, Any] = {"color": "black" if claimed else "#808080"}
            if pair.low <= pair.high:
                axes.plot([pair.low, pair.high], [row, row], lw=1.6 if claimed else 0.9, **look)
            fill = look["color"] if claimed else "white"
            axes.plot([pair.difference], [row], "o", ms=4.5, mfc=fill, **look)
        axes.axvline(0.0, color=BLUE, lw=1.0, zorder=0.5)
        sizes = [abs(v) for p in mine for v in (p.low, p.high, p.difference) if np.isfinite(v)]
        top = 10.0 ** np.floor(np.log10(max(*sizes, 1e-6)))
        axes.set_xscale("symlog", linthresh=top / 100, linscale=0.7)
        axes.set_xticks([-top, -top / 10, 0.0, top / 10, top])
        axes.minorticks_off()
        axes.set_yticks(range(len(mine)), [marked(pair.first, starred) for pair in mine])
        axes.tick_params(labelsize=8)
        axes.set_xlabel(f"{measure} less that of {literal(mine[0].second)}")
        unframe(axes)
    panels[0].invert_yaxis()
    level = f"{100 * paired[0].level:g} % intervals of the median over {paired[0].seeds} seeds"
    told = f"full: a difference (Holm's p over {len(paired)} comparisons at most 0.05)"
    figure.suptitle(f"{level}; {told}; hollow: none can be claimed", fontsize=9, x=0.01, ha="left")


class Named(NamedTuple):
    """A line, its name, and its style."""

    text: str
    x: Array
    y: Array  # NaN where there is nothing to draw
    style: dict[str, Any]
    bold: bool


def highlighted(ends: Mapping[str, float], also: Collection[str] = ()) -> list[str]:
    """Return the labels to show in colour: all of a few; else the lowest, UOpt-RPGPD and `also`."""
    if len(ends) <= FEW:
        return list(ends)
    best = sorted(ends, key=lambda name: ends[name])[:BEST]
    chosen = {*best, *also, *(name for name in ends if name.split(":")[0] == ALWAYS)}
    return [name for name in ends if name in chosen]


def line_styles(labels: Sequence[str], shown: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return Matplotlib's keywords: markers and colours for lines `shown`, thin and grey else."""
    own = looks(list(labels))
    styles: dict[str, dict[str, Any]] = {}
    for n, name in enumerate(labels):
        if name not in shown:
            styles[name] = {"color": MUTED, "ls": "-", "lw": 0.6, "zorder": 1.5}
            continue
        place = len([label for label in labels[:n] if label in shown])
        marker = {"marker": MARKERS[place % len(MARKERS)], "ms": 4.5, "mfc": "white", "mew": 1.1}
        where = {"markevery": (0.03 * (place % 5), 0.15), "zorder": 3.0}
        styles[name] = {"color": own[name].colour, "ls": own[name].dash, "lw": 1.6} | marker | where
    return styles


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
