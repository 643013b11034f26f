"""One contract for every learner.

    from cmdplab.testing import check_learner
    check_learner(make_learner)     # whatever `run` takes: a maker, a learner, a row, a name

Nothing of the package needs what is here; people who write learners do.
"""

from cmdplab.cmdp.random import SHAPES, random_problem
from cmdplab.testing.contract import ContractError, MakeLearner, check_learner

__all__ = ["SHAPES", "ContractError", "MakeLearner", "check_learner", "random_problem"]
