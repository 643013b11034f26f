"""Which actions may be tried where: what a person says of it, and what an environment tells."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab.cmdp.checks import checked_mask
from cmdplab.errors import InputError
from cmdplab.live.environment import Info, Spaces, check_call
from cmdplab.types import Mask

Masking = npt.ArrayLike | Callable[[Any], npt.ArrayLike]
"""[X, A] or [H, X, A] of booleans, or a function of the environment's state to [A] of them."""


def opened(given: Masking | None, spaces: Spaces, horizon: int) -> Mask | None:
    """[H, X, A], true where an action may be tried; None where nothing was said."""
    if given is None:
        return None
    shape = (horizon, spaces.states, spaces.actions)
    rows = _rows(given, spaces) if callable(given) else given
    try:
        array = np.array(rows)
    except ValueError:
        raise InputError(f"mask must hold booleans of the shape {shape} or {shape[1:]}") from None
    checked = checked_mask(array, shape)
    return np.ones(shape, dtype=np.bool_) if checked is None else checked


def check_told(info: Info, state: Any, spaces: Spaces) -> None:
    """Refuse to go on without a mask where an environment closes actions."""
    told = info.get("action_mask")
    if told is None:
        return
    flags = np.asarray(told)
    if flags.shape != (spaces.actions,):
        raise InputError(f'info["action_mask"] is {told!r}, not one number per action')
    closed = np.flatnonzero(flags == 0)
    if len(closed):
        action = closed[0] + spaces.first_action
        raise InputError(
            f'info["action_mask"] closes action {action} in state {state}: '
            "pass mask=, for a cmdplab environment mask=env.unwrapped.problem.mask"
        )


def digest(mask: Mask | None) -> str:
    """A mask in a few letters, for checkpoints."""
    if mask is None:
        return "none"
    return hashlib.sha256(np.packbits(mask).tobytes()).hexdigest()[:12]


def _rows(function: Callable[[Any], npt.ArrayLike], spaces: Spaces) -> list[npt.ArrayLike]:
    check_call("mask", function, "state")
    return [function(x + spaces.first_state) for x in range(spaces.states)]
