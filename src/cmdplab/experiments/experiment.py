"""Experiments: problems x algorithms x seeds, from a TOML file or from Python.

Every combination gives one `RunSettings`, whose hash names its folder. A changed setting gives
another folder, so that no run is overwritten.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from cmdplab import display
from cmdplab.algorithms import as_row, check_settings, is_outside, written_name
from cmdplab.algorithms.custom import is_learner, recorded
from cmdplab.algorithms.row import Row
from cmdplab.checks import MOST_EPISODES, whole_if_exact
from cmdplab.cmdp.horizons import with_an_end
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments import make, named, no_instances
from cmdplab.errors import InputError
from cmdplab.experiments.run_settings import Preset, RunSettings, Strict, by_fingerprint
from cmdplab.files import parse_toml, read_toml
from cmdplab.formats import read_problem
from cmdplab.plugins import ALGORITHMS, is_path, plugin
from cmdplab.settings import SETTINGS, Declared, with_fields

MOST_RUNS = 1_000_000
FindRow = Callable[[str, str | None], Row]

Whole = BeforeValidator(whole_if_exact)  # TOML writes 1e3 as a float
Episodes = Annotated[int, Whole, Field(gt=0, le=MOST_EPISODES)] | Literal["unlimited"]
Seed = Annotated[int, Whole, Field(ge=0, lt=1 << 63)]
Seeds = (
    Annotated[list[Seed], Field(min_length=1)] | Annotated[int, Whole, Field(gt=0, le=MOST_RUNS)]
)
Count = Annotated[int, Whole]


class ProblemSpec(Strict):
    """Problem of an experiment: an environment with instance seeds, or a problem file."""

    environment: str | None = Field(default=None, description="the name of an environment")
    instance_seeds: Annotated[list[Seed], Field(min_length=1)] = Field(
        default=[0], description="a list of whole numbers >= 0 and below 2^63"
    )
    file: str | None = Field(default=None, description="the path of a problem, as text")


def _choices(setting: Declared) -> tuple[Any, Any]:
    """Return type and default of a setting in an experiment file, as one value or a list."""
    one: Any = Count if setting.kind is int else setting.kind
    words = {
        float: "a number, or a list of at least one",
        int: "a whole number of episodes, or a list of at least one",
        str: " or ".join(f'"{each}"' for each in setting.choices) + ", or a list of them",
    }
    several = Annotated[list[one], Field(min_length=1)]
    return several | one | None, Field(default=None, description=words[setting.kind])


def _name(given: Any) -> Any:
    if not (callable(given) or isinstance(given, Row) or is_learner(given)):
        return given
    try:
        return written_name(given)
    except InputError as error:
        raise ValueError(str(error)) from None


@with_fields(_choices)
class AlgorithmSpec(Strict):
    """Algorithm of an experiment with its settings. A list of values gives one run per value."""

    name: Annotated[str, BeforeValidator(_name)] = Field(
        description="the name of an algorithm, or package.module:name of a learner from outside"
    )
    preset: Preset | None = Field(  # default: that of the experiment
        default=None, description='"released" or "printed"'
    )


@display.shown
class Experiment(Strict):
    """Experiment: problems x algorithms x seeds, with the settings that all runs share."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,79}$")] = Field(
        description="text of at most 80 letters, digits, dots, hyphens, underscores and spaces "
        "that begins with a letter or a digit"
    )
    episodes: Episodes = Field(
        description=f'a whole number from 1 to {MOST_EPISODES:,}, or "unlimited"'
    )
    seeds: Seeds = Field(
        default=1,
        description=f"a number of seeds from 1 to {MOST_RUNS:,}, or a list of whole numbers >= 0 "
        "and below 2^63",
    )
    preset: Preset | None = Field(  # default: as of `algorithms.algorithm`
        default=None, description='"released" or "printed"'
    )
    rewards: Literal["known", "bernoulli"] = Field(  # bernoulli: samples of 0 and 1
        default="known", description='"known" or "bernoulli"'
    )
    precision: Literal["float64", "float32"] = Field(  # float32 needs the engine gpu
        default="float64", description='"float64" or "float32"'
    )
    problems: Annotated[list[ProblemSpec], Field(min_length=1)] = Field(
        description="at least one [[problems]] with an environment or a file"
    )
    algorithms: Annotated[list[AlgorithmSpec], Field(min_length=1)] = Field(
        description="at least one [[algorithms]] with a name"
    )

    def _facts(self) -> tuple[str, display.Facts]:
        places = [display.name(each.environment or each.file) for each in self.problems]
        names = [display.name(each.name) for each in self.algorithms]
        length = self.episodes if isinstance(self.episodes, str) else f"{self.episodes:,}"
        return f"Experiment {display.name(self.name)}", [
            ("episodes", length),
            ("seeds", f"{len(self.seed_list()):,}"),
            ("problems", ", ".join(dict.fromkeys(places))),
            ("algorithms", ", ".join(dict.fromkeys(names))),
        ]

    def seed_list(self) -> list[int]:
        """Return the list of seeds. A number n stands for the seeds 0 to n - 1."""
        return list(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds


def read_experiment(path: str | Path, changes: list[str] | None = None) -> Experiment:
    """Read an experiment from a TOML file. changes : texts like "algorithms.0.delta=0.05"."""
    values = read_toml(path)
    for change in changes or []:
        _apply(values, change)
    return parse_experiment(values, str(path))


def parse_experiment(values: dict[str, Any], where: str) -> Experiment:
    """Return the experiment of these values. An error names `where` and the first wrong key."""
    try:
        return Experiment.model_validate(values)
    except ValidationError as error:
        raise InputError(f"{where}: {first_complaint(error, Experiment)}") from None


def first_complaint(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """Return the first wrong key with the description of its values in the model."""
    first = error.errors()[0]
    if first["type"] == "extra_forbidden":
        return f"{'.'.join(map(str, first['loc']))}: unknown key"
    path = [part for part in first["loc"] if isinstance(part, int) or _KEY.fullmatch(part)]
    key = ".".join(map(str, path))
    wanted = _description(model, path)
    if first["type"] == "value_error":
        return f"{key}: {first['ctx']['error']}"
    if first["type"] == "missing":
        return f"{key} is missing" + (f": give {wanted}" if wanted else "")
    shown = shorten(repr(first["input"]), 60, placeholder=" ...")
    return f"{key} is {shown}, not {wanted}" if wanted else f"{key} cannot be {shown}"


# The validator also names branches of a union, such as `list[int]`: they are no part of the key.
_KEY = re.compile(r"(?!(int|float|str|bool|none)$)[a-z_][a-z0-9_]*")


def _description(model: type[BaseModel] | None, path: Sequence[object]) -> str:
    tables: dict[str, type[BaseModel]] = {"problems": ProblemSpec, "algorithms": AlgorithmSpec}
    found = ""
    for part in map(str, path):
        if model is not None and (field := model.model_fields.get(part)) is not None:
            found, model = field.description or "", tables.get(part)
    return found


def _apply(values: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals:
        raise InputError(f"--set takes key=value, not {change!r}")
    try:
        value = parse_toml(f"value = {text}")["value"]
    except ValueError:
        value = text
    place: Any = values
    *path, last = key.strip().split(".")
    try:
        for part in path:
            place = place[int(part)] if isinstance(place, list) else place[part]
        place[int(last) if isinstance(place, list) else last] = value
    except (KeyError, IndexError, ValueError, TypeError):
        raise InputError(f"--set {change}: there is no key {key!r}") from None


def problems(experiment: Experiment, base: Path) -> dict[str, CMDP]:
    """Return the problems of an experiment by fingerprint. base : the folder of problem files."""
    _check_number(experiment, sum(len(spec.instance_seeds) for spec in experiment.problems))
    found: list[CMDP] = []
    for n, spec in enumerate(experiment.problems):
        if (spec.environment is None) == (spec.file is None):
            raise InputError(f"problems.{n}: give either an environment or a file")
        name = str(spec.environment)
        known = named(name) if spec.file is None else None
        is_one = spec.file is not None or (known is not None and not known.random)
        if is_one and spec.instance_seeds != [0]:
            raise InputError(
                f"problems.{n}: {no_instances(spec.file or name, spec.instance_seeds)}"
            )
        if spec.file is not None:
            found.append(with_an_end(read_problem(base / spec.file)))
        else:
            found += [make(name, seed) for seed in spec.instance_seeds]
    return by_fingerprint(found)


def row_to_list(name: str, preset: str | None) -> Row:
    """Return the row `as_row` returns, without the import of learners from outside."""
    if preset is not None or not is_outside(name):
        return as_row(name, preset)
    known = plugin(ALGORITHMS, name)
    return recorded(known.name if known else name) if known or is_path(name) else as_row(name)


def resolve(
    experiment: Experiment, found: dict[str, CMDP], find_row: FindRow = as_row
) -> list[RunSettings]:
    """Return the settings of every run of an experiment, ordered by seed, then by problem.

    found : the problems by fingerprint. find_row : `row_to_list` avoids imports if no run is
    played.
    """
    _check_number(experiment, len(found))
    episodes = None if experiment.episodes == "unlimited" else int(experiment.episodes)
    first = next(iter(found.values()))
    told = {"rewards": experiment.rewards, "precision": experiment.precision}
    kinds = [
        RunSettings.of(first, row, episodes, 0, **told) for row in rows_of(experiment, find_row)
    ]
    runs: dict[str, RunSettings] = {}
    for seed, (mark, problem) in itertools.product(experiment.seed_list(), found.items()):
        own = {"problem": problem.name, "fingerprint": mark, "seed": seed}
        for kind in kinds:
            run = kind.model_copy(update=own)
            runs[run.folder] = run
    return list(runs.values())


def rows_of(experiment: Experiment, find_row: FindRow = as_row) -> list[Row]:
    """Return the rows of an experiment: one for each algorithm and combination of its settings."""
    found = []
    for spec in experiment.algorithms:
        usual = None if is_outside(spec.name) else experiment.preset
        row = find_row(spec.name, spec.preset or usual)
        for values in itertools.product(*_choices_of(spec).values()):
            settings: Any = dict(zip(SETTINGS, values, strict=True))
            check_settings([row], settings)
            found.append(row.with_settings(**settings))
    return found


def _choices_of(spec: AlgorithmSpec) -> dict[str, list[Any]]:
    given = {name: getattr(spec, name) for name in SETTINGS}
    return {name: each if isinstance(each, list) else [each] for name, each in given.items()}


def _check_number(experiment: Experiment, problems: int) -> None:
    kinds = sum(math.prod(map(len, _choices_of(s).values())) for s in experiment.algorithms)
    if kinds * problems * len(experiment.seed_list()) > MOST_RUNS:
        raise InputError(f"the experiment has more than {MOST_RUNS:,} runs")
