"""Other formats: what goes there and comes back is the same, and what is wrong is one sentence."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import random_policy, random_problem
from fuzz_readers import DRN, ROLES, same
from hypothesis import given, strategies as st
from test_docs import run_blocks

from cmdplab import (
    CMDP,
    Average,
    Labels,
    Policy,
    StationaryCMDP,
    describe,
    from_table,
    from_trajectories,
    make,
    solve,
)
from cmdplab.cmdp.exact import greedy, returns
from cmdplab.cmdp.horizons import averaged
from cmdplab.cmdp.labels import Scale
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.formats import (
    Roles,
    convert,
    find,
    from_action_first,
    from_gymnasium,
    from_state_first,
    kernels,
    parse_drn,
    read_drn,
    read_problem,
    to_action_first,
    to_gymnasium_table,
    to_state_first,
    write_drn,
)

FILE = DRN[0]


@st.composite
def stationary(draw: st.DrawFn, masks: bool = True) -> CMDP:
    """Problems that are the same at every step, dense or as lists, some with closed pairs."""
    X, A, H, N = (draw(st.integers(low, high)) for low, high in ((1, 6), (1, 4), (1, 5), (0, 2)))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    kernel = rng.dirichlet(np.full(X, draw(st.sampled_from([0.05, 1.0]))), (X, A))
    mask = rng.random((X, A)) < 0.6 if masks and draw(st.booleans()) else np.ones((X, A), bool)
    mask[:, A - 1] = True  # a last action that is closed everywhere would be lost
    rows = Sparse.of(kernel) if draw(st.booleans()) else kernel
    reward, threshold = rng.random((1 + N, X, A)), rng.random(N) * H
    return CMDP(rows, reward, threshold, int(rng.integers(X)), H, "a name, [with] {signs}", mask)


def text(tmp_path, content: str, name: str = "file.drn"):
    path = tmp_path / name
    path.write_text(content)
    return path


# --- DRN -----------------------------------------------------------------------------------------


@given(problem=stationary())
def test_drn_there_and_back_is_the_same_to_the_last_bit(problem, tmp_path_factory):
    path = tmp_path_factory.mktemp("drn") / "p.drn"
    write_drn(problem, path)
    assert same(read_drn(path), problem)


@given(problem=stationary())
def test_lists_and_tables_of_a_file_agree(problem, tmp_path_factory):
    path = tmp_path_factory.mktemp("drn") / "p.drn"
    write_drn(problem, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "DENSE", 0)
        lists = read_drn(path)
    assert isinstance(lists.transition, Sparse)
    assert same(lists, problem)


def test_a_file_says_what_it_looks_like(tmp_path):
    problem = read_drn(text(tmp_path, FILE), ROLES)
    assert (problem.states, problem.actions, problem.horizon, problem.start) == (3, 3, 4, 0)
    assert problem.name == "given"
    closed = [[True, True, False], [True, False, False], [True, False, True]]
    assert problem.opened[0].tolist() == closed
    np.testing.assert_array_equal(problem.table[0, 0, 1], [0.5, 0.0, 0.5])
    np.testing.assert_allclose(problem.table[0, 2, 0], [1 / 3, 2 / 3, 0.0], rtol=1e-15)
    # A state's reward and its action's are paid together: gold 0 + 0.5, safe 0.5 + 0.25.
    np.testing.assert_array_equal(problem.reward[:2, 0, 0, 0], [0.5, 0.75])
    np.testing.assert_array_equal(problem.reward[0, :, 1, 0], 0.25)
    # hits is a cost: u = 1 - c, and b = H - budget.
    np.testing.assert_array_equal(problem.reward[2, 0, 2, 2], 0.0)
    np.testing.assert_array_equal(problem.threshold, [1.0, 2.0])


def test_state_rewards_are_paid_at_every_step(tmp_path):
    lines = "@type: MDP\n@reward_models\nr\n@nr_states\n1\n@model\nstate 0 [0.25] init\n"
    path = text(tmp_path, lines + "action a [0.5]\n0 : 1\n")
    assert greedy(read_drn(path, Roles("r", 8)), np.full((8, 1, 1), 1.0))[0] == 8.0
    assert solve(read_drn(path, Roles("r", 8))).value == pytest.approx(8 * 0.75)


def test_a_file_of_ours_holds_its_roles_and_others_may_replace_them(tmp_path):
    path = text(tmp_path, FILE)
    assert read_drn(path).name == "mine"
    np.testing.assert_array_equal(read_drn(path).threshold, [2.5])
    assert read_drn(path, Roles("hits", 2)).name == "file"
    bare = text(tmp_path, FILE.partition("\n")[2], "bare.drn")
    with pytest.raises(InputError, match=r"say which reward model .* gold, safe, hits"):
        read_drn(bare)


def test_names_order_the_actions_of_a_state_only_where_they_are_numbers(tmp_path):
    named = FILE.replace("action 2", "action wait").replace("action 0", "action go")
    problem = read_drn(text(tmp_path, named))
    assert problem.actions == 2
    np.testing.assert_array_equal(problem.table[0, 2, 1], [0.0, 0.0, 1.0])


def test_rows_that_text_has_rounded_are_normalised(tmp_path):
    rounded = FILE.replace("0 : 1/3", "0 : 0.333333").replace("1 : 2/3", "1 : 0.666666")
    row = read_drn(text(tmp_path, rounded)).table[0, 2, 0]
    assert row.sum() == pytest.approx(1.0, abs=1e-15)
    assert row[0] == pytest.approx(1 / 3, abs=1e-12)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("@type: MDP", "@type: CTMC", "line 2: the type is CTMC: only @type: MDP can be read"),
        ("@type: MDP", "@type: Markov Automaton", "line 2: the type is Markov Automaton"),
        ("@type: MDP\n", "", "line 1: the type is not given"),
        ("@parameters\n", "@parameters\np q", "line 3: parametric models are not supported (p q)"),
        ("@parameters\n", "@value_type: double-interval", "line 3: values of type double-interval"),
        ("@parameters\n", "@placeholders", "line 3: @placeholders is not supported"),
        ("gold safe hits", "gold safe gold", "line 5: a reward model stands twice"),
        ("@nr_states\n3", "@nr_states\n4", "declares 4 states and lists 3"),
        ("@nr_choices\n5", "@nr_choices\n4", "declares 4 choices and lists 5"),
        ("@nr_states\n3", "@nr_states\n99999999", "line 7: @nr_states is 99999999, but the file"),
        ("@nr_states\n3", "@nr_states\n-3", "line 7: @nr_states is '-3', not a positive"),
        ("@nr_states\n3", "@nr_states\n3\n@nr_states\n3", "line 9: @nr_states stands twice"),
        ("@model", "@mode", "@mode is not supported"),
        ("state 1", "state 2", "line 19: expected state 1, found 2"),
        ('"deep mine"', "init", "line 19: a second initial state"),
        (" init", "", "has no initial state"),
        ("state 2 [0, 0, 1]", "state 2 !3 [0, 0, 1]", "line 22: expected: state NUMBER"),
        ("state 2 [0, 0, 1]", "state 2 !3", "line 22: exit rates and observations (!3)"),
        ("\taction 0 [0, 0, 0]\n\t\t1 : 1\n", "", "line 19: state 1 has no action"),
        ("\t\t1 : 1\nstate", "state", "line 20: action 0 leads nowhere"),
        ("[0.5, 0.25, 0]", "[0.5, 0.25]", "line 13: 2 rewards, but @reward_models names 3"),
        ("[0.5, 0.25, 0]", "[nan, 0.25, 0]", "line 13: 'nan' is not a number"),
        ("1 : 0.1", "1 : 0.2", "line 13: the probabilities sum to 1.1, not 1"),
        ("1 : 0.1", "1 : [0.1, 0.2]", "line 15: '[0.1, 0.2]' is an interval"),
        ("1 : 0.1", "1 : 1-p", "line 15: '1-p' is not a number"),
        ("1 : 0.1", "1 : 1e999", "line 15: '1e999' is not finite"),
        ("1 : 0.1", "1 : -0.1", "line 15: -0.1 is not a probability"),
        ("1 : 0.1", "0 : 0.1", "line 13: the action lists the target 0 twice"),
        ("1 : 0.1", "7 : 0.1", "line 13: the target 7 is none of the 3 states"),
        ("1 : 0.1", "everywhere", "line 15: 'everywhere' is no state, action or TARGET : VALUE"),
        ('"horizon": 5', '"horizon": 0', "line 1: the horizon is 0"),
        ('"gold"', '"silver"', "has no reward model 'silver'; it has gold, safe, hits"),
        ("@model", "", "it has no line @model"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(before, after, sentence, tmp_path):
    assert before in FILE
    path = text(tmp_path, FILE.replace(before, after, 1))
    with pytest.raises(InputError, match=re.escape(sentence)):
        read_drn(path)


def test_what_is_no_text_is_refused(tmp_path):
    (tmp_path / "f.drn").write_bytes(b"@type: MDP\n\xff\xfe")
    with pytest.raises(InputError, match="is not text"):
        parse_drn(tmp_path / "f.drn")
    with pytest.raises(InputError, match="does not exist"):
        parse_drn(tmp_path / "none.drn")
    with pytest.raises(InputError, match="is not a file"):
        parse_drn(tmp_path)


def test_formats_without_steps_refuse_problems_that_change(tmp_path):
    changing = random_problem(3, 2, 4, 1)
    for write in (to_state_first, to_action_first, to_gymnasium_table):
        with pytest.raises(InputError, match=r"kernel of .* changes with the step"):
            write(changing)
    rewards = np.random.default_rng(0).random((1, 2, 1, 2))
    with pytest.raises(InputError, match=r"rewards of .* change with the step: DRN"):
        write_drn(CMDP(np.ones((1, 2, 1)), rewards, np.zeros(0)), tmp_path / "p.drn")
    assert list(tmp_path.iterdir()) == []


# --- tables of environments ----------------------------------------------------------------------


def environment(seed: int) -> SimpleNamespace:
    """A random table with rewards in [-3, 5], of which some transitions terminate."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    table = {
        s: {
            a: [
                (
                    float(p),
                    int(rng.integers(S)),
                    float(rng.uniform(-3, 5)),
                    bool(rng.random() < 0.3),
                )
                for p in rng.dirichlet([1.0, 1.0, 1.0])
            ]
            for a in range(A)
        }
        for s in range(S)
    }
    first = np.zeros(S)
    first[int(rng.integers(S))] = 1.0
    return SimpleNamespace(P=table, initial_state_distrib=first)


