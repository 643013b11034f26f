"""The figure of an audit: mistakes for every epsilon, and how strong regret grows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdplab.audit.findings import Finding, extent
from cmdplab.figures import line_style, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(findings: Sequence[Finding], folder: Path) -> list[Path]:
    """For each environment: mistakes and last mistakes against epsilon, log-log."""
    from matplotlib.figure import Figure

    places = list(dict.fromkeys(finding.environment for finding in findings))
    figure = Figure(figsize=(9.0, 4.6 * len(places) + 0.3), layout="constrained")
    parts: Any = figure.subfigures(len(places), 1, squeeze=False)
    for part, environment in zip(parts[:, 0], places, strict=True):
        mine = [finding for finding in findings if finding.environment == environment]
        left, right = part.subplots(1, 2)
        for n, finding in enumerate(mine):
            _mistakes(left, finding, n)
            _last(right, finding, n)
        _finish(left, mine, "mistakes: episodes worse than ε")
        _finish(right, mine, "last mistake (median run)")
        left.set_title(f"{environment}: {extent(mine)}", fontsize=10, loc="left")
        lines = right.get_legend_handles_labels()
        legend = part.legend(*lines, loc="outside lower center", ncols=2, fontsize=8)
        legend.set_frame_on(False)
    title = "gap or violation above ε; bands hold the whole curve with probability 0.95; "
    figure.suptitle(title + "faint: the count may still grow", fontsize=9, x=0.01, ha="left")
    return [save(figure, folder / f"audit.{kind}") for kind in ("png", "pdf")]


def _mistakes(axes: Axes, finding: Finding, n: int) -> None:
    name = next(reversed(finding.counts))
    counts, epsilon = finding.counts[name], finding.epsilon
    band = finding.mistakes[name]
    middle = np.median(counts, axis=0) if band is None else band.middle
    if band is not None:
        low, high = (np.where(end > 0.0, end, np.nan) for end in (band.low, band.high))
        axes.fill_between(epsilon, low, high, color=line_style(n)["color"], alpha=0.2, lw=0)
    final = epsilon >= (np.inf if finding.settled is None else finding.settled)
    shown = np.where(middle > 0.0, middle, np.nan)
    axes.plot(epsilon, shown, lw=0.7, alpha=0.6, **line_style(n))
    axes.plot(epsilon[final], shown[final], lw=1.8, label=finding.label, **line_style(n))


def _last(axes: Axes, finding: Finding, n: int) -> None:
    last = np.median(finding.last[next(reversed(finding.last))], axis=0)
    shown = np.where(last > 0.0, last, np.nan)
    axes.plot(
        finding.epsilon, shown, lw=1.4, label=f"{finding.label}: {finding.verdict}", **line_style(n)
    )


def _finish(axes: Axes, findings: Sequence[Finding], label: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(findings[0].epsilon[-1], findings[0].epsilon[0])  # stricter to the right
    axes.set_ylim(0.8, 1.5 * max(finding.episodes for finding in findings))
    axes.set_xlabel("ε (stricter to the right)")
    axes.set_ylabel(label)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
