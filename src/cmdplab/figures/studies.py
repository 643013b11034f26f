"""Figures of the two studies: the paper's Figure 1, and algorithms side by side.

Figure 1 has gap and violation of all algorithms in one pair of panels. A comparison has a small
panel for each algorithm, and all their regrets together: a few lines have a colour, a dash and a
marker, and the others are thin and grey. If one algorithm is compared with the others, the
differences follow, seed by seed, with their intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmdplab.experiments.records.tables import Curves
from cmdplab.figures.palette import BLUE, LABELS, VERMILION, looks
from cmdplab.figures.style import (
    MARKERS,
    SIGNS,
    Named,
    draw_named,
    envelope,
    literal,
    marked,
    median_line,
    save,
    thicken,
    unframe,
)
from cmdplab.messages import announce
from cmdplab.statistics import Paired
from cmdplab.types import Array

CALM = 0.1  # an algorithm with a smaller range in its last tenth is also shown enlarged
COLUMNS = 5
REGRETS = 4.2  # inches: room for the names of twenty lines
GAP, VIOLATION = BLUE, VERMILION  # in the panel of one algorithm
BEST = 3  # lowest lines, which are shown in colour
FEW = 6  # if there are at most so many lines, all are shown in colour
MUTED = "#9A9A9A"
ALWAYS = "UOpt-RPGPD"


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
