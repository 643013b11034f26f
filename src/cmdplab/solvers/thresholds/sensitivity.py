"""The price of each threshold in the user's units, and the range in which the price holds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.cmdp.bundle import check_problem
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.display import words_and_table
from cmdplab.errors import InputError
from cmdplab.solvers.solution import Solution, solve
from cmdplab.solvers.thresholds.attainable import CLOSED, Attainable
from cmdplab.solvers.thresholds.conflicts import Conflict, conflict, joined
from cmdplab.solvers.thresholds.frontier import Edge, published

LIMITS = 1e-9  # of a weight: a smaller one is rounding


class Price(NamedTuple):
    """One constraint at the optimum, in the units of the labels.

    Looser means a larger budget, or a smaller lower limit. A price is the change of the objective,
    in its units, for one unit of the limit.
    """

    constraint: int  # counted from 1
    name: str
    cost: bool  # whether the limit is a budget, which must not be exceeded
    limit: float  # the threshold or the budget
    reached: float  # by the optimal policy
    binds: bool  # whether one unit more or less makes a difference
    price_looser: float  # what one unit looser buys
    looser_until: float | None  # the limit up to which it does; None: for ever
    price_tighter: float | None  # what one unit tighter costs; None: no policy meets a tighter one
    tighter_until: float  # the limit up to which it does
    free: float  # the limit from which on it costs nothing, the others as they are
    tightest: float  # the tightest limit that can be met, the others as they are
    costs: float  # what the objective gains where the constraint is dropped
    room: float  # some policy stays at least so far from every limit at once
    limits_room: bool  # whether the constraint is one of those that keep all from having more


class Sensitivity(NamedTuple):
    """The prices of a problem's thresholds, in the units of the labels, to be printed.

    If no policy meets them, `conflict` gives the reason, and there are no prices.
    """

    problem: str
    objective: str
    cost: bool  # whether the objective is better if smaller
    feasible: bool
    optimum: float | None
    unconstrained: float  # the objective without any constraint
    certificate: float | None  # how far the optimum may be from the truth
    prices: tuple[Price, ...]  # one for each constraint
    slater_gap: float  # the largest joint margin, in the units of `solve`; < 0: infeasible
    conflict: Conflict | None
    message: str  # of `solve`

    @property
    def text(self) -> str:
        """Return the prices in words, a sentence for each constraint, and the joint margin."""
        if self.conflict is not None:
            names = [each.name for each in self.conflict.limits]
            lines = [f"{self.problem}: {self.message}."]
            if len(names) > 1:
                lines.append("Without any one of these, the others of them can be met.")
            return "\n".join(
                [*lines, f"The nearest limits that can be met are {self.conflict.instead}."]
            )
        lines = [
            f"{self.problem}: the {'least' if self.cost else 'most'} {self.objective} is "
            f"{self.optimum:.6g}; without any constraint it is {self.unconstrained:.6g}."
        ]
        lines += [_priced(each, self.objective) for each in self.prices]
        who = joined([each.name for each in self.prices if each.limits_room])
        rooms = joined([f"{each.room:.4g} of {each.name}" for each in self.prices])
        if self.slater_gap <= 0.0:
            lines.append(f"No policy has room to spare in all limits at once: {who} keeps it.")
        else:
            lines.append(f"The safest policy keeps at least {rooms} of room; {who} allows no more.")
        return "\n".join(lines)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows, one row for each constraint."""
        header = ["constraint", "limit", "reached", "looser buys", "until", "tighter costs"]
        header += ["until", "free from", "tightest"]
        rows = []
        for each in self.prices:
            limit = f"{'<=' if each.cost else '>='} {each.limit:.5g}"
            loose = "–" if each.looser_until is None else f"{each.looser_until:.5g}"
            tight = "impossible" if each.price_tighter is None else f"{each.price_tighter:.5g}"
            until = "–" if each.price_tighter is None else f"{each.tighter_until:.5g}"
            row = [each.name, limit, f"{each.reached:.5g}", f"{each.price_looser:.5g}", loose]
            rows.append([*row, tight, until, f"{each.free:.5g}", f"{each.tightest:.5g}"])
        return header, rows

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return words_and_table(self.text, *self.table())


