"""The one list of environments: name -> how to make it. A new environment is a line here."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import NamedTuple

from cmdplab.environments import random_cmdp as random
from cmdplab.environments.inventory import inventory
from cmdplab.environments.job_scheduling import job_scheduling
from cmdplab.environments.media_streaming import media_streaming
from cmdplab.environments.published import published
from cmdplab.environments.three_state import three_state
from cmdplab.errors import InputError
from cmdplab.problem import CMDP


class Environment(NamedTuple):
    """How to make a problem."""

    make: Callable[[int], CMDP]  # from an instance seed
    random: bool  # whether the instance seed matters
    summary: str
    source: str


_PAPER = "Kitamura et al. (2024)"
_DOPE = "Bura et al. (2022), code"


def _random(rewards: random.Draw, name: str) -> Callable[[int], CMDP]:
    return partial(random.random_cmdp, rewards, name)


ENVIRONMENTS: dict[str, Environment] = {
    "published": Environment(
        lambda seed: published(), False, "the CMDP behind the paper's Figure 1", f"{_PAPER}, code"
    ),
    "random-printed": Environment(
        _random(random.printed_rewards, "random-printed"),
        True,
        "Dirichlet(0.1) kernel, rewards 0 or uniform, utility 1 - reward",
        f"{_PAPER}, Appendix D",
    ),
    "random-released": Environment(
        _random(random.released_rewards, "random-released"),
        True,
        "Dirichlet(0.1) kernel, rewards 0 or 1, utility 1 - reward",
        f"{_PAPER}, code",
    ),
    "random-independent": Environment(
        _random(random.independent_rewards, "random-independent"),
        True,
        "Dirichlet(0.1) kernel, reward and utility independent, each 0 or uniform",
        "ours",
    ),
    "media-streaming": Environment(
        lambda seed: media_streaming(),
        False,
        "a buffer that must not run empty, with at most 5 steps on the fast link",
        _DOPE,
    ),
    "three-state": Environment(
        lambda seed: three_state(), False, "a ring of three states, with at most 3 advances", _DOPE
    ),
    "inventory": Environment(
        lambda seed: inventory(),
        False,
        "orders under random demand and a budget, with the released reward",
        _DOPE,
    ),
    "job-scheduling": Environment(
        lambda seed: job_scheduling(),
        False,
        "enough jobs done, in cheap hours [unverified: boundary rule, step indexing]",
        "Ghosh, Zhou & Shroff (2024), Appendix K",
    ),
}


def make(name: str, seed: int = 0) -> CMDP:
    """The environment of that name; `seed` chooses the instance where it is random."""
    if name not in ENVIRONMENTS:
        near = get_close_matches(name, ENVIRONMENTS, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(ENVIRONMENTS)}"
        raise InputError(f"unknown environment {name!r}: {hint}")
    if seed and not ENVIRONMENTS[name].random:
        raise InputError(f"{name} is one instance: it takes no instance seed, and {seed} was given")
    return ENVIRONMENTS[name].make(seed)


def find(what: str, seed: int = 0) -> CMDP:
    """A problem from the command line: a .npz file, or the name of an environment."""
    if what not in ENVIRONMENTS and (what.endswith(".npz") or Path(what).exists()):
        return CMDP.load(what)
    return make(what, seed)
