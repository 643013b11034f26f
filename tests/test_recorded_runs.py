"""Runs of every registered row, as recorded: moving code must not change a number.

`python tests/test_recorded_runs.py` writes the record again; a change of it needs a reason.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numba
import numpy as np
import pytest

import cmdplab
from cmdplab.algorithms import ALGORITHMS
from cmdplab.algorithms.row import ONE_CONSTRAINT
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.experiments.manifest import machine

RECORD = Path(__file__).parent / "data" / "recorded_runs.json"
EPISODES = 500
PROBLEMS = {
    "one constraint": lambda: random_problem(7, 3, 4, 1, stationary=True),
    "two, closed actions": lambda: random_problem(5, 4, 3, 2, closed=0.3, stationary=True),
    "media-streaming": lambda: cmdplab.make("media-streaming"),
}


def played(row, problem) -> dict:
    """The last returns and multipliers, and a digest of all curves and of the final state."""
    run = cmdplab.run(problem, row, EPISODES, seed=1)
    digest = hashlib.sha256()
    state = run.state._asdict()
    assert not np.size(state.pop("ends", ()))  # newer than the record: engines know every successor
    for arrays in (run.curves, run.mistakes, state):
        for name in sorted(arrays):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    s = run.summary
    numbers = [s.final_gap, s.strong_regret, *run.state.multiplier]
    return {"numbers": [float(each) for each in numbers], "digest": digest.hexdigest()[:16]}


def here() -> str:
    """What decides the last bits."""
    return f"{machine()['processor']} {machine()['features']} numba {numba.__version__}"


def recorded() -> dict:
    return json.loads(RECORD.read_text())


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("key", ALGORITHMS, ids="-".join)
def test_a_run_is_the_one_that_was_recorded(key, name):
    record = recorded()
    known = record["runs"].get(f"{'-'.join(key)}, {name}")
    if known is None:
        pytest.skip("a row that is newer than the record, or does not take the problem")
    found = played(ALGORITHMS[key], PROBLEMS[name]())
    np.testing.assert_allclose(found["numbers"], known["numbers"], atol=1e-8)
    if record["machine"] == hashlib.sha256(here().encode()).hexdigest():
        assert found["digest"] == known["digest"]


def write() -> None:
    runs = {
        f"{'-'.join(key)}, {name}": played(row, make())
        for key, row in ALGORITHMS.items()
        for name, make in PROBLEMS.items()
        if ONE_CONSTRAINT not in row.needs or make().constraints == 1
    }
    marked = {"machine": hashlib.sha256(here().encode()).hexdigest(), "runs": runs}
    RECORD.write_text(json.dumps(marked, indent=1) + "\n")


if __name__ == "__main__":
    write()
