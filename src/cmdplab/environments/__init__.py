"""Environments by name. A new one is a function in a module here, and a row in rows.py."""

from __future__ import annotations

import re
from difflib import get_close_matches

from cmdplab import plugins
from cmdplab.checks import whole_number
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Environment, Published, Scale, registered
from cmdplab.environments.rows import ENVIRONMENTS
from cmdplab.errors import InputError

__all__ = [
    "ENVIRONMENTS",
    "Certified",
    "Environment",
    "Published",
    "Scale",
    "make",
    "named",
    "no_instances",
]


def named(name: str) -> Environment | None:
    """Return the environment of a name, or None; `cliff` and `Cliff-v0` name one environment.

    Another version than the present one is refused, because its results would not be comparable.
    Installed packages may register other names.
    """
    plain = name.lower()
    if plain in ENVIRONMENTS:
        return ENVIRONMENTS[plain]
    versioned = re.fullmatch(r"(.+)-v(\d+)", plain)
    if versioned is None or versioned[1] not in ENVIRONMENTS:
        return registered(name)
    found = ENVIRONMENTS[versioned[1]]
    if found.version != int(versioned[2]):
        raise InputError(f"{versioned[1]} is at version {found.version}, so there is no {name}")
    return found


def make(name: str, seed: int = 0) -> CMDP:
    """Make the problem of this name; if the environment is random, `seed` selects the instance."""
    name, seed = str(name), whole_number("the instance seed", seed)
    found = named(name)
    if found is not None and name.lower() in ENVIRONMENTS:
        plugins.refuse_shadow(plugins.ENVIRONMENTS, name)
    if found is None:
        near = get_close_matches(name.lower(), ENVIRONMENTS, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(ENVIRONMENTS)}"
        raise InputError(f"unknown environment {name!r}: {hint}")
    if seed and not found.random:
        raise InputError(no_instances(name, seed))
    return found.make(seed)


def no_instances(name: str, seed: object) -> str:
    """Return a sentence that refuses an instance seed and lists the random environments."""
    listed = ", ".join(each for each, found in ENVIRONMENTS.items() if found.random)
    return f"{name} is one instance and takes no instance seed ({seed} was given): {listed} do"
