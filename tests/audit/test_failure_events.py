"""The frequency of failure events: first episodes, exact intervals, and files that go on."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from conftest import random_problem
from oracles import session

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.task import Task
from cmdplab.audit import events as module
from cmdplab.audit.events import NAME, failure_events, first_failures, problem_of, tallies
from cmdplab.cmdp import exact
from cmdplab.errors import InputError
from cmdplab.files import sealed
from cmdplab.theory import events

ROW = replace(algorithm("UOpt-RPGPD", "printed"), bonus_scale=1.0)
LOOSE = 100.0  # as delta: no probability, but events then happen in every run


def settings_of(states=2) -> dict:
    row = {"algorithm": ROW.name, "preset": ROW.preset, "bonus_scale": 1.0, "delta": 0.1}
    return dict(problem="p", fingerprint="f", states=states, episodes=10, **row)


def test_many_counts_are_asked_as_one_by_one():
    rng = np.random.default_rng(0)
    kernel = rng.dirichlet(np.ones(3), (2, 3, 2))
    sizes = np.geomspace(1.0, 1e4, 40)[:, None, None, None, None]
    counts = np.floor(sizes * rng.random((40, 2, 3, 2, 3)))  # of another kernel
    occupancies = counts.sum(axis=-1) * rng.uniform(0.5, 3.0, (40, 1, 1, 1))
    together = events.happened(counts, kernel, occupancies, 0.1)
    alone = [events.failures(c, kernel, w, 0.1) for c, w in zip(counts, occupancies, strict=True)]
    np.testing.assert_array_equal(together, alone)
    assert np.all((together.sum(axis=0) > 0) & (together.sum(axis=0) < 40))


@pytest.mark.parametrize("together", [1, 7 * 16, 1 << 22])
def test_the_first_episode_is_that_of_a_plain_loop(monkeypatch, together):
    def loosely(counts, kernel, occupancies, delta):
        return events.happened(counts, kernel, occupancies, LOOSE)

    monkeypatch.setattr(module, "happened", loosely)
    monkeypatch.setattr(module, "MOST_COUNTS", together)
    problem = random_problem(2, 2, 2, 1, concentration=1.0)
    task = Task.of(problem, 0.3)
    seen = set()
    for seed in range(4):
        run = session("host", problem, ROW, task, seed)
        occupancies, expected = np.zeros((2, 2, 2)), [None, None, None]
        for k in range(1, 41):
            occupancies += exact.occupancy(problem, run.state().policy)
            run.play(1)
            now = events.failures(run.state().counts, problem.table, occupancies, LOOSE)
            expected = [k if e is None and n else e for e, n in zip(expected, now, strict=True)]
        found = first_failures(problem, ROW, task, seed, 40)
        assert list(found) == expected
        seen |= set(found)
    assert len(seen) > 2  # events did happen, and not all at once


def test_tallies_by_hand():
    # None of 500: the exact interval ends at 1 - 0.025^(1/500) = 0.0074, below delta / (4X).
    found = tallies([(None, None, None)] * 500, settings_of())
    assert [tally.event for tally in found] == ["kernel", "visits", "l1", "any"]
    assert [tally.lemma for tally in found] == pytest.approx([0.05, 0.0125, 0.0125, 0.1])
    assert [tally.union_bound for tally in found] == pytest.approx([0.05, 0.025, 0.025, 0.1])
    for tally in found:
        assert tally.frequency.high == pytest.approx(1 - 0.025 ** (1 / 500))
        assert (tally.against_lemma, tally.against_union_bound) == ("below", "below")
    # Ten runs say nothing about 0.05; nine failures of ten do.
    few = tallies([(None, None, None)] * 9 + [(3, None, None)], settings_of())
    assert [tally.against_lemma for tally in few] == ["undecided"] * 4
    many = tallies([(1, None, None)] * 9 + [(None, 2, None)], settings_of())
    assert [tally.frequency.successes for tally in many] == [9, 1, 0, 10]
    assert (many[0].against_lemma, many[3].against_lemma) == ("above", "above")


def test_a_frequency_between_the_two_shares():
    # X = 30: the lemma prints delta / 120, the union bound gives delta / 4.
    found = tallies([(None, 1, None)] * 10 + [(None, None, None)] * 990, settings_of(states=30))
    assert (found[1].against_lemma, found[1].against_union_bound) == ("above", "below")


play = partial(failure_events, problem_of("small"), episodes=20)


def test_more_seeds_go_on_and_an_interruption_costs_nothing(tmp_path, monkeypatch):
    whole, pieces, broken = tmp_path / "whole", tmp_path / "pieces", tmp_path / "broken"
    found = play(whole, seeds=6)
    play(pieces, seeds=2)
    assert play(pieces, seeds=6) == found

    def stop(done, of):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(broken, seeds=6, on_progress=stop)
    assert len(json.loads((broken / NAME).read_text())["first"]) == 3
    assert play(broken, seeds=6) == found
    texts = {(folder / NAME).read_text() for folder in (whole, pieces, broken)}
    assert len(texts) == 1
    monkeypatch.setattr(module, "first_failures", None)  # nothing is played again
    assert play(whole, seeds=6) == found


def test_runs_of_other_settings_are_refused(tmp_path):
    play(tmp_path, seeds=2)
    with pytest.raises(InputError, match=r"delta 0.1, not 0.2: choose another --out"):
        play(tmp_path, seeds=2, delta=0.2)
    with pytest.raises(InputError, match=r"episodes 20, not 30"):
        failure_events(problem_of("small"), tmp_path, seeds=2, episodes=30)
    with pytest.raises(InputError, match=r"problem small \(seed 0\), not small \(seed 1\)"):
        failure_events(problem_of("small", 1), tmp_path, seeds=2, episodes=20)
    with pytest.raises(InputError, match="holds 2 runs, more than 1"):
        play(tmp_path, seeds=1)
    (tmp_path / NAME).write_text(sealed('{"settings": {}}'))
    with pytest.raises(InputError, match="holds no failure events"):
        play(tmp_path, seeds=2)
    (tmp_path / NAME).write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        play(tmp_path, seeds=2)


def test_the_command(call, tmp_path):
    problem = random_problem(3, 2, 2, 1)
    problem.save(tmp_path / "p.npz")
    sizes = ("--seeds", "3", "--episodes", "5")
    given = ("audit", "--failure-events", tmp_path / "p.npz", *sizes, "--out", tmp_path / "out")
    code, out, err = call(*given)
    assert code == 0
    assert "3 runs of 5 episodes, delta 0.1, bonus scale 1" in out
    assert "undecided" in out
    assert "3 of 3 runs" in err
    code, out, _ = call(*given, "--json")
    found = json.loads(out)
    assert (code, found["bonus_scale"]) == (0, 1.0)
    assert found["events"] == json.loads((tmp_path / "out" / NAME).read_text())["events"]
    assert [each["frequency"]["trials"] for each in found["events"]] == [3] * 4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--seeds", "0"], "seeds is 0"),
        (["--episodes", "0"], "episodes is 0"),
        (["--delta", "0"], "delta is 0"),
        (["--epsilon", "0.1"], "--epsilon does not go with --failure-events"),
        (["--partial"], "--partial does not go with --failure-events"),
        (["smal"], "unknown environment 'smal'"),
        (["--instance-seed", "-1"], "seed is -1"),
        (["nowhere.npz"], "nowhere.npz"),
    ],
)
def test_what_cannot_be_counted(call, tmp_path, given, words):
    code, out, err = call("audit", "--failure-events", "--out", tmp_path / "out", *given)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out" / NAME).exists()
