"""The board's protocol: which algorithms meet which problems, for how long, at which scales.

Every algorithm plays every fixed environment that is not too large, for as many steps, on the same
seeds, in two lines: *theory*, as its paper prints it at scale 1, and *tuned*, at the scale out of
seven that loses least on instances that the board does not show. A learner from outside has no
scale that we know: it has one line, *own*. `board_runs.py` plays it, `board_table.py` judges it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
REFERENCE = "UOpt-RPGPD"  # that all others are held against
EVERY = "all"  # of ours
WRAPPED = ("Safe(UOpt-RPGPD)", "Safe(OptCMDP)")  # a coin around a learner, and around a planner
TUNING = "tuning"  # the folder of its runs


class Place(NamedTuple):
    """A problem of the board: an environment, and which instance of a random one."""

    environment: str
    instance: int = 0

    @property
    def name(self) -> str:
        """For folders, tables and options."""
        random = ENVIRONMENTS[self.environment].random
        return f"{self.environment}:{self.instance}" if random else self.environment

    @property
    def folder(self) -> str:
        """The name of the folder of its runs."""
        return self.name.replace(":", "-")


class Entrant(Strict):
    """An algorithm on the board, with what tuning has found; `tuned` is None before that."""

    name: str  # NAME, NAME:PRESET, or that of a learner from outside
    tuned: float | None = None
    losses: dict[str, float] = Field(default={})  # by scale: the mean of what was lost in tuning


class Board(Strict):
    """The content of board.json: the protocol, and everything that was ever entered."""

    schema_version: int = SCHEMA
    steps: int
    seeds: int
    problems: list[tuple[str, int]]
    algorithms: list[Entrant]

    @property
    def places(self) -> list[Place]:
        """The problems."""
        return [Place(*each) for each in self.problems]

    def episodes(self, problem: CMDP) -> int:
        """As many whole episodes as the steps allow; one at least."""
        return max(1, self.steps // problem.horizon)

    def entrant(self, name: str) -> Entrant:
        """One of those that are entered."""
        return next(each for each in self.algorithms if each.name == name)


@dataclass(frozen=True)
class Line:
    """A line of the board: an algorithm at one of its scales."""

    entrant: Entrant
    scale: str  # theory, tuned or own
    factor: float | None  # of bonuses and margins; None: it has no such setting

    @cached_property
    def row(self) -> Row:
        """The algorithm in the preset of the line; nothing from outside is imported."""
        return _row(self.entrant.name, self.scale)

    def settings(self, episodes: int) -> dict[str, Any]:
        """What the line asks of its row.

        Planners that solve a program, and searches, plan anew when the visits of a pair have
        doubled, which is what makes the board affordable; a queue's multipliers change in every
        episode, so that those planners go on planning in every one.
        """
        if self.scale == OWN:
            return {}
        row = self.row
        asked: dict[str, Any] = dict.fromkeys(("bonus_scale", "margin_scale"), self.factor)
        asked["tuned_for"] = episodes
        found = {name: value for name, value in asked.items() if row.reads(name)}
        if row.may_plan_rarely:
            found["replan"] = "doubling"
        return found

    def run(self, place: Place, problem: CMDP, mark: str, episodes: int, seed: int) -> RunSettings:
        """One of its runs; `mark` is the fingerprint of the problem."""
        row = self.row.with_settings(**self.settings(episodes))
        return RunSettings.of(problem, row, episodes, seed, mark=mark)


class Cell(NamedTuple):
    """A row of the table: a line on one problem, and its runs, one for each seed."""

    line: Line
    place: Place
    horizon: int
    runs: list[RunSettings]


def _row(name: str, scale: str) -> Row:
    head, _, preset = name.partition(":")
    if is_outside(name):
        return recorded(name)
    if preset or scale != THEORY:
        return algorithm(head, preset or None)
    # The theorems are about what is printed.
    inside = head[len("Safe(") : -1] if head.startswith("Safe(") else head
    return algorithm(head, "printed" if (inside, "printed") in ALGORITHMS else None)


def lines_of(entrant: Entrant) -> list[Line]:
    """The lines of an algorithm: two, or one where no scale is known; untuned ones have one yet."""
    if isinstance(_row(entrant.name, OWN), Custom):
        return [Line(entrant, OWN, None)]
    theory = Line(entrant, THEORY, SCALES[0])
    return [theory] if entrant.tuned is None else [theory, Line(entrant, TUNED, entrant.tuned)]


def named(given: str) -> list[str]:
    """What a person gives as the board names it; a learner from outside is imported."""
    if given == EVERY:
        return registered()
    row = as_row(given)
    if row.plans:
        raise InputError(f"{row.name} is told the kernel, which all on a board must learn: no line")
    own = isinstance(row, Custom) or ":" not in given
    return [row.name if own else f"{row.name}:{row.preset}"]


def registered() -> list[str]:
    """Every algorithm of our list that is for problems with a constraint, and two made safe."""
    own = dict.fromkeys(name for (name, _), row in ALGORITHMS.items() if row.meant_for(1))
    return [*own, *WRAPPED]


def standard_places() -> list[Place]:
    """Every fixed environment with at most 130 states, and ten instances of the random one."""
    fixed = [name for name, each in ENVIRONMENTS.items() if not each.random]
    small = [name for name in fixed if make(name).reward.shape[2] <= MOST_STATES]
    return [*map(Place, small), *(Place(RANDOM, n) for n in INSTANCES)]


def places_named(given: Iterable[str]) -> list[Place]:
    """The problems that a person names: NAME, or NAME:INSTANCE of a random one (else all ten)."""
    found: list[Place] = []
    for text in given:
        name, _, instance = text.partition(":")
        make(name)  # refuses what nobody knows
        known = environment_named(name)
        random = known is not None and known.random
        if instance and not (random and instance.isdecimal()):
            raise InputError(f"{text} is no problem of a board: {name} has no instance {instance}")
        numbers = [int(instance)] if instance else list(INSTANCES) if random else [0]
        found += [Place(name, n) for n in numbers]
    return list(dict.fromkeys(found))


def made(places: Iterable[Place]) -> dict[Place, CMDP]:
    """The problems themselves."""
    return {place: make(*place) for place in places}


def cells(board: Board, found: Mapping[Place, CMDP]) -> list[Cell]:
    """All that the board has to show of these problems: every line on each that it is meant for."""
    whole = []
    lines = [line for entrant in board.algorithms for line in lines_of(entrant)]
    for place, problem in found.items():
        mark, episodes = fingerprint(problem), board.episodes(problem)
        for line in lines:
            if not line.row.meant_for(problem.constraints):
                continue
            first = line.run(place, problem, mark, episodes, 0)
            runs = [first.model_copy(update={"seed": seed}) for seed in range(board.seeds)]
            whole.append(Cell(line, place, problem.horizon, runs))
    return whole


def experiment(name: str, runs: Sequence[RunSettings], places: Sequence[Place]) -> Experiment:
    """Runs of one length as an experiment, which `sweep`'s machinery carries out."""
    specs: dict[str, dict[str, Any]] = {}
    for run in runs:
        own = run.preset == CUSTOM
        about: dict[str, Any] = {"name": run.algorithm} if own else _spec(run)
        specs[repr(about)] = about
    problems = [{"environment": p.environment, "instance_seeds": [p.instance]} for p in places]
    values = {
        "name": f"board-{name}",
        "episodes": runs[0].episodes,
        "seeds": sorted({run.seed for run in runs}),
        "problems": problems,
        "algorithms": list(specs.values()),
    }
    return parse_experiment(values, f"the board's {name}")


