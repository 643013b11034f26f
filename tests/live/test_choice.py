"""The choice among the last policy, plans and mixtures, where the learned model is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from live_envs import Lever

from cmdplab import Policy, learn
from cmdplab.live import Learned
from cmdplab.live.evaluation import Evaluation
from cmdplab.live.model.choice import MIXTURE, PLAN, Trial, choose, merit
from cmdplab.live.model.experience import Experience
from cmdplab.statistics.intervals import Estimate

H = 6


def lever(cost):
    """The setup of a lever, and counts of pulls that seem to cost `cost`."""
    world = learn(Lever(), "OptCMDP", horizon=H, budget=3.0, episodes=1, evaluate=0).world
    seen, states = Experience(1, 2, 2), np.zeros(H, dtype=np.int64)
    for action in (0, 1):
        signals = np.array([[action], [action * cost]]) * np.ones(H)
        seen.add(states, np.full(H, action), None, signals)
    return world, seen


def pulls(share):
    return Policy(np.array([[[1.0 - share, share]]] * H))


def played(rows, last, real, half=0.01):
    """A trial of a lever that pays 1 and costs `real`."""
    mean = float((last.array if rows is None else rows)[:, 0, 1].sum())

    def within(level):
        wide = half if level == 0.95 else 2.0 * half
        both = [Estimate(m - wide, m, m + wide, 1000) for m in (mean, real * mean)]
        return Evaluation(both[0], (both[1],))

    return Trial(within(0.95), within, np.full((H, 1), 1000.0))


def chosen(last, limit=3.0, seems=1.0, real=1.0):
    world, seen = lever(seems)
    told = (last, seen, world, np.array([limit]), None)
    return choose(*told, lambda rows: played(rows, last, real))


def test_a_mixture_uses_the_budget_that_no_single_policy_uses():
    """Pulls cost 1/2 and seem to cost 1: the plan has 2 of them, the last policy 6."""
    choice = chosen(pulls(1.0), limit=2.0, real=0.5)
    assert choice.name == MIXTURE
    assert choice.evaluation.objective.mean == pytest.approx(4.0, abs=0.05)
    assert choice.evaluation.constrained[0].mean <= 2.0
    assert choice.plan.evaluation.objective.mean == pytest.approx(2.0)
    why = choice.notes[-1]
    assert "of the last policy (reward 6 at cost 3) with the share 0.49" in why
    assert "and the plan (reward 2 at cost 1) was chosen because it earns more" in why


def test_a_margin_is_smaller_than_the_room_of_the_model():
    """Pulls seem to cost 1/2: the plan misses by 3, and half of its budget is the right aim."""
    choice = chosen(pulls(0.0), seems=0.5)
    assert choice.name == PLAN
    assert choice.plan.margin.tolist() == pytest.approx([3.0 * 3.0 / (3.0 + 3.0)])
    assert choice.plan.evaluation.objective.mean == pytest.approx(3.0)
    assert "The plan leaves a margin of 1.5: without it, it missed 3." in choice.notes


def test_the_intervals_of_the_chosen_policy_are_those_of_all_that_were_compared():
    choice = chosen(pulls(0.25))
    assert choice.name == PLAN
    assert choice.notes == [
        "The plan (reward 3 at cost 3) was chosen because it earns more than the last policy "
        "(reward 1.5 at cost 1.5)."
    ]
    learned = learn(Lever(), "UOpt-RPGPD", horizon=H, budget=2.0, episodes=20, evaluate=200)
    own = learned.planned.evaluation if learned.chosen == PLAN else learned.last_evaluation
    both = zip(learned.evaluation.every, own.every, strict=True)
    for wide, plain in both:
        assert wide.mean == plain.mean
        assert wide.high - wide.mean == pytest.approx(  # two policies: 97.5 %
            (plain.high - plain.mean) * 2.2414027 / 1.9599640, rel=1e-6
        )


def test_the_policy_that_keeps_a_limit_is_preferred_to_the_one_that_earns_more():
    choice = chosen(pulls(0.6))
    assert choice.name == PLAN
    assert choice.notes[-1] == (
        "The plan (reward 3 at cost 3) was chosen because the last policy (reward 3.6 at cost "
        "3.6) misses the limits (cost at most 3)."
    )


def test_what_may_be_missed_is_paid_for():
    world, _ = lever(1.0)
    found = Evaluation(Estimate(4.0, 5.0, 6.0, 9), (Estimate(2.5, 3.0, 3.5, 9),))
    limit = np.array([3.0])
    assert merit(found, limit, np.array([2.0]), world) == (0.0, 4.0 - 2.0 * 0.5)
    more = found._replace(constrained=(Estimate(3.25, 3.5, 4.0, 9),))
    assert merit(more, limit, np.array([np.inf]), world) == (-0.25, 4.0)


def test_a_mixture_survives_its_file(tmp_path):
    learned = learn(Lever(), "OptCMDP", horizon=H, budget=2.0, episodes=20, evaluate=20)
    mixed = replace(learned, chosen=MIXTURE, policy=Policy(learned.policy.array, name="mixed"))
    mixed.save(tmp_path / "mixed.npz")
    again = Learned.load(tmp_path / "mixed.npz")
    assert again.chosen == MIXTURE
    np.testing.assert_array_equal(again.policy, mixed.policy)


def test_without_trials_the_model_decides():
    world, seen = lever(1.0)
    choice = choose(pulls(1.0), seen, world, np.array([3.0]), None, None)
    assert (choice.name, choice.evaluation, choice.last_evaluation) == (PLAN, None, None)
    assert choice.notes[-1].startswith("The plan (reward 3 at cost 3) was chosen because")
