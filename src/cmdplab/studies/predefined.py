"""Predefined experiments: `reproduce`, the paper's Figure 1, and `compare`, side by side.

A study is an experiment, which runs, stops and continues like any sweep. `conclusions.py` writes
its results from the records in its folder.
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
from cmdplab.errors import CmdplabError, InputError, check_installed
from cmdplab.experiments.experiment import Experiment, parse_experiment
from cmdplab.experiments.folder import Study
from cmdplab.experiments.play import Run, check_counts, check_workers
from cmdplab.experiments.records.labels import Rival, kind_of_row, label_of, labels
from cmdplab.experiments.run import jobs
from cmdplab.experiments.run_settings import fingerprint
from cmdplab.experiments.sweep import do_missing, prepare
from cmdplab.experiments.work import OnEvent, Work
from cmdplab.formats import find
from cmdplab.settings import SETTINGS
from cmdplab.studies.conclusions import broken_alone, conclude

EVERY = "all"


@dataclass(frozen=True)
class Comparison:
    """Algorithms and problem of a comparison, and its folder; None stands for a row's own value."""

    problem: str = "media-streaming"
    instance_seed: int = 0
    episodes: int = 100_000
    seeds: int = 5
    algorithms: tuple[Given, ...] = tuple(TABLE_1)  # a learner from outside by its import path
    preset: str | None = None
    bonus_scale: float | None = None
    margin_scale: float | None = None
    tuned_for: int | None = None  # K of the algorithms that read it; None: `episodes`
    precision: str = "float64"
    versus: str | None = None  # the algorithm that all others are compared with
    out: Path | None = None  # None: runs/NAME

    kind: ClassVar[Study] = "compare"

    def __post_init__(self) -> None:
        check_counts(self.episodes, seed=0)  # algorithms may be tuned for them
        if not self.algorithms:
            raise InputError("name at least one algorithm")

    @property
    def name(self) -> str:
        """Return the name of the experiment, which contains the problem's name."""
        problem = Path(self.problem).stem if self._is_file() else self.problem
        number = f"-{self.instance_seed}" if self.instance_seed else ""
        return "compare-" + re.sub(r"[^A-Za-z0-9._-]+", "-", problem)[:50] + number

    @property
    def folder(self) -> Path:
        """Return the folder of the study."""
        return Path("runs") / self.name if self.out is None else self.out

    def rows(self) -> list[Row]:
        """Return the algorithms, each once: NAME, NAME:PRESET, learners from outside, or `all`.

        `all` stands for the registered algorithms that suit the problem's number of constraints.
        """
        rows = {}
        for name in map(written_name, self.algorithms):
            names = dict.fromkeys(own for own, _ in ALGORITHMS) if name == EVERY else [name]
            for one in names:
                row = self._row(one)
                if name != EVERY or row.meant_for(self._constraints):
                    rows[row.name, row.preset] = row
        return [row.with_settings(**self._asked(row)) for row in rows.values()]

    def versus_label(self) -> str | None:
        """Return the label of `versus`; refuse one that is not among several algorithms."""
        return None if self.versus is None else label_of(self.versus, rivals_of(self.rows()))

    def _row(self, name: str) -> Row:
        if self.preset is None or is_outside(name):
            return as_row(name)
        try:
            return as_row(name, self.preset)
        except InputError:
            return as_row(name)  # this algorithm has no such preset

    def _asked(self, row: Row) -> dict[str, Any]:
        """Return the settings asked of all algorithms, as far as this one reads them."""
        asked = {name: value for name, value in vars(self).items() if name in SETTINGS}
        if self.tuned_for is None:
            asked["tuned_for"] = self.episodes
        return {name: value for name, value in asked.items() if row.reads(name)}

    def _is_file(self) -> bool:
        name = self.problem
        known = name in ENVIRONMENTS
        return not known and (name.endswith((".npz", ".drn")) or Path(name).exists())

    @cached_property
    def _constraints(self) -> int:
        return self.cmdp().constraints

    def cmdp(self) -> CMDP:
        """Return the problem to compare on, from a file or an environment."""
        return find(self.problem, self.instance_seed)

    def experiment(self) -> Experiment:
        """Return the experiment with all runs."""
        jobs(self.rows(), self.seeds)  # refuses too few and too many
        place: dict[str, Any] = {"file": self.problem}
        if not self._is_file():
            place = {"environment": self.problem, "instance_seeds": [self.instance_seed]}
        rows = [_named(row) | self._asked(row) for row in self.rows()]
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
    """The paper's Figure 1 and its folder; every algorithm has one preset."""

    problem: str = "published"
    episodes: int = 300_000
    algorithms: tuple[str, ...] = FIGURE_1
    preset: str | None = "released"
    bonus_scale: float | None = 1e-3
    out: Path | None = Path("runs/figure1")

    kind: ClassVar[Study] = "reproduce"

    @property
    def name(self) -> str:
        """Return the name of the experiment."""
        return "figure1"

    def _row(self, name: str) -> Row:
        return algorithm(name, self.preset)

    def _asked(self, row: Row) -> dict[str, Any]:
        return {"bonus_scale": self.bonus_scale}


def _named(row: Row) -> dict[str, Any]:
    return {"name": row.name} | ({} if isinstance(row, Custom) else {"preset": row.preset})


def rivals_of(rows: Sequence[Row]) -> list[Rival]:
    """Return the algorithms with the labels that tables give them."""
    named = labels([kind_of_row(row) for row in rows])
    return [Rival(named[kind_of_row(row)], row.name, row.preset) for row in rows]


def prepared(study: Comparison, engine: str = "cpu") -> list[Work]:
    """Write the runs of a study into its folder and return them; refuse a wrong study first."""
    check_installed("matplotlib", "pyarrow")
    experiment, problem = study.experiment(), study.cmdp()
    problems = {fingerprint(problem): problem}
    versus = study.versus_label()
    return prepare(experiment, problems, study.folder, engine, study.kind, versus)


def carry_out(
    study: Comparison,
    workers: int | None = None,
    *,
    engine: str = "cpu",
    on_event: OnEvent = lambda event: None,
    on_message: Callable[[str], None] = lambda sentence: None,
) -> tuple[list[Run], dict[str, Any]]:
    """Play the missing runs of a study, then write its figure, tables, summary and report.

    After an interruption it continues, and the results are those of an uninterrupted study. If a
    learner from outside fails, the results of the other algorithms are written before the error is
    raised.
    """
    check_workers(workers)
    statuses = do_missing(
        prepared(study, engine), workers, on_event, engine=engine, on_message=on_message
    )
    broken = broken_alone(statuses)
    if broken:
        conclude(study.folder, broken)
    for status in statuses:
        if status.status != "done":
            why = (status.error.strip().splitlines() or ["it can be resumed"])[-1]
            raise CmdplabError(f"{status.label}, seed {status.seed}, is {status.status}: {why}")
    return conclude(study.folder)
