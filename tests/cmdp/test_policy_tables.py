"""Policies as tables: what is written is read, and what is missing or wrong is named by its row."""

from __future__ import annotations

import numpy as np
import pytest

import cmdplab
from cmdplab import CMDP, Counter, InputError, Labels, Policy

NAMES = Labels(("idle", "busy", "down"), ("wait", "serve"), ("early", "late"))


def problem(labels=NAMES) -> CMDP:
    """From idle one comes to idle or busy, never to down."""
    kernel = np.zeros((3, 2, 3))
    kernel[:, 0, 0] = kernel[:, 1, 1] = 1.0
    return CMDP(kernel, np.full((1, 3, 2), 0.5), [], horizon=2, labels=labels)


def some(problem) -> Policy:
    rows = np.random.default_rng(0).dirichlet(np.ones(2), (2, 3))
    return Policy(rows, problem.labels)


@pytest.mark.parametrize("labels", [NAMES, Labels()])
@pytest.mark.parametrize("ending", ["npz", "csv", "json"])
def test_every_file_gives_the_same_policy_back(labels, ending, tmp_path):
    p = problem(labels)
    some(p).save(tmp_path / f"it.{ending}")
    again = Policy.load(tmp_path / f"it.{ending}", p)
    assert np.array_equal(again, some(p))
    assert again.labels == labels


def test_a_counter_survives_json_and_is_refused_by_csv(tmp_path):
    p = problem()
    rows = np.random.default_rng(0).dirichlet(np.ones(2), (2, 4, 3))
    policy = Policy(rows, p.labels, "spender", Counter(np.array([[0, 1]] * 3), 4, 1))
    policy.save(tmp_path / "it.json")
    again = Policy.load(tmp_path / "it.json", p)
    assert np.array_equal(again, policy)
    assert np.array_equal(again.counter.step, policy.counter.step)
    assert (again.counter.levels, again.counter.start, again.name) == (4, 1, "spender")
    with pytest.raises(InputError, match="cannot hold the counter"):
        policy.save(tmp_path / "it.csv")


def test_a_table_reads_by_names():
    first, *_ = some(problem()).to_table()
    assert first == {
        "step": "early",
        "state": "idle",
        "action": "wait",
        "probability": some(problem())[0, 0, 0],
    }


def test_a_frame_of_pandas_is_a_table():
    pytest.importorskip("pandas")
    p = problem()
    frame = some(p).to_frame()
    assert [*frame.columns] == ["step", "state", "action", "probability"]
    assert np.array_equal(Policy.from_table(frame, p), some(p))


def test_a_compact_table_has_what_is_reached_and_earns_the_same():
    p = problem()
    rows = some(p).to_table(p)
    assert {(each["step"], each["state"]) for each in rows} == {
        ("early", "idle"), ("late", "idle"), ("late", "busy")}  # fmt: skip
    again = Policy.from_table(rows, p)
    assert np.array_equal(again.row("down", 0), [0.5, 0.5])
    assert np.array_equal(
        cmdplab.evaluate(p, again).occupancy, cmdplab.evaluate(p, some(p)).occupancy
    )


def test_a_table_without_steps_is_a_stationary_policy():
    p = problem()
    rows = [{"state": x, "action": "serve", "probability": 1} for x in ("idle", "busy", "down")]
    assert Policy.from_table(rows, p).stationary
    kernel = np.zeros((3, 1, 3))
    kernel[:, 0, 1] = 1.0
    endless = CMDP.discounted(kernel, np.ones((3, 1)), 0.9)
    found = Policy.from_table(
        [{"state": x, "action": 0, "probability": 1} for x in (0, 1)], endless
    )
    assert found.shape == (3, 1)
    assert [each["state"] for each in found.to_table(endless)] == [0, 1]


ROWS = [
    {"step": h, "state": x, "action": a, "probability": 0.5}
    for h in ("early", "late")
    for x in NAMES.states
    for a in NAMES.actions
]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[:8] + rows[10:], "no row for step late, state busy, which its policy"),
        (lambda rows: rows[1:], "step early, state idle, from row 1 on, sum to 0.5, not to 1"),
        (lambda rows: [*rows, rows[2]], "row 13 says .*wait again, after row 3"),
        (
            lambda rows: [*rows[:2], rows[2] | {"state": "lost"}],
            "row 3: .* no state 'lost': .* named ",
        ),
        (lambda rows: [rows[0] | {"probability": 1.5}], "row 1: 1.5 is not a prob"),
        (lambda rows: [{"state": 0, "action": 1}], "no column 'probability'; it has state, action"),
        (lambda rows: [*rows[:1], {"step": 0, "action": 0}], "row 2: there is no state ''"),
        (lambda rows: [], "the table is empty"),
        (lambda rows: b"text", "or a list of dictionaries"),
        (lambda rows: [3], "or a list of dictionaries"),
    ],
)
def test_what_is_wrong_is_named_by_its_row(change, words):
    with pytest.raises(InputError, match=words):
        Policy.from_table(change(ROWS), problem())


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("it.csv", "step,state,action,probability\n0,0,0\n", "line 2: 3 cells, but 4 columns"),
        ("it.json", "[]", "it is not a policy"),
        ("it.json", '{"format": "cmdplab-policy-1", "rows": [], "counter": [1]}', "needs both"),
        ("it.json", '{"format": "cmdplab-policy-1", "rows": "other.csv"}', "it is not a policy"),
        ("it.csv", "", "has no rows"),
    ],
)
def test_a_file_that_is_no_policy_gets_a_sentence_with_its_name(name, text, words, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words) as error:
        Policy.load(tmp_path / name, problem())
    assert name in str(error.value)


def test_other_endings_are_refused_and_tables_need_their_problem(tmp_path):
    with pytest.raises(InputError, match=r"no .npz, .csv or .json"):
        some(problem()).save(tmp_path / "it.txt")
    some(problem()).save(tmp_path / "it.csv")
    with pytest.raises(InputError, match="is read with its problem"):
        Policy.load(tmp_path / "it.csv")


def test_names_that_are_digits_may_come_back_as_numbers():
    """As pandas reads them from a file: state 2 is the one that is named 2, not the third."""
    problem = CMDP(
        np.full((3, 2, 3), 1 / 3),
        np.zeros((1, 3, 2)),
        [],
        horizon=1,
        labels=Labels(("1", "2", "3"), ("10", "20")),
    )
    rows = [{"state": x, "action": 10 if x == 2 else 20, "probability": 1.0} for x in (1, 2, 3)]
    np.testing.assert_array_equal(Policy.from_table(rows, problem), [[0, 1], [1, 0], [0, 1]])


def test_a_counter_too_large_for_any_memory_is_refused(tmp_path):
    text = (
        '{"format": "cmdplab-policy-1", "counter": [1000000000000, 0], '
        '"counter_step": [[0, 0]], "rows": [{}]}'
    )
    (tmp_path / "it.json").write_text(text)
    problem = CMDP(np.ones((1, 2, 1)), np.zeros((1, 1, 2)), [], horizon=1)
    with pytest.raises(InputError, match="is too large"):
        Policy.load(tmp_path / "it.json", problem)
