"""Cells of a grid, counted row by row, or levels in a row, and moves between them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmdplab.cmdp.transitions import Sparse
from cmdplab.types import Array

Cells = npt.NDArray[np.intp]
UP, DOWN, LEFT, RIGHT = range(4)
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))  # (rows, columns) of up, down, left, right


def landings(rows: int, columns: int) -> Cells:
    """Return the cell [X, 4] that each move leads to, on a grid of rows x columns cells.

    A move off the grid stays.
    """
    row, column = np.divmod(np.arange(rows * columns), columns)
    reached = [
        np.clip(row + down, 0, rows - 1) * columns + np.clip(column + right, 0, columns - 1)
        for down, right in MOVES
    ]
    return np.stack(reached, axis=1)


def neighbours(up: npt.ArrayLike, down: npt.ArrayLike, stay: npt.ArrayLike) -> Array:
    """Return the kernel [X, A, X] of levels in a row that rise or fall by one, or stay.

    up, down, stay : the probabilities, broadcast to [X, A]. A level that would leave the range
    stays.
    """
    up, down, stay = np.broadcast_arrays(up, down, stay)  # [X, A]
    level = np.arange(len(up))
    kernel = np.zeros((*up.shape, len(level)))
    kernel[level, :, np.minimum(level + 1, level[-1])] += up
    kernel[level, :, np.maximum(level - 1, 0)] += down
    kernel[level, :, level] += stay
    return kernel


def deterministic(landing: Cells) -> Array:
    """Return the kernel [X, A, X] of moves that always lead to `landing` [X, A]."""
    kernel = np.zeros((*landing.shape, len(landing)))
    np.put_along_axis(kernel, landing[..., None], 1.0, axis=-1)
    return kernel


def slippery(kernel: Array, slip: float) -> Array:
    """Return a kernel [X, A, X] whose actions are drawn again uniformly with probability `slip`."""
    drawn = kernel.mean(axis=1, keepdims=True)
    return np.asarray((1.0 - slip) * kernel + slip * drawn)


def slippery_lists(landing: Cells, slip: float) -> Sparse:
    """Return the kernel of `slippery` moves as lists, without an array of size X^2."""
    X, A = landing.shape
    successor = np.repeat(landing[:, None, :], A, axis=1)
    probability = np.tile(slip / A + (1.0 - slip) * np.eye(A), (X, 1, 1))
    for later in range(1, A):  # moves that lead to one cell are one successor
        for earlier in range(later):
            same = successor[..., earlier] == successor[..., later]
            probability[..., earlier] += np.where(same, probability[..., later], 0.0)
            probability[..., later] = np.where(same, 0.0, probability[..., later])
    return Sparse(successor, probability)
