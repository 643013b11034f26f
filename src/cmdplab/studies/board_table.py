"""What a board shows: medians over seeds, differences from the reference, what is not whole."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmdplab.algorithms.custom import CUSTOM
from cmdplab.errors import InputError
from cmdplab.experiments.records.versus import MEASURES
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.measures import safety
from cmdplab.measures.safety import SafetyOverSeeds
from cmdplab.measures.verdict import ROUNDING
from cmdplab.report.board import NUMBERS, Against, BoardData, BoardLine, BoardRow, Lacking
from cmdplab.settings import SETTINGS
from cmdplab.statistics import Paired, compare_with
from cmdplab.studies.board import (
    OWN,
    REFERENCE,
    THEORY,
    TUNED,
    Board,
    Cell,
    cells,
    made,
    read_board,
)
from cmdplab.studies.board_runs import Ledger

TOLERANCE = 1e-5  # of H: the smallest epsilon that mistakes are counted for

Numbers = Sequence[Mapping[str, Any]]  # the lines of a cell's runs, by seed


def gather_board(folder: Path, out: Path | None = None) -> BoardData:
    """All that is whole of a board; `out` is where the page will be, from which records are linked.

    A row with a run missing is left out and named. Nothing whole: refused.
    """
    board, ledger = read_board(folder), Ledger(folder)
    whole: list[tuple[Cell, Numbers]] = []
    lacking: list[Lacking] = []
    for cell in cells(board, made(board.places)):
        found = [ledger.done(run) for run in cell.runs]
        if None in found:
            lacking.append(_lacking(cell, ledger))
        else:
            whole.append((cell, [line for line in found if line is not None]))
    if not whole:
        raise InputError(f"{folder} has no whole row yet: `cmdplab board --out {folder}` goes on")
    paired = _paired(whole)
    where = folder if out is None else out
    rows = [_row(cell, lines, paired, folder, where) for cell, lines in whole]
    everything = [line for _, lines in whole for line in lines]
    return BoardData(
        folder=folder.resolve().name,
        steps=board.steps,
        seeds=board.seeds,
        reference=REFERENCE,
        lines=_lines(rows),
        rows=rows,
        lacking=lacking,
        untuned=[e.name for e in board.algorithms if _untuned(e.name, board, whole, lacking)],
        tuning={e.name: e.losses for e in board.algorithms if e.losses},
        versions=sorted({str(line["version"]) for line in everything}),
        processors=sorted({str(line["processor"]) for line in everything}),
    )


def _untuned(
    name: str, board: Board, whole: Sequence[tuple[Cell, Numbers]], lacking: Sequence[Lacking]
) -> bool:
    scales = {cell.line.scale for cell, _ in whole if cell.line.entrant.name == name}
    scales |= {each.scale for each in lacking if each.algorithm == name}
    return board.entrant(name).tuned is None and OWN not in scales


def _lacking(cell: Cell, ledger: Ledger) -> Lacking:
    undone = [run for run in cell.runs if ledger.done(run) is None]
    reasons = [why for run in undone if (why := ledger.failed(run))]
    return Lacking(
        cell.line.entrant.name,
        cell.line.scale,
        cell.place.name,
        len(undone) - len(reasons),
        len(reasons),
        len(cell.runs),
        reasons[0] if reasons else "",
    )


def _family(scale: str) -> str:
    """Lines that are compared with each other; a learner from outside is one of the tuned."""
    return THEORY if scale == THEORY else TUNED


def _paired(whole: Sequence[tuple[Cell, Numbers]]) -> dict[tuple[str, str, str, str], Paired]:
    """By problem, family, measure and algorithm; Holm's correction over the algorithms of each."""
    families: dict[tuple[str, str], dict[str, Numbers]] = {}
    for cell, lines in whole:
        key = cell.place.name, _family(cell.line.scale)
        families.setdefault(key, {})[cell.line.entrant.name] = lines
    found = {}
    for (problem, family), mine in families.items():
        if REFERENCE not in mine or len(mine) < 2:
            continue
        for field, words in MEASURES.items():
            samples = {name: [line[field] for line in lines] for name, lines in mine.items()}
            if any(None in values for values in samples.values()):
                continue
            for pair in compare_with(REFERENCE, {words: samples}):
                found[problem, family, field, pair.first] = pair
    return found


def _against(pair: Paired | None) -> Against:
    return (
        Against()
        if pair is None
        else Against(pair.outcome, pair.difference, pair.holm_p, pair.words)
    )


def _values(line: Mapping[str, Any]) -> list[float | None]:
    """The six numbers of a run, in the order of the table."""
    unsafe = None if line["unsafe"] is None else line["unsafe"] / line["episodes"]
    us = 1e6 * line["seconds"] / line["episodes"]
    sums = [line["strong_regret"], line["strong_violation_regret"]]
    return [*sums, line["last_gap"], line["last_violation"], unsafe, us]


