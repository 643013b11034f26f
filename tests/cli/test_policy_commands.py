"""The commands about policies: what is written is read again, what is wrong gets one sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cmdplab


@pytest.mark.parametrize("ending", ["npz", "csv", "json"])
def test_the_optimum_that_solve_writes_earns_what_solve_says(call, tmp_path, ending):
    path = str(tmp_path / f"it.{ending}")
    said = json.loads(call("solve", "media-streaming", "--policy", path, "--json")[1])
    found = json.loads(call("evaluate", "media-streaming", path, "--json")[1])
    assert found["returns"][0] == pytest.approx(said["value"], abs=1e-12)
    assert found["meets_every_threshold"]


def test_simulation_stands_beside_the_exact_numbers(call, tmp_path):
    path = str(tmp_path / "it.csv")
    call("solve", "three-state", "--policy", path)
    code, out, _ = call("evaluate", "three-state", path, "--episodes", "1e3")
    assert code == 0
    assert "95 % from" in out
    assert "meets every threshold" in out


def test_a_state_is_explained_by_its_name_and_by_its_number(call):
    by_name = call("explain", "media-streaming", "buffer 2", "--step", "3")
    assert by_name == call("explain", "media-streaming", "2", "--step", "3")
    assert "state buffer 2 at step 3" in by_name[1]
    assert "fast link" in by_name[1]


def test_a_policy_with_memory_is_evaluated_and_explained_at_a_level(call, tmp_path):
    problem = cmdplab.make("three-state")
    cost = np.zeros((3, 2))
    cost[:, 1] = 1.0
    found = cmdplab.solve_budgets(problem, cmdplab.AlmostSure(cost, 6))
    path = str(tmp_path / "it.json")
    found.policy.save(path)
    said = json.loads(call("evaluate", "three-state", path, "--json")[1])
    assert said["returns"][0] == pytest.approx(found.value, abs=1e-9)
    asked = ("explain", "three-state", "0", "--policy", path, "--step", "1")
    levels = [call(*asked, "--counter", str(each))[1] for each in (0, 1)]
    visits = cmdplab.explain(problem, 0, 1, policy=found.policy, count=1).visits
    assert f"{100 * visits:.3g}% of the episodes" in levels[1]
    code, _, err = call(*asked, "--counter", "99")
    assert code == 2
    assert "its levels are" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("solve", "three-state", "--policy", "OUT/it.txt"), "is no .npz, .csv or .json"),
        (("evaluate", "three-state", "OUT/none.csv"), "none.csv does not exist"),
        (("evaluate", "media-streaming", "OUT/it.csv"), "line 2: there is no"),
        (("evaluate", "media-streaming", "OUT/it.npz"), "3 states and 2 actions, but media-str"),
        (("explain", "three-state", "9"), "there is no state 9: the states are 0..2"),
        (("explain", "three-state", "0", "--step", "6"), "there is no step 6: the steps are 0..5"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_exit_code_2(call, tmp_path, arguments, words):
    policy = cmdplab.solve(cmdplab.make("three-state")).policy
    for ending in ("csv", "npz"):
        policy.save(tmp_path / f"it.{ending}")
    code, _, err = call(*(each.replace("OUT", str(tmp_path)) for each in arguments))
    assert code == 2
    assert words in err
    assert len(err.splitlines()) == 1
