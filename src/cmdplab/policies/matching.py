"""A policy of one problem played in another: states, actions and steps are matched by name.

A policy that was learnt from logs knows the states of the logs alone. The model has more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cmdplab.cmdp.bundle import check_problem
from cmdplab.cmdp.policy import Policy, fitted
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.errors import InputError
from cmdplab.types import Array, Indices

Default = int | str | Sequence[int | str]


def match_policy(
    policy: Policy, problem: CMDP | StationaryCMDP, default: Default | None = None
) -> Policy:
    """Return the policy for another problem that has the same states and actions by name.

    default : the action in states that the policy does not know, by name or number. Of several,
        the first open one is taken. None: such states are refused.
    If the policy or the problem has no names, numbers count. States of the policy that the problem
    lacks are left out, and the first steps with them if a random start put both there.
    """
    check_problem(problem)
    if not isinstance(policy, Policy):
        raise InputError(f"the policy is {type(policy).__name__}, not a Policy with names")
    if policy.counter is not None:
        raise InputError(f"{policy.name} has a counter, which counts in its own problem alone")
    names = policy.labels
    state = _places(names.along("x"), policy.states, problem.labels.along("x"), problem.states)
    action = _places(names.along("a"), policy.actions, problem.labels.along("a"), problem.actions)
    horizon = problem.horizon if isinstance(problem, CMDP) else 0
    lacking = policy.horizon > horizon > 0 and bool((state < 0).any())
    before = policy.horizon - horizon if lacking else 0
    if policy.horizon and policy.horizon - before != horizon:
        steps = f"{horizon} steps" if horizon else "no last step"
        raise InputError(f"the policy has {policy.horizon} steps, but {problem.name} has {steps}")
    given = policy.array[before:] if policy.horizon else policy.array
    lost = np.argwhere((given > 0.0) & (state >= 0)[:, None] & (action < 0))
    if len(lost):
        x, a = (int(each) for each in lost[0][-2:])
        raise InputError(
            f"{policy.name} takes action {names.action(a)} in state {names.state(x)}: "
            f"{problem.name} has no such action"
        )
    rows = np.zeros((*given.shape[:-2], problem.states, problem.actions))
    known, shared = state >= 0, action >= 0
    there = np.ix_(state[known], action[shared])
    rows[..., there[0], there[1]] = given[..., known, :][..., shared]
    unknown = np.setdiff1d(np.arange(problem.states), state)
    if len(unknown):
        rows[..., unknown, :] = _by_default(problem, unknown, default, rows.ndim == 3)
    later = (names.steps[before:] or problem.labels.steps) if policy.horizon else ()
    matched = Policy(rows, replace(problem.labels, steps=later, signals=()), policy.name)
    fitted(problem, matched)
    return matched


def _places(ours: Sequence[str], size: int, theirs: Sequence[str], theirs_size: int) -> Indices:
    """Return [size]: the number of each of our names among theirs, or -1.

    A side without names has its numbers as names.
    """
    place = {str(n): n for n in range(theirs_size)} | {name: n for n, name in enumerate(theirs)}
    return np.array([place.get(name, -1) for name in ours or map(str, range(size))])


def _by_default(
    problem: CMDP | StationaryCMDP, states: Indices, default: Default | None, by_step: bool
) -> Array:
    """Return [..., U, A]: in each unknown state the first of the default actions that is open."""
    names = problem.labels
    if default is None:
        raise InputError(
            f"the policy does not know {len(states)} states of {problem.name}, the first is "
            f"{names.state(int(states[0]))}: say which action is taken there, default=..."
        )
    listed = isinstance(default, Sequence | np.ndarray) and not isinstance(default, str)
    wanted: list[Any] = list(default) if listed else [default]  # type: ignore[arg-type]
    if not wanted:
        raise InputError("the default names no action")
    actions = np.array([names.find_action(each, problem.actions) for each in wanted])
    opened = problem.opened[..., states, :]
    if opened.ndim == 3 and not by_step:
        opened = np.asarray(opened.all(axis=0))
    offered = opened[..., actions]
    closed = np.argwhere(~offered.any(axis=-1))
    if len(closed):
        x = names.state(int(states[closed[0][-1]]))
        raise InputError(f"{problem.name} closes action {wanted[-1]} in state {x}: name another")
    return np.asarray(np.eye(problem.actions)[actions[offered.argmax(axis=-1)]])
