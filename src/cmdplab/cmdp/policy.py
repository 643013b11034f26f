"""Policies: action probabilities for every state, with names, files and an actor.

NumPy accepts a policy wherever it accepts an array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from cmdplab import display
from cmdplab.checks import checked_name, whole_number
from cmdplab.cmdp import policy_files
from cmdplab.cmdp.checks import check_distributions, floats
from cmdplab.cmdp.evaluation import fitted as fitted
from cmdplab.cmdp.labels import Labels, checked_labels
from cmdplab.cmdp.memory import Actor, Counters, Memory, State, drawn, level_of
from cmdplab.cmdp.policy_files import LARGEST, Row, axes_of, reached, read_rows, written_rows
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.errors import EngineError, InputError
from cmdplab.types import Array, frozen, lock


@display.shown
@frozen
@dataclass(frozen=True, eq=False)
class Policy(NDArrayOperatorsMixin):
    """Probabilities pi_h(a | x) of a policy, with the names of states, actions and steps.

    array : [H, X, A], or [X, A] if the policy is stationary. With a counter [H, K, X, A], or
        [K, X, A]: the probabilities at each of its K levels.
    labels : names of states, actions and steps, as the problem has them.
    name : the name in tables.
    counter : the memory of the policy, or None.

    The rows are checked here, once, and the array is read-only afterwards.
    """

    array: Array
    labels: Labels = Labels()
    name: str = "policy"
    counter: Memory | None = None

    def __post_init__(self) -> None:
        array = floats("the policy", self.array)
        memory = 0 if self.counter is None else 1
        if array.ndim not in (2 + memory, 3 + memory) or not array.size:
            shapes = "[H, K, X, A] or [K, X, A]" if memory else "[H, X, A] or [X, A]"
            raise InputError(f"the policy has the shape {array.shape}, not {shapes}")
        steps = len(array) if array.ndim == 3 + memory else 0
        _check_counter(self.counter, array.shape, steps)
        names = _names(self.labels, array.shape[-2:], steps)
        object.__setattr__(self, "array", array)
        object.__setattr__(self, "labels", names)
        checked_name("the name of the policy", self.name)
        check_distributions("the policy", array, self.axes, names)

    @classmethod
    def deterministic(
        cls,
        chosen: npt.ArrayLike,
        actions: int,
        labels: Labels | None = None,
        name: str = "policy",
    ) -> Policy:
        """Return the policy that takes the action `chosen` [H, X] or [X] out of A = `actions`.

        labels : names of states, actions and steps. The probabilities are computed at their first
        use.
        """
        given = np.array(chosen)
        if given.ndim not in (1, 2) or not given.size or given.dtype.kind not in "iu":
            raise InputError("the chosen actions are not whole numbers [H, X] or [X]")
        if given.size * whole_number("the number of actions", actions, 1) > LARGEST:
            raise InputError(f"a policy of {given.size} x {actions} numbers is too large")
        low, high = 0 if given.dtype.kind == "u" else int(given.min()), int(given.max())
        if low < 0 or high >= actions:
            wrong = high if high >= actions else low
            raise InputError(f"a chosen action is {wrong}, but the actions are 0..{actions - 1}")
        lock(given)
        steps = len(given) if given.ndim == 2 else 0
        made = object.__new__(cls)
        checked_name("the name of the policy", name)
        made.__dict__.update(name=name, counter=None, _chosen=given, _actions=actions)
        made.__dict__["labels"] = _names(labels or Labels(), (given.shape[-1], actions), steps)
        return made

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [("horizon", f"{self.horizon:,}" if self.horizon else "none: stationary")]
        facts += [("states", f"{self.states:,}"), ("actions", f"{self.actions:,}")]
        if self.counter is not None:
            facts.append(("memory", f"a counter of {self.counter.levels:,} levels"))
        rows = int(np.prod(self.shape[:-1]))
        facts.append(("randomised", f"in {self.randomised:,} of {rows:,} rows"))
        facts.append(("try", ".start() to act, .save(file)"))
        return f"Policy {display.name(self.name)}", facts

    @property
    def horizon(self) -> int:
        """Horizon H, or 0 if the policy is the same at every step."""
        return len(self.array) if "h" in self.axes else 0

    @property
    def states(self) -> int:
        """Number of states, X."""
        return int(self.array.shape[-2])

    @property
    def actions(self) -> int:
        """Number of actions, A."""
        return int(self.array.shape[-1])

    @property
    def stationary(self) -> bool:
        """True if the policy is the same at every step."""
        return not self.horizon

    @property
    def axes(self) -> str:
        """Letters of the axes of the array: h step, k counter, x state, a action."""
        return axes_of(self.array, self.counter)

    @property
    def randomised(self) -> int:
        """Number of rows in which several actions have positive probability."""
        return int(np.count_nonzero(np.count_nonzero(self.array, axis=-1) > 1))

    # Actions.

    def row(
        self, state: int | str, step: int | str | None = None, count: int | None = None
    ) -> Array:
        """Return the probabilities [A] of the actions in a state, at a step and counter level.

        State and step are numbers or names. A policy with a horizon needs a step, and one with a
        counter takes its level as `count`.
        """
        index: tuple[int, ...] = ()
        if self.horizon:
            if step is None:
                raise InputError(f"say which of the {self.horizon} steps of the policy is meant")
            index = (self.labels.find_step(step, self.horizon),)
        if self.counter is not None:
            index += (level_of(self.counter, count),)
        elif count is not None:
            raise InputError(f"the counter is {count!r}, but the policy has no memory")
        return np.asarray(self.array[(*index, self.labels.find_state(state, self.states))])

    def probabilities(
        self, state: int | str, step: int | str | None = None, count: int | None = None
    ) -> dict[str, float]:
        """Return {name of the action: probability}. For the arguments see `row`."""
        row = self.row(state, step, count)
        return {self.labels.action(a): float(p) for a, p in enumerate(row)}

    def act(
        self,
        state: State,
        rng: np.random.Generator,
        step: int | str | None = None,
        count: int | None = None,
    ) -> State:
        """Draw an action: a number if `state` is a number, a name if it is a name.

        step, count : as for `row`. Every call takes one uniform number from `rng`, even for a
        deterministic row.
        """
        if not isinstance(rng, np.random.Generator):
            raise InputError(f"rng is {rng!r}, not a generator such as np.random.default_rng(0)")
        a = drawn(self.row(state, step, count), rng.random())
        return self.labels.action(a) if isinstance(state, str) else a

    def start(self, seed: int = 0) -> Actor:
        """Return an actor at the beginning of an episode. seed : of its draws."""
        return Actor(self, seed)

    # Tables and files.

    def to_table(self, problem: CMDP | StationaryCMDP | None = None) -> list[Row]:
        """Return the policy as rows of step, state, counter, action and probability, by names.

        With a problem, the table has only rows that the policy reaches, and positive probabilities.
        """
        kept = None
        if problem is not None:
            fitted(problem, self)
            kept = reached(problem, self.array, self.counter)
        return written_rows(self.array, self.axes, self.labels, kept)

    def to_frame(self, problem: CMDP | StationaryCMDP | None = None) -> Any:
        """Return the table of `to_table` as a pandas DataFrame. It needs pandas."""
        try:
            import pandas as pd
        except ImportError:
            raise EngineError("a DataFrame needs pandas: pip install pandas") from None
        return pd.DataFrame(self.to_table(problem))

    @classmethod
    def from_table(
        cls,
        table: Any,
        problem: CMDP | StationaryCMDP,
        counter: Memory | None = None,
        name: str = "policy",
    ) -> Policy:
        """Return the policy of a table for a problem: a list of rows, or a DataFrame of pandas.

        Actions that are left out have probability zero. States that the policy never reaches may be
        left out, and get equal probabilities. With a counter, the table has a column of its levels.
        An error names the row.
        """
        return cls(read_rows(table, problem, counter), problem.labels, name, counter)

    def save(self, path: str | Path) -> None:
        """Write the policy to a file, atomically. The ending of the path gives the format.

        .npz : all fields, with a digest, without pickle. .csv and .json : the rows of `to_table`,
        which `load` reads together with the problem. Only .npz and .json can store a counter.
        """
        parts = policy_files.Parts(self.array, self.labels, self.name, self.counter)
        policy_files.write(path, parts)

    @classmethod
    def load(cls, path: str | Path, problem: CMDP | StationaryCMDP | None = None) -> Policy:
        """Read a policy from a file of `save`. Files .csv and .json need the problem."""
        try:
            return cls(*policy_files.read(path, problem))
        except InputError as error:
            raise error if str(path) in str(error) else InputError(f"{path}: {error}") from None

    # The array.

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if dtype is None or np.dtype(dtype) == self.array.dtype:
            return self.array.copy() if copy else self.array
        if copy is False:
            raise ValueError(f"a policy of float64 becomes {dtype} only by a copy")
        return self.array.astype(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        arrays = [each.array if isinstance(each, Policy) else each for each in inputs]
        return getattr(ufunc, method)(*arrays, **keywords)

    def __getitem__(self, index: Any) -> Any:
        return self.array[index]

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Array]:
        return iter(self.array)

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the array, such as `shape`, `ndim` and `sum`."""
        if name == "array" and "_chosen" in self.__dict__:
            object.__setattr__(self, "array", _written_out(self._chosen, self._actions))
            return self.array
        if name.startswith("_") or name == "array":  # not set yet during unpickling
            raise AttributeError(name)
        return getattr(self.array, name)


def _names(labels: Labels, size: tuple[int, ...], steps: int) -> Labels:
    if isinstance(labels, Labels) and labels.steps and not steps:
        labels = replace(labels, steps=())
    return checked_labels(labels, size, steps, None)


def _written_out(chosen: npt.NDArray[Any], actions: int) -> Array:
    array = np.zeros(chosen.size * actions)
    array[np.arange(0, array.size, actions) + chosen.ravel()] = 1.0
    lock(array)
    return array.reshape(*chosen.shape, actions)


def _check_counter(counter: Memory | None, shape: tuple[int, ...], steps: int) -> None:
    if counter is None:
        return
    if not isinstance(counter, Memory):
        raise InputError(f"the counter is {counter!r}, not a Counter")
    wanted = {shape[-2:], (steps, *shape[-2:])} if steps else {shape[-2:]}
    found = counter.step.shape[isinstance(counter, Counters) :]
    if shape[-3] != counter.levels or found not in wanted:
        raise InputError(
            f"the policy has the shape {shape}, but its counter has {counter.levels} levels and "
            f"steps of the shape {found}"
        )
