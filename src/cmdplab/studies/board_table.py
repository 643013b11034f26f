"""Table of the board: medians over seeds, comparisons with the reference, rows that lack runs."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmdplab.algorithms.custom import CUSTOM
from cmdplab.errors import InputError
from cmdplab.experiments.records.labels import MEASURES
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.measures import safety
from cmdplab.measures.safety import SafetyOverSeeds
from cmdplab.measures.verdict import ROUNDING
from cmdplab.report.board import NUMBERS, Against, BoardData, BoardLine, BoardRow, Lacking
from cmdplab.settings import SETTINGS
from cmdplab.statistics import Paired, compare_with
from cmdplab.studies.board import REFERENCE, THEORY, TUNED, Cell, cells, read_board
from cmdplab.studies.board_runs import Ledger

TOLERANCE = 1e-5  # of H: the smallest epsilon that mistakes are counted for

Lines = Sequence[Mapping[str, Any]]  # the ledger's lines of a cell, in the order of its seeds
Key = tuple[str, str, str, str]  # problem, kind of scale, measure and algorithm


def gather_board(folder: Path, out: Path | None = None) -> BoardData:
    """Return the complete rows of a board; rows that lack a run are named, not shown.

    Links to records are relative to `out`, the folder of the page. A board without a complete row
    is refused.
    """
    board, ledger = read_board(folder), Ledger(folder)
    complete: list[tuple[Cell, Lines]] = []
    lacking: list[Lacking] = []
    for cell in cells(board):
        done = [line for run in cell.runs if (line := ledger.done(run)) is not None]
        if len(done) < len(cell.runs):
            lacking.append(_lacking(cell, ledger))
        else:
            complete.append((cell, done))
    if not complete:
        raise InputError(f"{folder} has no whole row yet: `cmdplab board --out {folder}` goes on")
    paired = _paired(complete)
    rows = []
    for cell, lines in complete:
        kept = folder / cell.folder / "runs"
        there = (kept / cell.runs[0].folder).is_dir()
        link = os.path.relpath(kept, folder if out is None else out) if there else None
        rows.append(_row(cell, lines, paired, link))
    every = [line for _, lines in complete for line in lines]
    return BoardData(
        folder=folder.resolve().name,
        steps=board.steps,
        seeds=board.seeds,
        reference=REFERENCE,
        lines=_lines(rows),
        rows=rows,
        lacking=lacking,
        untuned=[entrant.name for entrant in board.algorithms if entrant.untuned],
        tuning={entrant.name: entrant.losses for entrant in board.algorithms if entrant.losses},
        versions=sorted({str(line["version"]) for line in every}),
        processors=sorted({str(line["processor"]) for line in every}),
    )


def _lacking(cell: Cell, ledger: Ledger) -> Lacking:
    undone = [run for run in cell.runs if ledger.done(run) is None]
    reasons = [why for run in undone if (why := ledger.failed(run))]
    return Lacking(
        algorithm=cell.line.entrant.name,
        scale=cell.line.scale,
        problem=cell.place.name,
        missing=len(undone) - len(reasons),
        failed=len(reasons),
        of=len(cell.runs),
        why=reasons[0] if reasons else "",
    )


def _kind(scale: str) -> str:
    """Return the kind of scale: a learner from outside is compared with the tuned lines."""
    return THEORY if scale == THEORY else TUNED


def _paired(complete: Sequence[tuple[Cell, Lines]]) -> dict[Key, Paired]:
    """Compare every line with the reference on each problem, for each kind of scale and measure.

    Holm's correction is over the algorithms of one problem, kind of scale and measure.
    """
    compared: dict[tuple[str, str], dict[str, Lines]] = {}
    for cell, lines in complete:
        key = cell.place.name, _kind(cell.line.scale)
        compared.setdefault(key, {})[cell.line.entrant.name] = lines
    pairs: dict[Key, Paired] = {}
    for key, by_name in compared.items():
        if REFERENCE not in by_name or len(by_name) < 2:
            continue
        for field, words in MEASURES.items():
            samples = {name: [line[field] for line in lines] for name, lines in by_name.items()}
            if not any(None in values for values in samples.values()):
                for pair in compare_with(REFERENCE, {words: samples}):
                    pairs[*key, field, pair.first] = pair
    return pairs


def _row(cell: Cell, lines: Lines, paired: Mapping[Key, Paired], link: str | None) -> BoardRow:
    first, name = cell.runs[0], cell.line.entrant.name
    row = first.row()
    numbers = [_numbers(line) for line in lines]
    medians: dict[str, Any] = {
        field: _median([seed[n] for seed in numbers]) for n, field in enumerate(NUMBERS)
    }

    def against(field: str) -> Against:
        pair = paired.get((cell.place.name, _kind(cell.line.scale), field, name))
        if pair is None:
            return Against()
        return Against(pair.outcome, pair.difference, pair.holm_p, pair.words)

    return BoardRow(
        algorithm=name,
        scale=cell.line.scale,
        preset=first.preset,
        factor=cell.line.factor,
        problem=cell.place.name,
        environment=cell.place.environment,
        horizon=cell.problem.horizon,
        episodes=int(first.episodes or 0),
        seeds=len(lines),
        **medians,
        regret_against=against("strong_regret"),
        violation_against=against("strong_violation_regret"),
        heuristic=row.heuristic,
        unverified=row.unverified,
        rarely=cell.line.row.may_plan_rarely,
        safety=_safety(cell, lines),
        command=command(cell, first),
        folder=link,
        runs=[run.folder for run in cell.runs],
        numbers=numbers,
    )


def _numbers(line: Mapping[str, Any]) -> list[float | None]:
    """Return the six numbers of a run, in the order of `NUMBERS`."""
    unsafe = None if line["unsafe"] is None else line["unsafe"] / line["episodes"]
    us = 1e6 * line["seconds"] / line["episodes"]
    sums = [line["strong_regret"], line["strong_violation_regret"]]
    return [*sums, line["last_gap"], line["last_violation"], unsafe, us]


def _median(values: Sequence[float | None]) -> float | None:
    """Return the median; None if a value is missing."""
    known = [v for v in values if v is not None]
    return float(np.median(known)) if len(known) == len(values) and known else None


def _safety(cell: Cell, lines: Lines) -> SafetyOverSeeds | None:
    """Return the safety over the seeds of a cell; None without a constraint."""
    row, H = cell.runs[0].row(), cell.problem.horizon
    runs = [
        safety.Safety(
            episodes=line["episodes"],
            tolerance=TOLERANCE * H,
            violating=line["violating"],
            first=line["first_violating"],
            largest=line["largest_violation"],
            total=line["strong_violation_regret"],
            beyond_rounding=line["largest_violation"] > ROUNDING * H,
            baseline_share=line["baseline_share"],
            left_baseline=None,
        )
        for line in lines
        if line["violating"] is not None
    ]
    return safety.over_seeds(runs, row.safe, row.promise_heuristic)


def command(cell: Cell, run: RunSettings) -> str:
    """Return the command that plays a run again, to the last bit on the same processor."""
    place = cell.place
    words = ["cmdplab", "run", place.environment]
    words += ["--instance-seed", str(place.instance)] * (place.name != place.environment)
    words += ["--algorithm", shlex.quote(run.algorithm)]
    words += ["--preset", run.preset] * (run.preset != CUSTOM)
    asked = cell.line.settings(int(run.episodes or 0))
    for name in SETTINGS:
        if name in asked:
            value = f"{asked[name]:g}" if name.endswith("scale") else str(asked[name])
            words += [f"--{name.replace('_', '-')}", value]
    return " ".join([*words, "--episodes", str(run.episodes)])


def _lines(rows: Sequence[BoardRow]) -> list[BoardLine]:
    """Return every line over the problems that all lines have, so that medians can be compared.

    If the lines share no problem, each line is over its own problems.
    """
    grouped: dict[tuple[str, str], list[BoardRow]] = {}
    for row in rows:
        grouped.setdefault((row.algorithm, row.scale), []).append(row)
    problems = [{row.problem for row in mine} for mine in grouped.values()]
    shared = set.intersection(*problems) if problems else set()
    return [_line([r for r in mine if r.problem in shared] or mine) for mine in grouped.values()]


def _line(rows: Sequence[BoardRow]) -> BoardLine:
    first = rows[0]
    known = [(row.horizon, row.safety) for row in rows if row.safety is not None]
    shares = [safe.baseline_share for _, safe in known if safe.baseline_share is not None]
    largest = [safe.largest / H if safe.largest > ROUNDING * H else 0.0 for H, safe in known]

    def median(field: str, sizes: Sequence[int] | None = None) -> float | None:
        """Return the median over problems of a field, as a share of the sizes if there are any."""
        values = [getattr(row, field) for row in rows]
        if None in values:
            return None
        return float(np.median(np.array(values) / (1 if sizes is None else np.array(sizes))))

    def outcomes(field: str) -> dict[str, int]:
        every = [getattr(row, field).outcome for row in rows]
        return dict(Counter(outcome for outcome in every if outcome))

    horizons = [row.horizon for row in rows]
    steps = [row.horizon * row.episodes for row in rows]
    return BoardLine(
        algorithm=first.algorithm,
        scale=first.scale,
        preset=first.preset,
        factor=first.factor,
        problems=len(rows),
        regret=median("strong_regret", steps) or 0.0,
        violation=median("strong_violation_regret", steps),
        last_gap=median("last_gap", horizons) or 0.0,
        last_violation=median("last_violation", horizons),
        unsafe_share=median("unsafe_share"),
        us_per_episode=median("us_per_episode") or 0.0,
        regret_outcomes=outcomes("regret_against"),
        violation_outcomes=outcomes("violation_against"),
        heuristic=first.heuristic,
        unverified=first.unverified,
        rarely=first.rarely,
        runs=sum(safe.runs for _, safe in known),
        violating_runs=sum(safe.violating_runs for _, safe in known),
        largest_violation=max(largest, default=None),
        baseline_share=_median(shares),
        broken=sum(safe.broken for _, safe in known),
    )
