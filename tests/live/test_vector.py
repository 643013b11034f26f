"""Copies of an environment that are played together learn as one does."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Dict, Discrete, Tuple
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from live_envs import Walk

import cmdplab
import cmdplab.gym
from cmdplab import learn
from cmdplab.errors import EnvironmentFailed
from cmdplab.live.environment import Copies
from cmdplab.numerics.noise import uniforms

MODES = tuple(AutoresetMode)


def holes(state, action, following, reward, info):
    return float(following in (5, 7, 11, 12))


TOLD = {"horizon": 12, "cost": holes, "budget": 0.3}


def lake():
    return gymnasium.make("FrozenLake-v1", max_episode_steps=10**6)


def copies(count, mode=AutoresetMode.NEXT_STEP, make=lake):
    return SyncVectorEnv([make] * count, autoreset_mode=mode)


def same(first, second):
    np.testing.assert_array_equal(first.policy, second.policy)
    np.testing.assert_array_equal(first.last, second.last)
    np.testing.assert_array_equal(first.visits, second.visits)
    np.testing.assert_array_equal(first.curve.mean, second.curve.mean)
    assert first.evaluation == second.evaluation


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OptCMDP", "Triple-Q"])
def test_one_copy_learns_what_the_environment_alone_teaches_to_the_last_bit(name):
    alone = learn(lake(), name, episodes=60, evaluate=30, seed=4, **TOLD)
    same(alone, learn(copies(1), name, episodes=60, evaluate=30, seed=4, **TOLD))


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_every_way_of_resetting_counts_what_happened_and_no_more(mode):
    # Five copies in 32 episodes: the last batch plays more than it may count.
    heard: list = []

    def make():
        return _Heard(lake(), heard)

    learned = learn(copies(5, mode, make), "UOpt-RPGPD", episodes=32, evaluate=0, **TOLD)
    assert learned.episodes == learned.seen.episodes == 32
    moves = learned.seen.entries()
    world: Any = lake().unwrapped
    real = world.P
    for x, a, y in zip(moves.state, moves.action, moves.following, strict=True):
        possible = {int(s) for _, s, _, end in real[int(x)][int(a)] if not end}
        ends = any(end for *_, end in real[int(x)][int(a)])
        assert y == 17 or (y == 16 and ends) or int(y) in possible
    # Nothing leads from the state before an end to a new beginning, unless the lake does.
    counted = {(x, a) for x, a in zip(moves.state.tolist(), moves.action.tolist(), strict=True)}
    assert counted <= set(heard)


class _Heard(gymnasium.Wrapper):
    """Keeps pairs."""

    def __init__(self, env, heard):
        super().__init__(env)
        self.heard, self.at = heard, 0

    def reset(self, **given):
        self.at, info = self.env.reset(**given)
        return self.at, info

    def step(self, action):
        self.heard.append((self.at, int(action)))
        told = self.env.step(action)
        self.at = told[0]
        return told


def test_policies_are_frozen_within_a_batch():
    # The first policy is uniform over four actions: all of the first batch are drawn from it.
    heard: list[list[int]] = []

    class Watched(gymnasium.Wrapper):
        def reset(self, **given):
            self.mine: list[int] = []
            heard.append(self.mine)
            return self.env.reset(**given)

        def step(self, action):
            self.mine.append(int(action))
            return self.env.step(action)

    env = SyncVectorEnv([lambda: Watched(lake())] * 4)
    learn(env, "UOpt-RPGPD", episodes=4, evaluate=0, start=0, seed=7, **TOLD)
    drawn = np.floor(4.0 * uniforms(7, 1, 4, 12)[:, :, 0]).astype(int).tolist()
    played = [each for each in heard if each][:4]
    lengths = [int(each.sum()) for each in _lengths(played)]
    assert [a[:n] for a, n in zip(played, lengths, strict=True)] == [
        a[:n] for a, n in zip(drawn, lengths, strict=True)
    ]
    assert max(lengths) > 3


def _lengths(played):
    """Flags of the steps of each episode: those of the same lake with the same numbers."""
    for i, actions in enumerate(played):
        env = lake()
        env.reset(seed=7 + i)
        env.reset()
        ended, flags = False, []
        for action in actions:
            if ended:
                break
            _, _, ended, *_ = env.step(action)
            flags.append(1)
        yield np.array(flags)


@pytest.mark.parametrize("problem", ["media-streaming", "inventory"])
def test_our_own_vector_environments_tell_horizon_costs_and_masks(problem):
    env = gymnasium.make_vec(cmdplab.gym.identifier(problem), num_envs=3)
    learned = learn(env, "UOpt-RPGPD", episodes=7, evaluate=0)
    known = cmdplab.make(problem)
    assert learned.policy.shape[0] == known.horizon
    assert learned.visits.sum() == 7 * known.horizon
    assert not learned.visits[~known.opened].any()


class Pairs(gymnasium.Env):
    """Observations (n, m), actions {"go": 0 or 1}; tells a mask and costs."""

    observation_space = Tuple((Discrete(3), Discrete(2)))
    action_space = Dict({"go": Discrete(2)})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return (0, 0), {"action_mask": np.array([1, 1], np.int8)}

    def step(self, action):
        self.at += int(action["go"])
        mask = np.array([self.at > 1, self.at <= 1], np.int8)
        told = {"cost": float(action["go"]), "action_mask": mask}
        return (min(self.at, 2), self.at % 2), float(self.at), self.at > 2, False, told


def test_spaces_of_several_parts_and_what_is_told_reach_the_learner():
    told = {"horizon": 4, "budget": 2.0, "reward_range": (0.0, 3.0)}
    alone = learn(Pairs(), "UOpt-RPGPD", episodes=30, evaluate=10, **told)
    same(alone, learn(copies(1, make=Pairs), "UOpt-RPGPD", episodes=30, evaluate=10, **told))
    three = learn(copies(3, make=Pairs), "UOpt-RPGPD", episodes=30, evaluate=10, **told)
    assert three.world.opened is not None
    assert three.visits.sum() == pytest.approx(alone.visits.sum(), rel=0.3)


def test_an_end_shows_where_it_ended_also_where_copies_begin_anew_in_the_same_step():
    env = Copies(copies(2, AutoresetMode.SAME_STEP))
    env.reset(seed=0)
    rng, ends = np.random.default_rng(0), 0
    for _ in range(200):
        for observation, _, ended, _, info in env.step_all(rng.integers(0, 4, 2).tolist()):
            assert ended == (observation in (5, 7, 11, 12, 15))
            assert set(info) == {"prob"}
            ends += ended
    assert ends > 10


def test_a_copy_that_fails_is_named_by_its_episode():
    class Broken(Walk, gymnasium.Env):  # type: ignore[misc]
        observation_space = Discrete(3, start=5)
        action_space = Discrete(2, start=1)

        def reset(self, *, seed=None, options=None):
            return Walk.reset(self, seed=seed)

        def step(self, action):
            observation, reward, *rest, info = super().step(action)
            return observation, "much" if self.resets > 24 else reward, *rest, info

    env = SyncVectorEnv([Broken] * 2)
    with pytest.raises((EnvironmentFailed, cmdplab.InputError), match="episode"):
        learn(env, "UOpt-RPGPD", episodes=40, evaluate=0, horizon=3, budget=1.0)
