"""Figures, drawn from records alone. Nothing is smoothed: what is thinned carries its envelope."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdplab.announcing import announce
from cmdplab.files import written_whole
from cmdplab.problem import Array
from cmdplab.records import Curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, apart for the colour-blind; styles and widths keep them apart in grey.
STYLES: dict[str, tuple[str, str, float]] = {
    "UOpt-RPGPD": ("#0072B2", "-", 2.2),
    "No-adjustment": ("#E69F00", "--", 1.5),
    "No-UPAC-bonus": ("#009E73", "-.", 1.5),
    "OptPrimalDual-CMDP": ("#D55E00", "-", 0.9),
    "No-regularization": ("#A0A0A0", "-", 0.35),
}
_OTHERS = ("#CC79A7", "#56B4E9", "#882255", "#000000")
# For lines without a style of their own: lines with the same dash differ in lightness.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", ":", "-.")
MARKERS = "os^Dv<>"
CALM = 0.1  # an algorithm that varies by less than this in its last tenth is shown enlarged


def line_style(n: int) -> dict[str, Any]:
    """The n-th of 28 lines that can be told apart, the first seven also in grey."""
    turn, place = divmod(n, len(PALETTE))
    return {"color": PALETTE[place], "ls": DASHES[(n + 2 * turn) % len(DASHES)]}


def literal(text: str) -> str:
    """A text from outside as Matplotlib shows it unchanged: `$` begins no formula.

    Characters that no font draws (controls, formats, surrogates) are dropped, but line breaks stay.
    A leading underscore, which would hide a line from its legend, gets a space before it.
    """
    unseen = ("C", "Zl", "Zp")
    seen = [c for c in text if c == "\n" or not unicodedata.category(c).startswith(unseen)]
    return ("" if seen[:1] != ["_"] else " ") + "".join(seen).replace("$", r"\$")


def figure_1(curves: Curves, title: str, folder: Path, starred: Collection[str]) -> list[Path]:
    """The paper's Figure 1: optimality gap and violation of every algorithm, as PNG and PDF.

    The `starred` algorithms get an asterisk in the legend; the title says what it means.
    """
    announce("drawing the figure: some seconds")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.6), layout="constrained")
    axes = figure.subplots(1, 2)
    panels = [("gap", "optimality gap"), ("violation", "constraint violation")]
    drawn = [p for p in panels if p[0] in _first(curves)]
    for panel, (column, label) in zip(axes, drawn, strict=False):
        _panel(panel, curves, column)
        panel.set_ylabel(label)
        _zoom(panel, curves, column)
    for unused in axes[len(drawn) :]:
        unused.set_visible(False)
    drawn_lines = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
    names = [literal(name + ("*" if name in starred else "")) for name in curves]
    lines = [drawn_lines[literal(name)] for name in curves]
    legend = figure.legend(lines, names, loc="outside lower center", ncols=5)
    legend.set_frame_on(False)
    for line in legend.get_lines():
        line.set_linewidth(max(line.get_linewidth(), 1.5))
    figure.suptitle(literal(title), fontsize=11)
    return [save(figure, folder / f"figure1.{kind}") for kind in ("png", "pdf")]


def _first(curves: Curves) -> dict[str, Array]:
    return next(iter(curves.values()))[0]


def _panel(axes: Axes, grouped: Curves, column: str, widest: float = np.inf) -> None:
    """Median over seeds; the band holds every episode of every seed."""
    names = list(grouped)
    spare = iter(_OTHERS * (1 + len(names) // len(_OTHERS)))
    styles = {name: STYLES.get(name) or (next(spare), "-", 1.3) for name in names}
    widths = {name: _tail_range(grouped[name], column) for name in names}
    # The widest bands first, so that the calm curves lie on top of the oscillating ones.
    ranks = sorted((n for n in names if widths[n] <= widest), key=lambda n: -widths[n])
    for order, name in enumerate(ranks):
        colour, style, width = styles[name]
        curves = grouped[name]
        episodes = curves[0]["episode"]
        low = np.min([c[f"{column}_min"] for c in curves], axis=0)
        high = np.max([c[f"{column}_max"] for c in curves], axis=0)
        axes.fill_between(episodes, low, high, color=colour, alpha=0.25, lw=0, zorder=order)
        middle = np.median([c[column] for c in curves], axis=0)
        look: dict[str, Any] = {"color": colour, "ls": style, "lw": width, "zorder": 10 + order}
        axes.plot(episodes, middle, label=literal(name), **look)
    axes.axhline(0.0, color="black", lw=0.6, zorder=0.5)
    axes.set_xlabel("episode")
    axes.set_xlim(0, float(_first(grouped)["episode"][-1]))
    limit = _limit(list(grouped.values()), column)
    axes.set_ylim(-limit, limit)
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _limit(groups: Sequence[Sequence[dict[str, Array]]], column: str) -> float:
    """3 as in the paper, unless all that comes after the first twentieth fits into much less."""
    largest = 0.0
    for curves in groups:
        late = curves[0]["episode"] >= 0.05 * curves[0]["episode"][-1]
        for c in curves:
            largest = max(largest, -c[f"{column}_min"][late].min(), c[f"{column}_max"][late].max())
    return 3.0 if largest > 1.0 else max(2.0 * largest, 0.05)


def _tail_range(curves: Sequence[dict[str, Array]], column: str) -> float:
    """How far the values spread in the last tenth, over all episodes and seeds."""
    tail = curves[0]["episode"] >= 0.9 * curves[0]["episode"][-1]
    high = max(c[f"{column}_max"][tail].max() for c in curves)
    return float(high - min(c[f"{column}_min"][tail].min() for c in curves))


def _zoom(axes: Axes, grouped: Curves, column: str) -> None:
    """The calm algorithms differ by less than a line's width above: their last third, enlarged."""
    last = float(_first(grouped)["episode"][-1])
    inset = axes.inset_axes((0.5, 0.04, 0.49, 0.25))
    inset.set_zorder(50)
    _panel(inset, grouped, column, widest=CALM)
    calm = inset.lines[:-1]  # the last line is the axis
    if not calm:
        inset.remove()
        return
    inset.set_xlim(last * 2 / 3, last)
    curves = [(np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in calm]
    shown = np.concatenate([y[x >= last * 2 / 3] for x, y in curves])
    low, high = min(0.0, float(shown.min())), max(0.0, float(shown.max()))
    margin = 0.2 * (high - low) + 1e-6
    inset.set_ylim(low - margin, high + margin)
    inset.set_xlabel("")
    inset.set_xticks([])
    inset.tick_params(labelsize=7)
    for spine in inset.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(0.6)
    plain = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    inset.set_title("last third, the calm ones enlarged", fontsize=7, pad=3, bbox=plain)


def save(figure: Any, path: Path) -> Path:
    """Whole or not at all; the same numbers give the same file."""
    with written_whole(path) as temporary:
        metadata = {"CreationDate": None} if path.suffix == ".pdf" else None
        figure.savefig(temporary, dpi=200, format=path.suffix[1:], metadata=metadata)
    return path
