"""The problems of the studies: small random CMDPs with one binding constraint or several.

Kernels are Dirichlet(0.1), rewards and utilities independent of each other, each 0 with probability
1/2 and else uniform, as in `random-independent`, at X = 10, A = 3, H = 5.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from cmdplab.cmdp.exact import greedy
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.random_cmdp import (
    CONCENTRATION,
    binds,
    independent_rewards,
    random_cmdp,
    stream,
    zero_or_uniform,
)
from cmdplab.solvers import Solution, solve_feasible

STATES, ACTIONS, HORIZON = 10, 3, 5
BINDING = (0, 1, 5, 9, 11, 12, 14, 15, 16, 19)  # the first ten seeds with lambda* >= 0.4
SHARE = 0.55  # of its largest value that each of several utilities must reach


@cache
def one(seed: int) -> CMDP:
    """One constraint that binds: `random-independent-binding`, smaller."""
    sizes = (STATES, ACTIONS, HORIZON)
    return random_cmdp(independent_rewards, "study", seed, *sizes, accept=binds)


@cache
def small(seed: int) -> CMDP:
    """The same at X = 5, for runs of 10^9 episodes on one core."""
    return random_cmdp(independent_rewards, "study", seed, 5, ACTIONS, HORIZON, accept=binds)


@cache
def free(seed: int, constraints: int) -> CMDP:
    """So many utilities, every threshold zero: nothing binds."""
    random = stream(seed)
    shape = (HORIZON, STATES, ACTIONS)
    kernel = random.dirichlet(np.full(STATES, CONCENTRATION), shape)
    start = int(random.randint(STATES))
    reward = np.stack([zero_or_uniform(random, shape) for _ in range(1 + constraints)])
    return CMDP(kernel, reward, np.zeros(constraints), start, name=f"study (seed {seed})")


@cache
def several(seed: int, constraints: int) -> CMDP:
    """Each utility must reach SHARE of the most that it could reach alone."""
    problem = free(seed, constraints)
    alone = np.array([greedy(problem, utility)[0] for utility in problem.reward[1:]])
    return with_thresholds(problem, SHARE * alone)


def with_thresholds(problem: CMDP, threshold: np.ndarray) -> CMDP:
    """The same problem with other thresholds."""
    return CMDP(problem.transition, problem.reward, threshold, problem.start, name=problem.name)


def first(problem: CMDP, constraints: int) -> CMDP:
    """The same problem with its first so many utilities alone."""
    reward, threshold = problem.reward[: 1 + constraints], problem.threshold[:constraints]
    return CMDP(problem.transition, reward, threshold, problem.start, name=problem.name)


@cache
def optimum(problem: CMDP) -> Solution:
    """Its certified optimum."""
    return solve_feasible(problem)
