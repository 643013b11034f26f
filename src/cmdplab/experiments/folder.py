"""Folders of runs: the list in experiment.json, folders of a single run, and refusals.

A work (`work.Work`) is a run with its folder. New runs are never mixed with other content of a
folder, and never replace it. An `InputError` names that content.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cmdplab import plugins
from cmdplab.algorithms import algorithm
from cmdplab.algorithms.custom import CUSTOM, not_given
from cmdplab.algorithms.identity import Fields, difference, fields_of
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import CmdplabError, InputError, StorageError, check_installed
from cmdplab.experiments import checkpoint, manifest
from cmdplab.experiments.durable import CURVES, MISTAKES
from cmdplab.experiments.experiment import Experiment, first_complaint
from cmdplab.experiments.manifest import Manifest, NewerError
from cmdplab.experiments.records.labels import kind_of, labels
from cmdplab.experiments.run_settings import RunSettings, has_fingerprint
from cmdplab.experiments.status import EXPERIMENT as EXPERIMENT
from cmdplab.experiments.work import Work
from cmdplab.files import MissingError, sealed, unsealed
from cmdplab.files.locks import locked
from cmdplab.files.write import writable_folder, write_text

if TYPE_CHECKING:
    from cmdplab.experiments.play import Entry

SCHEMA = 1
_OF_A_RUN = {"problem.npz", ".lock", f"{manifest.NAME}.damaged", manifest.NAME, checkpoint.NEWEST}
_OF_A_RUN |= {checkpoint.BEFORE, CURVES, MISTAKES}
_KINDS: dict[str | None, str] = {"reproduce": "reproduction", "compare": "comparison"}

Study = Literal["reproduce", "compare"]


class DamagedError(InputError):
    """Error for an experiment.json that is damaged."""


class Folder(BaseModel):
    """Content of experiment.json: the latest experiment, and the runs of all experiments."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: int = SCHEMA
    study: Study | None = None  # None: a sweep, whose settings may change from time to time
    versus: str | None = None  # label that a comparison compares with
    experiment: Experiment
    runs: list[RunSettings]
    rows: dict[str, Fields] | None = None  # by NAME:PRESET; None in old files

    @property
    def words(self) -> str:
        """Kind and name of the experiment, for messages."""
        return f"the {_KINDS.get(self.study, 'experiment')} {self.experiment.name!r}"


def _registered(runs: Sequence[RunSettings]) -> dict[str, Fields]:
    pairs = {(run.algorithm, run.preset) for run in runs if run.preset != CUSTOM}
    return {f"{name}:{preset}": fields_of(algorithm(name, preset)) for name, preset in pairs}


def _check_rows(folder: Path, known: Folder) -> None:
    """Raise an `InputError` if a registered row has changed since the runs in `known` began."""
    now = _registered(known.runs) if known.rows else {}
    for name, fields in (known.rows or {}).items():
        if name in now and (odd := difference(fields, now[name])):
            raise refusal(folder, f"runs of {name} with another {odd}")


def add_runs(asked: Folder, found: dict[str, CMDP], folder: Path) -> list[Work]:
    """Write the problems and the list of runs into the folder. Return the works of `asked.runs`.

    asked : the new content of experiment.json. found : the problems by fingerprint. A sweep keeps
    the runs that the folder lists already.
    """
    writable_folder(folder / "runs")
    writable_folder(folder / "problems")
    for mark, problem in found.items():
        _keep(problem, folder / "problems" / f"{mark}.npz", mark)
    with locked(folder / ".lock", wait=True):  # one process at a time changes the list
        runs = {each.folder: each for each in (*earlier(asked, folder), *asked.runs)}
        # A study lists its own runs alone.
        listed = asked.runs if asked.study else list(runs.values())
        try:
            _known(folder)
        except DamagedError:
            os.replace(folder / EXPERIMENT, folder / f"{EXPERIMENT}.damaged")
        content = asked.model_copy(update={"runs": listed, "rows": _registered(listed)})
        text = sealed(content.model_dump_json(exclude_none=True), indent=1)
        write_text(folder / EXPERIMENT, f"{text}\n")
    mine = {run.folder for run in asked.runs}
    return [work for work in works_for(folder, listed) if work.settings.folder in mine]


def _keep(problem: CMDP, path: Path, mark: str) -> None:
    try:
        if path.exists() and has_fingerprint(CMDP.load(path), mark):
            return
    except CmdplabError:
        pass
    problem.save(path)


def alone_in(folder: Path, settings: RunSettings, entry: Entry) -> Work:
    """Return the work of one run in a folder of its own, which is new, empty or holds this run.

    entry : the run with problem and task. The problem is saved in the folder.
    """
    check_installed("pyarrow")
    known = manifest.read_if_good(folder)
    if known is not None and known.settings != settings:
        differ = _differing(known.settings, settings)[0]
        raise refusal(folder, f"a run with {differ} {getattr(known.settings, differ)}")
    if known is not None:
        known.checked_row()
    elif strangers := content(folder, _OF_A_RUN):
        raise refusal(folder, f"{strangers} and no run")
    writable_folder(folder)
    if known is None and not (folder / manifest.NAME).exists():  # no other run takes the folder
        manifest.write(folder, Manifest(settings=settings, status="interrupted"))
    file = folder / "problem.npz"
    _keep(entry.problem, file, settings.fingerprint)
    return Work(folder, settings, file, settings.algorithm, given=True, entry=entry)


