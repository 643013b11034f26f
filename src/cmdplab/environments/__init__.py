"""The one list of environments: name -> how to make it. A new environment is a file and a line."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from cmdplab import plugins
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments import (
    box,
    cliff,
    cost_chain,
    five_by_five,
    inventory,
    job_scheduling,
    mars_rover,
    media_streaming,
    paradox,
    published,
    queue,
    random_cmdp,
    random_dann,
    random_tight,
    resource_gathering,
    river_swim,
    six_state,
    slippery_grid,
    three_state,
    triple_q_grid,
    uniform_random,
)
from cmdplab.environments.entry import Certified, Environment, Published, Scale, registered
from cmdplab.errors import InputError

__all__ = [
    "ENVIRONMENTS",
    "Certified",
    "Environment",
    "Published",
    "Scale",
    "find",
    "make",
    "named",
    "no_instances",
]

ENVIRONMENTS: dict[str, Environment] = {
    **published.ENTRIES,
    **random_cmdp.ENTRIES,
    **random_dann.ENTRIES,
    **random_tight.ENTRIES,
    **media_streaming.ENTRIES,
    **three_state.ENTRIES,
    **inventory.ENTRIES,
    **job_scheduling.ENTRIES,
    **mars_rover.ENTRIES,
    **box.ENTRIES,
    **triple_q_grid.ENTRIES,
    **cliff.ENTRIES,
    **six_state.ENTRIES,
    **cost_chain.ENTRIES,
    **river_swim.ENTRIES,
    **paradox.ENTRIES,
    **five_by_five.ENTRIES,
    **uniform_random.ENTRIES,
    **queue.ENTRIES,
    **resource_gathering.ENTRIES,
    **slippery_grid.ENTRIES,
}


def named(name: str) -> Environment | None:
    """The environment of a name, with or without its version: `cliff` and `Cliff-v0` are one.

    A version that is not the present one is refused: its results would not compare. Names that are
    not ours may be those that an installed package registers.
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
    """The environment of that name; `seed` chooses the instance where it is random."""
    found = named(name)
    if found is not None and name.lower() in ENVIRONMENTS:
        plugins.refuse_shadow(plugins.ENVIRONMENTS, name)
    if found is None:
        near = get_close_matches(name.lower(), ENVIRONMENTS, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(ENVIRONMENTS)}"
        raise InputError(f"unknown environment {name!r}: {hint}")
    if seed and not found.random:
        raise InputError(no_instances(name, seed))
    return found.make(seed)


def no_instances(name: str, seed: object) -> str:
    """Why an instance seed means nothing for a problem that is one instance, and where it does."""
    listed = ", ".join(each for each, found in ENVIRONMENTS.items() if found.random)
    return f"{name} is one instance and takes no instance seed ({seed} was given): {listed} do"


def find(what: str, seed: int = 0) -> CMDP:
    """A problem from the command line: a .npz file, or the name of an environment."""
    if named(what) is None and (what.endswith(".npz") or Path(what).exists()):
        if seed:
            raise InputError(no_instances(what, seed))
        return CMDP.load(what)
    return make(what, seed)
