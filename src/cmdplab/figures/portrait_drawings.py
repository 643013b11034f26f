"""Drawings of portraits.py, at column width and legible in grey."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdplab.figures.portraits import EntropyCurve, Portrait
from cmdplab.figures.style import COLUMN, in_house_style, legend_below, literal, save, styles_of
from cmdplab.types import Array, Indices

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_STATES = 60  # more are not drawn all
VISITED_STATES = 40  # then only so many of the most visited
TICKS = 10
COLOURS = "magma_r"  # perceptually uniform, its lightness falls steadily: the same order in grey


def draw_entropy(curves: Sequence[EntropyCurve], title: str, path: Path) -> Path:
    """Draw entropy above and temperature below, against the episode on a logarithmic axis."""
    from matplotlib.figure import Figure

    cooled = [c for c in curves if c.temperature is not None and c.temperature.max() > 0.0]
    panels = 2 if cooled else 1
    figure = Figure(figsize=(COLUMN[0], 0.4 + 1.5 * panels), layout="constrained")
    axes = figure.subplots(panels, sharex=True, squeeze=False)[:, 0]
    styles = styles_of([c.row.name for c in curves])
    for c in curves:
        axes[0].plot(c.episode, c.entropy, label=literal(c.row.name), **styles[c.row.name])
    axes[0].set_ylim(-0.02, 1.02)
    axes[0].set_ylabel("policy entropy\n/ (H ln A)")
    if cooled:
        for c in cooled:
            axes[1].plot(c.episode, c.temperature, **styles[c.row.name])
        axes[1].set_yscale("log")
        axes[1].set_ylabel("temperature τ")
    axes[-1].set_xscale("log")
    points = max(len(c.episode) for c in curves)
    axes[-1].set_xlabel(f"episode ({points} of {curves[0].episode[-1]:,.0f} looked at)")
    for panel in axes:
        in_house_style(panel)
    legend_below(figure, axes[0], "\n".join([title, *_without(curves)]))
    return save(figure, path)


def _without(curves: Sequence[EntropyCurve]) -> list[str]:
    """Return the lines that the lower panel lacks, with the reason."""
    none = [c.row.name for c in curves if c.temperature is None]
    zero = [c.row.name for c in curves if c.temperature is not None and not c.temperature.any()]
    lines = [f"no temperature: {', '.join(none)}"] if none else []
    return lines + ([f"temperature 0: {', '.join(zero)}"] if zero else [])


def draw_occupancy(portrait: Portrait, title: str, path: Path) -> Path:
    """Draw sum_a w_h(x, a) of both policies side by side: steps across, states down.

    Both have one colour scale, of square roots, because the first step has all its mass in one
    state.
    """
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure

    learned, optimal = (occupancy.sum(axis=-1).T for occupancy in portrait)  # [X, H]
    rows = shown_states(learned, optimal)
    most = float(max(learned.max(), optimal.max()))
    norm = PowerNorm(0.5, vmin=0.0, vmax=most)
    height = min(4.2, 1.8 + 0.07 * max(len(rows), 10))
    figure = Figure(figsize=(COLUMN[0], height), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    image: Any = None
    for panel, mass, name in zip(axes, (learned, optimal), ("learned", "optimal"), strict=True):
        image = panel.imshow(mass[rows], aspect="auto", cmap=COLOURS, norm=norm)
        panel.set_title(name, fontsize=8)
        panel.set_xlabel("step", fontsize=8)
        _ticks(panel, rows, mass.shape[1])
    axes[0].set_ylabel(_states_label(rows, learned, optimal), fontsize=8)
    bar = figure.colorbar(image, ax=list(axes), ticks=_levels(most))
    bar.set_label("Σₐ w(x, a), square-root scale", fontsize=7)
    bar.ax.tick_params(labelsize=7)
    distance = f"total-variation distance {portrait.distance:.3g}, mean over steps"
    figure.suptitle(f"{literal(title)}\n{distance}", fontsize=7)
    return save(figure, path)


def shown_states(learned: Array, optimal: Array) -> Indices:
    """Return the states to draw, in order: all of [X, H], or the most visited by both together."""
    X = len(learned)
    if X <= MOST_STATES:
        return np.arange(X, dtype=np.int64)
    visits = (learned + optimal).sum(axis=1)
    return np.sort(np.argsort(-visits, kind="stable")[:VISITED_STATES])


def _states_label(rows: Indices, learned: Array, optimal: Array) -> str:
    X = len(learned)
    if len(rows) == X:
        return "state"
    share = (learned[rows] + optimal[rows]).sum() / (learned + optimal).sum()
    return f"state: the {len(rows)} most visited of {X:,} ({100 * share:.0f} % of visits)"


def _levels(most: float) -> list[float]:
    """Return round numbers that lie apart on a square-root scale."""
    return [level for level in (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0) if level <= most]


def _ticks(panel: Axes, rows: Indices, steps: int) -> None:
    """Mark a few of the steps, counted from 1, and of the states, counted from 0."""
    at = np.arange(0, steps, max(1, -(-steps // 5)))
    panel.set_xticks(at, [str(h + 1) for h in at])
    at = np.arange(0, len(rows), max(1, -(-len(rows) // TICKS)))
    panel.set_yticks(at, [str(rows[n]) for n in at])
    panel.tick_params(labelsize=7)
