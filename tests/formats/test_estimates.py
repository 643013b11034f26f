"""Problems from data: estimates are frequencies, boxes hold the truth, gaps are said."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cmdplab import CMDP, Labels, evaluate, from_counts, from_trajectories, solve, solve_robust
from cmdplab.errors import InputError
from cmdplab.formats import from_state_first

REWARD = np.array([[0.2, 1.0], [0.0, 0.5]])
COST = np.array([[0.0, 2.0], [1.0, 0.0]])


def logged(episodes: int, seed: int = 0, horizon: int = 5) -> tuple[np.ndarray, list]:
    """A kernel [X, A, X], and episodes of a uniform policy on it from state 0."""
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.ones(2), (2, 2))
    data = []
    for _ in range(episodes):
        x, episode = 0, []
        for _ in range(horizon):
            a = int(rng.integers(2))
            y = int(rng.random() < kernel[x, a, 1])
            episode.append((x, a, REWARD[x, a], COST[x, a], y))
            x = y
        data.append(episode)
    return kernel, data


def counted(data: list) -> np.ndarray:
    counts = np.zeros((2, 2, 2))
    for episode in data:
        for x, a, _, _, y in episode:
            counts[x, a, y] += 1
    return counts


def table(data: list) -> list[dict[str, object]]:
    return [
        {"episode": k, "step": h, "state": x, "action": a, "reward": r, "energy": c}
        for k, episode in enumerate(data)
        for h, (x, a, r, c, _) in enumerate(episode)
    ]


def test_estimates_are_frequencies_and_the_box_is_around_them():
    _, data = logged(40)
    counts = counted(data)
    found = from_counts(counts, REWARD, horizon=5, costs=[COST], budgets=[4.0])
    frequency = counts / counts.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(found.problem.table[0], frequency, atol=1e-15)
    assert (found.box.lower <= frequency).all()
    assert (found.box.upper >= frequency).all()
    n = counts.sum(axis=-1, keepdims=True)
    log = np.log(4 * 2**2 * 2 * 1 * counts.sum() / 0.05)
    width = 2 * np.sqrt(frequency * (1 - frequency) * log / n) + 14 / 3 * log / n
    np.testing.assert_allclose(found.box.upper, np.minimum(frequency + width, 1.0), atol=1e-14)
    assert found.notes == ()


def test_the_box_holds_the_truth_about_as_often_as_it_says():
    missed = 0
    for seed in range(60):
        kernel, data = logged(30, seed)
        box = from_counts(counted(data), REWARD, horizon=5, delta=0.1).box
        missed += not ((box.lower <= kernel) & (kernel <= box.upper)).all()
    assert missed <= 6  # the inequality is far from tight


def test_trajectories_and_their_counts_are_one_problem():
    _, data = logged(30)
    told = {"horizon": 5, "costs": {"energy": 4.0}}
    found = from_trajectories(data, **told)
    known = from_counts(counted(data), REWARD, horizon=5, costs=[COST], budgets=[4.0])
    np.testing.assert_array_equal(found.problem.table, known.problem.table)
    np.testing.assert_allclose(found.problem.reward, known.problem.reward, atol=1e-15)
    np.testing.assert_array_equal(found.box.lower, known.box.lower)
    assert found.problem.labels.signals[1].of == "energy"
    assert found.notes == ()
    # A table without `next` has the following state; the last of an episode is not known.
    short = [each[:-1] for each in data]
    rows = from_trajectories(table(data), **told)
    np.testing.assert_array_equal(rows.visits, counted(short).sum(axis=-1))


def test_robust_policies_of_data_keep_their_promises_on_the_true_kernel():
    kernel, data = logged(3000, seed=3)
    found = from_trajectories(data, horizon=5, costs={"energy": 4.0})
    robust = solve_robust(found.problem, found.box)
    assert robust.feasible
    truth = CMDP(kernel, found.problem.reward, found.problem.threshold)
    worth = evaluate(truth, robust.policy)
    assert worth.violation[0] <= 1e-9
    assert worth.value >= robust.value - 1e-9
    assert robust.value <= solve(found.problem).value


def test_an_episode_may_begin_in_a_state_that_is_named_by_a_number():
    data = [[(1, 0, 1.0, 2), (2, 0, 0.0, 1)]]
    assert from_trajectories(data, horizon=2, start=2).problem.start == 1
    assert from_trajectories(data, horizon=2).problem.start == 0


@pytest.mark.slow
@pytest.mark.parametrize(("X", "most", "skew"), [(2, 30, 1.0), (3, 500, 0.3), (4, 5000, 0.2)])
def test_boxes_miss_the_truth_less_often_than_delta(X, most, skew):
    """With delta = 0.3, in 200 draws, among them kernels with rare transitions."""
    rng = np.random.default_rng(X)
    missed = 0
    for _ in range(200):
        kernel = rng.dirichlet(np.full(X, skew), (X, 2))
        visits = rng.integers(0, most, (X, 2))
        counts = np.array(
            [[rng.multinomial(visits[x, a], kernel[x, a]) for a in range(2)] for x in range(X)]
        )
        box = from_counts(counts, np.zeros((X, 2)), horizon=2, delta=0.3).box
        missed += not ((box.lower <= kernel + 1e-12) & (kernel <= box.upper + 1e-12)).all()
    assert missed <= 60


def test_what_was_never_visited_is_vacuous_and_said():
    counts = np.zeros((2, 2, 2))
    counts[0, 0] = [3, 1]
    counts[1, 0] = [0, 5]
    found = from_counts(counts, REWARD, discount=0.9)
    assert found.notes == ("2 of 4 pairs were never visited: any kernel may be theirs",)
    np.testing.assert_array_equal(found.box.lower[:, 1], 0.0)
    np.testing.assert_array_equal(found.box.upper[:, 1], 1.0)
    np.testing.assert_array_equal(found.problem.transition[:, 1], 0.5)
    closed = np.where(counts.sum(axis=-1) > 0, REWARD, -np.inf)
    assert from_counts(counts, closed, discount=0.9).notes == ()


def test_unseen_rewards_are_the_worst_and_rewards_that_vary_are_said():
    data = [
        [("a", "go", 1.0, 2.0, "b"), ("b", "stay", 3.0, 1.0, "b"), ("b", "stay", 4.0, 1.0, "b")]
    ]
    found = from_trajectories(data, discount=0.5, costs={"energy": 10.0})
    reward, cost = found.problem.reward
    np.testing.assert_array_equal(reward, [[1.0, 1.0], [1.0, 3.5]])
    np.testing.assert_array_equal(cost, -np.array([[2.0, 2.0], [2.0, 1.0]]))
    assert found.notes[0] == "reward varies in 1 pairs: means are taken, and not bounded"
    assert found.problem.labels.states == ("a", "b")


def test_counts_may_have_steps_and_episodes_may_begin_anywhere():
    data = [[(0, 0, 1.0, 0), (0, 1, 0.0, 1)], [(1, 0, 0.5, 0), (0, 1, 0.0, 1)]]
    found = from_trajectories(data, horizon=2, by_step=True)
    assert found.visits.tolist() == [[[1, 0], [1, 0]], [[0, 2], [0, 0]]]
    assert found.problem.states == 3
    assert found.box.lower.shape == (3, 3, 2, 3)
    np.testing.assert_array_equal(found.box.lower[0, 2, 0], [0.5, 0.5, 0.0])
    assert "episodes began in several states" in found.notes[0]
    assert solve_robust(found.problem, found.box).value <= solve(found.problem).value


# A clinic of three rooms. Logs see "full" rarely; "close" is shut when it is empty.
NAMED = Labels(("empty", "half", "full"), ("open", "close"), signals=("served", "overtime"))
FLOW = np.array(
    [
        [[0.6, 0.4, 0.0], [1.0, 0.0, 0.0]],
        [[0.3, 0.5, 0.2], [0.8, 0.2, 0.0]],
        [[0.0, 0.5, 0.5], [0.0, 0.9, 0.1]],
    ]
)
SERVED = np.array([[0.2, -np.inf], [0.6, 0.1], [0.9, 0.2]])
OVERTIME = np.array([[0.0, 0.0], [0.5, 0.0], [1.0, 0.1]])


def clinic(horizon: int = 4) -> CMDP:
    given = {"horizon": horizon, "costs": [OVERTIME], "budgets": [1.0], "labels": NAMED}
    made = from_state_first(FLOW, SERVED, start="half", name="clinic", **given)
    assert isinstance(made, CMDP)
    return made


def clinic_log(episodes: int, seed: int = 0, known: int = 3) -> list:
    """Episodes of (state, action, served, overtime, next); one ends in a state from `known` on."""
    rng, data = np.random.default_rng(seed), []
    for _ in range(episodes):
        x, episode = 1, []
        for _ in range(4):
            a = 0 if x == 0 else int(rng.integers(2))
            y = int(rng.choice(3, p=FLOW[x, a]))
            name = NAMED.states
            episode.append((name[x], NAMED.actions[a], SERVED[x, a], OVERTIME[x, a], name[y]))
            if y >= known:
                break
            x = y
        data.append(episode)
    return data


def test_a_model_gives_names_mask_and_shape_to_logged_episodes():
    model, data = clinic(), clinic_log(50, known=2)
    alone = from_trajectories(data, horizon=4, reward="served", costs={"overtime": 1.0})
    names = alone.problem.labels  # in the order in which they come
    order = np.ix_(
        [NAMED.states.index(each) for each in names.states],
        [NAMED.actions.index(each) for each in names.actions],
    )
    found = from_trajectories(data, model=model, reward="served", costs={"overtime": 1.0})
    assert found.problem.labels == model.labels
    assert (found.problem.start, found.problem.horizon) == (model.start, model.horizon)
    np.testing.assert_array_equal(found.problem.opened, model.opened)
    assert found.visits.shape == (3, 2)
    assert found.notes == ("2 of 5 pairs were never visited: any kernel may be theirs",)
    np.testing.assert_array_equal(found.visits[order], alone.visits)


def test_with_known_rewards_the_log_gives_the_kernel_alone():
    model, data = clinic(), clinic_log(50)
    found = from_trajectories(data, model=model, reward=None)
    paid = from_trajectories(data, model=model, reward="served", costs={"overtime": 1.0})
    np.testing.assert_array_equal(found.problem.table, paid.problem.table)
    np.testing.assert_array_equal(found.problem.reward, model.reward)
    np.testing.assert_array_equal(found.problem.threshold, model.threshold)
    bare = [[(x, a, y) for x, a, *_, y in episode] for episode in data]
    again = from_trajectories(bare, model=model, reward=None)
    np.testing.assert_array_equal(again.box.lower, found.box.lower)
    endless = CMDP.discounted(FLOW, np.nan_to_num(SERVED, neginf=0.0), 0.9, labels=None)
    kept = from_trajectories([[(0, 0, 0), (0, 0, 1)]], model=endless, reward=None).problem
    assert kept.criterion == endless.criterion
    stepped = from_trajectories(data, model=model, reward=None, by_step=True)
    assert stepped.box.lower.shape == (4, 3, 2, 3)


def test_transitions_outside_the_support_of_the_model_are_impossible():
    model, data = clinic(), clinic_log(50, known=2)
    found = from_trajectories(data, model=model, reward=None, support=True)
    assert (found.box.upper[FLOW == 0.0] == 0.0).all()
    assert (found.problem.table[0][FLOW == 0.0] == 0.0).all()
    np.testing.assert_array_equal(found.problem.table[0, 2, 0], [0.0, 0.5, 0.5])
    free = from_trajectories(data, model=model, reward=None)
    tight, loose = (solve_robust(each.problem, each.box) for each in (found, free))
    assert tight.value >= loose.value - 1e-12
    wrong = [[("empty", "open", "full")]]
    with pytest.raises(InputError, match="no transition by action open in state empty to full"):
        from_trajectories(wrong, model=model, reward=None, support=True)


def test_known_rewards_give_a_robust_policy_where_logs_alone_give_none():
    model = clinic(6)  # the logs never show an action in the state "full"
    for seed in range(5):
        data = clinic_log(60, seed, known=2)
        alone = from_trajectories(data, horizon=6, reward="served", costs={"overtime": 1.0})
        assert not solve_robust(alone.problem, alone.box).feasible
        found = from_trajectories(data, model=model, reward=None, support=True)
        robust = solve_robust(found.problem, found.box)
        assert robust.feasible
        worth = evaluate(model, robust.policy)
        assert worth.violation[0] <= 1e-9
        assert worth.value >= robust.value - 1e-9


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: from_counts(np.zeros((2, 2)), REWARD, horizon=2), "counts must be [X, A, X] or"),
        (
            lambda: from_counts(np.full((2, 2, 2), 0.5), REWARD, horizon=2),
            "counts[0, 0, 0] is 0.5, not a count",
        ),
        (
            lambda: from_counts(np.ones((3, 2, 2, 2)), REWARD, horizon=2),
            "counts of 3 steps are for episodes of that horizon",
        ),
        (
            lambda: from_counts(np.ones((2, 2, 2)), REWARD, horizon=2, delta=2.0),
            "delta is 2, outside (0, 1)",
        ),
        (
            lambda: from_counts(np.ones((2, 2, 2)), REWARD[0], horizon=2),
            "must be (2, 2), not (2,)",
        ),
        (lambda: from_trajectories([], horizon=2), "there is no step in these episodes"),
        (
            lambda: from_trajectories([[(0, 0, 1.0)]], horizon=2),
            "episode 0, step 0 is not (state, action, reward, next)",
        ),
        (
            lambda: from_trajectories([[(0, 0, "much", 1)]], horizon=2),
            "episode 0, step 0: the reward is 'much', not a finite number",
        ),
        (
            lambda: from_trajectories([[(0, 0, 1, 0)] * 3], horizon=2, by_step=True),
            "episode 0, step 2 is step 2, and the horizon is 2",
        ),
        (
            lambda: from_trajectories(
                [{"episode": k, "state": 0, "action": 0, "reward": 0} for k in (0, 1, 0)],
                horizon=2,
            ),
            "the rows of episode 0 are not together",
        ),
        (lambda: from_trajectories([3], horizon=2), "episode 0 is 3, not a list of steps"),
        (
            lambda: from_trajectories([[(0, 0, 1.0, 1.0, 0)]], horizon=2, utilities={"reward": 1}),
            "a column is used twice: reward, reward",
        ),
        (
            lambda: from_counts(np.ones((2, 2, 2)), REWARD, horizon=2, **{"cost": [COST]}),
            "there is no argument 'cost'",
        ),
        (
            lambda: from_trajectories([{"episode": 0, "state": 0}], horizon=2),
            "the table has no column 'action'",
        ),
        (
            lambda: from_trajectories([[("half", "shut", 1.0, "half")]], model=clinic()),
            "episode 0, step 0: there is no action 'shut': the actions are 0..1, named open, close",
        ),
        (
            lambda: from_trajectories([[("half", "open", 1.0, "gone")]], model=clinic()),
            "episode 0, step 0: there is no next 'gone': the states are 0..2, named empty",
        ),
        (
            lambda: from_trajectories([[("empty", "close", 1.0, "half")]], model=clinic()),
            "episode 0, step 0: clinic closes action close in state empty",
        ),
        (
            lambda: from_trajectories([[(0, 0, 0)]], horizon=2, reward=None),
            "known rewards or a known support need model=problem",
        ),
        (
            lambda: from_trajectories([[(0, 0, 0)]], model=clinic(), reward=None, horizon=2),
            "without a column for the reward, sums and limits are those of the model",
        ),
        (
            lambda: from_trajectories([[(k, k % 30, 1.0, k + 1)] for k in range(3000)], horizon=2),
            "counts of 3001 states and 30 actions would be 270180030 numbers",
        ),
    ],
)
def test_data_that_cannot_be_read_are_one_sentence(call, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        call()
