"""A policy is a value: checked once, read by names, seeded when it acts, the same from its file."""

from __future__ import annotations

import itertools
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import cmdplab
from cmdplab import CMDP, Counter, InputError, Labels, Policy
from cmdplab.cmdp import exact
from cmdplab.cmdp.memory import counted_action_values, counted_occupancy, drawn, spent
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.formats.gymnasium import from_gymnasium

NAMES = Labels(("idle", "busy", "down"), ("wait", "serve"), ("early", "late"))


def some_rows(*shape, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), shape[:-1])


def named(**more) -> Policy:
    return Policy(some_rows(2, 3, 2), NAMES, "a plan", **more)


def counted(problem, seed=0, levels=3) -> Policy:
    """A random policy with a random counter, moves in both directions."""
    rng = np.random.default_rng(seed)
    shape = (problem.horizon, problem.states, problem.actions)
    counter = Counter(rng.integers(-1, 3, shape), levels, 1)
    rows = some_rows(problem.horizon, levels, problem.states, problem.actions, seed=seed)
    return Policy(rows, problem.labels, counter=counter)


def test_a_policy_is_its_array_wherever_numpy_takes_one():
    rows = some_rows(2, 3, 2)
    policy = Policy(rows)
    assert np.array_equal(np.asarray(policy), rows)
    assert np.array_equal(policy[1, 2], rows[1, 2])
    assert np.array_equal(1.0 - policy, 1.0 - rows)
    assert (policy > 0.5).sum() == (rows > 0.5).sum()
    assert policy.sum(axis=-1) == pytest.approx(np.ones((2, 3)))
    assert (policy.shape, policy.ndim, len(policy), policy.dtype) == ((2, 3, 2), 3, 2, np.float64)
    assert np.asarray(policy, np.float32).dtype == np.float32
    assert np.array(policy).flags.writeable


def test_a_policy_cannot_be_changed_and_keeps_no_array_of_the_caller():
    rows = some_rows(2, 3, 2)
    policy = Policy(rows)
    rows[:] = 0.0
    assert policy.sum() == pytest.approx(6.0)
    with pytest.raises(ValueError, match="read-only"):
        policy.array[0, 0, 0] = 1.0


def test_a_pickled_policy_is_the_same():
    again = pickle.loads(pickle.dumps(named()))
    assert np.array_equal(again, named())
    assert again.labels == NAMES


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([[0.5, 0.5]] * 3, None),
        ([[0.5, 0.5], [0.5, 0.4], [1, 0]], "sums to 0.9 at state busy, not to 1"),
        ([[0.5, 0.5], [1.5, -0.5], [1, 0]], "has 1.5 at state busy, action wait, not a prob"),
        ([0.5, 0.5], r"has the shape \(2,\), not \[H, X, A\] or \[X, A\]"),
        ([[0.5, 0.5]] * 2, "3 states are named, but the problem has 2"),
        ([["a", "b"]] * 3, "not an array of real numbers"),
    ],
)
def test_rows_that_are_no_distributions_are_refused_by_name(given, words):
    if words is None:
        assert Policy(given, NAMES).stationary
        return
    with pytest.raises(InputError, match=words):
        Policy(given, NAMES)


def test_names_serve_as_well_as_numbers():
    policy = named()
    assert policy.probabilities("busy", "late") == policy.probabilities(1, 1)
    assert [*policy.probabilities(0, 0)] == ["wait", "serve"]
    assert np.array_equal(policy.row("down", step=0), policy.array[0, 2])
    with pytest.raises(InputError, match="say which of the 2 steps"):
        policy.row("busy")
    with pytest.raises(InputError, match="there is no state 'lost'"):
        policy.row("lost", 0)


def test_an_actor_draws_with_the_frequencies_of_the_policy():
    policy = Policy(some_rows(3, 4), Labels(actions=("a", "b", "c", "d")))
    rng = np.random.default_rng(1)
    draws = np.bincount([policy.act(2, rng) for _ in range(20_000)], minlength=4)
    error = np.sqrt(policy[2] * (1 - policy[2]) / 20_000)
    assert np.all(np.abs(draws / 20_000 - policy[2]) < 4.5 * error)


