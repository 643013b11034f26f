"""`make bench-planner`: the interval planner against HiGHS on the explicit linear program.

Ratios are taken within one run. Published implementations, which solve the linear program, take
57 to 77 ms an episode on 6 to 10 states.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cmdplab import make, solve
from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import session
from cmdplab.numerics.compiling import compiled_apart
from cmdplab.solvers import Box, plan, simplex
from cmdplab.solvers.layout import model, planning

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))


def time_task(
    engine: str, row: Row, problem: CMDP, task: Task, begin: int = 0, seconds: float = 1.0
) -> float:
    """Microseconds per episode of one run, after `begin` episodes: planners learn what to plan."""
    run = session(engine, problem, row, task, 0)
    if begin:
        run.play(begin)
    episodes, took = 16, 0.0
    while took < seconds / 2:
        began = time.perf_counter()
        run.play(episodes)
        took = time.perf_counter() - began
        episodes *= 2
    return 2e6 * took / episodes


def median_time(work: Callable[[], object], repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


@compiled_apart
def plan_once(model, start, first, columns, basis, work, policy, returns):  # type: ignore[no-untyped-def]
    """A plan as the compiled engine makes it; from Python the simplex is not compiled."""
    simplex.plan(model, start, first, columns, basis, work)
    simplex.write_policy(model, start, columns, basis, work, policy, returns)


def planner_against_highs(problem: CMDP, width: float) -> None:
    from extended_lp import extended_value

    deviation = np.sqrt(problem.transition * (1.0 - problem.transition))
    box = Box.around(problem.transition, width * deviation)
    N, sizes = problem.constraints, (problem.horizon, problem.states, problem.actions)
    laid_out, space = (
        model(box, problem.reward, problem.threshold, problem.start),
        planning(N, *sizes),
    )
    start = problem.start
    cold, policy, returns = np.zeros(N), np.zeros(laid_out.spare.shape), np.zeros(1 + N)
    found = plan(box, problem.reward, problem.threshold, start)

    def from_multipliers(first: np.ndarray) -> Callable[[], object]:
        def once() -> None:
            plan_once(laid_out, start, first, *space, policy, returns)

        return once

    ours = median_time(from_multipliers(cold), 200)
    warm = median_time(from_multipliers(1.001 * found.multiplier), 200)
    began = time.perf_counter()
    value = extended_value(*box[:2], problem.reward, problem.threshold, start)
    highs = time.perf_counter() - began
    print(
        f"{problem.name}, width {width:g}: planner {1e6 * ours:.0f} us from nothing, "
        f"{1e6 * warm:.0f} us from good multipliers; HiGHS {highs:.1f} s: "
        f"{highs / ours:,.0f} and {highs / warm:,.0f} times; values differ by "
        f"{abs(value - found.value):.0e}",
        flush=True,
    )


def episodes(problem: CMDP) -> None:
    solution = solve(problem)
    for name in ("OptCMDP", "DOPE", "OptPress-LP", "OptDual-CMDP", "OptPress-PD", "Online-CRL"):
        for scale in (1e-3, 0.1, 1.0):
            row = algorithm(name, "printed").with_settings(
                bonus_scale=scale, margin_scale=min(scale, 1e-3)
            )
            task = task_for(row, problem, solution)
            us = time_task("cpu", row, problem, task, begin=3000)
            print(f"{problem.name:28} {name:14} scale {scale:<6g} {us:8.1f} us per episode")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave HiGHS out")
    quick = parser.parse_args().quick
    for name in ("media-streaming", "published", "random-independent"):
        episodes(make(name, 3 if name == "random-independent" else 0))
    if quick:
        return
    planner_against_highs(make("media-streaming"), 0.1)
    planner_against_highs(make("random-independent", 3), 0.1)


if __name__ == "__main__":
    main()
