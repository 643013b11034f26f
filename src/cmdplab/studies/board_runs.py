"""The runs of a board: tuned first, then all of them; one line of numbers is kept of each.

DIR/board.json is the protocol, DIR/numbers.jsonl has a line for every run that has ended. A run is
an ordinary one, in the folder of an ordinary experiment (DIR/PROBLEM/runs/HASH-SEED), until it is
done; then its numbers are taken down and its curves and checkpoint go, half a megabyte for each of
some 19,000 runs, unless they are to be kept. Whatever stops the command, the same command
goes on: lines count, checkpoints are resumed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.custom import Custom
from cmdplab.algorithms.planner import PlansAnew
from cmdplab.algorithms.safe import Safe
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import storage
from cmdplab.experiments import manifest
from cmdplab.experiments.durable import CURVES, MISTAKES
from cmdplab.experiments.index import good_lines, sealed_line
from cmdplab.experiments.manifest import Manifest
from cmdplab.experiments.records.tables import LABELS, read_records
from cmdplab.experiments.run_settings import RunSettings, fingerprint
from cmdplab.experiments.sweep import do_missing, prepare
from cmdplab.experiments.work import Ended, Event, OnEvent, Work
from cmdplab.files.locks import locked
from cmdplab.files.write import writable_folder
from cmdplab.measures import safety
from cmdplab.measures.mistakes import DECADES, PER_DECADE
from cmdplab.studies.board import (
    RANDOM,
    SCALES,
    TUNED,
    TUNING,
    TUNING_INSTANCES,
    TUNING_SEEDS,
    Board,
    Cell,
    Entrant,
    Line,
    Place,
    cells,
    experiment,
    lines_of,
    made,
    write_board,
)
from cmdplab.types import Array

NUMBERS = "numbers.jsonl"
UNSAFE = (DECADES - 2) * PER_DECADE  # the place of 0.01 H among the epsilons that are counted
LAST = 0.9  # the last tenth begins here
_NEEDED = {"run", "status"}

Shown = Callable[[Sequence[Work]], AbstractContextManager[OnEvent]]


class Ledger:
    """The lines of a board: what every run that has ended gave, or why it failed."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / NUMBERS
        text = self._file.read_bytes() if self._file.exists() else b""
        self.lines = {line["run"]: line for line in good_lines(text.split(b"\n"), _NEEDED)}

    def add(self, line: dict[str, Any]) -> None:
        """One more line, or a newer one; several processes never write the same board."""
        self.lines[line["run"]] = line
        with storage(f"cannot write {self._file}"), self._file.open("ab") as stream:
            stream.write(b"\n" + sealed_line(line) + b"\n")

    def done(self, run: RunSettings) -> dict[str, Any] | None:
        """The numbers of a run, if it is done."""
        line = self.lines.get(run.folder)
        return line if line is not None and line["status"] == "done" else None

    def failed(self, run: RunSettings) -> str:
        """Why a run failed; empty if it did not."""
        line = self.lines.get(run.folder, {})
        return str(line.get("error", "")) if line.get("status") == "failed" else ""


def numbers_of(folder: Path, record: Manifest) -> dict[str, Any]:
    """What the board keeps of a finished run.

    The last tenth begins at the last point of the curves' grid up to 0.9 K; gap and violation there
    are means of positive parts. Unsafe are the episodes that miss a threshold by more than 0.01 H.
    """
    summary = record.summary
    fields = ["strong_regret"]
    fields += ["strong_violation_regret"] * (summary["strong_violation_regret"] is not None)
    curves = _columns(folder / CURVES, record.digest_of(CURVES))
    mistakes = _columns(folder / MISTAKES, record.digest_of(MISTAKES))
    episode = curves["episode"].astype(np.float64)
    first = int(np.searchsorted(episode, LAST * episode[-1], side="right")) - 1
    last = []
    for name in fields:
        sums = curves[name]
        before = (episode[first], sums[first]) if first >= 0 else (0.0, 0.0)
        last.append(float((sums[-1] - before[1]) / max(episode[-1] - before[0], 1.0)))
    safe = safety.summary(curves, mistakes)
    settings = record.settings
    return {
        "run": settings.folder,
        "status": "done",
        "problem": settings.problem,
        "algorithm": settings.algorithm,
        "preset": settings.preset,
        "bonus_scale": settings.settings().get("bonus_scale"),
        "seed": settings.seed,
        "episodes": record.episodes,
        "strong_regret": summary["strong_regret"],
        "strong_violation_regret": summary["strong_violation_regret"],
        "last_gap": last[0],
        "last_violation": last[1] if len(last) > 1 else None,
        "unsafe": None if safe is None else int(mistakes["violation_mistakes"][UNSAFE]),
        "violating": None if safe is None else safe.violating,
        "first_violating": None if safe is None else safe.first,
        "largest_violation": None if safe is None else safe.largest,
        "baseline_share": None if safe is None else safe.baseline_share,
        "final_gap": summary["final_gap"],
        "final_violation": summary["final_violation"],
        "seconds": round(record.seconds, 4),
        "version": record.versions.get("cmdplab", ""),
        "processor": record.machine.get("processor", ""),
    }


