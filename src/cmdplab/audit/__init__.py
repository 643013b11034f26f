"""The audit: what many runs say about mistakes and convergence, and what they cannot say."""

from cmdplab.audit.findings import Finding, audit
from cmdplab.audit.gathering import Group, gather
from cmdplab.audit.writing import write_audit

__all__ = ["Finding", "Group", "audit", "gather", "write_audit"]
