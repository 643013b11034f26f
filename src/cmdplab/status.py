"""Where the runs of a folder stand: what `cmdplab status` shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

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
    label: str = ""  # the algorithm, with what tells it from others of its experiment
    settings: dict[str, Any] = {}  # noqa: RUF012 - all of the algorithm's settings


def with_end(status: RunStatus, end: Ended | None) -> RunStatus:
    """A failure that could not be written down is told all the same."""
    if end is not None and end.status == "failed" and status.status != "failed":
        return status._replace(status="failed", error=end.error)
    return status


def status_of(work: Work) -> RunStatus:
    """Where a run stands, from its manifest and its lock."""
    record = manifest.read_if_good(work.folder)
    s: RunSettings = work.settings
    head = (work.folder.name, s.problem, s.algorithm, s.preset, s.seed)
    tail = (s.precision or "float64", work.label, s.overrides())
    if record is None:
        return RunStatus(*head, "missing", 0, s.episodes, None, None, None, "", [], *tail)
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
        *tail,
    )


def _status(folder: Path, record: Manifest) -> str:
    if record.status == "running" and not is_held(folder):
        return "interrupted"  # its process is gone
    if record.status == "done" and not is_done(folder, record):
        return "damaged"
    return record.status