def _columns(path: Path, sha256: str) -> dict[str, Array]:
    table = read_records(path, sha256)
    wanted = [name for name in table.column_names if name not in LABELS]
    return {name: table[name].to_numpy() for name in wanted}


class Played(NamedTuple):
    """The board after a command, and what is still to be done of what was asked for."""

    board: Board
    failed: list[tuple[str, str]]  # runs: the algorithm, and what failed why
    missing: int  # runs, those that failed among them
    untuned: list[str]  # algorithms; their tuned runs are not planned yet


def play(
    folder: Path,
    board: Board,
    workers: int | None = None,
    *,
    names: Sequence[str] = (),
    places: Sequence[Place] = (),
    keep: bool = False,
    shown: Shown = lambda works: nullcontext(lambda event: None),
) -> Played:
    """Do what is missing of a board: tune, then run every line on every problem.

    `names` and `places` restrict what is done now; empty: all of the board, but learners from
    outside only where they are named, since that imports them. Failed runs are tried again.
    """
    writable_folder(folder)
    with locked(folder / ".lock"):
        write_board(folder, board)
        ledger = Ledger(folder)
        wanted = {*names} or {e.name for e in board.algorithms if not _is_outside(e)}
        player = _Player(folder, ledger, workers, keep, shown)
        tuning = made(Place(RANDOM, n) for n in TUNING_INSTANCES)
        planned = tuning_runs(board, tuning)
        mine = {name: runs for name, runs in planned.items() if name in wanted}
        player.play({TUNING: ([*tuning], _runs_of(mine.values()))}, tuning)
        if not player.stopped:
            board = tuned(board, planned, ledger)
            write_board(folder, board)
            found = made(places or board.places)
            table = [c for c in cells(board, found) if c.line.entrant.name in wanted]
            player.play(_by_folder(table), found)
        return _standing(board, ledger, wanted)


def _is_outside(entrant: Entrant) -> bool:
    return isinstance(lines_of(entrant)[0].row, Custom)


def _standing(board: Board, ledger: Ledger, wanted: set[str]) -> Played:
    missing, failed = 0, []
    for cell in cells(board, made(board.places)):
        for run in cell.runs:
            if ledger.done(run) is None and cell.line.entrant.name in wanted:
                missing += 1
                if why := ledger.failed(run):
                    what = f"{run.algorithm} ({cell.line.scale}) on {cell.place.name}"
                    failed.append((run.algorithm, f"{what}, seed {run.seed}: {why}"))
    untuned = [e.name for e in board.algorithms if e.tuned is None and not _is_outside(e)]
    return Played(board, failed, missing, [name for name in untuned if name in wanted])


def tuning_runs(
    board: Board, found: Mapping[Place, CMDP]
) -> dict[str, dict[float, list[RunSettings]]]:
    """The runs by which every algorithm that has a scale is tuned: by name and by scale."""
    marks = {place: fingerprint(problem) for place, problem in found.items()}
    planned: dict[str, dict[float, list[RunSettings]]] = {}
    for entrant in board.algorithms:
        if _is_outside(entrant):
            continue
        planned[entrant.name] = {
            scale: [
                Line(entrant, TUNED, scale).run(
                    place, problem, marks[place], board.episodes(problem), seed
                )
                for place, problem in found.items()
                for seed in range(TUNING_SEEDS)
            ]
            for scale in SCALES
        }
    return planned