def played(env, policy, pay) -> float:
    """The expected sum of `pay` over an episode, on the table itself: ended is ended."""
    value = np.zeros(len(env.P))
    for h in reversed(range(len(policy))):
        value = np.array(
            [
                sum(
                    policy[h, s, a] * p * (pay(s, a, y, r) + (0.0 if end else value[y]))
                    for a, row in env.P[s].items()
                    for p, y, r, end in row
                )
                for s in env.P
            ]
        )
    return float(value[np.argmax(env.initial_state_distrib)])


def spent(s: int, a: int, y: int) -> float:
    return 2.0 * ((s + 2 * a + 3 * y) % 4)


@given(seed=st.integers(0, 10**6), horizon=st.integers(1, 6))
def test_rescaled_values_are_those_of_the_environment_for_every_policy(seed, horizon):
    env = environment(seed)
    budget = 0.25 * horizon
    got = from_gymnasium(env, horizon, spent, budget=budget, rescale=True)
    policy = random_policy(got.problem, seed)
    value, utility = returns(got.problem, policy)
    true = played(env, policy, lambda s, a, y, r: r)
    assert got.reward.value(value, horizon) == pytest.approx(true, abs=1e-9)
    cost = got.costs[0].value(horizon - utility, horizon)
    assert cost == pytest.approx(played(env, policy, lambda s, a, y, r: spent(s, a, y)), abs=1e-9)
    # The budget is moved along: V[u] - b of the problem is (budget - cost) of the environment.
    slack = (utility - got.problem.threshold[0]) * got.costs[0].scale
    assert slack == pytest.approx(budget - cost, abs=1e-9)


