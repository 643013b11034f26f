"""Entropy along a run and occupancies at its end: values by hand, limits, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import problems, random_policy, random_problem
from hypothesis import given, strategies as st

from cmdplab.algorithms import algorithm
from cmdplab.cmdp.exact import occupancy
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments import make
from cmdplab.errors import InputError
from cmdplab.experiments.experiment import parse_experiment
from cmdplab.experiments.folder import works_of
from cmdplab.experiments.play import Entry
from cmdplab.experiments.records.load import recall
from cmdplab.experiments.run import run
from cmdplab.experiments.sweep import sweep
from cmdplab.figures.portraits import (
    VISITED_STATES,
    Portrait,
    draw_occupancy,
    entropy_curve,
    looked_at,
    no_temperature,
    occupancy_portrait,
    policy_entropy,
    shown_states,
    total_variation,
)
from cmdplab.solvers import solve

pytestmark = pytest.mark.usefixtures("one_process")


@pytest.fixture
def two_steps() -> CMDP:
    """Two steps: the first action leads from state 0 to state 0, the second one to state 1."""
    kernel = np.zeros((2, 2, 2))
    kernel[0, 0, 0] = kernel[0, 1, 1] = 1.0
    kernel[1, :, 1] = 1.0
    return CMDP(kernel, np.zeros((1, 2, 2)), np.zeros(0), 0, horizon=2, name="two steps")


def test_the_entropy_of_two_steps_by_hand(two_steps):
    policy = np.zeros((2, 2, 2))
    policy[0, 0] = [0.25, 0.75]
    policy[0, 1] = [0.5, 0.5]  # never reached
    policy[1, 0] = [1.0, 0.0]
    policy[1, 1] = [0.5, 0.5]  # reached with probability 3/4
    first = 0.25 * math.log(4.0) + 0.75 * math.log(4.0 / 3.0)
    by_hand = (first + 0.75 * math.log(2.0)) / (2.0 * math.log(2.0))
    assert policy_entropy(two_steps, policy) == pytest.approx(by_hand, rel=1e-14)


@given(problems(), st.integers(0, 10**6))
def test_entropy_lies_between_a_deterministic_and_the_uniform_policy(problem, seed):
    if problem.actions == 1:
        with pytest.raises(InputError, match="has one action"):
            policy_entropy(problem, random_policy(problem, seed))
        return
    shape = (problem.horizon, problem.states, problem.actions)
    assert policy_entropy(problem, np.full(shape, 1.0 / problem.actions)) == pytest.approx(1.0)
    assert policy_entropy(problem, np.eye(problem.actions)[np.zeros(shape[:2], int)]) == 0.0
    assert 0.0 < policy_entropy(problem, random_policy(problem, seed)) < 1.0


@given(problems(), st.integers(0, 10**6))
def test_total_variation_of_occupancies(problem, seed):
    one, other = (occupancy(problem, random_policy(problem, s)) for s in (seed, seed + 1))
    np.testing.assert_allclose(one.sum(axis=(1, 2)), 1.0, rtol=1e-12)
    assert total_variation(one, one) == 0.0
    assert 0.0 <= total_variation(one, other) <= 1.0 + 1e-12
    assert total_variation(one, other) == total_variation(other, one)


def test_disjoint_occupancies_are_as_far_apart_as_can_be(two_steps):
    left, right = (occupancy(two_steps, np.eye(2)[np.full((2, 2), a)]) for a in (0, 1))
    assert total_variation(left, right) == 1.0


def test_a_run_begins_random_and_is_not_changed_by_looking():
    problem, row = make("three-state"), algorithm("UOpt-RPGPD")
    curve = entropy_curve(Entry.of(problem, row, 1), 300, points=12)
    done = run(problem, row, 300, 1)
    assert curve.entropy[-1] == policy_entropy(problem, done.state.policy)
    early = entropy_curve(Entry.of(problem, row, 1), 30, points=30)
    shared = np.intersect1d(curve.episode, early.episode)
    assert len(shared) > 3
    for k in shared:
        assert curve.entropy[curve.episode == k] == early.entropy[early.episode == k]


def test_the_temperature_is_the_schedule_of_the_row():
    row = algorithm("UOpt-RPGPD", "printed")
    curve = entropy_curve(Entry.of(make("three-state"), row, 0), 50, points=5)
    assert curve.temperature == pytest.approx((curve.episode + 3.0) ** -0.4)
    assert no_temperature(row) == ""


@pytest.mark.parametrize("name", ["OptCMDP", "Triple-Q"])
def test_other_families_have_an_entropy_and_no_temperature(name):
    row = algorithm(name)
    curve = entropy_curve(Entry.of(make("three-state"), row, 0), 20, points=4)
    assert curve.temperature is None
    assert "no temperature" in no_temperature(row)
    assert np.all((curve.entropy >= 0.0) & (curve.entropy <= 1.0))


def test_looks_are_log_spaced_and_hold_both_ends():
    assert looked_at(10_000, 5) == [1, 10, 100, 1000, 10_000]
    assert looked_at(3, 100) == [1, 2, 3]
    assert looked_at(1, 2) == [1]
    for episodes, points in ((0, 5), (5, 1)):
        with pytest.raises(InputError):
            looked_at(episodes, points)


def test_the_occupancy_is_that_of_the_policy_after_the_run():
    problem, row = make("three-state"), algorithm("UOpt-RPGPD")
    portrait = occupancy_portrait(Entry.of(problem, row, 0), 200)
    learned = run(problem, row, 200).state.policy
    np.testing.assert_array_equal(portrait.learned, occupancy(problem, learned))
    np.testing.assert_allclose(portrait.optimal.sum(axis=(1, 2)), 1.0, rtol=1e-12)
    assert 0.0 < portrait.distance < 1.0


def test_both_panels_of_the_optimal_policy_are_equal(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("cmdplab.figures.portraits.save", lambda figure, _: drawn.append(figure))
    problem = make("media-streaming")
    optimal = solve(problem).occupancy
    draw_occupancy(Portrait(optimal, optimal), "t", tmp_path / "f.png")
    (figure,) = drawn
    left, right, _ = figure.axes
    images = [panel.images[0] for panel in (left, right)]
    np.testing.assert_array_equal(*(image.get_array() for image in images))
    np.testing.assert_allclose(images[0].get_array().sum(axis=0), 1.0, rtol=1e-12)
    assert images[0].norm is images[1].norm
    assert "distance 0," in figure.get_suptitle()


def test_of_many_states_the_most_visited_are_drawn(tmp_path):
    rng = np.random.default_rng(0)
    mass = rng.dirichlet(np.full(100, 0.1), 7).T  # [X, H]
    rows = shown_states(mass, mass)
    visits = mass.sum(axis=1)
    assert len(rows) == VISITED_STATES
    assert visits[rows].min() >= np.delete(visits, rows).max()
    assert list(rows) == sorted(rows)
    assert list(shown_states(mass[:60], mass[:60])) == list(range(60))
    pairs = np.repeat(mass.T[:, :, None] / 2, 2, axis=-1)
    assert draw_occupancy(Portrait(pairs, pairs), "t", tmp_path / "f.png").stat().st_size > 3000


NAMES = ("UOpt-RPGPD", "No-regularization", "OptCMDP")


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Three algorithms on two problems, two seeds each."""
    values = {
        "name": "three",
        "episodes": 40,
        "seeds": 2,
        "problems": [{"environment": "three-state"}, {"environment": "six-state"}],
        "algorithms": [{"name": name} for name in NAMES],
    }
    folder = tmp_path_factory.mktemp("swept") / "out"
    sweep(parse_experiment(values, "here"), folder)
    return folder


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
@pytest.mark.parametrize("kind", ["entropy", "occupancy"])
def test_every_portrait_in_every_format(call, swept, kind, suffix, tmp_path):
    path = tmp_path / "new" / f"f.{suffix}"
    one = works_of(swept)[0].folder
    code, out, _ = call("plot", one, kind, "--out", path)  # the folder is made
    assert (code, out.strip()) == (0, str(path))
    assert path.stat().st_size > 3000


