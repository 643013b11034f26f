"""One contract for every learner: what a row, or someone else's algorithm, must keep.

    from cmdplab.testing.contract import check_learner
    check_learner(my_learner)            # a function Task -> Learner, or a registered row

A broken promise raises `ContractError`, which says which one and where.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cmdplab.algorithms.baselines import safe_baseline, task_for
from cmdplab.algorithms.learner import Chunk, Episode, Learner
from cmdplab.algorithms.row import STATIONARY, Row
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.random import SHAPES, random_problem
from cmdplab.engines.families import family
from cmdplab.engines.host import HostSession
from cmdplab.engines.protocol import Session
from cmdplab.errors import InputError
from cmdplab.solvers import solve_feasible
from cmdplab.types import Array

MakeLearner = Callable[[Task], Learner]
Start = Callable[[Any], Session]  # from a state, or from None


class ContractError(AssertionError):
    """A promise that a learner broke."""


def check_learner(
    learner: Row | MakeLearner,
    problem: CMDP | None = None,
    *,
    episodes: int = 60,
    seed: int = 3,
    tolerance: float = 1e-10,
) -> None:
    """Hold a learner to the contract, on one problem or on all the small `SHAPES`.

    Policies lie on the simplex and take no closed action; multipliers are finite and nonnegative;
    what it is told stays unchanged; the same seed gives the same run; chunks and a resume from a
    saved state change no bit. A row must also give the same numbers on both engines, to
    `tolerance`.
    """
    if episodes < 3:
        raise InputError(f"episodes is {episodes}: the contract needs at least three")
    if problem is None:
        alike = isinstance(learner, Row) and STATIONARY in learner.needs
        problems = [random_problem(*shape, stationary=alike) for shape in SHAPES.values()]
        for one in (*problems, random_problem(5, 4, 3, 1, closed=0.4, stationary=alike)):
            check_learner(learner, one, episodes=episodes, seed=seed, tolerance=tolerance)
        return
    task = _task(learner, problem)
    make = _maker(learner)

    def host(state: Any) -> Session:
        return HostSession(problem, make(task), seed, state)

    _check_steps(make(task), host(None), problem, task, episodes)
    expected = _check_bits(host, problem, episodes)
    if isinstance(learner, Row):
        row = learner

        def compiled(state: Any) -> Session:
            return family(row).compiled(problem, row, task, seed, state)

        found = _check_bits(compiled, problem, episodes)
        _close("the two engines", found, expected, tolerance, problem)
        for session in (compiled(None), host(None)):
            _promise(session.play(1).returns.shape == (1, len(task.reward)), "returns", problem)


def _task(learner: Row | MakeLearner, problem: CMDP) -> Task:
    solution = solve_feasible(problem)
    if isinstance(learner, Row):
        return task_for(learner, problem, solution)
    safe = safe_baseline(problem, solution) if problem.constraints else None
    return Task.of(problem, solution.slater_gap, safe)


def _maker(learner: Row | MakeLearner) -> MakeLearner:
    if isinstance(learner, Row):
        row = learner
        return lambda task: family(row).plain(row, task)
    return learner


def _check_steps(
    learner: Learner, session: Session, problem: CMDP, task: Task, episodes: int
) -> None:
    """Episode by episode: policies, multipliers, and states that are left alone."""
    told = [np.copy(each) for each in (task.reward, task.threshold)]
    state = learner.init()
    rng = np.random.default_rng(0)
    for k in range(min(episodes, 30)):
        policy = learner.policy(state)
        _check_policy(policy, problem, f"episode {k + 1}")
        multiplier = np.asarray(state.multiplier)
        fine = multiplier.shape == task.threshold.shape
        fine = fine and bool(np.all(np.isfinite(multiplier) & (multiplier >= 0.0)))
        _promise(fine, "multipliers are [N], finite and >= 0", problem)
        _promise(state.episode == k, "state.episode counts the episodes done", problem)
        before = _frozen(state)
        episode = _random_episode(problem, policy, rng)
        following = learner.observe(state, episode)
        _promise(_same(before, _frozen(state)), "observe leaves the old state alone", problem)
        state = following
    for old, now in zip(told, (task.reward, task.threshold), strict=True):
        _promise(bool(np.array_equal(old, now)), "the task is left alone", problem)
    first = session.play(1).returns[0]
    expected = exact.returns(problem, learner.policy(learner.init()))
    _promise(bool(np.allclose(first, expected, atol=1e-12)), "its first policy is played", problem)


def _check_policy(policy: Array, problem: CMDP, where: str) -> None:
    shape = (problem.horizon, problem.states, problem.actions)
    _promise(np.shape(policy) == shape, f"{where}: the policy is [H, X, A]", problem)
    sums = np.abs(np.sum(policy, axis=-1) - 1.0).max()
    simplex = bool(np.all(policy >= 0.0)) and sums <= 1e-9
    _promise(simplex, f"{where}: the policy's rows are probabilities", problem)
    taken = np.max(np.where(problem.opened, 0.0, policy), initial=0.0)
    _promise(taken == 0.0, f"{where}: no closed action is taken", problem)


def _check_bits(start: Start, problem: CMDP, episodes: int) -> Chunk:
    """Determinism, chunks and a resume, to the last bit; returns what a run gives."""
    whole = start(None).play(episodes)
    first = max(1, episodes // 3)
    cut = start(None)
    pieces = [cut.play(1), cut.play(first)]
    resumed = start(_through_arrays(cut.state()))
    pieces.append(resumed.play(episodes - first - 1))
    joined = Chunk(*(np.concatenate(each) for each in zip(*pieces, strict=True)))
    same = all(np.array_equal(a, b) for a, b in zip(whole, joined, strict=True))
    _promise(same, "chunks and a resume change no bit", problem)
    _promise(bool(np.isfinite(whole.returns).all()), "returns are finite", problem)
    return whole


def _through_arrays(state: Any) -> Any:
    """A state as a checkpoint keeps it: named arrays, and whole numbers for the scalars."""
    arrays = {name: np.array(each) for name, each in state._asdict().items()}
    return type(state)(**{k: int(v) if v.ndim == 0 else v for k, v in arrays.items()})


def _frozen(state: Any) -> list[Array]:
    return [np.array(each) for each in state]


def _same(old: list[Array], now: list[Array]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(old, now, strict=True))


def _random_episode(problem: CMDP, policy: Array, rng: np.random.Generator) -> Episode:
    states, actions = [problem.start], []
    for h in range(problem.horizon):
        actions.append(int(rng.choice(problem.actions, p=policy[h, states[-1]])))
        row = problem.table[h, states[-1], actions[-1]]
        states.append(int(rng.choice(problem.states, p=row)))
    return Episode(np.array(states), np.array(actions))


def _close(what: str, ours: Chunk, theirs: Chunk, tolerance: float, problem: CMDP) -> None:
    for name, a, b in zip(Chunk._fields, ours, theirs, strict=True):
        worst = float(np.max(np.abs(a - b), initial=0.0))
        _promise(worst <= tolerance, f"{what} agree on {name}: they differ by {worst:.1e}", problem)


def _promise(kept: bool, what: str, problem: CMDP) -> None:
    if not kept:
        raise ContractError(f"{problem.name}: broken promise: {what}")
