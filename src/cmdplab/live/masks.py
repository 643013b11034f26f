"""Masks of closed actions, given by a person or shown in the infos of an environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab.cmdp import exact
from cmdplab.cmdp.checks import checked_mask, flags
from cmdplab.cmdp.memory import drawn
from cmdplab.errors import InputError
from cmdplab.live.environment import Info, check_call
from cmdplab.live.spaces import Spaces
from cmdplab.types import Array, Mask

Act = Callable[[int, int, float], int]  # (step, state, uniform) -> action
Masking = npt.ArrayLike | Callable[[Any], npt.ArrayLike]
"""[X, A] or [H, X, A] of booleans, or a function of the environment's state to [A] of them."""


def opened(given: Masking | None, spaces: Spaces, horizon: int) -> Mask | None:
    """Return the open actions [H, X, A], or None if no mask was given."""
    if given is None:
        return None
    shape = (horizon, spaces.states, spaces.actions)
    if callable(given):
        check_call("mask", given, "state")
        given = [given(spaces.observation(x)) for x in range(spaces.states)]  # type: ignore[assignment]
    try:
        array = np.array(given)
    except ValueError:
        raise InputError(f"mask must hold booleans of the shape {shape} or {shape[1:]}") from None
    checked = checked_mask(array, shape)
    return np.ones(shape, dtype=np.bool_) if checked is None else checked


class ToldMask:
    """Mask that the infos of an environment have shown so far, under the key "action_mask".

    The first mask of a state is used for every step, until another one is shown at a step.
    """

    def __init__(self, horizon: int, spaces: Spaces) -> None:
        self.horizon, self.spaces = horizon, spaces
        self.opened: Mask | None = None  # [H, X, A]; None as long as nothing was closed
        self.news = False  # True if the learner lacks a part of the mask
        self._met: set[int] = set()

    def remember(self, opened: Mask) -> None:
        """Continue from the earlier mask `opened` [H, X, A]."""
        self.opened = opened.copy()
        self._met = set(np.flatnonzero(~opened.all(axis=(0, 2))).tolist())

    def choose(
        self,
        policy: Callable[[int, int], Array],
        lead: int,
        act: Act,
        h: int,
        x: int,
        u: float,
        info: Info,
    ) -> int:
        """Return the learner's action at step h in state x if it is open, else another open action.

        policy : (step, state) -> [A]. If the action is closed, an open one is drawn from it by the
        uniform u. The draw is uniform if all actions of positive probability are closed. lead : the
        learner's steps before the environment's. act : draws the learner's action.
        """
        row = self.row(h - lead, x, info)
        a = act(h, x, u)
        if row is None or row[a]:
            return a
        rest = np.where(row, policy(h, x), 0.0)
        rest = rest if rest.sum() > 0.0 else 1.0 * row
        return drawn(rest / rest.sum(), u)

    def row(self, h: int, x: int, info: Info) -> Mask | None:
        """Return the open actions [A] in an info, and store them for step h and state x.

        Return None if the info has no mask.
        """
        told = info.get("action_mask")
        if told is None:
            return None
        row = flags(np.asarray(told))
        if row.dtype != np.bool_ or row.shape != (self.spaces.actions,):
            raise InputError(f'info["action_mask"] is {told!r}, not 0 or 1 for each action')
        if not row.any():
            raise InputError('info["action_mask"] leaves no action')
        where = slice(None) if x not in self._met else h
        self._met.add(x)
        if self.opened is None:
            if row.all():
                return row
            shape = (self.horizon, self.spaces.states, self.spaces.actions)
            self.opened = np.ones(shape, dtype=np.bool_)
        if not np.array_equal(self.opened[h, x], row):
            self.opened[where, x] = row
            self.news = True
        return row


def projected(policy: Array, opened: Mask | None) -> Array:
    """Return a policy [H, X, A] with closed actions at 0 and each row rescaled to sum 1."""
    if opened is None:
        return policy
    return exact.policy_of(np.where(opened, policy, 0.0), exact.even(opened))
