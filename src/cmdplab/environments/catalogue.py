"""Registered algorithms and environments as rows, and the description of a problem."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab import plugins
from cmdplab.algorithms import ALGORITHMS, needing_slack
from cmdplab.algorithms.custom import CUSTOM, OUTSIDE
from cmdplab.algorithms.table1 import TABLE_1, Guarantee, Order, evaluated
from cmdplab.cmdp.labels import Scale
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.environments import ENVIRONMENTS, Environment
from cmdplab.errors import InputError, OpenCertificateError
from cmdplab.plugins import Plugin
from cmdplab.solvers import solve, solve_feasible
from cmdplab.solvers.thresholds.attainable import Attainable
from cmdplab.solvers.thresholds.frontier import Edge, frontier

POINTS = 5  # thresholds that are tried, from where it binds to the largest


def list_algorithms() -> list[dict[str, Any]]:
    """Return a row for each algorithm: needs, guarantee, provenance and its line of Table 1."""
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
    """Return the plugins that installed packages register in a group, without importing them."""
    return [each for found in plugins.plugins(group).values() for each in found]


def _source(found: Plugin) -> str:
    return f"{OUTSIDE}: {found.path} of {found.package}"


def _listed(name: str, summary: str, **known: Any) -> dict[str, Any]:
    """Return the row of an algorithm, with empty values for all fields that `known` lacks."""
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
    """Evaluate the orders of Table 1 for a number of episodes at the sizes of a problem.

    epsilon is the accuracy of mistakes. Constants and logarithms are left out, and N = 1.
    """
    if not problem.constraints:
        raise InputError(f"{problem.name} has no constraint: Table 1 is about one")
    slack = solve_feasible(problem).slater_gap
    if not slack:
        raise InputError(f"{problem.name} has no slack: the orders of Table 1 divide by it")
    X, A, H = problem.states, problem.actions, problem.horizon
    return [evaluated(name, X, A, H, episodes, epsilon, slack) for name in TABLE_1]


def list_environments() -> list[dict[str, Any]]:
    """Return a dictionary for each environment: sizes, certified values, units and provenance."""
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


class ThresholdRange(NamedTuple):
    """Range of sensible thresholds of one constraint, and the optimal value at five of them."""

    constraint: int  # counted from 1
    smallest: float  # the least utility of any policy: lower thresholds have no effect
    largest_alone: float  # the most utility of any policy, without the other constraints
    reward_optimal: float  # the most utility among policies that are best without this constraint
    threshold: list[float] | None  # [5], from where it binds to the largest that can be met
    value: list[float] | None  # [5], the optimal values at these thresholds
    multiplier: list[float] | None  # [5], the prices of one more unit of utility


class Description(NamedTuple):
    """Sizes and certified numbers of a problem: feasibility, binding constraints, their prices."""

    name: str
    states: int
    actions: int
    horizon: int | None  # None without an end
    criterion: str  # how rewards add up
    constraints: int
    start: int | None  # None where the first state is random
    stationary: bool
    threshold: list[float]
    largest_utility: list[float]  # the most utility of any policy, for each constraint separately
    unconstrained_optimum: float
    feasible: bool
    optimum: float | None
    multiplier: list[float] | None
    binding: list[bool] | None  # True for constraints with a positive multiplier
    slater_gap: float | None
    certificate: float | None
    message: str
    without_guarantee: list[str]  # algorithms that need slack, where there is none
    ranges: list[ThresholdRange]  # of each constraint
    units: list[Scale]  # of the objective and of each utility, as labels have them; may be empty


def describe(problem: CMDP | StationaryCMDP) -> Description:
    """Return the sizes of a problem, its certified optimum and the ranges of its thresholds."""
    solution, space = solve(problem), Attainable(problem)
    multiplier = None if solution.multiplier is None else solution.multiplier.tolist()
    ends = isinstance(problem, CMDP)
    return Description(
        name=problem.name,
        states=problem.states,
        actions=problem.actions,
        horizon=problem.horizon if isinstance(problem, CMDP) else None,
        criterion="sum over an episode" if isinstance(problem, CMDP) else str(problem.criterion),
        constraints=problem.constraints,
        start=_start(problem),
        stationary=problem.stationary if isinstance(problem, CMDP) else True,
        threshold=problem.threshold.tolist(),
        largest_utility=[_most(space, n + 1) for n in range(problem.constraints)],
        unconstrained_optimum=_most(space, 0),
        feasible=solution.feasible,
        optimum=solution.value,
        multiplier=multiplier,
        binding=None if multiplier is None else [each > 1e-12 for each in multiplier],
        slater_gap=solution.slater_gap,
        certificate=solution.duality_gap,
        message=solution.message,
        without_guarantee=needing_slack() if solution.slater_gap == 0.0 and ends else [],
        ranges=[threshold_range(problem, n + 1) for n in range(problem.constraints)],
        units=list(problem.labels.signals),
    )


def _start(problem: CMDP | StationaryCMDP) -> int | None:
    """Return the first state, or None if it is random."""
    if isinstance(problem, CMDP):
        return problem.start
    first = np.flatnonzero(problem.start)
    return int(first[0]) if len(first) == 1 else None


def _most(space: Attainable, n: int, sign: float = 1.0) -> float:
    """Return the largest return of reward n over all policies; with sign -1, the smallest."""
    weights = np.zeros(1 + space.problem.constraints)
    weights[n] = sign
    return float(space.best(weights)[n]) + 0.0


def threshold_range(problem: CMDP | StationaryCMDP, constraint: int) -> ThresholdRange:
    """Return the sensible thresholds of constraint 1, ..., N, while the others stay fixed.

    If no policy meets the other thresholds, the range has no optimal values.
    """
    space = Attainable(problem)
    smallest, largest = _most(space, constraint, -1.0), _most(space, constraint)
    try:
        found = frontier(problem, constraint, POINTS)
    except OpenCertificateError:
        raise
    except InputError:  # the other constraints cannot be met: there is no frontier
        free = Edge(space, constraint, alone=True).free
        return ThresholdRange(constraint, smallest, largest, free, None, None, None)
    along = (found.threshold.tolist(), found.value.tolist(), found.multiplier.tolist())
    return ThresholdRange(constraint, smallest, largest, found.free, *along)
