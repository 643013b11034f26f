"""`compare`: algorithms side by side on one problem, for notebooks and scripts.

It runs in memory, or in a folder. In a folder it is the study of `cmdplab compare`: it continues
after an interruption, and writes figure, tables and report at the end.
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
from cmdplab.experiments.records.labels import by_label, label_of
from cmdplab.experiments.run import jobs, run_many
from cmdplab.solvers import Solution, solve_feasible
from cmdplab.statistics import Paired
from cmdplab.studies.conclusions import as_plain, medians, paired_of, safety_of
from cmdplab.studies.predefined import EVERY, Comparison, carry_out, rivals_of


@display.shown
class Compared(NamedTuple):
    """The runs of each algorithm on one problem, with common random numbers on every seed."""

    problem: CMDP
    solution: Solution
    runs: dict[str, list[Run]]  # by label: the name, and the settings if names repeat
    versus: Sequence[Paired] = ()  # every other algorithm against the one asked for

    def table(self) -> list[dict[str, Any]]:
        """Return one record per label: its settings and needs, and the medians over seeds."""
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
    """Run algorithms on one problem, each on the seeds 0, 1, ..., and group their runs.

    problem : a problem, the name of an environment (`instance_seed` chooses a random instance)
        or a file.
    algorithms : names, NAME:PRESET, `all`, rows, or learners from outside. The default is the ten
        of the paper's Table 1. Names take the settings of the arguments and are tuned for the
        number of episodes. Rows are run as they are.
    versus : one of the algorithms. `Compared.versus` then compares every other with it, seed by
        seed, in strong regret and strong violation regret, with Holm's correction over all.
    out : a folder for the study. The problem must then be a name or a file, and every algorithm
        must have a name.
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
    rows = list(dict.fromkeys(row for one in listed for row in _rows(study, one, cmdp)))
    _check_apart(rows)
    against = None if versus is None else label_of(versus, rivals_of(rows))
    runs = run_many(
        cmdp,
        jobs(rows, seeds),
        episodes,
        engine=engine,
        precision=precision,
        workers=workers,
        solution=solution,
    )
    grouped = by_label(runs)
    return Compared(cmdp, solution, grouped, paired_of(against, grouped))


def _rows(study: Comparison, given: Given, problem: CMDP) -> list[Row]:
    """Return a row as it is, or the rows of a name with the settings of the study."""
    if not isinstance(given, str):
        return [as_row(given)]
    rows = replace(study, algorithms=(given,)).rows()
    return [row for row in rows if given != EVERY or row.meant_for(problem.constraints)]


def _check_apart(rows: Sequence[Row]) -> None:
    """Refuse different algorithms with one label: their runs would be one line."""
    counts = Counter(rival.label for rival in rivals_of(rows))
    if twice := [label for label, n in counts.items() if n > 1]:
        raise InputError(
            f"two of the algorithms are called {twice[0]}: name them apart, "
            "custom(learner, name=...) or replace(row, name=...)"
        )


def _words(runs: Sequence[Run]) -> str:
    found = medians(runs)
    gap, violation = (display.number(found[name]) for name in ("final_gap", "final_violation"))
    return f"gap {gap}, violation {violation}"


def _record(label: str, runs: Sequence[Run]) -> dict[str, Any]:
    row = runs[0].algorithm
    return {
        "label": label,
        "algorithm": row.name,
        "preset": row.preset,
        "needs": list(row.needs),
        "heuristic": row.heuristic,
        "seeds": len(runs),
        "episodes": runs[0].summary.episodes,
        **medians(runs),
        "safety": as_plain(safety_of(runs)),
    }
