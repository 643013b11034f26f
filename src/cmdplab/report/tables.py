"""The summary of a report as LaTeX (booktabs) and as CSV."""

from __future__ import annotations

import math

from cmdplab.files.tables import csv_text
from cmdplab.measures.measures import NUMBERS
from cmdplab.report.model import Entry, Report, Section

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
}
_COLUMNS = (
    ("final_gap", "gap"),
    ("final_violation", "violation"),
    ("strong_regret", "$R_+$"),
    ("weak_regret", "$R$"),
    ("strong_violation_regret", "$V_+$"),
    ("weak_violation_regret", "$V$"),
)

_SAFETY = ("violating_runs", "violating", "first", "largest", "baseline_share", "promise")


def latex(text: str) -> str:
    """Return LaTeX that prints a text; line breaks and control characters become spaces."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return "".join(_ESCAPES.get(c, c) for c in plain)


def number(value: float | None) -> str:
    """Return a number with three significant digits, as LaTeX."""
    if value is None or not math.isfinite(value):
        return "--"
    if value == 0.0:
        return "$0$"
    if 1e-3 <= abs(value) < 1e4:
        digits = max(0, 2 - math.floor(math.log10(abs(value))))
        return f"${value:.{digits}f}$"
    mantissa, exponent = f"{value:.2e}".split("e")
    return rf"${mantissa} \cdot 10^{{{int(exponent)}}}$"


def latex_table(report: Report) -> str:
    r"""Return a `tabular` for each problem, for \input; the preamble needs booktabs."""
    return "% needs \\usepackage{booktabs}\n" + "\n".join(map(_tabular, report.sections))


def _tabular(section: Section) -> str:
    head = ["algorithm", "verdict", *(title for _, title in _COLUMNS), "episodes/s"]
    rows = [" & ".join(_cells(entry)) + r" \\" for entry in section.entries]
    lines = [
        f"% {latex(section.problem)}: medians over seeds; R, V: regret and violation, +: strong",
        r"\begin{tabular}{llrrrrrrr}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _cells(entry: Entry) -> list[str]:
    spreads = [entry.numbers[field] for field, _ in _COLUMNS]
    numbers = [number(None if spread is None else spread.median) for spread in spreads]
    rate = "--" if entry.rate is None else f"{entry.rate:.0f}"
    return [latex(entry.label), latex(entry.verdict), *numbers, rate]


def csv_table(report: Report) -> str:
    """Return a row for each algorithm on each problem, with all digits of the numbers."""
    ends = ("median", "min", "max")
    head = ["problem", "algorithm", "preset", "seeds", "episodes", "verdict"]
    head += [f"{field}_{end}" for field in NUMBERS for end in ends]
    rows: list[list[object]] = [[*head, "episodes_per_second", *_SAFETY]]
    for section in report.sections:
        for entry in section.entries:
            row: list[object] = [section.problem, entry.label, entry.about.preset]
            row += [len(entry.seeds), entry.episodes, entry.verdict]
            for field in NUMBERS:
                row += entry.numbers[field] or (None, None, None)
            safe = [getattr(entry.safety, field, None) for field in _SAFETY]
            rows.append([*row, entry.rate, *safe])
    return csv_text(rows)
