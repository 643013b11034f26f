"""Learning on environments that can only be played."""

from __future__ import annotations

import io
import json
import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from live_envs import Lever, Walk, discrete
from rich.console import Console

import cmdplab
from cmdplab import InputError, learn
from cmdplab.algorithms import ALGORITHMS
from cmdplab.algorithms.row import SLATER_GAP
from cmdplab.algorithms.task import Baseline, Task
from cmdplab.errors import EnvironmentFailed, StorageError
from cmdplab.experiments import checkpoint
from cmdplab.experiments.durable import held
from cmdplab.live.checks import Asked
from cmdplab.live.episodes import roll_out
from cmdplab.live.evaluation import BLOCKS, Tally
from cmdplab.live.model.experience import Experience
from cmdplab.live.session import Standing, shown
from cmdplab.live.signals import asked_of
from cmdplab.live.spaces import Spaces
from cmdplab.statistics.intervals import estimate

FAMILIES = ("UOpt-RPGPD", "OptCMDP", "Triple-Q")


def setup(env, horizon=4, start=5, budget=2.0, rewards=(0.0, 1.0), **given):
    wanted = (budget, None, given.get("cost"), None)
    world, limit, source = asked_of(Spaces.of(env), horizon, wanted, (rewards, (0.0, 1.0)))
    asked = Asked(
        row=cmdplab.algorithm("OptCMDP"),
        setup=world,
        limit=limit,
        source=source,
        slack=None,
        seed=0,
        episodes=1,
        evaluate=2,
    )
    return asked, asked.begun(start)


def spent(state, action, following, reward, info):
    return info["cost"]


def always(action):
    return lambda h, x, u: action


NOISE = [0.5] * 20


def test_states_and_actions_are_counted_from_zero_and_sent_back_as_they_came():
    env = Walk()
    played = roll_out(env, setup(env, horizon=2)[1], always(1), NOISE, 1)
    assert played.states.tolist() == [0, 1, 2]
    assert played.actions.tolist() == [1, 1]
    assert env.at == 7


def test_after_the_end_an_absorbing_state_fills_the_episode_for_nothing():
    env = Walk()
    asked, fixed = setup(env, horizon=6)
    played = roll_out(env, fixed, always(1), NOISE, 1)
    assert played.states.tolist() == [0, 1, 2, 3, 3, 3, 3]
    assert played.actions.tolist() == [1, 1, 1, 0, 0, 0]
    assert played.signals.tolist() == [[1, 1, 1, 0, 0, 0]] * 2  # reward and cost
    assert fixed.scale.to_unit(played.signals)[1].tolist() == [0, 0, 0, 1, 1, 1]
    assert fixed.mask[:, 3].sum(axis=1).tolist() == [1] * 6  # nothing to choose there
    assert asked.task(fixed).threshold.tolist() == [6 - 2]


def test_what_would_run_longer_is_cut_at_the_horizon():
    env = Walk()
    played = roll_out(env, setup(env, horizon=3)[1], always(0), NOISE, 1)
    assert played.states.tolist() == [0, 0, 0, 0]


def test_several_start_states_take_a_step_of_their_own():
    env = Walk(starts=(6,))
    asked, fixed = setup(env, horizon=2, start="several")
    played = roll_out(env, fixed, always(1), NOISE, 1)
    assert played.states.tolist() == [4, 1, 2, 3]
    assert played.actions.tolist() == [0, 1, 1]
    assert played.signals.tolist() == [[0, 1, 1]] * 2
    task = asked.task(fixed)
    assert task.reward.shape == (2, 3, 5, 2)
    assert task.start == 4
    # A cost of 2 in 2 steps is all that the budget of 2 allows, with the free first step too.
    assert fixed.scale.to_unit(played.signals)[1].sum() == task.threshold[0] == 3 - 2


def test_several_start_states_are_noticed_before_learning():
    learned = learn(Walk(starts=(5, 6)), "OptCMDP", horizon=2, budget=1.0, episodes=20, evaluate=10)
    assert learned.policy.shape == learned.visits.shape == (2, 3, 2)
    assert learned.visits[0].sum(axis=-1).tolist() == [10, 10, 0]


def test_a_start_state_that_comes_late_is_named():
    with pytest.raises(InputError, match=r"began in state 5, and this one in 6.*several"):
        learn(Walk(starts=(5,) * 30 + (6,)), "OptCMDP", horizon=2, budget=1.0, episodes=20)


