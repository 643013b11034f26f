"""The paper's experiment: five algorithms on one CMDP, a figure, a table and the numbers behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cmdplab.algorithms import FIGURE_1, algorithm
from cmdplab.algorithms.row import Row
from cmdplab.environments import make
from cmdplab.errors import InputError
from cmdplab.problem import CMDP
from cmdplab.records import Curves
from cmdplab.running import Job, Progress, Run, check_counts, check_workers, jobs, run_many
from cmdplab.solvers import Solution, solve_feasible
from cmdplab.summaries import by_algorithm, numbers_of, run_into

INSTANCES = ("published", "random")


@dataclass(frozen=True)
class Reproduction:
    """What to reproduce, and where to put it."""

    preset: str = "released"
    instance: str = "published"
    instance_seed: int = 0
    episodes: int = 300_000
    seeds: int = 5
    bonus_scale: float = 1e-3
    algorithms: tuple[str, ...] = FIGURE_1
    out: Path = Path("runs/figure1")

    def rows(self) -> list[Row]:
        """The algorithms, with the bonus scale asked for."""
        rows = {(row := algorithm(name, self.preset)).name: row for name in self.algorithms}
        return [replace(row, bonus_scale=self.bonus_scale) for row in rows.values()]

    def jobs(self) -> list[Job]:
        """All runs."""
        return jobs(self.rows(), self.seeds)

    def problem(self) -> CMDP:
        """The published CMDP, or a random one with the rewards of the preset."""
        if self.instance not in INSTANCES:
            choices = ", ".join(INSTANCES)
            raise InputError(f"unknown instance {self.instance!r}: choose one of {choices}")
        name = "published" if self.instance == "published" else f"random-{self.preset}"
        return make(name, self.instance_seed)

    def title(self, problem: CMDP) -> str:
        """For the figure: preset, instance, length, seeds, scale."""
        several = f"median of {self.seeds} seeds, bands hold every episode of every seed"
        band = several if self.seeds > 1 else "one seed, bands hold every episode"
        if any(row.unverified for row in self.rows()):
            band += "; * has unverified constants"
        scale = f"bonus scale {self.bonus_scale:g}"
        return f"preset “{self.preset}”, instance “{problem.name}”, {scale}\n{band}"


def reproduce(
    settings: Reproduction, progress: Progress | None = None, workers: int | None = None
) -> tuple[list[Run], dict[str, Any]]:
    """Run everything, write figure1.png, figure1.pdf, curves.parquet and summary.json."""
    check_counts(settings.episodes, seed=0)
    check_workers(workers)
    todo, problem = settings.jobs(), settings.problem()
    solution = solve_feasible(problem)
    given: dict[str, Any] = {"solution": solution, "progress": progress, "workers": workers}

    def draw(curves: Curves, folder: Path) -> None:
        from cmdplab.figures import figure_1

        starred = [row.name for row in settings.rows() if row.unverified]
        figure_1(curves, settings.title(problem), folder, starred)

    return run_into(
        settings.out,
        lambda: run_many(problem, todo, settings.episodes, **given),
        lambda runs: summarise(settings, problem, solution, runs),
        draw,
    )


def summarise(
    settings: Reproduction, problem: CMDP, solution: Solution, runs: Sequence[Run]
) -> dict[str, Any]:
    """The content of summary.json: lists have one entry per seed."""
    algorithms = {name: numbers_of(mine) for name, mine in by_algorithm(runs).items()}
    return {
        "preset": settings.preset,
        "instance": problem.name,
        "episodes": settings.episodes,
        "seeds": settings.seeds,
        "bonus_scale": settings.bonus_scale,
        "optimum": solution.value,
        "threshold": problem.threshold.tolist(),
        "algorithms": algorithms,
    }
