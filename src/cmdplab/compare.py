"""Side by side: many algorithms on one problem, with common random numbers on every seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cmdplab.algorithms import ALGORITHMS, algorithm
from cmdplab.algorithms.row import SAFE_POLICY, Row
from cmdplab.algorithms.table1 import TABLE_1
from cmdplab.baselines import safe_baseline, task_for
from cmdplab.engines.choosing import Wanted, choose
from cmdplab.errors import InputError
from cmdplab.formats import find
from cmdplab.problem import CMDP
from cmdplab.records import Curves
from cmdplab.running import Job, Progress, Run, check_counts, check_workers, jobs, run_many
from cmdplab.solvers import Solution, solve_feasible
from cmdplab.summaries import by_algorithm, numbers_of, run_into

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
    algorithms: tuple[str, ...] = tuple(TABLE_1)
    preset: str | None = None
    bonus_scale: float | None = None
    margin_scale: float | None = None
    tuned_for: int | None = None  # K of those that read one; None: the number of episodes
    out: Path = Path("runs/compare")

    def __post_init__(self) -> None:
        check_counts(self.episodes, seed=0)
        if not self.algorithms:
            raise InputError("name at least one algorithm")

    def rows(self) -> list[Row]:
        """The algorithms: NAME or NAME:PRESET, or `all` of them, each once."""
        rows = {}
        for name in self.algorithms:
            names = dict.fromkeys(each for each, _ in ALGORITHMS) if name == EVERY else [name]
            for each in names:
                row = self._row(each)
                rows[row.name, row.preset] = row
        return list(rows.values())

    def _row(self, name: str) -> Row:
        plain, _, chosen = name.partition(":")
        preset = chosen or self.preset
        try:
            row = algorithm(plain, preset)
        except InputError:
            if chosen or preset is None:
                raise
            row = algorithm(plain)  # the preset asked for all is one that this one does not have
        given = {"bonus_scale": self.bonus_scale, "margin_scale": self.margin_scale}
        tuned_for = self.episodes if self.tuned_for is None else self.tuned_for
        return row.overridden({**given, "tuned_for": tuned_for})

    def jobs(self) -> list[Job]:
        """All runs."""
        return jobs(self.rows(), self.seeds)


def compare(
    settings: Comparison,
    progress: Progress | None = None,
    workers: int | None = None,
    *,
    engine: str = "cpu",
    precision: str = "float64",
    say: Callable[[str], None] = lambda sentence: None,
) -> tuple[list[Run], dict[str, Any]]:
    """Run everything, write compare.png, compare.pdf, curves.parquet and summary.json."""
    check_workers(workers)
    todo, problem = settings.jobs(), find(settings.problem, settings.instance_seed)
    solution = solve_feasible(problem)
    # What one of them lacks, or the engine, is said now, not after an hour.
    told = [(row, task_for(row, problem, solution)) for row in settings.rows()]
    length = settings.episodes
    choose(engine, [Wanted(problem, *each, length, precision) for each in told], 1)
    given: dict[str, Any] = {"solution": solution, "progress": progress, "workers": workers}
    given |= {"engine": engine, "precision": precision, "say": say}

    def draw(curves: Curves, folder: Path) -> None:
        from cmdplab.side_by_side import comparison

        marked = [name for name in curves if _unverified(name, settings)]
        comparison(curves, title(settings, problem), folder, marked)

    place = {"engine": engine, "precision": precision}
    return run_into(
        settings.out,
        lambda: run_many(problem, todo, settings.episodes, **given),
        lambda runs: summarise(settings, problem, solution, runs) | place,
        draw,
    )


def _unverified(label: str, settings: Comparison) -> bool:
    """Whether an algorithm, by its label, has constants that no source confirms."""
    name, _, preset = label.partition(":")
    rows = [row for row in settings.rows() if row.name == name and preset in ("", row.preset)]
    return any(row.unverified for row in rows)


def title(settings: Comparison, problem: CMDP) -> str:
    """For the figure."""
    several = f"median of {settings.seeds} seeds, bands hold every episode of every seed"
    band = several if settings.seeds > 1 else "one seed, bands hold every episode"
    rows = settings.rows()
    if any(row.unverified for row in rows):
        band += "; * has unverified constants"
    words = f"bonus scale {_scales(row.bonus_scale for row in rows)}"
    if any(row.has_margin for row in rows):
        words += f", margin scale {_scales(row.margin_scale for row in rows if row.has_margin)}"
    heuristic = sum(bool(row.heuristic) for row in rows)
    how_many = "all" if heuristic == len(rows) else f"{heuristic} of {len(rows)}"
    claims = f"; guarantees are heuristic for {how_many}" if heuristic else ""
    return f"{problem.name}, {words}{claims}\n{band}"


def _scales(values: Iterable[float]) -> str:
    return ", ".join(f"{scale:g}" for scale in sorted(set(values)))


def summarise(
    settings: Comparison, problem: CMDP, solution: Solution, runs: Sequence[Run]
) -> dict[str, Any]:
    """The content of summary.json: lists have one entry per seed."""
    algorithms = {}
    for name, mine in by_algorithm(runs).items():
        algorithms[name] = numbers_of(mine) | _about(mine, problem, solution)
    return {
        "preset": settings.preset,
        "instance": problem.name,
        "episodes": settings.episodes,
        "seeds": settings.seeds,
        "bonus_scale": settings.bonus_scale,
        "margin_scale": settings.margin_scale,
        "optimum": solution.value,
        "threshold": problem.threshold.tolist(),
        "slater_gap": solution.slater_gap,
        "algorithms": algorithms,
    }


def _about(runs: Sequence[Run], problem: CMDP, solution: Solution) -> dict[str, Any]:
    row = runs[0].algorithm
    about: dict[str, Any] = {
        "preset": row.preset,
        "needs": list(row.needs),
        "settings": {k: v for k, v in row.settings().items() if v is not None},
        "heuristic": row.heuristic,
        "unverified": row.unverified,
        "tuned": row.beyond(runs[0].summary.episodes),
    }
    if SAFE_POLICY in row.needs:
        safe = safe_baseline(problem, solution, row.tightening)
        about["baseline_returns"] = safe.returns.tolist()
        about["baseline_episodes"] = [run.state.baseline_episodes for run in runs]
    return about
