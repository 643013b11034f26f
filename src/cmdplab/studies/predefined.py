"""Predefined experiments: `reproduce`, the paper's Figure 1, and `compare`, side by side.

A study is an experiment, which runs, stops and goes on as any sweep does; what it shows in the end
(`conclusions.py`) is drawn from the records in its folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from cmdplab.algorithms import ALGORITHMS, FIGURE_1, algorithm, as_row, is_outside, written_name
from cmdplab.algorithms.custom import Custom, Given
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.table1 import TABLE_1
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments import ENVIRONMENTS
from cmdplab.errors import CmdplabError, InputError
from cmdplab.experiments.experiment import Experiment, parse_experiment
from cmdplab.experiments.folder import Study
from cmdplab.experiments.play import Run, check_counts, check_workers
from cmdplab.experiments.records.labels import kind_of_row, labels
from cmdplab.experiments.records.versus import Rival, label_of
from cmdplab.experiments.run import jobs
from cmdplab.experiments.run_settings import fingerprint
from cmdplab.experiments.sweep import do_missing, prepare
from cmdplab.experiments.work import OnEvent, Work
from cmdplab.formats import find
from cmdplab.settings import SETTINGS
from cmdplab.studies.conclusions import broken_alone, conclude

PROBLEMS = (
    "random-independent",
    "media-streaming",
    "three-state",
    "job-scheduling",
    "inventory",
    "published",
)
EVERY = "all"


@dataclass(frozen=True)
class Comparison:
    """What to compare, and where to put it. What is None is the row's own."""

    problem: str = "media-streaming"
    instance_seed: int = 0
    episodes: int = 100_000
    seeds: int = 5
    algorithms: tuple[Given, ...] = tuple(TABLE_1)  # from outside: what can be imported again
    preset: str | None = None
    bonus_scale: float | None = None
    margin_scale: float | None = None
    tuned_for: int | None = None  # K of those that read one; None: the number of episodes
    precision: str = "float64"
    versus: str | None = None  # the one that all others are held against, seed by seed
    out: Path | None = None  # None: runs/ and a name with the problem's in it

    kind: ClassVar[Study] = "compare"

    def __post_init__(self) -> None:
        check_counts(self.episodes, seed=0)  # they may be what the algorithms are tuned for
        if not self.algorithms:
            raise InputError("name at least one algorithm")

    @property
    def name(self) -> str:
        """The name of the experiment: two problems are two experiments."""
        what = Path(self.problem).stem if self._is_file() else self.problem
        number = f"-{self.instance_seed}" if self.instance_seed else ""
        return "compare-" + re.sub(r"[^A-Za-z0-9._-]+", "-", what)[:50] + number

    @property
    def folder(self) -> Path:
        """Where it goes."""
        return Path("runs") / self.name if self.out is None else self.out

    def rows(self) -> list[Row]:
        """The algorithms: NAME, NAME:PRESET, learners from outside, or `all` of ours, each once.

        `all` are those that are meant for as many constraints as the problem has.
        """
        rows = {}
        for name in map(written_name, self.algorithms):
            names = dict.fromkeys(each for each, _ in ALGORITHMS) if name == EVERY else [name]
            for each in names:
                row = self._row(each)
                if name != EVERY or row.meant_for(self._constraints):
                    rows[row.name, row.preset] = row
        return [row.with_settings(**self._given(row)) for row in rows.values()]

    def versus_label(self) -> str | None:
        """The label of `versus`, which must be one of several algorithms."""
        return None if self.versus is None else label_of(self.versus, rivals_of(self.rows()))

    def _row(self, name: str) -> Row:
        if self.preset is None or is_outside(name):
            return as_row(name)
        try:
            return as_row(name, self.preset)
        except InputError:
            return as_row(name)  # the preset asked for all is one that this one does not have

    def _given(self, row: Row) -> dict[str, Any]:
        """What is asked of all, as far as this one reads it."""
        given = {name: value for name, value in vars(self).items() if name in SETTINGS}
        if self.tuned_for is None:
            given["tuned_for"] = self.episodes
        return {name: value for name, value in given.items() if row.reads(name)}

    def _is_file(self) -> bool:
        name = self.problem
        known = name in ENVIRONMENTS
        return not known and (name.endswith((".npz", ".drn")) or Path(name).exists())

    @cached_property
    def _constraints(self) -> int:
        return self.cmdp().constraints

    def cmdp(self) -> CMDP:
        """The problem of a file, or an environment."""
        return find(self.problem, self.instance_seed)

    def experiment(self) -> Experiment:
        """All runs."""
        jobs(self.rows(), self.seeds)  # refuses too few and too many
        place: dict[str, Any] = {"file": self.problem}
        if not self._is_file():
            place = {"environment": self.problem, "instance_seeds": [self.instance_seed]}
        rows = [_named(row) | self._given(row) for row in self.rows()]
        values = {
            "name": self.name,
            "episodes": self.episodes,
            "seeds": self.seeds,
            "preset": self.preset,
            "precision": self.precision,
            "problems": [place],
            "algorithms": rows,
        }
        return parse_experiment(values, self.name)


@dataclass(frozen=True)
class Reproduction(Comparison):
    """The paper's Figure 1, and where to put it; every algorithm in one preset."""

    problem: str = "published"
    episodes: int = 300_000
    algorithms: tuple[str, ...] = FIGURE_1
    preset: str | None = "released"
    bonus_scale: float | None = 1e-3
    out: Path | None = Path("runs/figure1")

    kind: ClassVar[Study] = "reproduce"

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return "figure1"

    def _row(self, name: str) -> Row:
        return algorithm(name, self.preset)

    def _given(self, row: Row) -> dict[str, Any]:
        return {"bonus_scale": self.bonus_scale}


def _named(row: Row) -> dict[str, Any]:
    """A row in an experiment."""
    return {"name": row.name} | ({} if isinstance(row, Custom) else {"preset": row.preset})


def rivals_of(rows: Sequence[Row]) -> list[Rival]:
    """Algorithms with the labels that tables give them."""
    named = labels([kind_of_row(row) for row in rows])
    return [Rival(named[kind_of_row(row)], row.name, row.preset) for row in rows]


def prepared(study: Comparison, engine: str = "cpu") -> list[Work]:
    """The runs of a study, written down in its folder; whatever is wrong is said before that."""
    experiment, problem = study.experiment(), study.cmdp()
    found = {fingerprint(problem): problem}
    versus = study.versus_label()
    return prepare(experiment, found, study.folder, engine, study.kind, versus)


def carry_out(
    study: Comparison,
    workers: int | None = None,
    *,
    engine: str = "cpu",
    on_event: OnEvent = lambda event: None,
    on_message: Callable[[str], None] = lambda sentence: None,
) -> tuple[list[Run], dict[str, Any]]:
    """Do what is missing of a study, then write what it shows: figure, tables, summary, report.

    Interrupted or given again, it goes on; the results are those of a study that never stopped. A
    learner from outside that fails is raised, after the results of the others are written.
    """
    check_workers(workers)
    found = do_missing(
        prepared(study, engine), workers, on_event, engine=engine, on_message=on_message
    )
    broken = broken_alone(found)
    if broken:
        conclude(study.folder, broken)
    for status in found:
        if status.status != "done":
            why = (status.error.strip().splitlines() or ["it can be resumed"])[-1]
            raise CmdplabError(f"{status.label}, seed {status.seed}, is {status.status}: {why}")
    return conclude(study.folder)
