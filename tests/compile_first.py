"""Compile what most tests need, once and side by side, before workers would each do it.

    python tests/compile_first.py

Where it has been compiled before, this takes two seconds.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import product

from cmdplab import CMDP, algorithm, quiet
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.random import random_problem
from cmdplab.cmdp.transitions import Sparse
from cmdplab.engines.families import session
from cmdplab.solvers import solve

PARTS = (("solve", "UOpt-RPGPD", "Triple-Q"), ("OptCMDP",))  # about equally long


def compile_for(names: list[str]) -> None:
    """Solve a problem or play an episode of each row, on a table and on lists of successors."""
    dense = random_problem(4, 3, 3, 1)
    listed = CMDP(Sparse.of(dense.table), dense.reward, dense.threshold)
    for problem, name in product((dense, listed), names):
        if name == "solve":
            solve(problem)
        else:
            session("cpu", problem, algorithm(name), Task.of(problem, 0.1), 0).play(1)


if __name__ == "__main__":
    quiet()
    if sys.argv[1:]:
        compile_for(sys.argv[1:])
    else:
        running = [subprocess.Popen([sys.executable, __file__, *names]) for names in PARTS]
        sys.exit(max(each.wait() for each in running))
