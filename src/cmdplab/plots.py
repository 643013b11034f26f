"""Figures from records, in one house style: at column width for a paper, in PNG, PDF or SVG.

Medians over seeds; bands hold every episode of every seed. Nothing is smoothed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdplab.errors import InputError
from cmdplab.figures import STYLES, line_style, save
from cmdplab.problem import Array
from cmdplab.records import Curves, read_curves
from cmdplab.surviving import CURVES, MISTAKES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMN = (3.5, 2.6)  # inches: one column of a two-column paper
SUFFIXES = (".png", ".pdf", ".svg")


def plot(folder: Path, kind: str, path: Path) -> Path:
    """Draw one of `KINDS` from the records of a folder that holds one problem's runs."""
    if kind not in KINDS:
        raise InputError(f"unknown figure {kind!r}: choose one of {', '.join(KINDS)}")
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path} is no {', '.join(SUFFIXES)}")
    drawing, file = KINDS[kind]
    if not (folder / file).exists():
        raise InputError(f"{folder} has no {file}: give a folder of `reproduce` or `compare`")
    curves = read_curves(folder / file)
    from matplotlib.figure import Figure

    figure = Figure(figsize=COLUMN, layout="constrained")
    axes = figure.subplots()
    drawing(axes, curves)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=7)
    axes.xaxis.label.set_fontsize(8)
    axes.yaxis.label.set_fontsize(8)
    legend = axes.legend(fontsize=6, frameon=False)
    for line in legend.get_lines():
        line.set_linewidth(max(line.get_linewidth(), 1.2))
    return save(figure, path)


def _styles(names: list[str]) -> dict[str, dict[str, Any]]:
    styles: dict[str, dict[str, Any]] = {}
    for n, name in enumerate(names):
        styles[name] = line_style(n) | {"lw": 1.2}
        if name in STYLES:
            colour, dash, width = STYLES[name]
            styles[name] = {"color": colour, "ls": dash, "lw": min(width, 1.6)}
    return styles


def _over_seeds(curves: list[dict[str, Array]], column: str) -> Array:
    if column not in curves[0]:
        raise InputError(f"there is no {column.replace('_', ' ')} in these records")
    return np.array([each[column] for each in curves])


def _series(axes: Axes, grouped: Curves, column: str, label: str) -> None:
    for name, style in _styles(list(grouped)).items():
        curves = grouped[name]
        episodes = curves[0]["episode"]
        middle = np.median(_over_seeds(curves, column), axis=0)
        if f"{column}_min" in curves[0]:
            low = _over_seeds(curves, f"{column}_min").min(axis=0)
            high = _over_seeds(curves, f"{column}_max").max(axis=0)
            axes.fill_between(episodes, low, high, color=style["color"], alpha=0.2, lw=0)
        axes.plot(episodes, middle, label=name, **style)
    axes.axhline(0.0, color="black", lw=0.5, zorder=0.5)
    axes.set_xlabel("episode")
    axes.set_ylabel(label)


def _gap(axes: Axes, grouped: Curves) -> None:
    _series(axes, grouped, "gap", "optimality gap")


def _violation(axes: Axes, grouped: Curves) -> None:
    _series(axes, grouped, "violation", "constraint violation")


def _symlog(column: str, label: str) -> Callable[[Axes, Curves], None]:
    def drawing(axes: Axes, grouped: Curves) -> None:
        _series(axes, grouped, column, label)
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=1e-2)

    return drawing


def _multiplier(axes: Axes, grouped: Curves) -> None:
    _series(axes, grouped, "multiplier_1", "multiplier of constraint 1")


def _regret(axes: Axes, grouped: Curves) -> None:
    """Log-log, with the slope over the last decade of episodes in the legend."""
    for name, style in _styles(list(grouped)).items():
        curves = grouped[name]
        episodes = curves[0]["episode"]
        middle = np.median(_over_seeds(curves, "strong_regret"), axis=0)
        late = (episodes >= episodes[-1] / 10.0) & (middle > 0.0)
        label = name
        if late.sum() > 8:
            slope = np.polyfit(np.log(episodes[late]), np.log(middle[late]), 1)[0]
            label = f"{name}: {slope:.2f}"
        axes.plot(episodes, np.where(middle > 0.0, middle, np.nan), label=label, **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("episode")
    axes.set_ylabel("strong regret (slope of the last decade)")


def _mistakes(axes: Axes, grouped: Curves) -> None:
    for name, style in _styles(list(grouped)).items():
        tables = grouped[name]
        column = "either_mistakes" if "either_mistakes" in tables[0] else "gap_mistakes"
        middle = np.median(_over_seeds(tables, column), axis=0)
        shown = np.where(middle > 0.0, middle, np.nan)
        axes.plot(tables[0]["epsilon"], shown, label=name, **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.invert_xaxis()
    axes.set_xlabel("ε (stricter to the right)")
    axes.set_ylabel("mistakes")


def _phase(axes: Axes, grouped: Curves) -> None:
    """Gap against violation over the last half of the first seed: an oscillation is a loop."""
    for name, style in _styles(list(grouped)).items():
        one = grouped[name][0]
        half = one["episode"] >= one["episode"][-1] / 2
        gap, violation = one["gap"][half], _over_seeds([one], "violation")[0][half]
        axes.plot(violation, gap, label=name, **(style | {"lw": 0.8}))
        axes.plot(violation[-1:], gap[-1:], "o", color=style["color"], ms=3)
    axes.axhline(0.0, color="black", lw=0.5, zorder=0.5)
    axes.axvline(0.0, color="black", lw=0.5, zorder=0.5)
    axes.set_xlabel("constraint violation")
    axes.set_ylabel("optimality gap")


KINDS: dict[str, tuple[Callable[[Axes, Curves], None], str]] = {
    "gap": (_gap, CURVES),
    "violation": (_violation, CURVES),
    "gap-symlog": (_symlog("gap", "optimality gap"), CURVES),
    "violation-symlog": (_symlog("violation", "constraint violation"), CURVES),
    "regret": (_regret, CURVES),
    "mistakes": (_mistakes, MISTAKES),
    "multiplier": (_multiplier, CURVES),
    "phase": (_phase, CURVES),
}
