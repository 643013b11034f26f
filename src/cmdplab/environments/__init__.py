"""The one list of environments: name -> how to make it. A new environment is a file and a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module

from cmdplab import plugins
from cmdplab.checks import whole_number
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Environment, Published, Scale, registered
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

_HOMES = {  # module -> the names in its ENTRIES
    "published": ["published"],
    "random_cmdp": [
        "random-printed",
        "random-released",
        "random-independent",
        "random-printed-binding",
        "random-independent-binding",
    ],
    "random_dann": ["random-dann"],
    "random_tight": ["random-tight"],
    "media_streaming": ["media-streaming"],
    "three_state": ["three-state", "three-state-uniform"],
    "inventory": ["inventory", "inventory-corrected"],
    "job_scheduling": ["job-scheduling"],
    "mars_rover": ["mars-rover"],
    "box": ["box"],
    "triple_q_grid": ["triple-q-grid", "triple-q-grid-binding"],
    "cliff": ["cliff"],
    "six_state": ["six-state"],
    "cost_chain": ["cost-chain-3", "cost-chain-11"],
    "river_swim": ["river-swim", "river-swim-osband"],
    "paradox": ["paradox"],
    "five_by_five": ["five-by-five", "five-by-five-3"],
    "uniform_random": ["uniform-random-3", "uniform-random-4"],
    "queue": ["queue"],
    "resource_gathering": ["resource-attacks", "resource-gems"],
    "slippery_grid": ["slippery-grid"],
    "episode_wise": ["opse-streaming", "opse-streaming-random", "opse-tabular", "opse-linear"],
}


class _Environments(Mapping[str, Environment]):
    """Map each name to its environment, and import the module of one at first use."""

    _home = {name: home for home, names in _HOMES.items() for name in names}  # noqa: RUF012

    def __getitem__(self, name: str) -> Environment:
        found: Environment = import_module(f"{__name__}.{self._home[name]}").ENTRIES[name]
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._home)

    def __len__(self) -> int:
        return len(self._home)

    def __contains__(self, name: object) -> bool:
        return name in self._home


ENVIRONMENTS: Mapping[str, Environment] = _Environments()


def named(name: str) -> Environment | None:
    """Return the environment of a name, or None. `cliff` and `Cliff-v0` name the same one.

    Refuse another version than the present one: its results would not be comparable. A name that
    is not ours may be registered by an installed package.
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
    """Make the problem of this name. If the environment is random, `seed` chooses the instance."""
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
    """Return the sentence that refuses an instance seed, and lists the random environments."""
    listed = ", ".join(each for each, found in ENVIRONMENTS.items() if found.random)
    return f"{name} is one instance and takes no instance seed ({seed} was given): {listed} do"
