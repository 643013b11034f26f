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
import cmdplab.gym
from cmdplab import CMDP, Job, Labels, Policy, StationaryCMDP, algorithm, formats
from cmdplab.cmdp.labels import Scale
from cmdplab.environments.levels import river_swim
from cmdplab.errors import InputError

HUGE = 10**400
ODD = [None, "x", 5, -1, HUGE, float("nan"), [], {}, object(), np.zeros(3), [[None]], b"x", 1.5]
P = random_problem(3, 2, 2, 1, stationary=True)
POLICY = Policy(np.full((2, 3, 2), 0.5))
ROWS = np.ones((1, 1, 1))
ROW = {"state": 0, "action": 0, "next": 0, "probability": 1, "reward": 1}
STEP = {"episode": 0, "state": 0, "action": 0, "reward": 1.0, "next": 0, "cost": 0.5}


def problem(field: str, given: Any) -> CMDP:
    usual = {"transition": P.table[0], "reward": P.reward[:, 0], "horizon": 2}
    return CMDP(**{**usual, "threshold": P.threshold, field: given})


def stationary(field: str, given: Any) -> StationaryCMDP:
    usual = {"transition": P.table[0], "reward": P.reward[:, 0], "criterion": cmdplab.Average()}
    return StationaryCMDP(**{**usual, "threshold": P.threshold, field: given})


def arrays(field: str, given: Any) -> Any:
    usual = {"costs": [[[1.0]]], "budgets": [1.0], "horizon": 2}
    return formats.from_state_first(ROWS, [[1.0]], **{**usual, field: given})


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
    "a model": lambda given: cmdplab.from_trajectories([STEP], model=given, reward=None),
    "a matched policy": lambda given: cmdplab.match_policy(given, P),
    "a policy's new problem": lambda given: cmdplab.match_policy(POLICY, given),
    "an environment's problem": cmdplab.gym.ProblemEnv,
    "many environments' problem": cmdplab.gym.ProblemVectorEnv,
    "a layout": formats.to_state_first,
    "a Gymnasium table": formats.to_gymnasium_table,
    "a DRN file": lambda given: formats.write_drn(given, "never.drn"),
    "a converted problem": lambda given: formats.convert(given, "never.npz"),
    "a name or a file": formats.find,
    "a solution to explain": lambda given: cmdplab.explain(
        P, 0, 0, solution=1 if given is None else given
    ),
    "the actions of a policy": lambda given: Policy.deterministic([5], given),
    "labels of arrays": lambda given: formats.from_state_first(ROWS, [[1.0]], labels=given),
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
    "levels": lambda given: cmdplab.Counter([[1]], given),
    "copies": lambda given: cmdplab.gym.ProblemVectorEnv(P, given),
    "rows to compare": lambda given: cmdplab.compare_policies(P, POLICY, POLICY, given),
    "a default action": lambda given: cmdplab.match_policy(Policy([[1.0]]), P, given),
    "a factor": lambda given: Labels(signals=[Scale("x", given)]),
    "an offset": lambda given: Labels(signals=[Scale("x", 1.0, given)]),
    "costs of a table": lambda given: cmdplab.from_table([ROW], horizon=2, costs=given),
    "costs of a log": lambda given: cmdplab.from_trajectories([STEP], horizon=2, costs=given),
    "costs of arrays": lambda given: arrays("costs", given),
    "budgets of arrays": lambda given: arrays("budgets", given),
    "a size of an environment": lambda given: river_swim(given),
    "an action of pairs": lambda given: formats.from_quantecon([1.0], [[1.0]], 0.9, [0], [given]),
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


@pytest.mark.parametrize("digits", [50, 5000])
def test_whole_numbers_of_many_digits_in_a_log_get_a_sentence(digits):
    given = 10**digits
    for step in ((given, 0, 1.0, 0), (0, given, 1.0, 0), (0, 0, given, 0)):
        with pytest.raises(InputError, match=r"episode 0, step 0: the .* has more than 40 digits"):
            cmdplab.from_trajectories([[step]], horizon=2)


def test_arrays_that_no_memory_holds_are_refused_before():
    for call in (
        lambda: Policy.deterministic([0], 10**15),
        lambda: cmdplab.Counter([[1]], 10**15),
        lambda: cmdplab.gym.ProblemVectorEnv(P, 10**12),
        lambda: formats.from_quantecon([1.0], [[1.0]], 0.9, [0], [10**15]),
    ):
        with pytest.raises(InputError, match=r"too large|too many"):
            call()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_of_thousands_of_digits_gets_a_sentence(sign):
    given, p = sign * 10**5000, cmdplab.make("three-state")
    calls = [
        lambda: cmdplab.run(p, "UOpt-RPGPD", episodes=given),
        lambda: cmdplab.run(p, "UOpt-RPGPD", episodes=10, seed=given),
        lambda: cmdplab.frontier(p, 1, points=given),
        lambda: cmdplab.Policy.deterministic([0], given),
    ]
    for call in calls:
        with pytest.raises(cmdplab.CmdplabError, match="thousands of digits"):
            call()
