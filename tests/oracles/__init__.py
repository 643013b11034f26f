"""Families in plain Python, written to be read: oracles of the compiled loops.

Each is a learner with `init`, `policy` and `observe`, and shares the formulas with the loops alone.
`session("host", ...)` plays them on the host engine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.custom import Custom, checked_learner
from cmdplab.algorithms.families.planner import Planner
from cmdplab.algorithms.families.primal_dual import PrimalDual, improve as improve_arrays
from cmdplab.algorithms.families.safe import Safe, inner_task
from cmdplab.algorithms.families.softmax_search import SoftmaxSearch
from cmdplab.algorithms.families.triple_q import TripleQ
from cmdplab.algorithms.families.unconstrained import Optimist
from cmdplab.engines import families
from cmdplab.engines.host import HostSession
from cmdplab.solvers import solve_feasible
from cmdplab.testing.contract import Stepping
from oracles.planner import PlainPlanner
from oracles.primal_dual import PlainPrimalDual
from oracles.safe import PlainSafe, SafeHostSession
from oracles.softmax_search import PlainSoftmaxSearch
from oracles.triple_q import PlainTripleQ
from oracles.unconstrained import PlainOptimist

PLAIN: dict[type, Any] = {
    Custom: checked_learner,
    PrimalDual: PlainPrimalDual,
    Planner: PlainPlanner,
    TripleQ: PlainTripleQ,
    SoftmaxSearch: PlainSoftmaxSearch,
    Optimist: PlainOptimist,
}


def plain(row: Any, task: Any) -> Any:
    """Return the plain learner of a row; without an oracle, its loops episode by episode."""
    if isinstance(row, Safe):
        return PlainSafe(row, task, plain(row.row, inner_task(task)))
    if type(row) not in PLAIN:
        return Stepping(row, task, session)
    return PLAIN[type(row)](row, task)


def session(engine: str, problem: Any, row: Any, task: Any, seed: int, state: Any = None) -> Any:
    """Start a run on an engine of the package, or of the plain learner on the host engine."""
    if engine != "host":
        return families.session(engine, problem, row, task, seed, state)
    row.check(task)
    kind = SafeHostSession if row.tosses_coin else HostSession
    return kind(problem, plain(row, task), seed, state, task)


def improve(run: Any) -> None:
    """Take one policy and dual step of a primal-dual run on its counts; no episode is played."""
    learner, scratch, _ = run._parts
    steps = run._row.schedule(run._task, max(run._episode, 1), 1)[0]
    improve_arrays(learner, run._numbers, run._task.start, steps, scratch)


def agree(row: Any, problem: Any, episodes: int, tolerance: float = 1e-10) -> None:
    """Compare a compiled run with the run of the plain learner, number by number."""
    task = task_for(row, problem, solve_feasible(problem))
    ours, theirs = (session(each, problem, row, task, 3).play(episodes) for each in ("cpu", "host"))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)
