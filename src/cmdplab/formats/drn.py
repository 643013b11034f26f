"""Explicit models of Storm in its DRN format, read straight into lists.

    @type: MDP
    @reward_models
    gold attacks
    @nr_states
    2
    @nr_choices
    3
    @model
    state 0 [0, 0] init
        action dig [0.5, 0]
            0 : 0.9
            1 : 0.1
    ...

A state reward is paid at every step in that state, beside the reward of the action. Deterministic
and continuous-time models, observations, parameters and intervals are refused, with their line.
The actions of a state are numbered by their names where these are the numbers 0, 1, ..., and by
their order in the file otherwise. Lines that begin with // are comments; one that begins with
`// cmdplab` holds `Roles`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import ROW_SUM_TOLERANCE
from cmdplab.errors import InputError
from cmdplab.files import read_text
from cmdplab.formats import drn_lines
from cmdplab.formats.assembling import (
    LARGEST,
    Constraint,
    assembled,
    within_budget,
)
from cmdplab.formats.drn_lines import TEXT_TOLERANCE, Model
from cmdplab.formats.roles import Roles
from cmdplab.formats.storing import Transitions, stored
from cmdplab.types import Array, Indices, Mask


def parse_drn(path: str | Path) -> Model:
    """What a DRN file says, checked as far as it can be without roles."""
    return _checked(str(path), drn_lines.parse(str(path), read_text(path)))


def read_drn(path: str | Path, roles: Roles | None = None) -> CMDP:
    """The problem of a DRN file; without `roles`, with those that the file itself holds."""
    model = parse_drn(path)
    roles = model.roles if roles is None else roles
    if roles is None:
        names = ", ".join(model.names) or "none"
        raise InputError(f"{path}: say which reward model is the objective (it has {names})")
    return problem_of(model, roles, roles.name or Path(path).stem, str(path))


def _checked(path: str, model: Model) -> Model:
    """Rows that are distributions; those that text has rounded are normalised."""
    total = np.bincount(model.choice, model.probability, len(model.owner))
    wrong = np.flatnonzero(~(np.abs(total - 1.0) <= TEXT_TOLERANCE))
    if len(wrong):
        line, found = model.line[wrong[0]], total[wrong[0]]
        raise InputError(f"{path}, line {line}: the probabilities sum to {found:.9g}, not 1")
    place = model.choice * model.states + model.target
    _, first = np.unique(place, return_index=True)
    if len(first) < len(place):
        again = np.setdiff1d(np.arange(len(place)), first)[0]
        line, target = model.line[model.choice[again]], model.target[again]
        raise InputError(f"{path}, line {line}: the action lists the target {target} twice")
    total[np.abs(total - 1.0) <= ROW_SUM_TOLERANCE] = 1.0
    return model._replace(probability=model.probability / total[model.choice])


def problem_of(model: Model, roles: Roles, name: str, path: str) -> CMDP:
    """The CMDP of a model whose reward models have roles."""
    column = _columns(model)
    actions = int(column.max()) + 1
    if model.states * actions > LARGEST:
        raise InputError(f"{path}: {model.states} states with {actions} actions are too many")
    mask = np.zeros((model.states, actions), dtype=np.bool_)
    mask[model.owner, column] = True
    objective = _table(model, roles.objective, column, mask, path)
    constraints = [
        Constraint(_table(model, each, column, mask, path), float(threshold))
        for each, threshold in roles.utilities.items()
    ]
    constraints += [
        within_budget(_table(model, each, column, mask, path), float(budget), roles.horizon, each)
        for each, budget in roles.costs.items()
    ]
    owner, action = model.owner[model.choice], column[model.choice]
    every = Transitions(owner, action, model.target, model.probability)
    kernel = stored(every, mask, path)
    return assembled(
        kernel,
        objective,
        constraints,
        horizon=roles.horizon,
        start=model.start,
        name=name,
        mask=None if mask.all() else mask,
    )


def _columns(model: Model) -> Indices:
    """[C]: the action of each choice."""
    first = np.searchsorted(model.owner, np.arange(model.states))
    position = np.arange(len(model.owner)) - first[model.owner]
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in model.action):
        return position
    number = np.array([int(each) for each in model.action], dtype=np.int64)
    distinct = len(np.unique(model.owner * (number.max() + 1) + number)) == len(number)
    return number if distinct and number.max() < max(len(number), 1000) else position


def _table(model: Model, name: str, column: Indices, mask: Mask, path: str) -> Array:
    """[X, A]: what a reward model pays in a state and for an action together, checked by line."""
    if name not in model.names:
        known = ", ".join(model.names) or "none"
        raise InputError(f"{path} has no reward model {name!r}; it has {known}")
    n = model.names.index(name)
    paid = model.state_reward[model.owner, n] + model.choice_reward[:, n]
    wrong = np.flatnonzero(~((paid >= 0.0) & (paid <= 1.0)))
    if len(wrong):
        line, found = model.line[wrong[0]], paid[wrong[0]]
        raise InputError(f"{path}, line {line}: {name} pays {found:g} in a step, outside [0, 1]")
    table = np.zeros(mask.shape)
    table[model.owner, column] = paid
    return table
