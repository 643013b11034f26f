"""Arrays for compiled loops: the state is the vectorised axis, padded and aligned.

A pair (x, a) sits at a * P + x, where P is X rounded up to a multiple of 8. Every array starts on a
64-byte boundary. Unaligned, each 64-byte load touches two cache lines, and products take 20 %
longer. Solvers and the CPU engine share this file.
"""

from __future__ import annotations

import numpy as np

from cmdplab.types import Array, Indices, Places

_LINE = 8  # doubles in a cache line and in the widest vector register


def padded(states: int) -> int:
    """Return P, the number of states rounded up to whole cache lines."""
    return -(-states // _LINE) * _LINE


def aligned(*shape: int) -> Array:
    """Return zeros that start on a cache line."""
    size = int(np.prod(shape))
    raw = np.zeros(size + _LINE)
    offset = (-raw.ctypes.data // 8) % _LINE
    return raw[offset : offset + size].reshape(shape)


def to_pairs(values: Array) -> Array:
    """Convert [..., X, A] to [..., A * P], with zeros in the padding."""
    X, A = values.shape[-2:]
    out = aligned(*values.shape[:-2], A, padded(X))
    out[..., :X] = np.swapaxes(values, -1, -2)
    return out.reshape(*values.shape[:-2], A * padded(X))


def from_pairs(values: Array, states: int, actions: int) -> Array:
    """Convert [..., A * P] to [..., X, A]."""
    unfolded = values.reshape(*values.shape[:-1], actions, padded(states))
    return np.ascontiguousarray(np.swapaxes(unfolded[..., :states], -1, -2))


def places(successor: Indices) -> Places:
    """Convert [X, A, S] to [S, A * P], with state 0 in the padding."""
    return to_pairs(np.moveaxis(successor, 2, 0).astype(np.float64)).astype(np.int32)
