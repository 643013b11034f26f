"""Registered algorithms and environments, as rows for tables and JSON."""

from __future__ import annotations

from typing import Any

from cmdplab import plugins
from cmdplab.algorithms import ALGORITHMS
from cmdplab.algorithms.custom import CUSTOM, OUTSIDE
from cmdplab.algorithms.table1 import TABLE_1, Guarantee, Order, evaluated
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments import ENVIRONMENTS, Environment
from cmdplab.errors import InputError
from cmdplab.plugins import Plugin
from cmdplab.solvers import solve_feasible


def list_algorithms() -> list[dict[str, Any]]:
    """Return one row per algorithm: its needs, guarantee and provenance, and its line of Table
    1.
    """
    rows: dict[str, dict[str, Any]] = {}
    outside: list[dict[str, Any]] = []
    for (name, preset), row in ALGORITHMS.items():
        known = {"paper": row.paper, "unknown_rewards": row.unknown_rewards, "page": page(name)}
        line = _line(TABLE_1[name]) if name in TABLE_1 else None
        first = _listed(name, row.summary, **known, table_1=line)
        listed = rows.setdefault(name, first)
        listed["presets"].append(preset)
        listed["needs"][preset] = list(row.needs)
        listed["guarantee"] = listed["guarantee"] or row.guarantee
        listed["provenance"][preset] = row.provenance
        if row.unverified:
            listed["unverified"][preset] = row.unverified
    for found in _outside(plugins.ALGORITHMS):
        source = _source(found)
        told = {"presets": [CUSTOM], "needs": {CUSTOM: []}, "provenance": {CUSTOM: source}}
        outside.append(_listed(found.name, source, **told))
    return [*rows.values(), *outside]


def _outside(group: str) -> list[Plugin]:
    """Return what installed packages register in a group, without importing these packages."""
    return [each for found in plugins.plugins(group).values() for each in found]


def _source(found: Plugin) -> str:
    return f"{OUTSIDE}: {found.path} of {found.package}"


def _listed(name: str, summary: str, **known: Any) -> dict[str, Any]:
    """Return the row of an algorithm, with empty values for all that `known` does not give."""
    row: dict[str, Any] = {
        "name": name,
        "presets": [],
        "summary": summary,
        "paper": "",
        "needs": {},
    }
    row |= {"guarantee": "", "unknown_rewards": "", "provenance": {}, "unverified": {}}
    return {**row, "page": "", "table_1": None, **known}


def page(name: str) -> str:
    """Return the path of the algorithm's page in the documentation."""
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
    """Evaluate the orders of Table 1 at the sizes of a problem.

    Constants and logarithms are left out, and N = 1.
    """
    if not problem.constraints:
        raise InputError(f"{problem.name} has no constraint: Table 1 is about one")
    slack = solve_feasible(problem).slater_gap
    if not slack:
        raise InputError(f"{problem.name} has no slack: the orders of Table 1 divide by it")
    X, A, H = problem.states, problem.actions, problem.horizon
    return [evaluated(name, X, A, H, episodes, epsilon, slack) for name in TABLE_1]


def list_environments() -> list[dict[str, Any]]:
    """Return one row per environment: sizes, certified and published values, units, provenance."""
    rows = [_environment(name, each) for name, each in ENVIRONMENTS.items()]
    unknown = dict.fromkeys(rows[0]) | {"version": 0, "units": [], "unverified": ""}
    for found in _outside(plugins.ENVIRONMENTS):
        known = {"name": found.name, "summary": _source(found), "source": _source(found)}
        rows.append(unknown | known)
    return rows


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
