"""A problem is checked once, and the sentence names the culprit."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import random_policy, random_problem

from cmdplab.cmdp.exact import returns
from cmdplab.cmdp.labels import Labels, Scale
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError


def parts(problem: CMDP) -> dict:
    return {
        "transition": problem.transition.copy(),
        "reward": problem.reward.copy(),
        "threshold": problem.threshold.copy(),
        "start": problem.start,
    }


def broken(field: str, index: tuple, value: float) -> dict:
    arrays = parts(random_problem(4, 2, 3, 1))
    arrays[field][index] = value
    return arrays


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (
            broken("transition", (2, 3, 1, 0), 0.987654),
            r"transition\[2, 3, 1\] sums to \d.*, not 1",
        ),
        (broken("transition", (1, 0, 1, 2), -0.1), r"transition\[1, 0, 1, 2\] is -0.1, not a prob"),
        (broken("transition", (0, 0, 0, 0), np.nan), r"transition\[0, 0, 0, 0\] is nan"),
        (broken("reward", (1, 2, 0, 1), 1.5), r"reward\[1, 2, 0, 1\] is 1.5, outside \[0, 1\]"),
        (broken("reward", (0, 2, 0, 1), np.nan), r"reward\[0, 2, 0, 1\] is nan"),
        (broken("threshold", (0,), np.nan), r"threshold\[0\] is nan, not a finite number"),
        (broken("threshold", (0,), np.inf), r"threshold\[0\] is inf, not a finite number"),
        ({**parts(random_problem(4, 2, 3, 1)), "start": 4}, r"start is 4, but the states are 0..3"),
        ({**parts(random_problem(4, 2, 3, 1)), "start": 0.5}, "start is 0.5"),
        ({**parts(random_problem(4, 2, 3, 1)), "threshold": [1, 1]}, "threshold has the shape"),
        ({**parts(random_problem(4, 2, 3, 1)), "reward": np.zeros((2, 2))}, "reward must have"),
        ({**parts(random_problem(4, 2, 3, 1)), "reward": "no"}, "not an array of real numbers"),
        (
            {**parts(random_problem(4, 2, 3, 1)), "reward": 1j * np.ones((2, 3, 4, 2))},
            "reward is not an array of real numbers",
        ),
        ({**parts(random_problem(4, 2, 3, 1)), "horizon": 2.5}, "horizon is 2.5"),
        (broken("transition", (2, 3, 1, 0), 5.0), "is 5, not a probability"),
        ({**parts(random_problem(4, 2, 3, 1)), "transition": np.ones((4, 2))}, "transition must"),
        (
            {**parts(random_problem(4, 2, 3, 1)), "reward": np.zeros((2, 5, 4, 2))},
            "disagree on the horizon",
        ),
        (
            {**parts(random_problem(4, 2, 3, 1)), "reward": np.zeros((2, 3, 5, 2))},
            "but the reward has 5 states and 2 actions",
        ),
    ],
)
def test_bad_input_is_named(arrays, sentence):
    with pytest.raises(InputError, match=sentence):
        CMDP(**arrays)


def test_a_stationary_kernel_is_stored_once_and_means_the_same():
    full = random_problem(4, 2, 1, 1)
    kernel = full.transition[0]
    reward = np.repeat(full.reward, 6, axis=1)
    once = CMDP(kernel, reward, full.threshold, full.start)
    spelt_out = CMDP(np.repeat(kernel[None], 6, axis=0), reward, full.threshold, full.start)
    assert once.stationary
    assert not spelt_out.stationary
    assert once.transition.base.size == kernel.size
    policy = random_policy(once, 0)
    np.testing.assert_array_equal(returns(once, policy), returns(spelt_out, policy))


def test_arrays_are_copied_and_read_only():
    arrays = parts(random_problem(3, 2, 2, 1))
    problem = CMDP(**arrays)
    arrays["reward"][:] = 7.0
    assert problem.reward.max() <= 1.0
    for array in (problem.transition, problem.reward, problem.threshold):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


def test_costs_within_budgets_are_utilities_above_thresholds():
    problem = random_problem(4, 3, 3, 2)
    costs = 1.0 - problem.reward[1:]
    budgets = problem.horizon - problem.threshold
    converted = CMDP.from_costs(
        problem.transition, problem.reward[0], costs, budgets, problem.start
    )
    np.testing.assert_allclose(converted.reward, problem.reward, atol=1e-15)
    np.testing.assert_allclose(converted.threshold, problem.threshold, atol=1e-15)


@pytest.mark.parametrize("stationary", [False, True])
def test_save_and_load_give_the_same_problem(tmp_path, stationary):
    problem = random_problem(4, 2, 3, 2)
    if stationary:
        problem = CMDP(problem.transition[0], problem.reward, problem.threshold, problem.start)
    problem.save(tmp_path / "p.npz")
    again = CMDP.load(tmp_path / "p.npz")
    assert (again.name, again.start, again.stationary) == (problem.name, problem.start, stationary)
    for field in ("transition", "reward", "threshold"):
        np.testing.assert_array_equal(getattr(again, field), getattr(problem, field))
    assert [p.name for p in tmp_path.iterdir()] == ["p.npz"]


def test_files_that_are_no_problems(tmp_path):
    random_problem(4, 2, 3, 1).save(tmp_path / "good.npz")
    whole = (tmp_path / "good.npz").read_bytes()
    (tmp_path / "truncated.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "foreign.npz", a=np.ones(3))
    np.savez(tmp_path / "pickled.npz", a=np.array([object()], dtype=object))
    for name in ("truncated", "text", "foreign", "pickled", "absent"):
        with pytest.raises(InputError, match=f"{name}.npz"):
            CMDP.load(tmp_path / f"{name}.npz")


def test_costs_carry_names():
    problem = random_problem(4, 3, 3, 1)
    given = (problem.transition, problem.reward[0], 1 - problem.reward[1:], [2.0])
    names = Labels(states=("a", "b", "c", "d"))
    found = CMDP.from_costs(*given, labels=names).labels
    assert found.states == names.states
    assert found.signal(1).of == "cost 1"
    assert found.signal(1).published(1.0) == 2.0  # of the 3 steps, 1 was without cost
    told = Labels(signals=(Scale("gold"), Scale("energy", -2.0, 6.0)))
    assert CMDP.from_costs(*given, labels=told).labels == told
    assert CMDP.from_costs(*given).labels == Labels()


def test_a_problem_in_a_file_is_named_by_its_file(tmp_path):
    problem = random_problem(3, 2, 2, 1)
    problem.save(tmp_path / "p.npz")
    arrays = dict(np.load(tmp_path / "p.npz")) | {"threshold": np.array([np.nan])}
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(InputError, match=r"does not match its digest; .* leave out .*'digest'"):
        CMDP.load(tmp_path / "p.npz")
    arrays.pop("digest")
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(InputError, match=r"p.npz: threshold\[0\] is nan"):
        CMDP.load(tmp_path / "p.npz")
    with pytest.raises(InputError, match="is not a file"):
        CMDP.load(tmp_path)


def test_rows_that_are_almost_normalised_become_exact():
    arrays = parts(random_problem(4, 2, 3, 1))
    arrays["transition"] *= 1.0 + 5e-9
    problem = CMDP(**arrays)
    np.testing.assert_allclose(problem.transition.sum(axis=-1), 1.0, atol=1e-15)
