"""The record of an environment: how to make it, where it comes from, its certified values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from cmdplab import plugins
from cmdplab.checks import LONGEST, whole_number
from cmdplab.cmdp.labels import Labels, Scale as Scale, Scales
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.types import Array, Mask


class Certified(NamedTuple):
    """Certified numbers of one instance in our units, to eight digits, as `solve` returns them."""

    optimum: float  # V*
    multipliers: tuple[float, ...]  # [N]
    slater_gap: float  # max over policies of the smallest slack
    unconstrained: float  # max of V[r^0] over all policies


class Published(NamedTuple):
    """Certified numbers in the units of the source."""

    optimum: float
    multipliers: tuple[float, ...]  # |factor_0 / factor_n| times ours
    unconstrained: float


class Environment(NamedTuple):
    """Function that makes problems, with their source, units and certified values."""

    make: Callable[[int], CMDP]  # from an instance seed
    random: bool  # True if the instance seed matters
    summary: str
    source: str
    version: int = 0  # goes up when results on it would change
    units: tuple[Scale, ...] = ()  # one per reward; () where nothing was converted
    certified: Certified | None = None  # None if each seed makes another problem
    tail: float | None = None  # a bound on rewards after the end of a cut horizon, published units
    unverified: str = ""  # the numbers that no source confirms

    @property
    def sense(self) -> str:
        """Return "costs" if the source constrains costs, else "utilities"."""
        return "costs" if any(unit.cost for unit in self.units[1:]) else "utilities"

    def published(self) -> Published | None:
        """Return the certified numbers in the units of the source; None if there are none."""
        if self.certified is None:
            return None
        optimum, multipliers, _, unconstrained = self.certified
        units = Scales(self.units or (Scale("as here"),) * (1 + len(multipliers)))
        values = units[0].published(optimum), units[0].published(unconstrained)
        return Published(values[0], tuple(units.multipliers(multipliers)), values[1])


def row(
    function: str,
    summary: str,
    source: str,
    units: tuple[Scale, ...] = (),
    certified: Certified | None = None,
    given: tuple[Any, ...] = (),
    version: int = 0,
    tail: float | None = None,
    unverified: str = "",
) -> Environment:
    """Return an environment of a function of this subpackage, named as "module.function".

    Without certified values the environment is random, and the function takes the instance seed.
    `given` are other arguments of the function. Its module is imported when a problem is made. The
    remaining arguments are fields of `Environment`.
    """
    module, _, name = function.partition(".")

    def make(seed: int) -> CMDP:
        found = getattr(import_module(f"{__package__}.{module}"), name)
        problem: CMDP = found(*given, seed=seed) if certified is None else found(*given)
        return problem

    known = (units, certified, tail, unverified)
    return Environment(make, certified is None, summary, source, version, *known)


def stationary_costs(
    kernel: Array,
    objective: Array,
    cost: Array,
    budget: float,
    horizon: int,
    start: int,
    name: str,
    mask: Mask | None = None,
    labels: Labels | None = None,
) -> CMDP:
    """Make a problem with one budget whose objective and cost [X, A] are the same at each step.

    kernel : [X, A, X]. start : the first state. mask : [X, A], True for open actions.
    labels : names of states and actions; None: numbers.
    """
    rewards, costs = np.tile(objective, (horizon, 1, 1)), np.tile(cost, (1, horizon, 1, 1))
    problem = CMDP.from_costs(kernel, rewards, costs, [budget], start, name, mask)
    return problem if labels is None else problem.changed(labels=labels)


def checked_sizes(**sizes: int) -> None:
    """Refuse a size below 1."""
    for what, size in sizes.items():
        if whole_number(what, size, 1) > LONGEST:
            raise InputError(f"{what} is {size}, which is too large")


def registered(name: str) -> Environment | None:
    """Return the environment that an installed package registers under this name, or None.

    The package's module is imported. It must provide an `Environment`, or a function that makes a
    `CMDP` from an instance seed or from nothing.
    """
    found = plugins.plugin(plugins.ENVIRONMENTS, name)
    if found is None:
        return None
    whose = f"{found.name} of {found.package}"
    given = plugins.follow(found.path, whose)
    if isinstance(given, Environment):
        return given._replace(make=_made_by(whose, given.make))
    if not callable(given):
        raise InputError(f"{whose} is no environment: {found.path} makes no problem")
    random = bool(inspect.signature(given).parameters)
    make = _made_by(whose, given if random else lambda seed: given())
    return Environment(make, random, "from outside cmdplab", f"from outside: {found.package}")


def _made_by(whose: str, make: Callable[[int], Any]) -> Callable[[int], CMDP]:
    """Return a function that calls `make` and raises an InputError unless it makes a CMDP."""

    def made(seed: int) -> CMDP:
        try:
            problem = make(seed)
        except InputError:
            raise
        except (Exception, SystemExit) as error:
            raise InputError(f"{whose} cannot be made: {plugins.reason(error)}") from error
        if not isinstance(problem, CMDP):
            raise InputError(f"{whose} made a {type(problem).__name__}, not a CMDP")
        return problem

    return made
