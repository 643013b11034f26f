"""The board as a page, as tables (CSV and Parquet), and as a summary in Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cmdplab.experiments import manifest
from cmdplab.files import write_table
from cmdplab.files.write import writable_folder, write_text, written_whole
from cmdplab.measures.safety import BROKEN, SafetyOverSeeds
from cmdplab.report.page import assembled

PAGE, CSV, PARQUET, MARKDOWN = "board.html", "board.csv", "board.parquet", "board.md"


class Against(NamedTuple):
    """A line held against the reference in one measure, seed by seed."""

    outcome: str = ""  # as of `Paired`; empty: it is the reference, or there is none
    difference: float | None = None  # the median over seeds
    holm_p: float | None = None
    words: str = ""


class BoardRow(NamedTuple):
    """An algorithm at a scale on a problem: medians over seeds."""

    algorithm: str
    scale: str  # theory, tuned or own
    preset: str
    factor: float | None  # of bonuses and margins
    problem: str
    environment: str
    horizon: int
    episodes: int
    seeds: int
    strong_regret: float
    strong_violation_regret: float | None
    last_gap: float  # means of positive parts over the last tenth
    last_violation: float | None
    unsafe_share: float | None  # of the episodes: violation above 0.01 H
    us_per_episode: float
    regret_against: Against
    violation_against: Against
    heuristic: str  # why no guarantee applies as it was run; empty if one does
    unverified: str  # constants that no source confirms; empty if none
    rarely: bool  # it plans anew only when visits have doubled
    safety: SafetyOverSeeds | None  # None without a constraint
    command: str  # that makes the runs again, but for --seed
    folder: str | None  # of its records, as seen from the page; None: they were not kept
    runs: list[str]  # the names of its runs, by seed
    numbers: list[list[float | None]]  # by seed: the six numbers above


NUMBERS = BoardRow._fields[9:15]
SAFETY = ("violating_runs", "most_violating", "first", "largest", "baseline_share", "promise")


class BoardLine(NamedTuple):
    """An algorithm at a scale: medians over the problems that all lines have, in shares of H."""

    algorithm: str
    scale: str
    preset: str
    factor: float | None
    problems: int
    regret: float  # strong regret per episode and step
    violation: float | None
    last_gap: float
    last_violation: float | None
    unsafe_share: float | None
    us_per_episode: float
    regret_outcomes: dict[str, int]  # against the reference: outcome -> problems
    violation_outcomes: dict[str, int]
    heuristic: str
    unverified: str
    rarely: bool
    runs: int  # on these problems, all seeds
    violating_runs: int  # in which some episode violated by more than 1e-5 H
    largest_violation: float | None  # of any episode of any run
    baseline_share: float | None  # of the probability, to the safe policy; None: it has none
    broken: int  # problems on which a proved promise of no violation was broken


class Lacking(NamedTuple):
    """A row that is not shown, and why: the runs that are missing or have failed."""

    algorithm: str
    scale: str
    problem: str
    missing: int
    failed: int
    of: int
    why: str  # the first reason; empty where nothing failed


class BoardData(NamedTuple):
    """All that the page and the tables show."""

    folder: str
    steps: int
    seeds: int
    reference: str
    lines: list[BoardLine]
    rows: list[BoardRow]
    lacking: list[Lacking]
    untuned: list[str]  # algorithms whose tuning is not complete
    tuning: dict[str, dict[str, float]]  # algorithm -> scale -> mean loss
    versions: list[str]
    processors: list[str]


def write_board_page(board: BoardData, out: Path) -> list[Path]:
    """Write board.html, board.csv, board.parquet and board.md into a folder."""
    writable_folder(out)
    write_text(out / PAGE, board_page(board))
    write_text(out / CSV, board_csv(board))
    with written_whole(out / PARQUET) as temporary:
        _put_parquet(board, temporary)
    write_text(out / MARKDOWN, board_markdown(board))
    return [out / name for name in (PAGE, CSV, PARQUET, MARKDOWN)]


def board_page(board: BoardData) -> str:
    """The page: one file that loads nothing."""
    content = board._asdict() | {
        "fields": BoardRow._fields,
        "rows": [_compact(row) for row in board.rows],
        "written_by": manifest.versions(),
    }
    return assembled("board.html", ("helpers.js", "board.js"), "The board", content)


def _compact(row: BoardRow) -> list[Any]:
    """A row for the script, without its names; numbers of seeds to the digits that are shown."""
    numbers = [[None if v is None else float(f"{v:.4g}") for v in each] for each in row.numbers]
    return list(row._replace(numbers=numbers))


def flat_rows(board: BoardData) -> tuple[list[str], list[list[Any]]]:
    """Names of the columns, and the rows, of the table as a file."""
    left_out = {"regret_against", "violation_against", "runs", "numbers", "folder", "safety"}
    plain = [name for name in BoardRow._fields if name not in left_out]
    header = [*plain, *SAFETY, "first_run"]
    pairs = [f"{m}_{field}" for m in ("regret", "violation") for field in Against._fields[:3]]
    table = []
    for row in board.rows:
        against = [*row.regret_against[:3], *row.violation_against[:3]]
        safe = [getattr(row.safety, name, None) for name in SAFETY]
        table.append([*(getattr(row, name) for name in plain), *safe, row.runs[0], *against])
    return [*header, *pairs], table


def board_csv(board: BoardData) -> str:
    """One line for each algorithm, scale and problem; an empty cell where there is no number."""
    header, rows = flat_rows(board)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([["" if v is None else v for v in row] for row in rows])
    return text.getvalue()


def _put_parquet(board: BoardData, path: Path) -> None:
    """The same as Parquet: words, whole numbers and floats, NaN where there is no number."""
    import pyarrow as pa

    header, rows = flat_rows(board)
    columns = {}
    for n, name in enumerate(header):
        values = [row[n] for row in rows]
        known = [v for v in values if v is not None]
        if known and all(isinstance(v, str) for v in known):
            columns[name] = pa.array(["" if v is None else v for v in values], pa.string())
        elif len(known) == len(values) and all(isinstance(v, int) for v in values):
            columns[name] = pa.array([int(v) for v in values], pa.int64())
        else:
            floats = [float("nan") if v is None else float(v) for v in values]
            columns[name] = pa.array(floats, pa.float64())
    write_table(pa.table(columns), path, compression="zstd")


def board_markdown(board: BoardData) -> str:
    """The lines as a table, for the documentation."""
    head = "| algorithm | scale | regret | violation | last gap | last violation | unsafe | "
    head += "runs that violate | largest violation | safe policy | µs/episode | "
    head += "less / more / open in regret | in violation |"
    found = [head, "|---" * (head.count("|") - 1) + "|"]
    for line in board.lines:
        factor = "" if line.factor is None else f" {line.factor:g}"
        cells = [
            f"{line.algorithm}{marks(line)}",
            f"{line.scale}{factor}",
            _percent(line.regret),
            _percent(line.violation),
            _percent(line.last_gap),
            _percent(line.last_violation),
            _percent(line.unsafe_share),
            violating(line),
            _percent(line.largest_violation),
            _percent(line.baseline_share),
            f"{line.us_per_episode:.3g}",
            outcomes(line.regret_outcomes),
            outcomes(line.violation_outcomes),
        ]
        found.append("| " + " | ".join(cells) + " |")
    return "\n".join(found) + "\n"


def marks(line: BoardLine | BoardRow) -> str:
    """Signs after a name: outside, unverified, heuristic as run, plans rarely."""
    signs = [
        "~" * (line.preset == "custom"),
        "*" * bool(line.unverified),
        "°" * bool(line.heuristic),
        "²" * line.rarely,
    ]
    return (" " + "".join(signs)) if any(signs) else ""


def violating(line: BoardLine) -> str:
    """How many of the runs of a line violated, and loudly where it had promised that none does."""
    said = f"{line.violating_runs} of {line.runs}"
    return f"{said}, **{BROKEN}**" if line.broken else said


def outcomes(counts: dict[str, int]) -> str:
    """In numbers of problems: where it is smaller, larger, and neither can be claimed."""
    if not counts:
        return "–"
    better, worse = counts.get("smaller", 0), counts.get("larger", 0)
    return f"{better} / {worse} / {sum(counts.values()) - better - worse}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100.0 * share:.3g} %"


def troubles(board: BoardData) -> Sequence[str]:
    """What is not shown, a sentence for each row."""
    said = [
        f"{name}: its tuning is not complete, so it has no tuned line" for name in board.untuned
    ]
    for each in board.lacking:
        parts = [
            f"{n} {word}" for n, word in ((each.missing, "missing"), (each.failed, "failed")) if n
        ]
        what = f"{each.algorithm} ({each.scale}) on {each.problem}"
        why = f" ({each.why})" if each.why else ""
        said.append(f"{what}: {' and '.join(parts)} of {each.of} runs{why}")
    return said
