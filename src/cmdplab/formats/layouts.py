"""Problems from and to the array layouts of other libraries, which have no steps.

    action first  P [A, S, S], R [S], [S, A] or [A, S, S]    pymdptoolbox, one matrix per action
    state first   P [S, A, S], R [S], [S, A] or [S, A, S]    QuantEcon, rlberry, MushroomRL

P is the kernel and R the reward. A reward that depends on the next state becomes its expectation. A
reward of -inf closes the pair, as in QuantEcon. Sparse matrices of SciPy are never made dense.

A QuantEcon `DiscreteDP` is an object with `R`, `Q` and `beta`, or its arrays in one of two forms.
QuantEcon is not imported. n is the number of states, m of actions, L of listed pairs.

    product form        R [n, m], Q [n, m, n], beta                  -inf closes a pair
    state-action pairs  R [L], Q [L, n], beta, s_indices [L], a_indices [L]; Q dense or sparse
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from cmdplab.checks import real_number
from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import signal_names
from cmdplab.cmdp.transitions import ROW_SUM_TOLERANCE, Sparse
from cmdplab.errors import InputError
from cmdplab.formats.assemble import (
    How,
    Listed,
    Problem,
    Signal,
    judged,
    limited,
    problem_of,
    stationary_tables,
)
from cmdplab.formats.kernels import (
    LARGEST,
    Transitions,
    checked_transitions,
    entries,
    is_sparse,
    normalised,
    per_action,
    read_matrices,
    stacked,
    stored,
)
from cmdplab.types import Array, Indices, Mask


class Tables(NamedTuple):
    """Kernel and rewards of a stationary problem in the layout of another library."""

    transition: Array  # [A, S, S] or [S, A, S]
    rewards: Array  # [1 + N, S, A]: the objective, then the utilities


class Given(TypedDict, total=False):
    """Keyword arguments for all facts that arrays do not contain, for every layout.

    horizon : H, for episodes of H steps, in which rewards of any units are mapped onto [0, 1].
    discount : gamma, for E sum_t gamma^t r; with a horizon too, the sum ends after H steps.
    criterion : "average", for the long-run average per step.
    utilities, thresholds : each utility must reach its threshold, in the same kind of sum.
    costs, budgets : each cost must not exceed its budget. The constraints of the problem are the
        utilities, then the costs.
    start : a state, its name, or the distribution [S] of the first state.
    labels : names of states and actions, and in `signals` the names of reward, utilities and costs.
    """

    horizon: int | None
    discount: float | None
    criterion: str | None
    utilities: Sequence[Any]
    thresholds: Sequence[float]
    costs: Sequence[Any]
    budgets: Sequence[float]
    start: int | str | npt.ArrayLike
    name: str
    labels: Labels


def from_state_first(
    transition: npt.ArrayLike, reward: npt.ArrayLike, **given: Unpack[Given]
) -> Problem:
    """Return the problem of P [S, A, S] and rewards [S], [S, A] or [S, A, S].

    For other arguments see `Given`. It is a `CMDP` if a horizon is given, else a `StationaryCMDP`.
    """
    check_words(given)
    kernel = floats("transition", transition)
    if kernel.ndim != 3 or kernel.shape[0] != kernel.shape[2] or 0 in kernel.shape:
        raise InputError(f"transition must have the shape [S, A, S], not {kernel.shape}")
    return made(kernel, partial(_expected, kernel=kernel), reward, given)


def from_action_first(transition: Any, reward: Any, **given: Unpack[Given]) -> Problem:
    """Return the problem of P [A, S, S], or of a list of A matrices [S, S], sparse or dense.

    Rewards, utilities and costs are [S], [S, A] or [A, S, S], or a list with a vector [S] or a
    matrix [S, S] for each action. For other arguments see `Given`.
    """
    check_words(given)
    if hasattr(transition, "tocoo"):
        raise InputError("transition is one matrix: give a list with a matrix for each action")
    paid = (reward, *given.get("utilities", ()), *given.get("costs", ()))
    if any(hasattr(each, "tocoo") or is_sparse(each) for each in (transition, *paid)):
        rows = read_matrices(transition, given.get("labels", Labels()))
        return made(rows.kernel(reward), rows.expected, reward, given)
    shape = np.shape(transition)
    given["utilities"] = [_state_first("utility", e, shape) for e in given.get("utilities", ())]
    given["costs"] = [_state_first("cost", each, shape) for each in given.get("costs", ())]
    kernel = _swapped(floats("transition", transition))
    return from_state_first(kernel, _state_first("reward", reward, shape), **given)


def from_quantecon(
    model: Any,
    Q: Any = None,
    beta: float | None = None,
    s_indices: npt.ArrayLike | None = None,
    a_indices: npt.ArrayLike | None = None,
    **given: Unpack[Given],
) -> Problem:
    """Return the problem of a `DiscreteDP`, or of R, Q, beta [, s_indices, a_indices].

    Sums are discounted by beta, without an end or over the steps of a given horizon. With
    criterion="average" beta is not used. Utilities and costs have the shape of R: [n, m] or [L].
    Pairs that are not listed, or whose reward is -inf, are closed. For other arguments see `Given`.
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