@given(problem=stationary())
def test_a_problem_is_its_own_transition_table(problem):
    env = SimpleNamespace(P=to_gymnasium_table(problem))
    costs = [np.where(problem.opened[0], 1.0 - u[0], 0.0) for u in problem.reward[1:]]
    free = [] if costs else [np.zeros((problem.states, problem.actions))]
    threshold = [*problem.threshold, *(0.0 for _ in free)]
    start, horizon = problem.start, problem.horizon
    got = from_gymnasium(env, horizon, costs + free, threshold=threshold, start=start).problem
    opened = problem.opened[0]
    np.testing.assert_array_equal(got.opened[0], opened)
    np.testing.assert_array_equal(got.table[0][opened], problem.table[0][opened])
    np.testing.assert_allclose(got.reward[0], problem.reward[0], atol=1e-12)
    if problem.constraints:
        np.testing.assert_allclose(got.reward[1:], problem.reward[1:], atol=1e-12)
        np.testing.assert_allclose(got.threshold, problem.threshold, atol=1e-12)


def test_a_large_table_becomes_lists():
    """Ten thousand cells: the table of the grid, and the grid again."""
    problem = make("slippery-grid")
    cost = 1.0 - problem.reward[1, 0]
    env = SimpleNamespace(P=to_gymnasium_table(problem))
    got = from_gymnasium(env, 100, cost, budget=2.0, start=problem.start).problem
    assert isinstance(got.transition, Sparse)
    np.testing.assert_array_equal(got.transition.successor, problem.transition.successor)
    np.testing.assert_allclose(
        got.transition.probability, problem.transition.probability, atol=1e-15
    )
    np.testing.assert_array_equal(got.reward[:, 0], problem.reward[:, 0])


