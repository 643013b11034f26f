"""Sweeps: an experiment's runs in one folder, done once, whoever does them.

DIR/experiment.json, DIR/problems/FINGERPRINT.npz and DIR/runs/HASH-SEED/ (manifest.json,
curves.parquet, checkpoint.npz). Running the same experiment again does only what is missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from cmdplab import manifest
from cmdplab.errors import InputError
from cmdplab.experiment import Experiment, RunSettings, first_complaint, problems, resolve
from cmdplab.files import writable_folder, written_whole
from cmdplab.manifest import Manifest
from cmdplab.pool import Ended, Event, Interrupt, Work, run_locally, signals
from cmdplab.problem import CMDP
from cmdplab.running import check_workers
from cmdplab.solvers import solve_feasible
from cmdplab.surviving import CHECKPOINT_EVERY, is_done, is_held

EXPERIMENT = "experiment.json"
SCHEMA = 1

Tell = Callable[[Event], None]
Executor = Callable[[list[Work], Tell, Interrupt, float], None]


class RunStatus(NamedTuple):
    """One line of `cmdplab status`."""

    folder: str
    problem: str
    algorithm: str
    preset: str
    seed: int
    status: str  # missing, running, interrupted, done, damaged, failed
    episodes: int
    of: int | None
    rate: float | None  # episodes per second of computing
    gap: float | None
    violation: float | None
    error: str
    notes: list[str]  # what happened on the way: files set aside, another processor


class Folder(BaseModel):
    """The content of experiment.json: the experiment as last asked for, and all its runs ever."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: int = SCHEMA
    experiment: Experiment
    runs: list[RunSettings]


def sweep(
    experiment: Experiment,
    out: str | Path,
    *,
    base: str | Path = ".",
    workers: int | None = None,
    tell: Tell = lambda event: None,
    every: float = CHECKPOINT_EVERY,
    executor: Executor | None = None,
) -> list[RunStatus]:
    """Do what is missing of an experiment; where each of its runs then stands.

    `base` is where the experiment's problem files are; `executor` does the work elsewhere, for
    instance on Ray. Ctrl-C lets every run finish its chunk and checkpoint.
    """
    check_workers(workers)
    folder = Path(out)
    found = problems(experiment, Path(base))
    runs = resolve(experiment, found)
    for problem in found.values():
        solve_feasible(problem)
    earlier = _earlier(experiment, folder)
    writable_folder(folder / "runs")
    writable_folder(folder / "problems")
    for mark, problem in found.items():
        if not (folder / "problems" / f"{mark}.npz").exists():
            problem.save(folder / "problems" / f"{mark}.npz")
    every_run = {each.folder: each for each in (*earlier, *runs)}
    content = Folder(experiment=experiment, runs=list(every_run.values()))
    with written_whole(folder / EXPERIMENT) as temporary:
        temporary.write_text(content.model_dump_json(indent=1, exclude_none=True) + "\n")
    works = [_work(folder, settings) for settings in runs]
    return do_missing(works, workers, tell, every, executor)


def do_missing(
    works: list[Work],
    workers: int | None = None,
    tell: Tell = lambda event: None,
    every: float = CHECKPOINT_EVERY,
    executor: Executor | None = None,
) -> list[RunStatus]:
    """Do the works that are not done."""
    check_workers(workers)
    missing = [
        work for work in works if not is_done(work.folder, manifest.read_if_good(work.folder))
    ]
    undone = {work.folder for work in missing}
    for work in works:
        if work.folder not in undone:
            tell(Ended(work.folder.name, "done", ""))
    with signals() as interrupt:
        if missing and executor is not None:
            executor(missing, tell, interrupt, every)
        elif missing:
            run_locally(missing, workers or os.cpu_count() or 1, tell, interrupt, every)
    return [status_of(work) for work in works]


def single(folder: Path, settings: RunSettings, problem: CMDP) -> Work:
    """A run in a folder of its own, which must be new or hold the same run."""
    known = manifest.read(folder)
    if known is not None and known.settings != settings:
        raise InputError(
            f"{folder} holds another run: {known.settings.algorithm}, seed {known.settings.seed}"
        )
    if known is None and folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} holds other files and no run")
    writable_folder(folder)
    work = Work(folder, settings, folder / "problem.npz")
    if not work.problem_file.exists():
        problem.save(work.problem_file)
    return work


def works_of(folder: Path) -> list[Work]:
    """The runs of an experiment's folder, begun or not; for a run's own folder, that run."""
    alone = manifest.read(folder)
    if alone is not None:
        return [Work(folder, alone.settings, folder / "problem.npz")]
    content = read_folder(folder)
    return [_work(folder, settings) for settings in content.runs]


def read_folder(folder: Path) -> Folder:
    """What experiment.json says."""
    file = folder / EXPERIMENT
    try:
        values = json.loads(file.read_text())
    except FileNotFoundError:
        raise InputError(f"{folder} is no experiment: it has no {EXPERIMENT}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}") from None
    stated = values.get("schema_version") if isinstance(values, dict) else None
    if isinstance(stated, int) and stated > SCHEMA:
        raise InputError(f"{file} was written by a newer cmdplab (schema {stated})")
    try:
        return Folder.model_validate(values)
    except ValidationError as error:
        raise InputError(f"{file} is not an experiment: {first_complaint(error)}") from None


def _work(folder: Path, settings: RunSettings) -> Work:
    file = folder / "problems" / f"{settings.fingerprint}.npz"
    return Work(folder / "runs" / settings.folder, settings, file)


def _earlier(experiment: Experiment, folder: Path) -> list[RunSettings]:
    """The runs that the folder holds already; another experiment's folder is refused."""
    if (folder / EXPERIMENT).exists():
        known = read_folder(folder)
        if known.experiment.name != experiment.name:
            names = f"{known.experiment.name!r}, not {experiment.name!r}"
            raise InputError(f"{folder} holds the experiment {names}")
        return known.runs
    strangers = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
    if strangers:
        raise InputError(f"{folder} holds other files ({strangers[0]}) and no experiment")
    return []


def status_of(work: Work) -> RunStatus:
    """Where a run stands, from its manifest and its lock."""
    record = manifest.read_if_good(work.folder)
    s: RunSettings = work.settings
    head = (work.folder.name, s.problem, s.algorithm, s.preset, s.seed)
    if record is None:
        return RunStatus(*head, "missing", 0, s.episodes, None, None, None, "", [])
    return RunStatus(
        *head,
        _status(work.folder, record),
        record.episodes,
        s.episodes,
        record.episodes / record.seconds if record.seconds else None,
        record.summary.get("final_gap"),
        record.summary.get("final_violation"),
        record.error,
        record.notes,
    )


def _status(folder: Path, record: Manifest) -> str:
    if record.status == "running" and not is_held(folder):
        return "interrupted"  # its process is gone
    if record.status == "done" and not is_done(folder, record):
        return "damaged"
    return record.status
