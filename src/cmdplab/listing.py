"""What is registered, as rows for tables and JSON."""

from __future__ import annotations

from typing import Any

from cmdplab.algorithms import ALGORITHMS
from cmdplab.environments import ENVIRONMENTS


def algorithms() -> list[dict[str, Any]]:
    """One row per algorithm, with the presets it comes in."""
    rows: dict[str, dict[str, Any]] = {}
    for (name, preset), row in ALGORITHMS.items():
        first = {"name": name, "presets": [], "summary": row.summary, "unverified": ""}
        listed = rows.setdefault(name, first)
        listed["presets"].append(preset)
        if row.unverified:
            listed["unverified"] = f"{preset}: {row.unverified}"
    return list(rows.values())


def environments() -> list[dict[str, Any]]:
    """One row per environment."""
    return [
        {"name": name, "random": each.random, "summary": each.summary, "source": each.source}
        for name, each in ENVIRONMENTS.items()
    ]
