"""The contract of a learner, as a check.

    from cmdplab.testing import check_learner
    check_learner(make_learner)     # any argument of `run`: a maker, a learner, a row, a name

Nothing in the package needs this subpackage; authors of learners do.
"""

from cmdplab.environments.random_cmdp import SHAPES, random_problem
from cmdplab.testing.contract import ContractError, MakeLearner, check_learner

__all__ = ["SHAPES", "ContractError", "MakeLearner", "check_learner", "random_problem"]
