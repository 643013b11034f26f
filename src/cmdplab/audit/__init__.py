"""The audit: mistakes and convergence over many runs, and the questions that stay open."""

from cmdplab.audit.accuracy import Complexity, mistakes_at, sample_complexity
from cmdplab.audit.events import EventTally, failure_events
from cmdplab.audit.files import write_audit
from cmdplab.audit.findings import Finding, audit
from cmdplab.experiments.records.groups import Group, gather

__all__ = [
    "Complexity",
    "EventTally",
    "Finding",
    "Group",
    "audit",
    "failure_events",
    "gather",
    "mistakes_at",
    "sample_complexity",
    "write_audit",
]
