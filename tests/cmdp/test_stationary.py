"""Stationary problems: what a person may give, and what is refused with its place."""

from __future__ import annotations

import numpy as np
import pytest

from cmdplab import CMDP, Average, Discounted, InputError, StationaryCMDP

KERNEL = np.full((2, 2, 2), 0.5)
REWARD = np.array([[0.0, 5.0], [-2.0, 1.0]])


def test_a_cost_with_a_budget_is_its_negative_with_a_threshold():
    problem = CMDP.discounted(KERNEL, REWARD, 0.9, costs=[np.ones((2, 2))], budgets=[3.0])
    assert problem.criterion == Discounted(0.9)
    assert (problem.reward[1] == -1.0).all()
    assert problem.threshold == [-3.0]
    assert problem.labels.signal(1).published(-2.5) == 2.5


def test_the_first_state_may_be_random():
    assert (CMDP.average(KERNEL, REWARD, start=[0.25, 0.75]).start == [0.25, 0.75]).all()
    assert (CMDP.average(KERNEL, REWARD, start=1).start == [0.0, 1.0]).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"criterion": Discounted(1.0)}, r"the discount is 1, outside \[0, 1\)"),
        ({"criterion": 0.9}, "not Discounted"),
        ({"start": 2}, "the start is 2"),
        ({"start": [0.5, 0.6]}, "sums to 1.1"),
        ({"transition": KERNEL * 0.9}, r"transition\[0, 0\] sums to 0.9"),
        ({"reward": [[[0.0, np.nan], [0.0, 0.0]]]}, r"reward\[0, 0, 1\] is nan"),
        ({"threshold": [1.0]}, "the reward has 0 utilities"),
    ],
)
def test_what_is_wrong_is_named(given, words):
    problem = {
        "transition": KERNEL,
        "reward": REWARD[None],
        "threshold": [],
        "criterion": Average(),
    }
    with pytest.raises(InputError, match=words):
        StationaryCMDP(**(problem | given))
