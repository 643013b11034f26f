"""Experiments as data: problems x algorithms x seeds, from a TOML file or from Python.

Every combination is resolved into `RunSettings`, whose hash names its folder: a changed setting is
another run, never an overwrite.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy.typing as npt
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.row import Row
from cmdplab.environments import make, named
from cmdplab.errors import InputError
from cmdplab.formats import read_problem
from cmdplab.kernels import Sparse
from cmdplab.problem import CMDP

OVERRIDES = (
    "bonus_scale",
    "margin_scale",
    "delta",
    "tuned_for",
    "slack_factor",
    "tightening",
    "epsilon",
    "replan",
    "alpha_eta",
    "alpha_tau",
)
_NEWER = {"margin_scale", "slack_factor", "tightening", "epsilon", "replan", "rewards", "precision"}
LARGEST_FILE = 1 << 20  # bytes of a TOML file
MOST_RUNS = 1_000_000

Preset = Literal["released", "printed"]
Episodes = Annotated[int, Field(gt=0)] | Literal["unlimited"]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,79}$")]
Seeds = Annotated[list[Seed], Field(min_length=1)] | Annotated[int, Field(gt=0, le=MOST_RUNS)]
Choices = list[float] | float | None


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ProblemSpec(_Strict):
    """A problem: an environment with instance seeds, or a file."""

    environment: str | None = None
    instance_seeds: Annotated[list[Seed], Field(min_length=1)] = [0]
    file: str | None = None


class AlgorithmSpec(_Strict):
    """An algorithm with overrides; a list of values makes one run for each."""

    name: str
    preset: Preset | None = None  # default: the experiment's
    bonus_scale: Choices = None
    margin_scale: Choices = None
    delta: Choices = None
    tuned_for: list[int] | int | None = None
    slack_factor: Choices = None
    tightening: Choices = None
    epsilon: Choices = None
    replan: list[str] | str | None = None
    alpha_eta: Choices = None
    alpha_tau: Choices = None


class Experiment(_Strict):
    """Problems x algorithms x seeds."""

    name: Name
    episodes: Episodes
    seeds: Seeds = 1
    preset: Preset | None = None  # default: `released` where an algorithm has it
    rewards: Literal["known", "bernoulli"] = "known"  # told, or observed as samples of 0 and 1
    precision: Literal["float64", "float32"] = "float64"  # float32 needs the engine gpu
    problems: Annotated[list[ProblemSpec], Field(min_length=1)]
    algorithms: Annotated[list[AlgorithmSpec], Field(min_length=1)]

    def seed_list(self) -> list[int]:
        """The seeds: a number n means 0..n-1."""
        return list(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds


class RunSettings(_Strict):
    """One run, resolved: all that its numbers depend on."""

    problem: str  # its name
    fingerprint: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]  # of its arrays
    algorithm: str
    preset: Preset
    bonus_scale: float | None = None
    margin_scale: float | None = None
    delta: float | None = None
    tuned_for: int | None = None
    slack_factor: float | None = None
    tightening: float | None = None
    epsilon: float | None = None
    replan: str | None = None
    alpha_eta: float | None = None
    alpha_tau: float | None = None
    rewards: Literal["bernoulli"] | None = None  # None: known
    precision: Literal["float32"] | None = None  # None: float64
    episodes: int | None  # None: until stopped
    seed: int

    @model_serializer(mode="wrap")
    def _without_empty(self, plainly: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Settings that an algorithm does not have leave no trace: new ones rename nothing."""
        whole = plainly(self)
        return {k: v for k, v in whole.items() if v is not None or k not in _NEWER}

    def overrides(self) -> dict[str, Any]:
        """The settings of the algorithm that are not left open."""
        given = {name: getattr(self, name) for name in OVERRIDES}
        return {name: value for name, value in given.items() if value is not None}

    def row(self) -> Row:
        """The algorithm with its overrides."""
        return algorithm(self.algorithm, self.preset).overridden(self.overrides())

    def complete(self) -> RunSettings:
        """With the row's own values in place of what was left open: defaults may change one day."""
        return self.model_copy(update=dict.fromkeys(OVERRIDES) | self.row().settings())

    @property
    def folder(self) -> str:
        """The name of the run's folder: the hash of its settings, and its seed."""
        settings = self.model_dump(exclude={"seed", "problem"})
        text = json.dumps(settings, sort_keys=True)
        return f"{hashlib.sha256(text.encode()).hexdigest()[:16]}-{self.seed}"


