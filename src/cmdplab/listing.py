"""What is registered, as rows for tables and JSON."""

from __future__ import annotations

from typing import Any

from cmdplab.algorithms import ALGORITHMS
from cmdplab.algorithms.table1 import TABLE_1, Guarantee, Order, evaluated
from cmdplab.environments import ENVIRONMENTS
from cmdplab.errors import InputError
from cmdplab.problem import CMDP
from cmdplab.solvers import solve_feasible


def algorithms() -> list[dict[str, Any]]:
    """One row per algorithm: what it needs, guarantees and rests on, and its line of Table 1."""
    rows: dict[str, dict[str, Any]] = {}
    for (name, preset), row in ALGORITHMS.items():
        first: dict[str, Any] = {
            "name": name,
            "presets": [],
            "summary": row.summary,
            "paper": row.paper,
            "needs": {},
            "guarantee": "",
            "provenance": {},
            "unverified": {},
            "page": page(name),
            "table_1": _line(TABLE_1[name]) if name in TABLE_1 else None,
        }
        listed = rows.setdefault(name, first)
        listed["presets"].append(preset)
        listed["needs"][preset] = list(row.needs)
        listed["guarantee"] = listed["guarantee"] or row.guarantee
        listed["provenance"][preset] = row.provenance
        if row.unverified:
            listed["unverified"][preset] = row.unverified
    return list(rows.values())


def page(name: str) -> str:
    """The page of an algorithm in the documentation."""
    plain = name.lower().replace("/", "-").replace("(", "-").replace(")", "").replace("--", "-")
    return f"docs/algorithms/{plain}.md"


def _line(row: Guarantee) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "regret": _formula(row.regret),
        "regret_strong": row.regret_strong,
        "violation": row.violation,
        "violation_strong": row.violation_strong,
        "pac": _formula(row.pac),
        "last_iterate": row.last_iterate,
        "corrected_regret": _formula(row.corrected),
        "corrected_pac": _formula(row.corrected_pac),
        "slip": row.slip,
    }


def _formula(order: Order | None) -> str | None:
    return None if order is None else order.formula()


def table_1_at(problem: CMDP, episodes: int, epsilon: float) -> list[dict[str, Any]]:
    """The orders of Table 1 at the sizes of a problem: no constants, no logarithms, N = 1."""
    if not problem.constraints:
        raise InputError(f"{problem.name} has no constraint: Table 1 is about one")
    slack = solve_feasible(problem).slack
    X, A, H = problem.states, problem.actions, problem.horizon
    return [evaluated(name, X, A, H, episodes, epsilon, slack) for name in TABLE_1]


def environments() -> list[dict[str, Any]]:
    """One row per environment."""
    return [
        {"name": name, "random": each.random, "summary": each.summary, "source": each.source}
        for name, each in ENVIRONMENTS.items()
    ]
