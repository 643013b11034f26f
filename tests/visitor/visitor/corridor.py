"""Reward at one end of a corridor, utility at the other."""

import numpy as np

from cmdplab import CMDP


def corridor():
    """Five places; a step fails with chance 0.1."""
    kernel = np.zeros((5, 2, 5))
    for x in range(5):
        for a, y in enumerate((max(x - 1, 0), min(x + 1, 4))):
            kernel[x, a, y] += 0.9
            kernel[x, a, x] += 0.1
    place = np.repeat(np.linspace(0.0, 1.0, 5)[:, None], 2, axis=1)
    return CMDP(kernel, np.stack([place, 1.0 - place]), [4.0], 0, horizon=6, name="corridor")
