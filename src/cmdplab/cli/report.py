"""`cmdplab report`: the page about a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cmdplab.cli.options import Json, argument, option
from cmdplab.cli.output import print_json, warn


def report_command(
    folder: Annotated[Path, argument("What `reproduce`, `compare`, `sweep` or `run --out` wrote.")],
    out: Annotated[Path | None, option("The page; default: report.html in the folder.")] = None,
    as_json: Json = False,
) -> None:
    """Write one HTML page about a folder: verdicts, curves, mistakes for every epsilon, settings.

    The page opens offline. Beside it, the table as summary.tex (booktabs) and summary.csv.
    """
    from cmdplab.report import gather, write_report, write_tables

    found = gather(folder)
    page = write_report(folder, out, found)
    tables = write_tables(folder, page.parent, found)
    if as_json:
        print_json("report", {"page": str(page), "tables": [str(each) for each in tables]})
    else:
        print(page)
    if found.troubles:
        count = len(found.troubles)
        runs = "one run is" if count == 1 else f"{count} runs are"
        warn(f"{runs} not as planned; the page names them")
