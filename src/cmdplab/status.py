"""Where the runs of a folder stand: what `cmdplab status` shows."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from cmdplab import manifest
from cmdplab.experiment import RunSettings
from cmdplab.manifest import Manifest
from cmdplab.pool import Ended, Work
from cmdplab.surviving import is_done, is_held


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
    """Where a run stands, from its manifest and its lock."""
    record = manifest.read_if_good(work.folder)
    s: RunSettings = work.settings
    head = (work.folder.name, s.problem, s.algorithm, s.preset, s.seed)
    precision = s.precision or "float64"
    if record is None:
        return RunStatus(*head, "missing", 0, s.episodes, None, None, None, "", [], precision)
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
        precision,
    )


def _status(folder: Path, record: Manifest) -> str:
    if record.status == "running" and not is_held(folder):
        return "interrupted"  # its process is gone
    if record.status == "done" and not is_done(folder, record):
        return "damaged"
    return record.status