def test_the_environment_is_seeded_once():
    env = Walk()
    learn(env, "OptCMDP", horizon=2, budget=1.0, episodes=3, evaluate=2, seed=17)
    assert env.seeds[0] == 17
    assert set(env.seeds[1:]) == {None}


@pytest.mark.parametrize(
    ("space", "shown_as"),
    [
        (SimpleNamespace(shape=(4,), low=0.0), "low"),
        (SimpleNamespace(n=3), "n=3"),
        (SimpleNamespace(n=[3, 2], start=[0, 0]), "start"),
        (None, "None"),
    ],
)
@pytest.mark.parametrize("which", ["observation_space", "action_space"])
def test_other_spaces_are_refused(space, shown_as, which):
    env = Walk()
    setattr(env, which, space)
    words = which.replace("_", " ")
    with pytest.raises(InputError, match=rf"the {words} is .*{shown_as}"):
        learn(env, "OptCMDP", horizon=2, budget=1.0, episodes=2)


def test_what_is_no_environment_is_refused():
    with pytest.raises(InputError, match="int is not a Gymnasium environment"):
        learn(3, "OptCMDP", horizon=2, budget=1.0, episodes=2)


@given(
    st.floats(-100, 0),
    st.floats(0.1, 100),
    st.integers(1, 50),
    st.lists(st.floats(-5, 5), min_size=2, max_size=2),
)
def test_the_affine_map_leads_there_and_back(low, high, steps, sums):
    scale = setup(Walk(), steps, budget=0.0, rewards=(low, high))[1].scale
    values = np.array(sums)
    back = steps * scale.worst + (scale.best - scale.worst) * scale.to_unit(values, steps)
    assert back == pytest.approx(values, abs=1e-9)


def test_rewards_of_another_range_are_mapped_and_reported_as_they_were():
    class Toll(Walk):
        """Every step pays -2 until the end: the best is to leave in three steps."""

        def step(self, action):
            following, _, ended, cut, info = super().step(action)
            return following, -2.0, ended, cut, info

    env = Toll()
    fixed = setup(env, horizon=5, rewards=(-2.0, 0.0))[1]
    played = roll_out(env, fixed, always(1), NOISE, 1)
    assert fixed.scale.to_unit(played.signals)[0].tolist() == [0, 0, 0, 1, 1]
    told = {"horizon": 5, "budget": 5.0, "episodes": 300, "evaluate": 50}
    learned = learn(env, "OptCMDP", reward_range=(-2.0, 0.0), **told)
    assert learned.evaluation.objective.mean == -6.0
    assert learned.curve.mean[0, 0] <= -6.0
    assert "(r - -2) / 2" in learned.summary()


