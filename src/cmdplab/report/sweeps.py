"""The records of a sweep, or of one run of its own, into a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.row import SAFE_POLICY
from cmdplab.errors import CmdplabError, InputError
from cmdplab.experiments import checkpoint, manifest
from cmdplab.experiments.durable import CURVES, MISTAKES
from cmdplab.experiments.folder import EXPERIMENT, read_folder, works_of
from cmdplab.experiments.index import Index
from cmdplab.experiments.manifest import Manifest
from cmdplab.experiments.records.columns import Columns, columns_of
from cmdplab.experiments.records.tables import read_one
from cmdplab.experiments.records.versus import paired_with
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.experiments.status import RunStatus
from cmdplab.experiments.work import Work, problem_of
from cmdplab.report.curves import points_for
from cmdplab.report.model import About, Entry, OneRun, Report, Section, Trouble, entry, on_baseline
from cmdplab.solvers import solve_feasible
from cmdplab.statistics import Paired
from cmdplab.types import Array

_COLUMNS = 17  # of curves with one constraint: decides how finely they are thinned
_STUDIES = {"reproduce": "Reproduction", "compare": "Comparison"}

_Kind = tuple[str, int | None]  # what the seeds of an entry have in common: label and length


class _Member(NamedTuple):
    """A run that can be shown."""

    settings: RunSettings
    record: Manifest
    folder: Path


def gather(folder: Path) -> Report:
    """Every finished run of a folder; the others are named, each with the reason."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    if not any((folder / name).exists() for name in (EXPERIMENT, manifest.NAME)):
        raise InputError(f"{folder} holds no records: it has neither {EXPERIMENT} nor a manifest")
    works = works_of(folder)
    troubles: list[Trouble] = []
    shown: dict[str, dict[_Kind, list[_Member]]] = {}
    planned = Counter[tuple[str, _Kind]]()
    files: dict[str, Path] = {}
    index = Index(works)
    for work in works:
        s = work.settings
        kind = (work.label, s.episodes)
        planned[s.fingerprint, kind] += 1
        files[s.fingerprint] = work.problem_file
        status = index.status(work)
        record = manifest.read_if_good(work.folder)
        if (why := _why_not(work, status)) or record is None:
            troubles.append(_trouble(status, why))
            continue
        member = _Member(s, record, work.folder)
        if s.episodes is None:  # without end: it is shown as far as it came
            table = _table(member, CURVES)
            if (last := int(table["episode"][-1])) != record.episodes:
                why = f"its curves end at {last:,} and its checkpoint at {record.episodes:,}"
                troubles.append(_trouble(status, f"{why}: `cmdplab resume` and stop it"))
                continue
            troubles.append(_trouble(status, f"shown as far as it came: {record.episodes:,}"))
            kind = (work.label, record.episodes)
            planned[s.fingerprint, kind] += 1
        shown.setdefault(s.fingerprint, {}).setdefault(kind, []).append(member)
    index.save()
    if not shown:
        raise InputError(f"{folder} holds no finished run yet: `cmdplab resume` goes on with them")
    points = points_for(_COLUMNS * sum(map(len, shown.values())))
    with columns_of(works) as columns:
        read_run = partial(_run, columns)
        sections = [
            _section(files[m], kinds, planned, points, read_run) for m, kinds in shown.items()
        ]
    if versus := read_folder(folder).versus if (folder / EXPERIMENT).exists() else None:
        paired = [_paired(versus, kinds) for kinds in shown.values()]
        sections = [s._replace(versus=p) for s, p in zip(sections, paired, strict=True)]
    records = [m.record for kinds in shown.values() for mine in kinds.values() for m in mine]
    notes = [f"{r.settings.folder}: {note}" for r in records for note in r.notes]
    versions, machine = _agreed(records, "versions"), _agreed(records, "machine")
    machine.pop("features", None)
    title = _title(folder, sections)
    return Report(title, folder.resolve().name, sections, troubles, notes, versions, machine)


def _paired(versus: str, kinds: dict[_Kind, list[_Member]]) -> list[Paired]:
    """Every algorithm of a problem against the label `versus`; none where it is not shown."""
    numbers = {
        label: {member.settings.seed: member.record.summary for member in members}
        for (label, _), members in kinds.items()
    }
    return paired_with(versus, numbers) if versus in numbers and len(numbers) > 1 else []