def check_words(given: Given) -> None:
    """Refuse arguments that `Given` does not have, and values of a wrong kind."""
    unknown = [each for each in given if each not in Given.__annotations__]
    if unknown:
        known = ", ".join(Given.__annotations__)
        raise InputError(f"there is no argument {unknown[0]!r}: it may be one of {known}")
    for what in ("utilities", "thresholds", "costs", "budgets"):
        listed = given.get(what, ())
        if isinstance(listed, str) or not isinstance(listed, Sequence | np.ndarray):
            raise InputError(f"the {what} are {listed!r}, not a list")
    if not isinstance(given.get("labels", Labels()), Labels):
        raise InputError(f"the labels are {given['labels']!r}, not Labels(...)")


def made(
    kernel: Array | Sparse, read: Callable[[str, Any], Array], reward: Any, given: Given
) -> Problem:
    """Return the problem of a kernel [S, A, S], or lists, and of rewards.

    `read(what, value)` returns the table [S, A] of a reward, utility or cost. A reward of -inf
    closes a pair.
    """
    utilities = [read("utility", each) for each in given.get("utilities", ())]
    costs = [read("cost", each) for each in given.get("costs", ())]
    how, labels = how_judged(given), given.get("labels", Labels())
    names = names_of(labels, len(utilities), len(costs))
    split = 1 + len(utilities)
    every = [Signal(names[0], read("reward", reward))]
    every += limited(names[1:split], utilities, given.get("thresholds", ()), cost=False)
    every += limited(names[split:], costs, given.get("budgets", ()), cost=True)
    opened = ~np.isneginf(every[0].table)
    model = Listed(kernel, opened, tuple(every), labels, given.get("name", "custom"))
    return problem_of(model, how, given.get("start", 0))


def how_judged(given: Given) -> How:
    """Return the criterion that the arguments determine."""
    return judged(given.get("horizon"), given.get("discount"), given.get("criterion"))


def names_of(labels: Labels, utilities: int, costs: int) -> list[str]:
    """Return the name of each signal, from the labels or by number."""
    plain = signal_names(utilities, costs)
    given = [each.of for each in labels.signals]
    if given and len(given) != len(plain):
        raise InputError(f"labels: {len(given)} signals are named, but there are {len(plain)}")
    return given or plain


def to_state_first(problem: CMDP) -> Tables:
    """Return P [S, A, S] and rewards [1 + N, S, A]. Closed pairs have the reward -inf."""
    rewards, opened = stationary_tables(problem, "the layout [S, A, S]")
    return Tables(problem.table[0].copy(), np.where(opened, rewards, -np.inf))


def to_action_first(problem: CMDP) -> Tables:
    """Return P [A, S, S] and rewards [1 + N, S, A]. Refuse a problem with closed pairs."""
    rewards, opened = stationary_tables(problem, "the layout [A, S, S]")
    if not opened.all():
        raise InputError(f"{problem.name} has closed pairs: the layout [A, S, S] cannot say so")
    return Tables(_swapped(problem.table[0]), rewards.copy())


def _swapped(array: Array) -> Array:
    return np.ascontiguousarray(array.transpose(1, 0, 2)) if array.ndim == 3 else array


def _state_first(what: str, given: Any, shape: tuple[int, ...]) -> Array:
    if per_action(given, shape[0]):
        return stacked(what, given)
    return _swapped(floats(what, given))


def _expected(what: str, values: npt.ArrayLike, kernel: Array) -> Array:
    """Return sum_y P(y | x, a) r(x, a, y), [S, A]. values : [S], [S, A] or [S, A, S]."""
    table = floats(what, values)
    if table.ndim == 1 and table.shape == kernel.shape[:1]:
        return np.repeat(table[:, None], kernel.shape[1], axis=1)
    if table.shape == kernel.shape[:2]:
        return table
    if table.shape == kernel.shape:
        with np.errstate(invalid="ignore"):  # 0 times -inf: the pair is closed, or refused later
            return np.asarray(np.where(kernel > 0.0, kernel * table, 0.0).sum(axis=-1))
    raise InputError(f"{what} has the shape {table.shape}, and the transition {kernel.shape}")


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

    def table(what: str, values: Any) -> Array:
        called = "R" if what == "reward" else what
        numbers = floats(called, values)
        if numbers.shape != (L,):
            raise InputError(f"{called} has the shape {numbers.shape}, and there are {L} pairs")
        written = np.full(shape, -np.inf if what == "reward" else 0.0)
        written[state, action] = numbers
        return written

    mask: Mask = ~np.isneginf(table("reward", R))
    listed = Transitions(state[every.row], action[every.row], every.column, every.value)
    listed = checked_transitions(listed.within(mask), labels)
    kernel = stored(normalised(listed, mask, labels, ROW_SUM_TOLERANCE), mask)
    return made(kernel, table, R, given)


def _indices(what: str, given: Any) -> Indices:
    array = np.asarray(given)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not len(array) or array.min() < 0:
        raise InputError(f"{what} must be a list of whole numbers >= 0")
    return array.astype(np.int64)
