"""`CMDPLAB_INTERPRETED=1` runs the compiled loops in Python, with the numbers of compiled runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.engines.families import session
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.solvers import solve_feasible

ROWS = (
    "UOpt-RPGPD",
    "OptCMDP",
    "OptDual-CMDP",
    "Triple-Q",
    "OPSE",
    "UCBVI-BF",
    "UCRL2",
    "Safe(UOpt-RPGPD)",
    "Safe(OptCMDP)",
    "Safe(Triple-Q)",
)
EXACT = {"Triple-Q"}  # compiled without any licence to reorder


def played(name: str) -> list[list[float]]:
    problem = random_problem(4, 3, 3, 1)
    row = algorithm(name)
    run = session("cpu", problem, row, task_for(row, problem, solve_feasible(problem)), 0)
    chunk = run.play(12)
    return [*chunk.returns.tolist(), *chunk.multiplier.tolist()]


@pytest.fixture(scope="module")
def interpreted() -> dict[str, list[list[float]]]:
    environment = os.environ | {"CMDPLAB_INTERPRETED": "1"}
    done = subprocess.run([sys.executable, "-W", "error", __file__], env=environment, stdout=-1)
    assert done.returncode == 0
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ROWS)
def test_an_interpreted_run_is_the_compiled_run(name, interpreted):
    tolerance = 0.0 if name in EXACT else 1e-13
    for ours, theirs in zip(played(name), interpreted[name], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_an_interpreted_process_loads_no_compiler(interpreted):
    assert not interpreted["numba"]


if __name__ == "__main__":
    runs: dict[str, object] = {name: played(name) for name in ROWS}
    print(json.dumps(runs | {"numba": "numba" in sys.modules}))
