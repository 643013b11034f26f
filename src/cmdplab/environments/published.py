"""The very CMDP behind the paper's Figure 1: X = 30, A = 3, H = 10, one constraint.

The arrays are numbers regenerated from the released generator's seed 12; no code came along. They
were float32, so the rows of the kernel are normalised here in float64. The threshold is used as
the notebook rounded it. Optimum 5.18840, multiplier 1, largest utility 2b to 1e-6.
"""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Scale, fixed


def published() -> CMDP:
    """Make the published instance."""
    file = files("cmdplab") / "data" / "published.npz"  # ours as much as the code: no guard
    with file.open("rb") as stream, np.load(stream) as archive:
        arrays = dict(archive)
    kernel = arrays["transition"].astype(np.float64)
    kernel /= kernel.sum(axis=-1, keepdims=True)
    objective = arrays["objective"].astype(np.float64)
    reward = np.stack([objective, 1.0 - objective])
    start = int(arrays["start"])
    return CMDP(kernel, reward, arrays["threshold"], start, name="published")


SUMMARY = "the CMDP behind the paper's Figure 1"
SOURCE = "Kitamura et al. (2024), code"
UNITS = (Scale("reward"), Scale("utility"))
OPTIMUM = Certified(5.18840027, (1.0,), 4.81160057, 9.18217215)

ENTRIES = {"published": fixed(published, SUMMARY, SOURCE, UNITS, OPTIMUM)}
