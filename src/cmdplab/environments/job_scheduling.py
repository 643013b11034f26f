"""Job scheduling with dear and cheap hours: X = 10, A = 2, H = 10, one utility constraint.

Origin: Ghosh, Zhou & Shroff (2024), Appendix K. The sizes, the probabilities, the rewards and the
threshold are the paper's; it states no optimum.

State: jobs left, 0..9; an episode starts with 9. Action 1 works: 2, 1 or 0 jobs are done with
probabilities 0.8, 0.1 and 0.1; action 0 rests and does none. Working earns 1 - 0.9 = 0.1 in the
dear steps and 1 - 0.2 = 0.8 in the others; resting earns 1.

Sense: rewards and utilities, both to be kept high. The utility of the paper is half of the jobs
done, (x_h - x_{h+1}) / 2, at least 3.5 over the episode. It depends on the next state; here it is
its expectation given state and action, which leaves every value unchanged. Nothing is scaled.

[unverified] Two points are our reading of the paper. The boundary: never fewer than 0 jobs are
left, so that with one job left both 2 and 1 finish it (probability 0.9), and with none left
working only costs. The indexing: the dear steps are the third to the sixth, counted from 1.

Optimum 156/17 = 9.17647, multiplier 4/17 = 0.23529; without the constraint 10, by resting
throughout. These numbers are our certified solver's. By hand: a cheap step of work costs 0.2 and
has the utility 0.85 while two jobs are left, so 3.5 / 0.85 such steps are needed, fewer than the
six cheap ones. Hence the optimum depends on neither of the two points; other values do.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Scale, fixed
from cmdplab.types import Array

HORIZON = 10
JOBS = 9
DONE = (0.1, 0.1, 0.8)  # the probabilities that 0, 1, 2 jobs are done by working
REST, WORK = 0, 1
CHEAP, DEAR = 0.2, 0.9  # what working takes from the reward 1
DEAR_STEPS = slice(2, 6)  # the third to the sixth
THRESHOLD = 3.5


def job_scheduling() -> CMDP:
    """Make the instance of the paper, in our reading."""
    kernel = _kernel()
    jobs = np.arange(JOBS + 1)
    reward = np.ones((2, HORIZON, JOBS + 1, 2))
    reward[0, :, :, WORK] = 1.0 - CHEAP
    reward[0, DEAR_STEPS, :, WORK] = 1.0 - DEAR
    reward[1] = (jobs[:, None] - kernel @ jobs) / 2.0
    return CMDP(kernel, reward, np.array([THRESHOLD]), JOBS, name="job-scheduling")


def _kernel() -> Array:
    """Return the kernel [X, A, X], which is the same at every step."""
    kernel = np.zeros((JOBS + 1, 2, JOBS + 1))
    for jobs in range(JOBS + 1):
        kernel[jobs, REST, jobs] = 1.0
        for done, probability in enumerate(DONE):
            kernel[jobs, WORK, max(0, jobs - done)] += probability
    return kernel


SUMMARY = "enough jobs done, in cheap hours"
SOURCE = "Ghosh, Zhou & Shroff (2024), Appendix K"
UNVERIFIED = "boundary rule, step indexing"
UNITS = (Scale("reward"), Scale("half of the jobs done"))
OPTIMUM = Certified(156 / 17, (4 / 17,), 0.999791255, 10.0)

ENTRIES = {
    "job-scheduling": fixed(job_scheduling, SUMMARY, SOURCE, UNITS, OPTIMUM, unverified=UNVERIFIED)
}