STEP = "at step 0 of episode 1"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"cost": lambda *_: 1.5}, f"the cost {STEP} is 1.5, outside"),
        ({"cost": lambda *_: float("nan")}, f"the cost {STEP} is nan, outside"),
        ({"cost": lambda *_: "much"}, f"the cost {STEP} is 'much', not a number"),
        ({"cost": lambda *_: [0.0, 1.0]}, f"the cost {STEP} is .*not a number"),
        ({"cost": [lambda *_: 0.0] * 2}, "budget holds 1 numbers for 2 functions"),
        ({"utilities": lambda *_: 1.0}, "a budget bounds cost="),
        ({"budget": None}, "pass either budget="),
        ({"threshold": 1.0}, "pass either budget="),
        ({"budget": 9.0}, "budget is 9, outside 0 to 3"),
        ({"budget": [1.0, float("nan")]}, "budget is nan"),
        ({"budget": [1.0, 1.0]}, 'tells no cost: pass cost=, or put info."costs"'),
        *(
            ({"horizon": wrong}, f"the horizon is {wrong!r}: say how many steps")
            for wrong in (None, 0, 4.0, 2.5, "4", True)
        ),
        *(
            ({what: wrong}, f"{what} is {wrong!r}, not a whole number")
            for what in ("episodes", "evaluate", "seed")
            for wrong in (5.0, "5", None, True)
        ),
        ({"budget": "a"}, "budget is not an array of real numbers"),
        ({"slater_gap": "a"}, "slater_gap is 'a', not a number"),
        ({"every": "a"}, "every is 'a', not a number"),
        *(
            ({"reward_range": wrong}, r"reward_range is .*, not \(lowest, highest\)")
            for wrong in (1, None, (0.0, 1.0, 2.0), ("0", "1"))
        ),
        ({"cost": 0.5}, r"cost= is 0.5, not a function \(state, action, next_state, reward"),
        ({"cost": [0.5]}, r"cost= is 0.5, not a function"),
        ({"cost": lambda s, a: 0.0}, r"cost= is a function of other arguments than \(state, "),
        ({"algorithm": None}, "None is no algorithm"),
        ({"mask": [[True, True]]}, r"mask must hold booleans .*\(3, 3, 2\) or \(3, 2\)"),
        ({"mask": [[True], [True, True]]}, "mask must hold booleans"),
        ({"mask": np.ones((3, 2))}, "mask must hold booleans"),
        ({"mask": lambda: [True, True]}, r"mask is a function of other arguments than \(state\)"),
        ({"mask": lambda s: [s != 6] * 2}, r"mask\[1\] leaves no action"),
        (
            {"reward_range": (0.0, 0.5)},
            rf"the reward {STEP} is 1, outside \[0, 0.5\].*reward_range",
        ),
        ({"reward_range": (1.0, 2.0)}, "must hold 0"),
        ({"reward_range": (1.0, 0.0)}, "not a lower and an upper"),
        ({"start": "many"}, "start is 'many'"),
        ({"start": 9}, "9 is outside 5 to 7"),
        ({"start": 6}, "began in state 6, and this one in 5"),
        ({"slater_gap": -1.0}, "slater_gap is -1"),
        ({"evaluate": 1}, "evaluate is 1"),
        ({"episodes": 0}, "episodes is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"every": float("nan")}, "every is nan"),
    ],
)
def test_bad_input_is_one_sentence(given, sentence):
    class Up(Walk):
        """Both actions lead up, so that the first step pays."""

        def step(self, action):
            return super().step(2)

    told = {"horizon": 3, "budget": 1.0, "episodes": 5, "evaluate": 2} | given
    with pytest.raises(InputError, match=sentence) as caught:
        learn(Up(), **({"algorithm": "OptCMDP"} | told))
    assert len(str(caught.value).splitlines()) == 1


def test_numpys_whole_numbers_are_whole_numbers():
    told = {"horizon": 4, "episodes": 7, "evaluate": 5, "seed": 3}
    plain = learn(Walk(), "OptCMDP", budget=1.0, **told)
    boxed = {name: np.int64(value) for name, value in told.items()}
    other = learn(Walk(), "OptCMDP", budget=1.0, **boxed)
    assert np.array_equal(plain.policy, other.policy)
    assert plain.evaluation == other.evaluation


class Six(Walk):
    def step(self, action):
        return (*super().step(action), 0.0)


class Four(Walk):
    def step(self, action):
        return super().step(action)[:4]


class Nothing(Walk):
    def step(self, action):
        return None


class NoInfo(Walk):
    def step(self, action):
        return (*super().step(action)[:4], None)


class Seedless(Walk):
    def reset(self):
        return super().reset()


class Wrapped(Walk):
    @property
    def unwrapped(self):
        return Seedless()


class Bare(Walk):
    def reset(self, *, seed=None):
        return super().reset(seed=seed)[0]


class Uninformed(Walk):
    def reset(self, *, seed=None):
        return super().reset(seed=seed)[0], None


class Undefined(Walk):
    def step(self, action):
        following, _, *rest = super().step(action)
        return following, float("nan"), *rest


class Text(Walk):
    def step(self, action):
        following, _, *rest = super().step(action)
        return following, "0.5", *rest


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (
            Six,
            r"returned 6 things.*FromSafety turns .* into five .step 0 of episode 1.$",
        ),
        (
            Four,
            r"returned 4 things, not five: .* truncated, info .step 0 of episode 1.$",
        ),
        (Nothing, r"step\(\) returned None, not five"),
        (NoInfo, r"step\(\) returned None as its info, not a dictionary .step 0 of episode 1.$"),
        (Seedless, r"reset\(\) of Seedless takes no seed=: it must$"),
        (Wrapped, r"reset\(\) of Seedless takes no seed="),
        (Bare, r"reset\(\) returned 5, not \(observation, info\)$"),
        (Uninformed, r"reset\(\) returned None as its info, not a dictionary$"),
        (Undefined, r"the reward at step 0 of episode 1 is nan, outside \[0, 1\]$"),
        (Text, r"the reward at step 0 of episode 1 is '0.5', not a number$"),
    ],
)
def test_an_environment_that_is_not_like_gymnasiums_is_one_sentence(kind, sentence):
    with pytest.raises(InputError, match=sentence):
        learn(kind(), "OptCMDP", horizon=3, budget=1.0, episodes=5)


