"""Compile what most tests need, once and side by side, before workers would each do it.

    python tests/compile_first.py

Where it has been compiled before, this takes two seconds.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import product

from cmdplab import CMDP, algorithm, quiet
from cmdplab.algorithms.baselines import task_for
from cmdplab.cmdp.transitions import Sparse
from cmdplab.engines.families import live_session, session
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.solvers import solve, solve_feasible

# Of about equal length. What has a second word needs no lists: it plays a table, or learns live.
PARTS = (
    ("solve", "UOpt-RPGPD", "Triple-Q", "OPSE on a table"),
    ("OptCMDP", "OptCMDP live"),
)


def compile_for(names: list[str]) -> None:
    """Solve a problem or play an episode of each row, on a table and on lists of successors."""
    dense = random_problem(4, 3, 3, 1)
    listed = CMDP(Sparse.of(dense.table), dense.reward, dense.threshold)
    for problem, (name, *how) in product((dense, listed), map(str.split, names)):
        if name == "solve":
            solve(problem)
            continue
        if how and problem is listed:
            continue
        row = algorithm(name)
        task = task_for(row, problem, solve_feasible(problem))
        if how == ["live"]:
            live = live_session(row, task)
            live.observe([problem.start] * (problem.horizon + 1), [0] * problem.horizon)
        else:
            session("cpu", problem, row, task, 0).play(1)


if __name__ == "__main__":
    quiet()
    if sys.argv[1:]:
        compile_for(sys.argv[1:])
    else:
        running = [subprocess.Popen([sys.executable, __file__, *names]) for names in PARTS]
        sys.exit(max(each.wait() for each in running))
