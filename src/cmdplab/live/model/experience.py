"""Counts of observed transitions. The memory grows with the pairs visited, not with the sizes.

    n(x, a, y),   the sums of each signal over these transitions, and of its squares

Here x is the state, a the action and y the next state. The counts are equal for every algorithm,
and plans use them. Learners may keep counts of their own. The successor of step H is not counted,
because many environments end there for lack of time, which does not depend on the pair.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.types import Array, Indices, Mask

WAITING = 65_536  # steps that wait before they are counted together
MOST = 1_000_000  # transitions with their steps


class Entries(NamedTuple):
    """Counted transitions, each (x, a, y) or (h, x, a, y) once, in rising order."""

    state: Indices  # [E]
    action: Indices  # [E]
    following: Indices  # [E], X after the end of an episode, X + 1 for an unknown state
    times: Array  # [E]
    sums: Array  # [1 + N, E], of the signals, in the user's units
    squares: Array  # [1 + N, E]
    step: Indices | None = None  # [E]; None if the steps are pooled

    def kept(self, where: Mask) -> Entries:
        """Return the transitions where the mask `where` [E] is True."""
        pairs = (self.state[where], self.action[where], self.following[where])
        step = None if self.step is None else self.step[where]
        return Entries(*pairs, self.times[where], self.sums[:, where], self.squares[:, where], step)


class Experience:
    """Counts of X states and A actions. y = X is the end, y = X + 1 an uncounted successor.

    horizon : 0 pools the steps. With H steps, each transition is counted with its step. Above
    `MOST` different transitions, further ones are counted without their successor.
    """

    def __init__(self, states: int, actions: int, signals: int, horizon: int = 0) -> None:
        self.states, self.actions, self.horizon = states, actions, horizon
        self._key: Indices = np.zeros(0, dtype=np.int64)  # ((h X + x) A + a) (X + 2) + y
        self._count: Array = np.zeros(0)
        self._sums = np.zeros((2, signals, 0))  # of the signals and of their squares
        self._began: Indices = np.zeros(0, dtype=np.int64)  # states in which episodes began
        self._starts: Array = np.zeros(0)  # number of episodes from each
        self._waiting: list[tuple[Indices, Array]] = []  # keys and signals of some episodes
        self._first: list[int] = []
        self._steps = 0  # number of steps that wait

    def add(self, states: Indices, actions: Indices, following: int | None, signals: Array) -> None:
        """Count one episode of T steps: states [T], actions [T], signals [1 + N, T].

        following : the state after the last step; None if T is the horizon.
        """
        after = np.append(states[1:], self.states + 1 if following is None else following)
        place = states
        if self.horizon:
            place = np.arange(len(states)) * self.states + states
            if len(self._key) > MOST:
                after = np.full_like(after, self.states + 1)
        key = (place * self.actions + actions) * (self.states + 2) + after
        self._waiting.append((key, signals))
        self._first.append(int(states[0]))
        self._steps += len(states)
        if self._steps >= max(WAITING, len(self._key) // 2):
            self._settle()

    def _settle(self) -> None:
        if not self._first:
            return
        keys, signals = zip(*self._waiting, strict=True)
        values = np.concatenate(signals, axis=1)
        self._key, place = np.unique(np.concatenate([self._key, *keys]), return_inverse=True)
        size = len(self._key)
        self._count = totals(place, np.append(self._count, np.ones(self._steps)), size)
        together = np.concatenate([self._sums, np.stack([values, values**2])], axis=-1)
        self._sums = np.stack([[totals(place, each, size) for each in row] for row in together])
        began = np.append(self._began, self._first).astype(np.int64)
        self._began, place = np.unique(began, return_inverse=True)
        self._starts = totals(place, np.append(self._starts, np.ones(len(self._first))))
        self._waiting, self._first, self._steps = [], [], 0

    @property
    def episodes(self) -> int:
        """Number of counted episodes."""
        self._settle()
        return int(self._starts.sum())

    def entries(self) -> Entries:
        """Return all counted transitions."""
        self._settle()
        pair, y = np.divmod(self._key, self.states + 2)
        place, a = np.divmod(pair, self.actions)
        counts = (self._count.copy(), *self._sums.copy())
        if not self.horizon:
            return Entries(place, a, y, *counts)
        h, x = np.divmod(place, self.states)
        return Entries(x, a, y, *counts)._replace(step=h)

    def moves(self) -> Entries:
        """Return the transitions whose successor was counted."""
        found = self.entries()
        return found.kept(found.following <= self.states)

    def visits(self) -> Array:
        """Return the number of tries of each pair, [X, A] or [H, X, A]."""
        return self.number(self.entries())

    def number(self, found: Entries) -> Array:
        """Return the number of these transitions from each pair, [X, A] or [H, X, A]."""
        visits = np.zeros((*((self.horizon,) if self.horizon else ()), self.states, self.actions))
        step = () if found.step is None else (found.step,)
        np.add.at(visits, (*step, found.state, found.action), found.times)
        return visits

    def starts(self) -> tuple[Indices, Array]:
        """Return the first states of episodes, and the number of episodes that began in each."""
        self._settle()
        return self._began.copy(), self._starts.copy()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all counts as arrays by name."""
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
        cls, states: int, actions: int, arrays: dict[str, npt.NDArray[Any]], horizon: int = 0
    ) -> Experience:
        """Return the experience that `arrays` wrote. horizon : as in the class."""
        made = cls(states, actions, arrays["sums"].shape[1], horizon)
        made._key, made._began = (arrays[each].astype(np.int64) for each in ("key", "began"))
        made._count, made._sums, made._starts = (
            arrays[each].astype(np.float64) for each in ("count", "sums", "starts")
        )
        return made


def totals(place: Indices, weight: Array, size: int = 0) -> Array:
    """Return the sum of weights at each place, [size]. size 0: up to the highest place."""
    return np.asarray(np.bincount(place, weight, size), dtype=np.float64)
