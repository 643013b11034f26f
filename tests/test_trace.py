"""The released preset does what the authors' notebook did, to rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import TRACE

from cmdplab.algorithms import FIGURE_1, algorithm
from cmdplab.algorithms.task import Task
from cmdplab.engines.host import HostSession
from cmdplab.engines.plain import PlainPrimalDual
from cmdplab.errors import InputError
from cmdplab.problem import CMDP
from cmdplab.trace import verify_trace


def test_the_recorded_trace_is_reproduced():
    found = verify_trace(TRACE)
    assert set(found) == set(FIGURE_1)
    for difference in found.values():
        assert max(difference) <= 1e-9


def test_the_recording_can_tell_a_difference(tmp_path):
    arrays = dict(np.load(TRACE))
    arrays["UOpt_RPGPD_actions"] = arrays["UOpt_RPGPD_actions"].copy()
    arrays["UOpt_RPGPD_actions"][3, 0] = (arrays["UOpt_RPGPD_actions"][3, 0] + 1) % 3
    arrays["delta"] = np.array(0.2)
    np.savez(tmp_path / "t.npz", **arrays)
    found = verify_trace(tmp_path / "t.npz")
    assert found["UOpt-RPGPD"].gap > 1e-6
    assert found["No-adjustment"].gap > 1e-6


@pytest.mark.parametrize("name", FIGURE_1)
def test_plain_python_reproduces_it_too(name):
    z = np.load(TRACE)
    key = name.replace("-", "_")
    reward = np.stack([z["reward"], z["utility"]])
    problem = CMDP(z["P"], reward, [float(z["threshold"])], int(z["x1"]))
    row = replace(algorithm(name, "released"), tuned_for=int(z["K"]))
    task = Task.of(problem, float(z["max_utility"] - z["threshold"]))
    session = HostSession(problem, PlainPrimalDual(row, task), 0)
    chunk = session.replay(z[f"{key}_states"][:150], z[f"{key}_actions"][:150])
    gap = z["optimal_reward"] - chunk.returns[:, 0]
    np.testing.assert_allclose(gap, z[f"{key}_gap"][:150], atol=1e-12)
    recorded = z[f"{key}_multiplier_after"][:150]
    np.testing.assert_allclose(chunk.multiplier[:, 0], recorded, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"K": None}, "no array 'K'"),
        ({"UOpt_RPGPD_gap": np.zeros(3)}, "UOpt_RPGPD_gap has the shape"),
        ({"UOpt_RPGPD_states": np.full((1500, 5), 99)}, "UOpt_RPGPD_states must be whole"),
        ({"x1": np.array([1, 2])}, "x1 must be one finite number"),
        ({"x1": np.array(0.7)}, "x1 is 0.7, not a state"),
        ({"K": np.array("many")}, "K must be one finite number"),
        ({"K": np.array(np.nan)}, "K must be one finite number"),
        ({"delta": np.array("x")}, "delta must be one finite number"),
        ({"max_utility": np.array(0.0)}, "max_utility must exceed"),
        ({"UOpt_RPGPD_policy_after": np.full((10, 4, 5, 3), np.nan)}, "must hold finite numbers"),
        ({"UOpt_RPGPD_gap": np.array(["a"] * 1500)}, "must hold finite numbers"),
        ({"policy_snapshot_episodes": np.array(3)}, "must be a list of whole numbers"),
        ({"policy_snapshot_episodes": np.full(10, 9999)}, "policy_snapshot_episodes"),
    ],
)
def test_a_bad_trace_gets_one_sentence(tmp_path, change, sentence):
    arrays = {**dict(np.load(TRACE)), **change}
    np.savez(tmp_path / "t.npz", **{k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(InputError, match=sentence):
        verify_trace(tmp_path / "t.npz")
