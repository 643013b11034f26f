"""Every problem as a Gymnasium environment. Importing this package registers the named ones.

    gymnasium.make("cmdplab.gym:cmdplab/MediaStreaming-v0")

imports it by itself: the part before the colon is the module that registers the identifier.
"""

from importlib.util import find_spec

from cmdplab.errors import EngineError

if find_spec("gymnasium") is None:
    raise EngineError("Gymnasium is not installed: pip install 'cmdplab[gym]'")

from cmdplab.gym.converters import FromSafety, FromVectorReward, ToSafety, ToVectorReward
from cmdplab.gym.env import ProblemEnv, TimeAware
from cmdplab.gym.registration import identifier, register
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

register()
