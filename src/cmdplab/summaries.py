"""summary.json: the numbers of several algorithms on one problem, one entry per seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cmdplab.files import writable_folder, written_whole
from cmdplab.manifest import machine, versions
from cmdplab.measures import Summary
from cmdplab.presenting import to_json
from cmdplab.reading import parse_json, sealed
from cmdplab.records import Curves, read_curves, write_curves, write_mistakes
from cmdplab.running import Run


def by_algorithm(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each algorithm; those that come in two presets are told apart by it."""
    presets: dict[str, set[str]] = {}
    for run in runs:
        presets.setdefault(run.algorithm.name, set()).add(run.algorithm.preset)
    grouped: dict[str, list[Run]] = {}
    for run in runs:
        name, preset = run.algorithm.name, run.algorithm.preset
        label = f"{name}:{preset}" if len(presets[name]) > 1 else name
        grouped.setdefault(label, []).append(run)
    return grouped


def numbers_of(runs: Sequence[Run]) -> dict[str, Any]:
    """Every number of `Summary` as a list over seeds, and the median time per episode."""
    numbers: dict[str, Any] = {
        field: [getattr(run.summary, field) for run in runs]
        for field in Summary._fields
        if field != "episodes"
    }
    numbers["us_per_episode"] = float(np.median([run.us_per_episode for run in runs]))
    return numbers


def median(runs: Sequence[Run], field: str) -> float | None:
    """The median over seeds of a number of `Summary`; None where it does not exist."""
    values = [getattr(run.summary, field) for run in runs]
    return None if values[0] is None else float(np.median(values))


def run_into(
    folder: Path,
    run: Callable[[], list[Run]],
    summarise: Callable[[list[Run]], dict[str, Any]],
    draw: Callable[[Curves, Path], object],
) -> tuple[list[Run], dict[str, Any]]:
    """Run, then write curves, mistakes, summary, figure and report; a failure leaves nothing."""
    writable_folder(folder)
    try:
        runs = run()
    except BaseException:
        with suppress(OSError):
            folder.rmdir()  # only if it is empty
        raise
    made_by = {"versions": versions(), "machine": machine()}
    summary = summarise(runs) | made_by
    curves = write_curves(runs, folder / "curves.parquet")
    write_mistakes(runs, folder / "mistakes.parquet")
    text = sealed(to_json(summary))
    with written_whole(folder / "summary.json") as temporary:
        temporary.write_text(text + "\n")
    draw(read_curves(curves), folder)
    from cmdplab.report import gather, write_report, write_tables  # it reads what was written

    found = gather(folder)
    write_report(folder, None, found)
    write_tables(folder, None, found)
    return runs, parse_json(text, "summary.json")
