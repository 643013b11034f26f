"""Files of an audit: audit.json, audit.csv, audit.png and audit.pdf."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cmdplab.audit.figure import draw
from cmdplab.audit.findings import Finding, unanswered
from cmdplab.files.cells import csv_text
from cmdplab.files.write import to_json, writable_folder, write_text
from cmdplab.statistics import Exponent, Interval


def write_audit(findings: Sequence[Finding], notes: Sequence[str], folder: Path) -> Path:
    """Write everything; the figure has one row of panels for each environment."""
    writable_folder(folder)
    content = {"notes": list(notes), "findings": [_plain(finding) for finding in findings]}
    text = to_json(content, indent=None)  # one line: a count per run and epsilon
    write_text(folder / "audit.json", text + "\n")
    rows = [row_of(finding) for finding in findings]
    write_text(folder / "audit.csv", csv_text([rows[0], *(row.values() for row in rows)]))
    draw(findings, folder)
    return folder


def row_of(finding: Finding) -> dict[str, Any]:
    """One line of a table; what does not exist is empty."""
    nothing, safe = (None, None), {} if finding.safety is None else finding.safety._asdict()
    mistakes, regret = ((finding.theorem or {}).get(e, nothing) for e in ("mistakes", "regret"))
    return {
        "environment": finding.environment,
        "algorithm": finding.label,
        "runs": finding.runs,
        "instances": finding.instances,
        "over": finding.over,
        "episodes": finding.episodes,
        "verdict": finding.verdict,
        "envelope_exponent": _latest(finding.judgement.exponents),
        "final_gap": finding.final_gap.middle,
        "final_violation": _middle(finding.final_violation),
        "average_gap": finding.average_gap,
        "average_violation": finding.average_violation,
        "amplitude": finding.amplitude,
        "period": finding.period,
        "quiet_epsilon": finding.quiet,
        "mistake_exponent": _slope(finding.mistake_exponent),
        "mistake_exponent_is_local": _local(finding.mistake_exponent),
        "mistake_exponent_of_term_i": mistakes[0],
        "mistake_exponent_of_term_ii": mistakes[1],
        "regret_exponent": _slope(finding.regret_exponent),
        "regret_exponent_is_local": _local(finding.regret_exponent),
        "regret_exponent_of_term_i": regret[0],
        "regret_exponent_of_term_ii": regret[1],
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


def _latest(exponents: list[Interval]) -> float | None:
    return exponents[-1].middle if exponents else None


def _middle(interval: Interval | None) -> float | None:
    return None if interval is None else interval.middle


def _slope(exponent: Exponent) -> float | None:
    return None if exponent.why_not else exponent.slope


def _local(exponent: Exponent) -> bool | None:
    return None if exponent.why_not else exponent.local
