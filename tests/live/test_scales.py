"""A bonus scale that tournaments on drawn worlds choose."""

from __future__ import annotations

import numpy as np
import pytest
from live_envs import Walk

import cmdplab
from cmdplab import InputError, learn
from cmdplab.algorithms.counts import as_rows
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.random import random_problem
from cmdplab.engines.families import session
from cmdplab.live.scales import (
    BEGINNING,
    SCALES,
    Choice,
    Chooser,
    drawn_world,
    due,
    strong_regret,
    tournament,
)

ROW = cmdplab.algorithm("UOpt-RPGPD").with_settings(dynamics="stationary")


def played(episodes=30):
    """What a learner has counted of a small problem."""
    problem = random_problem(4, 2, 3, 1, stationary=True, concentration=0.1)
    problem = cmdplab.CMDP(
        problem.transition[0], problem.reward[:, 0], problem.threshold, 0, horizon=3
    )
    task = Task.of(problem, 0.5, feedback="bernoulli")
    run = session("cpu", problem, ROW, task, 0)
    run.play(episodes)
    return task, run.state()


def test_a_drawn_world_has_the_successors_and_means_that_were_seen():
    task, state = played()
    world = drawn_world(task, as_rows(state.counts), state.reward_sums, np.random.default_rng(0))
    counts = state.counts[0]
    visits = counts.sum(axis=-1)
    seen = visits > 0.0
    assert np.all((world.table[0] > 0.0)[seen] == (counts > 0.0)[seen])
    means = state.reward_sums[:, 0] / np.maximum(visits, 1.0)
    np.testing.assert_allclose(world.reward[:, 0][:, seen], means[:, seen])
    assert world.horizon == 3
    for x, a in np.argwhere(~seen):  # one successor, the signals of a pair that was tried
        assert np.count_nonzero(world.table[0, x, a]) == 1
        assert any(np.allclose(world.reward[:, 0, x, a], each) for each in means[:, seen].T)


def test_draws_have_the_mean_of_the_estimate():
    rng = np.random.default_rng(1)
    task, state = played(3)
    rows = np.array([[0, 0, 0, 0, 6.0], [0, 0, 0, 1, 2.0]])
    drawn = [drawn_world(task, rows, state.reward_sums, rng).table[0, 0, 0, 1] for _ in range(400)]
    assert np.mean(drawn) == pytest.approx(0.25, abs=0.03)  # of a Dirichlet(6, 2): sd 0.14 / 20


def test_a_tournament_is_seeded_and_chooses_the_smallest_regret():
    task, state = played()
    told = (state.counts, state.reward_sums, 32)
    first, again = (tournament(ROW, task, *told, seed=3) for _ in range(2))
    assert first == again
    assert first.scale == SCALES[int(np.argmin(first.regret))]
    assert first != tournament(ROW, task, *told, seed=4)


def test_regret_is_the_sum_of_what_is_missing():
    returns = np.array([[1.0, 2.0], [3.0, 0.5]])
    assert strong_regret(returns, 2.0, np.array([1.0])) == 1.0 + 0.5


def test_tournaments_are_held_at_doublings():
    assert [k for k in range(1, 200) if due(k)] == [16, 32, 64, 128]


def test_choices_survive_as_arrays():
    chooser = Chooser(ROW, lambda setup: setup, 0)
    assert chooser.row().bonus_scale == BEGINNING
    chooser.choices.append(Choice(16, 0.1, (5.0, 1.0, 2.0, 3.0, 4.0)))
    again = Chooser(ROW, lambda setup: setup, 0, chooser.arrays())
    assert again.choices == chooser.choices
    assert again.row().bonus_scale == 0.1
    assert "bonus_scale 0.1 after 16 episodes" in again.remarks()[0]


TOLD = {"horizon": 3, "budget": 1.0, "evaluate": 10, "bonus_scale": "auto"}


def test_learning_says_what_was_chosen_and_a_resume_changes_nothing(tmp_path):
    whole = learn(Walk(), "UOpt-RPGPD", episodes=70, **TOLD)
    assert any("after 64 episodes (regret 1: " in note for note in whole.notes)
    learn(Walk(), "UOpt-RPGPD", episodes=40, checkpoint=tmp_path, **TOLD)
    resumed = learn(Walk(), "UOpt-RPGPD", episodes=70, checkpoint=tmp_path, **TOLD)
    np.testing.assert_array_equal(whole.visits, resumed.visits)
    np.testing.assert_array_equal(whole.multiplier, resumed.multiplier)
    with pytest.raises(InputError, match="bonus_scale is auto there and fixed here"):
        learn(
            Walk(), "UOpt-RPGPD", episodes=80, checkpoint=tmp_path, **TOLD | {"bonus_scale": 1e-3}
        )


@pytest.mark.parametrize(
    ("name", "more", "sentence"),
    [
        ("Triple-Q", {}, "which Triple-Q has not"),
        ("OptCMDP", {"dynamics": "per-step"}, 'needs dynamics="stationary"'),
        ("OptCMDP", {"bonus_scale": "large"}, 'not a number > 0 or "auto"'),
    ],
)
def test_what_cannot_be_chosen_is_refused(name, more, sentence):
    with pytest.raises(InputError, match=sentence):
        learn(Walk(), name, episodes=20, **TOLD | more)
