"""Sweeps: an experiment's runs in one folder, done once, whoever does them.

DIR/experiment.json, DIR/problems/FINGERPRINT.npz and DIR/runs/HASH-SEED/ (manifest.json,
curves.parquet, checkpoint.npz). Running the same experiment again does only what is missing.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from cmdplab import checkpoint, index, manifest
from cmdplab.errors import InputError
from cmdplab.experiment import (
    Experiment,
    RunSettings,
    fingerprint,
    first_complaint,
    problems,
    resolve,
)
from cmdplab.files import writable_folder, written_whole
from cmdplab.manifest import Manifest, NewerError
from cmdplab.pool import Ended, Event, Interrupt, Work, run_locally, signals
from cmdplab.problem import CMDP
from cmdplab.status import RunStatus, with_end
from cmdplab.surviving import CHECKPOINT_EVERY, CURVES, MISTAKES

EXPERIMENT = index.EXPERIMENT
_OF_A_RUN = {"problem.npz", ".lock", f"{manifest.NAME}.damaged", manifest.NAME, checkpoint.NEWEST}
_OF_A_RUN |= {checkpoint.BEFORE, CURVES, MISTAKES}
SCHEMA = 1
NOTED_AT_ONCE = 50  # runs in the index

Tell = Callable[[Event], None]
Executor = Callable[[list[Work], Tell, Interrupt, float], None]


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
    engine: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
    executor: Executor | None = None,
) -> list[RunStatus]:
    """Do what is missing of an experiment; where each of its runs then stands.

    `base` is where the experiment's problem files are; `executor` does the work elsewhere, for
    instance on Ray. On the engine gpu, and on auto where it is worth it (`say` is told), runs are
    played in batches. Ctrl-C lets every run finish its chunk and checkpoint.
    """
    from cmdplab.baselines import task_for  # half a second, for which `status` has no use
    from cmdplab.engines.choosing import Wanted, choose
    from cmdplab.running import check_workers
    from cmdplab.solvers import solve_feasible

    check_workers(workers)
    folder = Path(out)
    found = problems(experiment, Path(base))
    runs = resolve(experiment, found)
    solutions = {mark: solve_feasible(problem) for mark, problem in found.items()}
    tasks = {
        (mark, row): task_for(row, found[mark], solutions[mark], None, experiment.rewards)
        for mark, row in {(run.fingerprint, run.row()) for run in runs}
    }
    length = math.inf if experiment.episodes == "unlimited" else float(experiment.episodes)
    wanted = [
        Wanted(found[mark], row, told, length, experiment.precision)
        for (mark, row), told in tasks.items()
    ]
    choose(engine, wanted, 1)  # refuses what the engine has not
    check_every(every)
    _earlier(experiment, folder)  # refuses before anything is written
    writable_folder(folder / "runs")
    writable_folder(folder / "problems")
    for mark, problem in found.items():
        _keep(problem, folder / "problems" / f"{mark}.npz", mark)
    with alone(folder):
        known = {each.folder: each for each in (*_earlier(experiment, folder), *runs)}
        content = Folder(experiment=experiment, runs=list(known.values()))
        _set_aside_if_damaged(folder)
        with written_whole(folder / EXPERIMENT) as temporary:
            temporary.write_text(content.model_dump_json(indent=1, exclude_none=True) + "\n")
    works = [_work(folder, settings) for settings in runs]
    given = {"engine": engine, "say": say, "executor": executor}
    return do_missing(works, workers, tell, every, **given)  # type: ignore[arg-type]


def do_missing(
    works: list[Work],
    workers: int | None = None,
    tell: Tell = lambda event: None,
    every: float = CHECKPOINT_EVERY,
    engine: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
    executor: Executor | None = None,
) -> list[RunStatus]:
    """Do the works that are not done."""
    from cmdplab.engines.choosing import check_single
    from cmdplab.running import check_workers

    check_workers(workers)
    check_every(every)
    if engine != "cpu":
        if executor is not None:
            raise InputError(f"the engine {engine} is for the local machine only")
        from cmdplab.sweeping_on_gpu import gpu_executor  # numba-cuda is an extra

        executor = gpu_executor(engine, workers, say)
    ends: dict[str, Ended] = {}
    known, by_name = index.Index(works), {work.folder.name: work for work in works}
    states = [known.status(work) for work in works]
    known.save()
    young: list[Work] = []  # ended too lately to be in the index

    def note(event: Event) -> None:
        if isinstance(event, Ended):
            ends[event.folder] = event
            young.append(by_name[event.folder])
            if len(young) >= 2 * NOTED_AT_ONCE:
                for _ in range(NOTED_AT_ONCE):
                    known.status(young.pop(0))
                known.save()
        tell(event)

    missing = [w for w, state in zip(works, states, strict=True) if state.status != "done"]
    if engine == "cpu":
        for work in missing:
            check_single(work.settings.precision or "float64")
    undone = {work.folder for work in missing}
    for work in works:
        if work.folder not in undone:
            tell(Ended(work.folder.name, "done", ""))
    with signals() as interrupt:
        if missing and executor is not None:
            executor(missing, note, interrupt, every)
        elif missing:
            run_locally(missing, workers or os.cpu_count() or 1, note, interrupt, every)
    found = [with_end(known.status(work), ends.get(work.folder.name)) for work in works]
    known.save()
    return found


def check_every(every: float) -> None:
    """Seconds between checkpoints."""
    if not 0.0 <= every < float("inf"):
        raise InputError(f"checkpoint-every is {every:g}, not a finite number of seconds >= 0")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time changes what a folder lists."""
    with (folder / ".lock").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _set_aside_if_damaged(folder: Path) -> None:
    try:
        read_folder(folder)
    except InputError:
        with suppress(FileNotFoundError):
            os.replace(folder / EXPERIMENT, folder / f"{EXPERIMENT}.damaged")


