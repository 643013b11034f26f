"""The named environments in Gymnasium's registry: media-streaming is cmdplab/MediaStreaming-v0.

A file of its own: Gymnasium's registry holds its path, from which it makes environments.
"""

from __future__ import annotations

import gymnasium

from cmdplab.environments import ENVIRONMENTS, make
from cmdplab.gym.env import ProblemEnv
from cmdplab.gym.vector import ProblemVectorEnv

NAMESPACE = "cmdplab"


def identifier(name: str) -> str:
    """The identifier of an environment: the namespace, its name in CamelCase, its version."""
    version = ENVIRONMENTS[name].version
    camel = "".join(word.capitalize() for word in name.split("-"))
    return f"{NAMESPACE}/{camel}-v{version}"


def register() -> None:
    """Put every environment of the list into Gymnasium's registry, those already there aside."""
    for name in ENVIRONMENTS:
        if identifier(name) not in gymnasium.registry:
            gymnasium.register(
                id=identifier(name),
                entry_point=f"{__name__}:make_env",
                vector_entry_point=f"{__name__}:make_vector_env",
                kwargs={"environment": name},
            )


def make_env(
    environment: str, instance_seed: int = 0, render_mode: str | None = None, strict: bool = False
) -> ProblemEnv:
    """One copy of a named environment; `instance_seed` chooses the instance where it is random."""
    return ProblemEnv(make(environment, instance_seed), render_mode, strict=strict)


def make_vector_env(
    environment: str, instance_seed: int = 0, num_envs: int = 1, strict: bool = False
) -> ProblemVectorEnv:
    """Many copies of one instance of a named environment."""
    return ProblemVectorEnv(make(environment, instance_seed), num_envs, strict=strict)
