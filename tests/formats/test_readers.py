"""What people have is read into the problem they mean: matrices, DiscreteDP, long tables."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from scipy.optimize import linprog

import cmdplab
from cmdplab import CMDP, Labels, StationaryCMDP, solve
from cmdplab.cmdp.exact import returns
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.formats import (
    from_action_first,
    from_gymnasium,
    from_quantecon,
    from_state_first,
    from_table,
    kernels,
)


class Arrays:
    """A random problem without steps: P [S, A, S], R [S, A] in any units, a cost."""

    def __init__(self, seed: int, states: int = 4, actions: int = 3) -> None:
        rng = np.random.default_rng(seed)
        self.P = rng.dirichlet(np.full(states, 0.5), (states, actions))
        self.R = rng.uniform(-20.0, 30.0, (states, actions))
        self.C = rng.uniform(0.0, 7.0, (states, actions))
        self.start = rng.dirichlet(np.ones(states))


def discounted_optimum(P, R, C, budget, gamma, start) -> float:
    """The linear program over occupancies, by HiGHS: nothing of ours."""
    S, A = R.shape
    flow = np.repeat(np.eye(S), A, axis=1) - gamma * P.reshape(S * A, S).T
    costs = {} if C is None else {"A_ub": [C.ravel()], "b_ub": [budget]}
    found = linprog(-R.ravel(), A_eq=flow, b_eq=start, **costs, method="highs")
    assert found.status == 0
    return -found.fun


def value_iteration(P, R, horizon: int, gamma: float = 1.0) -> np.ndarray:
    value = np.zeros(len(R))
    for _ in range(horizon):
        value = (R + gamma * P @ value).max(axis=1)
    return value


# --- units ---------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), horizon=st.integers(1, 6), gamma=st.sampled_from([1.0, 0.8]))
def test_values_in_any_units_come_back_in_them(seed, horizon, gamma):
    a = Arrays(seed)
    problem = from_state_first(
        a.P, a.R, horizon=horizon, discount=gamma, costs=[a.C], budgets=[3.0], start=1
    )
    assert problem.reward.min() >= 0.0
    assert problem.reward.max() <= 1.0
    policy = np.full((horizon, 4, 3), 1 / 3)
    earned = [
        unit.published(v)
        for unit, v in zip(problem.labels.signals, returns(problem, policy), strict=True)
    ]
    for table, found in zip((a.R, a.C), earned, strict=True):
        value = np.zeros(4)
        for _ in range(horizon):
            value = (table + gamma * a.P @ value).mean(axis=1)
        assert found == pytest.approx(value[1], abs=1e-9)
    budget = problem.labels.signals[1].published(problem.threshold[0])
    assert budget == pytest.approx(3.0, abs=1e-12)


def test_numbers_that_fit_stay_as_they_are():
    a = Arrays(0)
    reward = (a.R + 20.0) / 50.0
    problem = from_state_first(a.P, reward, horizon=3)
    np.testing.assert_array_equal(problem.reward[0, 0], reward)


def test_a_random_first_state_changes_no_value():
    a = Arrays(1)
    problem = from_state_first(a.P, a.R, horizon=4, start=a.start)
    assert (problem.states, problem.horizon, problem.start) == (5, 5, 4)
    unit = problem.labels.signals[0]
    wanted = a.start @ value_iteration(a.P, a.R, 4)
    assert unit.published(solve(problem).value) == pytest.approx(wanted, abs=1e-9)


# --- one matrix per action -----------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix", "coo_array", "dok_array", "dia_array"])
@pytest.mark.parametrize("dense", [0, 10**6])
def test_sparse_matrices_are_the_arrays_they_stand_for(form, dense, monkeypatch):
    monkeypatch.setattr(kernels, "DENSE", dense)
    a = Arrays(2)
    rows = [getattr(sparse, form)(a.P[:, i]) for i in range(3)]
    told = {"costs": [a.C], "budgets": [30.0], "discount": 0.9, "start": a.start}
    one, other = from_action_first(rows, a.R, **told), from_state_first(a.P, a.R, **told)
    assert isinstance(one.transition, Sparse) == (dense == 0)
    table = one.transition.dense() if dense == 0 else one.transition
    np.testing.assert_allclose(table, other.transition, atol=1e-15)
    np.testing.assert_array_equal(one.reward, other.reward)
    wanted = discounted_optimum(a.P, a.R, a.C, 30.0, 0.9, a.start)
    assert solve(one).value == pytest.approx(wanted, rel=1e-8)


def test_rewards_per_action_are_vectors_or_matrices():
    a = Arrays(3)
    rows = [sparse.csr_array(a.P[:, i]) for i in range(3)]
    paid = np.random.default_rng(0).uniform(-1, 1, (3, 4, 4)) * (np.arange(4) % 2)
    expected = np.einsum("axy,xay->xa", paid, a.P)
    for given_ in (list(paid), [sparse.coo_array(each) for each in paid], paid):
        found = from_action_first(rows, given_, discount=0.5).reward[0]
        np.testing.assert_allclose(found, expected, atol=1e-15)
    vectors = [a.R[:, i] for i in range(3)]
    for transition in (rows, a.P.transpose(1, 0, 2)):
        found = from_action_first(transition, vectors, criterion="average").reward[0]
        np.testing.assert_array_equal(found, a.R)


def test_a_large_chain_is_never_written_out():
    """A hundred thousand states: a dense row of them alone would be 80 GB."""
    n = 100_000
    stay = sparse.eye_array(n, format="csr")
    ahead = sparse.coo_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)))
    problem = from_action_first([stay, ahead], np.ones((n, 2)), discount=0.9)
    assert isinstance(problem.transition, Sparse)
    assert problem.transition.successor.shape == (n, 2, 1)


def test_sparse_and_dense_may_be_mixed_and_places_may_stand_twice():
    a = Arrays(3)
    wanted = solve(from_state_first(a.P, a.R, discount=0.9)).value
    rows = [sparse.csr_array(a.P[:, i]) for i in range(3)]
    boxed = np.empty(3, dtype=object)
    boxed[:] = rows
    x, y = np.nonzero(np.ones((4, 4)))
    halves = sparse.coo_array((np.tile(a.P[:, 0].ravel() / 2, 2), (np.tile(x, 2), np.tile(y, 2))))
    first = a.P.transpose(1, 0, 2)
    for P, R in (
        (boxed, a.R),
        ([halves, *rows[1:]], a.R),
        ([a.P[:, 0], *rows[1:]], a.R),
        (first, sparse.csr_array(a.R)),
        (first, [sparse.csr_array(np.repeat(a.R[:, [i]], 4, axis=1)) for i in range(3)]),
    ):
        assert solve(from_action_first(P, R, discount=0.9)).value == pytest.approx(wanted, rel=1e-9)
    assert halves.nnz == 32  # what was given is left as it was
    with pytest.raises(InputError, match="transition is one matrix: give a list"):
        from_action_first(rows[0], a.R, discount=0.9)


@pytest.mark.parametrize("read", [from_state_first, from_action_first])
def test_a_constraint_that_is_misspelt_is_not_lost(read):
    P = np.ones((1, 1, 1))
    with pytest.raises(InputError, match="there is no argument 'cost'"):
        read(P, [[1.0]], discount=0.5, cost=[[[1.0]]], budget=[1.0])


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")  # their own checks
def test_models_of_pymdptoolbox_have_the_values_that_it_finds():
    mdp = pytest.importorskip("mdptoolbox.mdp")
    example = pytest.importorskip("mdptoolbox.example")
    for P, R in (example.forest(S=7), example.forest(S=7, is_sparse=True), example.rand(6, 3)):
        theirs = mdp.PolicyIteration(P, R, 0.9)
        theirs.run()
        ours = solve(from_action_first(P, R, discount=0.9, start=2)).value
        assert ours == pytest.approx(theirs.V[2], abs=1e-9)


@pytest.mark.parametrize(
    ("matrices", "sentence"),
    [
        ([[[1.0, 0.0], [0.0, 0.9]]], "the probabilities of action go in state b sum to 0.9, not 1"),
        ([[[1.0, 0.0], [0.0, 0.0]]], "the probabilities of action go in state b sum to 0, not 1"),
        ([[[1.0, 0.0], [2.0, -1.0]]], "2 from state b by action go to a is not a probability"),
        ([[[1.0, 0.0]]], "transition[0] has the shape (1, 2), not [S, S]"),
    ],
)
def test_matrices_that_cannot_be_read_are_one_sentence(matrices, sentence):
    rows = [sparse.csr_array(np.array(each)) for each in matrices]
    labels = Labels(("a", "b"), ("go",))
    with pytest.raises(InputError, match=re.escape(sentence)):
        from_action_first(rows, np.zeros((2, 1)), horizon=2, labels=labels)


# --- DiscreteDP ----------------------------------------------------------------------------------


def pairs(a: Arrays) -> dict[str, np.ndarray]:
    """The arrays as state-action pairs, last pair of state 0 left out."""
    s, m = np.divmod(np.arange(12), 3)
    keep = np.arange(12) != 2
    return {
        "R": a.R.ravel()[keep],
        "Q": a.P.reshape(12, 4)[keep],
        "s_indices": s[keep],
        "a_indices": m[keep],
    }


@pytest.mark.parametrize("lists", [False, True])
def test_both_forms_of_a_discrete_dp_are_one_problem(lists):
    a = Arrays(4)
    closed = a.R.copy()
    closed[0, 2] = -np.inf
    product = SimpleNamespace(R=closed, Q=a.P, beta=0.95, s_indices=None, a_indices=None)
    told = pairs(a)
    told["Q"] = sparse.csr_matrix(told["Q"]) if lists else told["Q"]
    by_pairs = SimpleNamespace(beta=0.95, **told)
    one, other = from_quantecon(product), from_quantecon(by_pairs)
    again = from_quantecon(told["R"], told["Q"], 0.95, told["s_indices"], told["a_indices"])
    for each in (one, other, again):
        assert isinstance(each, StationaryCMDP)
        assert each.criterion.discount == 0.95
        assert not each.opened[0, 2]
        best = value_iteration(a.P, closed, 2000, 0.95)[0]
        assert solve(each).value == pytest.approx(best, rel=1e-9)


def test_a_discrete_dp_with_a_horizon_is_its_backward_induction():
    a = Arrays(5)
    problem = from_quantecon(a.R, a.P, 0.9, horizon=7)
    assert isinstance(problem, CMDP)
    value = problem.labels.signals[0].published(solve(problem).value)
    assert value == pytest.approx(value_iteration(a.P, a.R, 7, 0.9)[0], rel=1e-10)


def test_a_real_discrete_dp_has_the_value_that_quantecon_finds():
    markov = pytest.importorskip("quantecon").markov
    a = Arrays(6)
    ddp = markov.DiscreteDP(a.R, a.P, 0.95)
    assert solve(from_quantecon(ddp)).value == pytest.approx(ddp.solve("pi").v[0], rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"Q": None}, "give a DiscreteDP, or R, Q and beta"),
        ({"beta": 1.0}, "the discount is 1, outside [0, 1)"),
        ({"beta": "b"}, "beta is 'b', not a number"),
        ({"s_indices": [0] * 11}, "is listed twice"),
        ({"s_indices": [0, 1]}, "Q has 11 pairs and 4 states, s_indices 2"),
        ({"a_indices": [0.5] * 11}, "a_indices must be a list of whole numbers"),
        ({"R": [1.0]}, "R has the shape (1,), and there are 11 pairs"),
        ({"discount": 0.5}, "the discount of a DiscreteDP is its beta"),
        ({"a_indices": None}, "need both s_indices and a_indices"),
        ({"cost": [[0.0] * 11]}, "there is no argument 'cost': it may be one of horizon"),
    ],
)
def test_a_discrete_dp_that_cannot_be_read_is_one_sentence(changes, sentence):
    told = {"beta": 0.9, **pairs(Arrays(0)), **changes}
    with pytest.raises(InputError, match=re.escape(sentence)):
        from_quantecon(told.pop("R"), told.pop("Q"), **told)


# --- long tables ---------------------------------------------------------------------------------

MACHINE = """state,action,next,probability,reward,energy
ok,careful,ok,0.9,4,1
ok,careful,broken,0.1,4,1
ok,fast,ok,0.5,10,3
ok,fast,broken,0.5,10,3
broken,repair,ok,1,-2,0
"""


def records(text: str = MACHINE) -> list[dict[str, object]]:
    header, *rows = [line.split(",") for line in text.split()]
    return [dict(zip(header, row, strict=True)) for row in rows]


def same_table(one, other) -> bool:
    return (
        one.labels == other.labels
        and np.array_equal(one.reward, other.reward)
        and np.array_equal(one.transition, other.transition)
        and np.array_equal(one.threshold, other.threshold)
    )


def test_a_file_a_frame_and_a_list_are_one_problem(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "machine.csv"
    path.write_text(MACHINE)
    told = {"costs": {"energy": 150.0}, "discount": 0.99}
    one = from_table(path, **told)
    frame = pandas.read_csv(path)
    for other in (frame, records(), {name: frame[name].tolist() for name in frame}):
        assert same_table(one, from_table(other, **told))
    assert one.labels.states == ("ok", "broken")
    assert one.labels.actions == ("careful", "fast", "repair")
    assert one.opened.tolist() == [[True, True, False], [False, False, True]]
    P = np.array([[[0.9, 0.1], [0.5, 0.5], [1, 0]], [[0, 1], [0, 1], [1, 0]]])
    R = np.array([[4, 10, -1e4], [-1e4, -1e4, -2]])  # closed pairs are made dear instead
    C = np.array([[1, 3, 0], [0, 0, 0.0]])
    wanted = discounted_optimum(P, R, C, 150.0, 0.99, [1.0, 0.0])
    assert solve(one).value == pytest.approx(wanted, rel=1e-8)


def test_an_average_over_all_time_has_its_closed_form():
    """Fast with probability f: ok for 1 / q steps, q = 0.1 + 0.4 f, then one repair."""
    problem = from_table(records(), costs={"energy": 1.5}, criterion="average")
    # (1 + 2 f) / (1 + q) = 1.5 gives f = 13/28; the gain is (4 + 6 f - 2 q) / (1 + q).
    f = 13 / 28
    q = 0.1 + 0.4 * f
    assert solve(problem).value == pytest.approx((4 + 6 * f - 2 * q) / (1 + q), abs=1e-9)
    assert problem.labels.signals[1].published(problem.threshold[0]) == 1.5


def test_whole_numbers_stay_numbers_and_names_keep_their_order():
    rows = [
        {"state": 1, "action": "b", "next": 0, "probability": 1, "reward": 1.0},
        {"state": 0, "action": "a", "next": 1.0, "probability": 1, "reward": 0.0},
    ]
    problem = from_table(rows, horizon=2)
    assert problem.labels.states == ()
    assert problem.labels.actions == ("b", "a")
    assert problem.start == 1
    assert from_table(rows, horizon=2, start="0").start == 0


def test_a_column_of_steps_makes_a_problem_that_changes():
    rows = [
        {"step": 1, "state": "a", "action": "x", "next": "a", "probability": 0.5, "reward": 2},
        {"step": 1, "state": "a", "action": "x", "next": "b", "probability": 0.5, "reward": 0},
        {"step": 2, "state": "a", "action": "x", "next": "c", "probability": 1, "reward": 1},
        {"step": 2, "state": "b", "action": "y", "next": "c", "probability": 1, "reward": 5},
    ]
    problem = from_table(rows)
    assert problem.horizon == 2
    value = problem.labels.signals[0].published(solve(problem).value)
    assert value == pytest.approx(1.0 + 0.5 * 1 + 0.5 * 5)
    with pytest.raises(InputError, match="the table has 2 steps, and the horizon is 3"):
        from_table(rows, horizon=3)
    with pytest.raises(InputError, match="state b has no action at step 1"):
        from_table(rows[:3])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "DENSE", 0)
        lists = from_table(rows)
    np.testing.assert_array_equal(lists.table, problem.table)


def test_starts_are_names_or_chances():
    even = from_table(records(), discount=0.5, start={"ok": 0.5, "broken": 0.5})
    np.testing.assert_array_equal(even.start, [0.5, 0.5])
    broken = from_table(records(), horizon=3, start="broken")
    assert broken.start == 1


def counted_from_one() -> list[dict[str, object]]:
    return [
        {"state": 1, "action": 5, "next": 2, "probability": 1.0, "reward": 0.25},
        {"state": 2, "action": 5, "next": 2, "probability": 1.0, "reward": 1.0},
    ]


@pytest.mark.parametrize("start", [2, "2", np.int64(2), {2: 1.0}, {"2": 1.0}, [0.0, 1.0]])
def test_states_that_are_counted_from_one_start_where_the_table_says(start):
    problem = from_table(counted_from_one(), discount=0.5, start=start)
    assert solve(problem).value == pytest.approx(2.0)
    with pytest.raises(InputError, match="the table has no state 0"):
        from_table(counted_from_one(), discount=0.5, start=0)
    with pytest.raises(InputError, match="the chance to start in 2 is 'x', not a number"):
        from_table(counted_from_one(), discount=0.5, start={2: "x"})  # type: ignore[dict-item]


def test_what_pandas_calls_missing_is_no_name_and_columns_stand_once():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(counted_from_one())
    gone = frame.assign(next=pandas.array([2, None], dtype="Int64"))
    with pytest.raises(InputError, match="row 2: the next is '', not a name"):
        from_table(gone, discount=0.5)
    twice = pandas.concat([frame, frame[["reward"]]], axis=1)
    with pytest.raises(InputError, match="the table has the column 'reward' twice"):
        from_table(twice, discount=0.5)
    with pytest.raises(InputError, match="the limit of reward is 'x', not a number"):
        from_table(frame, costs={"reward": "x"}, discount=0.5)  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("next", "then", "the table has no column 'next'; it has state, action, then, prob"),
        ("energy", "power", "the table has no column 'energy'"),
        ("reward", "profit", "maximise: reward=NAME, or --objective NAME"),
        ("careful,ok,0.9", "careful,ok,0.8", "action careful in state ok sum to 0.9, not 1"),
        ("careful,ok,0.9", "careful,ok,nan", "line 2: the probability is 'nan', not a finite"),
        ("careful,ok,0.9", "careful,ok,-0.9", "line 2: -0.9 is not a probability"),
        ("careful,broken", "careful,ok", "line 3: action careful in state ok leads to ok a second"),
        ("0.5,10,3\nbroken", "0.5,ten,3\nbroken", "line 5: the reward is 'ten', not a finite"),
        ("broken,repair,ok,1,-2,0\n", "", "state broken has no action: a state that is never"),
        ("broken,repair", ",repair", "line 6: the state is '', not a name"),
        ("broken,repair,ok,1,-2,0", "broken,repair,ok,1,-2", "line 6: 5 cells, but 6 columns"),
        (MACHINE, "state,state\n1,2\n", "has no rows, or a column twice"),
    ],
)
def test_a_table_that_cannot_be_read_names_the_row(before, after, sentence, tmp_path):
    path = tmp_path / "t.csv"
    assert before in MACHINE
    path.write_text(MACHINE.replace(before, after, 1))
    with pytest.raises(InputError, match=re.escape(sentence)):
        from_table(path, costs={"energy": 100.0}, discount=0.9)


def test_sizes_of_a_table_are_known_before_memory_is_asked_for():
    row = {"state": "a", "action": "go", "next": "a", "probability": 1.0, "reward": 1.0}
    far = [{**row, "step": step} for step in (0, 99_999_999)]
    with pytest.raises(InputError, match="the table has no step 1"):
        from_table(far)
    rows = [{**row, "step": h, "state": f"s{h}", "next": f"s{h + 1}"} for h in range(12_000)]
    with pytest.raises(
        InputError, match="12000 x 12001 x 1 steps, states and actions are too many"
    ):
        from_table(rows)


@pytest.mark.parametrize(
    ("asked", "way_out"),
    [({"discount": 0.9}, "truncate"), ({"criterion": "average"}, "averaged")],
)
def test_learners_say_how_to_end_what_has_no_end(asked, way_out):
    problem = from_table(records(), name="machine", **asked)
    says = rf"machine has no end, .* cmdplab\.cmdp\.horizons\.{way_out}"
    for learn in (
        lambda: cmdplab.run(problem, "OptCMDP", 10),
        lambda: cmdplab.run_many(problem, [cmdplab.Job("OptCMDP", 0)], 10),
        lambda: cmdplab.compare(problem, ["OptCMDP"], episodes=10),
    ):
        with pytest.raises(InputError, match=says):
            learn()


def test_a_problem_of_a_table_shows_its_start_and_its_limits_in_the_units_of_the_table():
    problem = from_table(records(), costs={"energy": 15}, horizon=10)
    shown = repr(problem)
    assert "start ok;" in shown
    assert "in your units energy <= 15>" in shown
    rewards = from_table(records(), utilities={"energy": 2}, horizon=10)
    assert "in your units energy >= 2>" in repr(rewards)


def test_the_command_line_solves_a_table(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(MACHINE)
    limits = ("--cost", "energy", "--budget", "15")
    code, out, _ = call("solve", "t.csv", "--discount", "0.9", *limits, "--json")
    found = json.loads(out)
    wanted = solve(from_table("t.csv", costs={"energy": 15.0}, discount=0.9)).value
    assert (code, found["value"], found["published_unit"]) == (0, wanted, "reward")
    code, out, _ = call("solve", "t.csv", "--horizon", "10", *limits, "--start", "ok", "--json")
    problem = from_table("t.csv", costs={"energy": 15.0}, horizon=10)
    value = problem.labels.signals[0].published(solve(problem).value)
    assert json.loads(out)["published_value"] == pytest.approx(value)
    for arguments, sentence in (
        (("solve", "t.csv", *limits), "a .csv file needs --horizon, --discount or --average"),
        (("solve", "t.csv"), "a .csv file needs --horizon, --discount or --average"),
        (
            ("theory", "t.csv", "--average"),
            "t has no end, it is average per step: this needs episodes",
        ),
    ):
        code, out, err = call(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert sentence in err


# --- environments --------------------------------------------------------------------------------


def test_an_environment_may_start_anywhere_and_count_from_one():
    table = {
        1: {1: [(1.0, 2, 0.0, False)], 2: [(1.0, 1, 0.5, False)]},
        2: {1: [(1.0, 1, 1.0, False)]},
    }
    env = SimpleNamespace(
        P=table,
        initial_state_distrib=[0.5, 0.5],
        observation_space=SimpleNamespace(start=1),
        action_space=SimpleNamespace(start=1),
    )
    seen = []

    def cost(s: int, a: int, y: int) -> float:
        seen.append((s, a, y))
        return 0.0

    problem = from_gymnasium(env, 3, cost, budget=1.0).problem
    assert set(seen) == {(1, 1, 2), (1, 2, 1), (2, 1, 1)}
    assert problem.labels.states == ("1", "2", "start")
    # From 1: 0.5 three times, or 0 and then 1 and 0.5; from 2: 1 and twice 0.5.
    assert solve(problem).value == pytest.approx(0.5 * 1.5 + 0.5 * 2.0)
    for_ever = from_gymnasium(env, cost=(), discount=0.5).problem
    np.testing.assert_array_equal(for_ever.start, [0.5, 0.5])
    assert solve(for_ever).value == pytest.approx(0.5 * 1.0 + 0.5 * 1.5)