def tuned(
    board: Board, planned: Mapping[str, Mapping[float, Sequence[RunSettings]]], ledger: Ledger
) -> Board:
    """The board with the scale of every algorithm whose tuning is complete.

    It is the one with the least mean of strong regret plus strong violation regret; of several,
    the largest. A scale at which a run failed is none that can be chosen.
    """
    found = []
    for entrant in board.algorithms:
        runs = planned.get(entrant.name, {})
        ended = all(ledger.done(r) or ledger.failed(r) for mine in runs.values() for r in mine)
        if entrant.tuned is not None or not runs or not ended:
            found.append(entrant)
            continue
        losses = {}
        for scale, mine in runs.items():
            numbers = [ledger.done(run) for run in mine]
            if None not in numbers:
                each = [_loss(line) for line in numbers if line is not None]
                losses[scale] = float(np.mean(each))
        best = min(losses, key=lambda scale: losses[scale]) if losses else None
        said = {f"{scale:g}": round(loss, 6) for scale, loss in losses.items()}
        found.append(entrant.model_copy(update={"tuned": best, "losses": said}))
    return board.model_copy(update={"algorithms": found})


def _loss(line: Mapping[str, Any]) -> float:
    return float(line["strong_regret"] + (line["strong_violation_regret"] or 0.0))


Plan = dict[str, tuple[list[Place], list[RunSettings]]]  # by folder: its problems and its runs


def _runs_of(planned: Iterable[Mapping[float, Sequence[RunSettings]]]) -> list[RunSettings]:
    return [run for by_scale in planned for runs in by_scale.values() for run in runs]


def _by_folder(table: Iterable[Cell]) -> Plan:
    plan: Plan = {}
    for cell in table:
        _, runs = plan.setdefault(cell.place.folder, ([cell.place], []))
        runs += cell.runs
    return plan


class _Player:
    """Plays what has no line yet, all folders together, and takes the numbers down."""

    def __init__(
        self, folder: Path, ledger: Ledger, workers: int | None, keep: bool, shown: Shown
    ) -> None:
        self._folder, self._ledger, self._keep = folder, ledger, keep
        self._workers, self._shown = workers, shown
        self.stopped = False

    def play(self, plan: Plan, found: Mapping[Place, CMDP]) -> None:
        works = self._works(plan, found)
        if not works:
            return
        by_name = {work.folder.name: work for work in works}
        ended: set[str] = set()
        with self._shown(works) as on_event:

            def note(event: Event) -> None:
                if isinstance(event, Ended) and event.status in ("done", "failed"):
                    ended.add(event.folder)
                    self._take_down(by_name[event.folder], event)
                on_event(event)

            do_missing(works, self._workers, note)
        self.stopped = len(ended) < len(by_name)

    def _works(self, plan: Plan, found: Mapping[Place, CMDP]) -> list[Work]:
        """What is missing, the longest runs first: at the end no core waits long for another."""
        works = []
        for name, (places, runs) in plan.items():
            missing = {run.folder: run for run in runs if self._ledger.done(run) is None}
            if not missing:
                continue
            problems = {fingerprint(found[place]): found[place] for place in places}
            sizes = {mark: each.reward[0].size for mark, each in problems.items()}
            asked = experiment(name, list(missing.values()), places)
            for work in prepare(asked, problems, self._folder / name):
                if work.settings.folder in missing:
                    works.append((_size(work, sizes), work))
        works.sort(key=lambda pair: -pair[0])
        return [work for _, work in works]

    def _take_down(self, work: Work, event: Ended) -> None:
        if event.status == "failed":
            why = (event.error.strip().splitlines() or ["no reason was written down"])[-1]
            line = {"run": work.folder.name, "status": "failed", "error": why[:500]}
            self._ledger.add(line)
            return
        record = manifest.read(work.folder)
        if record is not None:
            self._ledger.add(numbers_of(work.folder, record))
            if not self._keep:
                shutil.rmtree(work.folder, ignore_errors=True)


def _size(work: Work, sizes: Mapping[str, int]) -> float:
    """About how long a run takes: planners longer, learners from outside longest."""
    row = work.settings.row()
    inside = row.row if isinstance(row, Safe) else row
    factor = 100 if isinstance(row, Custom) else 10 if isinstance(inside, PlansAnew) else 1
    return float((work.settings.episodes or 1) * sizes[work.settings.fingerprint] * factor)
