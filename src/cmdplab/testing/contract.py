"""The contract that a row or a learner from outside must keep.

A broken promise raises `ContractError` with the promise and the problem. Violations that `run`
itself refuses (`algorithms.custom.Checked`) raise it in the words of `run`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cmdplab.algorithms import as_row
from cmdplab.algorithms.baselines import safe_baseline, task_for
from cmdplab.algorithms.custom import (
    Checked,
    Custom,
    Given,
    MakeLearner,
    StoredState,
    checked_learner,
    packed,
)
from cmdplab.algorithms.learner import Chunk, Episode
from cmdplab.algorithms.row import SAFE_POLICY, Row
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import Session, live_session, policy_of, session
from cmdplab.environments.random_cmdp import SHAPES, random_problem
from cmdplab.errors import InputError, LearnerError
from cmdplab.solvers import solve_feasible
from cmdplab.types import Array

__all__ = ["ContractError", "MakeLearner", "check_learner"]

Start = Callable[[Any], Session]  # from a state, or from None


class ContractError(AssertionError):
    """A violation of the contract by a learner."""


def check_learner(
    learner: Given,
    problem: CMDP | None = None,
    *,
    episodes: int = 60,
    seed: int = 3,
) -> None:
    """Check a learner against the contract, on one problem or on all the small `SHAPES`.

    Policies lie on the simplex and take no closed action. Multipliers are finite and nonnegative.
    The arguments of the learner stay unchanged. Its state can be stored. A seed gives one run.
    Chunks and a resume from a saved state change no bit.
    """
    if episodes < 3:
        raise InputError(f"episodes is {episodes}: the contract needs at least three")
    row = as_row(learner)
    if problem is None:
        alike = row.pooled
        problems = [random_problem(*shape, stationary=alike) for shape in SHAPES.values()]
        for one in (*problems, random_problem(5, 4, 3, 1, closed=0.4, stationary=alike)):
            check_learner(row, one, episodes=episodes, seed=seed)
        return
    try:
        _check_on(row, problem, episodes, seed)
    except LearnerError as error:
        raise ContractError(f"{problem.name}: {error}") from error


def _check_on(row: Row, problem: CMDP, episodes: int, seed: int) -> None:
    task = _task(row, problem)

    def start(state: Any) -> Session:
        return session("cpu", problem, row, task, seed, state)

    _check_steps(row, start, problem, task, episodes)
    _check_bits(row, start, problem, episodes)
    _promise(start(None).play(1).returns.shape == (1, len(task.reward)), "returns", problem)


class Stepping:
    """A row of the package as a learner with three methods.

    `observe` of a
    `Safe(...)` ignores the episode that it is given, and plays one of its own.
    """

    def __init__(self, row: Row, task: Task, start: Start) -> None:
        self._row, self._task = row, task
        self._start: Any = start if row.tosses_coin else partial(live_session, row, task)

    def init(self) -> Any:
        return self._start(None).state()

    def policy(self, state: Any) -> Array:
        return policy_of(self._row, self._task, state)

    def observe(self, state: Any, episode: Episode) -> Any:
        run = self._start(state)
        if self._row.tosses_coin:
            run.play(1)
        else:
            run.observe(episode.states, episode.actions, episode.rewards)
        return run.state()


def _task(row: Row, problem: CMDP) -> Task:
    """Return the task of a row; an outside learner also gets a safe policy, which it may need."""
    solution = solve_feasible(problem)
    if not isinstance(row, Custom) or SAFE_POLICY in row.needs or not problem.constraints:
        return task_for(row, problem, solution)
    return Task.of(problem, solution.slater_gap, safe_baseline(problem, solution))


def _check_steps(row: Row, start: Start, problem: CMDP, task: Task, episodes: int) -> None:
    """Check episode by episode: policies, multipliers, and states that are left alone."""
    told = [np.copy(array) for array in (task.reward, task.threshold)]
    if isinstance(row, Custom):
        learner = checked_learner(row, task)
    else:
        learner = Checked(row.name, Stepping(row, task, start), task)
    state = learner.init()
    rng = np.random.default_rng(0)
    for _ in range(min(episodes, 30)):
        policy = learner.policy(state)
        before = _frozen(row, state)
        episode = _random_episode(problem, policy, rng)
        following = learner.observe(state, episode)
        both = zip(before, _frozen(row, state), strict=True)
        left_alone = all(np.array_equal(a, b) for a, b in both)
        _promise(left_alone, "observe leaves the old state alone", problem)
        state = following
    for old, now in zip(told, (task.reward, task.threshold), strict=True):
        _promise(bool(np.array_equal(old, now)), "the task is left alone", problem)
    first = start(None).play(1).returns[0]
    expected = exact.returns(problem, learner.policy(learner.init()))
    _promise(bool(np.allclose(first, expected, atol=1e-12)), "its first policy is played", problem)


def _check_bits(row: Row, start: Start, problem: CMDP, episodes: int) -> Chunk:
    """Check determinism, chunks and a resume, to the last bit; return the run."""
    whole = start(None).play(episodes)
    first = max(1, episodes // 3)
    cut = start(None)
    pieces = [cut.play(1), cut.play(first)]
    resumed = start(_through_arrays(row, cut.state()))
    pieces.append(resumed.play(episodes - first - 1))
    joined = Chunk(*(np.concatenate(chunks) for chunks in zip(*pieces, strict=True)))
    same = all(np.array_equal(a, b) for a, b in zip(whole, joined, strict=True))
    _promise(same, "chunks and a resume change no bit", problem)
    _promise(bool(np.isfinite(whole.returns).all()), "returns are finite", problem)
    return whole


def _through_arrays(row: Row, state: Any) -> Any:
    """Return a state as a checkpoint keeps it: named arrays, and numbers for the scalars."""
    arrays = {name: array.copy() for name, array in packed(row.name, state).items()}
    plain = {name: a.item() if a.ndim == 0 else a for name, a in arrays.items()}
    return StoredState(**plain) if isinstance(row, Custom) else type(state)(**plain)


def _frozen(row: Row, state: Any) -> list[Array]:
    return [array.copy() for array in packed(row.name, state).values()]


def _random_episode(problem: CMDP, policy: Array, rng: np.random.Generator) -> Episode:
    states, actions = [problem.start], []
    for h in range(problem.horizon):
        actions.append(int(rng.choice(problem.actions, p=policy[h, states[-1]])))
        row = problem.table[h, states[-1], actions[-1]]
        states.append(int(rng.choice(problem.states, p=row)))
    return Episode(np.array(states), np.array(actions))


def _promise(kept: bool, what: str, problem: CMDP) -> None:
    if not kept:
        raise ContractError(f"{problem.name}: broken promise: {what}")
