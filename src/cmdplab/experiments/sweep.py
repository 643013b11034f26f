"""Sweeps: an experiment's runs in one folder, done once, whoever does them.

DIR/experiment.json, DIR/problems/FINGERPRINT.npz and DIR/runs/HASH-SEED/ (manifest.json,
curves.parquet, checkpoint.npz). Running the same experiment again does only what is missing.
"""

from __future__ import annotations

import fcntl
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cmdplab import plugins
from cmdplab.algorithms.custom import CUSTOM, not_given
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.experiments import checkpoint, index, manifest
from cmdplab.experiments.durable import CHECKPOINT_EVERY, CURVES, MISTAKES, Problems
from cmdplab.experiments.executors.local import (
    Ended,
    Event,
    Interrupt,
    Work,
    run_here,
    run_locally,
    signals,
)
from cmdplab.experiments.experiment import (
    Experiment,
    RunSettings,
    fingerprint,
    first_complaint,
    problems,
    resolve,
)
from cmdplab.experiments.folders import begun, check_within, content, differing, refusal
from cmdplab.experiments.manifest import Manifest, NewerError
from cmdplab.experiments.records.labels import kind_of, labels
from cmdplab.experiments.status import RunStatus, with_end
from cmdplab.files import MissingError, read_json, sealed, unsealed
from cmdplab.files.write import writable_folder, written_whole

EXPERIMENT = index.EXPERIMENT
_OF_A_RUN = {"problem.npz", ".lock", f"{manifest.NAME}.damaged", manifest.NAME, checkpoint.NEWEST}
_OF_A_RUN |= {checkpoint.BEFORE, CURVES, MISTAKES}
SCHEMA = 1
_KINDS: dict[str | None, str] = {"reproduce": "reproduction", "compare": "comparison"}
NOTED_AT_ONCE = 50  # runs in the index

Study = Literal["reproduce", "compare"]
Tell = Callable[[Event], None]
Executor = Callable[[list[Work], Tell, Interrupt, float], None]


class DamagedError(InputError):
    """A list of runs that cannot be believed."""