def test_lists_and_tables_of_one_environment_are_one_problem(monkeypatch):
    """Ends, closed actions and targets that a row lists twice included."""
    table = {
        0: {0: [(0.25, 1, 0.0, False), (0.5, 2, 1.0, True), (0.25, 1, 0.5, False)]},
        1: {0: [(1.0, 1, 0.0, False)], 1: [(0.5, 0, 1.0, False), (0.5, 2, 0.0, True)]},
        2: {0: [(1.0, 2, 0.0, True)]},
    }
    told = {"horizon": 4, "cost": np.eye(3, 2), "budget": 2.0}
    dense = from_gymnasium(lake(P=table), **told).problem
    monkeypatch.setattr(kernels, "DENSE", 0)
    lists = from_gymnasium(lake(P=table), **told).problem
    assert isinstance(lists.transition, Sparse)
    np.testing.assert_array_equal(lists.table, dense.table)
    np.testing.assert_array_equal(lists.reward, dense.reward)
    np.testing.assert_array_equal(lists.opened, dense.opened)


def lake(**changes) -> SimpleNamespace:
    """Walk 0 -> 1 -> 2, where the episode ends; action 1 waits."""
    table = {
        0: {0: [(1.0, 1, 0.0, False)], 1: [(1.0, 0, 0.0, False)]},
        1: {0: [(1.0, 2, 1.0, True)], 1: [(1.0, 1, 0.0, False)]},
        2: {0: [(1.0, 2, 0.0, True)], 1: [(1.0, 2, 0.0, True)]},
    }
    return SimpleNamespace(**{"P": table, "initial_state_distrib": [1.0, 0.0, 0.0]} | changes)


def test_what_ends_is_paid_for_once_and_then_nothing():
    got = from_gymnasium(lake(), 6, lambda s, a, y: float(y == 2), budget=0.5)
    assert got.problem.states == 4
    assert got.notes == ()
    assert greedy(got.problem, got.problem.reward[0])[0] == 1.0
    # Utility 1 - c: six steps, one of which costs 1 where the end is reached.
    assert greedy(got.problem, got.problem.reward[1])[0] == 6.0
    assert solve(got.problem).value == pytest.approx(0.5)
    np.testing.assert_array_equal(got.problem.reward[:, :, 3].min(axis=(1, 2)), [0.0, 1.0])


def test_an_end_whose_row_would_pay_is_noted_and_pays_nothing():
    table = lake().P | {2: {0: [(1.0, 2, 1.0, True)]}}
    got = from_gymnasium(lake(P=table), 6, np.zeros((3, 2)), budget=1.0)
    assert got.notes == (
        "the episode is over in state 2, so what its own row would pay is left out",
    )
    assert greedy(got.problem, got.problem.reward[0])[0] == 1.0


