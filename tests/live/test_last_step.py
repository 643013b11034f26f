"""Where the last of H steps led is no transition of the others: time may have ended the episode."""

from __future__ import annotations

from collections import Counter
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import random_problem
from oracles import plain

import cmdplab
import cmdplab.gym
from cmdplab.algorithms import algorithm
from cmdplab.algorithms.counts import NOWHERE, as_table
from cmdplab.algorithms.equations import confidence_radius
from cmdplab.algorithms.task import Task
from cmdplab.engines.families import live_session
from cmdplab.engines.host import HostSession
from cmdplab.errors import InputError

ROWS = ("UOpt-RPGPD", "OPDOP", "OptCMDP", "OptCMDP-bonus", "OptPress-PD")


class Heard(gymnasium.Wrapper):
    """Keeps all transitions, with the step they were at."""

    def __init__(self, env):
        super().__init__(env)
        self.moves, self.rewards = [], []

    def reset(self, **given):
        self.at, info = self.env.reset(**given)
        return self.at, info

    def step(self, action):
        told = self.env.step(action)
        self.moves.append((self.at, int(action), told[0]))
        self.rewards.append(told[1])
        self.at = told[0]
        return told


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OptCMDP"])
@pytest.mark.parametrize("problem", ["media-streaming", "river-swim"])
def test_an_environment_that_ends_at_the_horizon_has_no_end_in_its_kernel(name, problem):
    # Our environments terminate at step H. What they did is counted here once more, by hand.
    env = Heard(gymnasium.make(cmdplab.gym.identifier(problem)))
    world: Any = env.unwrapped
    H, X, A = (getattr(world.problem, each) for each in ("horizon", "states", "actions"))
    learned = cmdplab.learn(env, name, episodes=30, evaluate=0)
    played = range(len(env.moves) - 30 * H, len(env.moves))
    known = Counter(env.moves[i] for i in played if (i + 1) % H)
    table = as_table(learned.state.counts, 1, X + 1, A)[0]
    np.testing.assert_array_equal(table, _table(known, table.shape))
    assert table[:, :, X].sum() == 0.0
    visits = table.sum(axis=-1) + learned.state.ends[0]
    every = Counter((x, a, 0) for x, a, _ in (env.moves[i] for i in played))
    np.testing.assert_array_equal(visits, _table(every, table.shape)[:, :, 0])
    earned = np.zeros(visits.shape)
    for i in played:
        earned[env.moves[i][:2]] += env.rewards[i]
    np.testing.assert_allclose(learned.state.reward_sums[0, 0], earned, atol=1e-12)


def _table(counter, shape):
    table = np.zeros(shape)
    for place, times in counter.items():
        table[place] = times
    return table


def episodes(problem, count, lost=True):
    """Random episodes with rewards; where the last step led is not told in two of three."""
    rng = np.random.default_rng(1)
    for k in range(count):
        states, actions = [problem.start], []
        for h in range(problem.horizon):
            actions.append(int(rng.choice(np.flatnonzero(problem.opened[h, states[-1]]))))
            row = problem.table[h, states[-1], actions[-1]]
            states.append(int(rng.choice(problem.states, p=row)))
        if lost and k % 3:
            states[-1] = NOWHERE
        yield states, actions, rng.random((1 + problem.constraints, problem.horizon))


def prepared(name, X=5):
    row = algorithm(name).with_settings(dynamics="stationary")
    problem = random_problem(X, 3, 3, 2, closed=0.2, stationary=True, concentration=0.1)
    return row, problem, Task.of(problem, 0.3, feedback="bounded")


# A planner around lists that grow takes longest of all to compile.
@pytest.mark.parametrize(
    ("name", "states"),
    [
        pytest.param(
            name,
            states,
            id=f"{name}-{'lists' if states > 5 else 'table'}",
            marks=[pytest.mark.slow] * (states > 5 and name.startswith("Opt")),
        )
        for name in ROWS
        for states in (5, 36)
    ],
)
def test_compiled_learners_take_a_lost_successor_as_the_plain_ones_do(name, states):
    row, problem, task = prepared(name, states)
    compiled: Any = live_session(row, task)
    oracle: Any = HostSession(None, plain(row, task), 0, None, task)
    for episode in episodes(problem, 12 if states > 5 else 60):
        compiled.observe(*episode)
        oracle.observe(*episode)
    ours, theirs = compiled.state(), oracle.state()
    table = as_table(ours.counts, 1, states, 3)
    np.testing.assert_array_equal(table, theirs.counts)
    np.testing.assert_array_equal(ours.ends, theirs.ends)
    assert ours.ends.sum() > 0.0
    np.testing.assert_allclose(ours.policy, theirs.policy, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.multiplier, theirs.multiplier, rtol=0, atol=1e-9)
    resumed = live_session(row, task, ours).state()
    np.testing.assert_array_equal(resumed.ends, ours.ends)
    np.testing.assert_array_equal(as_table(resumed.counts, 1, states, 3), table)


def test_rows_sum_to_one_and_a_visit_without_a_successor_narrows_the_bonus_alone():
    row, problem, task = prepared("UOpt-RPGPD")
    learner: Any = plain(row, task)
    run = HostSession(None, learner, 0, None, task)
    moves, visits = np.zeros((5, 3, 5)), np.zeros((5, 3))
    for states, actions, rewards in episodes(problem, 40):
        run.observe(states, actions, rewards)
        for x, a, y in zip(states, actions, states[1:], strict=False):
            visits[x, a] += 1.0
            if y != NOWHERE:
                moves[x, a, y] += 1.0
    estimate, beta = learner.model(run.state())
    tried = moves.sum(axis=-1) > 0.0
    expected = moves[tried] / moves[tried].sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(estimate[0][tried], expected, atol=1e-12)
    n = learner.numbers
    for at in map(tuple, np.argwhere(tried)):
        phi = confidence_radius(visits[at], n.iterated, n.log, n.radius_cap)
        roots = np.sqrt(estimate[0][at]).sum()
        assert beta[0][at] == pytest.approx(phi * (n.root * roots + n.flat) + n.tail * phi**2)


def new_at_the_end(states, actions, rewards):
    """Whether the last pair occurs at no other step."""
    return (states[-2], actions[-1]) not in zip(states[:-2], actions[:-1], strict=True)


def test_a_box_is_as_wide_as_what_is_known_of_its_row():
    row, problem, task = prepared("OptCMDP")
    run = live_session(row, task)
    every = episodes(problem, 50, lost=False)
    states, actions, rewards = next(each for each in every if new_at_the_end(*each))
    for _ in range(20):  # the last pair is tried often, and says nothing of where it leads
        run.observe([*states[:-1], NOWHERE], actions, rewards)
    learner: Any = plain(row, task)
    box, _ = learner.model(run.state())
    last = (states[-2], actions[-1])
    np.testing.assert_array_equal(box.upper[0][last] - box.lower[0][last], 1.0)


def test_only_the_last_successor_of_pooled_counts_may_be_lost():
    row, problem, task = prepared("UOpt-RPGPD")
    states, actions, rewards = next(iter(episodes(problem, 1, lost=False)))
    lost = [*states[:-1], NOWHERE]
    with pytest.raises(InputError, match="only the last may be"):
        live_session(row, task).observe([states[0], NOWHERE, *lost[2:]], actions, rewards)
    per_step = algorithm("UOpt-RPGPD")
    for other in (per_step, algorithm("Triple-Q")):
        with pytest.raises(InputError, match="is -1, outside 0 to 4"):
            live_session(other, task).observe(lost, actions, rewards)
