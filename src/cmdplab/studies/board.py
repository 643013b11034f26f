"""Protocol of the board: its problems, its algorithms, their scales and the number of steps.

Every algorithm plays every fixed environment with at most 130 states, for one number of steps and
on one list of seeds. It has two lines. The line *theory* uses the formulas of the paper at scale 1.
The line *tuned* uses the scale, out of seven, with the smallest loss on instances that the board
does not show. A learner from outside has one line, *own*, because no scale of it is known.
`board_runs.py` plays the runs, and `board_table.py` computes the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, ValidationError

from cmdplab.algorithms import ALGORITHMS, algorithm, as_row, is_outside
from cmdplab.algorithms.custom import CUSTOM, Custom, recorded
from cmdplab.algorithms.row import Row
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments import ENVIRONMENTS, make, named as environment_named
from cmdplab.errors import InputError
from cmdplab.experiments.experiment import Experiment, first_complaint, parse_experiment
from cmdplab.experiments.folder import refusal
from cmdplab.experiments.run_settings import RunSettings, Strict, fingerprint
from cmdplab.files import MissingError, read_json, sealed, unsealed
from cmdplab.files.write import writable_folder, written_whole

NAME = "board.json"
SCHEMA = 1
THEORY, TUNED, OWN = "theory", "tuned", "own"
SCALES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
STEPS, SEEDS = 200_000, 10
MOST_STATES = 130
RANDOM = "random-independent-binding"
INSTANCES, TUNING_INSTANCES, TUNING_SEEDS = range(10), range(100, 105), 2
REFERENCE = "UOpt-RPGPD"  # the algorithm that all others are compared with
EVERY = "all"  # the name that stands for all registered algorithms
WRAPPED = ("Safe(UOpt-RPGPD)", "Safe(OptCMDP)")  # `Safe` around a learner and around a planner
TUNING = "tuning"  # the folder of the tuning runs


class Place(NamedTuple):
    """A problem of the board: an environment, and the instance of a random one."""

    environment: str
    instance: int = 0

    @property
    def name(self) -> str:
        """Return the name for tables and options."""
        random = ENVIRONMENTS[self.environment].random
        return f"{self.environment}:{self.instance}" if random else self.environment

    @property
    def folder(self) -> str:
        """Return the name of the folder of its runs."""
        return self.name.replace(":", "-")


class Entrant(Strict):
    """An algorithm on the board, and the result of its tuning."""

    name: str  # NAME, NAME:PRESET, or the import path of a learner from outside
    tuned: float | None = None  # the chosen scale; None before tuning
    losses: dict[str, float] = Field(default={})  # scale -> mean loss of the tuning runs

    @property
    def outside(self) -> bool:
        """Return True for a learner from outside."""
        return is_outside(self.name)

    @property
    def untuned(self) -> bool:
        """Return True until the tuning of an algorithm of the package is complete."""
        return self.tuned is None and not self.outside


class Board(Strict):
    """The content of board.json: the protocol, and all algorithms and problems entered."""

    schema_version: int = SCHEMA
    steps: int
    seeds: int
    problems: list[Place]
    algorithms: list[Entrant]

    def episodes(self, problem: CMDP) -> int:
        """Return the number of whole episodes within the steps of the board, at least one."""
        return max(1, self.steps // problem.horizon)


@dataclass(frozen=True)
class Line:
    """A line of the board: an algorithm at one of its scales."""

    entrant: Entrant
    scale: str  # theory, tuned or own
    factor: float | None  # of bonuses and margins; None for a learner from outside

    @cached_property
    def row(self) -> Row:
        """Return the algorithm in the preset of the line, without an import from outside."""
        name, _, preset = self.entrant.name.partition(":")
        if self.entrant.outside:
            return recorded(self.entrant.name)
        if preset or self.scale != THEORY:
            return algorithm(name, preset or None)
        # The theorems are about the printed formulas.
        inside = name[len("Safe(") : -1] if name.startswith("Safe(") else name
        return algorithm(name, "printed" if (inside, "printed") in ALGORITHMS else None)

    def settings(self, episodes: int) -> dict[str, Any]:
        """Return the settings that the line asks of its row.

        Planners that solve a program, and searches, plan anew when the visits of a pair have
        doubled. Otherwise the board would take too long. The multipliers of a queue change in
        every episode, so that such a planner plans in every episode.
        """
        if self.scale == OWN:
            return {}
        asked = {"bonus_scale": self.factor, "margin_scale": self.factor, "tuned_for": episodes}
        settings: dict[str, Any] = {k: v for k, v in asked.items() if self.row.reads(k)}
        return settings | ({"replan": "doubling"} if self.row.may_plan_rarely else {})

    def run(self, problem: CMDP, mark: str, episodes: int, seed: int = 0) -> RunSettings:
        """Return one run of the line; `mark` is the fingerprint of the problem."""
        row = self.row.with_settings(**self.settings(episodes))
        return RunSettings.of(problem, row, episodes, seed, mark=mark)


class Cell(NamedTuple):
    """A line on one problem: one run for each seed."""

    line: Line
    place: Place
    problem: CMDP
    folder: str  # of the runs
    runs: list[RunSettings]


def cells(board: Board, places: Sequence[Place] = ()) -> list[Cell]:
    """Return each line on each problem whose constraints it is meant for; `places`: these only."""
    lines = [line for entrant in board.algorithms for line in lines_of(entrant)]
    every = _cells(board, lines, places or board.problems, board.seeds)
    return [cell for cell in every if cell.line.row.meant_for(cell.problem.constraints)]


def tuning_cells(board: Board) -> list[Cell]:
    """Return the tuning runs: each algorithm of the package at every scale."""
    inside = [entrant for entrant in board.algorithms if not entrant.outside]
    lines = [Line(entrant, TUNED, scale) for entrant in inside for scale in SCALES]
    places = [Place(RANDOM, instance) for instance in TUNING_INSTANCES]
    return _cells(board, lines, places, TUNING_SEEDS, TUNING)


def _cells(
    board: Board, lines: Sequence[Line], places: Sequence[Place], seeds: int, folder: str = ""
) -> list[Cell]:
    whole = []
    for place in places:
        problem = make(*place)
        mark, episodes = fingerprint(problem), board.episodes(problem)
        for line in lines:
            first = line.run(problem, mark, episodes)
            runs = [first.model_copy(update={"seed": seed}) for seed in range(seeds)]
            whole.append(Cell(line, place, problem, folder or place.folder, runs))
    return whole


def lines_of(entrant: Entrant) -> list[Line]:
    """Return the lines: theory and tuned, theory alone before tuning, or own from outside."""
    if entrant.outside:
        return [Line(entrant, OWN, None)]
    theory = Line(entrant, THEORY, SCALES[0])
    return [theory] if entrant.tuned is None else [theory, Line(entrant, TUNED, entrant.tuned)]


def named(name: str) -> list[str]:
    """Return the board's names of an algorithm that a person names, or of `all`.

    A learner from outside is imported.
    """
    if name == EVERY:
        return registered()
    row = as_row(name)
    if row.plans:
        raise InputError(f"{row.name} is told the kernel, which all on a board must learn: no line")
    own = isinstance(row, Custom) or ":" not in name
    return [row.name if own else f"{row.name}:{row.preset}"]


def registered() -> list[str]:
    """Return the names of algorithms for one constraint, and two algorithms inside `Safe(...)`."""
    own = dict.fromkeys(name for (name, _), row in ALGORITHMS.items() if row.meant_for(1))
    return [*own, *WRAPPED]


def standard_places() -> list[Place]:
    """Return every fixed environment with at most 130 states, and ten instances of a random one."""
    fixed = [name for name, environment in ENVIRONMENTS.items() if not environment.random]
    small = [name for name in fixed if make(name).reward.shape[2] <= MOST_STATES]
    return [*map(Place, small), *(Place(RANDOM, n) for n in INSTANCES)]


def places_named(names: Iterable[str]) -> list[Place]:
    """Return the problems called NAME, or NAME:INSTANCE of a random one (NAME alone: all ten)."""
    places: list[Place] = []
    for text in names:
        name, _, instance = text.partition(":")
        make(name)  # refuses an unknown name
        environment = environment_named(name)
        random = environment is not None and environment.random
        if instance and not (random and instance.isdecimal()):
            raise InputError(f"{text} is no problem of a board: {name} has no instance {instance}")
        numbers = [int(instance)] if instance else list(INSTANCES) if random else [0]
        places += [Place(name, n) for n in numbers]
    return list(dict.fromkeys(places))


def experiment(name: str, runs: Sequence[RunSettings], places: Sequence[Place]) -> Experiment:
    """Return runs of one length as an experiment, which the functions of `sweep` can play."""
    specs = [
        {"name": run.algorithm}
        if run.preset == CUSTOM
        else {"name": run.algorithm, "preset": run.preset, **_settings_read(run)}
        for run in runs
    ]
    values = {
        "name": f"board-{name}",
        "episodes": runs[0].episodes,
        "seeds": sorted({run.seed for run in runs}),
        "problems": [
            {"environment": p.environment, "instance_seeds": [p.instance]} for p in places
        ],
        "algorithms": list({repr(spec): spec for spec in specs}.values()),
    }
    return parse_experiment(values, f"the board's {name}")


def _settings_read(run: RunSettings) -> dict[str, Any]:
    row = algorithm(run.algorithm, run.preset)
    return {name: value for name, value in run.settings().items() if row.reads(name)}


def read_board(folder: Path) -> Board:
    """Return the content of board.json."""
    file = folder / NAME
    try:
        values = unsealed(read_json(file), file, NAME)
    except MissingError:
        raise InputError(f"{folder} is no board: it has no {NAME}") from None
    try:
        return Board.model_validate(values, strict=False)
    except ValidationError as error:
        raise InputError(f"{file} is not a board: {first_complaint(error)}") from None


def write_board(folder: Path, board: Board) -> None:
    """Write board.json atomically."""
    writable_folder(folder)
    with written_whole(folder / NAME) as temporary:
        temporary.write_text(sealed(board.model_dump_json(), indent=1) + "\n")


def entered(
    folder: Path,
    steps: int | None = None,
    seeds: int | None = None,
    names: Sequence[str] = (),
    places: Sequence[Place] = (),
) -> Board:
    """Return the board of a folder with algorithms and problems added; write nothing yet.

    An existing board keeps its steps and seeds. A new board has the standard steps, seeds,
    algorithms and problems where an argument is not given.
    """
    if (folder / NAME).exists():
        board = read_board(folder)
        if steps not in (None, board.steps) or seeds not in (None, board.seeds):
            asked = f"{steps or board.steps:,} steps and {seeds or board.seeds} seeds"
            held = f"{board.steps:,} steps and {board.seeds} seeds"
            raise refusal(folder, f"a board of {held}, not of {asked}")
    elif folder.is_dir() and any(folder.iterdir()):
        raise refusal(folder, "other files and no board")
    else:
        steps = STEPS if steps is None else steps
        seeds = SEEDS if seeds is None else seeds
        if steps < 1 or seeds < 1:
            raise InputError(f"a board of {steps} steps and {seeds} seeds has no runs")
        names, places = names or registered(), places or standard_places()
        board = Board(steps=steps, seeds=seeds, problems=[], algorithms=[])
    known = {entrant.name for entrant in board.algorithms}
    new = [Entrant(name=name) for name in dict.fromkeys(names) if name not in known]
    problems = list(dict.fromkeys([*board.problems, *places]))
    return board.model_copy(update={"problems": problems, "algorithms": [*board.algorithms, *new]})