def test_rescaling_is_said():
    table = {0: {0: [(1.0, 0, -1.0, False)], 1: [(1.0, 1, 3.0, True)]}, 1: {0: [(1.0, 1, 0, True)]}}
    env = SimpleNamespace(P=table)
    got = from_gymnasium(env, 4, np.zeros((2, 2)), budget=0.0, start=0, rescale=True)
    assert (got.reward.scale, got.reward.offset) == (4.0, -1.0)
    assert got.notes[-1] == "the reward is rescaled: r = -1 + 4 r', and V = -1 H + 4 V'"
    assert got.reward.value(greedy(got.problem, got.problem.reward[0])[0], 4) == 3.0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"horizon": None}, "the horizon is None: say how many steps"),
        ({"horizon": 0}, "the horizon is 0"),
        ({"horizon": 2.5}, "the horizon is 2.5"),
        ({"cost": None}, "say what is constrained"),
        ({"cost": np.zeros((2, 2))}, "a cost must be a function or a table of"),
        ({"cost": lambda s, a, y: float("nan")}, "the cost in state 0 of action 0 is nan"),
        ({"cost": lambda s, a, y: 2.0}, "the cost 1 lies in [0, 2], not in [0, 1]"),
        ({"budget": None}, "give either a budget for the cost or a threshold"),
        ({"threshold": 1.0}, "give either a budget for the cost or a threshold"),
        ({"budget": [1.0, 2.0]}, "1 costs need 1 budgets, not 2"),
        ({"budget": "much"}, "threshold is not an array of real numbers"),
        ({"start": 9}, "start is 9"),
        ({"env": SimpleNamespace()}, "has no transition table P"),
        ({"env": lake(P={})}, "has no transition table P"),
        ({"env": lake(P={1: {0: []}})}, "the states of P are not 0..0"),
        ({"env": lake(P={False: lake().P[0], True: lake().P[1]})}, "the states of P are not 0..1"),
        ({"env": lake(P=[5])}, "P[0] has no actions"),
        ({"env": lake(P=[{0: []}])}, "P[0][0] leads nowhere"),
        ({"env": lake(P=[{0: [(1.0, 0)]}])}, "P[0][0] is no list of"),
        *(
            ({"env": lake(P=[{0: [(0.5, 0, 0.0, False), entry]}])}, sentence)
            for entry, sentence in (
                ((0.5, 5, 0.0, False), "P[0][0][1] leads to state 5, outside the 1 states"),
                ((0.5, 0.7, 0.0, False), "the next state of P[0][0][1] is 0.7, not a whole"),
                ((0.5, False, 0.0, False), "the next state of P[0][0][1] is False, not a whole"),
                ((0.5, -1, 0.0, False), "the next state of P[0][0][1] is -1, not a whole"),
                ((0.5, "0", 0.0, False), "the next state of P[0][0][1] is '0', not a whole"),
                (("0.5", 0, 0.0, False), "the probability of P[0][0][1] is '0.5', not a number"),
                ((-0.5, 0, 0.0, False), "the probability of P[0][0][1] is -0.5, outside [0, 1]"),
                ((np.nan, 0, 0.0, False), "the probability of P[0][0][1] is nan, outside [0, 1]"),
                ((0.5, 0, "1", False), "the reward of P[0][0][1] is '1', not a number"),
                ((0.5, 0, np.inf, False), "the reward of P[0][0][1] is inf, not finite"),
                ((0.5, 0, 0.0, "no"), "P[0][0][1] ends with 'no', not with whether"),
            )
        ),
        (
            {"env": lake(P=[{0: [(1.5, 0, 0.0, False), (-0.5, 0, 0.0, False)]}]), "start": 0},
            "the probability of P[0][0][0] is 1.5, outside [0, 1]",
        ),
        (
            {
                "env": lake(P=[{0: [(0.6, 0, 0, False), (0.6, 0, 0, False), (-0.2, 0, 0, False)]}]),
                "start": 0,
            },
            "the probability of P[0][0][2] is -0.2, outside [0, 1]",
        ),
        ({"env": lake(P=[{True: [(1.0, 0, 0.0, False)]}])}, "P[0] has no actions"),
        ({"env": lake(P=[{"up": [(1.0, 0, 0.0, False)]}])}, "P[0] has no actions"),
        ({"env": lake(P=[{0: [(0.7, 0, 0.0, False)]}]), "start": 0}, "sums to 0.7, not 1"),
        ({"env": lake(P=[{0: [(1.0, 0, 7.0, False)]}]), "start": 0}, "the reward lies in [7, 7]"),
        ({"env": lake(initial_state_distrib=None)}, "has no first state: give the start"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_sentence(changes, sentence):
    free = {"env": lake(), "horizon": 5, "cost": lambda s, a, y: 0.0, "budget": 1.0}
    with pytest.raises(InputError, match=re.escape(sentence)):
        from_gymnasium(**(free | changes))


def test_frozen_lake_has_the_optimum_that_a_linear_program_found():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1", map_name="8x8")
    cell = env.unwrapped.desc.ravel()
    got = from_gymnasium(env, 100, lambda s, a, y: float(cell[y] == b"H"), budget=0.101)
    found = solve(got.problem)
    assert got.problem.states == 65
    assert found.value == pytest.approx(0.64023, abs=1e-5)
    assert found.multiplier[0] == pytest.approx(0.090, abs=5e-4)


# --- other layouts -------------------------------------------------------------------------------


@given(problem=stationary())
def test_state_first_there_and_back(problem):
    tables = to_state_first(problem)
    got = from_state_first(
        tables.transition,
        tables.rewards[0],
        horizon=problem.horizon,
        utilities=tables.rewards[1:],
        thresholds=problem.threshold,
        start=problem.start,
        name=problem.name,
    )
    assert same(got, problem)


@given(problem=stationary(masks=False))
def test_action_first_there_and_back_with_costs_in_place_of_utilities(problem):
    tables = to_action_first(problem)
    assert tables.transition.shape == (problem.actions, problem.states, problem.states)
    got = from_action_first(
        tables.transition,
        tables.rewards[0],
        horizon=problem.horizon,
        costs=1.0 - tables.rewards[1:],
        budgets=problem.horizon - problem.threshold,
        start=problem.start,
    )
    np.testing.assert_array_equal(got.table, problem.table)
    np.testing.assert_array_equal(got.reward[0], problem.reward[0])
    np.testing.assert_allclose(got.reward, problem.reward, atol=1e-15)
    np.testing.assert_allclose(got.threshold, problem.threshold, atol=1e-14)


def test_rewards_of_next_states_become_expectations():
    kernel = np.array([[[0.25, 0.75]], [[1.0, 0.0]]])  # [S, A, S]
    paid = np.array([[[0.0, 1.0]], [[0.5, 1.0]]])
    by_state = from_state_first(kernel, paid, horizon=2)
    by_action = from_action_first(kernel.transpose(1, 0, 2), paid.transpose(1, 0, 2), horizon=2)
    assert by_state.reward[0, 0].tolist() == [[0.75], [0.5]]
    assert same(by_state, by_action)
    assert from_state_first(kernel, [0.1, 0.2], horizon=2).reward[0, 1].tolist() == [[0.1], [0.2]]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"transition": np.ones((2, 2))}, "transition must have the shape [S, A, S]"),
        ({"transition": "kernel"}, "transition is not an array of real numbers"),
        ({"transition": np.ones((2, 1, 2))}, "sums to 2, not 1"),
        ({"reward": np.zeros(3)}, "reward has the shape (3,), and the transition (2, 1, 2)"),
        ({"reward": [np.nan, 0.0]}, "the reward of action 0 in state 0 is nan, not finite"),
        ({"reward": [-np.inf, 0.0]}, "state 0 has no action"),
        ({"horizon": True}, "the horizon is True"),
        ({"utilities": [np.zeros(2)]}, "give one threshold for each utility"),
        ({"costs": [[0.0, 1.0]], "budgets": ["9"]}, "the budget of cost 1 is '9', not a number"),
        ({"criterion": "average"}, "an average over all time has neither a horizon nor a discount"),
        ({"criterion": "total"}, "the criterion is 'total': say 'average'"),
        ({"discount": 1.5}, "the discount is 1.5, outside [0, 1]"),
        ({"horizon": None, "discount": 1.0}, "the discount is 1, outside [0, 1)"),
        ({"start": [0.5, 0.6]}, "the start distribution must be 2 numbers that sum to 1"),
        ({"start": "b"}, "there is no state 'b': the states are 0..1"),
    ],
)
def test_arrays_that_cannot_be_read_are_one_sentence(changes, sentence):
    fine = {"transition": np.full((2, 1, 2), 0.5), "reward": [0.0, 1.0], "horizon": 2}
    with pytest.raises(InputError, match=re.escape(sentence)):
        from_state_first(**(fine | changes))


