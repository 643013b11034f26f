"""QuantEcon's `DiscreteDP`: an object, or its arrays, in both of its forms.

    product form        R [n, m], Q [n, m, n], beta                  -inf closes a pair
    state-action pairs  R [L], Q [L, n], beta, s_indices [L], a_indices [L]; Q dense or sparse

QuantEcon itself is not imported: whatever has `R`, `Q` and `beta` is a `DiscreteDP`.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from cmdplab.checks import real_number
from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.transitions import ROW_SUM_TOLERANCE
from cmdplab.errors import InputError
from cmdplab.formats.assemble import Problem
from cmdplab.formats.kernels import LARGEST, Transitions, normalised, stored
from cmdplab.formats.layouts import Given, Read, check_words, from_state_first, made
from cmdplab.formats.matrices import checked, entries
from cmdplab.types import Array, Indices, Mask


def from_quantecon(
    model: Any,
    Q: Any = None,
    beta: float | None = None,
    s_indices: npt.ArrayLike | None = None,
    a_indices: npt.ArrayLike | None = None,
    **given: Unpack[Given],
) -> Problem:
    """The problem of a `DiscreteDP`, or of R, Q, beta [, s_indices, a_indices].

    Discounted by beta for ever; over H steps, each discounted by beta, where a horizon is given, as
    `backward_induction` has it; criterion="average" leaves beta aside. Utilities and costs have
    the shape of R: [n, m], or [L] in the form of state-action pairs. A state-action pair that is
    not listed, or whose reward is -inf, is closed.
    """
    if all(hasattr(model, name) for name in ("R", "Q", "beta")):
        s_indices, a_indices = getattr(model, "s_indices", None), getattr(model, "a_indices", None)
        model, Q, beta = model.R, model.Q, model.beta
    if Q is None or beta is None:
        raise InputError("give a DiscreteDP, or R, Q and beta")
    if given.get("discount") is not None:
        raise InputError("the discount of a DiscreteDP is its beta")
    if given.get("criterion") is None:
        given["discount"] = real_number("beta", beta)
    check_words(given)
    if (s_indices is None) != (a_indices is None):
        raise InputError("state-action pairs need both s_indices and a_indices")
    if s_indices is None:
        return from_state_first(Q, model, **given)
    return _from_pairs(model, Q, s_indices, a_indices, given)


def _from_pairs(R: Any, Q: Any, s_indices: Any, a_indices: Any, given: Given) -> Problem:
    state, action = _indices("s_indices", s_indices), _indices("a_indices", a_indices)
    every = entries(Q, "Q")
    L, n = Q.shape if hasattr(Q, "shape") else np.shape(Q)
    if not len(state) == len(action) == L or state.max() >= n:
        raise InputError(
            f"Q has {L} pairs and {n} states, s_indices {len(state)} up to {state.max()}, "
            f"a_indices {len(action)}"
        )
    labels = given.get("labels", Labels())
    shape = (int(n), max(int(action.max()) + 1, len(labels.actions)))
    if shape[0] * shape[1] > LARGEST:
        raise InputError(f"{shape[0]} states with {shape[1]} actions are too many")
    _, again = np.unique(state * shape[1] + action, return_index=True)
    if len(again) < L:
        twice = int(np.setdiff1d(np.arange(L), again)[0])
        raise InputError(
            f"pair {twice}: action {action[twice]} in state {state[twice]} is listed twice"
        )

    def table(what: str, values: Any, elsewhere: float) -> Array:
        numbers = floats(what, values)
        if numbers.shape != (L,):
            raise InputError(f"{what} has the shape {numbers.shape}, and there are {L} pairs")
        written = np.full(shape, elsewhere)
        written[state, action] = numbers
        return written

    objective = table("R", R, -np.inf)
    mask: Mask = ~np.isneginf(objective)
    listed = Transitions(state[every.row], action[every.row], every.column, every.value)
    listed = checked(listed.within(mask), labels)
    kernel = stored(normalised(listed, mask, labels, ROW_SUM_TOLERANCE), mask, "Q")
    utilities = [table("utility", each, 0.0) for each in given.get("utilities", ())]
    costs = [table("cost", each, 0.0) for each in given.get("costs", ())]
    return made(Read(kernel, objective, utilities, costs), given)


def _indices(what: str, given: Any) -> Indices:
    array = np.asarray(given)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not len(array) or array.min() < 0:
        raise InputError(f"{what} must be a list of whole numbers >= 0")
    return array.astype(np.int64)
