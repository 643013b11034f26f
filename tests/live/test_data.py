"""Logged episodes: read, fitted, learned from first; learning that goes on another day."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT
from live_envs import Walk

import cmdplab
from cmdplab import InputError, Learned, fit, learn

# The walk of live_envs: up from 5 to 6 to 7 and out, each step up pays and costs 1.
UP = [(5, 2, 1.0, 1.0, 6), (6, 2, 1.0, 1.0, 7), (7, 2, 1.0, 1.0, None)]
STAY = [(5, 1, 0.0, 0.0, 5), (5, 2, 1.0, 1.0, 6), (6, 1, 0.0, 0.0, 6), (6, 2, 1.0, 1.0, 7)]


def table(episodes):
    names = ("state", "action", "reward", "cost", "next")
    return [
        {"episode": k, **dict(zip(names, step, strict=True))}
        for k, episode in enumerate(episodes)
        for step in episode
    ]


def minari(episode):
    state, action, reward, cost, following = zip(*episode, strict=True)
    last = following[-1]
    return SimpleNamespace(
        observations=np.array([*state, 7 if last is None else last]),
        actions=np.array(action),
        rewards=np.array(reward),
        terminations=np.array([False] * (len(episode) - 1) + [last is None]),
        truncations=np.zeros(len(episode), dtype=bool),
        infos={"cost": np.array(cost), "odd": 3},
    )


def forms():
    episodes = [UP, STAY]
    yield "list", episodes
    yield "table", table(episodes)
    yield "columns", {k: [row[k] for row in table(episodes)] for k in table(episodes)[0]}
    yield "minari", [minari(each) for each in episodes]
    yield "iterator", (minari(each) for each in episodes)


@pytest.mark.parametrize(("form", "data"), list(forms()))
def test_every_way_of_writing_a_log_is_the_same_log(form, data):
    found = fit(data, budget=1.0)
    visits = found.seen.visits()
    assert visits[5:, 1:].tolist() == [[1, 2], [1, 2], [0, 1]]
    assert found.world.horizon == 4
    # Both episodes start in 5; one step up is what the budget of 1 allows.
    assert found.planned.promised.objective.mean == pytest.approx(1.0)
    assert found.with_budget(2.0).planned.promised.objective.mean == pytest.approx(2.0)


def test_a_log_in_a_file_is_read(tmp_path):
    lines = ["episode,state,action,reward,cost,next"]
    for row in table([UP, STAY]):
        lines.append(",".join("" if v is None else str(v) for v in row.values()))
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    found = fit(str(tmp_path / "log.csv"), budget=1.0)
    np.testing.assert_array_equal(found.seen.visits(), fit([UP, STAY], budget=1.0).seen.visits())


def test_names_of_a_log_are_the_names_of_the_policy():
    named = [[("low", "wait", 0.0, 0.0, "low"), ("low", "go", 1.0, 1.0, "high")]] * 3
    found = fit(named, horizon=2, budget=1.0)
    assert found.policy.labels.states == ("high", "low")
    assert found.policy.probabilities("low", 1) == {"go": 1.0, "wait": 0.0}
    assert found.actor()("low") in ("go", "wait")


def test_a_function_computes_costs_that_were_not_logged():
    plain = [[(s, a, r, y) for s, a, r, _, y in each] for each in (UP, STAY)]
    found = fit(plain, budget=1.0, cost=lambda state, action, following, reward, info: reward)
    assert found.planned.promised.constrained[0].mean == pytest.approx(1.0)


def test_an_episode_that_was_cut_is_not_taken_for_one_that_ended():
    """After two steps of a log of three the third is unknown: state 7 was never left."""
    cut = fit([UP[:2]], horizon=3, budget=3.0)
    assert "1 episodes do not say how they end" in cut.notes[0]
    assert cut.seen.moves().following.tolist() == [6, 7]
    whole = fit([UP], horizon=3, budget=3.0)
    assert whole.planned.promised.objective.mean == pytest.approx(3.0)
    assert cut.planned.promised.objective.mean == pytest.approx(2.0)  # and the worst, 0, after


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OptCMDP", "Triple-Q"])
def test_logged_episodes_are_learned_from_first(name):
    told = {"horizon": 4, "budget": 1.0, "episodes": 10, "evaluate": 0}
    learned = learn(Walk(), name, data=[UP, STAY] * 20, **told)
    assert "Began with 40 logged episodes" in learned.summary()
    assert learned.seen.episodes == 50
    assert learned.episodes == 10
    assert learned.visits.sum() >= 40 * 3
    assert learned.state.episode == 50


def test_learning_goes_on_with_another_budget_and_forgets_nothing(tmp_path):
    told = {"horizon": 4, "episodes": 30, "evaluate": 0}
    first = learn(Walk((5, 6)), "OptCMDP", budget=1.0, **told)
    first.save(tmp_path / "first.npz")
    second = learn(
        Walk((5, 6)), "OptCMDP", budget=2.0, data=Learned.load(tmp_path / "first.npz"), **told
    )
    assert second.seen.episodes == 60
    assert first.seen.episodes == 30
    visits = [each.state.counts.sum() + each.state.ends.sum() for each in (first, second)]
    assert visits == [
        30 * 5,
        60 * 5,
    ]  # four steps, and one before them: it begins in several states
    assert second.planned.promised.constrained[0].mean <= 2.0 + 1e-9
    assert "Began with what was learned from 30 episodes before" in second.summary()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([], "there is no step in the logged episodes"),
        ([[]], "there is no step in the logged episodes"),
        ([[(5, 2, 1.0)]], r"step 0 of episode 0 of the data is not \(state, action, reward, cost"),
        ([UP, [(5, 2, 1.0, 1.0, 6), (9, 2, 1.0, 1.0, 7)]], "step 1 of episode 1.*9 is outside 5"),
        ([[(5, 7, 1.0, 1.0, 6)]], "step 0 of episode 0 of the data: 7 is outside 1 to 2"),
        ([[(6, 2, 1.0, 1.0, 7)]], 'episode 0 of the data begins in 6.*pass start="several"'),
        ([[(5, 2, 1.0, 1.0, None), (6, 2, 1.0, 1.0, 7)]], "goes on after its end, step 0"),
        ([[(5, 1, 0.0, 0.0, 5)] * 5], "episode 0 of the data has 5 steps, beyond 4"),
        ([[(5, 2, float("nan"), 1.0, 6)]], "reward at step 0 of episode 0 is nan"),
        ([[(5, 2, "much", 1.0, 6)]], "reward at step 0 of episode 0 is 'much', not a number"),
        ([[(5, 2, 1.0, 7.0, 6)]], r"cost at step 0 of episode 0 is 7, outside \[0, 1\]"),
        ([{"state": 5, "action": 2}], "the table has no column 'episode'"),
        ("missing.csv", "missing.csv"),
        ([3], "episode 0 of the data is int, not a list of steps"),
    ],
)
def test_a_log_of_another_shape_is_one_sentence(data, sentence):
    with pytest.raises(cmdplab.CmdplabError, match=sentence) as caught:
        learn(Walk(), "OptCMDP", horizon=4, budget=1.0, episodes=5, evaluate=0, data=data)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"algorithm": "UOpt-RPGPD"}, "another algorithm: OptCMDP there, UOpt-RPGPD here"),
        ({"horizon": 5}, "another horizon: 4 there, 5 here"),
        ({"budget": [1.0, 1.0]}, "another number of signals: 2 there, 3 here"),
    ],
)
def test_what_was_learned_elsewhere_is_refused_as_data(given, sentence):
    told = {"algorithm": "OptCMDP", "horizon": 4, "budget": 1.0, "episodes": 5, "evaluate": 0}
    first = learn(Walk(), **told)
    with pytest.raises(InputError, match=sentence):
        learn(Walk(), **(told | given), data=first)


def test_warm_start_continued_learning_another_budget_save_load_and_act_elsewhere(tmp_path):
    script = ROOT / "examples" / "learn_another_day.py"
    command = [sys.executable, str(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "offline: 3.00 promised"
    assert lines[2] == "budget 2, planned at once: 2.00 promised"
    assert lines[4] == "seen in all: 800 episodes"
    actions = lines[5].removeprefix("elsewhere: ").split()
    assert len(actions) == 5
    assert set(actions) <= {"0", "1"}


def test_infos_of_minari_begin_with_that_of_the_reset_and_an_end_shows_where():
    # As `minari.DataCollector` writes them: T + 1 infos; step h is told at h + 1.
    episode = SimpleNamespace(
        observations=np.array([5, 6, 7]),
        actions=np.array([2, 2]),
        rewards=np.array([1.0, 1.0]),
        terminations=np.array([False, True]),
        infos={"cost": np.array([0.0, 0.25, 0.75])},
    )
    found = fit([episode], budget=1.0)
    assert found.seen.entries().sums[1].tolist() == [0.25, 0.75]
    shown = fit([episode], budget=1.0, cost=lambda x, a, y, reward, info: float(y == 7))
    assert shown.seen.entries().sums[1].tolist() == [0.0, 1.0]
    assert shown.seen.moves().following.tolist()[:1] == [6]