@given(
    problem=stationary(masks=False),
    wrong=st.sampled_from([np.nan, np.inf, -0.5, 1.5]),
    place=st.integers(0, 10**6),
)
def test_a_row_that_is_no_distribution_passes_through_no_format(
    problem, wrong, place, tmp_path_factory
):
    X, A, H = problem.states, problem.actions, problem.horizon
    x, a = place % X, place // X % A
    kernel = problem.table[0].copy()
    y = int(np.argmax(kernel[x, a]))
    kernel[x, a, y] = wrong
    with pytest.raises(InputError):
        from_state_first(kernel, np.zeros((X, A)), horizon=H)
    with pytest.raises(InputError):
        from_action_first(kernel.transpose(1, 0, 2), np.zeros((X, A)), horizon=H)
    table = to_gymnasium_table(problem)
    table[x][a] = [(wrong if t == y else p, t, r, end) for p, t, r, end in table[x][a]]
    with pytest.raises(InputError):
        from_gymnasium(SimpleNamespace(P=table), H, np.zeros((X, A)), budget=0.0, start=0)
    path = tmp_path_factory.mktemp("drn") / "p.drn"
    write_drn(problem, path)
    lines = path.read_text().split("\n")
    at = [n for n, line in enumerate(lines) if " : " in line]
    here = at[place % len(at)]
    lines[here] = f"{lines[here].partition(':')[0]}: {wrong}"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"line [0-9]+: "):
        read_drn(path)