class Folder(BaseModel):
    """The content of experiment.json: the experiment as last asked for, and all its runs ever."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: int = SCHEMA
    study: Study | None = None  # None: a sweep, whose settings may change from time to time
    experiment: Experiment
    runs: list[RunSettings]

    @property
    def words(self) -> str:
        """What it is, in words."""
        return f"the {_KINDS.get(self.study, 'experiment')} {self.experiment.name!r}"


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
    from cmdplab.experiments.run import check_workers

    check_workers(workers)
    check_every(every)
    works = prepare(experiment, problems(experiment, Path(base)), Path(out), engine)
    return do_missing(works, workers, tell, every, engine, say, executor)


def prepare(
    experiment: Experiment,
    found: dict[str, CMDP],
    folder: Path,
    engine: str = "cpu",
    study: Study | None = None,
) -> list[Work]:
    """Write down what is to be done on these problems; whatever is wrong is said before that."""
    from cmdplab.algorithms.baselines import (
        task_for,  # half a second, for which `status` has no use
    )
    from cmdplab.engines.choose import Wanted, choose
    from cmdplab.solvers import solve_feasible

    runs = resolve(experiment, found)
    asked = Folder(study=study, experiment=experiment, runs=runs)
    _earlier(asked, folder)  # refuses before anything is solved
    solutions = {mark: solve_feasible(problem) for mark, problem in found.items()}
    tasks = {
        (mark, row): task_for(row, found[mark], solutions[mark], None, experiment.rewards)
        for mark, row in {(run.fingerprint, run.row_to_play(given=True)) for run in runs}
    }
    length = math.inf if experiment.episodes == "unlimited" else float(experiment.episodes)
    wanted = [
        Wanted(found[mark], row, told, length, experiment.precision)
        for (mark, row), told in tasks.items()
    ]
    choose(engine, wanted, 1)  # refuses what the engine has not
    writable_folder(folder / "runs")
    writable_folder(folder / "problems")
    for mark, problem in found.items():
        _keep(problem, folder / "problems" / f"{mark}.npz", mark)
    with alone(folder):
        known = {each.folder: each for each in (*_earlier(asked, folder), *runs)}
        listed = runs if study else list(known.values())  # a study's are all among those asked for
        _set_aside_if_damaged(folder)
        with written_whole(folder / EXPERIMENT) as temporary:
            content = asked.model_copy(update={"runs": listed})
            text = sealed(content.model_dump_json(exclude_none=True), indent=1)
            temporary.write_text(text + "\n")
    mine = {run.folder for run in runs}
    works = [work for work in works_for(folder, listed) if work.settings.folder in mine]
    return [work._replace(given=True) for work in works]


def do_missing(
    works: list[Work],
    workers: int | None = None,
    tell: Tell = lambda event: None,
    every: float = CHECKPOINT_EVERY,
    engine: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
    executor: Executor | None = None,
    solved: Problems | None = None,
) -> list[RunStatus]:
    """Do the works that are not done.

    They are done by worker processes; where the problems are `solved` already, by this one.
    """
    from cmdplab.engines.choose import check_single
    from cmdplab.experiments.run import check_workers

    check_workers(workers)
    check_every(every)
    if engine != "cpu":
        if executor is not None:
            raise InputError(f"the engine {engine} is for the local machine only")
        from cmdplab.experiments.executors.gpu import gpu_executor  # numba-cuda is an extra

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
    _check_learners(missing)
    undone = {work.folder for work in missing}
    for work in works:
        if work.folder not in undone:
            tell(Ended(work.folder.name, "done", ""))
    with signals() as interrupt:
        if missing and executor is not None:
            executor(missing, note, interrupt, every)
        elif missing and solved is not None:
            for work in missing:
                run_here(work, note, interrupt, every, solved)
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
        if (folder / EXPERIMENT).exists():
            read_folder(folder)
    except DamagedError:
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
        differ = differing(known.settings, settings)[0]
        there = getattr(known.settings, differ)
        raise refusal(folder, f"a run with {differ} {there}")
    if known is None and (strangers := content(folder, _OF_A_RUN, _listed(folder))):
        raise refusal(folder, f"{strangers} and no run")
    writable_folder(folder)
    work = Work(folder, settings, folder / "problem.npz", settings.algorithm, given=True)
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
        file = own if own.exists() else shared
        return [Work(folder, one.settings, file, one.settings.algorithm)]
    works = works_for(folder, read_folder(folder).runs)
    if not works:
        raise InputError(f"{folder} holds no runs")
    return works


def with_learners(works: list[Work], given: Sequence[str]) -> list[Work]:
    """Works with the import paths that a person gives, each of which they must name."""
    named = {work.settings.algorithm for work in works if work.settings.preset == CUSTOM}
    for path in given:
        if path not in named:
            there = f"from outside are {', '.join(sorted(named))}" if named else "all are our own"
            raise InputError(f"there is no run of {path} here: {there}")
    return [work._replace(given=work.settings.algorithm in given) for work in works]


def _check_learners(works: list[Work]) -> None:
    """Refuse a learner from outside that is neither given nor registered, before it is begun."""
    named = {w.settings.algorithm for w in works if w.settings.preset == CUSTOM and not w.given}
    for name in sorted(named):
        if plugins.plugin(plugins.ALGORITHMS, name) is None:
            raise InputError(not_given(name))


def read_folder(folder: Path) -> Folder:
    """What experiment.json says."""
    file = folder / EXPERIMENT
    try:
        values = read_json(file)
    except MissingError:
        raise InputError(f"{folder} is no experiment: it has no {EXPERIMENT}") from None
    except InputError as error:
        raise DamagedError(str(error)) from None
    stated = values.get("schema_version") if isinstance(values, dict) else None
    if isinstance(stated, int) and stated > SCHEMA:
        raise NewerError(f"{file} was written by a newer cmdplab (schema {stated})")
    try:
        return Folder.model_validate(unsealed(values, file, EXPERIMENT))
    except ValidationError as error:
        raise DamagedError(f"{file} is not an experiment: {first_complaint(error)}") from None
    except InputError as error:
        raise DamagedError(str(error)) from None


def works_for(folder: Path, runs: list[RunSettings]) -> list[Work]:
    """The runs of an experiment, with labels that tell them apart."""
    kinds = [kind_of(run) for run in runs]
    named = labels(kinds)
    return [
        Work(
            folder / "runs" / run.folder,
            run,
            folder / "problems" / f"{run.fingerprint}.npz",
            named[kind],
        )
        for run, kind in zip(runs, kinds, strict=True)
    ]


def study_in(folder: Path) -> Study | None:
    """Which study a folder holds, if it holds one."""
    return read_folder(folder).study if (folder / EXPERIMENT).exists() else None


def _listed(folder: Path) -> str:
    """The experiment that a folder lists, in words; empty where it lists none."""
    try:
        return read_folder(folder).words
    except InputError:
        return ""


def _earlier(asked: Folder, folder: Path) -> list[RunSettings]:
    """The runs that the folder holds already; another experiment's folder is refused."""
    known = None
    try:
        if (folder / EXPERIMENT).exists():
            known = read_folder(folder)
        elif strangers := content(folder, {"runs", "problems"}):
            raise refusal(folder, f"{strangers} and no experiment")
    except DamagedError:  # the runs themselves say whether they are those at hand
        pass
    if known is not None and known.words != asked.words:
        raise refusal(folder, f"{known.words}, not {asked.words}")
    if known is not None and not asked.study:
        return known.runs
    runs = begun(folder / "runs") if known is None else known.runs
    check_within(folder, runs, asked.runs, asked.words)
    return runs
