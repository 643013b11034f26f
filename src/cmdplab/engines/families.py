"""The families of algorithms, and how a run of each is started on an engine."""

from __future__ import annotations
