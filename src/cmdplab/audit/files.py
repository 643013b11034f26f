"""Files of an audit: audit.json, audit.csv, audit.png and audit.pdf.

The figure shows mistakes for every epsilon, and the episode of the last mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdplab.audit.findings import Finding, extent, unanswered
from cmdplab.figures.palette import Look, looks
from cmdplab.figures.style import MARKERS, literal, save, unframe
from cmdplab.files.tables import csv_text
from cmdplab.files.write import to_json, writable_folder, write_text
from cmdplab.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SATURATED = 0.999  # share of the episodes that looks like all of them
APART = 14  # points of the grid between two markers of a line
LETTERS = 115  # fit into the figure's width


def write_audit(findings: Sequence[Finding], notes: Sequence[str], folder: Path) -> Path:
    """Write all files; the figure has one row of panels for each environment."""
    writable_folder(folder)
    content = {"notes": list(notes), "findings": [_plain(finding) for finding in findings]}
    text = to_json(content, indent=None)  # one line: a count per run and epsilon
    write_text(folder / "audit.json", text + "\n")
    rows = [row_of(finding) for finding in findings]
    write_text(folder / "audit.csv", csv_text([rows[0], *(row.values() for row in rows)]))
    draw(findings, folder)
    return folder


def row_of(finding: Finding) -> dict[str, Any]:
    """Return a group as one line of a table; missing values are None."""
    safe = {} if finding.safety is None else finding.safety._asdict()
    violation, rates = finding.final_violation, finding.judgement.exponents
    row = {
        "environment": finding.environment,
        "algorithm": finding.label,
        "runs": finding.runs,
        "instances": finding.instances,
        "over": finding.over,
        "episodes": finding.episodes,
        "verdict": finding.verdict,
        "envelope_exponent": rates[-1].middle if rates else None,
        "final_gap": finding.final_gap.middle,
        "final_violation": None if violation is None else violation.middle,
        "average_gap": finding.average_gap,
        "average_violation": finding.average_violation,
        "amplitude": finding.amplitude,
        "period": finding.period,
        "quiet_epsilon": finding.quiet,
    }
    fits = {"mistake": finding.mistake_exponent, "regret": finding.regret_exponent}
    for (name, fit), series in zip(fits.items(), ("mistakes", "regret"), strict=True):
        row[f"{name}_exponent"] = None if fit.why_not else fit.slope
        row[f"{name}_exponent_is_local"] = None if fit.why_not else fit.local
        powers = (finding.theorem or {}).get(series, (None, None))
        row[f"{name}_exponent_of_term_i"], row[f"{name}_exponent_of_term_ii"] = powers
    return row | {
        "heuristic": finding.heuristic,
        "violating_runs": safe.get("violating_runs"),
        "violating_episodes": safe.get("violating"),
        "first_violation": safe.get("first"),
        "largest_violation": safe.get("largest"),
        "baseline_share": safe.get("baseline_share"),
        "promise": safe.get("promise", "none"),
    }


def _plain(finding: Finding) -> dict[str, Any]:
    whole = finding._asdict() | {"unanswered": unanswered(finding)}
    for counts in ("counts", "last"):
        whole[counts] = {name: array.astype(int) for name, array in whole[counts].items()}
    return whole


def draw(findings: Sequence[Finding], folder: Path) -> list[Path]:
    """Draw mistakes and last mistakes against epsilon, log-log, for each environment."""
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
    """Return the explanation of lines and shades, which stands in the figure like a caption."""
    bands = [band for finding in findings for band in finding.mistakes.values() if band is not None]
    lines = "gap or violation above ε; a line ends where all episodes are mistakes"
    thin = "thin: some run made such a mistake in its last three quarters"
    if not bands:
        return f"{lines}; {thin}"
    what = "the whole line" if all(band.at_once for band in bands) else "the line at each ε alone"
    held = f"shade: holds {what} with probability {bands[0].level:g}"
    return f"{lines}\nleft: {thin}; {held}"


def _whole(finding: Finding) -> str:
    """Return the series of gap or violation together, or `gap` without a constraint."""
    return next(reversed(finding.counts))


def _mistakes(axes: Axes, finding: Finding, look: Look, n: int) -> None:
    """Draw the counts: thick where every count is quiet, thin elsewhere."""
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
    """Return counts [E] for growing epsilon, without zeros and all but one saturated count."""
    shown = np.where(counts > 0.0, counts, np.nan)
    saturated = np.flatnonzero(counts >= SATURATED * episodes)
    shown[saturated[:-1]] = np.nan  # they would lie on each other along the top
    return shown


def _line(look: Look, n: int, width: float) -> dict[str, Any]:
    """Return colour, dash and marker; the markers of different lines lie at different epsilon."""
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
