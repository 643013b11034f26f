"""The page: template, style, scripts and data in one file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmdplab.experiments import manifest
from cmdplab.figures.palette import LABELS, looks
from cmdplab.files.write import to_json
from cmdplab.measures.envelope import SHORTEST
from cmdplab.measures.measures import NUMBERS
from cmdplab.measures.mistakes import SERIES
from cmdplab.measures.verdict import FLAT, GROWS, SMALL, SWINGS
from cmdplab.report.model import Entry, Report, Section, Thinned
from cmdplab.report.tables import csv_table
from cmdplab.types import Array

SCHEMA = 1
_DASHES = {"-": (), "--": (7, 4), ":": (2, 3), "-.": (9, 3, 2, 3)}


def page(report: Report) -> str:
    """Return the whole page as text."""
    scripts = ("helpers.js", "chart.js", "app.js")
    return assembled("report", scripts, report.title, content(report))


def assembled(kind: str, scripts: Sequence[str], title: str, value: Any) -> str:
    """Return the page of a kind, `report` or `board`: frame, style, one script, and its data."""
    here = files("cmdplab.report")
    sources = [(here / name).read_text(encoding="utf-8") for name in scripts]
    script = "\n".join(['"use strict";', "(() => {", *sources, "})();"])
    parts = {
        "kind": kind,
        "title": html.escape(title),
        "body": (here / f"{kind}.html").read_text(encoding="utf-8"),
        "style": (here / "style.css").read_text(encoding="utf-8"),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "data": embedded(value),
    }
    # In one pass, so that text of a record is never taken for a place of the template.
    whole = (here / "frame.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], whole)


def embedded(value: Any) -> str:
    """Return JSON that is safe within <script>: ASCII, and without <, > and &."""
    text = json.dumps(json.loads(to_json(value)), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def content(report: Report) -> dict[str, Any]:
    """Return the data that the script reads."""
    return {
        "schema": SCHEMA,
        "title": report.title,
        "folder": report.folder,
        "fields": NUMBERS,
        "troubles": report.troubles,
        "notes": report.notes,
        "versions": report.versions,
        "machine": report.machine,
        "written_by": manifest.versions(),
        "rule": {
            "shortest": SHORTEST,
            "swings": SWINGS,
            "flat": FLAT,
            "grows": GROWS,
            "small": SMALL,
        },
        "problems": [_problem(section) for section in report.sections],
        "csv": csv_table(report),
    }


def _problem(section: Section) -> dict[str, Any]:
    styles = _styles([entry.label for entry in section.entries])
    names = dict.fromkeys(name for entry in section.entries for name in entry.curves)
    return {
        "name": section.problem,
        "horizon": section.horizon,
        "optimum": section.optimum,
        "threshold": section.threshold,
        "slater_gap": section.slater_gap,
        "epsilons": encoded(section.epsilons),
        "columns": [[name, _label(name)] for name in sorted(names, key=_place)],
        "series": [s for s in SERIES if f"{s}_mistakes" in section.entries[0].mistakes],
        "algorithms": [_algorithm(entry) | styles[entry.label] for entry in section.entries],
        "versus": [
            {"first": p.first, "second": p.second, "outcome": p.outcome, "words": p.words}
            for p in section.versus
        ],
    }


def _styles(labels: list[str]) -> dict[str, dict[str, Any]]:
    """Return the looks of the figures' lines for a canvas."""
    return {
        label: {"colour": look.colour, "dash": _DASHES[look.dash], "width": look.width}
        for label, look in looks(labels).items()
    }


def _place(name: str) -> tuple[int, str]:
    """Return the sort key of a column: gap, violation, strong regrets, multipliers, others."""
    first = ["gap", "violation", "strong_regret", "strong_violation_regret"]
    if name in first:
        return first.index(name), ""
    kinds = ("multiplier", "weak", "violation_")
    kind = next((n for n, start in enumerate(kinds) if name.startswith(start)), len(kinds))
    return len(first) + kind, f"{len(name):04}{name}"


def _label(name: str) -> str:
    kind, _, number = name.rpartition("_")
    if number.isdigit():
        words = {"violation": "violation of constraint"}.get(kind, kind)
        return f"{words} {number}"
    return LABELS.get(name, name.replace("_", " "))


def _algorithm(entry: Entry) -> dict[str, Any]:
    fields = entry._asdict() | entry.about._asdict()
    del fields["about"]
    return fields | {
        "episode": encoded(entry.episode),
        "curves": {name: _curve(curve) for name, curve in entry.curves.items()},
        "mistakes": {
            name: [encoded(row) for row in table] for name, table in entry.mistakes.items()
        },
    }


def _curve(curve: Thinned) -> dict[str, Any]:
    low, high = curve.low.astype(np.float32), curve.high.astype(np.float32)
    low = np.where(low > curve.low, np.nextafter(low, np.float32(-np.inf)), low)
    high = np.where(high < curve.high, np.nextafter(high, np.float32(np.inf)), high)
    middle = curve.median.astype(np.float32)
    return {"sums": curve.sums, "of": [_base64(values) for values in (middle, low, high)]}


def encoded(values: Array) -> str:
    """Return values as base64: in single precision if that loses nothing, else in double."""
    single = values.astype(np.float32)
    same = np.array_equal(single.astype(np.float64), values)
    return _base64(single if same else values.astype(np.float64))


def _base64(values: NDArray[Any]) -> str:
    kind = f"f{values.dtype.itemsize}"
    little = np.ascontiguousarray(values).astype(f"<{kind}")
    return f"{kind}:{base64.b64encode(little.tobytes()).decode()}"
