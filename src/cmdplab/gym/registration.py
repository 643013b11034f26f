"""Named environments in Gymnasium's registry: media-streaming is cmdplab/MediaStreaming-v0.

The registry holds the path of this module, and makes environments with its functions.
"""

from __future__ import annotations

import gymnasium

from cmdplab.environments import ENVIRONMENTS, make
from cmdplab.gym.env import ProblemEnv
from cmdplab.gym.vector import ProblemVectorEnv

NAMESPACE = "cmdplab"


def identifier(name: str) -> str:
    """Return the identifier of an environment: namespace, name in CamelCase, version."""
    version = ENVIRONMENTS[name].version
    camel = "".join(word.capitalize() for word in name.split("-"))
    return f"{NAMESPACE}/{camel}-v{version}"


def register() -> None:
    """Register every named environment that the registry does not hold yet."""
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
    """Return one copy of a named environment; `instance_seed` chooses a random instance."""
    return ProblemEnv(make(environment, instance_seed), render_mode, strict=strict)


def make_vector_env(
    environment: str, instance_seed: int = 0, num_envs: int = 1, strict: bool = False
) -> ProblemVectorEnv:
    """Return many copies of one instance of a named environment."""
    return ProblemVectorEnv(make(environment, instance_seed), num_envs, strict=strict)
