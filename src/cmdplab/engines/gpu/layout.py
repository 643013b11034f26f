"""The layout of arrays on the GPU, and the conversions from and to natural axes.

W neighbouring threads, the lanes, hold one state, and each lane holds J of its actions. A sum over
actions is a sum over J registers and exchanges between W lanes. Action a = j W + lane of state x
sits at j S + x W + lane. S is X W rounded up to whole sectors of memory. Entries added by rounding
count as closed actions: they never have any mass, and no loop tests for them. A `Form` has these
numbers for a problem.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.cmdp.problem import CLOSED
from cmdplab.errors import InputError
from cmdplab.types import Array, Indices

MOST_EACH = 4  # actions that one thread holds, while there are lanes for the rest
MOST_THREADS = 512
_WARP = 32
_SECTOR = 8  # 32 bytes of 4 each
_SHARED = 48 * 1024  # bytes of shared memory that every block may have
# As low as float32 allows: 2^24 steps of size one do not reach its end.
_CLOSED_SINGLE = -1e30


class Form(NamedTuple):
    """Sizes of a problem and their layout over threads."""

    states: int  # X
    actions: int  # A
    horizon: int  # H
    rewards: int  # 1 + N
    lanes: int  # W, a power of two, at most a warp
    each: int  # J, actions a lane
    span: int  # S
    threads: int  # threads of a block, whole warps

    @property
    def row(self) -> int:
        """Return J S, the number of places for all pairs of one step."""
        return self.each * self.span

    @property
    def columns(self) -> int:
        """Return N, or 1 without constraints, because no array on the card may be empty."""
        return max(self.rewards - 1, 1)

    def shared_bytes(self, itemsize: int) -> int:
        """Return the bytes of shared memory of a block, for numbers of `itemsize` bytes."""
        values = 4 * self.states * self.rewards * itemsize
        vectors = (
            32 * max(self.threads, self.horizon) + 16 * self.rewards + 4 * (2 * self.horizon + 1)
        )
        return values + vectors + 2 * self.horizon * itemsize


def form_of(
    shape: tuple[int, int, int, int], lanes: int | None = None, threads: int | None = None
) -> Form:
    """Return the form for rewards of the shape [1 + N, H, X, A].

    `lanes` and `threads` replace the chosen numbers, to find the fastest ones.
    """
    R, H, X, A = shape
    W = 1 if lanes is None else lanes
    while lanes is None and W < _WARP and -(-A // W) > MOST_EACH:
        W *= 2
    unit = max(_SECTOR, W)
    span = -(-X * W // unit) * unit
    most = MOST_THREADS if threads is None else threads
    whole = min(-(-span // _WARP) * _WARP, most)
    return Form(X, A, H, R, W, -(-A // W), span, whole)


def check_form(form: Form, itemsize: int) -> None:
    """Refuse a form that exceeds a block's shared memory with numbers of `itemsize` bytes."""
    if form.shared_bytes(itemsize) > _SHARED:
        raise InputError(
            f"{form.states} states with {form.rewards} rewards and {form.horizon} steps need "
            f"{form.shared_bytes(itemsize):,} bytes a block, and the GPU engine has {_SHARED:,}: "
            "the engine cpu has no such limit"
        )


def places(form: Form) -> Indices:
    """Return the place [X, A] of each pair in a row of J S entries."""
    x, a = np.arange(form.states)[:, None], np.arange(form.actions)
    return np.asarray(a // form.lanes * form.span + x * form.lanes + a % form.lanes, np.int64)


def to_card(values: Array, form: Form, fill: float = 0.0) -> Array:
    """Convert values [..., X, A] to [..., J S], with `fill` at places without a pair."""
    out = np.full((*values.shape[:-2], form.row), fill)
    out[..., places(form)] = values
    return out


def from_card(rows: Array, form: Form) -> Array:
    """Convert rows [..., J S] to [..., X, A]."""
    return np.ascontiguousarray(rows[..., places(form)], dtype=np.float64)


def closed_on_card(closed: Array, form: Form, dtype: npt.DTypeLike) -> Array:
    """Convert an array [H, X, A], zero for open actions, to [H, J S].

    Places without a pair count as closed. Values in float32 are at least -1e30.
    """
    low = -np.inf if np.dtype(dtype).itemsize == 8 else _CLOSED_SINGLE
    return np.maximum(to_card(closed, form, CLOSED), low)
