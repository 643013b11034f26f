"""One run that is to be done in a folder: what it is, what it needs, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.experiments.run_settings import RunSettings, has_fingerprint

if TYPE_CHECKING:
    from cmdplab.experiments.play import Entry
    from cmdplab.solvers import Solution

MOST_PROBLEMS = 32  # that a worker keeps solved


class Work(NamedTuple):
    """One run to be done by whoever is free."""

    folder: Path
    settings: RunSettings
    problem_file: Path
    label: str = ""  # the algorithm, with what tells it from others of its experiment
    given: bool = False  # whether a person gave the import path of its learner
    entry: Entry | None = None  # the run with all that it needs, where it is at hand

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


class Entries:
    """Runs with all that they need: each problem is read and solved once, each task made once.

    Beyond `most` problems the oldest go.
    """

    def __init__(self, most: int | None = MOST_PROBLEMS) -> None:
        self._most = most
        self._known: dict[str, tuple[CMDP, Solution, dict[Any, Entry]]] = {}

    def of(self, work: Work) -> Entry:
        """Return the run of a work, which may have it already."""
        # Half a second, for which `status` has no use.
        from cmdplab.experiments.play import Entry
        from cmdplab.solvers import solve_feasible

        if work.entry is not None:
            return work.entry
        settings = work.settings
        row, rewards = settings.row_to_play(work.given), settings.rewards or "known"
        mark = settings.fingerprint
        if mark not in self._known:
            problem = problem_of(settings, work.problem_file)
            if self._most is not None and len(self._known) >= self._most:
                self._known.pop(next(iter(self._known)))
            self._known[mark] = problem, solve_feasible(problem), {}
        problem, solution, made = self._known[mark]
        if (row, rewards) not in made:
            made[row, rewards] = Entry.of(problem, row, 0, solution, None, rewards)
        return made[row, rewards]._replace(seed=settings.seed)


def problem_of(settings: RunSettings, file: Path) -> CMDP:
    """The problem of a run, which must be the one that it was started on."""
    problem = CMDP.load(file)
    if not has_fingerprint(problem, settings.fingerprint):
        raise InputError(f"{file} is not the problem that this run was started on")
    return problem
