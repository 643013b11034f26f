"""Learners from outside as rows: objects with `init`, `policy` and `observe` run like our own.

    cmdplab.run(problem, make_learner, 10_000)        # a function, or a class, Task -> Learner
    cmdplab.run(problem, MyLearner(), 10_000)         # an object that needs no task
    cmdplab run PROBLEM --algorithm package.module:make_learner

`Checked` checks the contract of such a learner in every episode. An import path is followed only if
a person gives it. A record that merely names a learner gives a row that can be read, labelled and
drawn, but not played.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from traceback import extract_tb
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab import plugins
from cmdplab.algorithms.learner import Episode, Learner
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Task
from cmdplab.checks import is_whole
from cmdplab.cmdp.checks import checked_policy
from cmdplab.errors import InputError, LearnerError
from cmdplab.types import Array

CUSTOM = "custom"  # the preset of every learner from outside
OUTSIDE = "from outside cmdplab"
_PACKAGE = Path(__file__).resolve().parents[1]
MakeLearner = Callable[[Task], Learner]
Given = Row | str | Learner | MakeLearner  # the forms of an algorithm: `algorithms.as_row`


@dataclass(frozen=True, kw_only=True)
class Custom(Row):
    """A learner from outside: a name, and a function that makes it for a task."""

    make: MakeLearner = field(hash=False)
    preset: str = CUSTOM
    provenance: str = OUTSIDE
    summary: str = OUTSIDE
    unknown_rewards: str = "its own matter"

    def settings(self) -> dict[str, Any]:
        """Return None for every setting: a learner from outside has no settings that we know."""
        return dict.fromkeys(super().settings())

    def reads(self, name: str) -> bool:
        """Return False: no setting changes anything."""
        return False

    def _may_have(self, name: str) -> bool:
        return False

    @property
    def heuristic(self) -> str:
        """Return that nothing is proved here; empty if the learner has a guarantee."""
        return "" if self.guarantee else f"{OUTSIDE}: nothing is proved here"


def is_learner(given: object) -> bool:
    """Return True if an object has the three methods of a learner; a class has none yet."""
    methods = (getattr(given, each, None) for each in ("init", "policy", "observe"))
    return not isinstance(given, type) and all(callable(each) for each in methods)


@dataclass(frozen=True, eq=False)
class _Ready:
    """A learner that is the same for every task, compared by identity."""

    learner: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ready) and other.learner is self.learner

    def __hash__(self) -> int:
        return id(self.learner)

    def __call__(self, task: Task) -> Any:
        return self.learner


def custom(given: object, name: str = "") -> Custom:
    """Return a row around a learner, or around a function or class that makes one from a `Task`."""
    if isinstance(given, Custom):
        return replace(given, name=name) if name else given
    if is_learner(given):
        return Custom(name=name or type(given).__name__, make=_Ready(given))
    if callable(given):
        return Custom(name=name or getattr(given, "__name__", type(given).__name__), make=given)
    raise InputError(
        f"{name or repr(given)} is no algorithm: give a name, a row, a learner with init, policy "
        "and observe, or a function that makes one"
    )


def imported(path: str) -> Custom:
    """Return the learner at "package.module:name". Importing runs the module's code."""
    return custom(plugins.follow(path), path)


def registered(name: str) -> Custom | None:
    """Return the learner that an installed package registers under a name. Import its module."""
    found = plugins.plugin(plugins.ALGORITHMS, name)
    if found is None:
        return None
    row = custom(plugins.follow(found.path, f"{found.name} of {found.package}"), found.name)
    return replace(row, provenance=f"{OUTSIDE}: {found.package}")


def recorded(name: str) -> Custom:
    """Return the row of a learner that a record names. It is not imported, and cannot be played."""

    def make(task: Task) -> Learner:
        raise InputError(not_given(name))

    return Custom(name=name, make=make)


def not_given(name: str) -> str:
    """Return why a learner that a record names is not played, and the remedy."""
    asked = f"give it again, --algorithm {name}" if plugins.is_path(name) else ""
    install = "install the package that registers it"
    return f"{name} is {OUTSIDE}: {asked + ', or ' if asked else ''}{install}"


def import_path(given: object) -> str:
    """Return the path by which another process finds the same function, class or row again."""
    name = getattr(given, "__qualname__", "")
    path = f"{getattr(given, '__module__', '')}:{name}"
    found = None
    if plugins.is_path(path) and not path.startswith(("__main__:", "__mp_main__:")):
        found = plugins.follow(path)
    if found is not given:
        raise InputError(
            f"{name or type(given).__name__} cannot be found again by another process: in a folder "
            "of runs a learner is a function or class of a module, or its path package.module:name"
        )
    return path


class StoredState(SimpleNamespace):
    """A learner's state as a checkpoint holds it: arrays and numbers by name, without a type."""


