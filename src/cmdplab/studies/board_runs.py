"""Runs of the board: the tuning runs first, then all other runs. One line of numbers per run stays.

DIR/board.json is the protocol. DIR/numbers.jsonl has one line for every ended run. A run is an
ordinary run in the folder of an ordinary experiment (DIR/PROBLEM/runs/HASH-SEED) until it is done.
Then its line is written, and its curves and checkpoint are deleted unless `keep` is set: they take
half a megabyte for each of some 19,000 runs. After any interruption the same command continues:
runs with a line are not played again, and checkpoints are resumed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.custom import Custom
from cmdplab.algorithms.families.planner import PlansAnew
from cmdplab.algorithms.families.safe import Safe
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import storage
from cmdplab.experiments import manifest
from cmdplab.experiments.durable import CURVES, MISTAKES
from cmdplab.experiments.manifest import Manifest
from cmdplab.experiments.records.tables import LABELS, read_records
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.experiments.status import good_lines, sealed_line
from cmdplab.experiments.sweep import do_missing, prepare
from cmdplab.experiments.work import Event, OnEvent, Work
from cmdplab.files.locks import locked
from cmdplab.files.write import writable_folder
from cmdplab.measures import safety
from cmdplab.measures.mistakes import DECADES, PER_DECADE
from cmdplab.studies.board import Board, Cell, Place, cells, experiment, tuning_cells, write_board
from cmdplab.types import Array

NUMBERS = "numbers.jsonl"
UNSAFE = (DECADES - 2) * PER_DECADE  # the index of 0.01 H in the grid of epsilon
LAST = 0.9  # the last tenth begins here
_NEEDED = {"run", "status"}

Shown = Callable[[Sequence[Work]], AbstractContextManager[OnEvent]]


class Ledger:
    """The lines of a board: the numbers of every done run, and the reason of every failure."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / NUMBERS
        text = self._file.read_bytes() if self._file.exists() else b""
        self.lines = {line["run"]: line for line in good_lines(text.split(b"\n"), _NEEDED)}

    def add(self, line: dict[str, Any]) -> None:
        """Append a line, which replaces an earlier one of its run; the board must be locked."""
        self.lines[line["run"]] = line
        with storage(f"cannot write {self._file}"), self._file.open("ab") as stream:
            stream.write(b"\n" + sealed_line(line) + b"\n")

    def done(self, run: RunSettings) -> dict[str, Any] | None:
        """Return the numbers of a run; None if it is not done."""
        line = self.lines.get(run.folder)
        return line if line is not None and line["status"] == "done" else None

    def failed(self, run: RunSettings) -> str:
        """Return the reason why a run failed; empty if it did not fail."""
        line = self.lines.get(run.folder, {})
        return str(line.get("error", "")) if line.get("status") == "failed" else ""


def numbers_of(folder: Path, record: Manifest) -> dict[str, Any]:
    """Return the numbers of a done run that the board keeps.

    The last tenth begins at the last grid point of the curves up to 0.9 K. Its gap and violation
    are means of positive parts. An unsafe episode misses a threshold by more than 0.01 H.
    """
    summary, settings = record.summary, record.settings
    curves = _columns(folder / CURVES, record.digest_of(CURVES))
    mistakes = _columns(folder / MISTAKES, record.digest_of(MISTAKES))
    constrained = summary["strong_violation_regret"] is not None
    safe = safety.summary(curves, mistakes)
    whole = ("strong_regret", "strong_violation_regret", "final_gap", "final_violation")
    return {
        "run": settings.folder,
        "status": "done",
        **{name: getattr(settings, name) for name in ("problem", "algorithm", "preset", "seed")},
        "bonus_scale": settings.settings().get("bonus_scale"),
        "episodes": record.episodes,
        **{name: summary[name] for name in whole},
        "last_gap": _last(curves, "strong_regret"),
        "last_violation": _last(curves, "strong_violation_regret") if constrained else None,
        "unsafe": None if safe is None else int(mistakes["violation_mistakes"][UNSAFE]),
        "violating": None if safe is None else safe.violating,
        "first_violating": None if safe is None else safe.first,
        "largest_violation": None if safe is None else safe.largest,
        "baseline_share": None if safe is None else safe.baseline_share,
        "seconds": round(record.seconds, 4),
        "version": record.versions.get("cmdplab", ""),
        "processor": record.machine.get("processor", ""),
    }


