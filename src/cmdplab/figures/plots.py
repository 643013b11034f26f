"""Figures from records, in one house style: at column width for a paper, in PNG, PDF or SVG.

The light shade holds every episode of every seed. From six seeds on, the darker one is a band of
the line (bands.py), which is a median unless a mean is asked for. The legend's title says what
they are. Nothing is smoothed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmdplab.algorithms import FIGURE_1
from cmdplab.errors import InputError
from cmdplab.experiments.durable import CURVES, MISTAKES
from cmdplab.experiments.records.tables import Curves
from cmdplab.figures.bands import HEAVY, MEDIAN, middle_of, spread_out, summarised, words
from cmdplab.figures.palette import looks
from cmdplab.figures.sources import Plotted, Sampling, every_run, per_instance, records_of
from cmdplab.figures.style import LABELS, MARKERS, check_suffix, envelope, literal, save, unframe
from cmdplab.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cmdplab.figures.canvas import PaperFigure

COLUMN = (3.5, 2.6)  # inches: one column of a two-column paper
LEGEND_LINE = 0.12  # inches
LONGEST_OF_TWO = 36  # letters of a name: longer ones do not fit side by side

Drawing = Callable[["Axes", Curves, str], str]  # draws, and says what lines and shades are


class Kind(NamedTuple):
    """A way to draw a figure, its records, and what counts as a sample."""

    drawing: Drawing
    file: str
    sampling: Sampling = per_instance


class Drawn(NamedTuple):
    """A figure, and what it lacks."""

    path: Path
    notes: list[str]


def plot(
    folder: Path, kind: str, path: Path, environment: str | None = None, middle: str = MEDIAN.name
) -> Drawn:
    """Draw one of `KINDS` from the records of a folder; of a sweep's, one environment's.

    Lines are medians over seeds, or means, which the notes warn of where tails are heavy.
    """
    drawing, file, sampling = kind_of_figure(kind)
    check_suffix(path)
    found = records_of(folder, file, environment, sampling)
    figure, title = draw(found, drawing, middle)
    risk = f"a mean was asked for, and {HEAVY}: prefer the median"
    return Drawn(save(figure, path), [*found.notes, *[risk] * (HEAVY in title)])


def draw(found: Plotted, drawing: Drawing, middle: str = MEDIAN.name) -> tuple[PaperFigure, str]:
    """Draw records at column width: the figure, and what it says of its lines and shades."""
    from cmdplab.figures.canvas import PaperFigure

    figure = PaperFigure(figsize=COLUMN, layout="constrained")
    axes = figure.subplots()
    title = drawing(axes, found.curves, middle).replace("seed", found.sample)
    in_house_style(axes)
    legend_below(figure, axes, "\n".join(filter(None, (found.about, title))))
    return figure, title


def kind_of_figure(name: str) -> Kind:
    """One of `KINDS` by its name."""
    if name not in KINDS:
        raise InputError(f"unknown figure {name!r}: choose one of {', '.join(KINDS)}")
    return KINDS[name]


def legend_below(figure: Figure, axes: Axes, title: str) -> None:
    """Under the axes, where it covers no curve; the figure grows by what it needs.

    The title may come from outside; the labels must be literal already. Long ones get one column.
    """
    handles, labels = axes.get_legend_handles_labels()
    columns = 2 if max(map(len, labels), default=0) <= LONGEST_OF_TWO else 1
    lines = -(-len(labels) // columns) + len(title.splitlines())
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + LEGEND_LINE * lines)
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": columns, "alignment": "left"}
    small: dict[str, Any] = {
        "fontsize": 6,
        "title_fontsize": 6,
        "frameon": False,
        "handlelength": 3.5,
    }
    legend = figure.legend(handles, labels, title=literal(title), **place, **small)
    for line in legend.get_lines():
        line.set_linewidth(max(line.get_linewidth(), 1.2))


def in_house_style(axes: Axes) -> None:
    """No frame above and to the right, and letters that fit a column."""
    unframe(axes)
    axes.tick_params(which="both", labelsize=7)
    axes.xaxis.label.set_fontsize(8)
    axes.yaxis.label.set_fontsize(8)


def styles_of(names: list[str]) -> dict[str, dict[str, Any]]:
    """Matplotlib's keywords for the line of each algorithm.

    Those beyond the paper's five carry markers, apart along the line: in grey a dash of theirs may
    be one of the five.
    """
    styles: dict[str, dict[str, Any]] = {}
    for n, (name, (colour, dash, width)) in enumerate(looks(names).items()):
        styles[name] = {"color": colour, "ls": dash, "lw": min(width, 1.6)}
        if name not in FIGURE_1:
            marker = {"marker": MARKERS[n % len(MARKERS)], "ms": 2.4, "mew": 0.6, "mfc": "white"}
            place = {"markevery": (0.04 * (n % 5), 0.2)}  # shares of the diagonal of the axes
            styles[name] |= {"lw": 1.2} | marker | place
    return styles


def _over_seeds(curves: list[dict[str, Array]], column: str) -> Array:
    if column not in curves[0]:
        raise InputError(f"there is no {column.replace('_', ' ')} in these records")
    return np.array([each[column] for each in curves])


def _named(name: str, x: Array, line: Array) -> str:
    return name


def _sloped(name: str, x: Array, line: Array) -> str:
    """The name with the slope over the last decade of episodes, where there is one."""
    late = (x >= x[-1] / 10.0) & (line > 0.0)
    if late.sum() <= 8:
        return name
    slope = np.polyfit(np.log(x[late]), np.log(line[late]), 1)[0]
    return f"{name}: {round(slope, 2) + 0.0:.2f}"  # never -0.00


def _lines(
    axes: Axes,
    grouped: Curves,
    column: str,
    across: str = "episode",
    *,
    spacing: Callable[..., Array] = np.geomspace,
    middle: str = MEDIAN.name,
    label: Callable[[str, Array, Array], str] = _named,
) -> str:
    """A line for each algorithm, with its envelope and its band; the scales are set already.

    Lines and envelopes choose the limits of the axes; a band may leave them.
    """
    tables = {name: _over_seeds(curves, column) for name, curves in grouped.items()}
    x = {name: curves[0][across] for name, curves in grouped.items()}
    at = {name: spread_out(each, spacing) for name, each in x.items()}
    kind = middle_of(middle, counts=across == "epsilon")
    summary = summarised({name: each[:, at[name]] for name, each in tables.items()}, kind)
    positive = axes.get_yscale() == "log"
    styles = styles_of(list(grouped))
    for name, curves in grouped.items():
        line = summary.middle.curve(tables[name])
        shown = np.where(line > 0.0, line, np.nan) if positive else line
        axes.plot(x[name], shown, label=literal(label(name, x[name], line)), **styles[name])
        if f"{column}_min" in curves[0]:
            envelope(axes, curves, column, color=styles[name]["color"], alpha=0.15, zorder=0.9)
    limits = axes.get_ylim()
    for name, band in summary.bands.items():
        low = np.maximum(band.low, limits[0]) if positive else band.low
        here, colour = x[name][at[name]], styles[name]["color"]
        axes.fill_between(here, low, band.high, lw=0, color=colour, alpha=0.4, zorder=0.8)
    axes.set_ylim(limits)
    axes.set_xlabel(across)
    shaded = any(f"{column}_min" in curves[0] for curves in grouped.values())
    return words(summary, tables, shaded)


def _zero(axes: Axes) -> None:
    axes.axhline(0.0, color="black", lw=0.5, zorder=0.5)


def _linear(axes: Axes, grouped: Curves, middle: str, column: str) -> str:
    title = _lines(axes, grouped, column, spacing=np.linspace, middle=middle)
    _zero(axes)
    axes.set_ylabel(LABELS[column])
    return title


def _symlog(axes: Axes, grouped: Curves, middle: str, column: str) -> str:
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1e-2)
    title = _lines(axes, grouped, column, middle=middle)
    _zero(axes)
    axes.set_ylabel(LABELS[column])
    return title


def _regret(axes: Axes, grouped: Curves, middle: str) -> str:
    """Log-log, with the slope over the last decade of episodes in the legend."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    title = _lines(axes, grouped, "strong_regret", label=_sloped, middle=middle)
    axes.set_ylabel("strong regret")
    return f"{title}\nnumbers: slopes of the last decade"


