"""Compiled code is cached on disk, and never older than the formulas it contains."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cmdplab

PROGRAM = """
import numpy as np
from cmdplab import CMDP, algorithm
from cmdplab.algorithms.task import Task
from cmdplab.engines.cpu import CpuSession
kernel = np.full((2, 2, 2), 0.5)
reward = np.array([[[1.0, 0.0], [0.2, 0.9]], [[0.1, 0.8], [0.7, 0.3]]])
problem = CMDP(kernel, reward, [0.5], horizon=3)
session = CpuSession(problem, algorithm("UOpt-RPGPD"), Task.of(problem, 1.0), 0)
print(repr(float(session.play(50).returns[-1, 0])))
"""


def run(package: Path, cache: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, cwd=cache
    ).stdout


@pytest.fixture
def copy(tmp_path):
    source = Path(cmdplab.__file__).parent
    shutil.copytree(source, tmp_path / "lib" / "cmdplab")
    (tmp_path / "cache").mkdir()
    return tmp_path / "lib", tmp_path / "cache"


def test_an_edited_formula_is_compiled_anew(copy):
    package, cache = copy
    before = run(package, cache)
    formulas = package / "cmdplab" / "equations.py"
    text = formulas.read_text()
    assert "+ eta * q" in text
    formulas.write_text(text.replace("+ eta * q", "- eta * q"))
    assert run(package, cache) != before
    formulas.write_text(text)
    assert run(package, cache) == before
    assert len(list(cache.iterdir())) == 2
