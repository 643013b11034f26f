"""Figures from records in one style: at column width for a paper, in PNG, PDF or SVG.

The light shade holds every episode of every seed. From six seeds on, the darker shade is a band of
the line (bands.py), which is a median unless a mean is asked for. The legend's title explains them.
Nothing is smoothed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from cmdplab.errors import InputError
from cmdplab.experiments.durable import CURVES, MISTAKES
from cmdplab.experiments.records.tables import Curves
from cmdplab.figures.bands import HEAVY, MEDIAN, middle_of, spread_out, summarised, words
from cmdplab.figures.palette import BLUE, LABELS, VERMILION
from cmdplab.figures.sources import (
    Plotted,
    Sampling,
    Source,
    every_run,
    in_memory,
    per_instance,
    records_of,
)
from cmdplab.figures.style import (
    COLUMN,
    PaperFigure,
    check_suffix,
    envelope,
    in_house_style,
    legend_below,
    literal,
    save,
    styles_of,
    unframe,
)
from cmdplab.solvers.thresholds.frontier import Frontier
from cmdplab.types import Array

MOST_DOTS = 40  # breakpoints of a frontier; more are not marked
Drawing = Callable[[Axes, Curves, str], str]  # draws, and says what lines and shades are


class Kind(NamedTuple):
    """A way to draw a figure, its records, and its independent samples."""

    drawing: Drawing
    file: str
    sampling: Sampling = per_instance


class Drawn(NamedTuple):
    """The file of a figure, and notes on missing runs."""

    path: Path
    notes: list[str]


def figure(
    source: Source | Frontier,
    kind: str = "gap",
    environment: str | None = None,
    middle: str = MEDIAN.name,
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
    return draw(in_memory(source, file), drawing, middle)[0]


def plot(
    folder: Path, kind: str, path: Path, environment: str | None = None, middle: str = MEDIAN.name
) -> Drawn:
    """Draw one of `KINDS` from the records of a folder; of a sweep's, one environment's.

    Lines are medians over seeds, or means; a note warns of means of heavy tails.
    """
    drawing, file, sampling = kind_of_figure(kind)
    check_suffix(path)
    plotted = records_of(folder, file, environment, sampling)
    figure, title = draw(plotted, drawing, middle)
    risk = f"a mean was asked for, and {HEAVY}: prefer the median"
    return Drawn(save(figure, path), [*plotted.notes, *[risk] * (HEAVY in title)])


def draw(plotted: Plotted, drawing: Drawing, middle: str = MEDIAN.name) -> tuple[PaperFigure, str]:
    """Draw records at column width; return the figure, and the explanation of its lines."""
    figure = PaperFigure(figsize=COLUMN, layout="constrained")
    axes = figure.subplots()
    title = drawing(axes, plotted.curves, middle).replace("seed", plotted.sample)
    in_house_style(axes)
    legend_below(figure, axes, "\n".join(filter(None, (plotted.about, title))))
    return figure, title


def kind_of_figure(name: str) -> Kind:
    """Return one of `KINDS` by its name."""
    if name not in KINDS:
        raise InputError(f"unknown figure {name!r}: choose one of {', '.join(KINDS)}")
    return KINDS[name]


def _over_seeds(curves: list[dict[str, Array]], column: str) -> Array:
    if column not in curves[0]:
        raise InputError(f"there is no {column.replace('_', ' ')} in these records")
    return np.array([run[column] for run in curves])


def _named(name: str, x: Array, line: Array) -> str:
    return name


def _sloped(name: str, x: Array, line: Array) -> str:
    """Return the name with the slope over the last decade of episodes, if there is one."""
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
    middle: str,
    label: Callable[[str, Array, Array], str] = _named,
) -> str:
    """Draw a line for each algorithm, with its envelope and its band; set the scales before.

    Lines and envelopes choose the limits of the axes. A band may leave them.
    """
    tables = {name: _over_seeds(curves, column) for name, curves in grouped.items()}
    x = {name: curves[0][across] for name, curves in grouped.items()}
    spacing = np.geomspace if axes.get_xscale() == "log" else np.linspace
    at = {name: spread_out(points, spacing) for name, points in x.items()}
    kind = middle_of(middle, counts=across == "epsilon")
    summary = summarised({name: table[:, at[name]] for name, table in tables.items()}, kind)
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


def _around_zero(axes: Axes, grouped: Curves, middle: str, column: str) -> str:
    title = _lines(axes, grouped, column, middle=middle)
    _zero(axes)
    axes.set_ylabel(LABELS[column])
    return title


def _symlog(axes: Axes, grouped: Curves, middle: str, column: str) -> str:
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1e-2)
    return _around_zero(axes, grouped, middle, column)


def _regret(axes: Axes, grouped: Curves, middle: str) -> str:
    """Draw strong regret log-log, with the slope over the last decade of episodes."""
    axes.set(xscale="log", yscale="log")
    title = _lines(axes, grouped, "strong_regret", label=_sloped, middle=middle)
    axes.set_ylabel("strong regret")
    return f"{title}\nnumbers: slopes of the last decade"


def _mistakes(axes: Axes, grouped: Curves, middle: str) -> str:
    axes.set(xscale="log", yscale="log")
    first = next(iter(grouped.values()))[0]
    column = "either_mistakes" if "either_mistakes" in first else "gap_mistakes"
    title = _lines(axes, grouped, column, "epsilon", middle=middle)
    axes.invert_xaxis()
    axes.set(xlabel="ε (stricter to the right)", ylabel="mistakes")
    return title


def _phase(axes: Axes, grouped: Curves, middle: str) -> str:
    """Draw gap against violation over the last half of the first seed: an oscillation is a loop."""
    for name, style in styles_of(list(grouped)).items():
        one = grouped[name][0]
        half = one["episode"] >= one["episode"][-1] / 2
        gap, violation = one["gap"][half], _over_seeds([one], "violation")[0][half]
        axes.plot(violation, gap, label=literal(name), **(style | {"lw": 0.8}))
        axes.plot(violation[-1:], gap[-1:], "o", color=style["color"], ms=3)
    _zero(axes)
    axes.axvline(0.0, color="black", lw=0.5, zorder=0.5)
    axes.set(xlabel="constraint violation", ylabel="optimality gap")
    return "the first seed, second half of its episodes"


KINDS: dict[str, Kind] = {
    "gap": Kind(partial(_around_zero, column="gap"), CURVES),
    "violation": Kind(partial(_around_zero, column="violation"), CURVES),
    "gap-symlog": Kind(partial(_symlog, column="gap"), CURVES),
    "violation-symlog": Kind(partial(_symlog, column="violation"), CURVES),
    "regret": Kind(_regret, CURVES),
    "mistakes": Kind(_mistakes, MISTAKES),
    "multiplier": Kind(partial(_around_zero, column="multiplier_1"), CURVES),
    "phase": Kind(_phase, CURVES, every_run),
}


def draw_frontier(frontier: Frontier, name: str, path: Path) -> Path:
    """Draw the optimal value against a threshold into a file."""
    return save(frontier_figure(frontier, name), path)


def frontier_figure(frontier: Frontier, name: str) -> PaperFigure:
    """Return the figure of the optimal value against a threshold, with the problem's own marked."""
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