def _mistakes(axes: Axes, grouped: Curves, middle: str) -> str:
    axes.set_xscale("log")
    axes.set_yscale("log")
    first = next(iter(grouped.values()))[0]
    column = "either_mistakes" if "either_mistakes" in first else "gap_mistakes"
    title = _lines(axes, grouped, column, "epsilon", middle=middle)
    axes.invert_xaxis()
    axes.set_xlabel("ε (stricter to the right)")
    axes.set_ylabel("mistakes")
    return title


def _phase(axes: Axes, grouped: Curves, middle: str) -> str:
    """Gap against violation over the last half of the first seed: an oscillation is a loop."""
    for name, style in styles_of(list(grouped)).items():
        one = grouped[name][0]
        half = one["episode"] >= one["episode"][-1] / 2
        gap, violation = one["gap"][half], _over_seeds([one], "violation")[0][half]
        axes.plot(violation, gap, label=literal(name), **(style | {"lw": 0.8}))
        axes.plot(violation[-1:], gap[-1:], "o", color=style["color"], ms=3)
    _zero(axes)
    axes.axvline(0.0, color="black", lw=0.5, zorder=0.5)
    axes.set_xlabel("constraint violation")
    axes.set_ylabel("optimality gap")
    return "the first seed, second half of its episodes"


KINDS: dict[str, Kind] = {
    "gap": Kind(partial(_linear, column="gap"), CURVES),
    "violation": Kind(partial(_linear, column="violation"), CURVES),
    "gap-symlog": Kind(partial(_symlog, column="gap"), CURVES),
    "violation-symlog": Kind(partial(_symlog, column="violation"), CURVES),
    "regret": Kind(_regret, CURVES),
    "mistakes": Kind(_mistakes, MISTAKES),
    "multiplier": Kind(partial(_linear, column="multiplier_1"), CURVES),
    "phase": Kind(_phase, CURVES, every_run),
}
