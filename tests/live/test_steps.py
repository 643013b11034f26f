"""Environments whose pairs change with the step: the test, the estimates, and the switch."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import random_policy, random_problem
from live_envs import Lever, Walk, sampled, stationary, world
from scipy import special

from cmdplab import learn
from cmdplab.experiments import checkpoint
from cmdplab.live import Learned
from cmdplab.live.model.estimate import BySteps, model_problem
from cmdplab.live.model.experience import Experience
from cmdplab.live.model.steps import ERROR, _excess, _Variable, change

H = 12


class Falling(Lever):
    """Pulling ends the episode and pays less at each step; waiting is free."""

    def reset(self, *, seed=None):
        self.h = 0
        return 0, {}

    def step(self, action):
        self.h += 1
        paid = action * (1.0 - 0.9 * (self.h - 1) / H)
        return 0, paid, bool(action), False, {"cost": 0.0}


TOLD = {"horizon": H, "budget": 1.0, "evaluate": 200}


def with_steps(problem, policy, episodes, rng, noisy=False):
    """Pooled counts of a problem, and counts with their steps."""
    sizes = (problem.states, problem.actions, len(problem.reward))
    both = Experience(*sizes), Experience(*sizes, problem.horizon)
    sampled(problem, policy, episodes, rng, noisy, both)
    return both


def two_groups(first, second):
    """The evidence of two groups (sum, samples) at two steps of one pair."""
    sums, times = np.array([[first[0], second[0]], [first[1], second[1]]], dtype=float)
    pair = np.zeros(2, dtype=np.int64)
    tested = _Variable.of(sums, pair)
    return _excess(tested, _Variable.of(times, pair), True, 0.0)


def test_the_evidence_of_two_groups_by_hand():
    """Ten failures beside ten successes: (B(1/2, 21/2) / pi)^2 2^20."""
    alike = np.log(special.beta(0.5, 10.5) / np.pi)
    assert two_groups((0, 10), (10, 10)) == pytest.approx([2 * alike + 20 * np.log(2.0)] * 2)
    assert (two_groups((5, 10), (5, 10)) < 0.0).all()


def test_the_evidence_exceeds_20_in_one_of_20_runs_at_most_however_samples_are_chosen():
    """A learner samples the group with the lower mean; the largest evidence on the way counts."""
    rng, runs = np.random.default_rng(0), np.arange(400)
    sums, times, most = np.zeros((400, 2)), np.zeros((400, 2)), np.full(400, -np.inf)
    pair = np.repeat(runs, 2)
    for _ in range(200):
        group = np.argmin((sums + 1.0) / (times + 2.0) + rng.normal(0.0, 0.1, (400, 2)), axis=1)
        times[runs, group] += 1.0
        sums[runs, group] += rng.random(400) < 0.3
        tested, count = (_Variable.of(each.ravel(), pair) for each in (sums, times))
        most = np.maximum(most, _excess(tested, count, True, 0.0).reshape(400, 2).max(axis=1))
    assert (most > np.log(20.0)).sum() <= 400 / 20


@pytest.mark.parametrize("noisy", [False, True])
def test_a_stationary_problem_gives_no_alarm(noisy):
    for seed in range(10):
        problem = stationary(seed=seed)
        rng = np.random.default_rng(seed)
        _, steps = with_steps(problem, random_policy(problem, 7), 200, rng, noisy)
        assert change(steps, world(problem)) is None


@pytest.mark.parametrize("noisy", [False, True])
def test_a_problem_that_changes_is_found_and_estimated_by_step(noisy):
    problem, rng = random_problem(4, 2, 5, 1, seed=3), np.random.default_rng(0)
    pooled, steps = with_steps(problem, np.full((5, 4, 2), 0.5), 2000, rng, noisy)
    found = change(steps, world(problem))
    assert found.leads
    assert f"with probability {ERROR:g} at most" in found.sentence
    model = model_problem(pooled, world(problem), problem.threshold, steps=BySteps(steps, True))
    often = steps.visits() > 200
    assert np.abs(model.reward[:, :, :4] - problem.reward)[:, often].max() < 0.1
    assert np.abs(model.table[:4, :4, :, :4] - problem.table[:4])[often[:4]].max() < 0.12
    np.testing.assert_allclose(model.table.sum(axis=-1), 1.0, atol=1e-12)


def test_estimates_of_steps_that_do_not_differ_are_pooled():
    problem, rng = stationary(), np.random.default_rng(0)
    pooled, steps = with_steps(problem, np.full((5, 4, 2), 0.5), 300, rng)
    one = model_problem(pooled, world(problem), problem.threshold)
    both = model_problem(pooled, world(problem), problem.threshold, steps=BySteps(steps, True))
    np.testing.assert_allclose(both.reward, one.reward, atol=1e-9)
    assert np.abs(both.table - one.table).mean() < 0.02


def test_a_reward_that_falls_is_collected_at_once():
    learned = learn(Falling(), "UOpt-RPGPD", episodes=600, **TOLD)
    assert learned.evaluation.objective.mean == pytest.approx(1.0, abs=0.02)
    assert learned.planned.by_step
    assert "Steps differ: action 1 in state 0 has a mean reward of" in learned.summary()
    assert "the learner began anew with counts for each step" in learned.summary()
    assert learned.algorithm.dynamics == "per-step"


def test_what_a_person_chose_is_kept():
    learned = learn(Falling(), "UOpt-RPGPD", episodes=600, dynamics="stationary", **TOLD)
    assert learned.algorithm.dynamics == "stationary"
    assert not learned.planned.by_step
    assert "Steps differ" in learned.summary()


def test_an_environment_that_does_not_change_gets_no_word():
    learned = learn(Lever(), "UOpt-RPGPD", episodes=600, **TOLD)
    assert learned.algorithm.dynamics == "stationary"
    assert "Steps differ" not in learned.summary()


def test_a_checkpoint_without_steps_goes_on(tmp_path):
    told = {"horizon": 4, "budget": 1.5, "evaluate": 20}
    whole = learn(Walk(), "UOpt-RPGPD", episodes=40, **told)
    learn(Walk(), "UOpt-RPGPD", episodes=23, checkpoint=tmp_path, **told)
    arrays = checkpoint.find(tmp_path).snapshot
    earlier = {name: each for name, each in arrays.items() if not name.startswith("steps_")}
    key, place = np.unique(arrays["steps_key"] // 5, return_inverse=True)  # without successors
    times = np.bincount(place, arrays["steps_count"])
    checkpoint.save(tmp_path, earlier | {"visits_place": key, "visits_times": times})
    resumed = learn(Walk(), "UOpt-RPGPD", episodes=40, checkpoint=tmp_path, **told)
    np.testing.assert_array_equal(resumed.last, whole.last)
    np.testing.assert_array_equal(resumed.visits, whole.visits)


def test_a_learner_that_switched_goes_on(tmp_path):
    whole = learn(Falling(), "UOpt-RPGPD", episodes=600, **TOLD)
    for episodes in (500, 600):
        kept = TOLD | {"checkpoint": tmp_path}
        resumed = learn(Falling(), "UOpt-RPGPD", episodes=episodes, **kept)
    np.testing.assert_array_equal(resumed.last, whole.last)
    np.testing.assert_array_equal(resumed.policy, whole.policy)
    resumed.save(tmp_path / "learned.npz")
    again = Learned.load(tmp_path / "learned.npz")
    np.testing.assert_array_equal(again.plan().policy, resumed.plan().policy)
    assert again.algorithm.dynamics == "per-step"
    more = learn(Falling(), "UOpt-RPGPD", data=again, episodes=5, **TOLD)
    assert more.seen.episodes == 605
