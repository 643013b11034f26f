"""Evaluation of policies on a known problem. The policy is checked here, exact.py computes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.cmdp import exact
from cmdplab.cmdp.bundle import check_problem
from cmdplab.cmdp.checks import check_open, checked_policy
from cmdplab.cmdp.memory import Memory, counted_occupancy
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.errors import InputError
from cmdplab.types import Array, frozen


@display.shown
@frozen
class Evaluation(NamedTuple):
    """Exact returns, violations and occupancy of one policy on one problem."""

    returns: Array  # [1 + N], V[r^n] of the objective and of every utility
    violation: Array  # [N], b^n - V[r^n]: above zero where a threshold is missed
    occupancy: Array  # [H, X, A], the probability of each pair at each step; [X, A] without an end

    def _facts(self) -> tuple[str, display.Facts]:
        axes = "X x A" if self.occupancy.ndim == 2 else "H x X x A"
        return "Evaluation", [
            ("value", display.number(self.value)),
            ("utility", display.numbers(self.utility)),
            ("violation", display.numbers(self.violation)),
            ("occupancy", display.shape(self.occupancy, axes)),
        ]

    @property
    def value(self) -> float:
        """Return of the objective, V[r^0]."""
        return float(self.returns[0])

    @property
    def utility(self) -> Array:
        """Returns V[r^n] of the utilities, [N]."""
        return self.returns[1:]


def evaluate(problem: CMDP | StationaryCMDP, policy: npt.ArrayLike) -> Evaluation:
    """Return the exact returns, violations and occupancy of a policy on a problem.

    policy : a `Policy` or an array, [H, X, A], or [X, A] on a stationary problem. A policy with a
    counter is evaluated on the chain of counter and state, and its occupancy is summed over the
    levels of the counter. Discounted occupancies sum to 1 / (1 - gamma), average ones to 1.

    A row that is not a distribution over the open actions is refused. The error names its place.
    """
    checked = fitted(problem, policy)
    counter = counter_of(policy)
    if isinstance(problem, StationaryCMDP):
        from cmdplab.cmdp import exact_stationary  # SciPy's sparse solvers take a while to load

        if counter is not None:
            raise InputError("a policy with a counter is for a problem with a horizon")
        occupancy = exact_stationary.occupancy(problem, checked)
        earned = exact_stationary.earned(problem, occupancy)
    else:
        if counter is None:
            occupancy = exact.occupancy(problem, checked)
        else:
            occupancy = counted_occupancy(problem, checked, counter).sum(axis=1)
        earned = exact.earned(problem, occupancy)
    return Evaluation(earned, exact.violation(problem.threshold, earned[1:]), occupancy)


def counter_of(policy: Any) -> Memory | None:
    """Return the counter of a `Policy`, or None. Arrays have no counter."""
    return policy.counter if hasattr(policy, "counter") else None


def fitted(problem: CMDP | StationaryCMDP, policy: Any) -> Array:
    """Return the probabilities of a policy for a problem, checked by its sizes and mask.

    policy : a `Policy` or an array. The result is [H, X, A] for a problem with a horizon, also from
    a stationary `Policy`, and else [X, A]. With a counter, the axis of its levels is before that of
    the states. The problem may have more states and steps than the policy if no action matters
    there: after the end of an episode, and before a random start.
    """
    check_problem(problem)
    opened, labels, named = problem.opened, problem.labels, hasattr(policy, "counter")
    rows = _completed(problem, policy) if isinstance(problem, CMDP) else None
    if rows is None and named:
        rows = policy.array
        if policy.stationary and opened.ndim == 3:
            rows = np.broadcast_to(rows, (len(opened), *rows.shape))
        counter = counter_of(policy)
        levels = () if counter is None else (counter.levels,)
        if rows.shape != (*opened.shape[:-2], *levels, *opened.shape[-2:]):
            raise InputError(
                f"the policy has {_sizes(policy)}, but {problem.name} has {_sizes(problem)}"
            )
        _check_names(problem, policy)
        allowed = opened[..., None, :, :] if levels else opened
        axes = ("h" if opened.ndim == 3 else "") + ("k" if levels else "") + "xa"
        check_open("the policy", rows, allowed, axes, labels)
        return np.asarray(rows)
    if named:
        _check_names(problem, policy)
    return checked_policy("the policy", policy if rows is None else rows, opened, labels)


def _completed(problem: CMDP, policy: Any) -> Array | None:
    """Return the rows of a policy completed by states and steps in which no action matters.

    The policy may lack the last states, and the first steps if only such states are reached then.
    In any other case return None, and the checks accept or refuse the policy itself.
    """
    shape, (H, X, A) = np.shape(policy), problem.opened.shape
    if len(shape) not in (2, 3) or shape[-1] != A or shape[-2] >= X:
        return None
    if counter_of(policy) is not None:
        return None
    states, lead = shape[-2], 0 if len(shape) == 2 else H - shape[0]
    if lead < 0 or not _undecided(problem, states) or not _led(problem, states, lead):
        return None
    rows = exact.even(problem.opened)
    rows[lead:, :states] = policy
    return rows


def _undecided(problem: CMDP, first: int) -> bool:
    """Return True if all open actions are equivalent in each state from `first` on."""
    earned, opened = problem.reward[:, :, first:], problem.opened[:, first:]
    low = np.where(opened, earned, np.inf).min(axis=-1)
    high = np.where(opened, earned, -np.inf).max(axis=-1)
    if (low < high).any():
        return False
    for h in range(1 if problem.stationary else problem.horizon):
        for x in range(first, problem.states):
            actions = np.flatnonzero(opened[h, x - first]).tolist()
            rows = [problem.kernel.successors(h, x, a) for a in actions]
            if any(not all(map(np.array_equal, rows[0], each)) for each in rows[1:]):
                return False
    return True


def _led(problem: CMDP, first: int, lead: int) -> bool:
    """Return True if an episode is in states from `first` on at all steps before `lead`."""
    here = {problem.start}
    for h in range(lead):
        if min(here) < first:
            return False
        here = {int(y) for x in here for y in problem.kernel.successors(h, x, 0)[0]}
    return True


def _sizes(one: Any) -> str:
    steps = getattr(one, "horizon", 0)
    words = f"{one.states:,} states and {one.actions:,} actions"
    return f"{steps:,} steps, {words}" if steps else f"{words} and no last step"


def _check_names(problem: CMDP | StationaryCMDP, policy: Any) -> None:
    for what in ("state", "action", "step"):
        both = getattr(policy.labels, f"{what}s"), getattr(problem.labels, f"{what}s")
        if what == "step" and len(both[0]) < len(both[1]):
            continue  # the steps that a policy may lack are the first ones
        for n, (ours, theirs) in enumerate(zip(*both, strict=False)):
            if ours != theirs:
                raise InputError(
                    f"the policy calls {what} {n} {ours!r}, but {problem.name} calls it "
                    f"{theirs!r}: cmdplab.match_policy matches names"
                )
