"""Comma-separated values: text that a spreadsheet would run is quoted, and read as it was."""

from __future__ import annotations

import csv
import io

import numpy as np
from hypothesis import example, given, strategies as st

from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.policy import Policy
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.files.tables import csv_rows, csv_text

FORMULAS = ("=1+1", "+1+1", "-1+1", "@SUM(A1)", "\tx", "\rx", "\n=1", "'=1", "''=1", "-", "-inf")
PLAIN = ("a=1", "a b", "'", "'x", "", "-1", "+3.5e-7", "–", '"', "a,b")
cells = st.text(st.characters(codec="utf-8")) | st.sampled_from([*FORMULAS, *PLAIN])


@given(rows=st.lists(st.lists(cells, min_size=1), min_size=1))
@example(rows=[[*FORMULAS, *PLAIN]])
def test_every_text_is_read_as_it_was_written(rows):
    assert [cells for _, cells in csv_rows(csv_text(rows))] == rows


def test_no_written_text_begins_a_formula_and_numbers_stay_numbers():
    numbers = (-1.5, -3, -1e-300, 0.1, "-1", "+3.5e-7")
    (row,) = csv.reader(io.StringIO(csv_text([[*FORMULAS, *PLAIN, *numbers]]), newline=""))
    assert row[: len(FORMULAS)] == [f"'{each}" for each in FORMULAS]
    assert row[len(FORMULAS) : -len(numbers)] == [*PLAIN]
    assert row[-len(numbers) :] == [str(each) for each in numbers]


def test_a_policy_of_states_with_such_names_comes_back(tmp_path):
    names = ("=cmd|' /C calc'!A0", "-1", "'=x", "+a")
    p = random_problem(4, 2, 2, 0)
    p = p.changed(labels=Labels(states=names, actions=("@go", "stay")))
    policy = Policy(np.full((2, 4, 2), 0.5), p.labels)
    policy.save(tmp_path / "it.csv")
    assert "'=cmd" in (tmp_path / "it.csv").read_text()
    again = Policy.load(tmp_path / "it.csv", p)
    assert np.array_equal(again, policy)
    assert again.labels == p.labels