def test_the_seed_decides_every_draw_and_a_name_is_answered_by_a_name():
    policy = named()
    one, two = policy.start(seed=5), policy.start(seed=5)
    assert [one(1), one(0)] == [policy.labels.find_action(two(x), 2) for x in ("busy", "idle")]
    with pytest.raises(InputError, match="the episode is over after 2 steps"):
        one(0)
    one.reset()
    assert one("idle") in ("wait", "serve")


def test_an_action_without_probability_is_never_drawn():
    policy = Policy([[0.0, 0.3, 0.0, 0.7, 0.0]])
    uniforms = (0.0, 0.3 - 1e-16, 0.3, np.nextafter(1.0, 0.0))
    assert [drawn(policy[0], u) for u in uniforms] == [1, 1, 3, 3]


def test_an_actor_counts_as_its_counter_says():
    counter = Counter(np.array([[0, 2], [-1, 1]]), 4, 1)
    rows = np.zeros((4, 2, 2))
    rows[:3, :, 1] = 1.0  # the second action below the last level, the first there
    rows[3, :, 0] = 1.0
    actor = Policy(rows, counter=counter).start()
    seen = [(actor(x), actor.count) for x in (0, 1, 0, 1, 1)]
    assert seen == [(1, 3), (0, 2), (1, 3), (0, 2), (1, 3)]


def test_with_a_counter_the_exact_chain_is_what_all_histories_say():
    problem = random_problem(3, 2, 3, 1)
    policy = counted(problem)
    total, mass = np.zeros(2), np.zeros(3)
    for actions in itertools.product(range(2), repeat=3):
        for states in itertools.product(range(3), repeat=2):
            likely, gained, k, x = 1.0, np.zeros(2), 1, problem.start
            for h, a in enumerate(actions):
                likely *= policy[h, k, x, a]
                gained += problem.reward[:, h, x, a]
                k = min(max(k + policy.counter.step[h, x, a], 0), 2)
                if h < 2:
                    likely *= problem.transition[h, x, a, states[h]]
                    x = states[h]
            total += likely * gained
            mass[k] += likely
    assert cmdplab.evaluate(problem, policy).returns == pytest.approx(total, abs=1e-14)
    assert spent(problem, policy.array, policy.counter) == pytest.approx(mass, abs=1e-14)


def test_forward_and_backward_agree_on_a_policy_with_a_counter():
    problem = random_problem(5, 3, 4, 2)
    policy = counted(problem, levels=4)
    pairs = counted_occupancy(problem, policy.array, policy.counter)
    assert pairs.sum(axis=(1, 2, 3)) == pytest.approx(np.ones(problem.horizon))
    for reward, value in zip(problem.reward, exact.earned(problem, pairs.sum(1)), strict=True):
        q = counted_action_values(problem, policy.array, policy.counter, reward)
        first = (policy[0] * q[0]).sum(axis=-1)[1, problem.start]
        assert first == pytest.approx(value, abs=1e-13)


def test_a_counter_that_nothing_reads_changes_nothing():
    problem = random_problem(4, 3, 3, 1)
    rows = some_rows(problem.horizon, problem.states, problem.actions)
    blind = np.repeat(rows[:, None], 3, axis=1)
    counter = Counter(np.ones(rows.shape[1:], dtype=int), 3)
    found = cmdplab.evaluate(problem, Policy(blind, counter=counter))
    assert found.occupancy == pytest.approx(cmdplab.evaluate(problem, rows).occupancy, abs=1e-15)


def test_a_stationary_policy_serves_every_step():
    problem = random_problem(4, 3, 3, 1)
    rows = some_rows(problem.states, problem.actions)
    written_out = np.repeat(rows[None], problem.horizon, axis=0)
    found = cmdplab.evaluate(problem, Policy(rows)).returns
    assert np.array_equal(found, cmdplab.evaluate(problem, written_out).returns)