def sensitivity(problem: CMDP | StationaryCMDP, solution: Solution | None = None) -> Sensitivity:
    """Return the prices of all thresholds, their ranges, binding thresholds, and the joint margin.

    The price of a threshold is the slope of `frontier`, the others as they are. At a breakpoint a
    unit tighter costs more than a unit looser buys. Without a policy that meets all thresholds, the
    answer is the conflict.
    """
    check_problem(problem)
    if not isinstance(solution, Solution | None):
        raise InputError(f"the solution is {type(solution).__name__}, not a Solution")
    if not problem.constraints:
        raise InputError(f"{problem.name} has no constraints, and so no prices")
    found = solve(problem) if solution is None else solution
    space, labels = Attainable(problem), problem.labels
    objective = labels.signal(0)
    free = objective.published(float(space.best(np.eye(1 + problem.constraints)[0])[0]))
    given = (problem.name, objective.of, objective.factor < 0.0, found.feasible)
    margin = space.margin(range(problem.constraints))
    if not found.feasible:
        why = conflict(problem)
        return Sensitivity(*given, None, free, None, (), margin.value, why, found.message)
    assert found.value is not None
    assert found.duality_gap is not None
    prices = tuple(
        _price(space, n, found, margin.weights[n - 1]) for n in range(1, 1 + problem.constraints)
    )
    optimum = objective.published(found.value)
    certificate = abs(objective.factor) * found.duality_gap
    gap = float(found.slater_gap or 0.0)
    return Sensitivity(*given, optimum, free, certificate, prices, gap, None, found.message)


def _price(space: Attainable, n: int, solution: Solution, weight: float) -> Price:
    problem = space.problem
    objective, scale = problem.labels.signal(0), problem.labels.signal(n)
    edge, limit = Edge(space, n), float(problem.threshold[n - 1])
    limit_met = min(limit, edge.largest)  # `solve` meets thresholds but for rounding
    looser, down = edge.loosened(limit_met)
    tighter, up = edge.tightened(limit_met)
    if not edge.doubt <= CLOSED * space.size:
        raise space.refusal(f"the price of {scale.of} cannot be certified")
    unit = abs(objective.factor / scale.factor)

    def shown(ours: float) -> float:
        return float(published(scale, ours, space.size))

    reached = float(np.sum(problem.reward[n] * solution.occupancy))
    gap, lost = solution.slater_gap or 0.0, float(edge.first.returns[0]) - (solution.value or 0.0)
    return Price(
        constraint=n,
        name=scale.of,
        cost=scale.factor < 0.0,
        limit=shown(limit),
        reached=shown(reached),
        binds=limit_met > edge.free + edge.tie,
        price_looser=unit * looser,
        looser_until=None if down == -np.inf else shown(down),
        price_tighter=None if tighter is None else unit * tighter,
        tighter_until=shown(up),
        free=shown(edge.free),
        tightest=shown(edge.largest),
        costs=abs(objective.factor) * max(lost, 0.0),
        room=abs(scale.factor) * gap,
        limits_room=bool(weight > LIMITS),
    )


def _priced(price: Price, objective: str) -> str:
    more, less = ("more", "less") if price.cost else ("less", "more")
    limit = f"{price.name} {'at most' if price.cost else 'at least'} {price.limit:.6g}"
    if not price.binds:
        toward = "down to" if price.cost else "up to"
        return (
            f"{limit} costs nothing: the optimum has {price.reached:.6g}, and {toward} "
            f"{price.free:.6g} it stays so."
        )
    words = (
        f"{limit} binds: one unit {more} buys {price.price_looser:.4g} of {objective}, until "
        f"{price.looser_until:.6g}; one unit {less} "
    )
    if price.price_tighter is None:
        return words + "is impossible."
    return words + f"costs {price.price_tighter:.4g}, until {price.tighter_until:.6g}."