# --- the command line ----------------------------------------------------------------------------


def test_convert_and_describe_on_the_command_line(call, tmp_path):
    path, archive, again = text(tmp_path, FILE), tmp_path / "p.npz", tmp_path / "again.drn"
    options = ("--objective", "gold", "--cost", "hits", "--budget", "1.5", "--horizon", "6")
    assert call("convert", path, archive, *options)[:2] == (0, f"{archive}\n")
    assert call("convert", archive, again)[0] == 0
    assert same(find(str(again)), CMDP.load(archive))
    answers = [
        json.loads(call("describe", *arguments, "--json")[1])
        for arguments in ((path, *options), (archive,), (again,))
    ]
    assert answers[0] == answers[1] | {"name": "file"}
    units = {"units": answers[0]["units"]}  # a DRN file of ours names its roles, not its signals
    assert answers[0] == answers[2] | {"name": "file"} | units
    assert answers[0]["threshold"] == [4.5]
    for command in ("describe", "solve", "frontier"):
        code, out, _ = call(command, path)
        assert (code, "mine" in out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("describe", "FILE", "--objective", "gold"), "needs both --objective and --horizon"),
        (("describe", "FILE", "--horizon", "3"), "needs both --objective and --horizon"),
        (
            ("solve", "published", "--objective", "x", "--horizon", "3"),
            "belong to .drn files: published knows",
        ),
        (
            ("frontier", "FILE", "--objective", "gold", "--horizon", "3", "--cost", "hits"),
            "one --b",
        ),
        (("convert", "FILE", "out.txt"), "out.txt is no .npz or .drn"),
        (("convert", "published", "out.drn"), "changes with the step: DRN cannot say so"),
        (("convert", "none.drn", "out.npz"), "none.drn does not exist"),
    ],
)
def test_bad_options_are_one_sentence(call, arguments, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text(tmp_path, FILE, "FILE.drn")
    given = [each.replace("FILE", "FILE.drn") for each in arguments]
    code, out, err = call(*given)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
    assert [path.name for path in tmp_path.iterdir()] == ["FILE.drn"]


def test_convert_writes_what_the_suffix_says(tmp_path):
    problem = make("media-streaming")
    for name in ("p.npz", "p.drn"):
        convert(problem, tmp_path / name)
        assert same(find(str(tmp_path / name)), problem)
    with pytest.raises(InputError, match=r"nowhere\.npz does not exist"):
        find("nowhere.npz")


ODD = [
    *("=1+1", "+x", "@x", "'x", "''=x", "a,b", 'a"b', "-1.5", "0012", "1e5", "# x", "// x", "%s"),
    *("state 1", "[1, 2]", "{", "null", "nan", "<b>", "é", "x" * 999, "a: b", "a/b", "\\x", '"'),
]


@pytest.mark.parametrize("name", ODD)
def test_names_that_save_load_again(name, tmp_path):
    labels = Labels((name, "other"), (name, "act"), signals=(Scale(name), Scale("c", -1.0, 3.0)))
    kernel, reward = np.full((2, 2, 2), 0.5), np.full((2, 2, 2), 0.25)
    problem = CMDP(kernel, reward, [0.5], horizon=3, name=name, labels=labels)
    endless = StationaryCMDP(kernel, reward, [0.5], Average(), 0, name, labels=labels)
    for each in (problem, endless):
        each.save(tmp_path / "p.npz")
        found = read_problem(tmp_path / "p.npz")
        assert (found.name, found.labels) == (name, labels)
    write_drn(problem, tmp_path / "p.drn")
    assert read_drn(tmp_path / "p.drn").name == name
    policy = Policy([[0.25, 0.75], [1.0, 0.0]], replace(labels, signals=()), name)
    for ending in ("npz", "json", "csv"):
        policy.save(tmp_path / f"p.{ending}")
        again = Policy.load(tmp_path / f"p.{ending}", problem)
        np.testing.assert_array_equal(again.array, policy.array)
        assert again.labels.states == labels.states
        assert again.name == (name if ending != "csv" else "p")


@pytest.mark.parametrize("name", ["a\x1b[31m", "a\x00", "a\u202eb", "a\nb", "\u200b", "a\ud800"])
def test_a_name_that_steers_a_terminal_is_refused_everywhere(name):
    kernel, reward = np.full((2, 2, 2), 0.5), np.full((1, 2, 2), 0.25)
    row = {"state": name, "action": "x", "next": name, "probability": 1, "reward": 1}
    for make_it in (
        lambda: CMDP(kernel, reward, [], horizon=2, name=name),
        lambda: StationaryCMDP(kernel, reward, [], Average(), 0, name),
        lambda: CMDP.average(kernel, reward[0], name=name),
        lambda: averaged(kernel, reward, [], 2, name=name),
        lambda: Labels(states=(name,)),
        lambda: Labels(signals=(Scale(name),)),
        lambda: Policy(kernel[0], name=name),
        lambda: Policy.deterministic([0], 2, name=name),
        lambda: Roles(name, 2),
        lambda: Roles("r", 2, costs={name: 1.0}),
        lambda: from_table([row], horizon=2),
        lambda: from_trajectories([[(name, 0, 1.0, name)]], horizon=2),
        lambda: from_state_first(kernel, reward[0], horizon=2, name=name),
    ):
        with pytest.raises(InputError, match="name"):
            make_it()


# --- how to choose a threshold -------------------------------------------------------------------


def test_a_threshold_is_chosen_between_what_is_free_and_what_can_be_reached(two_state):
    """Stay for k steps and earn k, or leave at once for a utility of 9: V* = 10 - 10 b / 9."""
    (chosen,) = describe(two_state).ranges
    assert (chosen.smallest, chosen.largest_alone) == (0.0, 9.0)
    assert chosen.reward_optimal == pytest.approx(0.0, abs=1e-8)
    np.testing.assert_allclose(chosen.threshold, [0.0, 2.25, 4.5, 6.75, 9.0], atol=1e-8)
    np.testing.assert_allclose(chosen.value, [10.0, 7.5, 5.0, 2.5, 0.0], atol=1e-8)
    np.testing.assert_allclose(chosen.multiplier[1:], 10 / 9, atol=1e-9)


def test_where_the_other_constraints_fail_the_range_still_has_its_ends(two_state):
    rewards = np.concatenate([two_state.reward, two_state.reward[1:]])
    both = CMDP(two_state.transition[0], rewards, [3.0, 9.5], 0, name="impossible")
    first, second = describe(both).ranges
    assert first.threshold is None
    assert (first.smallest, first.largest_alone) == (0.0, 9.0)
    assert first.reward_optimal == pytest.approx(0.0, abs=1e-8)
    assert second.threshold[-1] == pytest.approx(9.0)


def test_the_pages_about_own_problems_run():
    printed = run_blocks("docs/own-problem.md").splitlines()
    table, average, episodes, by_arrays = map(float, printed[:4])
    assert (table, average) == pytest.approx((484.0732519, 29 / 6))
    assert episodes == pytest.approx(49.9122086)
    printed = run_blocks("docs/reference/formats.md").splitlines()
    _, again, free = map(float, printed[:3])
    assert by_arrays == pytest.approx(again, abs=1e-12)
    assert free == pytest.approx(max(10 - 0.95 * 20, (5 - 0.5 * 0.95 * 20) / (1 - 0.5 * 0.95)))
    least, most = map(float, re.findall(r"[0-9]+\.[0-9]{3}", printed[4]))
    assert least <= most <= by_arrays
    assert printed[5] == "2 of 5 pairs were never visited: any kernel may be theirs"
    assert float(printed[6].strip("[]")) < 0.0  # the robust policy keeps the budget
    low, high = map(float, re.findall(r"[0-9]+\.[0-9]{3}", printed[7]))
    assert printed[7].startswith("66 steps: ")
    assert 0.0 <= high - low <= 0.05  # the multiplier is below 4
    assert printed[-2] == "the reward is rescaled: r = -1 + 2 r', and V = -1 H + 2 V'"
