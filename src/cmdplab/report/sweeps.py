"""The records of a sweep, or of one run of its own, into a report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cmdplab import manifest
from cmdplab.columns import Columns, columns_of
from cmdplab.errors import InputError
from cmdplab.experiment import OVERRIDES, RunSettings
from cmdplab.index import Index
from cmdplab.manifest import Manifest
from cmdplab.pool import Work
from cmdplab.problem import CMDP, Array
from cmdplab.report.model import About, Entry, OneRun, Report, Section, Trouble, entry, section
from cmdplab.report.thinning import points_for
from cmdplab.solvers import solve_feasible
from cmdplab.status import RunStatus
from cmdplab.surviving import CURVES, MISTAKES
from cmdplab.sweeping import EXPERIMENT, read_folder, works_of

Read = Callable[[Path], list[dict[int, dict[str, Array]]]]
_COLUMNS = 17  # of curves with one constraint: decides how finely they are thinned


class _Kind(NamedTuple):
    """What the seeds of an entry have in common."""

    algorithm: str
    preset: str
    overrides: tuple[Any, ...]
    episodes: int | None


class _Member(NamedTuple):
    """A run that can be shown."""

    settings: RunSettings
    record: Manifest
    folder: Path


def gather_sweep(folder: Path, read: Read) -> Report:
    """Every finished run of a sweep; the others are named, each with the reason."""
    works = works_of(folder)
    troubles: list[Trouble] = []
    shown: dict[str, dict[_Kind, list[_Member]]] = {}
    planned: dict[tuple[str, _Kind], int] = {}
    files: dict[str, Path] = {}
    index = Index(works)
    for work in works:
        s = work.settings
        overrides = tuple(getattr(s, name) for name in OVERRIDES)
        kind = _Kind(s.algorithm, s.preset, overrides, s.episodes)
        planned[s.fingerprint, kind] = planned.get((s.fingerprint, kind), 0) + 1
        files[s.fingerprint] = work.problem_file
        status = index.status(work)
        record = manifest.read_if_good(work.folder)
        if (why := _why_not(work, status)) or record is None:
            troubles.append(_trouble(status, why))
            continue
        if s.episodes is None:  # without end: it is shown as far as it came
            (table,) = read(work.folder / CURVES)
            if (last := int(table[s.seed]["episode"][-1])) != record.episodes:
                why = f"its curves end at {last:,} and its checkpoint at {record.episodes:,}"
                troubles.append(_trouble(status, f"{why}: `cmdplab resume` and stop it"))
                continue
            troubles.append(_trouble(status, f"shown as far as it came: {record.episodes:,}"))
            kind = kind._replace(episodes=record.episodes)
            planned[s.fingerprint, kind] = planned.get((s.fingerprint, kind), 0) + 1
        shown.setdefault(s.fingerprint, {}).setdefault(kind, []).append(
            _Member(s, record, work.folder)
        )
    index.save()
    if not shown:
        raise InputError(f"{folder} holds no finished run yet: `cmdplab resume` goes on with them")
    points = points_for(_COLUMNS * sum(map(len, shown.values())))
    with columns_of(works) as columns:
        read_run = partial(_run, columns, read)
        sections = [
            _section(files[m], kinds, planned, points, read_run) for m, kinds in shown.items()
        ]
    records = [m.record for kinds in shown.values() for mine in kinds.values() for m in mine]
    notes = [f"{r.settings.folder}: {note}" for r in records for note in r.notes]
    versions, machine = _agreed(records, "versions"), _agreed(records, "machine")
    machine.pop("features", None)
    title = _title(folder, sections)
    return Report(title, folder.resolve().name, sections, troubles, notes, versions, machine)


def _title(folder: Path, sections: list[Section]) -> str:
    if (folder / EXPERIMENT).exists():
        return f"Experiment {read_folder(folder).experiment.name}"
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
    return f"without {lacking[0]}: of a version that wrote none" if lacking else ""


def _trouble(status: RunStatus, why: str) -> Trouble:
    return Trouble(status.folder, status.problem, status.algorithm, status.seed, status.status, why)


def _agreed(records: list[Manifest], part: str) -> dict[str, str]:
    """What all records say; where they differ, all that was said."""
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
    labels = _labels(list(kinds))
    first = next(iter(kinds.values()))[0].settings
    for kind, members in kinds.items():
        members.sort(key=lambda member: member.settings.seed)
        runs = [read_run(member) for member in members]
        epsilons = runs[0].mistakes.get("epsilon") if epsilons is None else epsilons
        where = str(members[0].folder)
        of = planned[first.fingerprint, kind]
        entries.append(entry(labels[kind], _about(members[0]), runs, of, points, where))
        if not np.array_equal(epsilons, runs[0].mistakes["epsilon"]):  # type: ignore[arg-type]
            raise InputError(f"{where} has another grid of epsilon than the other runs")
    optimum, threshold, slater = None, None, None
    with suppress(InputError):  # the problem's file may be gone; the records are there
        problem = CMDP.load(file)
        solution = solve_feasible(problem)
        optimum, slater = solution.value, solution.slater_gap
        threshold = problem.threshold.tolist()
    assert epsilons is not None
    return section(first.problem, entries, epsilons, optimum, threshold, slater)


def _run(columns: Columns, read: Read, member: _Member) -> OneRun:
    record, seed = member.record, member.settings.seed
    curves, mistakes = (
        columns.table(
            member.folder,
            name,
            record.sha256.get(name, "") if record.status == "done" else "",
            partial(_alone, read, member.folder / name, seed),
        )
        for name in (CURVES, MISTAKES)
    )
    time = 1e6 * record.seconds / record.episodes if record.seconds else None
    return OneRun(seed, curves, mistakes, dict(record.summary), time)


def _alone(read: Read, path: Path, seed: int) -> dict[str, Array]:
    """The columns of a table of that run alone."""
    table = read(path)
    if len(table) != 1 or list(table[0]) != [seed]:
        raise InputError(f"{path} is not of that run alone")
    return table[0][seed]


def _about(member: _Member) -> About:
    s = member.settings
    settings = {k: getattr(s, k) for k in OVERRIDES if getattr(s, k) is not None}
    with suppress(InputError):
        row = s.row()
        remarks = [each for each in (row.beyond(s.episodes), row.outside_theorem()) if each]
        return About(s.preset, settings, row.needs, row.heuristic, row.unverified, remarks)
    return About(s.preset, settings)


def _labels(kinds: list[_Kind]) -> dict[_Kind, str]:
    """Short names: what tells the settings of one algorithm apart, and no more."""
    labels: dict[_Kind, str] = {}
    for kind in kinds:
        same = [each for each in kinds if each.algorithm == kind.algorithm]
        label = kind.algorithm
        if len({each.preset for each in same}) > 1:
            label += f":{kind.preset}"
        parts = []
        for n, name in enumerate(OVERRIDES):
            alike = [each for each in same if each.preset == kind.preset]
            if len({each.overrides[n] for each in alike}) > 1:
                value = kind.overrides[n]
                parts.append(f"{name.replace('_', ' ')} {value}")
        if len({each.episodes for each in same}) > 1:
            parts.append(f"{kind.episodes or 0:,} episodes")
        label += f" ({', '.join(parts)})" if parts else ""
        labels[kind] = label if label not in labels.values() else f"{label} #{len(labels) + 1}"
    return labels
