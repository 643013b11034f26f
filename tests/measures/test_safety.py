"""Safety while learning: counted by hand, and promises that are kept or broken."""

from __future__ import annotations

import numpy as np
import pytest

import cmdplab
from cmdplab.algorithms.learner import Chunk
from cmdplab.measures.measures import Measures
from cmdplab.measures.safety import BROKEN, Safety, over_seeds, summary

H = 4


def measured(violations, shares=None, sizes=()):
    """The measures of a run whose episodes violate so much: threshold 2, the optimum 0."""
    violations = np.asarray(violations, dtype=np.float64)
    measures = Measures(0.0, np.array([2.0]), H, with_baseline=shares is not None)
    ends = np.cumsum([*sizes, len(violations) - sum(sizes)])
    given = np.zeros(len(violations)) if shares is None else np.asarray(shares)
    for part in np.split(np.arange(len(violations)), ends[:-1]):
        if len(part):
            returns = np.column_stack([0.0 * violations[part], 2.0 - violations[part]])
            measures.add(Chunk(returns, np.zeros((len(part), 1)), given[part]))
    return measures


def judged(violations, shares=None) -> Safety:
    measures = measured(violations, shares)
    found = summary(measures.curves(), measures.mistakes())
    assert found is not None
    return found


def test_violating_episodes_are_counted_and_the_worst_is_known():
    found = judged([-1.0, 0.5, -1.0, 0.25, 1e-6, 0.0])
    assert (found.violating, found.first, found.largest) == (2, 2, 0.5)
    assert found.total == pytest.approx(0.75 + 1e-6)
    assert found.tolerance == pytest.approx(1e-5 * H)
    assert found.baseline_share is None


def test_what_is_below_the_tolerance_is_no_episode_but_still_breaks_a_promise():
    small, rounding = judged([-1.0, 2e-5]), judged([-1.0, 1e-15])
    assert (small.violating, small.beyond_rounding) == (0, True)
    assert (rounding.violating, rounding.beyond_rounding) == (0, False)


def test_late_in_a_run_the_first_violation_is_placed_on_the_grid():
    violations = np.full(70_000, -1.0)
    violations[50_000] = 0.5  # episode 50,001; the grid has a point every 64 there
    found = judged(violations)
    assert 50_001 <= found.first <= 50_001 + 64
    assert (found.violating, found.largest) == (1, 0.5)


def test_the_share_of_the_safe_policy_and_when_it_was_left():
    found = judged([-1.0] * 5, [1.0, 0.5, 0.25, 0.0, 0.0])
    assert found.baseline_share == pytest.approx(0.35)
    assert found.left_baseline == 3
    assert judged([-1.0] * 2, [0.0, 0.0]).left_baseline == 0


def test_chunks_and_a_resume_do_not_change_the_share():
    rng = np.random.default_rng(0)
    violations, shares = rng.normal(size=3000), rng.random(3000)
    whole = measured(violations, shares)
    cut = measured(violations[:1500], shares[:1500], sizes=(1, 700))
    cut = Measures.resumed(0.0, np.array([2.0]), H, {k: v.copy() for k, v in cut.arrays().items()})
    returns = np.column_stack([np.zeros(1500), 2.0 - violations[1500:]])
    cut.add(Chunk(returns, np.zeros((1500, 1)), shares[1500:]))
    for name, each in whole.curves().items():
        np.testing.assert_array_equal(each, cut.curves()[name])


def test_without_a_constraint_there_is_nothing_to_say():
    measures = Measures(0.0, np.zeros(0), H)
    measures.add(Chunk(np.zeros((3, 1)), np.zeros((3, 0))))
    assert summary(measures.curves(), measures.mistakes()) is None
    assert over_seeds([None], safe=False) is None


def test_a_promise_is_kept_broken_heuristic_or_none():
    good, bad = judged([-1.0, -0.5]), judged([-1.0, 0.5])
    kept = over_seeds([good, good], safe=True)
    broken = over_seeds([good, bad], safe=True)
    assert (kept.promise, kept.broken) == ("kept", False)
    assert (broken.promise, broken.broken) == (BROKEN, True)
    assert (broken.violating_runs, broken.first, broken.largest) == (1, 2, 0.5)
    assert "1 of 2 runs violated, first in episode 2" in broken.words
    for runs, words in (([good], "kept, but heuristic"), ([bad], "not kept, but heuristic")):
        found = over_seeds(runs, safe=True, heuristic="margin scale 0.1")
        assert (found.promise, found.broken) == (words, False)
    assert over_seeds([bad], safe=False).promise == "none"


def test_runs_say_how_safe_they_were():
    found = cmdplab.compare(
        "three-state", ["Safe(OptCMDP)", "OptCMDP", "DOPE"], episodes=60, seeds=2
    )
    coin, plain, dope = (each["safety"] for each in found.table())
    assert coin["promise"] == "kept"
    assert coin["largest"] <= 1e-9
    assert 0.0 < coin["baseline_share"] <= 1.0
    assert plain["promise"] == "none"
    assert plain["baseline_share"] is None
    assert dope["promise"].endswith("but heuristic")  # at margin scale 1e-3
    assert dope["baseline_share"] is not None
