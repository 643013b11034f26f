"""Checks of the arrays of problems and policies. Each error names the place.

`what` is the name of an array in an error, and `labels` are the names of states and actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab.checks import LONGEST, is_whole
from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.transitions import Sparse, refuse_first
from cmdplab.errors import InputError
from cmdplab.types import Array, Mask, lock

MOST_REWARDS = 1 << 30  # numbers that a problem may hold: 8 GB
POLICY_TOLERANCE = 1e-9  # largest difference of a row's sum from 1; rows are not normalised


def floats(what: str, values: npt.ArrayLike) -> Array:
    """Return a copy of the values as float64. Refuse values that are not real numbers.

    Matrices of SciPy become dense.
    """
    try:
        if hasattr(values, "toarray"):
            values = values.toarray()
        elif isinstance(values, list | tuple) and any(hasattr(e, "toarray") for e in values):
            values = [e.toarray() if hasattr(e, "toarray") else e for e in values]
        given = np.asarray(values)
        if given.dtype.kind in "biuf" and not isinstance(values, np.ma.MaskedArray):
            return np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{what} is not an array of real numbers")


def kernel_rows(
    kernel: npt.ArrayLike | Sparse | Sequence[Any], mask: npt.ArrayLike | None = None
) -> Array | Sparse:
    """Return a kernel as lists of successors or as a table, in float64.

    Matrices [X, X] of SciPy, one for each action, become lists and are never made dense. mask : [X,
    A]; the rows of closed pairs need not be distributions.
    """
    if isinstance(kernel, Sparse):
        return kernel
    if isinstance(kernel, list | tuple) and any(hasattr(each, "tocoo") for each in kernel):
        opened = None if mask is None else flags(mask)
        return Sparse.from_matrices(kernel, opened if np.ndim(opened) == 2 else None)  # type: ignore[arg-type]
    if isinstance(kernel, np.ndarray) and kernel.ndim == 4 and kernel.strides[0] == 0:
        return np.broadcast_to(floats("transition", kernel[0]), kernel.shape)
    return floats("transition", kernel)


def check_axes(kernel: Array | Sparse) -> Array:
    """Return the rows [X, A, ...] or [H, X, A, ...] of a kernel. Refuse other numbers of axes."""
    rows = kernel.probability if isinstance(kernel, Sparse) else kernel
    if rows.ndim not in (3, 4):
        raise InputError(
            f"transition must have the shape [H, X, A, X] or [X, A, X], not {rows.shape}"
        )
    return rows


def common_horizon(kernel: Array | Sparse, reward: Array, horizon: int) -> int:
    """Return the horizon on which kernel, reward and `horizon` agree. Refuse disagreement.

    horizon : H, or 0 if it is not given.
    """
    rows = check_axes(kernel)
    if reward.ndim not in (3, 4):
        raise InputError(
            f"reward must have the shape [1 + N, H, X, A] or [1 + N, X, A], not {reward.shape}"
        )
    if not is_whole(horizon) or not 0 <= horizon <= LONGEST:
        raise InputError(f"the horizon is {horizon!r}, not a whole number from 1 to {LONGEST:,}")
    if reward.ndim == 3 and reward.size * int(horizon) > MOST_REWARDS:
        size = reward.size * int(horizon)
        raise InputError(f"{horizon:,} steps need {size:.1e} rewards, above {MOST_REWARDS:.1e}")
    stated = {reward.shape[1]} if reward.ndim == 4 else set()
    stated |= {len(rows)} if rows.ndim == 4 else set()
    stated |= {horizon} if horizon else set()
    if not stated:
        raise InputError("transition and reward are both stationary, so the horizon must be given")
    if len(stated) > 1:
        raise InputError(
            f"transition {rows.shape} and reward {reward.shape} disagree on the horizon"
            + (f" {horizon}" if horizon else "")
        )
    if min(stated) < 1:
        raise InputError(f"the horizon must be at least 1, not {min(stated)}")
    return int(stated.pop())


def check_sizes(kernel: Array | Sparse, reward: Array) -> None:
    """Refuse a kernel whose numbers of states or actions differ from those of the reward."""
    states, actions = reward.shape[-2:]
    if isinstance(kernel, Sparse):
        shape: tuple[int, ...] = kernel.successor.shape
        fits = shape[:2] == (states, actions)
    else:
        shape = kernel.shape
        fits = shape[-3:] == (states, actions, states)
    if not fits:
        raise InputError(
            f"transition has the shape {shape}, "
            f"but the reward has {states} states and {actions} actions"
        )


def checked_mask(mask: npt.ArrayLike | None, shape: tuple[int, ...]) -> Mask | None:
    """Return the mask as [H, X, A], or None if every action is open. shape : (H, X, A)."""
    if mask is None:
        return None
    given = flags(mask)
    if given.dtype != np.bool_ or given.shape not in (shape, shape[1:]):
        raise InputError(
            f"mask must hold booleans of the shape {shape} or {shape[1:]}, "
            f"not {given.dtype} of {given.shape}"
        )
    none = np.argwhere(~given.any(axis=-1))
    if len(none):
        raise InputError(f"mask[{', '.join(map(str, none[0]))}] leaves no action")
    if given.all():
        return None
    once = given[0] if len(given.shape) == len(shape) and given.strides[0] == 0 else given
    own = once.copy()
    lock(own)
    return np.broadcast_to(own, shape)


def flags(mask: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return a mask of 0 and 1 as booleans. Return any other array unchanged, for later checks."""
    given = np.asarray(mask)
    if given.dtype.kind in "iu" and given.size and ((given == 0) | (given == 1)).all():
        return given.astype(np.bool_)
    return given


