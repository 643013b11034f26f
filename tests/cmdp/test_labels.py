"""Labels: a name for a number where a person reads, a number for a name where a person writes."""

from __future__ import annotations

import numpy as np
import pytest

from cmdplab import CMDP, InputError, Labels
from cmdplab.cmdp.labels import Scale


def problem(**given):
    kernel = np.full((2, 2, 2), 0.5)
    return CMDP(kernel, np.zeros((2, 2, 2)), [0.0], horizon=3, **given)


def test_a_label_names_a_number_and_is_found_again():
    labels = Labels(("idle", "busy"), ("wait", "serve"))
    assert labels.state(1) == "busy"
    assert labels.find_state("busy", 2) == labels.find_state(1, 2) == 1
    assert Labels().action(1) == "1"


def test_labels_survive_the_file_of_a_problem(tmp_path):
    labels = Labels(("idle", "busy"), ("wait", "serve"), signals=(Scale("gain"), Scale("loss", -1)))
    problem(labels=labels).save(tmp_path / "it.npz")
    assert CMDP.load(tmp_path / "it.npz").labels == labels


def test_one_place_converts_what_leaves_a_problem():
    """Pay is 100 ours - 300, and cost is 30 - 2 ours: a cost unit is half a unit of ours."""
    units = problem(labels=Labels(signals=(Scale("pay", 100, -300), Scale("cost", -2, 30)))).units
    assert [each.cost for each in units] == [False, True]
    assert units.returns([2.5, 12.0]) == [-50.0, 6.0]
    assert units.thresholds([15.0]) == [0.0]
    assert units.slacks([1.5]) == [3.0]
    assert units.multipliers([0.5]) == [
        25.0
    ]  # 0.5 for 1 of ours, which is 50 pay for 2 of the cost
    plain = problem().units
    assert plain.returns([2.5, 12.0]) == [2.5, 12.0]
    assert plain.multipliers([0.5]) == [0.5]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"states": ("a", "a")}, "two of the states are named 'a'"),
        ({"states": ("a",)}, "1 states are named, but the problem has 2"),
        ({"actions": ("a", "")}, "one of the actions is '', not a printable name"),
        ({"steps": "abc"}, "must be a list of names"),
    ],
)
def test_labels_that_do_not_fit_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        problem(labels=Labels(**given))


def test_a_name_that_nobody_has_is_refused_with_those_there_are():
    with pytest.raises(InputError, match=r"no state 'lost': the states are 0..1, named idle, busy"):
        Labels(("idle", "busy")).find_state("lost", 2)