class Gate(Walk):
    """State 6 has no way back to itself: staying, action 1, is closed there, as the info says."""

    told = True

    def reset(self, *, seed=None):
        return super().reset(seed=seed)[0], self._mask()

    def step(self, action):
        assert not (self.at == 6 and action == 1)
        *rest, info = super().step(action)
        return *rest, info | self._mask()

    def _mask(self):
        return {"action_mask": np.array([self.at != 6, True], dtype=np.int8)} if self.told else {}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("starts", [(5,), (6,), (5, 6)])
def test_what_an_environment_tells_of_closed_actions_is_kept(name, starts, tmp_path):
    told = {"horizon": 4, "budget": 3.0, "evaluate": 10, "checkpoint": tmp_path}
    learned = learn(Gate(starts), name, episodes=30, **told)
    assert not learned.visits[:, 1, 0].any()
    for policy in (learned.policy, learned.last, learned.planned.policy):
        assert not policy[:, 1, 0].any()
    again = learn(Gate(starts), name, episodes=60, **told)  # from the checkpoint, mask included
    assert not again.visits[:, 1, 0].any()


def test_a_mask_that_an_environment_tells_has_an_entry_for_each_action():
    class Short(Gate):
        def step(self, action):
            *rest, info = super().step(action)
            return *rest, info | {"action_mask": [1, 1, 1]}

    with pytest.raises(InputError, match=r"not 0 or 1 for each action .step 1 of episode 1"):
        learn(Short(), "OptCMDP", horizon=4, budget=3.0, episodes=5)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("starts", [(5,), (5, 6)])
@pytest.mark.parametrize(
    "mask",
    [
        np.array([[True, True], [False, True], [True, True]]),
        np.broadcast_to([[True, True], [False, True], [True, True]], (4, 3, 2)),
        lambda state: [state != 6, True],
    ],
)
def test_a_closed_action_is_never_taken(name, starts, mask):
    """The environment asserts it; the policy gives it the probability zero."""
    told = {"horizon": 4, "budget": 3.0, "episodes": 60, "evaluate": 20}
    learned = learn(Gate(starts), name, mask=mask, **told)
    assert learned.visits[:, 1, 0].sum() == 0
    assert learned.visits[:, 1, 1].sum() > 0
    assert not learned.policy[:, 1, 0].any()


def test_a_mask_may_change_with_the_step():
    mask = np.ones((4, 1, 2), dtype=bool)
    mask[2, 0, 1] = False
    learned = learn(Lever(), "OptCMDP", horizon=4, budget=4.0, mask=mask, episodes=40, evaluate=5)
    assert (learned.visits[:, 0, 1] > 0).tolist() == [True, True, False, True]


def test_a_mask_with_nothing_closed_says_that_all_may_be_tried():
    class Idle(Gate):
        def step(self, action):
            return (*Walk.step(self, action)[:4], {"cost": 0.0} | self._mask())

    told = {"horizon": 4, "budget": 3.0, "episodes": 60, "evaluate": 20}
    learned = learn(Idle(), "UOpt-RPGPD", mask=np.ones((3, 2), dtype=bool), **told)
    assert learned.visits[:, 1, 0].sum() > 0


@pytest.mark.parametrize("name", FAMILIES)
def test_inventory_is_learned_with_its_mask(name):
    gymnasium = pytest.importorskip("gymnasium")
    gym = pytest.importorskip("cmdplab.gym")
    env = gymnasium.make(gym.identifier("inventory"), strict=True)
    mask = env.unwrapped.problem.mask
    told = {"horizon": 7, "budget": 3.5, "episodes": 300, "evaluate": 50}
    learned = learn(env, name, mask=mask, **told)
    assert not learned.visits[~mask].any()
    assert not learned.policy[~mask].any()
    untold = learn(env, name, **told)  # our environments know their masks
    assert not untold.visits[~mask].any()


class Limited(Walk):
    """Truncated after three steps, unless it ended before."""

    def reset(self, *, seed=None):
        self.left = 3
        return super().reset(seed=seed)

    def step(self, action):
        self.left -= 1
        following, reward, ended, _, info = super().step(action)
        return following, reward, ended, self.left == 0, info