def _title(folder: Path, sections: list[Section]) -> str:
    if (folder / EXPERIMENT).exists():
        known = read_folder(folder)
        if known.study:
            return f"{_STUDIES[known.study]} on {sections[0].problem}"
        return f"Experiment {known.experiment.name}"
    return f"{sections[0].entries[0].label} on {sections[0].problem}"


def _why_not(work: Work, status: RunStatus) -> str:
    """Why a run is not shown; empty if it is."""
    endless = work.settings.episodes is None and status.status == "interrupted"
    if status.status == "failed":
        return (status.error.strip().splitlines() or ["no reason was written down"])[-1]
    if status.status == "missing":
        return "never begun, or its manifest is gone"
    if status.status == "damaged":
        return "its files are not what was written: `cmdplab resume` makes it whole again"
    if status.status != "done" and not endless:
        of = "" if status.of is None else f" of {status.of:,}"
        return f"{status.episodes:,}{of} episodes done"
    lacking = [name for name in (CURVES, MISTAKES) if not (work.folder / name).exists()]
    return f"without {lacking[0]}: `cmdplab resume` and stop it" if lacking else ""


def _trouble(status: RunStatus, why: str) -> Trouble:
    return Trouble(status.folder, status.problem, status.label, status.seed, status.status, why)


def _agreed(records: list[Manifest], part: str) -> dict[str, str]:
    """Join what records say: once where they agree, all of it where they differ."""
    said: dict[str, dict[str, None]] = {}
    for record in records:
        for name, value in getattr(record, part).items():
            said.setdefault(name, {})[value] = None
    return {name: ", ".join(values) for name, values in said.items()}


def _section(
    file: Path,
    kinds: dict[_Kind, list[_Member]],
    planned: dict[tuple[str, _Kind], int],
    points: int,
    read_run: Callable[[_Member], OneRun],
) -> Section:
    entries: list[Entry] = []
    epsilons: Array | None = None
    names = [label for label, _ in kinds]
    first = next(iter(kinds.values()))[0].settings
    for kind, members in kinds.items():
        members.sort(key=lambda member: member.settings.seed)
        runs = [read_run(member) for member in members]
        epsilons = runs[0].mistakes.get("epsilon") if epsilons is None else epsilons
        where = str(members[0].folder)
        of = planned[first.fingerprint, kind]
        label, length = kind  # runs without end may have come to different lengths
        label += f" ({length:,} episodes)" if names.count(label) > 1 else ""
        entries.append(entry(label, _about(members), runs, of, points, where))
        if not np.array_equal(epsilons, runs[0].mistakes["epsilon"]):  # type: ignore[arg-type]
            raise InputError(f"{where} has another grid of epsilon than the other runs")
    optimum, threshold, slater = None, None, None
    with suppress(CmdplabError):  # the problem's file may be gone; the records are there
        problem = problem_of(first, file)
        solution = solve_feasible(problem)
        optimum, slater = solution.value, solution.slater_gap
        threshold = problem.threshold.tolist()
    assert epsilons is not None
    return Section(first.problem, entries, epsilons, optimum, threshold, slater)


def _run(columns: Columns, member: _Member) -> OneRun:
    record = member.record
    time = 1e6 * record.seconds / record.episodes if record.seconds else None
    curves, mistakes = (
        columns.table(member.folder, name, record.digest_of(name), partial(_table, member, name))
        for name in (CURVES, MISTAKES)
    )
    return OneRun(member.settings.seed, curves, mistakes, dict(record.summary), time)


def _table(member: _Member, name: str) -> dict[str, Array]:
    """The columns of a run, whose table must hold no other."""
    sha256 = member.record.digest_of(name)
    return read_one(member.folder / name, member.settings.seed, sha256)


def _about(members: list[_Member]) -> About:
    s = members[0].settings
    settings = dict(s.settings())
    with suppress(InputError):
        row = s.row()
        said = [row.tuning_warning(s.episodes), row.outside_theorem()]
        if SAFE_POLICY in row.needs:
            said.append(_on_baseline(members))
        remarks = [each for each in said if each]
        promised = (row.safe, row.promise_heuristic)
        claims = (row.heuristic, row.unverified, remarks, *promised)
        return About(s.preset, settings, row.needs, *claims)
    return About(s.preset, settings)


def _on_baseline(members: list[_Member]) -> str:
    """Say how long the runs played their safe baseline, which only their states tell."""
    found = [checkpoint.find(member.folder).snapshot for member in members]
    counts = [float(each["state_baseline_episodes"]) for each in found if each is not None]
    return on_baseline(counts, members[0].record.episodes) if counts else ""
