"""Spaces of an environment as numbers, and discretisation of Box spaces into cells.

The learner treats a cell as one state. Cells hide a part of the state, so that the environment is
no longer Markov. A finer grid needs more episodes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.checks import whole_number
from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.labels import Labels
from cmdplab.errors import InputError
from cmdplab.live.codes import Cells, Code, Levels, Several, Whole, names
from cmdplab.types import Array

Each = int | Sequence[int]  # one for all dimensions, or one for each
WarmUp = Callable[[Code, int], list[Any]]  # (actions, episodes) -> observations
LARGEST = 10_000_000  # states or actions
FEW = 10  # mean tries of a pair below which a note warns


@dataclass(frozen=True)
class Grid:
    """Cells of equal width between `low` and `high`. The outer cells extend beyond them.

    bins : cells of each dimension. low, high : bounds that replace those of the space, or that it
    lacks. actions : points of each dimension of a Box of actions, its ends included.
    """

    bins: Each = 10
    low: npt.ArrayLike | None = None
    high: npt.ArrayLike | None = None
    actions: Each | None = None
    episodes: ClassVar[int] = 0  # length of the warm-up

    def code(self, what: str, space: Any, seen: Array) -> Several:
        """Return the code of a Box. what : its name, for errors. `seen` is not used."""
        low, high = _bounds(what, space, self.low, self.high)
        for d, (a, b) in enumerate(zip(low, high, strict=True)):
            if not (np.isfinite([a, b]).all() and a < b):
                raise InputError(
                    f"dimension {d} of the {what} lies in [{a:g}, {b:g}]: give Grid(low=, high=) "
                    "finite numbers, or take Quantiles"
                )
        bins = _per_dimension("bins", self.bins, len(low), 1)
        edges = [np.linspace(a, b, n + 1)[1:-1] for a, b, n in zip(low, high, bins, strict=True)]
        return _cells(edges, low, high, np.shape(space.low))


@dataclass(frozen=True)
class Quantiles:
    """Cells with equal shares of the observations of a warm-up with random actions.

    bins : cells of each dimension, fewer if values repeat. episodes : of the warm-up before the
    learning, from which the learner learns nothing. actions : as in `Grid`.
    """

    bins: Each = 10
    episodes: int = 100
    actions: Each | None = None

    def code(self, what: str, space: Any, seen: Array) -> Several:
        """Return the code of a Box. what : its name. seen : values [n, dimensions] of a warm-up."""
        bins = _per_dimension("bins", self.bins, seen.shape[1], 1)
        edges = []
        for column, n in zip(seen.T, bins, strict=True):
            inner = np.quantile(column, np.arange(1, n) / n) if n > 1 else np.zeros(0)
            edges.append(np.unique(inner))
        return _cells(edges, seen.min(axis=0), seen.max(axis=0), np.shape(space.low))


Discretiser = Grid | Quantiles


class Spaces(NamedTuple):
    """Codes of an environment's states and actions. The learner counts both from zero."""

    observed: Code
    chosen: Code

    @property
    def states(self) -> int:
        """Number of states, X."""
        return self.observed.size

    @property
    def actions(self) -> int:
        """Number of actions, A."""
        return self.chosen.size

    @property
    def first_state(self) -> int:
        """Environment's number of the learner's state 0, or 0 if it has none."""
        return self.observed.start if isinstance(self.observed, Whole) else 0

    @property
    def first_action(self) -> int:
        """Environment's number of the learner's action 0, or 0 if it has none."""
        return self.chosen.start if isinstance(self.chosen, Whole) else 0

    @property
    def cells(self) -> bool:
        """True if a part of the states is a Box."""
        return _has_cells(self.observed)

    @classmethod
    def of(
        cls, env: Any, discretise: Discretiser | None = None, warm_up: WarmUp | None = None
    ) -> Spaces:
        """Return the spaces of an environment. warm_up : returns observations for `Quantiles`."""
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
        """Return the learner's number of an observation."""
        try:
            return self.observed.number(observation)
        except InputError as error:
            raise InputError(f"the environment shows no state of its space: {error}") from None

    def observation(self, state: int) -> Any:
        """Return the environment's value of a state. A cell has its middle as value."""
        return self.observed.value(state)

    def action(self, number: int) -> Any:
        """Return the environment's value of the action of this number."""
        return self.chosen.value(number)

    @property
    def labels(self) -> Labels:
        """Names of states and actions, empty if they are the numbers from 0."""
        return Labels(names(self.observed), names(self.chosen))

    def sparse(self, episodes: int, horizon: int) -> str:
        """Return a sentence if the episodes are few for the number of pairs, else ""."""
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
    """Return the code of a Tuple or Dict. seen : whole observations of a warm-up, or None."""
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
        return _levels(space, discretise.actions)
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


def _levels(space: Any, actions: Each) -> Several:
    """Return the code of a Box of actions: equally spaced points, its ends included."""
    low, high = _bounds("action space", space, None, None)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise InputError("the action space has no bounds: its points cannot be chosen")
    counts = _per_dimension("actions", actions, len(low), 2)
    parts = []
    for a, b, n in zip(low, high, counts, strict=True):
        points = np.linspace(a, b, n)
        middles = (points[1:] + points[:-1]) / 2.0
        parts.append(Levels(tuple(middles.tolist()), tuple(points.tolist())))
    return Several(tuple(parts), "array", (), tuple(np.shape(space.low)))


def _bounds(
    what: str, space: Any, low: npt.ArrayLike | None, high: npt.ArrayLike | None
) -> tuple[Array, Array]:
    size = int(np.size(space.low))
    found = []
    for name, given, own in (("low", low, space.low), ("high", high, space.high)):
        ends = np.ravel(floats(name, own if given is None else given))
        ends = np.repeat(ends, size) if ends.size == 1 else ends
        if ends.shape != (size,):
            raise InputError(f"{name} has {ends.size} numbers for {size} dimensions of the {what}")
        found.append(ends)
    return found[0], found[1]


def _per_dimension(what: str, given: Each, size: int, least: int) -> list[int]:
    """Return `size` whole numbers >= `least`, from one number for all or one for each."""
    listed = list(given) if isinstance(given, Sequence) else [given] * size
    if len(listed) != size:
        raise InputError(f"{what} has {len(listed)} numbers for {size} dimensions")
    return [whole_number(what, each, least=least) for each in listed]


def _cells(edges: list[Array], low: Array, high: Array, shape: tuple[int, ...]) -> Several:
    parts = []
    for inner, a, b in zip(edges, low, high, strict=True):
        ends = np.sort(np.concatenate([[a], inner, [b]]))
        points = (ends[1:] + ends[:-1]) / 2.0
        parts.append(Cells(tuple(inner.tolist()), tuple(points.tolist())))
    return Several(tuple(parts), "array", (), shape)
