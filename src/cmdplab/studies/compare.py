"""Algorithms side by side on one problem, as a value: `cmdplab compare` for notebooks and scripts.

In memory, or in a folder, where it is the same study as that of the command: interrupted or given
again it goes on, and figure, tables and report are written at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cmdplab import display
from cmdplab.algorithms import as_row
from cmdplab.algorithms.custom import Given
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.table1 import TABLE_1
from cmdplab.cmdp.horizons import with_an_end
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.experiments.play import Run
from cmdplab.experiments.records.labels import by_label
from cmdplab.experiments.records.versus import label_of
from cmdplab.experiments.run import jobs, run_many
from cmdplab.measures.measures import NUMBERS
from cmdplab.solvers import Solution, solve_feasible
from cmdplab.statistics import Paired
from cmdplab.studies.conclusions import as_plain, median, numbers_of, paired_of, safety_of
from cmdplab.studies.predefined import EVERY, Comparison, carry_out, rivals_of


@display.shown
class Compared(NamedTuple):
    """The runs of each algorithm on one problem, with common random numbers on every seed."""

    problem: CMDP
    solution: Solution
    runs: dict[str, list[Run]]  # by label: the name, with what tells it from others of that name
    versus: Sequence[Paired] = ()  # every other algorithm against the one asked for

    def table(self) -> list[dict[str, Any]]:
        """One record per label: what it is and needs, and the medians over seeds of each number."""
        return [_record(label, mine) for label, mine in self.runs.items()]

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [(display.name(label), _words(mine)) for label, mine in self.runs.items()]
        first = next(iter(self.runs.values()))
        seeds = display.count(len(first), "seed")
        episodes = display.count(first[0].summary.episodes, "episode")
        facts += [(pair.measure, pair.words) for pair in self.versus]
        return f"Compared on {display.name(self.problem.name)}, {seeds}, {episodes}", facts


def compare(
    problem: CMDP | str | Path,
    algorithms: Sequence[Given] | Given = tuple(TABLE_1),
    *,
    episodes: int = 100_000,
    seeds: int = 5,
    preset: str | None = None,
    bonus_scale: float | None = None,
    margin_scale: float | None = None,
    tuned_for: int | None = None,
    engine: str = "cpu",
    precision: str = "float64",
    workers: int | None = None,
    instance_seed: int = 0,
    versus: str | None = None,
    out: str | Path | None = None,
) -> Compared:
    """Run algorithms on one problem, each on the seeds 0, 1, ..., and group what they gave.

    `problem` is a problem, the name of an environment (`instance_seed` chooses among random ones)
    or a file. `algorithms` are names, NAME:PRESET, `all`, rows, or learners from outside; by
    default the ten of the paper's Table 1. Names take the settings given here, and are tuned for
    the number of episodes; rows are run as they are. `versus` names one of them: `Compared.versus`
    then holds every other against it, seed by seed, in strong regret and strong violation regret,
    with Holm's correction over all of these comparisons. With `out` the study is kept in that
    folder, which must be able to say what they are: the problem is a name, and every algorithm has
    one.
    """
    if not isinstance(problem, str | Path):
        problem = with_an_end(problem)
    several = isinstance(algorithms, Sequence) and not isinstance(algorithms, str)
    listed: list[Any] = [*algorithms] if several else [algorithms]  # type: ignore[misc]
    if not listed:
        raise InputError("name at least one algorithm")
    study = Comparison(
        problem=problem.name if isinstance(problem, CMDP) else str(problem),
        instance_seed=instance_seed,
        episodes=episodes,
        seeds=seeds,
        algorithms=tuple(listed),
        preset=preset,
        bonus_scale=bonus_scale,
        margin_scale=margin_scale,
        tuned_for=tuned_for,
        precision=precision,
        versus=versus,
        out=None if out is None else Path(out),
    )
    if out is not None:
        if isinstance(problem, CMDP):
            raise InputError("a comparison in a folder names its problem: an environment or a file")
        runs, _ = carry_out(study, workers, engine=engine)
        cmdp, grouped = study.cmdp(), by_label(runs)
        paired = paired_of(study.versus_label(), grouped)
        return Compared(cmdp, solve_feasible(cmdp), grouped, paired)
    cmdp = problem if isinstance(problem, CMDP) else study.cmdp()
    solution = solve_feasible(cmdp)
    rows = list(dict.fromkeys(row for each in listed for row in _rows(study, each, cmdp)))
    _check_apart(rows)
    against = None if versus is None else label_of(versus, rivals_of(rows))
    found = run_many(
        cmdp,
        jobs(rows, seeds),
        episodes,
        engine=engine,
        precision=precision,
        workers=workers,
        solution=solution,
    )
    grouped = by_label(found)
    return Compared(cmdp, solution, grouped, paired_of(against, grouped))


def _rows(study: Comparison, given: Given, problem: CMDP) -> list[Row]:
    """A row as it is; those of a name with what is asked of all."""
    if not isinstance(given, str):
        return [as_row(given)]
    found = replace(study, algorithms=(given,)).rows()
    return [row for row in found if given != EVERY or row.meant_for(problem.constraints)]


def _check_apart(rows: Sequence[Row]) -> None:
    """Refuse different algorithms that nothing we know tells apart: they would be one line."""
    counts = Counter(each.label for each in rivals_of(rows))
    if twice := [label for label, n in counts.items() if n > 1]:
        raise InputError(
            f"two of the algorithms are called {twice[0]}: name them apart, "
            "custom(learner, name=...) or replace(row, name=...)"
        )


def _words(runs: Sequence[Run]) -> str:
    gap, violation = (median(runs, field) for field in ("final_gap", "final_violation"))
    return f"gap {display.number(gap)}, violation {display.number(violation)}"


def _record(label: str, runs: Sequence[Run]) -> dict[str, Any]:
    row = runs[0].algorithm
    medians = {field: median(runs, field) for field in NUMBERS}
    return {
        "label": label,
        "algorithm": row.name,
        "preset": row.preset,
        "needs": list(row.needs),
        "heuristic": row.heuristic,
        "seeds": len(runs),
        "episodes": runs[0].summary.episodes,
        **medians,
        "safety": as_plain(safety_of(runs)),
        "us_per_episode": numbers_of(runs)["us_per_episode"],
    }
