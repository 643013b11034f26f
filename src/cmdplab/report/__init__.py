"""Reports: one HTML page that opens offline, and its table as LaTeX and CSV."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

from cmdplab.errors import InputError
from cmdplab.files.write import writable_folder, write_text
from cmdplab.report.model import Report
from cmdplab.report.page import page
from cmdplab.report.sweeps import gather
from cmdplab.report.tables import csv_table, latex_table

__all__ = ["Embedded", "Report", "gather", "show", "write_report", "write_tables"]

NAME = "report.html"


class Embedded(NamedTuple):
    """A report as the value of a notebook's cell, shown in a frame of its own."""

    page: str  # HTML
    height: int  # pixels

    def __repr__(self) -> str:
        return f"<report of {len(self.page):,} letters; a notebook shows it>"

    def _repr_html_(self) -> str:
        frame = f"style='width: 100%; height: {self.height}px; border: 0'"
        return f"<iframe class='report' {frame} srcdoc=\"{escape(self.page)}\"></iframe>"


def show(folder: str | Path, height: int = 700) -> Embedded:
    """Return the report on a folder's records for the cell of a notebook; write nothing."""
    return Embedded(page(gather(Path(folder))), height)


def write_report(folder: Path, out: Path | None = None, report: Report | None = None) -> Path:
    """Write the page on a folder's records: report.html there, or `out`.

    `report` is the result of `gather`, if it is known already.
    """
    target = folder / NAME if out is None else out
    if target.is_dir():
        target = target / NAME
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"the report would be {target}, which does not end in .html")
    text = page(gather(folder) if report is None else report)
    writable_folder(target.parent)
    write_text(target, text)
    return target


def write_tables(folder: Path, out: Path | None = None, report: Report | None = None) -> list[Path]:
    """Write summary.tex (booktabs) and summary.csv into the folder, or into the folder `out`."""
    target = writable_folder(folder if out is None else out)
    report = gather(folder) if report is None else report
    texts = {"summary.tex": latex_table(report), "summary.csv": csv_table(report)}
    for name, text in texts.items():
        write_text(target / name, text)
    return [target / name for name in texts]