def _columns(path: Path, sha256: str) -> dict[str, Array]:
    table = read_records(path, sha256)
    return {name: table[name].to_numpy() for name in table.column_names if name not in LABELS}


def _last(curves: Mapping[str, Array], name: str) -> float:
    """Return the mean of a strong regret per episode over the last tenth."""
    episode, sums = curves["episode"].astype(np.float64), curves[name]
    first = int(np.searchsorted(episode, LAST * episode[-1], side="right")) - 1
    begin, before = (episode[first], sums[first]) if first >= 0 else (0.0, 0.0)
    return float((sums[-1] - before) / max(episode[-1] - begin, 1.0))


class Lacking(NamedTuple):
    """A line on a problem that is not shown, because some runs are missing or have failed."""

    algorithm: str
    scale: str
    problem: str
    missing: int
    failed: int
    of: int
    why: str  # the first error; empty if no run failed

    @property
    def words(self) -> str:
        """Return a sentence with the line, the problem, the numbers of runs and the first error."""
        counts = ((self.missing, "missing"), (self.failed, "failed"))
        parts = " and ".join(f"{n} {word}" for n, word in counts if n)
        why = f" ({self.why})" if self.why else ""
        return f"{self.algorithm} ({self.scale}) on {self.problem}: {parts} of {self.of} runs{why}"


class Standing(NamedTuple):
    """The parts of a board that are not done."""

    lacking: list[Lacking]
    untuned: list[str]  # algorithms whose tuning is not complete

    @property
    def missing(self) -> int:
        """Return the number of runs that are not done, those that failed included."""
        return sum(row.missing + row.failed for row in self.lacking)

    @property
    def troubles(self) -> list[str]:
        """Return a sentence for each algorithm without tuned runs, and for each line."""
        words = "its tuning is not complete, so it has no tuned line"
        return [f"{name}: {words}" for name in self.untuned] + [row.words for row in self.lacking]


def standing(board: Board, ledger: Ledger, wanted: Container[str] | None = None) -> Standing:
    """Return what is not done of a board, or of the algorithms `wanted`."""
    mine = [e.name for e in board.algorithms if wanted is None or e.name in wanted]
    lacking = []
    for cell in cells(board):
        name, undone = cell.line.entrant.name, [r for r in cell.runs if ledger.done(r) is None]
        if not undone or name not in mine:
            continue
        whys = [why for run in undone if (why := ledger.failed(run))]
        counts = len(undone) - len(whys), len(whys), len(cell.runs)
        first = whys[0] if whys else ""
        lacking.append(Lacking(name, cell.line.scale, cell.place.name, *counts, first))
    return Standing(lacking, [e.name for e in board.algorithms if e.untuned and e.name in mine])


def play(
    folder: Path,
    board: Board,
    workers: int | None = None,
    *,
    names: Sequence[str] = (),
    places: Sequence[Place] = (),
    keep: bool = False,
    shown: Shown = lambda works: nullcontext(lambda event: None),
) -> Standing:
    """Play the missing runs of a board: the tuning runs, then every line on every problem.

    `names` and `places` restrict the runs; by default the whole board is played, but for learners
    from outside, which would have to be imported. Failed runs are tried again. The result is about
    the algorithms that were wanted.
    """
    writable_folder(folder)
    with locked(folder / ".lock"):
        write_board(folder, board)
        ledger = Ledger(folder)
        wanted = {*names} or {entrant.name for entrant in board.algorithms if not entrant.outside}

        def play_missing(every: Sequence[Cell]) -> bool:
            mine = [cell for cell in every if cell.line.entrant.name in wanted]
            works = _missing(folder, mine, ledger)
            return not works or _play(works, ledger, workers, keep, shown)

        tuning = tuning_cells(board)
        if play_missing(tuning):
            board = tuned(board, tuning, ledger)
            write_board(folder, board)
            play_missing(cells(board, places))
        return standing(board, ledger, wanted)