def test_a_portrait_is_of_the_run_that_was_recorded(call, swept, tmp_path, monkeypatch):
    drawn: dict[Path, Any] = {}
    monkeypatch.setattr(
        "cmdplab.figures.portraits.draw_occupancy",
        lambda portrait, title, path: drawn.setdefault(path, portrait) and path,
    )
    work = next(each for each in works_of(swept) if each.settings.seed == 1)
    assert call("plot", work.folder, "occupancy", "--out", tmp_path / "f.svg")[0] == 0
    learned = recall(work).state.policy
    np.testing.assert_array_equal(
        drawn[tmp_path / "f.svg"].learned, occupancy(make(work.settings.problem), learned)
    )


def test_several_algorithms_share_a_figure_of_entropy(call, swept, tmp_path, monkeypatch):
    drawn: dict[Path, Any] = {}
    monkeypatch.setattr(
        "cmdplab.figures.portraits.save",
        lambda figure, path: drawn.setdefault(path, figure) and path,
    )
    given = ("--environment", "six-state", "--out", tmp_path / "f.svg")
    code, _, err = call("plot", swept, "entropy", *given)
    assert code == 0
    assert "OptCMDP has no temperature" in err
    assert [line.get_label() for line in drawn[tmp_path / "f.svg"].axes[0].lines] == list(NAMES)


def test_what_cannot_be_portrayed(call, swept, tmp_path):
    path = tmp_path / "f.pdf"
    one_action = random_problem(3, 1, 2, 0, 0)
    one_action.save(tmp_path / "one.npz")
    assert call("run", tmp_path / "one.npz", "--episodes", 5, "--out", tmp_path / "one")[0] == 0
    three = ("--environment", "three-state")
    for arguments, sentence in (
        ((swept, "entropy", *three, "--out", tmp_path / "f.txt"), "is no .png"),
        ((swept, "occupancy", *three, "--out", path), "of one algorithm, and"),
        ((swept, "entropy", "--out", path), "choose one --environment"),
        ((swept, "entropy", "--environment", "lake", "--out", path), "no environment 'lake'"),
        ((swept, "birds", *three, "--out", path), "birds"),
        ((tmp_path, "entropy", "--out", path), "no experiment"),
        ((tmp_path / "one", "entropy", "--out", path), "has one action"),
    ):
        code, _, err = call("plot", *arguments)
        assert (code, sentence in err) == (2, True), err
    assert not path.exists()


def test_a_portrait_takes_at_least_two_looks_and_an_episode():
    problem, row = make("three-state"), algorithm("UOpt-RPGPD")
    with pytest.raises(InputError, match="points is 1"):
        entropy_curve(Entry.of(problem, row, 0), 10, points=1)
    with pytest.raises(InputError, match="episodes is 0"):
        entropy_curve(Entry.of(problem, row, 0), 0)