def test_truncation_before_the_horizon_is_noted(tmp_path):
    """Only staying is open, so that every episode is cut: 20 of learning."""
    told = {"budget": 3.0, "evaluate": 5, "mask": lambda state: [True, False]}
    early = learn(Limited(), "OptCMDP", horizon=5, episodes=20, **told)
    assert "20 episodes were truncated before step 5" in early.summary()
    for horizon in (2, 3):  # at the horizon itself nothing is lost
        assert (
            "truncated"
            not in learn(
                Limited(), "OptCMDP", horizon=horizon, episodes=20, **(told | {"budget": 2.0})
            ).summary()
        )
    up = told | {"mask": lambda state: [False, True]}  # which ends in the very step of the limit
    assert "truncated" not in learn(Limited(), "OptCMDP", horizon=5, episodes=20, **up).summary()
    kept = told | {"horizon": 5, "checkpoint": tmp_path}
    learn(Limited(), "OptCMDP", episodes=8, **kept)
    resumed = learn(Limited(), "OptCMDP", episodes=20, **kept)
    assert "20 episodes were truncated before step 5" in resumed.summary()


def test_a_policy_beyond_memory_is_refused_before_it_is_made():
    class Huge(Walk):
        observation_space = discrete(10_000_000, 5)

    with pytest.raises(InputError, match="10000001 states, 2 actions and 3 steps are a policy of"):
        learn(Huge(), "OptCMDP", horizon=3, budget=1.0, episodes=5)


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OptCMDP"])
def test_many_states_of_which_few_are_seen_are_learned(name):
    class Wide(Walk):
        observation_space = discrete(50_000, 5)  # a table of counts would take 40 GB

    learned = learn(Wide(), name, horizon=3, budget=1.0, episodes=5, evaluate=2)
    assert learned.visits.sum() >= 15


def test_algorithms_that_must_be_told_more_say_so():
    told = {"horizon": 3, "budget": 1.0, "episodes": 5, "evaluate": 2}
    with pytest.raises(InputError, match=r"OPDOP needs the Slater gap.*slater_gap="):
        learn(Walk(), "OPDOP", **told)
    assert learn(Walk(), "OPDOP", slater_gap=1.0, **told).episodes == 5
    with pytest.raises(InputError, match="DOPE needs a safe policy"):
        learn(Walk(), "DOPE", **told)
    with pytest.raises(InputError, match=r"RPG-PD learns nothing: .* here nobody knows it"):
        learn(Walk(), "RPG-PD", **told)


BLIND = [row for row in ALGORITHMS.values() if SLATER_GAP not in row.needs]


@pytest.mark.parametrize("row", BLIND, ids=lambda row: f"{row.name}-{row.preset}")
def test_rows_that_ask_for_no_slater_gap_read_none(row):
    safe = Baseline(np.full((3, 4, 2), 0.5), np.array([0.0, 1.5]))
    tasks = [Task(np.zeros((2, 3, 4, 2)), np.ones(1), 0, slack, safe) for slack in (0.5, 1.0)]
    assert row.numbers(tasks[0]) == row.numbers(tasks[1])
    if hasattr(row, "schedule"):
        assert np.array_equal(*(row.schedule(task, 1, 50) for task in tasks))


def test_costs_and_utilities_say_the_same_in_two_ways():
    told = {"horizon": 2, "episodes": 60, "evaluate": 10}
    by_cost = learn(Walk(), "OptCMDP", budget=0.5, **told)
    by_utility = learn(Walk(), "OptCMDP", threshold=1.5, **told)
    assert np.array_equal(by_cost.policy, by_utility.policy)
    assert by_cost.evaluation.constrained[0].mean == pytest.approx(
        2 - by_utility.evaluation.constrained[0].mean
    )
    assert "cost" in by_cost.summary()
    assert "at least 1.5 wanted" in by_utility.summary()


@pytest.mark.parametrize("name", ["OptCMDP", "UOpt-RPGPD"])
def test_a_lever_is_pulled_as_often_as_the_budget_allows(name):
    learned = learn(Lever(), name, horizon=4, budget=1.0, episodes=4000, evaluate=4000)
    assert learned.evaluation.objective.mean == pytest.approx(1.0, abs=0.1)
    assert learned.evaluation.constrained[0].mean == learned.evaluation.objective.mean
    assert learned.multiplier == pytest.approx([1.0], abs=0.15)
    assert learned.visits.sum(axis=(1, 2)).tolist() == [4000] * 4


