"""The released presets do what the published code did, to rounding or to its solver's tolerance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import PLANNED_TRACE, SEARCH_TRACES, TRACE
from oracles import session
from oracles.primal_dual import PlainPrimalDual
from oracles.softmax_search import PlainSoftmaxSearch
from released_trace import verify_trace

from cmdplab.algorithms import FIGURE_1, algorithm
from cmdplab.algorithms.task import Task, checked_baseline
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.host import HostSession, roll_out
from cmdplab.environments import make


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


# OptCMDP of the DOPE repository: media streaming, 1,000 episodes


def test_the_recorded_plans_are_reproduced():
    found = verify_trace(PLANNED_TRACE)["OptCMDP"]
    assert max(found.gap, found.violation, found.box) <= 1e-12
    assert found.promise <= 1e-7  # the recording's solver stops at 1e-7
    assert found.optimality <= 1e-7


def test_the_recorded_curve_is_the_published_one():
    z = np.load(PLANNED_TRACE)
    regret = np.cumsum(np.abs(z["OptCMDP_gap"]))
    violation = np.cumsum(np.maximum(z["OptCMDP_violation"], 0.0))
    for episode, expected in (
        (100, (168.6, 130.1)),
        (500, (602.8, 1263.6)),
        (1000, (690.8, 1526.1)),
    ):
        at = regret[episode - 1], violation[episode - 1]
        assert at == pytest.approx(expected, abs=0.05)


def test_the_recorded_problem_is_media_streaming():
    z, problem = np.load(PLANNED_TRACE), make("media-streaming")
    np.testing.assert_allclose(z["P"], problem.transition[0], atol=1e-15)
    np.testing.assert_array_equal(np.stack([z["reward"], z["utility"]]), problem.reward)
    assert float(z["threshold"]) == problem.threshold[0]


def test_the_recorded_episodes_follow_from_the_policies_and_the_seed():
    # The recording drew an action, then a state, by inverse CDF from numpy's old generator.
    z, problem = np.load(PLANNED_TRACE), make("media-streaming")
    noise = np.random.RandomState(int(z["seed"])).random_sample((1000, problem.horizon, 2))
    for k, policy in enumerate(z["OptCMDP_policy"]):
        episode = roll_out(problem, policy, noise[k])
        np.testing.assert_array_equal(episode.states, z["OptCMDP_states"][k])
        np.testing.assert_array_equal(episode.actions, z["OptCMDP_actions"][k])


def changed(tmp_path, **change):
    """The trace of plans with other arrays."""
    np.savez(tmp_path / "t.npz", **{**dict(np.load(PLANNED_TRACE)), **change})
    return tmp_path / "t.npz"


def test_the_recording_of_plans_can_tell_a_difference(tmp_path):
    z = np.load(PLANNED_TRACE)
    wider = verify_trace(changed(tmp_path, delta=np.array(0.001)))["OptCMDP"]
    assert wider.box > 1e-3
    assert wider.promise > 1e-6
    other = z["OptCMDP_policy"].copy()
    other[99, 0, 0] = other[99, 0, 0, ::-1]  # the other link at first
    found = verify_trace(changed(tmp_path, OptCMDP_policy=other))["OptCMDP"]
    assert found.gap > 1e-3
    other[:] = [1.0, 0.0]  # always fast: no kernel keeps to the budget
    assert verify_trace(changed(tmp_path, OptCMDP_policy=other))["OptCMDP"].optimality == np.inf


# OPSE and its Ghosh baseline, from OPSE's repository: 400 episodes of each on two problems. The
# recording ran the published functions in double precision (the release is float32 throughout).

NAMES = {"OPSE": "OPSE", "Ghosh": "Ghosh-Zhou-Shroff"}
SEARCHED = pytest.mark.parametrize(
    ("trace", "key"), [(trace, key) for trace in SEARCH_TRACES for key in NAMES], ids=str
)


def recorded_search(trace, key):
    """The recording, its problem, and our row with its task."""
    z = np.load(SEARCH_TRACES[trace])
    reward = np.stack([z["reward"], z["utility"]])
    problem = CMDP(z["P"], reward, [float(z["threshold"])], int(z["x1"]))
    scale = float(z["width"]) / 2.0  # `released` has the constants of streaming, 2
    row = replace(algorithm(NAMES[key], "released"), bonus_scale=scale, margin_scale=scale)
    safe = checked_baseline(problem, z["safe_policy"])
    return z, problem, row, Task.of(problem, float(z["max_utility"] - z["threshold"]), safe)


def differences(z, key, session, episodes):
    """What a replay of the recorded episodes gives, less what was recorded."""
    states, actions = (z[f"{key}_{what}"][:episodes] for what in ("states", "actions"))
    found, done = [], 0
    snapshots = z["policy_snapshot_episodes"]
    for place, end in enumerate(snapshots[snapshots <= episodes]):
        chunk = session.replay(states[done:end], actions[done:end])
        found.append(chunk.returns[:, 0] - z[f"{key}_value"][done:end])
        found.append(chunk.returns[:, 1] - z[f"{key}_utility_value"][done:end])
        found.append(chunk.multiplier[:, 0] - z[f"{key}_multiplier_after"][done:end])
        found.append((session.state().policy - z[f"{key}_policy_after"][place]).ravel())
        done = end
    assert done == episodes
    return np.concatenate(found)


@SEARCHED
def test_the_recorded_searches_are_reproduced(trace, key):
    z, problem, row, task = recorded_search(trace, key)
    run = session("cpu", problem, row, task, seed=0)
    assert np.abs(differences(z, key, run, 400)).max() <= 1e-9
    assert run.state().baseline_episodes == 1 + z[f"{key}_safe_after"][:-1].sum()


@pytest.mark.parametrize(
    ("trace", "key"),
    [
        ("streaming", "OPSE"),
        ("streaming", "Ghosh"),
        pytest.param("random", "OPSE", marks=pytest.mark.slow),
        pytest.param("random", "Ghosh", marks=pytest.mark.slow),
    ],
)
def test_plain_python_reproduces_the_recorded_searches_too(trace, key):
    z, problem, row, task = recorded_search(trace, key)
    session = HostSession(problem, PlainSoftmaxSearch(row, task), 0)
    assert np.abs(differences(z, key, session, 50)).max() <= 1e-9


@pytest.mark.parametrize("trace", SEARCH_TRACES)
@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("OPSE", {"weighting": 0.0}),
        ("OPSE", {"loose": 0.0}),
        ("OPSE", {"terminal_entropy": 0.0}),
        ("OPSE", {"bisections": 19}),
        ("Ghosh", {"begins_safe": False}),  # without data OPSE plays the safe policy by itself
        ("Ghosh", {"inside": 1.0}),
        ("Ghosh", {"loose": 0.0}),
    ],
    ids=str,
)
def test_each_departure_of_the_release_is_seen_in_its_recording(trace, key, change):
    z, problem, row, task = recorded_search(trace, key)
    run = session("cpu", problem, replace(row, **change), task, seed=0)
    assert np.abs(differences(z, key, run, 400)).max() > 1e-6


def test_what_was_recorded_shows_the_safe_policy_and_searches():
    for trace in SEARCH_TRACES:
        z = np.load(SEARCH_TRACES[trace])
        assert 10 < z["OPSE_safe_after"].sum() < 100
        assert len(np.unique(z["OPSE_multiplier_after"])) > 100
        assert len(np.unique(z["Ghosh_multiplier_after"])) > 50
        assert z["OPSE_utility_value"].min() >= z["threshold"]
        assert z["Ghosh_utility_value"].min() < z["threshold"] - 0.1
