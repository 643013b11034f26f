"""Two policies on one problem: places that differ, their occupancy, and both returns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.checks import whole_number
from cmdplab.cmdp import exact
from cmdplab.cmdp.evaluation import Evaluation, evaluate
from cmdplab.cmdp.labels import Scale
from cmdplab.cmdp.policy import Policy, fitted
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.types import Array, frozen

SHOWN = 10  # states of the table


@display.shown
@frozen
class Difference(NamedTuple):
    """The difference between two policies.

    Without an end there are no steps, and visits are shares of the time, which sum to one. If
    rewards are discounted, they are shares of discounted time.
    """

    names: tuple[str, str]
    signals: tuple[str, ...]  # [1 + N]
    returns: Array  # [2, 1 + N], exact
    threshold: Array  # [N]
    distance: float  # sum over steps and states of how often both come there times the variation
    rows: tuple[dict[str, Any], ...]  # the places that differ most, the most important first
    units: tuple[Scale, ...] = ()  # [1 + N], of the labels
    steps: bool = True  # False without an end

    def _facts(self) -> tuple[str, display.Facts]:
        units = self.units or tuple(map(Scale, self.signals))
        facts = []
        for scale, a, b in zip(units, *self.returns.tolist(), strict=True):
            ours, theirs = scale.published(a), scale.published(b)
            facts.append((scale.of, f"{ours:.6g} -> {theirs:.6g} ({theirs - ours:+.3g})"))
        steps = self.steps
        what = "steps of an episode" if steps else "share of the time"
        facts.append((f"{what} that differ{'' if steps else 's'}", display.number(self.distance)))
        for row in self.rows[:3]:
            where = f"step {row['step']}, " if steps else ""
            words = f"{row['first']} -> {row['second']}, {row['weight']:.3g}"
            facts.append((f"{where}state {row['state']}", words))
        return f"Difference of {display.name(' and '.join(self.names))}", facts


def compare_policies(
    problem: CMDP | StationaryCMDP,
    first: npt.ArrayLike | Policy,
    second: npt.ArrayLike | Policy,
    rows: int = SHOWN,
) -> Difference:
    """Return the places where two policies differ, by occupancy, and the returns of both.

    The weight of a place (h, x) is (d_1 + d_2) / 2 times the total variation of the two rows, with
    d the probability of being there. It is the number of steps that are played differently there.
    The row of a policy with a counter is the mean over the levels of the counter.
    On a stationary problem d is the share of the time that is spent in a state.
    """
    whole_number("the number of rows", rows)
    found = [evaluate(problem, each) for each in (first, second)]
    arrays = [_rows(problem, *each) for each in zip((first, second), found, strict=True)]
    variation = np.abs(arrays[0] - arrays[1]).sum(axis=-1) / 2.0
    visits = np.stack([each.occupancy.sum(axis=-1) for each in found])
    if isinstance(problem, StationaryCMDP):
        visits = visits / visits.sum(axis=-1, keepdims=True)
    weight = visits.mean(axis=0) * variation
    order = np.argsort(-weight, axis=None, kind="stable")[:rows]
    places = [tuple(map(int, np.unravel_index(n, weight.shape))) for n in order]
    table = [
        {
            **({"step": problem.labels.step(place[0])} if len(place) == 2 else {}),
            "state": problem.labels.state(place[-1]),
            "weight": float(weight[place]),
            "variation": float(variation[place]),
            "visits_first": float(visits[(0, *place)]),
            "visits_second": float(visits[(1, *place)]),
            "first": in_words(problem, arrays[0][place]),
            "second": in_words(problem, arrays[1][place]),
        }
        for place in places
        if weight[place] > 0.0
    ]
    names = (_name(first, "first"), _name(second, "second"))
    units = problem.units
    returns = np.stack([each.returns for each in found])
    signals, total = tuple(each.of for each in units), float(weight.sum())
    return Difference(
        names, signals, returns, problem.threshold, total, tuple(table), units, weight.ndim == 2
    )


def _rows(
    problem: CMDP | StationaryCMDP, policy: npt.ArrayLike | Policy, found: Evaluation
) -> Array:
    """Return the rows [H, X, A] or [X, A] of a policy, averaged over its memory if it has one."""
    if not isinstance(policy, Policy) or policy.counter is None:
        return fitted(problem, policy)
    return exact.policy_of(found.occupancy, exact.even(problem.opened))


def in_words(problem: CMDP | StationaryCMDP, row: Array, most: int = 3) -> str:
    """Return the actions of a row [A] with shares, the likeliest first: "serve 70%, wait 30%"."""
    order = [int(a) for a in np.argsort(-row, kind="stable") if row[a] > 0.0]
    shares = ["" if row[a] >= 1.0 - 1e-9 else f" {100 * row[a]:.3g}%" for a in order[:most]]
    words = [problem.labels.action(a) + share for a, share in zip(order, shares, strict=False)]
    return ", ".join(words) + (", ..." if len(order) > most else "")


def _name(policy: object, otherwise: str) -> str:
    return policy.name if isinstance(policy, Policy) else otherwise
