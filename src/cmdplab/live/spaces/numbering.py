"""The two spaces of an environment as numbers: which kinds are known, and what is refused."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cmdplab.cmdp.labels import Labels
from cmdplab.errors import InputError
from cmdplab.live.spaces.codecs import Cells, Code, Several, Whole, names
from cmdplab.live.spaces.discretise import Discretiser, Grid, Quantiles, levels
from cmdplab.types import Array

WarmUp = Callable[[Code, int], list[Any]]  # (actions, episodes) -> observations
LARGEST = 10_000_000  # states or actions
FEW = 10  # tries of a pair, on average, below which learning it is said to be hopeless


class Spaces(NamedTuple):
    """An environment's states and actions; a learner counts both from zero."""

    observed: Code
    chosen: Code

    @property
    def states(self) -> int:
        """X."""
        return self.observed.size

    @property
    def actions(self) -> int:
        """A."""
        return self.chosen.size

    @property
    def first_state(self) -> int:
        """The environment's number of the learner's state 0; 0 where it has none."""
        return self.observed.start if isinstance(self.observed, Whole) else 0

    @property
    def first_action(self) -> int:
        """The environment's number of the learner's action 0; 0 where it has none."""
        return self.chosen.start if isinstance(self.chosen, Whole) else 0

    @property
    def cells(self) -> bool:
        """Return True if a part of the states is a Box."""
        return _has_cells(self.observed)

    @classmethod
    def of(
        cls, env: Any, discretise: Discretiser | None = None, warm_up: WarmUp | None = None
    ) -> Spaces:
        """The spaces of an environment; a warm-up is played only if the cells need one."""
        if discretise is not None and not isinstance(discretise, Grid | Quantiles):
            raise InputError(f"discretise is {discretise!r}, not cmdplab.live.Grid or Quantiles")
        chosen = _code("action space", env.action_space, discretise, None)
        _check_size("actions", chosen)
        episodes = 0 if discretise is None else discretise.episodes
        seen = warm_up(chosen, episodes) if warm_up is not None and episodes else None
        observed = _code("observation space", env.observation_space, discretise, seen)
        _check_size("states", observed)
        return cls(observed, chosen)

    def state(self, observation: Any) -> int:
        """The learner's number of an observed state."""
        try:
            return self.observed.number(observation)
        except InputError as error:
            raise InputError(f"the environment shows no state of its space: {error}") from None

    def observation(self, state: int) -> Any:
        """What the environment calls a state; of a cell, its middle."""
        return self.observed.value(state)

    def action(self, number: int) -> Any:
        """What the environment calls an action."""
        return self.chosen.value(number)

    @property
    def labels(self) -> Labels:
        """Names of states and actions where plain numbers from 0 do not say it all."""
        return Labels(names(self.observed), names(self.chosen))

    def sparse(self, episodes: int, horizon: int) -> str:
        """A sentence where the pairs are too many for the episodes; else empty."""
        pairs = self.states * self.actions
        if pairs * FEW <= episodes * horizon:
            return ""
        return (
            f"{self.states:,} states x {self.actions:,} actions are {pairs:,} pairs, and "
            f"{episodes:,} episodes have at most {episodes * horizon:,} steps: most pairs will be "
            "tried a few times or never; take more episodes, or coarser cells."
        )


def _has_cells(code: Code) -> bool:
    if isinstance(code, Several):
        return any(map(_has_cells, code.parts))
    return isinstance(code, Cells)


def _code(what: str, space: Any, discretise: Discretiser | None, seen: Any) -> Code:
    """The code of a space, known by its attributes."""
    if hasattr(space, "spaces"):
        return _parts(what, space, discretise, seen)
    if hasattr(space, "nvec"):
        sizes = np.asarray(space.nvec)
        starts = np.broadcast_to(np.asarray(getattr(space, "start", 0)), sizes.shape)
        pairs = zip(sizes.ravel().tolist(), starts.ravel().tolist(), strict=True)
        return Several(tuple(Whole(n, first) for n, first in pairs), "array", (), sizes.shape)
    if hasattr(space, "low") and hasattr(space, "high"):
        return _box(what, space, discretise, seen)
    if hasattr(space, "n") and hasattr(space, "start"):
        try:
            return Whole(operator.index(space.n), operator.index(space.start))
        except TypeError:
            raise InputError(f"the {what} is {space}, whose numbers are not whole") from None
    if hasattr(space, "n") and hasattr(space, "shape"):
        shape = tuple(space.shape)
        return Several((Whole(2),) * int(np.prod(shape)), "bits", (), shape)
    raise InputError(
        f"the {what} is {space}: Discrete, MultiDiscrete, MultiBinary, Box, Tuple and Dict "
        "of those can be learned"
    )


def _parts(what: str, space: Any, discretise: Discretiser | None, seen: Any) -> Several:
    """Tuple and Dict, part by part; a warm-up has seen whole observations."""
    inner = space.spaces
    keys = tuple(map(str, inner)) if hasattr(inner, "keys") else ()
    each = list(inner.values()) if hasattr(inner, "values") else list(inner)
    places = list(inner) if keys else list(range(len(each)))
    parts = []
    for place, part in zip(places, each, strict=True):
        shown = None if seen is None else [one[place] for one in seen]
        parts.append(_code(f"part {place} of the {what}", part, discretise, shown))
    return Several(tuple(parts), "dict" if keys else "tuple", keys)


def _box(what: str, space: Any, discretise: Discretiser | None, seen: Any) -> Several:
    if discretise is None:
        raise InputError(
            f"the {what} is {space}, and only what is counted can be learned: pass discretise=, "
            "for instance cmdplab.live.Grid(bins=6) or Quantiles(bins=6)"
        )
    if "action" in what:
        if discretise.actions is None:
            kind = type(discretise).__name__
            raise InputError(f"the {what} is {space}: say in how many points, {kind}(actions=5)")
        return levels(space, discretise.actions)
    values: Array = np.zeros((0, int(np.size(space.low))))
    if discretise.episodes and seen:
        values = np.array([np.ravel(each) for each in seen], dtype=np.float64)
    return discretise.code(what, space, values)


def _check_size(what: str, code: Code) -> None:
    if code.size > LARGEST:
        more = ": take fewer bins" if what == "states" else ""
        raise InputError(
            f"the environment has more than {LARGEST:,} {what}, too many to learn{more}"
        )
