"""A large grid with a swamp in the way: X = 10,000, A = 4, H = 100, one cost constraint.

Origin: ours. It is here for its size: the kernel is lists of at most four successors, and nothing
of size X^2 is ever made.

State: a cell of 100 x 100, counted row by row; an episode starts in the middle row, a fifth of the
way from the left. Actions: up, down, left, right; with probability 0.1 the move is drawn again,
uniformly; a move off the grid stays. Every step from a cell in the right two fifths earns 1. A
step from a cell of the swamp costs 1; the swamp is 10 columns wide and 30 rows high, and lies
between the start and the right. At most 2 expected steps in the swamp: through it is short, and
round it is long.

Sense: rewards to maximise, costs within a budget; r^1 = 1 - cost, b = 100 - 2. Nothing is scaled.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Scale, checked_sizes, fixed
from cmdplab.environments.grids import landings, slippery_lists

SIZE = 100
SLIP = 0.1
BUDGET = 2.0


def slippery_grid(size: int = SIZE, horizon: int | None = None, budget: float = BUDGET) -> CMDP:
    """Make the grid of `size` x `size` cells. The default horizon is `size` steps."""
    steps = size if horizon is None else horizon
    checked_sizes(size=size, horizon=steps)
    row, column = np.divmod(np.arange(size * size), size)
    right = column >= 3 * size // 5
    swamp = (column >= 7 * size // 20) & (column < 9 * size // 20)
    swamp &= np.abs(row - size // 2) < 3 * size // 20
    reward = np.repeat(np.stack([1.0 * right, 1.0 - swamp])[..., None], 4, axis=-1)
    return CMDP(
        slippery_lists(landings(size, size), SLIP),
        reward,
        np.array([steps - budget]),
        start=size // 2 * size + size // 5,
        horizon=steps,
        name="slippery-grid" if size == SIZE else f"slippery-grid {size} x {size}",
    )


SUMMARY = "ten thousand cells, and a swamp in the way"
SOURCE = "ours"
UNITS = (Scale("steps on the right"), Scale("steps in the swamp", -1.0, float(SIZE)))
OPTIMUM = Certified(41.872355, (1.5707824,), 2.0, 55.524691)

ENTRIES = {"slippery-grid": fixed(slippery_grid, SUMMARY, SOURCE, UNITS, OPTIMUM)}
