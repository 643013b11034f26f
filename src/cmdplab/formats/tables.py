"""Problems from long tables, with one row for each transition.

    state, action, next, probability, reward, energy, ...        and a column `step`, if needed

A row's rewards are paid on the transition to its next state. A pair pays their expectation. Names
become `Labels`. If names are the numbers 0..X - 1, there are no labels. The module `cmdp.columns`
lists the kinds of tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.checks import is_whole, real_number
from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.columns import (
    Columns,
    columns_of,
    kept,
    limits,
    names,
    numbers,
    ordered,
    places,
    probabilities,
    repeated,
)
from cmdplab.cmdp.labels import Labels
from cmdplab.errors import InputError, printable
from cmdplab.formats.assemble import Listed, Problem, Roles, Signal, judged, problem_of
from cmdplab.formats.kernels import (
    LARGEST,
    TEXT_TOLERANCE,
    Transitions,
    normalised,
    pair_named,
    stored,
)
from cmdplab.types import Array, Indices, Mask

NEEDED = ("state", "action", "next", "probability")


def from_table(
    table: Any,
    *,
    reward: str = "reward",
    utilities: Mapping[str, float] | None = None,
    costs: Mapping[str, float] | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    criterion: str | None = None,
    start: str | int | npt.ArrayLike | Mapping[Any, float] | None = None,
    name: str = "table",
) -> Problem:
    """Return the problem of a table with columns state, action, next, probability and rewards.

    reward : the column to maximise. utilities : column -> threshold. costs : column -> budget.
    horizon, discount, criterion : as in `Given`. A column `step` determines the horizon.
    start : the name of a state, a distribution, or names with probabilities; default: the state
        of the first row.
    """
    given = columns_of(table)
    utilities, costs = limits("utilities", utilities), limits("costs", costs)
    for column in NEEDED:
        given.column(column)
    given.column(reward, "; say which one to maximise: reward=NAME, or --objective NAME")
    rows = _rows(given)
    if rows.steps and horizon not in (None, rows.steps):
        raise InputError(f"the table has {rows.steps} steps, and the horizon is {horizon}")
    how = judged(rows.steps or horizon, discount, criterion)
    first = int(rows.every.state[0]) if start is None else None
    mask = _mask(rows, first)
    every = normalised(_unique(rows, given.rows), mask, rows.labels, TEXT_TOLERANCE)
    opened = mask | ~mask.any(axis=-1, keepdims=True)

    def signal(column: str, limit: float = 0.0, cost: bool = False) -> Signal:
        paid = np.zeros(mask.shape)
        np.add.at(paid, every.pair, every.probability * numbers(given, column))
        return Signal(column, paid, real_number(f"the limit of {column}", limit), cost)

    limited = [signal(*each) for each in utilities.items()]
    limited += [signal(*each, cost=True) for each in costs.items()]
    model = Listed(stored(every, mask), opened, (signal(reward), *limited), rows.labels, name)
    begins = start_of(start, rows.labels, rows.sizes[0]) if first is None else first
    return problem_of(model, how, begins)


def read_csv(path: str | Path, roles: Roles | None = None) -> Problem:
    """Return the problem of a CSV file. roles : the purpose of its columns; they are required."""
    if roles is None:
        raise InputError(f"{path}: say how sums are taken: a horizon, a discount or an average")
    return from_table(
        path,
        reward=roles.objective,
        utilities=roles.utilities,
        costs=roles.costs,
        horizon=roles.horizon,
        discount=roles.discount,
        criterion=roles.criterion,
        start=roles.start or None,
        name=roles.name or printable(Path(path).stem),
    )


class Rows(NamedTuple):
    """Transitions of a table in the order of its rows, with labels and sizes."""

    every: Transitions
    labels: Labels
    steps: int  # 0 where the table has no column of steps
    sizes: tuple[int, int]  # [X, A]


def _rows(given: Columns) -> Rows:
    texts = {name: names(given, name) for name in ("state", "action", "next")}
    states, actions = ordered([*texts["state"], *texts["next"]]), ordered(texts["action"])
    sizes = (len(states), len(actions))
    if sizes[0] * sizes[1] > LARGEST:
        raise InputError(f"{sizes[0]} states with {sizes[1]} actions are too many")
    labels = Labels(kept(states), kept(actions))
    axes = {"state": ("x", sizes[0]), "action": ("a", sizes[1]), "next": ("x", sizes[0])}
    state, action, to = (
        places(given, what, axis, labels, size, texts[what]) for what, (axis, size) in axes.items()
    )
    chance = probabilities(given, TEXT_TOLERANCE)
    step = _steps(given) if "step" in given.values else None
    steps = 0 if step is None else int(step.max()) + 1
    return Rows(Transitions(state, action, to, chance, step), labels, steps, sizes)


def _steps(given: Columns) -> Indices:
    found = numbers(given, "step")
    wrong = np.flatnonzero((found != np.floor(found)) | (found < 0) | (found > LARGEST))
    if len(wrong):
        raise InputError(f"{given.rows[wrong[0]]}: the step is {found[wrong[0]]:g}, not 0, 1, ...")
    first = int(found.min() == 1.0)
    every = np.unique(found.astype(np.int64)) - first
    absent = np.flatnonzero(every != np.arange(len(every)))
    if len(absent):
        raise InputError(f"the table has no step {int(absent[0]) + first}")
    return found.astype(np.int64) - first


def _unique(rows: Rows, names: list[str]) -> Transitions:
    twice = repeated(zip(*rows.every.pair, rows.every.target, strict=True))
    if twice is not None:
        n, first = twice
        place = tuple(int(each[n]) for each in rows.every.pair)
        raise InputError(
            f"{names[n]}: {pair_named(place, rows.labels)} leads to "
            f"{rows.labels.state(int(rows.every.target[n]))} a second time, "
            f"after {names[first].rpartition(', ')[2]}"
        )
    return rows.every


def _mask(rows: Rows, first: int | None) -> Mask:
    """Return the mask of listed pairs, [X, A] or [H, X, A]. first : the first state, if known.

    Every state needs a row. With steps, the start and all targets need one at their step.
    """
    shape = (rows.steps, *rows.sizes) if rows.steps else rows.sizes
    if math.prod(shape) > LARGEST:
        raise InputError(f"{' x '.join(map(str, shape))} steps, states and actions are too many")
    mask = np.zeros(shape, dtype=np.bool_)
    mask[rows.every.pair] = True
    needed = np.ones(shape[:-1], dtype=np.bool_)
    if rows.every.step is not None:
        needed[:] = False
        later = rows.every.step + 1 < rows.steps
        needed[rows.every.step[later] + 1, rows.every.target[later]] = True
        if first is not None:
            needed[0, first] = True
    lacking = np.argwhere(needed & ~mask.any(axis=-1))
    if len(lacking):
        *step, x = (int(each) for each in lacking[0])
        where = f" at step {step[0]}" if step else ""
        raise InputError(
            f"state {rows.labels.state(x)} has no action{where}: a state that is never left needs "
            "a row that leads to itself"
        )
    return mask


def start_of(given: Any, labels: Labels, states: int) -> int | Array:
    """Return the number of the first state, or its distribution [X], from names or numbers."""
    if isinstance(given, Mapping):
        weights = np.zeros(states)
        for name, weight in given.items():
            chance = real_number(f"the chance to start in {name}", weight)
            weights[_state(name, labels, states)] = chance
        return weights
    if isinstance(given, str) or is_whole(given):
        return _state(given, labels, states)  # type: ignore[arg-type]
    return floats("the start distribution", given)


def _state(given: str | int, labels: Labels, states: int) -> int:
    text = str(given)
    if text in labels.states:
        return labels.states.index(text)
    if text.isdecimal() and any(map(str.isdecimal, labels.states)):
        raise InputError(f"the table has no state {text}")
    return labels.find_state(given, states)
