"""A state as a picture: one cell for each state, the present one dark, below it the time so far.

A file of its own, without a drawing library: video recorders ask for pixels at every step.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]

PAPER, CELL, HERE, TIME = (255, 255, 255), (225, 230, 235), (0, 90, 160), (230, 130, 0)
WIDE = 480  # pixels at most, as far as cells of one pixel allow
BAR = 8  # pixels, the height of the bar of time


def picture(state: int, states: int, time: float) -> Picture:
    """[height, width, 3]: cells in rows, left to right and down, as many as make about a square.

    time : the share of the episode that is over, the length of the bar.
    """
    columns = math.ceil(math.sqrt(states))
    rows = math.ceil(states / columns)
    size = max(1, min(40, WIDE // columns))
    gap = 1 if size >= 4 else 0
    cells = np.full((rows * columns, 3), PAPER, dtype=np.uint8)
    cells[:states] = CELL
    cells[state] = HERE
    drawn = cells.reshape(rows, columns, 3).repeat(size, axis=0).repeat(size, axis=1)
    for edge in range(gap):
        drawn[edge::size], drawn[:, edge::size] = PAPER, PAPER
    bar = np.full((BAR, drawn.shape[1], 3), PAPER, dtype=np.uint8)
    bar[2:, : round(time * drawn.shape[1])] = TIME
    return np.concatenate([drawn, bar])