def _spec(run: RunSettings) -> dict[str, Any]:
    row = algorithm(run.algorithm, run.preset)
    settings = {k: v for k, v in run.settings().items() if row.reads(k)}
    return {"name": run.algorithm, "preset": run.preset, **settings}


def read_board(folder: Path) -> Board:
    """What board.json says."""
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
    """Whole or not at all."""
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
    """The board of a folder with what is asked for added to what is there; nothing is written yet.

    What is not given is as it is there; a new board has the standard length, seeds, algorithms and
    problems.
    """
    known = read_board(folder) if (folder / NAME).exists() else None
    if known is None and folder.is_dir() and any(folder.iterdir()):
        raise refusal(folder, "other files and no board")
    if known is None:
        steps = STEPS if steps is None else steps
        seeds = SEEDS if seeds is None else seeds
        if steps < 1 or seeds < 1:
            raise InputError(f"a board of {steps} steps and {seeds} seeds has no runs")
        names, places = names or registered(), places or standard_places()
        known = Board(steps=steps, seeds=seeds, problems=[], algorithms=[])
    elif steps not in (None, known.steps) or seeds not in (None, known.seeds):
        asked = f"{steps or known.steps:,} steps and {seeds or known.seeds} seeds"
        held = f"{known.steps:,} steps and {known.seeds} seeds"
        raise refusal(folder, f"a board of {held}, not of {asked}")
    there = {each.name for each in known.algorithms}
    new = [Entrant(name=name) for name in dict.fromkeys(names) if name not in there]
    problems = list(dict.fromkeys([*known.places, *places]))
    return known.model_copy(update={"problems": problems, "algorithms": [*known.algorithms, *new]})
