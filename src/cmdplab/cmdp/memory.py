"""Memory of a policy: a counter beside the state, and exact values on the chain of both.

A policy that never exceeds a budget must know the cost so far. A policy with a counter of K levels
plays pi_h(a | k, x). The policy itself updates the level k of its counter:

    k_{h+1} = clip(k_h + step_h(x_h, a_h), 0, K - 1)

Several counters form one memory, whose level is the number of the combination of their levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from cmdplab.checks import LONGEST, whole_number
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.types import Array, Indices, frozen

State = TypeVar("State", int, str)  # a number or a name, as the resulting action


@frozen
@dataclass(frozen=True, eq=False)
class Counter:
    """Integer that follows an episode: k' = clip(k + step[h, x, a], 0, levels - 1).

    step : [H, X, A] or [X, A], whole numbers: the increments of the pairs. levels : K >= 1, the
    number of values of the counter. start : the value before the first step. limit : a sum above it
    becomes the last level, which is never left again, even by negative steps. None: no limit. sums
    : [K], ascending: the sum that each level represents, if only few sums can occur. A sum between
    two of them counts as the higher one. None: level k represents k.
    """

    step: Indices
    levels: int
    start: int = 0
    limit: int | None = None
    sums: Indices | None = None

    def __post_init__(self) -> None:
        given = np.asarray(self.step)
        if given.dtype.kind not in "iu" or given.ndim not in (2, 3) or not given.size:
            raise InputError(
                "the steps of a counter must be whole numbers [H, X, A] or [X, A], "
                f"not {given.dtype} of {given.shape}"
            )
        step = np.array(given, dtype=np.int64)
        levels = whole_number("the number of levels of a counter", self.levels, 1)
        if levels > LONGEST:
            raise InputError(f"a counter of {levels} levels is too large")
        start = whole_number("the start of a counter", self.start)
        sums = None if self.sums is None else _checked_sums(self.sums, levels)
        highest = levels - 1 if sums is None else int(sums[-1])
        if self.limit is not None and not self.limit < highest:
            raise InputError(f"a counter up to {highest} cannot have the limit {self.limit}")
        if start >= levels:
            raise InputError(f"a counter of {levels} levels cannot start at {start}")
        for field, value in (("step", step), ("levels", levels), ("start", start), ("sums", sums)):
            object.__setattr__(self, field, value)

    @property
    def every_sum(self) -> Indices:
        """Sum that each level represents, [K]."""
        return np.arange(self.levels) if self.sums is None else self.sums

    def at(self, h: int) -> Indices:
        """Return the increments of all pairs at step h: [X, A]."""
        return self.step if self.step.ndim == 2 else np.asarray(self.step[h])

    def moved(self, level: npt.ArrayLike, step: npt.ArrayLike) -> Indices:
        """Return the levels after increments: clip(level + step, 0, K - 1), or the last level.

        A sum above the limit becomes the last level. Both arguments are broadcast to one shape.
        """
        level, last = np.asarray(level), self.levels - 1
        if self.sums is None:
            total = level + np.asarray(step)
            after = np.clip(total, 0, last)
        else:
            total = self.sums[level] + np.asarray(step)
            after = np.minimum(np.searchsorted(self.sums, total), last)
        if self.limit is not None:
            after = np.where((level == last) | (total > self.limit), last, after)
        return np.asarray(after)

    def after(self, k: int, h: int, x: int, a: int) -> int:
        """Return the level after the pair (x, a) at step h and level k."""
        return int(self.moved(k, self.at(h)[x, a]))

    def next_levels(self, h: int) -> Indices:
        """Return the next level for each level and pair at step h: [K, X, A]."""
        return self.moved(np.arange(self.levels)[:, None, None], self.at(h))


def _checked_sums(given: npt.ArrayLike, levels: int) -> Indices:
    sums = np.asarray(given)
    if sums.dtype.kind not in "iu" or sums.shape != (levels,) or (sums[1:] <= sums[:-1]).any():
        raise InputError(f"the sums of a counter must be {levels} ascending whole numbers")
    return sums.astype(np.int64)


@frozen
@dataclass(frozen=True, eq=False)
class Counters:
    """Several counters as one: a level is the number of a combination of the parts' levels.

    The level of the last part changes fastest.
    """

    parts: tuple[Counter, ...]

    def __post_init__(self) -> None:
        shapes = {each.step.shape for each in self.parts}
        if len(shapes) > 1:
            raise InputError(f"the counters have steps of different shapes: {sorted(shapes)}")

    @property
    def step(self) -> Indices:
        """Increments of every part, [parts, H, X, A] or [parts, X, A]."""
        return np.stack([each.step for each in self.parts])

    @property
    def levels(self) -> int:
        """Number of combinations of levels."""
        return prod(each.levels for each in self.parts)

    @property
    def start(self) -> int:
        """Number of the combination before the first step."""
        return int(self.joined([each.start for each in self.parts]))

    def joined(self, levels: Sequence[npt.ArrayLike]) -> Indices:
        """Return the number of each combination, from one array of levels for each part."""
        number = np.zeros((), dtype=np.int64)
        for part, level in zip(self.parts, levels, strict=True):
            number = number * part.levels + np.asarray(level)
        return np.asarray(number)

    def split(self, number: npt.ArrayLike) -> list[Indices]:
        """Return the levels of each part, from the numbers of combinations."""
        left, found = np.asarray(number), []
        for part in reversed(self.parts):
            left, level = np.divmod(left, part.levels)
            found.append(level)
        return found[::-1]

    def after(self, k: int, h: int, x: int, a: int) -> int:
        """Return the level after the pair (x, a) at step h and level k."""
        return int(self.joined([part.after(int(at), h, x, a) for part, at in self._each(k)]))

    def next_levels(self, h: int) -> Indices:
        """Return the next level for each level and pair at step h: [K, X, A]."""
        k = np.arange(self.levels)[:, None, None]
        return self.joined([part.moved(level, part.at(h)) for part, level in self._each(k)])

    def from_states(self, h: int, x: Indices, k: Indices) -> Indices:
        """Return the levels [n, A] after each action at step h, from states x and levels k [n]."""
        each = self._each(k[:, None])
        return self.joined([part.moved(level, part.at(h)[x]) for part, level in each])

    def _each(self, k: npt.ArrayLike) -> zip[tuple[Counter, Indices]]:
        return zip(self.parts, self.split(k), strict=True)


Memory = Counter | Counters


def counted_occupancy(problem: CMDP, policy: Array, counter: Memory) -> Array:
    """Return w_h(k, x, a) = P(k_h = k, x_h = x, a_h = a), [H, K, X, A], of a policy [H, K, X, A].

    A pair sends its mass to its next level of the counter and, by the kernel, to next states.
    """
    pairs = np.empty((problem.horizon, counter.levels, problem.states, problem.actions))
    here = np.zeros((counter.levels, problem.states))
    here[counter.start, problem.start] = 1.0
    for h in range(problem.horizon):
        pairs[h] = here[..., None] * policy[h]
        arrived = mass_by_next_level(pairs[h], counter.next_levels(h))
        here = np.stack([problem.kernel.forward(h, each) for each in arrived])
    return pairs


def mass_by_next_level(pairs: Array, following: Indices) -> Array:
    """Return the mass of pairs moved to their next levels `following`, all [K, X, A]."""
    x, a = np.ogrid[: pairs.shape[1], : pairs.shape[2]]
    arrived: Array = np.zeros_like(pairs)
    for level, mass in zip(following, pairs, strict=True):
        arrived[level, x, a] += mass  # a level sends each pair to one level: no index repeats
    return arrived


def counted_action_values(problem: CMDP, policy: Array, counter: Memory, reward: Array) -> Array:
    """Return Q_h(k, x, a), [H, K, X, A], of a policy [H, K, X, A] for a reward [H, X, A]."""
    q = np.empty((problem.horizon, counter.levels, problem.states, problem.actions))
    value = np.zeros((counter.levels, problem.states))
    x, a = np.ogrid[: problem.states, : problem.actions]
    for h in reversed(range(problem.horizon)):
        ahead = np.stack([problem.kernel.ahead(h, each) for each in value])
        q[h] = reward[h] + ahead[counter.next_levels(h), x, a]
        value = np.sum(policy[h] * q[h], axis=-1)
    return q


def spent(problem: CMDP, policy: Array, counter: Memory) -> Array:
    """Return the probability of each level after the last step, [K]. policy : [H, K, X, A]."""
    last = counted_occupancy(problem, policy, counter)[-1]
    return np.asarray(
        mass_by_next_level(last, counter.next_levels(problem.horizon - 1)).sum(axis=(1, 2))
    )


def level_of(counter: Memory, given: npt.ArrayLike | None) -> int:
    """Return the level `given` after a check, or the start level for None."""
    if given is None:
        return counter.start
    level = whole_number("the counter", given)
    if level >= counter.levels:
        raise InputError(f"the counter is {level}, but its levels are 0..{counter.levels - 1}")
    return level


def drawn(row: Array, uniform: float) -> int:
    """Return the action that a uniform number draws from probabilities [A], by inverse CDF.

    It is the action a with F(a - 1) <= uniform < F(a), where F is the cumulative distribution. Its
    probability is positive.
    """
    possible = np.flatnonzero(row)
    found = int(np.searchsorted(np.cumsum(row[possible]), uniform, side="right"))
    return int(possible[min(found, len(possible) - 1)])  # the sums may end below 1 by a rounding


class Actor:
    """Player of a policy: called with a state, it returns an action and goes on to the next step.

    The seed determines every draw. `reset` begins the next episode.
    """

    def __init__(self, policy: Any, seed: int = 0) -> None:
        self.policy = policy
        self.rng = np.random.default_rng(whole_number("seed", seed))
        self.step = 0
        self.count: int | None = None
        self.reset()

    def reset(self) -> None:
        """Begin the next episode. The random numbers continue."""
        self.step = 0
        self.count = None if self.policy.counter is None else self.policy.counter.start

    def __call__(self, state: State) -> State:
        """Return the action of one step: a number for a state's number, a name for its name."""
        policy, h = self.policy, self.step
        if policy.horizon and h >= policy.horizon:
            raise InputError(f"the episode is over after {h} steps: reset() begins the next one")
        action: State = policy.act(state, self.rng, h, self.count)
        if policy.counter is not None and self.count is not None:
            x = policy.labels.find_state(state, policy.states)
            a = policy.labels.find_action(action, policy.actions)
            self.count = policy.counter.after(self.count, h, x, a)
        self.step += 1
        return action