class Checked:
    """A learner whose contract is checked in every episode. A breach raises one sentence."""

    def __init__(self, name: str, learner: Any, task: Task) -> None:
        if not is_learner(learner):
            kind = type(learner).__name__
            raise LearnerError(
                f"{name} made a {kind}, which is no learner with init, policy and observe"
            )
        self._name, self._learner = name, learner
        self._constraints = len(task.threshold)
        self._opened = np.ones(task.reward.shape[1:], bool) if task.mask is None else task.mask

    def init(self) -> Any:
        """Return the learner's first state."""
        return self._state(_held(self._name, "failed in init", self._learner.init), 0)

    def policy(self, state: Any) -> Array:
        """Return the policy played next: probabilities over the open actions, as a copy."""
        where = f"episode {state.episode + 1}"
        failed = f"failed in {where}"
        given = _held(self._name, failed, lambda: self._learner.policy(state))
        try:
            checked: Array = _held(
                self._name, failed, lambda: checked_policy("its policy", given, self._opened)
            )
            return checked
        except LearnerError:
            raise
        except InputError as error:
            raise LearnerError(f"{self._name} broke the contract in {where}: {error}") from None

    def observe(self, state: Any, episode: Episode) -> Any:
        """Return the state after one more episode."""
        done = state.episode + 1
        where = f"failed in episode {done}"
        following = _held(self._name, where, lambda: self._learner.observe(state, episode))
        if following is state:
            raise LearnerError(
                f"{self._name} broke the contract after episode {done}: "
                "observe gave the old state back, not a new one"
            )
        return self._state(following, done)

    def restored(self, state: Any) -> Any:
        """Return the state to go on from: the learner's own, or one that a checkpoint held."""
        if isinstance(state, StoredState):
            state = unpacked(self._name, self.init(), vars(state))
        return self._state(state, getattr(state, "episode", 0))

    def _state(self, state: Any, episode: int) -> Any:
        after = f"after episode {episode}" if episode else "before the first episode"
        complaint = _held(
            self._name,
            f"failed {after}",
            lambda: _complaint(state, episode, self._constraints),
        )
        if complaint:
            raise LearnerError(f"{self._name} broke the contract {after}: {complaint}")
        return state


def checked_learner(row: Custom, task: Task) -> Checked:
    """Return the learner of a row, made for a task."""
    return Checked(row.name, _held(row.name, "cannot be made", lambda: row.make(task)), task)


def _held(name: str, what: str, call: Callable[[], Any]) -> Any:
    """Return the result of somebody else's code. Turn its exceptions into one sentence."""
    try:
        return call()
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        raise LearnerError(f"{name} {what}: {plugins.reason(error)}{_place(error)}") from error


def _place(error: BaseException) -> str:
    """Return the place of an exception in somebody else's code: the first line that is not ours."""
    frames = extract_tb(error.__traceback__)
    theirs = [each for each in frames if not Path(each.filename).is_relative_to(_PACKAGE)]
    return f" ({Path(theirs[0].filename).name}, line {theirs[0].lineno})" if theirs else ""


def _complaint(state: Any, episode: int, constraints: int) -> str:
    """Return the fault of a state; empty if there is none."""
    missing = [each for each in ("episode", "multiplier") if not hasattr(state, each)]
    if missing:
        return f"its state has no field {missing[0]}"
    if not is_whole(state.episode) or state.episode != episode:
        return f"state.episode is {state.episode!r}, not the number of episodes done, {episode}"
    try:
        multiplier = np.asarray(state.multiplier, np.float64)
    except (TypeError, ValueError):
        return "state.multiplier holds no numbers"
    if multiplier.shape != (constraints,) or not np.all(np.isfinite(multiplier)):
        return f"state.multiplier must be [N], {constraints} finite numbers"
    return "" if np.all(multiplier >= 0.0) else "state.multiplier has an entry below zero"


def packed(name: str, state: Any) -> dict[str, npt.NDArray[Any]]:
    """Return a state as named arrays. It is a NamedTuple or a dataclass of arrays and numbers."""
    arrays = {}
    for each, value in _items(name, state).items():
        # A subclass, such as a masked array, would come back as an array and mean something else.
        plain = type(value) is np.ndarray or isinstance(value, bool | int | float | np.generic)
        array = np.asarray(value) if plain else np.array(None)
        if array.dtype.kind not in "biuf":
            kind = f"{value.dtype} array" if type(value) is np.ndarray else type(value).__name__
            raise LearnerError(
                f"{name} cannot be stored: state.{each} is a {kind}, not an array or a number"
            )
        arrays[each] = array
    return arrays


def unpacked(name: str, first: Any, stored: Mapping[str, Any]) -> Any:
    """Return the state of stored arrays and numbers, in the type of the learner's first state."""
    like = _items(name, first)
    if like.keys() != stored.keys():
        odd = min(like.keys() ^ stored.keys())
        where = "stored" if odd in stored else "present"
        raise LearnerError(f"{name} has changed: only its {where} state has a field {odd!r}")
    values = {each: _like(like[each], stored[each]) for each in like}
    return _held(name, "cannot make its state again", lambda: type(first)(**values))


def _like(first: Any, stored: Any) -> Any:
    """Return a stored number or array in its first type: NumPy's numbers and Python's are apart."""
    if isinstance(first, np.ndarray) or np.ndim(stored):
        return np.array(stored)
    return np.asarray(stored)[()] if isinstance(first, np.generic) else np.asarray(stored).item()


def _items(name: str, state: Any) -> dict[str, Any]:
    if isinstance(state, tuple) and hasattr(state, "_asdict"):
        return dict(state._asdict())
    if is_dataclass(state) and not isinstance(state, type):
        return {each.name: getattr(state, each.name) for each in fields(state)}
    raise LearnerError(
        f"{name} cannot be stored: its state is a {type(state).__name__}, "
        "not a NamedTuple or a dataclass of arrays and numbers"
    )
