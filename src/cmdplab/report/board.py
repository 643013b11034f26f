"""Content of the board, and its files: a page, tables (CSV and Parquet), a summary in Markdown.

`BoardRow` and `COLUMNS` declare the two tables. Every file and the terminal read them there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cmdplab.experiments import manifest
from cmdplab.files import write_table
from cmdplab.files.tables import csv_text
from cmdplab.files.write import writable_folder, write_text, written_whole
from cmdplab.measures.safety import BROKEN, SafetyOverSeeds
from cmdplab.report.page import assembled

PAGE, CSV, PARQUET, MARKDOWN = "board.html", "board.csv", "board.parquet", "board.md"


class Against(NamedTuple):
    """The comparison of a line with the reference in one measure, seed by seed."""

    outcome: str = ""  # of `Paired`; empty for the reference, and without a reference
    difference: float | None = None  # the median over seeds
    holm_p: float | None = None
    words: str = ""


class BoardRow(NamedTuple):
    """A line on one problem: medians over seeds."""

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
    unsafe_share: float | None  # share of the episodes with a violation above 0.01 H
    us_per_episode: float
    regret_against: Against
    violation_against: Against
    heuristic: str  # why no guarantee applies to the runs; empty if one does
    unverified: str  # constants that no source confirms; empty without such constants
    rarely: bool  # the algorithm plans anew only when visits have doubled
    safety: SafetyOverSeeds | None  # None without a constraint
    command: str  # plays the runs again with --seed
    folder: str | None  # of the records, relative to the page; None if they were deleted
    runs: list[str]  # the name of each seed's run
    numbers: list[list[float | None]]  # the six `NUMBERS` of each seed


NUMBERS = BoardRow._fields[9:15]
SAFETY = ("violating_runs", "most_violating", "first", "largest", "baseline_share", "promise")


class BoardLine(NamedTuple):
    """A line over all problems: medians, in shares of H."""

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
    regret_outcomes: dict[str, int]  # outcome against the reference -> number of problems
    violation_outcomes: dict[str, int]
    heuristic: str
    unverified: str
    rarely: bool
    runs: int  # on all problems, with all seeds
    violating_runs: int  # runs with an episode that violated by more than 1e-5 H
    largest_violation: float | None  # of any episode of any run
    baseline_share: float | None  # probability of the safe policy; None without one
    broken: int  # problems with a violation in spite of a proof that there is none


class Lacking(NamedTuple):
    """A row that is not shown, because some of its runs are missing or have failed."""

    algorithm: str
    scale: str
    problem: str
    missing: int
    failed: int
    of: int
    why: str  # the first error; empty if no run failed

    @property
    def words(self) -> str:
        """Return the row and the reason as one sentence."""
        counts = ((self.missing, "missing"), (self.failed, "failed"))
        parts = " and ".join(f"{n} {word}" for n, word in counts if n)
        why = f" ({self.why})" if self.why else ""
        return f"{self.algorithm} ({self.scale}) on {self.problem}: {parts} of {self.of} runs{why}"


class BoardData(NamedTuple):
    """The content of the page and of the tables."""

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

    @property
    def troubles(self) -> list[str]:
        """Return a sentence for each row that is not shown."""
        words = "its tuning is not complete, so it has no tuned line"
        untuned = [f"{name}: {words}" for name in self.untuned]
        return untuned + [row.words for row in self.lacking]


def write_board_page(board: BoardData, out: Path) -> list[Path]:
    """Write board.html, board.csv, board.parquet and board.md into a folder."""
    import pyarrow as pa

    writable_folder(out)
    columns = flat_columns(board)
    write_text(out / PAGE, board_page(board))
    write_text(out / CSV, csv_text([columns, *zip(*columns.values(), strict=True)]))
    with written_whole(out / PARQUET) as temporary:
        table = pa.table({name: _typed(values) for name, values in columns.items()})
        write_table(table, temporary, compression="zstd")
    write_text(out / MARKDOWN, board_markdown(board))
    return [out / name for name in (PAGE, CSV, PARQUET, MARKDOWN)]


def board_page(board: BoardData) -> str:
    """Return the page as HTML that loads nothing."""
    content = board._asdict() | {
        "troubles": board.troubles,
        "fields": BoardRow._fields,
        "rows": [_compact(row) for row in board.rows],
        "written_by": manifest.versions(),
    }
    del content["lacking"], content["untuned"]
    return assembled("board.html", ("helpers.js", "board.js"), "The board", content)


def _compact(row: BoardRow) -> list[Any]:
    """Return the values of a row, the numbers of each seed rounded to the digits shown."""
    numbers = [[None if v is None else float(f"{v:.4g}") for v in seed] for seed in row.numbers]
    return list(row._replace(numbers=numbers))


def flat_columns(board: BoardData) -> dict[str, list[Any]]:
    """Return the columns of the table files by name, one value for each row."""
    nested = {"regret_against", "violation_against", "runs", "numbers", "folder", "safety"}
    plain = [name for name in BoardRow._fields if name not in nested]
    columns = {name: [getattr(row, name) for row in board.rows] for name in plain}
    columns |= {name: [getattr(row.safety, name, None) for row in board.rows] for name in SAFETY}
    columns["first_run"] = [row.runs[0] for row in board.rows]
    for measure in ("regret", "violation"):
        pairs: list[Against] = [getattr(row, f"{measure}_against") for row in board.rows]
        for name in Against._fields[:3]:
            columns[f"{measure}_{name}"] = [getattr(pair, name) for pair in pairs]
    return columns


def _typed(values: list[Any]) -> list[str] | NDArray[Any]:
    """Return words, whole numbers, or floats with NaN for a missing number."""
    if any(isinstance(value, str) for value in values):
        return ["" if value is None else value for value in values]
    whole = all(isinstance(value, int) for value in values)
    return np.array(values, np.int64 if whole else np.float64)


class Column(NamedTuple):
    """A column of the table of lines, in Markdown and in a terminal."""

    title: str
    short: str  # the title in a terminal; empty if a terminal has no such column
    cell: Callable[[BoardLine], str]
    unit: str = ""  # of a number, in Markdown; the title above a terminal's table names it
    words: bool = False  # a terminal shows words before numbers


def board_markdown(board: BoardData) -> str:
    """Return the lines as a table of the documentation."""
    rows = [[column.title for column in COLUMNS]]
    for line in board.lines:
        cells = [(column.cell(line), column.unit) for column in COLUMNS]
        rows.append([text if text == NONE else text + unit for text, unit in cells])
    head, *body = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, "|---" * len(COLUMNS) + "|", *body]) + "\n"


def terminal_table(board: BoardData) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the lines for a terminal, words before numbers."""
    shown = sorted((c for c in COLUMNS if c.short), key=lambda column: not column.words)
    return [c.short for c in shown], [[c.cell(line) for c in shown] for line in board.lines]