def observed(rewards: str) -> Literal["bernoulli"] | None:
    """How rewards stand in the settings of a run: known ones leave no trace."""
    return "bernoulli" if rewards == "bernoulli" else None


def single(precision: str) -> Literal["float32"] | None:
    """How a precision stands in the settings of a run: float64 leaves no trace."""
    return "float32" if precision == "float32" else None


def fingerprint(problem: CMDP) -> str:
    """A hash of the arrays of a problem."""
    digest = hashlib.sha256()
    given = problem.transition
    kernel: list[npt.NDArray[Any]]
    if isinstance(given, Sparse):
        kernel = [given.successor, given.probability]
    else:
        kernel = [given[0] if problem.stationary else given]
    if problem.mask is not None:
        kernel.append(problem.mask)
    for array in (*kernel, problem.reward, problem.threshold):
        digest.update(str(array.shape).encode() + array.tobytes())
    digest.update(str((problem.start, problem.horizon)).encode())
    return digest.hexdigest()[:32]


def read_experiment(path: str | Path, changes: list[str] | None = None) -> Experiment:
    """An experiment from a TOML file, with `key=value` changes such as algorithms.0.delta=0.05."""
    file = Path(path)
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path} is larger than {LARGEST_FILE} bytes")
        values = tomllib.loads(file.read_text())
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as TOML: {error}") from None
    for change in changes or []:
        _apply(values, change)
    return parse_experiment(values, str(path))


def parse_experiment(values: dict[str, Any], where: str) -> Experiment:
    """Validate, naming the first key that is wrong."""
    try:
        return Experiment.model_validate(values)
    except ValidationError as error:
        raise InputError(f"{where}: {first_complaint(error)}") from None


def first_complaint(error: ValidationError) -> str:
    """The first key that is wrong, and why."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    what = "unknown key" if first["type"] == "extra_forbidden" else first["msg"].lower()
    return f"{key}: {what}"


def _apply(values: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals:
        raise InputError(f"--set takes key=value, not {change!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
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
    """The problems by fingerprint; files are found relative to `base`."""
    found: dict[str, CMDP] = {}
    for n, spec in enumerate(experiment.problems):
        if (spec.environment is None) == (spec.file is None):
            raise InputError(f"problems.{n}: give either an environment or a file")
        if spec.file is not None:
            each = [read_problem(base / spec.file)]
        else:
            name = str(spec.environment)
            known = named(name)
            seeds = spec.instance_seeds if known is not None and known.random else [0]
            each = [make(name, seed) for seed in seeds]
        found |= {fingerprint(problem): problem for problem in each}
    return found


def resolve(experiment: Experiment, found: dict[str, CMDP]) -> list[RunSettings]:
    """Every run of an experiment; seeds vary slowest, so that early results are comparable."""
    episodes = None if experiment.episodes == "unlimited" else int(experiment.episodes)
    runs = []
    for seed, (mark, problem), spec in itertools.product(
        experiment.seed_list(), found.items(), experiment.algorithms
    ):
        row = algorithm(spec.name, spec.preset or experiment.preset)
        for overrides in _grid(spec):
            runs.append(
                RunSettings(
                    problem=problem.name,
                    fingerprint=mark,
                    algorithm=row.name,
                    preset=row.preset,  # type: ignore[arg-type]
                    episodes=episodes,
                    seed=seed,
                    rewards=observed(experiment.rewards),
                    precision=single(experiment.precision),
                    **overrides,
                )
            )
            if len(runs) > MOST_RUNS:
                raise InputError(f"the experiment has more than {MOST_RUNS} runs")
    # An override that does not fit is an error now, not an hour later.
    return list({each.folder: each for each in (settings.complete() for settings in runs)}.values())


def _grid(spec: AlgorithmSpec) -> list[dict[str, Any]]:
    choices = [getattr(spec, field) for field in OVERRIDES]
    lists = [each if isinstance(each, list) else [each] for each in choices]
    return [dict(zip(OVERRIDES, values, strict=True)) for values in itertools.product(*lists)]
