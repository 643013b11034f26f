"""Spaces of other kinds than Discrete, as numbers there and back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from live_envs import Walk, discrete

from cmdplab import InputError, learn
from cmdplab.live import Grid, Quantiles
from cmdplab.live.codes import Cells, described, names, restored
from cmdplab.live.spaces import Spaces

gymnasium = pytest.importorskip("gymnasium")
spaces = gymnasium.spaces


def of(observed, chosen=None, **given):
    env = Walk()
    env.observation_space = observed
    env.action_space = discrete(2) if chosen is None else chosen
    return Spaces.of(env, **given)


small = st.integers(1, 4)
plain = st.one_of(
    st.builds(spaces.Discrete, small, start=st.integers(-3, 3)),
    st.builds(lambda n, m: spaces.MultiDiscrete([n, m], start=[1, -2]), small, small),
    st.builds(lambda n, m: spaces.MultiDiscrete([[n, 2], [1, m]]), small, small),
    st.builds(spaces.MultiBinary, st.sampled_from([1, 3, (2, 2)])),
)
nested = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=2).map(spaces.Tuple),
        st.lists(inner, min_size=1, max_size=2).map(
            lambda parts: spaces.Dict({f"part {n}": each for n, each in enumerate(parts)})
        ),
    ),
    max_leaves=3,
)


@given(nested)
def test_every_number_is_a_value_of_the_space_and_comes_back(space):
    found = of(space, space)
    code = found.observed
    assert code == found.chosen
    for n in range(min(code.size, 50)):
        value = code.value(n)
        assert space.contains(value)
        assert code.number(value) == n
    for _ in range(5):
        value = space.sample()
        assert 0 <= code.number(value) < code.size
    assert restored(json.loads(json.dumps(described(code)))) == code
    assert len(set(names(code))) == len(names(code))


def test_names_are_kept():
    cards = of(spaces.Tuple([spaces.Discrete(3), spaces.Discrete(2, start=1)]))
    assert cards.labels.states == ("(0, 1)", "(0, 2)", "(1, 1)", "(1, 2)", "(2, 1)", "(2, 2)")
    door = spaces.Dict({"door": spaces.Discrete(2), "key": spaces.MultiBinary(1)})
    assert of(door).labels.states == (
        "door=0, key=0",
        "door=0, key=1",
        "door=1, key=0",
        "door=1, key=1",
    )
    assert of(spaces.Discrete(2, start=5)).labels.states == ("5", "6")
    assert of(spaces.Discrete(2)).labels.states == ()


@given(st.integers(1, 5), st.integers(1, 5), st.floats(-2, 3), st.floats(-10, 10))
def test_a_grid_has_cells_of_equal_width_that_go_on_beyond_the_bounds(n, m, first, second):
    box = spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 4.0]), dtype=np.float64)
    found = of(box, discretise=Grid((n, m)))
    cell = [
        min(max(int(np.floor((first + 1.0) / 2.0 * n)), 0), n - 1),
        min(max(int(np.floor(second / 4.0 * m)), 0), m - 1),
    ]
    number = found.state(np.array([first, second]))
    near = abs((first + 1.0) / 2.0 * n % 1.0) < 1e-9 or abs(second / 4.0 * m % 1.0) < 1e-9
    assert near or number == cell[0] * m + cell[1]
    assert found.state(found.observation(number)) == number


def test_quantiles_hold_equal_shares_of_what_was_seen():
    seen = [np.array([v]) for v in np.random.default_rng(0).exponential(size=1000)]
    box = spaces.Box(-np.inf, np.inf, (1,))
    found = of(box, discretise=Quantiles(4), warm_up=lambda actions, episodes: seen)
    share = np.bincount([found.state(each) for each in seen]) / 1000
    np.testing.assert_allclose(share, 0.25, atol=0.002)
    same = [np.array([v]) for v in (0.0, 0.0, 0.0, 1.0)]
    assert of(box, discretise=Quantiles(4), warm_up=lambda a, e: same).states <= 3


def test_points_of_a_box_of_actions_include_its_ends():
    box = spaces.Box(-2.0, 2.0, (1,))
    found = of(discrete(1), box, discretise=Grid(3, actions=5))
    assert [float(found.action(n)[0]) for n in range(5)] == [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert found.labels.actions == ("-2", "-1", "0", "1", "2")


BOX = spaces.Box(-1.0, 1.0, (2,))


@pytest.mark.parametrize(
    ("space", "given", "sentence"),
    [
        (BOX, {}, r"Box.*pass discretise=, for instance cmdplab.live.Grid"),
        (BOX, {"discretise": 6}, "discretise is 6, not cmdplab.live.Grid or Quantiles"),
        (BOX, {"discretise": Grid((2, 2, 2))}, "bins has 3 numbers for 2 dimensions"),
        (BOX, {"discretise": Grid(0)}, "bins is 0"),
        (BOX, {"discretise": Grid(10_000)}, "more than 10,000,000 states.*fewer bins"),
        (spaces.Box(-np.inf, 1.0, (1,)), {"discretise": Grid(2)}, r"dimension 0 .*\[-inf, 1\]"),
        (spaces.Box(0, 255, (84, 84), np.uint8), {"discretise": Grid(2)}, "more than 10,000,000"),
        (spaces.Text(3), {}, "Text.*Discrete, MultiDiscrete, MultiBinary, Box, Tuple and Dict"),
    ],
)
def test_spaces_that_cannot_be_counted_are_refused(space, given, sentence):
    with pytest.raises(InputError, match=sentence):
        of(space, **given)


def test_a_box_of_actions_needs_points():
    with pytest.raises(InputError, match=r"in how many points, Grid\(actions=5\)"):
        of(discrete(1), BOX, discretise=Grid(2))


@pytest.mark.parametrize("value", [float("nan"), "left", None])
def test_what_is_no_number_is_in_no_cell(value):
    with pytest.raises(InputError, match="is not a number"):
        Cells((0.0,), (-1.0, 1.0)).number(value)


class Doors(Walk):
    """The walk of three states, observed as a Dict and steered by MultiBinary, one bit for up."""

    observation_space = spaces.Dict(
        {"at": spaces.Discrete(3, start=5), "lit": spaces.MultiBinary(1)}
    )
    action_space = spaces.MultiBinary(1)

    def reset(self, *, seed=None):
        return {"at": super().reset(seed=seed)[0], "lit": np.array([1], np.int8)}, {}

    def step(self, action):
        assert self.action_space.contains(action)
        at, *rest = super().step(1 + int(action[0]))
        return {"at": at, "lit": np.array([1], np.int8)}, *rest


def test_an_environment_of_other_spaces_is_learned_and_acted_in_by_its_own_words():
    learned = learn(Doors(), "OptCMDP", horizon=4, budget=2.0, episodes=60, evaluate=50)
    plain = learn(Walk(), "OptCMDP", horizon=4, budget=2.0, episodes=60, evaluate=50)
    assert learned.planned.promised.objective.mean == plain.planned.promised.objective.mean
    assert learned.policy.labels.states[1] == "at=5, lit=1"
    actor, (observation, _) = learned.actor(), Doors().reset()
    assert Doors.action_space.contains(actor(observation))


def test_too_many_pairs_for_the_episodes_are_spoken_of():
    learned = learn(Walk(), "OptCMDP", horizon=2, budget=1.0, episodes=3, evaluate=0)
    assert (
        "3 states x 2 actions are 6 pairs, and 3 episodes have at most 6 steps" in learned.summary()
    )


def test_blackjack_is_learned_as_it_is():
    env = gymnasium.make("Blackjack-v1")

    def bust(state, action, following, reward, info):
        return float(action == 1 and reward == -1.0)

    told = {"cost": bust, "budget": 0.1, "reward_range": (-1.0, 1.0)}
    learned = learn(env, "OptCMDP", horizon=6, episodes=200, evaluate=20, **told)
    assert learned.policy.labels.states[0] == "(0, 0, 0)"
    assert learned.policy.states == 32 * 11 * 2


@pytest.mark.parametrize("cells", [Grid((4, 5, 5), actions=3), Quantiles(3, episodes=3, actions=3)])
def test_a_pendulum_is_learned_on_cells(cells):
    env = gymnasium.make("Pendulum-v1", max_episode_steps=20)

    def effort(state, action, following, reward, info):
        return abs(float(action[0])) / 2.0

    told = {"cost": effort, "budget": 5.0, "reward_range": (-17.0, 0.0), "discretise": cells}
    learned = learn(env, "UOpt-RPGPD", horizon=20, episodes=5, evaluate=2, **told)
    assert learned.policy.actions == 3
    assert 0.0 <= learned.evaluation.constrained[0].mean <= 20.0