def _keep(problem: CMDP, path: Path, mark: str) -> None:
    """Save a problem, unless it is there and whole."""
    try:
        if path.exists() and fingerprint(CMDP.load(path)) == mark:
            return
    except InputError:
        pass
    problem.save(path)


def alone_in(folder: Path, settings: RunSettings, problem: CMDP) -> Work:
    """A run in a folder of its own, which must be new or hold the same run."""
    known = manifest.read_if_good(folder)
    if known is not None and known.settings != settings:
        ours, other = settings.model_dump(), known.settings.model_dump()
        differ = [k for k in {**ours, **other} if ours.get(k) != other.get(k)]
        raise InputError(f"{folder} holds a run with another {differ[0]}: {other.get(differ[0])}")
    if folder.is_dir() and {p.name for p in folder.iterdir()} - _OF_A_RUN and known is None:
        raise InputError(f"{folder} holds other files and no run")
    writable_folder(folder)
    work = Work(folder, settings, folder / "problem.npz")
    _keep(problem, work.problem_file, settings.fingerprint)
    if known is None and not (folder / manifest.NAME).exists():
        manifest.write(folder, Manifest(settings=settings, status="interrupted"))
    return work


def works_of(folder: Path) -> list[Work]:
    """The runs of an experiment's folder, begun or not; for a run's own folder, that run."""
    one = manifest.read(folder)
    if one is not None:
        shared = folder.parent.parent / "problems" / f"{one.settings.fingerprint}.npz"
        own = folder / "problem.npz"
        return [Work(folder, one.settings, own if own.exists() else shared)]
    works = [_work(folder, settings) for settings in read_folder(folder).runs]
    if not works:
        raise InputError(f"{folder} holds no runs")
    return works


def read_folder(folder: Path) -> Folder:
    """What experiment.json says."""
    file = folder / EXPERIMENT
    try:
        values = json.loads(file.read_text())
    except FileNotFoundError:
        raise InputError(f"{folder} is no experiment: it has no {EXPERIMENT}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read: {error}") from None
    stated = values.get("schema_version") if isinstance(values, dict) else None
    if isinstance(stated, int) and stated > SCHEMA:
        raise NewerError(f"{file} was written by a newer cmdplab (schema {stated})")
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
        try:
            known = read_folder(folder)
        except NewerError:
            raise
        except InputError:  # damaged: the experiment at hand says what is to be done
            return []
        if known.experiment.name != experiment.name:
            names = f"{known.experiment.name!r}, not {experiment.name!r}"
            raise InputError(f"{folder} holds the experiment {names}")
        return known.runs
    there = {p.name for p in folder.iterdir()} if folder.is_dir() else set()
    strangers = sorted(name for name in there - {"runs", "problems"} if not name.startswith("."))
    if strangers:
        raise InputError(f"{folder} holds other files ({strangers[0]}) and no experiment")
    return []
