"""Report on the records of a sweep, of a study, or of one run in a folder of its own."""

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
from cmdplab.experiments.folder import EXPERIMENT, Folder, read_folder, works_of
from cmdplab.experiments.manifest import Manifest
from cmdplab.experiments.records.columns import Columns, columns_of
from cmdplab.experiments.records.labels import paired_with
from cmdplab.experiments.records.tables import read_one
from cmdplab.experiments.status import Index, RunStatus
from cmdplab.experiments.work import Work, problem_of
from cmdplab.report.model import About, Entry, OneRun, Report, Section, Trouble, entry, points_for
from cmdplab.solvers import solve_feasible
from cmdplab.types import Array

_COLUMNS = 17  # of the curves of a run with one constraint
_STUDIES = {"reproduce": "Reproduction", "compare": "Comparison"}

_Kind = tuple[str, int | None]  # of the seeds of an entry: label and number of episodes


class _Member(NamedTuple):
    """A run that can be shown."""

    work: Work
    record: Manifest


def gather(folder: Path) -> Report:
    """Return a report of every finished run of a folder; it names the other runs with reasons."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    if not any((folder / name).exists() for name in (EXPERIMENT, manifest.NAME)):
        raise InputError(f"{folder} holds no records: it has neither {EXPERIMENT} nor a manifest")
    works = works_of(folder)
    troubles: list[Trouble] = []
    shown: dict[str, dict[_Kind, list[_Member]]] = {}
    planned = Counter[tuple[str, _Kind]]()
    index = Index(works)
    for work in works:
        mark, episodes = work.settings.fingerprint, work.settings.episodes
        planned[mark, (work.label, episodes)] += 1
        status = index.status(work)
        record = manifest.read_if_good(work.folder)
        if (why := _why_not(work, status)) or record is None:
            troubles.append(_trouble(status, why))
            continue
        member = _Member(work, record)
        if episodes is None:  # a run without end is shown up to its last checkpoint
            episodes = record.episodes
            curves = read_one(work.folder / CURVES, work.settings.seed, record.digest_of(CURVES))
            if (last := int(curves["episode"][-1])) != episodes:
                why = f"its curves end at {last:,} and its checkpoint at {episodes:,}"
                troubles.append(_trouble(status, f"{why}: `cmdplab resume` and stop it"))
                continue
            troubles.append(_trouble(status, f"shown as far as it came: {episodes:,}"))
            planned[mark, (work.label, episodes)] += 1
        shown.setdefault(mark, {}).setdefault((work.label, episodes), []).append(member)
    index.save()
    if not shown:
        raise InputError(f"{folder} holds no finished run yet: `cmdplab resume` goes on with them")
    known = read_folder(folder) if (folder / EXPERIMENT).exists() else None
    versus = None if known is None else known.versus
    points = points_for(_COLUMNS * sum(map(len, shown.values())))
    with columns_of(works) as columns:
        read_run = partial(_run, columns)
        sections = [_section(kinds, planned, points, read_run, versus) for kinds in shown.values()]
    records = [m.record for kinds in shown.values() for mine in kinds.values() for m in mine]
    notes = [f"{r.settings.folder}: {note}" for r in records for note in r.notes]
    versions, machine = _agreed(records, "versions"), _agreed(records, "machine")
    machine.pop("features", None)
    title = _title(known, sections[0])
    return Report(title, folder.resolve().name, sections, troubles, notes, versions, machine)


def _title(known: Folder | None, section: Section) -> str:
    if known is None:
        return f"{section.entries[0].label} on {section.problem}"
    if known.study:
        return f"{_STUDIES[known.study]} on {section.problem}"
    return f"Experiment {known.experiment.name}"


def _why_not(work: Work, status: RunStatus) -> str:
    """Return the reason why a run is not shown; empty if it is shown."""
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
    """Return one value of each field if the records agree, and all values if they differ."""
    said: dict[str, dict[str, None]] = {}
    for record in records:
        for name, value in getattr(record, part).items():
            said.setdefault(name, {})[value] = None
    return {name: ", ".join(values) for name, values in said.items()}


def _section(
    kinds: dict[_Kind, list[_Member]],
    planned: dict[tuple[str, _Kind], int],
    points: int,
    read_run: Callable[[_Member], OneRun],
    versus: str | None,
) -> Section:
    entries: list[Entry] = []
    epsilons: Array | None = None
    labels = [label for label, _ in kinds]
    first = next(iter(kinds.values()))[0].work
    for (label, length), members in kinds.items():
        members.sort(key=lambda member: member.work.settings.seed)
        runs = [read_run(member) for member in members]
        grid = runs[0].mistakes.get("epsilon")
        epsilons = grid if epsilons is None else epsilons
        where = str(members[0].work.folder)
        of = planned[first.settings.fingerprint, (label, length)]
        # Runs without end may have ended at different lengths.
        several = f" ({length:,} episodes)" if labels.count(label) > 1 else ""
        entries.append(entry(label + several, _about(members), runs, of, points, where))
        if not np.array_equal(epsilons, runs[0].mistakes["epsilon"]):  # type: ignore[arg-type]
            raise InputError(f"{where} has another grid of epsilon than the other runs")
    assert epsilons is not None
    optimum, threshold, slater = None, None, None
    with suppress(CmdplabError):  # the file of the problem may be missing, its records are there
        problem = problem_of(first.settings, first.problem_file)
        solution = solve_feasible(problem)
        optimum, slater = solution.value, solution.slater_gap
        threshold = problem.threshold.tolist()
    numbers = {
        label: {member.work.settings.seed: member.record.summary for member in members}
        for (label, _), members in kinds.items()
    }
    paired = paired_with(versus, numbers)
    name = first.settings.problem
    return Section(name, entries, epsilons, optimum, threshold, slater, paired)


def _run(columns: Columns, member: _Member) -> OneRun:
    work, record = member
    time = 1e6 * record.seconds / record.episodes if record.seconds else None
    curves, mistakes = (
        columns.table(work, name, record.digest_of(name)) for name in (CURVES, MISTAKES)
    )
    return OneRun(work.settings.seed, curves, mistakes, dict(record.summary), time)


def _about(members: list[_Member]) -> About:
    asked = members[0].work.settings
    settings = dict(asked.settings())
    with suppress(InputError):
        row = asked.row()
        remarks = [row.tuning_warning(asked.episodes), row.outside_theorem()]
        if SAFE_POLICY in row.needs:
            remarks.append(_on_baseline(members))
        return About(
            preset=asked.preset,
            settings=settings,
            needs=row.needs,
            heuristic=row.heuristic,
            unverified=row.unverified,
            remarks=[remark for remark in remarks if remark],
            safe=row.safe,
            promise_heuristic=row.promise_heuristic,
        )
    return About(asked.preset, settings)


def _on_baseline(members: list[_Member]) -> str:
    """Return how long the runs played their safe baseline, from their checkpoints."""
    states = [checkpoint.find(member.work.folder).snapshot for member in members]
    counts = [float(state["state_baseline_episodes"]) for state in states if state is not None]
    if not counts:
        return ""
    share = f"{float(np.median(counts)):,.0f} of {members[0].record.episodes:,} episodes"
    return f"played its safe baseline in {share} (median over seeds)"
