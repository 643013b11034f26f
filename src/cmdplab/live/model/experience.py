"""Transitions that were seen, pooled over the steps: memory by what was visited, not by sizes.

    n(x, a, y),   the sums of each signal over those transitions, and of their squares

Learners keep counts of their own, by step or by none, and some keep none; these are the same for
every algorithm, and are what a plan is made on. Where the last of H steps led is not counted: many
environments end there because the time is over, which says nothing about the pair.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.types import Array, Indices, Mask

WAITING = 65_536  # steps that wait before they are counted together


class Entries(NamedTuple):
    """The transitions that occurred, each (x, a, y) once, in rising order."""

    state: Indices  # [E]
    action: Indices  # [E]
    following: Indices  # [E], X after the end of an episode, X + 1 where the last step led
    times: Array  # [E]
    sums: Array  # [1 + N, E], of the signals, in the user's units
    squares: Array  # [1 + N, E]

    def kept(self, where: Mask) -> Entries:
        """Some of them."""
        pairs = (self.state[where], self.action[where], self.following[where])
        return Entries(*pairs, self.times[where], self.sums[:, where], self.squares[:, where])


class Experience:
    """Counts of X states and A actions; X follows the end of an episode, X + 1 the last step."""

    def __init__(self, states: int, actions: int, signals: int) -> None:
        self.states, self.actions = states, actions
        self._key: Indices = np.zeros(0, dtype=np.int64)  # (x A + a) (X + 2) + y
        self._count: Array = np.zeros(0)
        self._sums = np.zeros((2, signals, 0))  # of the signals and of their squares
        self._began: Indices = np.zeros(0, dtype=np.int64)  # states in which episodes began
        self._starts: Array = np.zeros(0)  # how many did
        self._waiting: list[tuple[Indices, Array]] = []  # keys and signals of some episodes
        self._first: list[int] = []
        self._steps = 0  # that wait

    def add(self, states: Indices, actions: Indices, following: int | None, signals: Array) -> None:
        """One episode of T steps: states [T], actions [T], where the last led, [1 + N, T].

        following : None where T is the horizon.
        """
        after = np.append(states[1:], self.states + 1 if following is None else following)
        key = (states * self.actions + actions) * (self.states + 2) + after
        self._waiting.append((key, signals))
        self._first.append(int(states[0]))
        self._steps += len(states)
        if self._steps >= WAITING:
            self._settle()

    def _settle(self) -> None:
        """Count what waits."""
        if not self._first:
            return
        keys, signals = zip(*self._waiting, strict=True)
        values = np.concatenate(signals, axis=1)
        self._merge(np.concatenate(keys), np.ones(self._steps), np.stack([values, values**2]))
        self._begin(np.array(self._first, dtype=np.int64), np.ones(len(self._first)))
        self._waiting, self._first, self._steps = [], [], 0

    def _merge(self, key: Indices, count: Array, sums: Array) -> None:
        """Add transitions [E], which may occur several times."""
        every = np.concatenate([self._key, key])
        self._key, place = np.unique(every, return_inverse=True)
        size = len(self._key)
        self._count = _totals(place, np.concatenate([self._count, count]), size)
        together = np.concatenate([self._sums, sums], axis=-1)
        self._sums = np.stack([[_totals(place, each, size) for each in row] for row in together])

    def _begin(self, states: Indices, count: Array) -> None:
        every = np.concatenate([self._began, states])
        self._began, place = np.unique(every, return_inverse=True)
        self._starts = _totals(place, np.concatenate([self._starts, count]), len(self._began))

    def include(self, other: Experience) -> None:
        """Add all that another one holds."""
        other._settle()
        self._settle()
        self._merge(other._key, other._count, other._sums)
        self._begin(other._began, other._starts)

    @property
    def episodes(self) -> int:
        """How many episodes were seen."""
        self._settle()
        return int(self._starts.sum())

    def entries(self) -> Entries:
        """All transitions so far."""
        self._settle()
        pair, y = np.divmod(self._key, self.states + 2)
        x, a = np.divmod(pair, self.actions)
        return Entries(x, a, y, self._count.copy(), *self._sums.copy())

    def moves(self) -> Entries:
        """Those that say where they led."""
        found = self.entries()
        return found.kept(found.following <= self.states)

    def visits(self) -> Array:
        """[X, A]: how often each pair was tried."""
        return self.number(self.entries())

    def number(self, found: Entries) -> Array:
        """[X, A]: how many of some transitions begin with each pair."""
        visits = np.zeros((self.states, self.actions))
        np.add.at(visits, (found.state, found.action), found.times)
        return visits

    def starts(self) -> tuple[Indices, Array]:
        """The states in which episodes began, and how many did."""
        self._settle()
        return self._began.copy(), self._starts.copy()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as arrays with names."""
        self._settle()
        return {
            "key": self._key,
            "count": self._count,
            "sums": self._sums,
            "began": self._began,
            "starts": self._starts,
        }

    @classmethod
    def of_arrays(
        cls, states: int, actions: int, arrays: dict[str, npt.NDArray[Any]]
    ) -> Experience:
        """Go on from what `arrays` gave."""
        made = cls(states, actions, arrays["sums"].shape[1])
        made._key, made._began = (arrays[each].astype(np.int64) for each in ("key", "began"))
        made._count, made._sums, made._starts = (
            arrays[each].astype(np.float64) for each in ("count", "sums", "starts")
        )
        return made


class Visits:
    """How often each (step, state, action) was played: memory by what occurred."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.shape = shape  # [H, X, A]
        self._place: Indices = np.zeros(0, dtype=np.int64)
        self._times: Array = np.zeros(0)
        self._waiting: list[Indices] = []
        self._steps = 0  # that wait

    def add(self, states: Indices, actions: Indices) -> None:
        """One episode from step 0 on: states [T], actions [T]."""
        _, X, A = self.shape
        self._waiting.append((np.arange(len(states)) * X + states) * A + actions)
        self._steps += len(states)
        if self._steps >= WAITING:
            self._settle()

    def _settle(self) -> None:
        place = np.concatenate([self._place, *self._waiting])
        times = np.concatenate([self._times, np.ones(self._steps)])
        self._place, at = np.unique(place, return_inverse=True)
        self._times = _totals(at, times, len(self._place))
        self._waiting, self._steps = [], 0

    def table(self) -> Indices:
        """[H, X, A]."""
        self._settle()
        table = np.zeros(self.shape, dtype=np.int64)
        table.reshape(-1)[self._place] = self._times
        return table

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as arrays with names."""
        self._settle()
        return {"place": self._place, "times": self._times, "shape": np.array(self.shape)}

    @classmethod
    def of_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> Visits:
        """Go on from what `arrays` gave."""
        made = cls(tuple(arrays["shape"].tolist()))
        made._place = arrays["place"].astype(np.int64)
        made._times = arrays["times"].astype(np.float64)
        return made

    @classmethod
    def of_table(cls, table: Indices) -> Visits:
        """Go on from what `table` gave."""
        made = cls(table.shape)
        made._place = np.flatnonzero(table)
        made._times = table.reshape(-1)[made._place].astype(np.float64)
        return made


def _totals(place: Indices, weight: Array, size: int) -> Array:
    """[size]: the sums of the weights at each place."""
    return np.asarray(np.bincount(place, weight, size), dtype=np.float64)