def test_a_policy_of_another_problem_is_refused_with_both_sizes():
    problem = random_problem(4, 3, 3, 1)
    words = "has 2 steps, 3 states and 2 actions, but .* has 3 steps, 4 states and 3 actions"
    with pytest.raises(InputError, match=words):
        cmdplab.evaluate(problem, named())


def test_states_where_nothing_is_decided_need_no_rows():
    """The end of an episode and a random start: no policy can differ there."""
    gymnasium = pytest.importorskip("gymnasium")
    given = {"cost": lambda s, a, y: float(a == 1), "budget": 3.0, "rescale": True}
    for name in ("FrozenLake-v1", "Taxi-v4"):
        env = gymnasium.make(name)
        problem = from_gymnasium(env, 12, **given).problem
        X, A = env.observation_space.n, env.action_space.n
        rows = some_rows(12, X, A)
        full = np.full(problem.opened.shape, 1.0 / A)
        full[problem.horizon - 12 :, :X] = rows
        short = cmdplab.evaluate(problem, Policy(rows))
        np.testing.assert_array_equal(short.returns, cmdplab.evaluate(problem, full).returns)
        with pytest.raises(InputError, match="states"):
            cmdplab.evaluate(problem, Policy(rows[:, :-3]))  # choices are left out


def test_a_policy_whose_names_are_in_another_order_is_refused():
    policy = named()
    kernel, reward = np.full((3, 2, 3), 1 / 3), np.zeros((1, 3, 2))
    same = cmdplab.CMDP(kernel, reward, [], horizon=2, labels=NAMES)
    assert cmdplab.evaluate(same, policy).value == 0.0
    other = Labels(("busy", "idle", "down"), NAMES.actions, NAMES.steps)
    moved = cmdplab.CMDP(kernel, reward, [], horizon=2, labels=other)
    with pytest.raises(InputError, match=r"calls state 0 'idle', but custom calls it 'busy'"):
        cmdplab.evaluate(moved, policy)
    unnamed = cmdplab.CMDP(kernel, reward, [], horizon=2)
    assert cmdplab.evaluate(unnamed, policy).value == 0.0
    longer = cmdplab.cmdp.horizons.randomly_started(moved, np.full(3, 1 / 3))
    with pytest.raises(InputError, match=r"calls state 0 'idle', but custom calls it 'busy'"):
        cmdplab.evaluate(longer, policy)
    longer = cmdplab.cmdp.horizons.randomly_started(same, np.full(3, 1 / 3))
    assert cmdplab.evaluate(longer, policy).value == 0.0


@pytest.mark.parametrize("rng", [0, None, "seed"])
def test_an_action_is_drawn_by_a_generator_alone(rng):
    with pytest.raises(InputError, match="not a generator"):
        named().act("idle", rng, "early")


@pytest.mark.parametrize("seed", [-1, "x", 0.5])
def test_the_seed_of_an_actor_is_a_whole_number(seed):
    with pytest.raises(InputError, match="seed is"):
        named().start(seed)


def test_a_closed_action_is_refused_by_name():
    kernel = np.full((3, 2, 3), 1 / 3)
    mask = np.array([[True, True], [True, False], [True, True]])
    problem = CMDP(kernel, np.zeros((1, 3, 2)), [], horizon=2, mask=mask, labels=NAMES)
    with pytest.raises(InputError, match="takes action serve at step early, state busy, which is"):
        cmdplab.evaluate(problem, named())


@pytest.mark.parametrize("policy", [named(), Policy(some_rows(3, 2)), counted(
    random_problem(3, 2, 2, 1))])  # fmt: skip
def test_a_policy_survives_its_file(policy, tmp_path):
    policy.save(tmp_path / "it.npz")
    again = Policy.load(tmp_path / "it.npz")
    assert np.array_equal(policy, again)
    assert (again.labels, again.name) == (policy.labels, policy.name)
    assert (again.counter is None) == (policy.counter is None)
    if policy.counter is not None:
        assert np.array_equal(again.counter.step, policy.counter.step)
        assert again.counter.levels == policy.counter.levels
        assert again.counter.start == policy.counter.start


