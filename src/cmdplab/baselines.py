"""What learners are told about a problem before they start, the safe policy of some included."""

from __future__ import annotations

from cmdplab.algorithms.row import SAFE_POLICY, Row
from cmdplab.algorithms.task import Baseline, Feedback, Task, checked_baseline
from cmdplab.errors import InputError
from cmdplab.problem import CMDP, Array
from cmdplab.solvers import Solution
from cmdplab.solvers.certified import Known, attempt


def safe_baseline(problem: CMDP, solution: Solution, tightening: float = 0.5) -> Baseline:
    """The default baseline: the optimum for the thresholds b + tightening * (Slater gap)."""
    tighter = problem.threshold + tightening * solution.slack
    found = attempt(Known(problem, problem.reward, tighter))
    if found is None:
        raise InputError(f"{problem.name} has no policy that meets b + {tightening:g} slack")
    return checked_baseline(problem, found.policy)


def task_for(
    row: Row,
    problem: CMDP,
    solution: Solution,
    baseline: Array | None = None,
    rewards: Feedback = "known",
) -> Task:
    """What a row is told of a problem; `baseline` [H, X, A] replaces the default safe policy."""
    safe = None
    if problem.constraints:
        row.check_slack(solution.slack)
    if baseline is not None:
        safe = checked_baseline(problem, baseline)
    elif SAFE_POLICY in row.needs and problem.constraints:
        safe = safe_baseline(problem, solution, row.tightening)
    safe = safe if SAFE_POLICY in row.needs else None
    task = Task.of(problem, solution.slack, safe, rewards)
    row.check(task)
    return task
