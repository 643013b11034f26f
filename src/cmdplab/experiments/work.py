"""One run in a folder: its identity, its files, its events and its problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.experiments.run_settings import RunSettings, has_fingerprint

if TYPE_CHECKING:
    from cmdplab.experiments.play import Entry
    from cmdplab.solvers import Solution

MOST_PROBLEMS = 32  # most solved problems in the memory of a worker


class Work(NamedTuple):
    """One run in a folder, begun or not."""

    folder: Path
    settings: RunSettings
    problem_file: Path
    label: str = ""  # the algorithm, and differing settings
    given: bool = False  # True if a person gave the import path of its learner
    entry: Entry | None = None  # the run's input, if it is known already

    @property
    def words(self) -> str:
        """Label, problem and seed of the run."""
        return f"{self.label} on {self.settings.problem}, seed {self.settings.seed}"


class Event(NamedTuple):
    """Message about a run: its progress or its end."""

    folder: str
    status: str  # running, done, interrupted, failed, or busy: in another process
    error: str = ""
    episodes: int = 0
    rate: float = 0.0  # episodes per second, in this attempt
    gap: float = math.nan
    violation: float | None = None
    runs: int = 1  # size of a batch: `rate` is the sum, gap and violation are medians

    @property
    def ended(self) -> bool:
        """True if the run has ended, that is, its status is not "running"."""
        return self.status != "running"


OnEvent = Callable[[Event], None]


class Entries:
    """Cache of entries: each problem is read and solved once, each task is made once.

    It keeps at most `most` problems and drops the oldest. None: no limit.
    """

    def __init__(self, most: int | None = MOST_PROBLEMS) -> None:
        self._most = most
        self._solved: dict[str, tuple[CMDP, Solution]] = {}
        self._made: dict[str, dict[str, Entry]] = {}  # by fingerprint and kind

    def of(self, work: Work) -> Entry:
        """Return the entry of a work, with its seed. The entry of another seed is reused."""
        mark, kind = work.settings.fingerprint, work.settings.kind
        if mark not in self._made and self._most is not None and len(self._made) >= self._most:
            oldest = next(iter(self._made))
            del self._made[oldest]
            self._solved.pop(oldest, None)
        made = self._made.setdefault(mark, {})
        if work.entry is not None:
            made[kind] = work.entry
        elif kind not in made:
            made[kind] = self._entry(work)
        return made[kind]._replace(seed=work.settings.seed)

    def _entry(self, work: Work) -> Entry:
        # Half a second, for which `status` has no use.
        from cmdplab.experiments.play import Entry
        from cmdplab.solvers import solve_feasible

        settings = work.settings
        row, rewards = settings.row_to_play(work.given), settings.rewards or "known"
        if settings.fingerprint not in self._solved:
            problem = problem_of(settings, work.problem_file)
            self._solved[settings.fingerprint] = problem, solve_feasible(problem)
        problem, solution = self._solved[settings.fingerprint]
        return Entry.of(problem, row, settings.seed, solution, None, rewards)


def problem_of(settings: RunSettings, file: Path) -> CMDP:
    """Return the problem in `file`. Refuse it if its fingerprint is not that of the settings."""
    problem = CMDP.load(file)
    if not has_fingerprint(problem, settings.fingerprint):
        raise InputError(f"{file} is not the problem that this run was started on")
    return problem