def test_a_policy_acts_the_same_in_another_process(tmp_path):
    policy = named()
    policy.save(tmp_path / "it.npz")
    states = ["idle", "busy"]
    code = (
        "import sys, cmdplab\n"
        "actor = cmdplab.Policy.load(sys.argv[1]).start(seed=3)\n"
        f"print(*(actor(x) for x in {states}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "it.npz"], capture_output=True, text=True
    )
    actor = policy.start(seed=3)
    assert done.stdout.split() == [actor(x) for x in states], done.stderr


def test_a_damaged_file_and_the_file_of_something_else_get_a_sentence(tmp_path):
    path = tmp_path / "it.npz"
    random_problem(3, 2, 2, 1).save(path)
    with pytest.raises(InputError, match="is not a cmdplab policy: it has no array 'probability'"):
        Policy.load(path)
    named().save(path)
    arrays = dict(np.load(path))
    arrays["probability"][0, 0] = arrays["probability"][0, 0, ::-1]
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="is damaged"):
        Policy.load(path)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"step": [[0.5]], "levels": 2}, "must be whole numbers"),
        ({"step": [[1]], "levels": 0}, "levels of a counter is 0, not a whole number >= 1"),
        ({"step": [[1]], "levels": 2, "start": 2}, "2 levels cannot start at 2"),
    ],
)
def test_a_counter_that_makes_no_sense_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        Counter(**given)


def test_a_counter_of_another_size_is_refused():
    counter = Counter(np.zeros((3, 2), dtype=int), 5)
    with pytest.raises(InputError, match="its counter has 5 levels"):
        Policy(some_rows(4, 3, 2), counter=counter)


def test_a_stationary_policy_is_evaluated_as_its_values_say():
    rng = np.random.default_rng(0)
    kernel, rewards = rng.dirichlet(np.ones(4), (4, 2)), rng.random((2, 4, 2))
    given = {"utilities": [rewards[1]], "thresholds": [1.0]}
    problem = CMDP.discounted(kernel, rewards[0], 0.9, **given)
    rows = some_rows(4, 2)
    follow = np.einsum("xa,xay->xy", rows, kernel)
    value = np.linalg.solve(np.eye(4) - 0.9 * follow, np.einsum("xa,nxa->xn", rows, rewards))
    found = cmdplab.evaluate(problem, Policy(rows))
    assert found.returns == pytest.approx(value[0], abs=1e-12)
    assert found.occupancy.sum() == pytest.approx(10.0)
    with pytest.raises(InputError, match="3 states and 2 actions, but discounted has 4 states"):
        cmdplab.evaluate(problem, named())


def test_a_policy_of_one_action_a_state_is_written_out_when_asked():
    chosen = np.array([[0, 2], [1, 1], [2, 0]], np.uint8)
    one = Policy.deterministic(chosen, 3, Labels(("a", "b"), (), ("x", "y", "z")), "chosen")
    again = pickle.loads(pickle.dumps(one))  # before the array is there
    same = Policy(np.eye(3)[chosen], one.labels, "chosen")
    for each in (again, one):
        np.testing.assert_array_equal(each.array, same.array)
        assert (each.horizon, each.states, each.actions) == (3, 2, 3)
        assert each.probabilities("b", "x") == {"0": 0.0, "1": 0.0, "2": 1.0}
        assert repr(each) == repr(same)
    assert not one.array.flags.writeable
    assert Policy.deterministic([1, 0], 2).stationary


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ([[0, 3]], "a chosen action is 3, but the actions are 0..2"),
        ([[0, -1]], "a chosen action is -1, but the actions are 0..2"),
        ([0.5, 1.0], "the chosen actions are not whole numbers [H, X] or [X]"),
        ([], "the chosen actions are not whole numbers [H, X] or [X]"),
    ],
)
def test_actions_that_cannot_be_chosen_are_refused(chosen, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        Policy.deterministic(chosen, 3)
