"""Table of the board, and its files: a page, CSV and Parquet, a summary in Markdown.

A row is a line of the board on one problem, with medians over its seeds; `_row` has its fields. A
summary is a line over all problems, in shares of H; `_summary` has its fields. `COLUMNS` are the
columns of the summaries in Markdown and in a terminal.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmdplab.algorithms.custom import CUSTOM
from cmdplab.errors import InputError
from cmdplab.experiments import manifest
from cmdplab.experiments.records.labels import MEASURES
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.files import write_table
from cmdplab.files.tables import csv_text
from cmdplab.files.write import writable_folder, write_text, written_whole
from cmdplab.measures import safety
from cmdplab.measures.safety import BROKEN, SafetyOverSeeds
from cmdplab.measures.verdict import ROUNDING
from cmdplab.report.page import assembled
from cmdplab.settings import SETTINGS
from cmdplab.statistics import Paired, compare_with
from cmdplab.studies.board import REFERENCE, THEORY, TUNED, Cell, cells, read_board
from cmdplab.studies.board_runs import Ledger, standing

PAGE, CSV, PARQUET, MARKDOWN = "board.html", "board.csv", "board.parquet", "board.md"
TOLERANCE = 1e-5  # of H: the smallest epsilon that mistakes are counted for
NUMBERS = (  # of each run, and their medians over seeds
    "strong_regret",
    "strong_violation_regret",
    "last_gap",  # means of positive parts over the last tenth
    "last_violation",
    "unsafe_share",  # share of the episodes with a violation above 0.01 H
    "us_per_episode",
)
SAFETY = ("violating_runs", "most_violating", "first", "largest", "baseline_share", "promise")
AGAINST = {"regret_against": "strong_regret", "violation_against": "strong_violation_regret"}

Fields = dict[str, Any]
Lines = Sequence[Mapping[str, Any]]  # the ledger's lines of a cell, in the order of its seeds
Key = tuple[str, str, str, str]  # problem, kind of scale, measure and algorithm


def gather_board(folder: Path, out: Path | None = None) -> Fields:
    """Return the content of the page: complete rows, their summaries, and the rows that lack runs.

    Links to records are relative to `out`, the folder of the page. A board without a complete row
    is refused.
    """
    board, ledger = read_board(folder), Ledger(folder)
    complete = []
    for cell in cells(board):
        done = [line for run in cell.runs if (line := ledger.done(run)) is not None]
        if len(done) == len(cell.runs):
            complete.append((cell, done))
    if not complete:
        raise InputError(f"{folder} has no whole row yet: `cmdplab board --out {folder}` goes on")
    paired = _paired(complete)
    rows = []
    for cell, lines in complete:
        kept = folder / cell.folder / "runs"
        there = (kept / cell.runs[0].folder).is_dir()
        link = os.path.relpath(kept, folder if out is None else out) if there else None
        rows.append(_row(cell, lines, paired) | {"folder": link})
    every, left = [line for _, lines in complete for line in lines], standing(board, ledger)
    return {
        "folder": folder.resolve().name,
        "steps": board.steps,
        "seeds": board.seeds,
        "reference": REFERENCE,
        "lines": _summaries(rows),
        "rows": rows,
        "missing": left.missing,
        "troubles": left.troubles,
        "tuning": {entrant.name: entrant.losses for entrant in board.algorithms if entrant.losses},
        "versions": sorted({str(line["version"]) for line in every}),
        "processors": sorted({str(line["processor"]) for line in every}),
    }


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


def _row(cell: Cell, lines: Lines, paired: Mapping[Key, Paired]) -> Fields:
    """Return a line on one problem; the reference has no outcome of a comparison."""
    first, line = cell.runs[0], cell.line
    row, entrant = first.row(), line.entrant.name
    numbers = [_numbers(line) for line in lines]
    against = {}
    for name, field in AGAINST.items():
        pair = paired.get((cell.place.name, _kind(line.scale), field, entrant))
        found = pair and (pair.outcome, pair.difference, pair.holm_p, pair.words)
        names = ("outcome", "difference", "holm_p", "words")
        against[name] = dict(zip(names, found or ("", None, None, ""), strict=True))
    return {
        "algorithm": entrant,
        "scale": line.scale,  # theory, tuned or own
        "preset": first.preset,
        "factor": line.factor,  # of bonuses and margins
        "problem": cell.place.name,
        "environment": cell.place.environment,
        "horizon": cell.problem.horizon,
        "episodes": int(first.episodes or 0),
        "seeds": len(lines),
        **{name: _median([seed[n] for seed in numbers]) for n, name in enumerate(NUMBERS)},
        "heuristic": row.heuristic,  # why no guarantee applies to the runs; empty if one does
        "unverified": row.unverified,  # constants that no source confirms
        "rarely": line.row.may_plan_rarely,
        "command": command(cell, first),  # plays the runs again with --seed
        **against,
        "safety": _safety(cell, lines),  # None without a constraint
        "runs": [run.folder for run in cell.runs],
        "numbers": numbers,
    }


def _numbers(line: Mapping[str, Any]) -> list[float | None]:
    unsafe = None if line["unsafe"] is None else line["unsafe"] / line["episodes"]
    us = 1e6 * line["seconds"] / line["episodes"]
    return [*(line[name] for name in NUMBERS[:4]), unsafe, us]


def _median(values: Sequence[float | None]) -> float | None:
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


def _summaries(rows: Sequence[Fields]) -> list[Fields]:
    """Return every line over the problems that all lines have, so that medians can be compared.

    If the lines share no problem, each line is over its own problems.
    """
    grouped: dict[tuple[str, str], list[Fields]] = {}
    for row in rows:
        grouped.setdefault((row["algorithm"], row["scale"]), []).append(row)
    problems = [{row["problem"] for row in mine} for mine in grouped.values()]
    shared = set.intersection(*problems) if problems else set()
    parts = ([row for row in mine if row["problem"] in shared] or mine for mine in grouped.values())
    return [_summary(part) for part in parts]


def _summary(rows: Sequence[Fields]) -> Fields:
    """Return a line over problems: medians of the numbers as shares of H, and counts of runs."""
    H = np.array([row["horizon"] for row in rows])
    steps = H * [row["episodes"] for row in rows]
    known = [(row["horizon"], row["safety"]) for row in rows if row["safety"] is not None]
    shares = [safe.baseline_share for _, safe in known if safe.baseline_share is not None]
    largest = [safe.largest / h if safe.largest > ROUNDING * h else 0.0 for h, safe in known]

    def median(name: str, sizes: Any = 1.0) -> float | None:
        values = [row[name] for row in rows]
        return None if None in values else float(np.median(np.array(values) / sizes))

    def outcomes(name: str) -> dict[str, int]:
        return dict(Counter(row[name]["outcome"] for row in rows if row[name]["outcome"]))

    about = ("algorithm", "scale", "preset", "factor", "heuristic", "unverified", "rarely")
    return {name: rows[0][name] for name in about} | {
        "problems": len(rows),
        "regret": median("strong_regret", steps),  # per episode and step
        "violation": median("strong_violation_regret", steps),
        "last_gap": median("last_gap", H),
        "last_violation": median("last_violation", H),
        "unsafe_share": median("unsafe_share"),
        "us_per_episode": median("us_per_episode"),
        "regret_outcomes": outcomes("regret_against"),  # outcome -> number of problems
        "violation_outcomes": outcomes("violation_against"),
        "runs": sum(safe.runs for _, safe in known),
        "violating_runs": sum(safe.violating_runs for _, safe in known),
        "largest_violation": max(largest, default=None),
        "baseline_share": _median(shares),
        "broken": sum(safe.broken for _, safe in known),  # problems with a broken promise
    }


def write_board_page(board: Fields, out: Path) -> list[Path]:
    """Write board.html, board.csv, board.parquet and board.md into a folder."""
    import pyarrow as pa

    writable_folder(out)
    rows = [_flat(row) for row in board["rows"]]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    fields = list(board["rows"][0])
    content = board | {"fields": fields, "rows": [_compact(row) for row in board["rows"]]}
    content["written_by"] = manifest.versions()
    page = assembled("board", ("helpers.js", "board.js"), "The board", content)
    write_text(out / PAGE, page)
    write_text(out / CSV, csv_text([columns, *zip(*columns.values(), strict=True)]))
    with written_whole(out / PARQUET) as temporary:
        table = pa.table({name: _typed(values) for name, values in columns.items()})
        write_table(table, temporary, compression="zstd")
    write_text(out / MARKDOWN, board_markdown(board))
    return [out / name for name in (PAGE, CSV, PARQUET, MARKDOWN)]


def _compact(row: Fields) -> list[Any]:
    """Return the values of a row, the numbers of each seed rounded to the digits shown."""
    numbers = [[None if v is None else float(f"{v:.4g}") for v in seed] for seed in row["numbers"]]
    return [*(row | {"numbers": numbers}).values()]


def _flat(row: Fields) -> Fields:
    """Return a row of the table files: the plain fields, then those of safety and comparisons."""
    nested = (*AGAINST, "safety", "runs", "numbers", "folder")
    flat = {name: value for name, value in row.items() if name not in nested}
    flat |= {name: getattr(row["safety"], name, None) for name in SAFETY}
    flat["first_run"] = row["runs"][0]
    for measure in ("regret", "violation"):
        for name in ("outcome", "difference", "holm_p"):
            flat[f"{measure}_{name}"] = row[f"{measure}_against"][name]
    return flat


def _typed(values: list[Any]) -> list[str] | NDArray[Any]:
    """Return words, whole numbers, or floats with NaN for a missing number."""
    if any(isinstance(value, str) for value in values):
        return ["" if value is None else value for value in values]
    whole = all(isinstance(value, int) for value in values)
    return np.array(values, np.int64 if whole else np.float64)


def summary_table(board: Fields) -> list[list[str]]:
    """Return the header of the summaries, and their rows."""
    return [[*COLUMNS], *([cell(line) for cell in COLUMNS.values()] for line in board["lines"])]


def board_markdown(board: Fields) -> str:
    """Return the summaries as a table of the documentation."""
    header, *rows = summary_table(board)
    long = {"in ": "less / more / open in ", "viol.": "violation", "us/ep.": "µs/episode"}
    for short, words in long.items():
        header = [title.replace(short, words) for title in header]
    head, *body = [f"| {' | '.join(row)} |" for row in (header, *rows)]
    return "\n".join([head, "|---" * len(COLUMNS) + "|", *body]) + "\n"


def _name(line: Fields) -> str:
    """Return the algorithm with its signs: outside, unverified, heuristic as run, plans rarely."""
    outside = line["preset"] == CUSTOM
    signs = {"~": outside, "*": line["unverified"], "°": line["heuristic"], "²": line["rarely"]}
    return f"{line['algorithm']} {''.join(s for s, on in signs.items() if on)}".rstrip()


def _scale(line: Fields) -> str:
    return f"{line['scale']}" + ("" if line["factor"] is None else f" {line['factor']:g}")


def _violating(line: Fields) -> str:
    """Return the number of runs that violated, in bold if a proof excludes a violation."""
    counts = f"{line['violating_runs']} of {line['runs']}"
    return f"{counts}, **{BROKEN}**" if line["broken"] else counts


def _outcomes(line: Fields, name: str) -> str:
    """Return the numbers of problems where the line has less, more, and neither can be claimed."""
    counts: dict[str, int] = line[name]
    if not counts:
        return "–"
    less, more = counts.get("smaller", 0), counts.get("larger", 0)
    return f"{less} / {more} / {sum(counts.values()) - less - more}"


def _percent(line: Fields, name: str) -> str:
    return "–" if line[name] is None else f"{100.0 * line[name]:.3g}"


COLUMNS: dict[str, Callable[[Fields], str]] = {  # words first
    "algorithm": _name,
    "scale": _scale,
    "in regret": partial(_outcomes, name="regret_outcomes"),
    "in violation": partial(_outcomes, name="violation_outcomes"),
    "regret (%)": partial(_percent, name="regret"),
    "viol. (%)": partial(_percent, name="violation"),
    "last gap (%)": partial(_percent, name="last_gap"),
    "last viol. (%)": partial(_percent, name="last_violation"),
    "unsafe (%)": partial(_percent, name="unsafe_share"),
    "us/ep.": lambda line: f"{line['us_per_episode']:.3g}",
    "runs that violate": _violating,
    "largest viol. (%)": partial(_percent, name="largest_violation"),
    "safe policy (%)": partial(_percent, name="baseline_share"),
}
WORDS, SHOWN = 4, 10  # the columns of text, and those that a terminal shows