def close_rows(kernel: Array, mask: Mask) -> None:
    """Change the rows of closed pairs in place, so that they stay in their state.

    mask : [H, X, A], False for closed pairs. A pair of a kernel [X, A, X] is closed if it is closed
    at any step.
    """
    closed = np.nonzero(~mask if kernel.ndim == 4 else ~mask.any(axis=0))
    kernel[closed] = 0.0
    kernel[(*closed, closed[-2])] = 1.0


def check_between(what: str, array: Array, high: int) -> None:
    """Refuse an array with an entry outside [0, high]. what : its name, for the error."""
    wrong = ~((array >= 0.0) & (array <= high))
    refuse_first(f"{what}[{{}}] is {{:g}}, outside [0, {high}]", array, wrong)


def checked_threshold(threshold: npt.ArrayLike, constraints: int) -> Array:
    """Return the thresholds as N = `constraints` finite numbers. Refuse other values."""
    array = np.atleast_1d(floats("threshold", threshold))
    if array.shape != (constraints,):
        raise InputError(
            f"threshold has the shape {array.shape}, but the reward has {constraints} utilities"
        )
    check_finite("threshold", array)
    return array


def check_finite(what: str, array: Array) -> None:
    """Refuse an array with an entry that is not finite. what : its name, for the error."""
    refuse_first(f"{what}[{{}}] is {{:g}}, not a finite number", array, ~np.isfinite(array))


def checked_policy(
    what: str, policy: npt.ArrayLike, opened: Mask, labels: Labels | None = None
) -> Array:
    """Return a policy as float64. Refuse a shape other than that of `opened`, the open actions.

    A row that is not a distribution over the open actions is refused too.
    """
    array = floats(what, policy)
    if array.shape != opened.shape:
        raise InputError(f"{what} has the shape {array.shape}, not {opened.shape}")
    labels, axes = labels or Labels(), "hxa"[-array.ndim :]
    check_distributions(what, array, axes, labels)
    check_open(what, array, opened, axes, labels)
    return array


def check_distributions(what: str, array: Array, axes: str, labels: Labels) -> None:
    """Refuse an array [..., A] with a row that is not a distribution.

    axes : a letter for each axis: h step, k counter, x state, a action.
    """
    total = array.sum(axis=-1)
    # Two reductions suffice for a policy without a fault.
    if array.min() >= 0.0 and np.abs(total - 1.0).max() <= POLICY_TOLERANCE:
        return
    wrong = ~((array >= 0.0) & (array <= 1.0 + POLICY_TOLERANCE))
    if wrong.any():
        index = tuple(np.argwhere(wrong)[0])
        where = labels.place(axes, index)
        raise InputError(f"{what} has {array[index]:.9g} at {where}, not a probability")
    index = tuple(np.argwhere(np.abs(total - 1.0) > POLICY_TOLERANCE)[0])
    raise InputError(f"{what} sums to {total[index]:.9g} at {labels.place(axes, index)}, not to 1")


def check_open(what: str, array: Array, opened: Mask, axes: str, labels: Labels) -> None:
    """Refuse an array [..., A] with a positive probability of a closed action.

    opened : the open actions, as booleans of a fitting shape. axes : as for `check_distributions`.
    """
    if opened.all():
        return
    taken = np.argwhere((array > 0.0) & ~opened)
    if len(taken):
        *row, a = taken[0]
        where = labels.place(axes, row)
        raise InputError(f"{what} takes action {labels.action(a)} at {where}, which is closed")


def checked_start(start: int, states: int) -> int:
    """Return the start state as an `int`. Refuse a number outside 0..states - 1."""
    if not is_whole(start) or not 0 <= start < states:
        raise InputError(f"start is {start!r}, but the states are 0..{states - 1}")
    return int(start)