def tuned(board: Board, tuning: Sequence[Cell], ledger: Ledger) -> Board:
    """Return the board with the scale of every algorithm whose tuning runs have all ended.

    The scale has the least mean of strong regret plus strong violation regret; of equal scales the
    largest is taken. A scale with a failed run cannot be chosen.
    """
    entrants = []
    for entrant in board.algorithms:
        mine = [cell for cell in tuning if cell.line.entrant.name == entrant.name]
        ended = all(ledger.done(run) or ledger.failed(run) for cell in mine for run in cell.runs)
        if entrant.tuned is None and mine and ended:
            by_scale: dict[float, list[float]] = {}
            for cell in mine:
                for line in map(ledger.done, cell.runs):
                    by_scale.setdefault(cell.line.factor or 0.0, []).append(_loss(line))
            losses = {s: mean for s, each in by_scale.items() if (mean := np.mean(each)) < np.inf}
            best = min(losses, key=lambda scale: losses[scale]) if losses else None
            rounded = {f"{scale:g}": round(float(loss), 6) for scale, loss in losses.items()}
            entrant = entrant.model_copy(update={"tuned": best, "losses": rounded})
        entrants.append(entrant)
    return board.model_copy(update={"algorithms": entrants})


def _loss(line: Mapping[str, Any] | None) -> float:
    """Return the loss of a run; it is infinite if the run failed."""
    if line is None:
        return np.inf
    return float(line["strong_regret"] + (line["strong_violation_regret"] or 0.0))


def _missing(folder: Path, mine: Sequence[Cell], ledger: Ledger) -> list[Work]:
    """Return the runs without numbers, the longest first so that no core waits at the end."""
    by_folder: dict[str, list[Cell]] = {}
    for cell in mine:
        by_folder.setdefault(cell.folder, []).append(cell)
    sized: list[tuple[float, Work]] = []
    for name, there in by_folder.items():
        undone = [run for cell in there for run in cell.runs if ledger.done(run) is None]
        missing = {run.folder: run for run in undone}
        if not missing:
            continue
        problems = {cell.runs[0].fingerprint: cell.problem for cell in there}
        places = list(dict.fromkeys(cell.place for cell in there))
        asked = experiment(name, list(missing.values()), places)
        for work in prepare(asked, problems, folder / name):
            if work.settings.folder in missing:
                sized.append((_size(work, problems[work.settings.fingerprint]), work))
    return [work for _, work in sorted(sized, key=lambda pair: -pair[0])]


def _size(work: Work, problem: CMDP) -> float:
    """Estimate the length of a run: planners take longer, learners from outside longest."""
    row = work.settings.row()
    inside = row.row if isinstance(row, Safe) else row
    factor = 100 if isinstance(row, Custom) else 10 if isinstance(inside, PlansAnew) else 1
    return float((work.settings.episodes or 1) * problem.reward[0].size * factor)


def _play(
    works: Sequence[Work], ledger: Ledger, workers: int | None, keep: bool, shown: Shown
) -> bool:
    """Play runs and write their lines. Return False if some were interrupted."""
    by_name = {work.folder.name: work for work in works}
    ended: set[str] = set()
    with shown(works) as on_event:

        def note(event: Event) -> None:
            if event.status in ("done", "failed"):
                ended.add(event.folder)
                _take_down(by_name[event.folder].folder, event, ledger, keep)
            on_event(event)

        do_missing(list(works), workers, note)
    return len(ended) == len(by_name)


def _take_down(folder: Path, event: Event, ledger: Ledger, keep: bool) -> None:
    """Write the line of an ended run, and delete the folder of a done one unless `keep` is set."""
    if event.status == "failed":
        why = (event.error.strip().splitlines() or ["no reason was written down"])[-1]
        ledger.add({"run": folder.name, "status": "failed", "error": why[:500]})
    elif (record := manifest.read(folder)) is not None:
        ledger.add(numbers_of(folder, record))
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
