"""Where the runs of a folder stand: what `cmdplab status` shows."""

from __future__ import annotations

from typing import Any, NamedTuple

from cmdplab.experiments import manifest
from cmdplab.experiments.durable import is_done, is_held
from cmdplab.experiments.manifest import Manifest
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.experiments.work import Ended, Work


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
    precision: str = "float64"
    label: str = ""  # the algorithm, with what tells it from others of its experiment
    settings: dict[str, Any] = {}  # noqa: RUF012 - all of the algorithm's settings


def with_end(status: RunStatus, end: Ended | None) -> RunStatus:
    """What could not be written down is told all the same: a failure, or why a run was stopped."""
    if end is None or not end.error:
        return status
    if end.status == "failed" and status.status != "failed":
        return status._replace(status="failed", error=end.error)
    if end.status == "interrupted" and status.status in ("interrupted", "missing"):
        return status._replace(error=end.error)
    return status


def status_of(work: Work) -> RunStatus:
    """Where a run stands, from its manifest, its files and its lock."""
    return status_by(work, manifest.read_if_good(work.folder))


def status_by(work: Work, record: Manifest | None, status: str = "") -> RunStatus:
    """The same by a manifest that is at hand; without `status` the files and the lock say how."""
    if record is None:
        return missing(work)
    return missing(work)._replace(
        status=status or _status(work, record),
        episodes=record.episodes,
        rate=record.episodes / record.seconds if record.seconds else None,
        gap=record.summary.get("final_gap"),
        violation=record.summary.get("final_violation"),
        error=record.error,
        notes=record.notes,
    )


def missing(work: Work) -> RunStatus:
    """A run of which nothing is there."""
    s: RunSettings = work.settings
    head = (work.folder.name, s.problem, s.algorithm, s.preset, s.seed)
    tail = (s.precision or "float64", work.label, dict(s.settings()))
    return RunStatus(*head, "missing", 0, s.episodes, None, None, None, "", [], *tail)


def _status(work: Work, record: Manifest) -> str:
    if record.settings.folder != work.settings.folder:
        return "damaged"  # it is of another run
    if record.status == "running" and not is_held(work.folder):
        return "interrupted"  # its process is gone
    if record.status == "done" and not is_done(work.folder, record):
        return "damaged"
    return record.status
