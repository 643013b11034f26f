"""Frozen means frozen, after every way of copying."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from conftest import random_problem
from live_envs import Walk

import cmdplab
from cmdplab import types
from cmdplab.cmdp.horizons import truncate
from cmdplab.cmdp.memory import Counters
from cmdplab.cmdp.transitions import Sparse
from cmdplab.experiments.run_settings import fingerprint
from cmdplab.solvers import Box, solve
from cmdplab.solvers.known import Known

LOG = [[(0, 1, 1.0, 0.5, 1), (1, 0, 0.0, 0.0, 0)], [(0, 0, 0.0, 0.2, 1), (1, 1, 1.0, 0.1, 1)]]


def classes() -> list[type]:
    """Every class of the package."""
    found: dict[int, type] = {}
    for each in pkgutil.walk_packages(cmdplab.__path__, "cmdplab."):
        if not any(part in each.name for part in ("__main__", ".gpu", "ray")):
            module = importlib.import_module(each.name)
            found |= {id(v): v for v in vars(module).values() if isinstance(v, type)}
    return [each for each in found.values() if each.__module__.startswith("cmdplab")]


def is_frozen(cls: type) -> bool:
    return vars(cls).get("__reduce_ex__") is types._reduced


@cache
def values() -> list[Any]:
    """One of everything that is frozen."""
    masked = random_problem(4, 3, 3, 1, closed=0.3)
    sparse = replace(masked, transition=Sparse.of(np.asarray(masked.transition)))
    kernel, reward = masked.transition[0], masked.reward[:, 0]
    steady = cmdplab.CMDP(kernel, reward, [0.1], horizon=3, mask=masked.opened[0])
    endless = cmdplab.CMDP.discounted(kernel, reward[0], 0.9, costs=[reward[1]], budgets=[9.0])
    unmet = replace(masked, threshold=[2.99])
    counter = cmdplab.Counter(np.ones((4, 3), dtype=int), 3, limit=1, sums=[0, 1, 2])
    solution = solve(masked)
    optimal, even = solution.policy, cmdplab.Policy(np.full((4, 3), 1 / 3))
    remembering = cmdplab.Policy(np.full((3, 4, 3), 1 / 3), counter=counter)
    cost = 1.0 - masked.reward[1]
    counted = cmdplab.from_counts(np.ones((2, 2, 2)), np.eye(2), horizon=2)
    whole = random_problem(3, 2, 2, 0)
    fitted = cmdplab.fit(LOG, budget=1.0)
    learned = cmdplab.learn(
        Walk(), "UOpt-RPGPD", episodes=9, evaluate=4, horizon=3, budget=1.0, reward_range=(0, 1)
    )
    return [
        *(masked, sparse, steady, endless, sparse.transition, masked.kernel, counter),
        *(Counters((counter, counter)), optimal, even, remembering, solution, solve(unmet)),
        *(solve(endless), Known(masked, masked.threshold)),
        *(cmdplab.AlmostSure(cost, 3, 0.5), cmdplab.Anytime(cost, 3), cmdplab.Chance(cost, 3, 0.1)),
        *(cmdplab.CVaR(cost, 0.9, 3), cmdplab.Expected(cost, 3)),
        cmdplab.solve_budgets(masked, cmdplab.AlmostSure(np.ones((4, 3)), 3)),
        cmdplab.solve_robust(whole, Box.around(whole.table, np.full(whole.table.shape, 0.01))),
        *(cmdplab.evaluate(masked, optimal), cmdplab.simulate(masked, optimal, 20)),
        cmdplab.compare_policies(masked, optimal, np.asarray(optimal)),
        *(cmdplab.frontier(masked), cmdplab.conflict(unmet), counted, truncate(endless, 4)),
        *(fitted, fitted.planned, fitted.model(), learned),
        *(cmdplab.run(masked, "UOpt-RPGPD", episodes=9), cmdplab.explain(masked, 0, 0)),
    ]


def ways(value: Any) -> list[Any]:
    """Every way to copy it."""
    pickles = [pickle.dumps(value, each) for each in range(pickle.HIGHEST_PROTOCOL + 1)]
    made = replace(value) if not hasattr(value, "_replace") else value._replace()
    return [copy.copy(value), copy.deepcopy(value), made, *map(pickle.loads, pickles)]


def arrays(value: Any, place: str = "") -> dict[str, np.ndarray]:
    """All arrays of a value, by place."""
    if isinstance(value, np.ndarray):
        return {place: value}
    if isinstance(value, tuple):
        parts: dict[Any, Any] = dict(enumerate(value))
    elif isinstance(value, dict):
        parts = value
    else:
        parts = (
            {e.name: getattr(value, e.name) for e in fields(value)} if is_dataclass(value) else {}
        )
    return {
        k: v for name, each in parts.items() for k, v in arrays(each, f"{place}.{name}").items()
    }


def test_every_class_that_holds_arrays_is_frozen_and_is_tested():
    tested = {type(each) for each in values()}
    holding = {"Array", "Indices", "Mask", "npt.ArrayLike"}
    for cls in classes():
        if is_frozen(cls):
            assert cls in tested, cls
        elif hasattr(cls, "__dataclass_params__") or hasattr(cls, "_repr_html_"):
            kinds = {w for e in cls.__annotations__.values() for w in str(e).split(" | ")}
            lent = cls.__name__ in LENT or cls.__name__.startswith("_")
            assert lent or not kinds & holding, cls


# What only carries the arrays of a person, or of a loop, for the length of a call.
LENT = {"Asked", "Baseline", "Grid", "PlainLearner", "PlainSafe"}


def test_no_array_of_any_copy_can_be_written():
    for value, copied in ((each, made) for each in values() for made in ways(each)):
        first = arrays(value)
        assert type(copied) is type(value)
        assert str(copied) == str(value)
        found = arrays(copied)
        for place, array in found.items():
            assert not array.flags.writeable, place
            if place in first:
                assert (0 in array.strides) == (0 in first[place].strides) or array.size < 2
                assert array.tobytes() == first[place].tobytes(), place
        for array in first.values():
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 7


def test_a_copied_problem_has_the_fingerprint_the_kernel_and_the_optimum_of_the_first():
    for value in (each for each in values() if isinstance(each, cmdplab.CMDP)):
        for copied in ways(value):
            assert fingerprint(copied) == fingerprint(value)
            assert copied.stationary == value.stationary
            assert solve(copied).value == solve(value).value


def test_a_long_problem_pickles_to_kilobytes():
    short = random_problem(4, 3, 3, 1, closed=0.3)
    mask, kernel = short.opened[0], short.transition[0]
    long = cmdplab.CMDP(kernel, short.reward[:, 0], [0.0], horizon=100_000, mask=mask)
    data = pickle.dumps(long)
    assert len(data) < 3_000
    again = pickle.loads(data)
    assert again.stationary
    assert fingerprint(again) == fingerprint(long)


def test_a_person_s_own_array_stays_writeable():
    cost = np.ones((4, 3))
    budget = cmdplab.Expected(cost, 1.0)
    cost[0, 0] = 5.0
    assert budget.cost[0, 0] == 1.0


@pytest.mark.parametrize("name", ["UOpt-RPGPD", "OptCMDP", "Safe(OptCMDP)"])
def test_rows_are_equal_after_every_way_of_copying(name):
    row = cmdplab.algorithm(name)
    assert all(each == row for each in ways(row))