def _name(line: BoardLine) -> str:
    """Return the algorithm with its signs: outside, unverified, heuristic as run, plans rarely."""
    signs = [
        "~" * (line.preset == "custom"),
        "*" * bool(line.unverified),
        "°" * bool(line.heuristic),
        "²" * line.rarely,
    ]
    return f"{line.algorithm} {''.join(signs)}".rstrip()


def _scale(line: BoardLine) -> str:
    return line.scale + ("" if line.factor is None else f" {line.factor:g}")


def _violating(line: BoardLine) -> str:
    """Return the number of runs that violated, in bold if a proof excludes a violation."""
    counts = f"{line.violating_runs} of {line.runs}"
    return f"{counts}, **{BROKEN}**" if line.broken else counts


def _outcomes(counts: dict[str, int]) -> str:
    """Return the numbers of problems where the line has less, more, and neither can be claimed."""
    if not counts:
        return NONE
    less, more = counts.get("smaller", 0), counts.get("larger", 0)
    return f"{less} / {more} / {sum(counts.values()) - less - more}"


def _percent(field: str) -> Callable[[BoardLine], str]:
    def cell(line: BoardLine) -> str:
        share: float | None = getattr(line, field)
        return NONE if share is None else f"{100.0 * share:.3g}"

    return cell


NONE = "–"
COLUMNS = (
    Column("algorithm", "algorithm", _name, words=True),
    Column("scale", "scale", _scale, words=True),
    Column("regret", "regret", _percent("regret"), " %"),
    Column("violation", "viol.", _percent("violation"), " %"),
    Column("last gap", "last gap", _percent("last_gap"), " %"),
    Column("last violation", "last viol.", _percent("last_violation"), " %"),
    Column("unsafe", "unsafe", _percent("unsafe_share"), " %"),
    Column("runs that violate", "", _violating),
    Column("largest violation", "", _percent("largest_violation"), " %"),
    Column("safe policy", "", _percent("baseline_share"), " %"),
    Column("µs/episode", "us/ep.", lambda line: f"{line.us_per_episode:.3g}"),
    Column(
        "less / more / open in regret",
        "in regret",
        lambda line: _outcomes(line.regret_outcomes),
        words=True,
    ),
    Column(
        "in violation",
        "in violation",
        lambda line: _outcomes(line.violation_outcomes),
        words=True,
    ),
)
