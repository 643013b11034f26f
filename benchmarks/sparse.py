"""Time and memory of large grids against the number of transitions: `python benchmarks/sparse.py`.

A transition is (h, x, a, y) with P_h(y | x, a) > 0. Solving and learning should take a time that is
proportional to their number. The largest grid has 10,000 states, 4 actions and 100 steps.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.cmdp.transitions import Sparse
from cmdplab.engines.families import session
from cmdplab.environments.mazes import slippery_grid
from cmdplab.solvers import solve

SIZES = (20, 40, 60, 80, 100)


def line(size: int, name: str, preset: str, episodes: int) -> str:
    """One row of the table."""
    problem = slippery_grid(size)
    assert isinstance(problem.transition, Sparse)
    transitions = int((problem.transition.probability > 0.0).sum()) * problem.horizon
    began = time.perf_counter()
    solution = solve(problem)
    solving = time.perf_counter() - began
    row = algorithm(name, preset)
    learner = session("cpu", problem, row, task_for(row, problem, solution), 0)
    learner.play(1)
    began = time.perf_counter()
    returns = learner.play(episodes).returns
    episode = (time.perf_counter() - began) / episodes
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    assert np.isfinite(returns).all()
    return (
        f"| {size} x {size} | {transitions:,} | {solution.value:.5f} | {solution.duality_gap:.0e} "
        f"| {solving:.2f} | {1e3 * episode:.2f} | {1e9 * episode / transitions:.2f} "
        f"| {memory:.0f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithm", default="UOpt-RPGPD")
    parser.add_argument("--preset", default="printed")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    given = parser.parse_args()
    solve(slippery_grid(5))  # compiles
    print("| grid | transitions | optimum | certificate | solve, s | episode, ms | ns each | MB |")
    print("|---|---|---|---|---|---|---|---|")
    for size in given.sizes:
        print(line(size, given.algorithm, given.preset, given.episodes), flush=True)


if __name__ == "__main__":
    main()
