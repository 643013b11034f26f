"""What episodes say about the world: transitions counted, a CMDP estimated, a policy planned on it.

Nothing here plays or knows algorithms: counts come in, problems and policies go out.
"""

from cmdplab.live.model.estimate import LearnedModel, model_of, model_problem
from cmdplab.live.model.experience import Entries, Experience
from cmdplab.live.model.plans import Planned, planned_on

__all__ = [
    "Entries",
    "Experience",
    "LearnedModel",
    "Planned",
    "model_of",
    "model_problem",
    "planned_on",
]
