"""Results of a study, from its records alone: figure, tables, summary and report."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmdplab.algorithms.baselines import safe_baseline
from cmdplab.algorithms.custom import CUSTOM, OUTSIDE
from cmdplab.algorithms.row import SAFE_POLICY
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.experiments import manifest
from cmdplab.experiments.durable import CURVES, MISTAKES
from cmdplab.experiments.experiment import Experiment
from cmdplab.experiments.folder import Folder, read_folder, works_of
from cmdplab.experiments.manifest import Manifest
from cmdplab.experiments.play import Run
from cmdplab.experiments.records.labels import by_label, paired_with
from cmdplab.experiments.records.load import recall
from cmdplab.experiments.records.tables import Curves, put_runs
from cmdplab.experiments.status import RunStatus
from cmdplab.files import sealed
from cmdplab.files.write import to_json, write_text, written_whole
from cmdplab.measures import safety
from cmdplab.measures.measures import NUMBERS
from cmdplab.measures.safety import SafetyOverSeeds
from cmdplab.solvers import Solution, solve_feasible
from cmdplab.statistics import Paired


def numbers_of(runs: Sequence[Run]) -> dict[str, Any]:
    """Return every number of `Summary` as a list over seeds, and the median time per episode."""
    numbers: dict[str, Any] = {
        field: [getattr(run.summary, field) for run in runs] for field in NUMBERS
    }
    numbers["us_per_episode"] = float(np.median([run.us_per_episode for run in runs]))
    return numbers


def medians(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the median over seeds of every number; None if the number does not exist."""
    numbers = numbers_of(runs)
    known = {field: numbers[field] for field in NUMBERS if numbers[field][0] is not None}
    middles = {field: float(np.median(values)) for field, values in known.items()}
    return dict.fromkeys(NUMBERS) | middles | {"us_per_episode": numbers["us_per_episode"]}


def safety_of(runs: Sequence[Run]) -> SafetyOverSeeds | None:
    """Return the safety while learning of one algorithm's runs; None without a constraint."""
    row = runs[0].algorithm
    by_seed = [safety.summary(run.curves, run.mistakes) for run in runs]
    whole = safety.over_seeds(by_seed, row.safe, row.promise_heuristic)
    if whole is None or whole.baseline_share is not None or SAFE_POLICY not in row.needs:
        return whole
    shares = [run.state.baseline_episodes / run.summary.episodes for run in runs]
    return whole._replace(baseline_share=float(np.median(shares)))


def as_plain(whole: SafetyOverSeeds | None) -> dict[str, Any] | None:
    """Return the safety as JSON has it."""
    return None if whole is None else whole._asdict()


def broken_alone(statuses: Iterable[RunStatus]) -> set[str]:
    """Return the labels of failed learners from outside if all other runs are done, else none."""
    runs = list(statuses)
    broken = {run.label for run in runs if run.status == "failed" and run.preset == CUSTOM}
    others = {run.status for run in runs if run.label not in broken}
    return broken if others == {"done"} else set()


def conclude(folder: Path, without: Container[str] = ()) -> tuple[list[Run], dict[str, Any]]:
    """Write the results of a study whose runs are done; return the runs and the summary.

    `without` has the labels of failed learners, which only the report shows.
    """
    known = read_folder(folder)
    if known.study is None:
        raise InputError(f"{folder} holds {known.words}: `cmdplab report` shows it")
    works = [work for work in works_of(folder) if work.label not in without]
    runs = [recall(work) for work in works]
    problem = CMDP.load(works[0].problem_file)
    summary = summarise(known, problem, solve_feasible(problem), runs)
    paired = paired_of(known.versus, by_label(runs))
    if paired:
        summary["versus"] = {"label": known.versus, "comparisons": [plain(p) for p in paired]}
    summary |= _made_by([manifest.read(work.folder) for work in works])
    with written_whole(folder / CURVES) as curves, written_whole(folder / MISTAKES) as mistakes:
        put_runs(runs, "curves", curves)
        put_runs(runs, "mistakes", mistakes)
    write_text(folder / "summary.json", sealed(to_json(summary)) + "\n")
    _draw(known, runs, paired, folder)
    from cmdplab.report import gather, write_report, write_tables

    content = gather(folder)
    write_report(folder, None, content)
    write_tables(folder, None, content)
    return runs, summary


def paired_of(versus: str | None, grouped: Mapping[str, Sequence[Run]]) -> list[Paired]:
    """Compare every algorithm with the label `versus` on common seeds; return none without it."""
    numbers = {
        label: {run.seed: run.summary._asdict() for run in mine} for label, mine in grouped.items()
    }
    return paired_with(versus, numbers)


