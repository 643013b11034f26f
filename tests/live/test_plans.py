"""The model that was learned, plans on it, and what is said about them."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import random_policy
from live_envs import Lever, Walk, sampled, stationary, world

import cmdplab
from cmdplab import InputError, Policy, learn
from cmdplab.cmdp.exact import returns
from cmdplab.errors import EnvironmentFailed
from cmdplab.live import Learned
from cmdplab.live.evaluation import Evaluation
from cmdplab.live.model.choice import LAST, PLAN
from cmdplab.live.model.estimate import model_of, model_problem
from cmdplab.live.model.experience import Experience
from cmdplab.live.model.plans import on_the_multiplier, promise
from cmdplab.statistics.intervals import Estimate


class Toll(Lever):
    """Every action costs 0.5: no policy spends less than H / 2."""

    costs = (0.5, 0.5)


def test_counts_are_those_of_a_plain_loop_however_they_are_merged(monkeypatch):
    problem = stationary()
    policy = random_policy(problem, 7)
    whole = sampled(problem, policy, 50, np.random.default_rng(2))
    monkeypatch.setattr("cmdplab.live.model.experience.WAITING", 7)
    parts = sampled(problem, policy, 50, np.random.default_rng(2))
    for one, other in zip(whole.entries()[:-1], parts.entries()[:-1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert whole.entries().times.sum() == 50 * problem.horizon
    again = Experience.of_arrays(4, 2, whole.arrays())
    np.testing.assert_array_equal(again.visits(), whole.visits())
    assert again.episodes == 50


def test_the_model_of_many_episodes_is_the_problem():
    problem, rng = stationary(N=2), np.random.default_rng(3)
    policy = np.full((problem.horizon, problem.states, problem.actions), 0.5)
    seen = sampled(problem, policy, 4000, rng)
    found = model_of(seen, world(problem), problem.threshold)
    X = problem.states
    table = found.problem.table[0, :X, :, :X]
    assert np.abs(table - problem.table[0]).max() < 0.05
    np.testing.assert_allclose(found.problem.reward[:, :, :X], problem.reward, atol=1e-12)
    inside = (found.box.lower[:X, :, :X] <= problem.table[0]) & (
        problem.table[0] <= found.box.upper[:X, :, :X]
    )
    assert inside.all()
    solved, best = cmdplab.solve(found.problem), cmdplab.solve(problem)
    assert solved.value == pytest.approx(best.value, abs=0.05)
    robust = cmdplab.solve_robust(found.problem.changed(threshold=[0.0, 0.0]), found.box)
    assert robust.value <= cmdplab.solve(problem.changed(threshold=[0.0, 0.0])).value


@pytest.mark.slow
def test_the_errors_of_a_promise_are_those_of_repeated_experiments():
    """The delta method against 300 data sets: a fixed policy, kernel and rewards both estimated."""
    problem, rng = stationary(seed=5), np.random.default_rng(4)
    gather = random_policy(problem, 6, 3.0)
    policy = random_policy(problem, 7)
    told, means, errors = world(problem), [], []
    for _ in range(300):
        seen = sampled(problem, gather, 150, rng, noisy=True)
        model = model_problem(seen, told, problem.threshold)
        padded = np.full((problem.horizon, model.states, problem.actions), 0.5)
        padded[:, : problem.states] = policy
        padded[:, problem.states :] = [1.0, 0.0]
        found = promise(model, seen, told, padded)
        means.append([found.objective.mean, found.constrained[0].mean])
        errors.append([(e.high - e.mean) / 1.96 for e in (found.objective, *found.constrained)])
    spread = np.std(means, axis=0)
    np.testing.assert_allclose(np.mean(errors, axis=0), spread, rtol=0.15)
    exact = returns(problem, policy)
    np.testing.assert_allclose(
        np.mean(means, axis=0), exact, atol=4.0 * spread.max() / np.sqrt(300) + 0.01
    )


def test_the_end_of_the_time_is_not_an_end_of_the_world():
    """Our environments terminate at step H, whatever the pair: the model must not believe it."""
    gymnasium = pytest.importorskip("gymnasium")
    gym = pytest.importorskip("cmdplab.gym")
    env = gymnasium.make(gym.identifier("media-streaming"))
    learned = learn(env, "UOpt-RPGPD", episodes=2000, evaluate=0)
    model, problem = learned.model(), env.unwrapped.problem
    often = model.visits > 1000
    found = model.problem.table[0, : problem.states][often]
    np.testing.assert_allclose(found[:, : problem.states], problem.table[0][often], atol=0.06)
    assert not found[:, problem.states].any()
    best = cmdplab.solve(problem).value
    assert cmdplab.evaluate(problem, learned.planned.policy).value == pytest.approx(best, abs=0.1)


def test_what_was_never_tried_is_feared():
    """Staying was seen in state 0 alone: going on is closed there, state 1 pays the worst."""
    told = world(stationary(3, 2, 4))
    seen = Experience(3, 2, 2)
    seen.add(np.array([0, 0]), np.array([0, 0]), 1, np.full((2, 2), 0.5))
    made = model_problem(seen, told, np.array([0.0]))
    assert made.opened[0, 0].tolist() == [True, False]
    values = returns(made, made.opened / made.opened.sum(axis=-1, keepdims=True))
    # With probability 1/2 the next step is in state 1, where nothing was tried and nothing is paid.
    assert values[0] == pytest.approx(0.5 * (1 + 1 / 2 + 1 / 4 + 1 / 8))


@pytest.mark.parametrize("starts", [(5,), (5, 6)])
def test_a_plan_finds_the_optimum_where_everything_was_tried(starts):
    """Each step up pays and costs 1; the budget is all that an episode may spend."""
    told = {"horizon": 4, "budget": 1.0, "episodes": 60, "evaluate": 50}
    learned = learn(Walk(starts), "UOpt-RPGPD", **told)
    assert learned.planned.promised.objective.mean == pytest.approx(1.0)
    assert learned.planned.promised.constrained[0].mean == pytest.approx(1.0)
    assert learned.policy.shape == (4, 3, 2)
    assert f"learned.policy is {learned.chosen}" in learned.summary()


def test_the_policy_is_the_better_one_and_says_so():
    told = {"horizon": 6, "budget": 2.0, "episodes": 20, "evaluate": 200}
    learned = learn(Lever(), "UOpt-RPGPD", **told)
    assert learned.chosen == PLAN
    assert learned.policy is learned.planned.policy
    assert learned.evaluation.objective.mean == learned.planned.evaluation.objective.mean
    assert learned.last_evaluation.constrained[0].low > 2.0  # the last one breaks the budget
    assert "misses the limits (cost at most 2)" in learned.summary()
    bare = learn(Lever(), "UOpt-RPGPD", **(told | {"evaluate": 0}))
    assert bare.evaluation is None
    assert bare.chosen in (LAST, PLAN)


def test_another_budget_needs_no_learning():
    learned = learn(Lever(), "OptCMDP", horizon=6, budget=2.0, episodes=20, evaluate=0)
    for budget in (0.5, 3.0, 6.0):
        other = learned.with_budget(budget)
        assert other.planned.promised.objective.mean == pytest.approx(budget)
        assert other.limit.tolist() == [budget]
        assert other.chosen == PLAN
    careful = learned.plan(budget=3.0, margin=1.0)
    assert careful.promised.constrained[0].mean == pytest.approx(2.0)
    assert careful.multiplier.tolist() == pytest.approx([1.0])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x: x.plan(budget=-1.0), "budget is -1, outside 0 to 6"),
        (lambda x: x.plan(budget=[1.0, 2.0]), "budget holds 2 numbers for 1 constraints"),
        (lambda x: x.plan(threshold=1.0), "has a budget: pass budget="),
        (lambda x: x.plan(margin=-1.0), "margin is -1, not a number >= 0"),
        (lambda x: x.plan(margin=float("nan")), "margin is nan"),
        (lambda x: x.with_budget("much"), "budget is not an array of real numbers"),
    ],
)
def test_limits_that_make_no_sense_are_refused(call, sentence):
    learned = learn(Lever(), "OptCMDP", horizon=6, budget=2.0, episodes=5, evaluate=0)
    with pytest.raises(InputError, match=sentence):
        call(learned)


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OptCMDP", "Triple-Q"])
def test_a_budget_out_of_reach_is_spoken_of(name):
    learned = learn(Toll(), name, horizon=4, budget=0.1, episodes=40, evaluate=20)
    assert "cost at most 0.1 looks unreachable: it comes to 2" in learned.summary()
    assert not learned.planned.feasible
    kept = learn(Toll(), name, horizon=4, budget=2.0, episodes=40, evaluate=20)
    assert "unreachable" not in kept.summary()


def test_a_multiplier_that_grows_without_end_is_spoken_of():
    learned = learn(Toll(), "UOpt-RPGPD", horizon=4, budget=0.1, episodes=400, evaluate=0)
    assert "The multiplier of cost grows without end" in learned.summary()
    kept = learn(Lever(), "UOpt-RPGPD", horizon=4, budget=1.0, episodes=400, evaluate=0)
    assert "without end" not in kept.summary()


@pytest.mark.parametrize(
    ("trail", "cost", "said"),
    [
        ((1.0, 2.0, 4.0, 8.0), 1.5, True),
        ((1.0, 2.0, 4.0, 8.0), 0.9, False),  # the limit is kept: it will fall
        ((1.0, 4.0, 4.0, 8.0), 1.5, False),  # it stood still
        ((0.5, 1.0, 2.0, 4.0), 1.5, False),  # within five times the plan's price, which is 1
    ],
)
def test_a_multiplier_that_rises_to_its_price_is_not_spoken_of(trail, cost, said):
    learned = learn(Lever(), "UOpt-RPGPD", horizon=4, budget=1.0, episodes=400, evaluate=0)
    assert learned.planned.multiplier[0] == pytest.approx(1.0)
    prices = [(64 * 2**i, np.array([each])) for i, each in enumerate(trail[:3])]
    found = Evaluation(Estimate(1.0, 1.0, 1.0, 9), (Estimate(cost, cost, cost, 9),))
    told = (learned.planned, found, learned.world)
    notes = on_the_multiplier(prices, 512, np.array(trail[3:]), *told)
    assert bool(notes) == said


def test_a_slack_that_cannot_be_is_spoken_of():
    """The lever may be left alone: a budget of 1 has a slack of 1, in all."""
    told = {"horizon": 4, "budget": 1.0, "episodes": 40, "evaluate": 0}
    wrong = learn(Lever(), "OPDOP", slater_gap=3.0, **told)
    assert (
        "slater_gap was told to be 3, and no policy of the learned model has a slack of more than 1"
        in wrong.summary()
    )
    right = learn(Lever(), "OPDOP", slater_gap=1.0, **told)
    assert "slater_gap" not in right.summary()


def test_other_ranges_of_costs_are_mapped_and_reported_as_they_were():
    class Dear(Lever):
        costs = (-5.0, 20.0)

    told = {"horizon": 6, "episodes": 30, "evaluate": 20, "cost_range": (-10.0, 30.0)}
    learned = learn(Dear(), "OptCMDP", budget=20.0, **told)
    # Pulled k times of 6: 25 k - 30 <= 20 gives k = 2.
    assert learned.planned.promised.objective.mean == pytest.approx(2.0)
    assert learned.planned.multiplier.tolist() == pytest.approx([1 / 25])
    with pytest.raises(InputError, match=r"budget is 200, outside -60 to 180"):
        learn(Dear(), "OptCMDP", budget=200.0, **told)
    with pytest.raises(InputError, match=r"cost_range is \(1, 2\), which must hold 0"):
        learn(Dear(), "OptCMDP", budget=2.0, **(told | {"cost_range": (1.0, 2.0)}))
    with pytest.raises(InputError, match=r"cost at step 0 of episode 1 is .*pass cost_range="):
        learn(Dear(), "OptCMDP", budget=2.0, **(told | {"cost_range": (0.0, 1.0)}))


def test_what_is_beyond_its_range_stops_or_is_clipped(tmp_path):
    class Jackpot(Lever):
        pulled = 0

        def step(self, action):
            self.pulled += 1
            following, reward, *rest = super().step(action)
            return following, 7.0 if self.pulled % 50 == 0 else reward, *rest

    told = {"horizon": 4, "budget": 1.0, "episodes": 40, "evaluate": 0}
    with pytest.raises(
        EnvironmentFailed, match=r"step 1 of episode 13 is 7, outside .*clip=True"
    ) as caught:
        learn(Jackpot(), "OptCMDP", checkpoint=tmp_path, **told)
    assert caught.value.learned.episodes == 12
    assert (
        "Resumed after 12 episodes"
        in learn(Lever(), "OptCMDP", checkpoint=tmp_path, **told).summary()
    )
    clipped = learn(Jackpot(), "OptCMDP", clip=True, **told)
    assert "3 signals beyond their range were clipped" in clipped.summary()


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OptCMDP", "Triple-Q"])
def test_what_was_learned_survives_its_file(name, tmp_path):
    learned = learn(Walk((5, 6)), name, horizon=4, budget=1.0, episodes=40, evaluate=20)
    learned.save(tmp_path / "learned.npz")
    again = Learned.load(tmp_path / "learned.npz")
    assert again.summary() == learned.summary()
    assert again.policy.labels == learned.policy.labels
    np.testing.assert_array_equal(again.policy, learned.policy)
    np.testing.assert_array_equal(again.with_budget(0.5).policy, learned.with_budget(0.5).policy)
    for one, other in zip(again.state, learned.state, strict=True):
        np.testing.assert_array_equal(one, other)
    assert isinstance(again.policy, Policy)


def test_what_was_learned_is_refused_without_its_digest(tmp_path):
    learned = learn(Walk((5, 6)), "UOpt-RPGPD", horizon=4, budget=1.0, episodes=40, evaluate=20)
    learned.save(tmp_path / "learned.npz")
    arrays = dict(np.load(tmp_path / "learned.npz"))
    del arrays["digest"]
    for change in ({}, {"multiplier": np.zeros((2, 2))}, {"state_counts": np.float64(3.0)}):
        np.savez(tmp_path / "changed.npz", **(arrays | change))
        with pytest.raises(InputError, match="does not match its digest"):
            Learned.load(tmp_path / "changed.npz")


def test_the_file_of_something_else_gets_a_sentence(tmp_path):
    Policy(np.ones((2, 1))).save(tmp_path / "policy.npz")
    with pytest.raises(InputError, match="another format"):
        Learned.load(tmp_path / "policy.npz")