def test_multipliers_are_in_the_users_units():
    class Gold(Lever):
        def step(self, action):
            return 0, 10.0 * action, False, False, {"cost": float(action)}

    told = {"horizon": 4, "budget": 1.0, "episodes": 500, "evaluate": 10}
    paid = learn(Gold(), "OptCMDP", reward_range=(0.0, 10.0), **told)
    plain = learn(Lever(), "OptCMDP", **told)
    assert paid.multiplier == pytest.approx(10 * plain.multiplier)
    assert paid.evaluation.objective.mean == 10 * plain.evaluation.objective.mean


@pytest.mark.parametrize("name", FAMILIES)
def test_a_resumed_learner_equals_one_that_was_never_interrupted(name, tmp_path):
    told = {"horizon": 4, "budget": 1.5, "evaluate": 20}
    whole = learn(Walk(), name, episodes=60, **told)
    learn(Walk(), name, episodes=23, checkpoint=tmp_path / "run", **told)
    resumed = learn(Walk(), name, episodes=60, checkpoint=tmp_path / "run", **told)
    for what in ("policy", "multiplier", "visits"):
        assert np.array_equal(getattr(resumed, what), getattr(whole, what))
    assert all(map(np.array_equal, resumed.curve, whole.curve))
    assert resumed.evaluation == whole.evaluation
    assert "Resumed after 23 episodes: the environment was seeded anew." in resumed.summary()