def _median(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return float(np.median(known)) if len(known) == len(values) and known else None


def _row(
    cell: Cell,
    lines: Numbers,
    paired: Mapping[tuple[str, str, str, str], Paired],
    folder: Path,
    out: Path,
) -> BoardRow:
    line, first = cell.line, cell.runs[0]
    row, name = first.row(), line.entrant.name
    numbers = [_values(each) for each in lines]
    medians = [_median([each[n] for each in numbers]) for n in range(len(numbers[0]))]
    key = cell.place.name, _family(line.scale)
    kept = folder / cell.place.folder / "runs"
    records = os.path.relpath(kept, out) if (kept / first.folder).is_dir() else None
    found: dict[str, Any] = dict(zip(NUMBERS, medians, strict=True))
    return BoardRow(
        algorithm=name,
        scale=line.scale,
        preset=first.preset,
        factor=line.factor,
        problem=cell.place.name,
        environment=cell.place.environment,
        horizon=cell.horizon,
        episodes=int(first.episodes or 0),
        seeds=len(lines),
        **found,
        regret_against=_against(paired.get((*key, "strong_regret", name))),
        violation_against=_against(paired.get((*key, "strong_violation_regret", name))),
        heuristic=row.heuristic,
        unverified=row.unverified,
        rarely=line.row.may_plan_rarely,
        safety=_safety(cell, lines),
        command=command(cell, first),
        folder=records,
        runs=[run.folder for run in cell.runs],
        numbers=numbers,
    )


def _safety(cell: Cell, lines: Numbers) -> SafetyOverSeeds | None:
    """Which of the runs violated, and what became of the promise; None without a constraint."""
    row, H = cell.runs[0].row(), cell.horizon
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
    """The command that plays a run again, to the last bit on the same processor."""
    place = cell.place
    words = ["cmdplab", "run", place.environment]
    words += ["--instance-seed", str(place.instance)] * (place.name != place.environment)
    words += ["--algorithm", shlex.quote(run.algorithm)]
    words += ["--preset", run.preset] * (run.preset != CUSTOM)
    asked = cell.line.settings(int(run.episodes or 0))
    for name in SETTINGS:
        if name in asked:
            value = asked[name]
            words += [
                f"--{name.replace('_', '-')}",
                f"{value:g}" if name.endswith("scale") else str(value),
            ]
    return " ".join([*words, "--episodes", str(run.episodes)])


def _lines(rows: Sequence[BoardRow]) -> list[BoardLine]:
    """Every line over the problems that all lines have: medians over others would not compare.

    Where they share none, each is over its own.
    """
    grouped: dict[tuple[str, str], list[BoardRow]] = {}
    for row in rows:
        grouped.setdefault((row.algorithm, row.scale), []).append(row)
    every = [{row.problem for row in mine} for mine in grouped.values()]
    shared = set.intersection(*every) if every else set()
    return [_line([r for r in mine if r.problem in shared] or mine) for mine in grouped.values()]


def _line(rows: Sequence[BoardRow]) -> BoardLine:
    first = rows[0]

    def over(value: Callable[[BoardRow], float | None]) -> float | None:
        return _median([value(row) for row in rows])

    def share(field: str, steps: bool = False) -> float | None:
        def of(row: BoardRow) -> float | None:
            value = getattr(row, field)
            whole = row.horizon * (row.episodes if steps else 1)
            return None if value is None else float(value / whole)

        return over(of)

    def counted(field: str) -> dict[str, int]:
        return dict(Counter(getattr(r, field).outcome for r in rows if getattr(r, field).outcome))

    return BoardLine(
        first.algorithm,
        first.scale,
        first.preset,
        first.factor,
        len(rows),
        share("strong_regret", steps=True) or 0.0,
        share("strong_violation_regret", steps=True),
        share("last_gap") or 0.0,
        share("last_violation"),
        over(lambda row: row.unsafe_share),
        over(lambda row: row.us_per_episode) or 0.0,
        counted("regret_against"),
        counted("violation_against"),
        first.heuristic,
        first.unverified,
        first.rarely,
        **_safety_of_line(rows),
    )


def _safety_of_line(rows: Sequence[BoardRow]) -> dict[str, Any]:
    """Of all runs of a line: how many violated, the largest violation, the safe policy's share."""
    known = [(row.horizon, row.safety) for row in rows if row.safety is not None]
    shares = [each.baseline_share for _, each in known if each.baseline_share is not None]
    return {
        "runs": sum(each.runs for _, each in known),
        "violating_runs": sum(each.violating_runs for _, each in known),
        "largest_violation": max(
            (each.largest / H if each.largest > ROUNDING * H else 0.0 for H, each in known),
            default=None,
        ),
        "baseline_share": float(np.median(shares)) if shares else None,
        "broken": sum(each.broken for _, each in known),
    }
