"""One contract for everything registered: what must hold of every algorithm on every shape."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import dense_signatures, random_problem
from oracles import agree, plain, session
from oracles.primal_dual import PlainPrimalDual
from pairwise import crossed

from cmdplab.algorithms import ALGORITHMS, algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.families import planner, primal_dual, softmax_search, triple_q
from cmdplab.algorithms.families.primal_dual import (
    OPTIMISTIC_CAP,
    UNIFORM_ROW,
    ZERO_ROW,
    PrimalDual,
)
from cmdplab.algorithms.families.softmax_search import SoftmaxSearch
from cmdplab.algorithms.row import CONSTRAINT, ONE_CONSTRAINT, STATIONARY
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.engines.host import HostSession
from cmdplab.environments.random_cmdp import SHAPES
from cmdplab.errors import InputError
from cmdplab.solvers import solve, solve_feasible
from cmdplab.testing.contract import ContractError, check_learner

NAMES = {shape: name for name, shape in SHAPES.items()}


def traits(value):
    """What decides which code runs: of a shape all of it, of a row its family, preset and needs."""
    if isinstance(value, tuple):
        return [value]
    return [type(value).__name__, value.preset, *value.needs]


def named(value):
    return NAMES[value] if isinstance(value, tuple) else f"{value.name}-{value.preset}"


ROWS = pytest.mark.parametrize("row", ALGORITHMS.values(), ids=named)


def on_shapes(rows):
    """Each row on each shape; `make test` takes as many as let every trait meet every shape."""
    pairs = crossed(list(rows), list(NAMES), traits=traits, ids=named)
    return pytest.mark.parametrize(("row", "shape"), pairs)


def suited(row, *sizes, **choices):
    """A random problem of a kind that the row can learn."""
    if ONE_CONSTRAINT in row.needs:
        sizes = (*sizes[:3], min(sizes[3], 1))
    return random_problem(*sizes, stationary=STATIONARY in row.needs, **choices)


def prepared(row, shape):
    problem = suited(row, *shape)
    return problem, task_for(row, problem, solve_feasible(problem))


@on_shapes(ALGORITHMS.values())
def test_every_row_keeps_the_contract(row, shape):
    problem = suited(row, *shape)
    if CONSTRAINT in row.needs and not problem.constraints:
        with pytest.raises(InputError, match="needs a constraint"):
            check_learner(row, problem)
        return
    check_learner(row, problem, episodes=episodes(row))
    agree(row, problem, episodes(row))


def episodes(row):
    """As many as teach; the plain learner of a search evaluates 25 policies in each."""
    return 9 if isinstance(row, SoftmaxSearch) else 30


@ROWS
def test_no_row_takes_a_closed_action(row):
    problem = suited(row, 5, 4, 3, 2, closed=0.4)
    check_learner(row, problem, episodes=episodes(row))
    agree(row, problem, episodes(row))


@ROWS
def test_every_row_keeps_the_contract_at_the_scale_of_the_theory(row):
    row = replace(row, bonus_scale=1.0, margin_scale=1.0)
    problem = suited(row, 4, 3, 3, 1)
    check_learner(row, problem, episodes=episodes(row))
    agree(row, problem, episodes(row))


@ROWS
def test_neither_chunks_nor_a_resume_change_a_bit(row):
    problem, task = prepared(row, (9, 3, 4, 2))
    whole = session("cpu", problem, row, task, 11)
    at_once = whole.play(400)
    cut = session("cpu", problem, row, task, 11)
    pieces = [cut.play(size) for size in (1, 2, 97, 100)]
    resumed = session("cpu", problem, row, task, 11, cut.state())
    pieces += [resumed.play(size) for size in (199, 1)]
    for field in ("returns", "multiplier"):
        joined = np.concatenate([getattr(piece, field) for piece in pieces])
        np.testing.assert_array_equal(joined, getattr(at_once, field))
    for ours, theirs in zip(resumed.state(), whole.state(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@on_shapes(ALGORITHMS.values())
def test_what_is_played_is_the_policy_of_the_state(row, shape):
    if CONSTRAINT in row.needs and not shape[3]:
        return
    problem, task = prepared(row, shape)
    cpu = session("cpu", problem, row, task, 5)
    assert np.all(np.isfinite(cpu.play(300).returns))
    policy = plain(row, task).policy(cpu.state())
    np.testing.assert_allclose(cpu.play(1).returns[0], exact.returns(problem, policy), atol=1e-12)


@ROWS
def test_costs_within_budgets_are_utilities_above_thresholds(row):
    # (r, b) and (1 - r, H - b) through the adapter are the same problem, and the same run.
    problem = suited(row, 4, 3, 3, 2)
    cost, budget = 1.0 - problem.reward[1:], problem.horizon - problem.threshold
    same = type(problem).from_costs(
        problem.transition, problem.reward[0], cost, budget, problem.start
    )
    runs = []
    for each in (problem, same):
        task = task_for(row, each, solve_feasible(each))
        runs.append(session("cpu", each, row, task, 2).play(100).returns)
    np.testing.assert_allclose(*runs, atol=1e-9)


PRIMAL_DUAL = [
    row for row in ALGORITHMS.values() if isinstance(row, PrimalDual) and not row.knows_kernel
]


@on_shapes(PRIMAL_DUAL)
def test_a_primal_dual_run_keeps_its_books(row, shape):
    problem, task = prepared(row, shape)
    cpu = session("cpu", problem, row, task, 5)
    chunk = cpu.play(500)
    state = cpu.state()
    np.testing.assert_allclose(np.exp(state.log_policy), state.policy, atol=1e-12)
    np.testing.assert_array_equal(state.counts.sum(axis=(1, 2, 3)), 500.0)
    assert np.all(state.counts[problem.transition == 0.0] == 0.0)
    assert state.episode == 500
    uniform = np.full(state.policy.shape, 1.0 / problem.actions)
    np.testing.assert_allclose(chunk.returns[0], exact.returns(problem, uniform), atol=1e-12)


@pytest.mark.parametrize("preset", ["released", pytest.param("printed", marks=pytest.mark.slow)])
def test_engines_agree_over_thousands_of_episodes(preset):
    row = algorithm("UOpt-RPGPD", preset)
    problem, task = prepared(row, (3, 2, 2, 1))
    cpu, host = (session(engine, problem, row, task, 0) for engine in ("cpu", "host"))
    assert_same(cpu.play(2500), host.play(2500), 1e-9)
    assert_same(cpu.state(), host.state(), 1e-9)


@pytest.mark.parametrize("unvisited", [ZERO_ROW, UNIFORM_ROW, OPTIMISTIC_CAP])
@pytest.mark.parametrize("cap", [1.0, np.inf])
def test_engines_agree_on_every_named_choice(unvisited, cap):
    row = replace(algorithm("UOpt-RPGPD", "printed"), unvisited=unvisited, radius_cap=cap)
    problem, task = prepared(row, (4, 3, 3, 1))
    cpu, host = (session(engine, problem, row, task, 1) for engine in ("cpu", "host"))
    assert_same(cpu.play(60), host.play(60), 1e-11)


def assert_same(ours, theirs, tolerance):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def test_another_seed_is_another_run_and_another_problem_is_seen():
    row = algorithm("UOpt-RPGPD", "released")
    problem, task = prepared(row, (4, 3, 3, 1))
    first = session("cpu", problem, row, task, 0).play(50).returns
    assert not np.array_equal(first, session("cpu", problem, row, task, 1).play(50).returns)
    other = random_problem(4, 3, 3, 1, seed=9)
    seen = session("cpu", other, row, Task.of(other, 1.0), 0).play(1).returns[0]
    uniform = np.full((3, 4, 3), 1 / 3)
    np.testing.assert_allclose(seen, exact.returns(other, uniform), atol=1e-13)


def test_no_choice_of_algorithm_size_or_number_compiles_anything_again():
    for row, shape in zip(ALGORITHMS.values(), itertools.cycle(SHAPES.values())):
        if CONSTRAINT in row.needs and not shape[3]:
            continue
        problem, task = prepared(row, shape)
        session("cpu", problem, replace(row, delta=0.05, bonus_scale=0.3), task, 0).play(3)
    assert len(dense_signatures(primal_dual.FAMILY.loops.play)) == 1
    assert len(dense_signatures(primal_dual.improve)) <= 1
    assert len(dense_signatures(planner.FAMILY.loops.play)) == 1
    assert len(dense_signatures(softmax_search.FAMILY.loops.play)) == 1
    assert len(triple_q.FAMILY.loops.play.dispatcher.signatures) == 1


class Broken(PlainPrimalDual):
    """A learner that breaks one promise, named by `how`."""

    how = ""

    def policy(self, state: Any) -> np.ndarray:
        good = super().policy(state)
        if self.how == "simplex":
            return 1.1 * good
        return good[:, :, :0] if self.how == "shape" else good

    def observe(self, state: Any, episode: Any) -> Any:
        after = super().observe(state, episode)
        if self.how == "negative":
            return after._replace(multiplier=after.multiplier - 10.0)
        if self.how == "count":
            return after._replace(episode=after.episode + 1)
        if self.how == "memory":  # something that is not in the state decides
            object.__setattr__(self, "seen", getattr(self, "seen", 0) + 1)
            tilt = np.ones(after.policy.shape) + 0.01 * (self.seen % 5) * np.arange(3)
            policy = after.policy * tilt
            return after._replace(policy=policy / policy.sum(axis=-1, keepdims=True))
        if self.how == "mutates":
            state.counts[:] = 0.0
        return after


@pytest.mark.parametrize(
    ("how", "promise"),
    [
        ("simplex", "in episode 1: its policy sums to 1.1"),
        ("shape", "in episode 1: its policy has the shape"),
        ("negative", "after episode 1: state.multiplier has an entry below zero"),
        ("count", "state.episode is 2, not the number of episodes done, 1"),
        ("memory", "change no bit"),
        ("mutates", "old state alone"),
    ],
)
def test_the_contract_notices_a_broken_promise(how, promise):
    kind = type("Kind", (Broken,), {"how": how})
    row = algorithm("UOpt-RPGPD", "printed")
    with pytest.raises(ContractError, match=promise):
        check_learner(lambda task: kind(row, task), random_problem(4, 3, 3, 1))


def test_the_contract_takes_a_learner_from_outside():
    row = algorithm("UOpt-RPGPD", "printed")
    check_learner(lambda task: PlainPrimalDual(row, task), episodes=12)


def test_a_host_session_takes_any_learner():
    row = algorithm("OptCMDP")
    problem = random_problem(4, 3, 3, 1)
    task = Task.of(problem, solve(problem).slater_gap)
    host = HostSession(problem, plain(row, task), 0)
    assert host.play(3).returns.shape == (3, 2)
