"""The paper's formulas in one file of NumPy (examples/uopt_rpgpd.py) and the engine agree."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from conftest import ROOT, random_problem

import cmdplab
from cmdplab.algorithms import algorithm
from cmdplab.algorithms.task import Task
from cmdplab.engines.families import session
from cmdplab.numerics.noise import uniforms

sys.path.append(str(ROOT / "examples"))

CASES = {
    "one constraint": (lambda: random_problem(5, 3, 4, 1), 1e-3),
    "two constraints": (lambda: random_problem(7, 2, 3, 2), 1e-2),
    "media streaming": (lambda: cmdplab.make("media-streaming"), 1e-5),
}


@pytest.mark.parametrize("case", CASES)
def test_the_printed_preset_plays_the_printed_formulas(case):
    from uopt_rpgpd import uopt_rpgpd

    make, scale = CASES[case]
    problem = make()
    row = algorithm("UOpt-RPGPD", "printed").with_settings(bonus_scale=scale)
    ours = session("cpu", problem, row, Task.of(problem, 0.5), 3).play(300)

    values, multipliers = uopt_rpgpd(
        problem, 0.5, 300, lambda k: uniforms(3, k, 1, problem.horizon)[0], scale=scale
    )
    np.testing.assert_allclose(values, ours.returns, atol=1e-10)
    np.testing.assert_allclose(multipliers, ours.multiplier, atol=1e-10)
    assert np.ptp(values[:, 0]) > 0.01  # the policies differ
