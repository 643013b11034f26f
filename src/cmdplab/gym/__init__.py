"""Every problem as a Gymnasium environment. Importing this package registers the named ones.

    gymnasium.make("cmdplab.gym:cmdplab/MediaStreaming-v0")

imports it by itself: the part before the colon is the module that registers the identifier.
The registry holds the path of this package, and makes environments with its functions.
"""

from cmdplab.errors import check_installed

check_installed("gymnasium")

import gymnasium

from cmdplab.environments import ENVIRONMENTS, make
from cmdplab.gym.converters import FromSafety, FromVectorReward, ToSafety, ToVectorReward
from cmdplab.gym.env import ProblemEnv, TimeAware
from cmdplab.gym.vector import ProblemVectorEnv

__all__ = [
    "FromSafety",
    "FromVectorReward",
    "ProblemEnv",
    "ProblemVectorEnv",
    "TimeAware",
    "ToSafety",
    "ToVectorReward",
    "identifier",
    "register",
]

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


register()
