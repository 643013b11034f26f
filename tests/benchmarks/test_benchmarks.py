"""The plain NumPy yardstick of the benchmark computes the same numbers: a third oracle."""

from __future__ import annotations

import numpy as np
from conftest import random_problem
from oracles import session

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.task import Task


def test_numpy_and_the_engine_agree():
    from numpy_reference import NumpyUOpt

    for N in (1, 2):
        problem = random_problem(7, 3, 4, N)
        row = algorithm("UOpt-RPGPD", "released")
        ours = session("cpu", problem, row, Task.of(problem, 1.0), 2).play(300)
        returns, multipliers = NumpyUOpt(problem, seed=2).play(300)
        np.testing.assert_allclose(returns, ours.returns, atol=1e-10)
        np.testing.assert_allclose(multipliers, ours.multiplier, atol=1e-10)
