"""The price of a threshold: the optimal value as a function of one threshold.

It is concave and piecewise linear: the upper right edge of the attainable returns, in the plane of
the objective and one utility, with the other thresholds as they are. Chords find its vertices. The
best point in the direction of a chord may lie beyond the chord. Then it is a vertex between both
ends. Otherwise the chord is an edge. K vertices take 2 K searches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab import display
from cmdplab.checks import is_whole
from cmdplab.cmdp.bundle import check_problem
from cmdplab.cmdp.labels import Scale
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.errors import InputError, shown
from cmdplab.solvers.thresholds.attainable import CLOSED, Attainable, Point
from cmdplab.types import Array, frozen

MOST_POINTS = 10_000
MOST_BREAKPOINTS = 1_000  # that are looked for unless one asks for more: two questions each
ROUNDING = 1e-13  # of the largest return: what is less is zero
BEYOND = 1e-11  # of the largest return: a vertex nearer to a chord counts as on it


@display.shown
@frozen
class Frontier(NamedTuple):
    """The optimal value along thresholds of one constraint, the others as they are.

    If `exact`, thresholds are the breakpoints, and values in between lie on straight lines. The
    multiplier of a breakpoint is the price on the piece that ends there, 0 at the first.
    """

    constraint: int  # counted from 1
    threshold: Array  # [points]
    value: Array  # [points], V*
    multiplier: Array  # [points], what one more unit of utility costs
    certificate: float  # the largest along it: how far a value may be from the optimum
    given: float  # the problem's own threshold
    free: float  # up to this threshold the constraint costs nothing
    largest: float  # beyond this threshold nothing is feasible
    exact: bool = False  # whether the points are the breakpoints
    units: tuple[Scale, Scale] = (Scale("optimal value"), Scale("threshold of constraint 1"))

    def _facts(self) -> tuple[str, display.Facts]:
        def ends(values: Array) -> str:
            return f"{display.number(values[0])} to {display.number(values[-1])}"

        return f"Frontier of {display.name(self.units[1].of)}", [
            ("breakpoints" if self.exact else "points", f"{len(self.threshold):,}"),
            ("thresholds", ends(self.threshold)),
            ("value", ends(self.value)),
            ("multiplier", ends(self.multiplier)),
            ("given threshold", display.number(self.given)),
            ("certified to", f"{self.certificate:.1e}"),
        ]

    def in_units(self) -> Frontier:
        """Convert to the units of the labels: budgets for a cost, prices per unit of a cost."""
        objective, limit = self.units
        most, size = np.abs(self.value).max(), np.abs(self.threshold).max()
        return self._replace(
            threshold=published(limit, self.threshold, size),
            value=published(objective, self.value, most),
            multiplier=abs(objective.factor / limit.factor) * self.multiplier,
            certificate=abs(objective.factor) * self.certificate,
            given=float(published(limit, self.given, size)),
            free=float(published(limit, self.free, size)),
            largest=float(published(limit, self.largest, size)),
            units=(Scale(objective.of), Scale(limit.of)),
        )


def frontier(
    problem: CMDP | StationaryCMDP,
    constraint: int | str = 1,
    points: int | None = None,
    most: int = MOST_BREAKPOINTS,
) -> Frontier:
    """Return the frontier from the first binding threshold to the largest that can be met.

    The value is concave and falls. Its slope is minus the multiplier. Without `points` the
    thresholds are its breakpoints, at most `most`, else `points` thresholds at equal distances. A
    constraint is a number, counted from 1, or the name in the labels.
    """
    n = found_constraint(problem, constraint)
    if points is not None and not (is_whole(points) and 2 <= points <= MOST_POINTS):
        raise InputError(f"points is {shown(points)}, outside 2 to {MOST_POINTS}")
    edge = Edge(Attainable(problem), n)
    given = float(problem.threshold[n - 1])
    if points is None:
        found = edge.vertices(most)
        limits, values = np.array([each.returns[[n, 0]] for each in found]).T
        prices = np.array([0.0, *(-np.diff(values) / np.diff(limits))])
    else:
        limits = np.linspace(edge.free, edge.largest, points)
        found = [edge.first, *edge.at(limits[1:-1]), edge.last]
        values = np.array([each.returns[0] for each in found])
        prices = np.array([each.multiplier[n - 1] for each in found])
        prices[[0, -1]] = 0.0, edge.loosened(edge.largest)[0]  # as at breakpoints
    certificate = max(edge.doubt, *(each.doubt for each in found))
    if not certificate <= CLOSED * edge.space.size:
        raise edge.space.refusal(f"its frontier is known to {certificate:.1e} only")
    units = (problem.labels.signal(0), problem.labels.signal(n))
    if not problem.labels.signals:
        units = (Scale("optimal value"), Scale(f"threshold of constraint {n}"))
    ends = (given, edge.free, edge.largest)
    return Frontier(n, limits, values, prices, certificate, *ends, points is None, units)


def published(scale: Scale, ours: float | Array, size: float) -> Array:
    """Convert returns to the units of the labels. A zero but for rounding becomes 0.

    size : the largest of such returns, in solver units.
    """
    found = scale.offset + scale.factor * np.asarray(ours)
    rounding = ROUNDING * (abs(scale.offset) + abs(scale.factor) * size)
    return np.where(np.abs(found) <= rounding, 0.0, found)


def found_constraint(problem: CMDP | StationaryCMDP, constraint: int | str) -> int:
    """Return the number, counted from 1, of a constraint given by number or name."""
    check_problem(problem)
    N = problem.constraints
    names = [problem.labels.signal(n + 1).of for n in range(N)]
    if isinstance(constraint, str) and constraint in names:
        return names.index(constraint) + 1
    number = int(constraint) if str(constraint).isdecimal() else 0
    if not 1 <= number <= N:
        known = f", named {', '.join(names)}" if problem.labels.signals and names else ""
        raise InputError(f"constraint {constraint} does not exist: {problem.name} has {N}{known}")
    return number


class Edge:
    """The frontier of one constraint, counted from 1, computed as needed.

    alone : leave the other constraints aside.
    """

    def __init__(self, space: Attainable, constraint: int, alone: bool = False) -> None:
        self.space, self.n = space, constraint
        self.limits = np.array(space.problem.threshold)
        self.limits[slice(None) if alone else constraint - 1] = -np.inf
        others = np.flatnonzero(np.isfinite(self.limits))
        begun: tuple[Array, ...] = ()
        if len(others):
            safe = space.margin(others)
            if safe.bound < -space.short:
                raise InputError(f"{space.problem.name}: the other constraints cannot be met")
            begun = safe.points
        self.tie, self.doubt = BEYOND * space.size, 0.0  # the doubt of all edges so far
        self.first = self._toward(0.0, begun)  # the best value; utility in the end the most of it
        self.last = self._toward(np.inf, begun)
        self.doubt = max(self.first.doubt, self.last.doubt)
        self._square()

    @property
    def free(self) -> float:
        """Return the threshold up to which the constraint costs nothing."""
        return float(self.first.returns[self.n])

    @property
    def largest(self) -> float:
        """Return the threshold beyond which nothing is feasible."""
        return float(self.last.returns[self.n])

    def _toward(self, price: float, begun: tuple[Array, ...]) -> Point:
        """Return the best point for the objective plus the utility at a price."""
        direction = np.zeros(1 + len(self.limits))
        direction[0] = 0.0 if price == np.inf else 1.0
        direction[self.n] = 1.0 if price == np.inf else price
        return self.space.optimum(direction, self.limits, begun)

    def _square(self) -> None:
        """Move both ends to the corners: among best values the most utility, and vice versa."""
        for axis in (0, self.n):
            kept, right = (self.first, self.last) if axis == 0 else (self.last, self.first)
            least = kept.returns[axis] - self.tie
            while between := self.beyond(*((kept, right) if axis == 0 else (right, kept))):
                kept, right = (
                    (between, right) if between.returns[axis] >= least else (kept, between)
                )
            kept = right if right.returns[axis] >= least else kept
            self.first, self.last = (kept, self.last) if axis == 0 else (self.first, kept)
        if self._together(self.first, self.last):
            self.last = self.first

    def _together(self, left: Point, right: Point) -> bool:
        """Return True if there is no edge between two points but one that is flat or upright."""
        rise = left.returns[0] - right.returns[0]
        return bool(right.returns[self.n] - left.returns[self.n] <= self.tie or rise <= self.tie)

    def beyond(self, left: Point, right: Point) -> Point | None:
        """Return a point beyond the chord of two points, or None if the chord is an edge."""
        if self._together(left, right):
            return None
        price = self.price(left, right)
        found = self._toward(price, (*left.points, *right.points))
        value = found.returns[0] + price * found.returns[self.n]
        chord = max(each.returns[0] + price * each.returns[self.n] for each in (left, right))
        if value <= chord + self.tie * (1.0 + price):
            self.doubt = max(self.doubt, max(value - chord, 0.0) + found.doubt)
            return None
        return found

    def vertices(self, most: int) -> list[Point]:
        """Return every vertex, from the first to the last."""
        done, ahead = [self.first], [self.last] if self.last is not self.first else []
        while ahead:
            between = self.beyond(done[-1], ahead[-1])
            if between is not None:
                ahead.append(between)
            else:
                if len(done) > 1 and self._straight(done[-2], done[-1], ahead[-1]):
                    done.pop()
                done.append(ahead.pop())
            if len(done) + len(ahead) > most:
                raise InputError(
                    f"{self.space.problem.name}: the frontier has more than {most:,} breakpoints: "
                    "say how many points of it you want, or raise `most`"
                )
        return done

    def _straight(self, left: Point, middle: Point, right: Point) -> bool:
        """Return True if a point lies on its neighbours' chord, and thus is no vertex."""
        price = self.price(left, right)
        over = [each.returns[0] + price * each.returns[self.n] for each in (left, middle)]
        return bool(over[1] - over[0] <= self.tie * (1.0 + price))

    def price(self, left: Point, right: Point) -> float:
        """Return minus the slope between two points."""
        value, utility = (right.returns - left.returns)[[0, self.n]]
        return float(-value / utility)

    def piece(self, limit: float) -> tuple[Point, Point]:
        """Return the ends of the edge that holds a threshold between the first and the last."""
        left, right = self.first, self.last
        while (between := self.beyond(left, right)) is not None:
            if between.returns[self.n] <= limit:
                left = between
            else:
                right = between
        while right is not self.last and self._straight(
            left, right, self._beside(right, self.last)
        ):
            right = self._beside(right, self.last)
        while left is not self.first and self._straight(
            self._beside(left, self.first), left, right
        ):
            left = self._beside(left, self.first)
        return left, right

    def _beside(self, vertex: Point, end: Point) -> Point:
        """Return the other end of the edge that leads from a vertex toward the first or last."""
        other: Point | None = end
        while other is not None:
            end = other
            other = self.beyond(*sorted((vertex, end), key=lambda each: each.returns[self.n]))
        return end

    def loosened(self, limit: float) -> tuple[float, float]:
        """Return the gain per unit less of the threshold, and the lowest threshold with it."""
        if limit <= self.free + self.tie:
            return 0.0, -np.inf
        left, right = self.piece(limit)
        if limit <= left.returns[self.n] + self.tie:
            left, right = self.piece((self._beside(left, self.first).returns[self.n] + limit) / 2.0)
        return self.price(left, right), float(left.returns[self.n])

    def tightened(self, limit: float) -> tuple[float | None, float]:
        """Return the cost per unit more (None: impossible), and the highest threshold with it."""
        if limit < self.free - self.tie:
            return 0.0, self.free
        if limit >= self.largest - self.tie:
            return None, self.largest
        left, right = self.piece(limit)
        if limit >= right.returns[self.n] - self.tie:
            left, right = self.piece((self._beside(right, self.last).returns[self.n] + limit) / 2.0)
        return self.price(left, right), float(right.returns[self.n])

    def at(self, limits: Array) -> list[Point]:
        """Return the optima at thresholds [points] between the first and the last."""
        found: list[Point] = []
        for limit in limits.tolist():
            wanted = self.limits.copy()
            wanted[self.n - 1] = limit
            begun = found[-1].points if found else (*self.first.points, *self.last.points)
            direction = np.eye(1 + len(wanted))[0]
            found.append(self.space.optimum(direction, wanted, (*begun, *self.last.points)))
        return found