def plain(pair: Paired) -> dict[str, Any]:
    """Return a comparison as JSON has it, with its outcome and its sentence."""
    kept = ("first", "second", "measure", "difference", "low", "high", "seeds", "smaller", "larger")
    values = pair._asdict()
    about = {"level": pair.level, "p": pair.sign_p, "holm_p": pair.holm_p}
    said = {"outcome": pair.outcome, "words": pair.words}
    return {name: values[name] for name in kept} | about | said


def _made_by(records: Sequence[Manifest | None]) -> dict[str, Any]:
    """Return engine, versions and machine; a GPU has a precision in the place of CPU features."""
    ran = [record for record in records if record is not None]
    cards = {record.machine.get("features", "").startswith("float") for record in ran}
    engine = ", ".join("gpu" if card else "cpu" for card in sorted(cards))
    return {"engine": engine, "versions": ran[0].versions, "machine": ran[0].machine}


def _draw(known: Folder, runs: Sequence[Run], paired: Sequence[Paired], folder: Path) -> None:
    from cmdplab.figures.studies import comparison, figure_1

    grouped = by_label(runs)
    curves: Curves = {name: [run.curves for run in mine] for name, mine in grouped.items()}
    starred = [name for name, mine in grouped.items() if mine[0].algorithm.unverified]
    if known.study == "reproduce":
        figure_1(curves, title(known, runs), folder, starred)
    else:
        comparison(curves, title(known, runs), folder, starred, paired)


def title(known: Folder, runs: Sequence[Run]) -> str:
    """Return the figure's title: problem, scales, claims, and the meaning of lines and bands."""
    problem, preset = known.runs[0].problem, known.experiment.preset
    rows = [mine[0].algorithm for mine in by_label(runs).values()]
    seeds = len({run.seed for run in runs})
    several = f"median of {seeds} seeds, bands hold every episode of every seed"
    band = several if seeds > 1 else "one seed, bands hold every episode"
    if any(row.unverified for row in rows):
        band += "; * has unverified constants"
    scaled = [row for row in rows if row.reads("bonus_scale")]
    words = f"bonus scale {_scales(row.bonus_scale for row in scaled)}" if scaled else OUTSIDE
    if known.study == "reproduce":
        return f"preset “{preset}”, instance “{problem}”, {words}\n{band}"
    if any(row.has_margin for row in rows):
        words += f", margin scale {_scales(row.margin_scale for row in rows if row.has_margin)}"
    heuristic = sum(bool(row.heuristic) for row in rows)
    how_many = "all" if heuristic == len(rows) else f"{heuristic} of {len(rows)}"
    claims = f"; guarantees are heuristic for {how_many}" if heuristic else ""
    return f"{problem}, {words}{claims}\n{band}"


def _scales(values: Iterable[float]) -> str:
    return ", ".join(f"{scale:g}" for scale in sorted(set(values)))


def summarise(
    known: Folder, problem: CMDP, solution: Solution, runs: Sequence[Run]
) -> dict[str, Any]:
    """Return the content of summary.json: lists have one entry per seed."""
    asked = known.experiment
    algorithms = {
        name: numbers_of(mine) | _about(mine, problem, solution)
        for name, mine in by_label(runs).items()
    }
    return {
        "preset": asked.preset,
        "instance": problem.name,
        "episodes": asked.episodes,
        "seeds": len(asked.seed_list()),
        "bonus_scale": _asked_of_all(asked, "bonus_scale"),
        "margin_scale": _asked_of_all(asked, "margin_scale"),
        "precision": asked.precision,
        "optimum": solution.value,
        "threshold": problem.threshold.tolist(),
        "slater_gap": solution.slater_gap,
        "algorithms": algorithms,
    }


def _asked_of_all(asked: Experiment, name: str) -> Any:
    """Return a setting that the study asks of every algorithm; None if it asks none."""
    values = (getattr(algorithm, name) for algorithm in asked.algorithms)
    return next((value for value in values if value is not None), None)


def _about(runs: Sequence[Run], problem: CMDP, solution: Solution) -> dict[str, Any]:
    row = runs[0].algorithm
    about: dict[str, Any] = {
        "preset": row.preset,
        "needs": list(row.needs),
        "settings": {k: v for k, v in row.settings().items() if v is not None},
        "heuristic": row.heuristic,
        "unverified": row.unverified,
        "tuned": row.tuning_warning(runs[0].summary.episodes),
        "safety": as_plain(safety_of(runs)),
    }
    if SAFE_POLICY in row.needs:
        safe = safe_baseline(problem, solution, row.tightening)
        about["baseline_returns"] = safe.returns.tolist()
        about["baseline_episodes"] = [run.state.baseline_episodes for run in runs]
    return about
