"""One state explained: the value of each action there, the prices, and the amount given up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.cmdp import exact
from cmdplab.cmdp.memory import counted_action_values, counted_occupancy, level_of
from cmdplab.cmdp.policy import Policy, fitted
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Average, StationaryCMDP
from cmdplab.display import words_and_table
from cmdplab.errors import InputError
from cmdplab.policies.comparison import in_words
from cmdplab.solvers import Solution, solve
from cmdplab.types import Array, frozen

SAME = 1e-9  # per step and unit of reward: values that differ by less are equal but for rounding


@frozen
class Explanation(NamedTuple):
    """The actions of a policy in one state, with reasons, for `print` and notebooks.

    Values are from this step on, if the policy goes on as it is, in the units of the labels: a
    cost is counted as a cost. Amounts that are given up or gained are better if larger. If
    `beside` is true, values are differences from the value played, because rewards are averaged or
    an offset of the labels belongs to whole episodes.
    """

    problem: str
    state: str
    step: str  # empty where there are no steps
    visits: float  # the probability that an episode comes here, or the share of time spent here
    played: str  # the actions of positive probability, in words
    signals: tuple[str, ...]  # [1 + N]
    costs: tuple[bool, ...]  # [1 + N], signals that are better if smaller
    prices: Array  # [N], the multipliers: objective for one unit more (less of a cost) of each
    actions: tuple[dict[str, Any], ...]  # open ones: name, probability, values, total
    given_up: float  # objective of its best action, minus that of the policy
    gained: Array  # [N], the advantage of the policy over that action
    worth: Array  # [N], the same at the prices
    beside: bool = False  # True if values are differences from the value played

    @property
    def text(self) -> str:
        """Return the explanation in words."""
        best = self._best_for_the_objective()
        share = f"{100 * self.visits:.3g}% of"
        where = f"at step {self.step}, where {share} the episodes come."
        if not self.step:
            where = f"where {share} the time is spent."
        name = f"state {self.state}{' ' if self.step else ', '}{where}"
        lines = [f"{self.problem}: {name}", f"The policy plays {self.played}."]
        if self.beside:
            lines.append("Values are differences from what is played.")
        more = ["less" if cost else "more" for cost in self.costs]
        if self.given_up == 0.0:
            lines.append(
                f"No action has {more[0]} {self.signals[0]}: the constraints cost nothing here."
            )
            return "\n".join(lines)
        lines.append(
            f"The constraints cost {self.given_up:.4g} of {self.signals[0]} here: "
            f"{best} would have that much {more[0]}."
        )
        each = zip(self.gained, more[1:], self.signals[1:], self.worth, self.prices, strict=True)
        gains = [
            f"{gain:.4g} {word} of {name} (worth {worth:.4g} at its price {price:.4g})"
            for gain, word, name, worth, price in each
        ]
        lines += [f"In return the policy has {' and '.join(gains)}."] * bool(gains)
        return "\n".join(lines)

    def _best_for_the_objective(self) -> str:
        sign = -1.0 if self.costs[0] else 1.0
        return str(max(self.actions, key=lambda each: sign * each["values"][0])["action"])

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows: a row for each open action, the best in total first."""
        header = ["action", "played", *self.signals, "with prices"]
        sign = "+" if self.beside else ""
        rows = [
            [
                each["action"],
                f"{100 * each['probability']:.4g}%" if each["probability"] > 0.0 else "–",
                *(f"{value:{sign if value else ''}.5g}" for value in each["values"]),
                f"{each['total']:{sign if each['total'] else ''}.5g}",
            ]
            for each in self.actions
        ]
        return header, rows

    def __str__(self) -> str:
        header, rows = self.table()
        widths = [max(len(row[n]) for row in [header, *rows]) for n in range(len(header))]
        lines = [
            "  ".join(
                cell.ljust(width) if n == 0 else cell.rjust(width)
                for n, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in [header, *rows]
        ]
        return "\n".join([self.text, "", *lines])

    def _repr_html_(self) -> str:
        return words_and_table(self.text, *self.table())


def explain(
    problem: CMDP | StationaryCMDP,
    state: int | str,
    step: int | str | None = None,
    *,
    policy: npt.ArrayLike | Policy | None = None,
    solution: Solution | None = None,
    count: int | None = None,
) -> Explanation:
    """Explain a policy in a state: action values, prices, and the price of the constraints.

    The default policy is the optimal one, and the default step is the first. Prices are the
    multipliers of the solution, which is computed by default. With a counter, `count` is its level;
    the default is its start. A problem without an end has no steps. If its rewards are averaged,
    values are gains over the average, and an action that changes the average has no value.
    """
    found = solve(problem) if solution is None else solution
    if not isinstance(found, Solution):
        raise InputError(f"the solution is {type(found).__name__}, not what solve returns")
    if found.multiplier is None or found.policy is None:
        raise InputError(f"{problem.name} has no prices to explain with: {found.message}")
    played = found.policy if policy is None else policy
    labels = problem.labels
    x = labels.find_state(state, problem.states)
    place: tuple[int, ...] = (x,)
    size = float(np.abs(found.occupancy).sum()) if found.occupancy is not None else 1.0
    if isinstance(problem, CMDP):
        place = (labels.find_step(0 if step is None else step, problem.horizon), x)
        rows, visits, values = _seen_from(problem, played, *place, count)
    else:
        if step is not None or count is not None:
            raise InputError(f"{problem.name} is {problem.criterion}: it has no steps to ask about")
        rows, visits, values = _seen_for_ever(problem, played, x)
        size *= float(np.abs(problem.reward).max())
    total = np.array([1.0, *found.multiplier]) @ values
    here = values @ rows
    order = sorted(np.flatnonzero(problem.opened[place]).tolist(), key=lambda a: -total[a])
    best = max(order, key=lambda a: values[0, a])
    given_up = float(values[0, best] - here[0])
    given_up = given_up if given_up > SAME * size else 0.0
    gained = here[1:] - values[1:, best]
    scales = problem.units
    factor = np.array([each.factor for each in scales])
    beside = any(each.offset for each in scales) or _averaged(problem)
    shown, whole = values, total
    if beside:
        shown, whole = (
            np.where(np.abs(each) > SAME * size, each, 0.0)
            for each in (values - here[:, None], total - total @ rows)
        )
    units = np.abs(factor)
    actions = tuple(
        {
            "action": labels.action(a),
            "probability": float(rows[a]),
            "values": [float(each) for each in factor * shown[:, a] + 0.0],
            "total": float(factor[0] * whole[a]) + 0.0,
        }
        for a in order
    )
    return Explanation(
        problem=problem.name,
        state=labels.state(x),
        step=labels.step(place[0]) if len(place) == 2 else "",
        visits=visits,
        played=in_words(problem, rows),
        signals=tuple(each.of for each in scales),
        costs=tuple(bool(each < 0.0) for each in factor),
        prices=units[0] * found.multiplier / units[1:],
        actions=actions,
        given_up=units[0] * given_up,
        gained=units[1:] * gained,
        worth=units[0] * found.multiplier * gained,
        beside=beside,
    )


def _averaged(problem: CMDP | StationaryCMDP) -> bool:
    return isinstance(problem, StationaryCMDP) and isinstance(problem.criterion, Average)


def _seen_for_ever(
    problem: StationaryCMDP, policy: npt.ArrayLike | Policy, x: int
) -> tuple[Array, float, Array]:
    """Return the row [A] of a state, the share of time there, and action values [1 + N, A]."""
    from cmdplab.cmdp import exact_stationary  # SciPy's sparse solvers take a while to load

    if isinstance(policy, Policy) and policy.counter is not None:
        raise InputError("a policy with a counter is for a problem with a horizon")
    array = fitted(problem, policy)
    spent = exact_stationary.visits(problem, array).states
    share = float(spent[x] / spent.sum())
    if not _averaged(problem):
        values = [
            exact_stationary.action_values(problem, array, each)[x] for each in problem.reward
        ]
        return array[x], share, np.stack(values)
    found, changes = exact_stationary.relative_values(problem, array)
    opened = problem.opened[x]
    moved = np.abs(changes[:, x, opened]).max(axis=0) > 1e-9 * np.abs(problem.reward).max()
    if moved.any():
        name = problem.labels.action(int(np.flatnonzero(opened)[np.argmax(moved)]))
        raise InputError(
            f"{problem.name}: action {name} in state {problem.labels.state(x)} changes the average "
            "over all time, which no value beside the average can say; evaluate both policies"
        )
    return array[x], share, found[:, x]


def _seen_from(
    problem: CMDP, policy: npt.ArrayLike | Policy, h: int, x: int, count: int | None
) -> tuple[Array, float, Array]:
    """Return the row [A] of a place, its probability, and its action values [1 + N, A]."""
    array = fitted(problem, policy)
    counter = policy.counter if isinstance(policy, Policy) else None
    if counter is None:
        if count is not None:
            raise InputError(f"the counter is {count!r}, but the policy has no memory")
        visits = exact.occupancy(problem, array)[h, x].sum()
        values = [exact.action_values(problem, array, each)[h, x] for each in problem.reward]
        return array[h, x], float(visits), np.stack(values)
    k = level_of(counter, count)
    visits = counted_occupancy(problem, array, counter)[h, k, x].sum()
    values = [
        counted_action_values(problem, array, counter, each)[h, k, x] for each in problem.reward
    ]
    return array[h, k, x], float(visits), np.stack(values)
