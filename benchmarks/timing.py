"""Time per episode of an engine on a random problem of any size, for the benchmarks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import session

PAPER = (30, 3, 10, 1)  # X, A, H, N
SIZES = (
    (5, 3, 4, 1),
    (10, 2, 10, 1),
    (30, 3, 10, 0),
    (30, 3, 10, 3),
    (30, 10, 10, 1),
    (30, 3, 40, 1),
    (100, 3, 10, 1),
    (200, 3, 10, 1),
)


class Timing(NamedTuple):
    """One row of the table."""

    engine: str
    algorithm: str
    states: int
    actions: int
    horizon: int
    constraints: int
    runs: int
    us_per_episode: float  # wall-clock time of all runs over the episodes of all runs


def random_problem(states: int, actions: int, horizon: int, constraints: int) -> CMDP:
    """A dense random problem of any size: Dirichlet(0.1) rows, uniform rewards, thresholds H/4."""
    random = np.random.RandomState(0)
    kernel = random.dirichlet(np.full(states, 0.1), (horizon, states, actions))
    reward = random.random_sample((1 + constraints, horizon, states, actions))
    return CMDP(kernel, reward, np.full(constraints, horizon / 4))


def time_engine(
    engine: str, row: Row, problem: CMDP, runs: int = 1, seconds: float = 1.0
) -> Timing:
    """Median over five slices of about `seconds` / 5 each, exact returns and noise included."""
    slack = problem.horizon / 4 if problem.constraints else np.inf
    task = Task.of(problem, slack)
    sessions = [session(engine, problem, row, task, seed) for seed in range(runs)]
    episodes = 1
    with ThreadPoolExecutor(max_workers=runs) as pool:

        def slice_of(episodes: int) -> float:
            began = time.perf_counter()
            list(pool.map(lambda each: each.play(episodes), sessions))
            return time.perf_counter() - began

        while (took := slice_of(episodes)) < seconds / 10 and episodes < 1 << 20:
            episodes *= 2
        episodes = max(1, int(episodes * seconds / 5 / took))
        slices = [slice_of(episodes) for _ in range(5)]
    us = 1e6 * float(np.median(slices)) / (episodes * runs)
    X, A, H, N = problem.states, problem.actions, problem.horizon, problem.constraints
    name = row.name if row.preset == "released" else f"{row.name} ({row.preset})"
    return Timing(engine, name, X, A, H, N, runs, us)


def benchmark(quick: bool = False) -> Iterator[Timing]:
    """The paper's size first, one and two runs at once; then other sizes."""
    uopt = algorithm("UOpt-RPGPD", "released")
    paper = random_problem(*PAPER)
    yield time_engine("cpu", uopt, paper)
    yield time_engine("cpu", uopt, paper, runs=2)
    yield time_engine("cpu", algorithm("UOpt-RPGPD", "printed"), paper)
    yield time_engine("cpu", algorithm("OptPrimalDual-CMDP", "released"), paper)
    for sizes in () if quick else SIZES:
        yield time_engine("cpu", uopt, random_problem(*sizes))
