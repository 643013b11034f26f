"""Inputs of learners about a problem before the first episode, with the safe policy of some."""

from __future__ import annotations

import numpy as np

from cmdplab.algorithms.row import SAFE_POLICY, SUPPORT, Row
from cmdplab.algorithms.task import Baseline, Feedback, Task, checked_baseline, told_gap
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.solvers import Solution
from cmdplab.solvers.certified import attempt
from cmdplab.solvers.known import Known
from cmdplab.types import Array, Mask


def safe_baseline(problem: CMDP, solution: Solution, tightening: float = 0.5) -> Baseline:
    """Return the default baseline: the optimum for the thresholds b + tightening * (Slater gap)."""
    tighter = problem.threshold + tightening * told_gap(solution.slater_gap)
    found = attempt(Known(problem, tighter))
    if not found.feasible:
        raise InputError(f"{problem.name} has no policy that meets b + {tightening:g} slack")
    assert found.policy is not None  # `attempt` writes it out
    return checked_baseline(problem, found.policy)


def task_for(
    row: Row,
    problem: CMDP,
    solution: Solution,
    baseline: Array | None = None,
    rewards: Feedback = "known",
) -> Task:
    """Return a row's task on a problem; `baseline` [H, X, A] replaces the default safe policy."""
    safe = None
    if problem.constraints:
        row.check_slack(told_gap(solution.slater_gap))
    if baseline is not None:
        safe = checked_baseline(problem, baseline)
    elif SAFE_POLICY in row.needs and problem.constraints:
        safe = safe_baseline(problem, solution, row.tightening)
    safe = safe if SAFE_POLICY in row.needs else None
    if row.pooled:
        check_stationary(row, problem, rewards)
    support = possible_successors(problem) if SUPPORT in row.needs else None
    task = Task.of(problem, solution.slater_gap, safe, rewards, support)
    task = task._replace(kernel=problem.kernel if row.knows_kernel or row.tosses_coin else None)
    row.check(task)
    return task


def check_stationary(row: Row, problem: CMDP, rewards: Feedback) -> None:
    """Refuse a problem whose steps differ in quantities that a row estimates for all of them."""
    kernel = problem.transition
    table = kernel.probability if isinstance(kernel, Sparse) else kernel
    estimated = {"transitions": np.broadcast_to(table, (problem.horizon, *table.shape[-3:]))}
    if rewards != "known":
        estimated["rewards"] = np.moveaxis(problem.reward, 0, -1)
    for what, each in estimated.items():
        if not _alike(each, problem.opened):
            pools = f"{row.name} ({row.preset}) counts all steps together"
            raise InputError(f"{pools}, and the {what} of {problem.name} differ between steps")


def _alike(table: Array, opened: Mask) -> bool:
    """Return True if every open pair has the same row [h, x, a] at all its open steps."""
    if table.strides[0] == 0:
        return True
    first = np.argmax(opened, axis=0)
    x, a = np.ogrid[: opened.shape[1], : opened.shape[2]]
    return bool(np.all((table == table[first, x, a]).all(axis=-1) | ~opened))


def possible_successors(problem: CMDP) -> Mask:
    """Return [X, A, X], True if a state follows with a positive probability at some step."""
    table = problem.table[:1] if problem.stationary else problem.table
    return np.asarray((table > 0.0).any(axis=0))