def test_a_resumed_environment_is_seeded_anew(tmp_path):
    told = {"horizon": 4, "budget": 1.5, "evaluate": 2, "checkpoint": tmp_path, "seed": 3}
    learn(Walk(), "OptCMDP", episodes=5, **told)
    env = Walk()
    learn(env, "OptCMDP", episodes=6, **told)
    assert env.seeds[0] not in (None, 3)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"budget": 1.0}, r"cost is \[1.5\] there and \[1.0\] here"),
        ({"horizon": 3}, "horizon is 4 there and 3 here"),
        ({"algorithm": "Triple-Q"}, "algorithm is OptCMDP .printed. there"),
        ({"algorithm": cmdplab.algorithm("OptCMDP").with_settings(delta=0.2)}, "constants is"),
        ({"start": "several"}, "start is 5 there and several here"),
        ({"episodes": 2}, "has 5 episodes, beyond 2"),
        ({"mask": np.eye(3, 2, dtype=bool) | [False, True]}, "mask is none there and"),
        ({"cost": spent}, "source of cost is info there and spent here"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(given, sentence, tmp_path):
    told = {"algorithm": "OptCMDP", "horizon": 4, "budget": 1.5, "evaluate": 2, "episodes": 5}
    learn(Walk(), checkpoint=tmp_path, **told)
    with pytest.raises(InputError, match=sentence):
        learn(Walk(), checkpoint=tmp_path, **(told | given))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_stop_leaves_a_checkpoint_to_go_on_from(number, tmp_path):
    told = {"horizon": 4, "budget": 1.5, "evaluate": 10}
    whole = learn(Walk(), "UOpt-RPGPD", episodes=40, **told)

    class Pressed(Walk):
        def step(self, action):
            if self.resets == 40:
                self.resets += 1
                os.kill(os.getpid(), number)
            return super().step(action)

    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        learn(Pressed(), "UOpt-RPGPD", episodes=40, checkpoint=tmp_path, **told)
    assert signal.getsignal(number) is before
    resumed = learn(Walk(), "UOpt-RPGPD", episodes=40, checkpoint=tmp_path, **told)
    assert "Resumed after" in resumed.summary()
    assert np.array_equal(resumed.policy, whole.policy)


def pressing(stops):
    """A walk whose 40th episode raises, or presses Ctrl-C so many times while `step` blocks."""

    class Raising(Walk):
        def step(self, action):
            if self.resets == 40:
                self.resets += 1
                if isinstance(stops, int):
                    for _ in range(stops):
                        os.kill(os.getpid(), signal.SIGINT)
                else:
                    raise stops
            return super().step(action)

    return Raising()


@pytest.mark.parametrize("stops", [2, KeyboardInterrupt(), SystemExit(1), GeneratorExit()])
def test_an_interruption_of_step_leaves_all_episodes_before(stops, tmp_path):
    told = {"horizon": 4, "budget": 1.5, "evaluate": 10}
    whole = learn(Walk(), "UOpt-RPGPD", episodes=40, **told)
    left = isinstance(stops, SystemExit | GeneratorExit)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(EnvironmentFailed if left else KeyboardInterrupt) as caught:
        learn(pressing(stops), "UOpt-RPGPD", episodes=40, checkpoint=tmp_path, every=1e9, **told)
    assert signal.getsignal(signal.SIGINT) is before
    if left:
        assert f"raised {type(stops).__name__}" in str(caught.value)
        assert caught.value.learned.episodes == 18
    resumed = learn(Walk(), "UOpt-RPGPD", episodes=40, checkpoint=tmp_path, **told)
    assert "Resumed after 18 episodes" in resumed.summary()
    assert np.array_equal(resumed.last, whole.last)


def test_an_interruption_waits_for_a_learner_that_takes_an_episode(tmp_path, monkeypatch):
    told = {"horizon": 4, "budget": 1.5, "evaluate": 10}
    whole = learn(Walk(), "UOpt-RPGPD", episodes=40, **told)
    add = Experience.add

    def pressed(self, *episode):
        if not self.horizon and self.episodes == 20:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
        add(self, *episode)

    monkeypatch.setattr(Experience, "add", pressed)
    with pytest.raises(KeyboardInterrupt):
        learn(Walk(), "UOpt-RPGPD", episodes=40, checkpoint=tmp_path, every=1e9, **told)
    monkeypatch.undo()
    resumed = learn(Walk(), "UOpt-RPGPD", episodes=40, checkpoint=tmp_path, **told)
    assert "Resumed after 21 episodes" in resumed.summary()
    assert np.array_equal(resumed.last, whole.last)


@pytest.mark.parametrize(
    ("shown", "sentence"),
    [
        ({"observation": None}, "None is not a whole number"),
        ({"observation": "6"}, "'6' is not a whole number"),
        ({"observation": float("nan")}, "nan is not a whole number"),
        ({"reward": None}, f"the reward {STEP} is None, not a number"),
        ({"reward": np.ones(1)}, rf"the reward {STEP} is array\(\[1.\]\), not a number"),
        ({"terminated": "no"}, "returned 'no' as terminated, not True or False"),
        ({"terminated": None}, "returned None as terminated, not True or False"),
        ({"truncated": [False]}, r"returned \[False\] as truncated, not True or False"),
        ({"info": {"cost": None}}, f"the cost {STEP} is None, not a number"),
    ],
)
def test_wrong_types_of_an_environment_are_one_sentence(shown, sentence):
    class Wrong(Walk):
        def step(self, action):
            names = ("observation", "reward", "terminated", "truncated", "info")
            return tuple((dict(zip(names, super().step(action), strict=True)) | shown).values())

    with pytest.raises(EnvironmentFailed, match=sentence) as caught:
        learn(Wrong(), "OptCMDP", horizon=3, budget=1.0, episodes=5, evaluate=2)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("ended", [np.bool_(True), 1, np.array(True)])
def test_an_end_may_be_a_number_of_numpy(ended):
    class Ending(Walk):
        def step(self, action):
            following, reward, over, cut, info = super().step(action)
            return following, reward, ended if over else False, cut, info

    told = {"horizon": 6, "budget": 3.0, "episodes": 20, "evaluate": 2}
    plain, other = (learn(kind(), "OptCMDP", **told) for kind in (Walk, Ending))
    assert np.array_equal(plain.policy, other.policy)


def test_checkpoints_are_left_on_the_way(tmp_path):
    class Breaking(Walk):
        def step(self, action):
            if self.resets == 40:
                raise RuntimeError("the environment broke")
            return super().step(action)

    told = {"horizon": 4, "budget": 1.5, "episodes": 60, "evaluate": 10, "checkpoint": tmp_path}
    done = 40 - 21 - 1  # of 40 resets one seeds, twenty look, and the last one broke
    sentence = r"raised RuntimeError: the environment broke \(step 0 of episode 19\)"
    with pytest.raises(EnvironmentFailed, match=sentence) as caught:
        learn(Breaking(), "OptCMDP", every=1e9, **told)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.learned.episodes == done
    assert caught.value.learned.plan().policy.shape == (4, 3, 2)
    assert f"Resumed after {done} episodes" in learn(Walk(), "OptCMDP", **told).summary()


def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_taken(tmp_path):
    told = {"horizon": 4, "budget": 1.5, "evaluate": 10, "checkpoint": tmp_path}
    learn(Walk(), "OptCMDP", episodes=7, every=0.0, **told)
    (tmp_path / checkpoint.NEWEST).write_bytes(b"damaged")
    learned = learn(Walk(), "OptCMDP", episodes=9, **told)
    assert "set aside" in learned.summary()
    assert "Resumed after 7 episodes" in learned.summary()  # saved twice: after it and at the end


def test_two_processes_cannot_learn_in_one_folder(tmp_path):
    with held(tmp_path), pytest.raises(StorageError, match="another process learns in"):
        learn(Walk(), "OptCMDP", horizon=4, budget=1.5, episodes=5, checkpoint=tmp_path)


def test_an_estimate_is_the_normal_interval_within_the_bounds():
    found = estimate(100, 50.0, 50.0, (0.0, 1.0))  # fifty zeros and fifty ones
    half = 1.959963985 * np.sqrt(25 / 99 / 100)
    assert found == pytest.approx((0.5 - half, 0.5, 0.5 + half, 100))
    assert estimate(2, 1.0, 1.0, (0.0, 1.0))[::2] == (0.0, 1.0)


def test_an_interval_does_not_vanish_where_all_episodes_agree():
    found = estimate(100, 300.0, 900.0, (0.0, 4.0))
    p = 1 - 0.025 ** (1 / 100)  # would be seen in 100 episodes with probability 0.975
    assert found == pytest.approx((3 - 3 * p, 3, 3 + p, 100))


def test_blocks_hold_the_means_of_consecutive_episodes():
    tally, values = Tally(2), np.random.default_rng(0).normal(size=(3 * BLOCKS + 5, 2))
    for each in values:
        tally.add(each)
    curve = tally.curve()
    assert curve.episodes.sum() == curve.last[-1] == len(values)
    assert BLOCKS <= len(curve.last) < 2 * BLOCKS
    assert curve.mean == pytest.approx(
        np.array([each.mean(axis=0) for each in np.split(values, curve.last[:-1])])
    )
    late = tally.evaluation(np.array([[-9.0, -9.0], [9.0, 9.0]]), 0.1)
    n = late.objective.episodes
    assert 0.09 * len(values) <= n <= 0.1 * len(values)
    assert late.objective.mean == pytest.approx(values[-n:, 0].mean())


def test_the_summary_says_that_nothing_is_exact():
    learned = learn(Lever(), "OptCMDP", horizon=4, budget=1.0, episodes=50, evaluate=10)
    assert "no exact value" in learned.summary()
    assert "tuned for" not in learned.summary()


def test_progress_counts_both_phases_and_is_printed():
    seen = []
    learn(
        Lever(), "OptCMDP", horizon=4, budget=1.0, episodes=70, evaluate=30, on_progress=seen.append
    )
    ends = {at.phase: at.episodes for at in seen}
    assert ends == {"learning": 70, "evaluating": 30, "evaluating the plan": 30}
    for terminal in (False, True):
        screen = io.StringIO()
        with shown("lever", Console(file=screen, force_terminal=terminal, width=100)) as report:
            report(Standing("learning", 70, 70, 10.0, "reward 1.000"))
        assert "lever learning" in screen.getvalue()
        assert "reward 1.000" in screen.getvalue()


def test_frozen_lake_can_be_learned():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1")
    told = {"horizon": 20, "budget": 2.0, "cost": lambda s, a, y, r, info: 0.25 * (a in (1, 2))}
    learned = learn(env, "UOpt-RPGPD", episodes=200, evaluate=50, **told)
    assert learned.policy.shape == (20, 16, 4)
    assert learned.policy.sum(axis=-1) == pytest.approx(np.ones((20, 16)))
    holes = [5, 7, 11, 12]
    assert not learned.visits[:, holes].any()  # the episode ends there


def test_a_checkpoint_whose_scale_was_chosen_on_the_way_is_refused(tmp_path):
    told = {"horizon": 3, "budget": 1.0, "evaluate": 0, "checkpoint": tmp_path}
    learn(Walk(), "UOpt-RPGPD", episodes=5, **told)
    arrays = checkpoint.find(tmp_path).snapshot
    stated = json.loads(str(arrays["settings"])) | {"bonus_scale": "auto"}
    checkpoint.save(tmp_path, arrays | {"settings": np.array(json.dumps(stated))})
    with pytest.raises(InputError, match="bonus_scale is auto there and fixed here"):
        learn(Walk(), "UOpt-RPGPD", episodes=9, **told)
    with pytest.raises(InputError, match="bonus_scale is 'auto', not a"):
        learn(Walk(), "UOpt-RPGPD", episodes=9, bonus_scale="auto", **told)
