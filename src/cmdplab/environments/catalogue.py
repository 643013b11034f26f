"""Registered algorithms and environments, as rows for tables and JSON."""

from __future__ import annotations

from typing import Any

from cmdplab.algorithms import ALGORITHMS
from cmdplab.algorithms.table1 import TABLE_1, Guarantee, Order, evaluated
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments import ENVIRONMENTS, Environment
from cmdplab.errors import InputError
from cmdplab.solvers import solve_feasible


def list_algorithms() -> list[dict[str, Any]]:
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
            "unknown_rewards": row.unknown_rewards,
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
    slack = solve_feasible(problem).slater_gap
    if not slack:
        raise InputError(f"{problem.name} has no slack: the orders of Table 1 divide by it")
    X, A, H = problem.states, problem.actions, problem.horizon
    return [evaluated(name, X, A, H, episodes, epsilon, slack) for name in TABLE_1]


def list_environments() -> list[dict[str, Any]]:
    """One row per environment: sizes, certified values (ours and published), units, provenance."""
    return [_environment(name, each) for name, each in ENVIRONMENTS.items()]


def _environment(name: str, each: Environment) -> dict[str, Any]:
    problem = each.make(0)  # sizes do not depend on the seed
    certified, published = each.certified, each.published()
    return {
        "name": name,
        "version": each.version,
        "random": each.random,
        "summary": each.summary,
        "states": problem.states,
        "actions": problem.actions,
        "horizon": problem.horizon,
        "constraints": problem.constraints,
        "sense": each.sense,
        "optimum": certified and certified.optimum,
        "multipliers": certified and list(certified.multipliers),
        "slater_gap": certified and certified.slater_gap,
        "unconstrained": certified and certified.unconstrained,
        "published": published and published._asdict(),
        "units": [unit._asdict() for unit in each.units],
        "tail_bound": each.tail,
        "source": each.source,
        "unverified": each.unverified,
    }
