"""What is no input, given to every public function: one sentence, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from conftest import random_problem

import cmdplab
from cmdplab import CMDP, Job, Labels, Policy, StationaryCMDP, algorithm
from cmdplab.errors import InputError

HUGE = 10**400
ODD = [None, "x", 5, -1, HUGE, float("nan"), [], {}, object(), np.zeros(3), [[None]], b"x", 1.5]
P = random_problem(3, 2, 2, 1, stationary=True)
POLICY = Policy(np.full((2, 3, 2), 0.5))
STEP = {"episode": 0, "state": 0, "action": 0, "reward": 1.0, "next": 0, "cost": 0.5}


def problem(field: str, given: Any) -> CMDP:
    usual = {"transition": P.table[0], "reward": P.reward[:, 0], "horizon": 2}
    return CMDP(**{**usual, "threshold": P.threshold, field: given})


def stationary(field: str, given: Any) -> StationaryCMDP:
    usual = {"transition": P.table[0], "reward": P.reward[:, 0], "criterion": cmdplab.Average()}
    return StationaryCMDP(**{**usual, "threshold": P.threshold, field: given})


def fit(field: str, given: Any) -> cmdplab.Fitted:
    return cmdplab.fit([STEP | {field: given}], budget=[1.0])


# What nothing of `ODD` is: a problem, labels, a row of a table, ...
NEVER: dict[str, Callable[[Any], Any]] = {
    "solve": cmdplab.solve,
    "evaluate": lambda given: cmdplab.evaluate(given, POLICY),
    "explain": lambda given: cmdplab.explain(given, POLICY, 0),
    "simulate": lambda given: cmdplab.simulate(given, POLICY, 10),
    "conflict": cmdplab.conflict,
    "frontier": cmdplab.frontier,
    "sensitivity": cmdplab.sensitivity,
    "solve_robust": lambda given: cmdplab.solve_robust(given, None),
    "compare_policies": lambda given: cmdplab.compare_policies(given, POLICY, POLICY),
    "a table's problem": lambda given: Policy.from_table([STEP], given),
    "an environment": cmdplab.make,
    "an algorithm": algorithm,
    "labels": lambda given: problem("labels", given),
    "labels without an end": lambda given: stationary("labels", given),
    "labels of a policy": lambda given: Policy(POLICY.array, given),
    "jobs": lambda given: cmdplab.run_many(P, given, 10),
    "a job": lambda given: cmdplab.run_many(P, [given], 10),
    "an engine": lambda given: cmdplab.run(P, "UOpt-RPGPD", 10, 0, engine=given),
    "a way to plan again": lambda given: algorithm("OPSE").with_settings(replan=given or "x"),
}


@pytest.mark.parametrize("what", NEVER)
def test_what_is_nothing_that_is_wanted_gets_a_sentence(what):
    for given in ODD:
        if isinstance(given, np.ndarray) and what in ("an engine", "a way to plan again"):
            continue  # NumPy answers `array == word` in its own way
        with pytest.raises(InputError) as refused:
            NEVER[what](given)
        assert len(str(refused.value)) <= 1000


# What some of `ODD` may be: all others get a sentence.
PERHAPS: dict[str, Callable[[Any], Any]] = {
    "bonus_scale": lambda given: algorithm("UOpt-RPGPD").with_settings(bonus_scale=given),
    "alpha_eta": lambda given: algorithm("UOpt-RPGPD").with_settings(alpha_eta=given),
    "tuned_for": lambda given: algorithm("DOPE").with_settings(tuned_for=given),
    "a counter": lambda given: Policy(POLICY.array, counter=given),
    "states' names": lambda given: Labels(states=given),
    "names of signals": lambda given: Labels(signals=given),
    "points": lambda given: cmdplab.frontier(P, points=given),
    "a solution": lambda given: cmdplab.sensitivity(P, given),
    "a file": CMDP.load,
    "an instance seed": lambda given: cmdplab.make("random-printed", given),
    "a discount": lambda given: CMDP.discounted(P.table[0], P.reward[0, 0], given),
    "costs": lambda given: CMDP.average(P.table[0], P.reward[0, 0], costs=given, budgets=[1.0]),
    "seeds": lambda given: cmdplab.compare(P, ["UOpt-RPGPD"], episodes=5, seeds=given),
}
FIELDS = ("transition", "reward", "threshold", "start", "name", "mask")
PERHAPS |= {f"{each} of a problem": partial(problem, each) for each in (*FIELDS, "horizon")}
PERHAPS |= {f"{each} without an end": partial(stationary, each) for each in (*FIELDS, "criterion")}
PERHAPS |= {f"{each} of a log": partial(fit, each) for each in STEP}


@pytest.mark.parametrize("what", PERHAPS)
def test_what_cannot_be_gets_a_sentence(what):
    refused = []
    for given in ODD:
        try:
            PERHAPS[what](given)
        except InputError as error:
            refused.append(str(error))
    assert refused or what == "episode of a log"
    assert max(map(len, refused), default=0) <= 1000


@pytest.mark.parametrize("horizon", [10**18, 2**63, 10**9, 10**8, -5])
def test_a_horizon_that_no_memory_holds_is_refused_at_once(horizon):
    with pytest.raises(InputError, match=r"horizon|steps need"):
        problem("horizon", horizon)


def test_a_path_is_never_an_open_file():
    """Python reads whole numbers as such: 1 would read, and close, the output."""
    for given in (0, 1, True):
        with pytest.raises(InputError, match="not the path of a file"):
            CMDP.load(given)


def test_jobs_are_jobs():
    with pytest.raises(InputError, match=r"not a list of Job"):
        cmdplab.run_many(P, ["UOpt-RPGPD"], 10)  # type: ignore[list-item]
    assert len(cmdplab.run_many(P, [Job("UOpt-RPGPD", 0)], 10)) == 1


def test_a_switched_off_compiler_gets_a_sentence():
    program = "import cmdplab; cmdplab.solve(cmdplab.make('three-state'))"
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert "NUMBA_DISABLE_JIT is set, but cmdplab runs compiled code only" in done.stderr
