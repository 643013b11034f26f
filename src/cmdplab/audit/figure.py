"""The figure of an audit: mistakes for every epsilon, and when the last of them is made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdplab.audit.findings import Finding, extent
from cmdplab.figures.palette import Look, looks
from cmdplab.figures.style import MARKERS, literal, save, unframe
from cmdplab.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SATURATED = 0.999  # of the episodes: as far as the eye can tell, all of them
APART = 14  # points of the grid between two markers of a line
LETTERS = 115  # fit into the figure's width


def draw(findings: Sequence[Finding], folder: Path) -> list[Path]:
    """For each environment: mistakes and last mistakes against epsilon, log-log."""
    from matplotlib.figure import Figure

    places = list(dict.fromkeys(finding.environment for finding in findings))
    figure = Figure(figsize=(9.0, 4.9 * len(places) + 0.5), layout="constrained")
    parts: Any = figure.subfigures(len(places), 1, squeeze=False)
    for part, environment in zip(parts[:, 0], places, strict=True):
        mine = [finding for finding in findings if finding.environment == environment]
        left, right = part.subplots(1, 2)
        styles = looks([finding.label for finding in mine])
        for n, finding in enumerate(mine):
            _mistakes(left, finding, styles[finding.label], n)
            _last(right, finding, styles[finding.label], n)
        _finish(left, mine, "mistakes: episodes worse than ε\n(median)")
        _finish(right, mine, "last mistake: its episode\n(median)")
        title = fill(f"{environment}: {extent(mine)}", LETTERS)
        part.suptitle(literal(title), fontsize=10, x=0.01, ha="left")
        _legend(part, right)
    figure.suptitle(_note(findings), fontsize=9, x=0.01, ha="left")
    return [save(figure, folder / f"audit.{kind}") for kind in ("png", "pdf")]


def _note(findings: Sequence[Finding]) -> str:
    """Explain lines and shades: in the figure itself, where no caption can get lost."""
    bands = [band for finding in findings for band in finding.mistakes.values() if band is not None]
    lines = "gap or violation above ε; a line ends where all episodes are mistakes"
    thin = "thin: some run made such a mistake in its last three quarters"
    if not bands:
        return f"{lines}; {thin}"
    what = "the whole line" if all(band.at_once for band in bands) else "the line at each ε alone"
    held = f"shade: holds {what} with probability {bands[0].level:g}"
    return f"{lines}\nleft: {thin}; {held}"


def _whole(finding: Finding) -> str:
    """Gap or violation together, or the gap where there is no constraint."""
    return next(reversed(finding.counts))


def _mistakes(axes: Axes, finding: Finding, look: Look, n: int) -> None:
    """Thick where every count is quiet, thin from there on."""
    name, epsilon = _whole(finding), finding.epsilon
    band = finding.mistakes[name]
    counts = finding.units.reduced(finding.counts[name])
    middle = np.median(counts, axis=0) if band is None else band.middle
    if band is not None:
        low = np.where(band.high > 0.0, np.maximum(band.low, 1e-3), np.nan)
        high = np.minimum(band.high, finding.episodes)
        axes.fill_between(epsilon, low, high, color=look.colour, alpha=0.13, lw=0)
    quiet = np.inf if finding.quiet is None else finding.quiet
    shown = visible(middle, finding.episodes)
    for here, width in ((epsilon <= quiet, 0.8), (epsilon >= quiet, 1.8)):
        axes.plot(epsilon, np.where(here, shown, np.nan), **_line(look, n, width))


def _last(axes: Axes, finding: Finding, look: Look, n: int) -> None:
    last = np.median(finding.units.reduced(finding.last[_whole(finding)]), axis=0)
    label = literal(fill(f"{finding.label}: {finding.verdict}", LETTERS))
    axes.plot(finding.epsilon, visible(last, finding.episodes), label=label, **_line(look, n, 1.4))


def visible(counts: Array, episodes: int) -> Array:
    """Counts [E] for growing epsilon, without zeros and without all but the last saturated one."""
    shown = np.where(counts > 0.0, counts, np.nan)
    saturated = np.flatnonzero(counts >= SATURATED * episodes)
    shown[saturated[:-1]] = np.nan  # they would cover each other along the top
    return shown


def _line(look: Look, n: int, width: float) -> dict[str, Any]:
    """Colour, dash and marker; the markers of different lines lie at different epsilon."""
    marker = {"marker": MARKERS[n % len(MARKERS)], "ms": 3.5, "mew": 0.8, "mfc": "white"}
    place = {"lw": width, "markevery": (2 * n % APART, APART)}
    return {"color": look.colour, "ls": look.dash} | marker | place


def _legend(part: Any, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    half = -(-len(labels) // 2)
    longest = [max(map(len, some), default=0) for some in (labels[:half], labels[half:])]
    columns = 2 if sum(longest) <= LETTERS + 15 else 1
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": columns, "handlelength": 4}
    part.legend(handles, labels, fontsize=8, frameon=False, **place)


def _finish(axes: Axes, findings: Sequence[Finding], label: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(findings[0].epsilon[-1], findings[0].epsilon[0])  # stricter to the right
    axes.set_ylim(0.8, 1.5 * max(finding.episodes for finding in findings))
    axes.set_xlabel("ε (stricter to the right)")
    axes.set_ylabel(label)
    unframe(axes)
