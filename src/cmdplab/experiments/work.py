"""One run that is to be done in a folder: what it is, what it needs, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.experiments.run_settings import RunSettings, has_fingerprint

if TYPE_CHECKING:
    from cmdplab.solvers import Solution

MOST_PROBLEMS = 32  # that a worker keeps solved


class Work(NamedTuple):
    """One run to be done by whoever is free."""

    folder: Path
    settings: RunSettings
    problem_file: Path
    label: str = ""  # the algorithm, with what tells it from others of its experiment
    given: bool = False  # whether a person gave the import path of its learner

    @property
    def words(self) -> str:
        """The run in words: label, problem and seed."""
        return f"{self.label} on {self.settings.problem}, seed {self.settings.seed}"

    def packed(self) -> tuple[str, str, str, bool]:
        """What another process is told of the run."""
        settings = self.settings.model_dump_json()
        return str(self.folder), settings, str(self.problem_file), self.given

    @classmethod
    def unpacked(cls, folder: str, settings: str, problem_file: str, given: bool) -> Work:
        """The run again, in the other process."""
        kept = RunSettings.model_validate_json(settings)
        return cls(Path(folder), kept, Path(problem_file), given=given)


class Ended(NamedTuple):
    """How a run ended: done, interrupted, failed, or busy in another process."""

    folder: str
    status: str
    error: str


class Standing(NamedTuple):
    """How far a run is."""

    folder: str
    episodes: int
    rate: float  # episodes per second, in this attempt
    gap: float
    violation: float | None
    runs: int = 1  # that go on together: `rate` is of all, gap and violation are medians


Event = Standing | Ended
OnEvent = Callable[[Event], None]


class Problems:
    """Problems with their optima, each read and solved once; beyond `most` the oldest go.

    `known` are those that are solved already, by fingerprint.
    """

    def __init__(
        self,
        known: Mapping[str, tuple[CMDP, Solution]] = MappingProxyType({}),
        most: int | None = MOST_PROBLEMS,
    ) -> None:
        self._most, self._known = most, {**known}

    def of(self, settings: RunSettings, file: Path) -> tuple[CMDP, Solution]:
        """The problem of a run and its optimum."""
        from cmdplab.solvers import solve_feasible

        mark = settings.fingerprint
        if mark not in self._known:
            problem = problem_of(settings, file)
            if self._most is not None and len(self._known) >= self._most:
                self._known.pop(next(iter(self._known)))
            self._known[mark] = problem, solve_feasible(problem)
        return self._known[mark]


def problem_of(settings: RunSettings, file: Path) -> CMDP:
    """The problem of a run, which must be the one that it was started on."""
    problem = CMDP.load(file)
    if not has_fingerprint(problem, settings.fingerprint):
        raise InputError(f"{file} is not the problem that this run was started on")
    return problem