def works_of(folder: Path) -> list[Work]:
    """Return the works of an experiment's folder, or the one work of the folder of a run."""
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


def works_to_play(folder: Path, given: Sequence[str]) -> list[Work]:
    """Return the works of a folder. Mark those whose learner's import path is in `given`.

    Raise an `InputError` if no run names such a path, or if a registered row has changed.
    """
    works = works_of(folder)
    if (known := _known(folder)) is not None:
        _check_rows(folder, known)
    named = {work.settings.algorithm for work in works if work.settings.preset == CUSTOM}
    for path in given:
        if path not in named:
            there = f"from outside are {', '.join(sorted(named))}" if named else "all are our own"
            raise InputError(f"there is no run of {path} here: {there}")
    return [work._replace(given=work.settings.algorithm in given) for work in works]


def check_learners(works: Sequence[Work]) -> None:
    """Raise an `InputError` for a learner from outside that is neither given nor registered."""
    named = {w.settings.algorithm for w in works if w.settings.preset == CUSTOM and not w.given}
    for name in sorted(named):
        if plugins.plugin(plugins.ALGORITHMS, name) is None:
            raise InputError(not_given(name))


def read_folder(folder: Path) -> Folder:
    """Return the content of experiment.json. Raise a `DamagedError` if it is damaged."""
    file = folder / EXPERIMENT
    try:
        values = manifest.read_of_schema(file, SCHEMA)
        return Folder.model_validate(unsealed(values, file, EXPERIMENT))
    except MissingError:
        raise InputError(f"{folder} is no experiment: it has no {EXPERIMENT}") from None
    except NewerError:
        raise
    except ValidationError as error:
        raise DamagedError(f"{file} is not an experiment: {first_complaint(error)}") from None
    except InputError as error:
        raise DamagedError(str(error)) from None


def _known(folder: Path) -> Folder | None:
    return read_folder(folder) if (folder / EXPERIMENT).exists() else None


def works_for(folder: Path, runs: list[RunSettings]) -> list[Work]:
    """Return the works of these runs, with labels that distinguish their algorithms."""
    kinds = [kind_of(run) for run in runs]
    named = labels(kinds)
    homes = (folder / "runs", folder / "problems")
    return [
        Work(homes[0] / run.folder, run, homes[1] / f"{run.fingerprint}.npz", named[kind])
        for run, kind in zip(runs, kinds, strict=True)
    ]


def study_in(folder: Path) -> Study | None:
    """Return the kind of study that a folder holds, or None."""
    known = _known(folder)
    return None if known is None else known.study


def earlier(asked: Folder, folder: Path) -> list[RunSettings]:
    """Return the runs that the folder lists already. Refuse the folder of another experiment."""
    known = None
    try:
        known = _known(folder)
    except DamagedError:  # the manifests of the runs are compared
        runs = _begun(folder / "runs")
    else:
        if known is None and (strangers := content(folder, {"runs", "problems"})):
            raise refusal(folder, f"{strangers} and no experiment")
        runs = known.runs if known is not None else _begun(folder / "runs")
    if known is not None:
        if known.words != asked.words:
            raise refusal(folder, f"{known.words}, not {asked.words}")
        _check_rows(folder, known)
        if not asked.study:
            return runs
    _check_within(folder, runs, asked)
    return runs


def refusal(folder: Path, what: str) -> InputError:
    """Return the error that names the content `what` of the folder and suggests a free name."""
    base = folder if folder.name.strip(".") else folder.resolve()
    names = (base.parent / f"{base.name or 'run'}-{n}" for n in count(2))
    free = next(name for name in names if not name.exists())
    return InputError(f"{folder} holds {what}: choose another folder, for instance --out {free}")


def check_apart(folder: Path) -> None:
    """Refuse a folder for results if it is a file or contains records of runs."""
    there = next(p for p in (folder, *folder.absolute().parents) if os.path.exists(p))
    if not there.is_dir():
        raise StorageError(f"cannot write into {folder}: {there} is a file")
    if any((folder / name).exists() for name in (EXPERIMENT, manifest.NAME)):
        raise refusal(folder, "records of runs")


def content(folder: Path, ours: set[str]) -> str:
    """Describe the content of a folder besides the names `ours`. Return "" if there is none."""
    there = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
    strangers = [name for name in there if name not in ours and not name.startswith(".")]
    if not strangers:
        return ""
    if manifest.NAME in strangers:
        return "a single run"
    try:
        return read_folder(folder).words
    except CmdplabError:
        return f"other files ({strangers[0]})"


def _begun(folder: Path) -> list[RunSettings]:
    records = [manifest.read_if_good(each) for each in sorted(folder.glob("*"))]
    return [record.settings for record in records if record is not None]


def _check_within(folder: Path, runs: Sequence[RunSettings], asked: Folder) -> None:
    mine = {run.folder for run in asked.runs}
    for run in runs:
        if run.folder not in mine:
            nearest = min((_differing(run, each) for each in asked.runs), key=len)
            there = f"{nearest[0]} {getattr(run, nearest[0])}"
            more = "more seeds" if nearest == ["seed"] else there
            raise refusal(folder, f"{asked.words} with {more}")


def _differing(one: RunSettings, other: RunSettings) -> list[str]:
    """Return the names of the settings in which two runs differ, with the seed last."""
    names = [name for name in RunSettings.model_fields if name != "seed"]
    return [name for name in (*names, "seed") if getattr(one, name) != getattr(other, name)]
